"""Score pairs of columns of which some are nominal: a nominal axis is cut into its categories.

- Two numbers: all grids of the statistic.
- A number and b categories: the number is merged into k = 2, 3, ..., K parts, K the largest of 2
  and min(floor(sqrt B), floor(B / b)), from the master partition for floor(sqrt B) parts.
  The characteristic matrix has one column: I / log2 min(k, b).
- Two nominal columns of a and b categories: the whole table, I / log2 min(a, b).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

from dpmic_jax.data.limits import Column, Limits, NominalLimits
from dpmic_jax.mic import binning, grid_groups
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.binning import Ties
from dpmic_jax.mic.characteristic import Characteristic, Entries, Measure
from dpmic_jax.mic.grids import Grid, cells
from dpmic_jax.mic.statistics import ROOMS, BinnedTable, MICe, MICr, Statistic
from dpmic_jax.mic.xlogx import UNIT, Gains

PairPositions = Int[np.ndarray, "pairs 2"]
Values = Float[np.ndarray, " pairs"]


class MixedScorer:
    """Scores the pairs of a table.

    Args:
      statistic: MICe or MICr.
      measure: what to read off each characteristic matrix.
      gains: how phi is evaluated.
      devices: where to run.
    """

    def __init__(
        self,
        statistic: Statistic,
        measure: Measure,
        gains: Callable[[int], Gains],
        devices: Sequence[Device] = (),
    ):
        self._statistic, self._measure = statistic, measure
        self._gains, self._devices = gains, devices

    def __call__(
        self,
        columns: Sequence[Column],
        limits: Sequence[Limits],
        bins: Int[np.ndarray, " columns"],
        pairs: PairPositions,
    ) -> Values:
        """The measure of each pair.

        Args:
          columns: numbers, or codes 0 .. b - 1 of nominal columns, each of which occurs.
          limits: public limits of the numbers, for MICr.
          bins: how many categories each nominal column has, and 0 for numbers.
          pairs: positions of x and y.
        """
        nominal = bins[pairs] > 0
        found = np.empty(len(pairs))
        kinds = nominal.sum(axis=1)
        for kind, score in enumerate((self._numbers, self._one_nominal, self._two_nominal)):
            some = kinds == kind
            if some.any():
                found[some] = score(columns, limits, bins, pairs[some])
        return found

    def _numbers(self, columns, limits, bins, pairs: PairPositions) -> Values:
        used, places = _renumbered(pairs)
        chosen = [columns[i] for i in used]
        if isinstance(self._statistic, MICr):
            cut = self._statistic.cut(chosen, [limits[i] for i in used])
        else:
            cut = replace(self._statistic, ties=_as_placed(self._statistic, used)).cut(chosen)
        tiles = self._information(cut, places)
        parts = [self._measure(read.characteristic(cut.grids, tile)) for tile in tiles]
        return np.concatenate(parts)

    def _one_nominal(self, columns, limits, bins, pairs: PairPositions) -> Values:
        ordered = np.where(bins[pairs[:, :1]] > 0, pairs[:, ::-1], pairs)  # the number first
        used, places = _renumbered(ordered)
        cut = self._cut(columns, limits, bins, used)
        tiles = [tile[:, 0] for tile in self._information(cut, places)]
        bits, own = np.concatenate(tiles, axis=1).T / UNIT, bins[ordered[:, 1]]
        most = cells(self._statistic.B, cut.n)
        found = np.empty(len(pairs))
        for count in np.unique(own).tolist():
            parts = max(2, min(cut.grids[0].parts, most // count))
            some = own == count
            k = np.arange(2, parts + 1)
            matrix = _column(bits[some, : len(k)], k, np.full_like(k, count))
            found[some] = self._measure(matrix)
        return found

    def _cut(self, columns, limits, bins, used) -> BinnedTable:
        """Numbers in a master partition, nominal columns in their categories."""
        n, own = len(columns[0]), bins[used]
        room = next(room for room in ROOMS if room >= own.max())
        grid = self._grid(n, room)
        chosen = [columns[i] for i in used]
        sizes, rooms = [[grid.master], [grid.rows]], [[0], [room]]
        if isinstance(self._statistic, MICr):
            between = [
                NominalLimits(int(count), False) if count else limits[i]
                for i, count in zip(used, own, strict=True)
            ]
            masters, rows = binning.by_ranges(chosen, between, sizes, rooms)
        else:
            ties = _as_placed(self._statistic, used)
            masters, rows = (
                binning.by_rank_or_category(chosen, size, ties, own, most)
                for size, most in zip(sizes, rooms, strict=True)
            )
        return BinnedTable((grid,), masters, rows)

    def _grid(self, n: int, room: int) -> Grid:
        statistic = self._statistic
        parts = max(2, math.isqrt(cells(statistic.B, n)))
        size = max(2, statistic.master(Fraction(str(statistic.c)), parts, parts))
        return Grid(1, size, min(parts, size), room)

    def _two_nominal(self, columns, limits, bins, pairs: PairPositions) -> Values:
        found = np.empty(len(pairs))
        for at, (x, y) in enumerate(pairs.tolist()):
            count = bins[[x, y]]
            bits = table_information(columns[x], columns[y], count)
            matrix = _column(np.array([[bits]]), count[:1], count[1:])
            found[at] = np.asarray(self._measure(matrix))[0]
        return found

    def _information(
        self, cut: BinnedTable, pairs: PairPositions
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Score pairs tile by tile, with a bar on a terminal if that takes a while."""
        with tqdm(total=len(pairs), unit="pair", disable=None, delay=1) as bar:
            gains = self._gains(cut.n)
            for found in grid_groups.score_pairs(cut, pairs, gains, devices=self._devices):
                yield found
                bar.update(found.shape[2])


def table_information(
    x: Int[np.ndarray, " n"], y: Int[np.ndarray, " n"], bins: Int[np.ndarray, "2"]
) -> float:
    """Bits of mutual information of two columns of codes."""
    counts = np.bincount(x.astype(np.int64) * bins[1] + y, minlength=bins.prod()).reshape(bins)

    def told(counts: Int[np.ndarray, "*shape"]) -> float:
        return float((counts * np.log2(np.maximum(counts, 1))).sum())

    sums = told(counts.sum(axis=0)) + told(counts.sum(axis=1))
    return max(told(counts) + told(counts.sum()) - sums, 0.0) / len(x)


def _column(
    bits: Float[np.ndarray, "pairs entries"],
    x_parts: Int[np.ndarray, " entries"],
    y_parts: Int[np.ndarray, " entries"],
) -> Characteristic:
    """A characteristic matrix without a transposed one: no entry is asymmetric."""
    values = np.clip(bits / np.log2(np.minimum(x_parts, y_parts)), 0, 1)
    return Characteristic(values, Entries(x_parts, y_parts, np.arange(len(x_parts))))


def _as_placed(statistic: MICe, used: Int[np.ndarray, " used"]) -> Ties:
    """Ties broken as in the whole table, of which these are the positions (`RandomTies`)."""
    return lambda column, at: statistic.ties(column, int(used[at]))


def _renumbered(pairs: PairPositions) -> tuple[Int[np.ndarray, " used"], PairPositions]:
    """The positions of the columns that are in a pair, and the pairs as positions among these."""
    used, places = np.unique(pairs, return_inverse=True)
    return used, places.reshape(pairs.shape)
