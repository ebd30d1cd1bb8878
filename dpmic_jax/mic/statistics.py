"""Which statistic to compute: MICe and MICr, as settings that are checked when made."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.limits import Column, Limits, NominalLimits
from dpmic_jax.mic import binning
from dpmic_jax.mic.binning import Partitions, Ties
from dpmic_jax.mic.distance import PARTS
from dpmic_jax.mic.grids import (
    Cells,
    Grid,
    MasterRule,
    Sizes,
    all_sizes,
    cells,
    ladder,
    masters,
    plan,
    power,
    reshef,
)
from dpmic_jax.mic.ties import grouped_ties


class BinnedTable(NamedTuple):
    """A table, cut into the parts of every grid of a plan."""

    grids: tuple[Grid, ...]
    masters: Partitions  # of the distinct master sizes (`grids.masters`), in order
    rows: Partitions  # of the fixed sizes, grid by grid
    # How many bins each nominal column has, and 0 for others, if any grid has room for them.
    bins: Int[np.ndarray, " columns"] | None = None

    @property
    def n(self) -> int:
        """The number of records."""
        return self.rows.fine.shape[1]

    def of_grids(self, places: Sequence[int]) -> "BinnedTable":
        """The same table for some of the grids, of which `places` are the positions."""
        grids = tuple(self.grids[place] for place in places)
        sizes, wanted = masters(self.grids), masters(grids)
        width, height = max(grid.width for grid in grids), max(grid.height for grid in grids)
        columns = self.masters.of_sizes([sizes.index(size) for size in wanted], 1 + width)
        rows = self.rows.of_sizes(places, 1 + height)
        return self._replace(grids=grids, masters=columns, rows=rows)


def _sizes(grids: tuple[Grid, ...]) -> list[list[int]]:
    """The distinct sizes on the axis that is not fixed, and those on the fixed one."""
    return [[size for size, _ in masters(grids)], [grid.rows for grid in grids]]


def _rooms(grids: tuple[Grid, ...]) -> list[list[int]]:
    """The most bins that a nominal column has as its parts in each of these sizes."""
    return [[room for _, room in masters(grids)], [grid.height for grid in grids]]


def _by_width(
    grids: tuple[Grid, ...], columns: Sequence[Column], bounds: Sequence[Limits]
) -> BinnedTable:
    master, rows = binning.by_ranges(columns, bounds, _sizes(grids), _rooms(grids))
    return BinnedTable(grids, master, rows)


@dataclass(frozen=True, kw_only=True)
class _Statistic:
    """What MICe and MICr share: which grids to score.

    Attributes:
      B: the most cells a grid may have, or a rule that gives it for n records.
      c: how many times finer than the parts wanted the master partition is.
      master: `reshef` or `definition`, the master partition's size.
      sizes: `all_sizes` or `ladder(ratio)`, which fixed-axis sizes to score.
    """

    B: Cells
    c: float
    master: MasterRule = reshef
    sizes: Sizes = all_sizes

    def __post_init__(self):
        if not isinstance(self.c, Real) or isinstance(self.c, bool):
            raise TypeError(f"expected c to be a number above 0, got {self.c!r}")
        if not 0 < self.c < math.inf:
            raise ValueError(f"expected c > 0, got {self.c}; 15 and 5 are usual")
        if not callable(self.B):
            cells(self.B, 0)

    def grids(self, n: int) -> tuple[Grid, ...]:
        """The plan for n records."""
        return plan(B=cells(self.B, n), c=self.c, master=self.master, sizes=self.sizes)


@dataclass(frozen=True, kw_only=True)
class MICe(_Statistic):
    """MIC over partitions of equal mass (Reshef et al. 2016).

    Attributes:
      ties: `grouped_ties`, or `RandomTies(key)` where ranks have to be unique.
    """

    B: Cells = power(0.6)
    c: float = 15
    ties: Ties = grouped_ties

    @classmethod
    def for_large_n(cls) -> "MICe":
        """The rule for large n: B = n^0.6 as usual, c = 5, and sizes of `ladder(1.25)`.

        Few sizes and coarser master partitions cost little accuracy and most of the time
        (docs/pairwise.md): a pair of 10^6 records takes seconds.
        """
        return cls(c=5, sizes=ladder(1.25))

    def cut(self, columns: Sequence[Column]) -> BinnedTable:
        """Cut columns by rank."""
        grids = self.grids(len(columns[0]))
        master, rows = (binning.by_rank(columns, sizes, self.ties) for sizes in _sizes(grids))
        return BinnedTable(grids, master, rows)


@dataclass(frozen=True, kw_only=True)
class MICr(_Statistic):
    """MIC over partitions of equal width on public bounds: the statistic made for privacy."""

    c: float = 5

    def cut(self, columns: Sequence[Column], bounds: Sequence[Limits]) -> BinnedTable:
        """Cut columns by width; values outside the bounds go to the outer parts.

        `WithMissing` bounds give missing values (-inf) a part of their own, `CategoryLimits`
        give one to what is no category (-1) where there are more parts than categories. A nominal
        column is never merged, so that two of them have a MICr of 0 here (`MICrAndDistance`).
        """
        return _by_width(self.grids(len(columns[0])), columns, bounds)


Statistic = MICe | MICr


# Parts of an axis that has room for nominal columns: few numbers, so that programs are shared.
ROOMS = 16, 32, 64


@dataclass(frozen=True, kw_only=True)
class MICrAndDistance:
    """What a screen measures, from the same counts: MICr, and the distance from independence.

    Attributes:
      micr: the settings of MICr; None for the distance (`mic.distance`) alone.
      bins: the most bins of a nominal column that is in a pair; 0 if none is.
      tables: whether MICr is asked of two nominal columns (docs/nominal.md).
    """

    micr: MICr | None
    bins: int = 0
    tables: bool = False

    @property
    def room(self) -> int:
        """Parts of an axis with room for all nominal columns; 0 if there are none."""
        if self.bins > ROOMS[-1]:
            raise ValueError(f"expected nominal columns of at most {ROOMS[-1]} bins")
        return next(room for room in ROOMS if room >= self.bins) if self.bins else 0

    def grids(self, n: int) -> tuple[Grid, ...]:
        """The plan for n records: that of MICr, then the grid of the distance.

        If a nominal column has more bins than any grid of MICr has rows, there is one more, on
        which only such columns are fixed, and numbers are cut into two parts. For two nominal
        columns there is the whole table.
        """
        found = []
        if self.micr is not None:
            found = list(self.micr.grids(n))
            if self.bins > max(grid.rows for grid in found):
                size = max(2, self.micr.master(Fraction(str(self.micr.c)), self.room, 2))
                found.append(Grid(1, size, 2, self.room))
            if self.tables:
                found.append(Grid(PARTS, PARTS, 0, self.room))
        return (*found, Grid(PARTS, PARTS, 1, self.room))

    def cut(self, columns: Sequence[Column], bounds: Sequence[Limits]) -> BinnedTable:
        """Cut columns by width, as `MICr.cut` does."""
        cut = _by_width(self.grids(len(columns[0])), columns, bounds)
        return cut._replace(bins=np.array([bins_of(each) for each in bounds])) if self.bins else cut


def bins_of(limits: Limits) -> int:
    """How many bins a nominal column has; 0 of any other column."""
    return limits.bins if isinstance(limits, NominalLimits) else 0


def categories_of(limits: Limits) -> int:
    """How many categories a nominal column has; 0 of any other column."""
    return limits.categories if isinstance(limits, NominalLimits) else 0
