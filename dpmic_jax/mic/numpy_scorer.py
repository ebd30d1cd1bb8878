"""Score a few pairs in numpy: nothing to compile, and the same integers.

What the compiled programs find in integers is found here too, bit for bit: both add and compare
entries of one table. Where they evaluate phi in float32, here it is float64.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int, Integer

from dpmic_jax.mic.binning import Partitions
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import UNIT, ExactGains, Gains

# phi of 0, 1, 2, ... records over n, in units of 2^-26 bits.
PhiTable = Int[np.ndarray, " n_plus_1"] | Float[np.ndarray, " n_plus_1"]
EdgeCounts = Int[np.ndarray, "edges rows"]

_IMPOSSIBLE = -(2**40)


def seconds(grids: Sequence[Grid], n: int, pairs: int) -> float:
    """About how long scoring takes, measured on one CPU core."""
    more = [grid for grid in grids if grid.parts > 2]
    squares = sum((grid.master + 1) ** 2 * (grid.rows + grid.parts) for grid in more)
    each = 3e-9 * squares + 8e-6 * sum(grid.rows for grid in more)
    return 2 * pairs * (each + (8e-5 + 6e-9 * n) * len(grids))


class FewScorer:
    """A table that has been cut: call it with pairs."""

    def __init__(self, cut: BinnedTable, gains: Gains):
        self._cut, self._table = cut, _phi_table(gains, cut.n)
        self._place = {size: i for i, size in enumerate(sorted({g.master for g in cut.grids}))}

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 1"]]:
        """Information in units of 2^-26 bits (`kernel.entries`), pair by pair."""
        for x, y in pairs.tolist():
            sides = [self._oriented(x, y), self._oriented(y, x)]
            yield np.rint(np.stack(sides, axis=1)).astype(np.int32)[..., None]

    def _oriented(self, merged: int, fixed: int) -> np.ndarray:
        found = []
        for i, grid in enumerate(self._cut.grids):
            columns = part_codes(self._cut.masters, merged, self._place[grid.master])
            cell = columns * grid.rows + part_codes(self._cut.rows, fixed, i)
            counts = np.bincount(cell, minlength=grid.master * grid.rows)
            counts = counts.reshape(grid.master, grid.rows)
            edges = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
            found.append(merge(edges, grid.parts, self._table))
        return np.concatenate(found)


def _phi_table(gains: Gains, n: int) -> PhiTable:
    if isinstance(gains, ExactGains):
        return np.asarray(gains.table).astype(np.int64)
    counts = np.arange(n + 1.0)
    return counts * np.log2(np.maximum(counts, 1)) * (UNIT / n)


def part_codes(partitions: Partitions, column: int, size: int) -> Int[np.ndarray, " n"]:
    """Each record's part in one size."""
    edges = partitions.edges[column, size]
    part = np.searchsorted(edges, np.arange(edges[-1]), side="right") - 1
    return part[partitions.fine[column]]


def merge(counts: EdgeCounts, parts: int, phi: PhiTable) -> np.ndarray:
    """Most information that 2, 3, ..., `parts` merged columns can keep (`optimise`)."""
    edges = np.column_stack([counts, counts.sum(axis=1)])
    start, end = _gain(edges - edges[0], phi), _gain(edges[-1] - edges, phi)
    found = [(start + end).max()]
    if parts > 2:
        best, gain = start, _gains(edges, phi)
        for _ in range(parts - 2):
            best = (best[:, None] + gain).max(axis=0)
            found.append((best + end).max())
    # A part may be empty, so more parts never tell less; at worst they tell nothing.
    return np.maximum.accumulate(np.maximum(np.array(found) - start[-1], 0))


def _gain(inside: Integer[np.ndarray, "edges rows_and_sum"], phi: PhiTable) -> np.ndarray:
    """g of parts that have so many records in each row, and in all."""
    return phi[inside[:, :-1]].sum(axis=1) - phi[inside[:, -1]]


def _gains(edges: Integer[np.ndarray, "edges rows_and_sum"], phi: PhiTable) -> np.ndarray:
    """g from each edge to each later one. Row by row, which stays in cache."""
    *rows, total = (np.abs(row - row[:, None]) for row in edges.T)
    gain = -phi[total]
    for row in rows:
        gain += phi[row]
    gain[np.tri(len(gain), k=-1, dtype=bool)] = _IMPOSSIBLE
    return gain
