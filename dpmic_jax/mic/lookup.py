"""Values -> how many cuts they reach: by a search, or as exactly and faster by a table.

The table has equal cells. Let f take a value to its cell: f(x) = floor((x - low) scale), kept
within the table. Each of these steps, with the rounding of floats, keeps x <= y in order, so
x <= y implies f(x) <= f(y), whatever is rounded. Cuts are put into cells by the same f. Then a
cut in a lower cell than x is below x, one in a higher cell is above x, and only the cuts in the
cell of x are left to be compared with x itself, in the column's own dtype. Rounding decides how
many comparisons that takes (`rounds`), and never what they find.

NaN is above all numbers, as it is where numpy sorts or searches: it goes to the last cell, and it
is never found below a cut.

Which way is taken depends on how many values there are and on the cuts, and on no value.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Integer, Shaped

Cuts = Shaped[np.ndarray, "_"]
Values = Shaped[np.ndarray, " n"]
Codes = Integer[np.ndarray, " n"]

# Fewer values are searched in less time than it takes to make a table.
FEW = 2**12
# Values at a time, so that what is made on the way stays in a core's cache.
_BLOCK = 2**14
# Cells for each cut: enough that few of the cuts p/q share one.
_CELLS = 16
# A larger table would not stay in the cache.
_MOST_CELLS = 2**16
# Where more cuts share a cell they lie too unevenly, or the floats that f takes are too coarse.
_MOST_ROUNDS = 4


class Partition(NamedTuple):
    """Cuts in order, of one dtype, and the highest code: codes beyond it become it."""

    cuts: Cuts
    highest: int


Coder = Callable[[Values, Sequence[Codes]], None]


class Search(NamedTuple):
    """The code of a value is the number of cuts at or below it; one search a partition."""

    partitions: tuple[Partition, ...]

    def __call__(self, values: Values, out: Sequence[Codes]) -> None:
        """Write the codes of values in every partition."""
        for partition, codes in zip(self.partitions, out, strict=True):
            codes[:] = _searched(partition, values)


class _Cells(NamedTuple):
    """f, of values and of cuts."""

    low: np.float64
    scale: np.float64
    last: int

    def __call__(self, values: Values) -> Int[np.ndarray, " n"]:
        place = np.subtract(values, self.low, dtype=np.float64) * self.scale
        # fmin takes NaN to the last cell.
        return np.fmax(np.fmin(place, self.last), 0).astype(np.intp)


class Lookup(NamedTuple):
    """The same codes for many values: one look-up for all partitions.

    Attributes:
      cells: takes values to cells.
      before: how many distinct cuts are in lower cells, for every cell.
      cuts: the distinct cuts of all partitions, and the last of them once more for every round.
      rounds: the most distinct cuts that share a cell.
      codes: for every partition, the code of a value that reaches 0, 1, ... of the cuts.
    """

    cells: _Cells
    before: Int[np.ndarray, " cells"]
    cuts: Cuts
    rounds: int
    codes: tuple[Codes, ...]

    def __call__(self, values: Values, out: Sequence[Codes]) -> None:
        """Write the codes of values, which have the dtype of the cuts, in every partition."""
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            # No value may be an error, however the caller has set numpy.
            with np.errstate(all="ignore"):
                reached = self._reached(values[block])
            for table, codes in zip(self.codes, out, strict=True):
                codes[block] = table[reached]

    def _reached(self, values: Values) -> Int[np.ndarray, " n"]:
        # After the cuts in its cell a value is compared with one in a higher cell, which is above
        # it. Only past the last cut it may go on counting, among what is there once more.
        reached = self.before[self.cells(values)]
        for _ in range(self.rounds):
            reached += ~(values < self.cuts[reached])  # NaN is not below
        return reached


def coder(partitions: tuple[Partition, ...]) -> Coder:
    """The faster way for many values."""
    cuts = np.unique(np.concatenate([partition.cuts for partition in partitions]))
    with np.errstate(all="ignore"):
        cells = _spread(cuts) if len(cuts) else None
        # Bounds at the ends of the floats, or too close to each other.
        if cells is None or not (np.isfinite(cells.low) and 0 < cells.scale < np.inf):
            return Search(partitions)
        sharing = np.bincount(cells(cuts), minlength=cells.last + 1)
    rounds = int(sharing.max())
    if rounds > _MOST_ROUNDS:
        return Search(partitions)
    codes = [np.append(0, _searched(partition, cuts)) for partition in partitions]
    return Lookup(
        cells,
        np.cumsum(sharing) - sharing,
        np.pad(cuts, (0, rounds), "edge"),
        rounds,
        tuple(
            np.pad(code, (0, rounds), "edge").astype(np.min_scalar_type(partition.highest))
            for code, partition in zip(codes, partitions, strict=True)
        ),
    )


def _searched(partition: Partition, values: Values) -> Codes:
    return np.minimum(np.searchsorted(partition.cuts, values, side="right"), partition.highest)


def _spread(cuts: Cuts) -> _Cells:
    """Cells of equal width from below the second cut to above the last one.

    The first cell is for all that lies lower. So the first cut, which is far from the others where
    it tells missing values, has no part in the width of a cell.
    """
    cells = min(_CELLS * len(cuts), _MOST_CELLS)
    second, last = cuts[:2][-1].astype(np.float64), cuts[-1].astype(np.float64)
    width = (last - second) or np.float64(1)
    return _Cells(second - 2 * width / cells, cells / width, cells + 3)
