"""Score a few pairs in numpy: nothing to compile, and the same integers.

What the compiled programs find in integers is found here too, bit for bit: both add and compare
entries of one table. Where they evaluate phi in float32, here it is float64.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, Integer

from dpmic_jax.mic.binning import Partitions
from dpmic_jax.mic.distance import (
    kind_of,
    length_price,
    nominal_distance_numpy,
    split_distance_numpy,
)
from dpmic_jax.mic.grids import Grid, masters
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
    each += 4e-3 * sum(grid.parts == 1 for grid in grids)
    return 2 * pairs * (each + (8e-5 + 6e-9 * n) * len(grids))


class FewScorer:
    """A table that has been cut: call it with pairs."""

    def __init__(self, cut: BinnedTable, gains: Gains | None):
        self._cut, self._table = cut, None if gains is None else _phi_table(gains, cut.n)

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
            edges = edge_counts(self._cut, merged, fixed, i)
            if self._table is None or grid.parts == 1:
                found.append([self._distance(np.diff(edges, axis=0), merged, fixed)])
            elif grid.parts == 0:
                found.append([_told(np.diff(edges, axis=0), self._table)])
            else:
                found.append(merge(edges, grid.parts, self._table))
        return np.concatenate(found)

    def _distance(self, counts: Int[np.ndarray, "parts others"], merged: int, fixed: int) -> int:
        bins = self._cut.bins
        if bins is None:
            return split_distance_numpy(counts)
        price = length_price(int(bins[fixed]), self._cut.n)
        return nominal_distance_numpy(counts, int(kind_of(bins[merged])), price)


def edge_counts(cut: BinnedTable, merged: int, fixed: int, index: int) -> EdgeCounts:
    """Records of each row before each edge of the master columns of one grid.

    Args:
      cut: the table.
      merged, fixed: the columns on the axis that is optimised and on the other one.
      index: of the grid in the plan.
    """
    grid = cut.grids[index]
    size = masters(cut.grids).index(grid.columns)
    columns, rows = part_codes(cut.masters, merged, size), part_codes(cut.rows, fixed, index)
    counts = np.bincount(columns * grid.height + rows, minlength=grid.width * grid.height)
    counts = counts.reshape(grid.width, grid.height)
    return np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])


def _phi_table(gains: Gains, n: int) -> PhiTable:
    if isinstance(gains, ExactGains):
        return np.asarray(gains.table).astype(np.int64)
    return float_phi(n) * UNIT


@lru_cache(maxsize=8)
def float_phi(n: int) -> Float[np.ndarray, " n_plus_1"]:
    """phi(a) / n = a log2(a) / n in bits, for a = 0 .. n."""
    count = np.arange(n + 1.0)
    return count * np.log2(np.maximum(count, 1)) / n


def part_codes(partitions: Partitions, column: int, size: int) -> Int[np.ndarray, " n"]:
    """Each record's part in one size."""
    edges = partitions.edges[column, size]
    part = np.searchsorted(edges, np.arange(edges[-1]), side="right") - 1
    return part[partitions.fine[column]]


def _told(counts: Int[np.ndarray, "columns rows"], phi: PhiTable) -> float:
    """The information of a whole table (`kernel.tables`)."""
    cells, sums = phi[counts].sum(), [phi[counts.sum(axis=axis)].sum() for axis in (0, 1)]
    return max(float(phi[counts.sum()] + cells - sum(sums)), 0.0)


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


def best_edges(counts: EdgeCounts, parts: int) -> Int[np.ndarray, " inner_edges"]:
    """The inner edges at which `parts` merged columns that keep most information are cut.

    The recursion of `merge`, in float64, with its choices remembered and walked back.
    """
    edges = np.column_stack([counts, counts.sum(axis=1)])
    gain = _gains(edges, float_phi(int(edges[-1, -1])))
    best, chosen = gain[0], []
    for _ in range(parts - 1):
        options = best[:, None] + gain
        chosen.append(options.argmax(axis=0))
        best = options.max(axis=0)
    found = [len(gain) - 1]
    for choice in reversed(chosen):
        found.append(choice[found[-1]])
    return np.array(found[:0:-1])


def _gain(inside: Integer[np.ndarray, "edges rows_and_sum"], phi: PhiTable) -> np.ndarray:
    """g of parts, from their records in each row and in all."""
    return phi[inside[:, :-1]].sum(axis=1) - phi[inside[:, -1]]


def _gains(edges: Integer[np.ndarray, "edges rows_and_sum"], phi: PhiTable) -> np.ndarray:
    """g from each edge to each later one. Row by row, which stays in cache."""
    *rows, total = (np.abs(row - row[:, None]) for row in edges.T)
    gain = -phi[total]
    for row in rows:
        gain += phi[row]
    gain[np.tri(len(gain), k=-1, dtype=bool)] = _IMPOSSIBLE
    return gain
