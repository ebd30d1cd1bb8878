"""The characteristic matrix of one pair in float64: nothing to compile, and no rounding to see."""

import numpy as np
from jaxtyping import Float, Int, Integer

from dpmic_jax.mic import numpy_scorer
from dpmic_jax.mic.characteristic import Characteristic
from dpmic_jax.mic.grids import Grid
from dpmic_jax.minepy.partitions import Columns, Runs, clumps, parts_of, superclumps
from dpmic_jax.minepy.settings import Plan, characteristic

ROUNDING = 1e-13  # bits


def score(columns: Columns, x: int, y: int, plan: Plan) -> Characteristic:
    """Score columns x and y of a table on every grid of a plan."""
    bits = np.stack([_half(columns, x, y, plan.grids), _half(columns, y, x, plan.grids)], axis=1)
    obtained = columns.obtained[[y, x]].T
    found = characteristic(plan, bits[..., None], obtained[..., None])
    return Characteristic(found.values[0], found.entries)


def _half(columns: Columns, merged: int, fixed: int, grids: tuple[Grid, ...]) -> np.ndarray:
    """Bits of every score with one column fixed: ApproxMaxMI."""
    if not grids:
        return np.zeros(0)
    rows = columns.rows[fixed][columns.order[merged]]
    ties = Runs(columns.ties.start[:, [merged]], columns.ties.end[:, [merged]])
    master = parts_of(superclumps(clumps(rows, ties), grids), len(rows))
    found = [
        merge(_edge_counts(master[:, index], rows[:, index]), grid.parts)
        for index, grid in enumerate(grids)
    ]
    return np.concatenate(found)


def _edge_counts(
    parts: Int[np.ndarray, " n"], rows: Integer[np.ndarray, " n"]
) -> Int[np.ndarray, "edges rows"]:
    """Records of each row before each edge of the master parts."""
    counts = np.zeros((parts[-1] + 2, rows.max() + 1), np.int64)
    np.add.at(counts, (parts + 1, rows), 1)
    return np.cumsum(counts, axis=0)


def merge(edge_counts: Int[np.ndarray, "edges rows"], parts: int) -> Float[np.ndarray, " sizes"]:
    """Most information that 2, 3, ..., `parts` merged parts can keep, in bits: OptimizeXAxis."""
    bits = numpy_scorer.merge(
        edge_counts, parts, numpy_scorer.float_phi(int(edge_counts[-1].sum()))
    )
    # What is left where nothing is told is rounding, which a geometric mean would show.
    return np.where(bits < ROUNDING, 0, bits)
