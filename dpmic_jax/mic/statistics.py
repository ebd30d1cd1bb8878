"""Which statistic to compute: MICe and MICr, as settings that are checked when made."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

from dpmic_jax.data.limits import Column, Limits
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
    plan,
    power,
    reshef,
)
from dpmic_jax.mic.ties import grouped_ties


class BinnedTable(NamedTuple):
    """A table, cut into the parts of every grid of a plan."""

    grids: tuple[Grid, ...]
    masters: Partitions  # of the distinct master sizes, in order
    rows: Partitions  # of the fixed sizes, grid by grid

    @property
    def n(self) -> int:
        """The number of records."""
        return self.rows.fine.shape[1]

    def of_grids(self, places: Sequence[int]) -> "BinnedTable":
        """The same table for some of the grids, of which `places` are the positions."""
        grids = tuple(self.grids[place] for place in places)
        sizes, wanted = (sorted({grid.master for grid in some}) for some in (self.grids, grids))
        masters = self.masters.of_sizes([sizes.index(size) for size in wanted], 1 + wanted[-1])
        height = 1 + max(grid.rows for grid in grids)
        return BinnedTable(grids, masters, self.rows.of_sizes(places, height))


def _binned(
    grids: tuple[Grid, ...], partition: Callable[[list[list[int]]], Iterable[Partitions]]
) -> BinnedTable:
    masters = sorted({grid.master for grid in grids})
    return BinnedTable(grids, *partition([masters, [grid.rows for grid in grids]]))


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

    def _cut(
        self,
        columns: Sequence[Column],
        partition: Callable[[list[list[int]]], Iterable[Partitions]],
    ) -> BinnedTable:
        return _binned(self.grids(len(columns[0])), partition)


@dataclass(frozen=True, kw_only=True)
class MICe(_Statistic):
    """MIC over partitions of equal mass (Reshef et al. 2016).

    Attributes:
      ties: `grouped_ties`, or `RandomTies(key)` where ranks have to be unique.
    """

    B: Cells = power(0.6)
    c: float = 15
    ties: Ties = grouped_ties

    def cut(self, columns: Sequence[Column]) -> BinnedTable:
        """Cut columns by rank."""
        return self._cut(
            columns,
            lambda every: [binning.by_rank(columns, sizes, self.ties) for sizes in every],
        )


@dataclass(frozen=True, kw_only=True)
class MICr(_Statistic):
    """MIC over partitions of equal width on public bounds: the statistic made for privacy."""

    c: float = 5

    def cut(self, columns: Sequence[Column], bounds: Sequence[Limits]) -> BinnedTable:
        """Cut columns by width; values outside the bounds go to the outer parts.

        `WithMissing` bounds give missing values (-inf) a part of their own, `CategoryLimits`
        give one to what is no category (-1) where there are more parts than categories.
        """
        return self._cut(columns, lambda every: binning.by_ranges(columns, bounds, every))


Statistic = MICe | MICr


@dataclass(frozen=True, kw_only=True)
class MICrAndDistance:
    """What a screen measures, from the same counts: MICr, and the distance from independence.

    Attributes:
      micr: the settings of MICr; None for the distance (`mic.distance`) alone.
    """

    micr: MICr | None

    def grids(self, n: int) -> tuple[Grid, ...]:
        """The plan for n records: that of MICr, then the grid of the distance."""
        return (*(self.micr.grids(n) if self.micr else ()), Grid(PARTS, PARTS, 1))

    def cut(self, columns: Sequence[Column], bounds: Sequence[Limits]) -> BinnedTable:
        """Cut columns by width, as `MICr.cut` does."""
        return _binned(
            self.grids(len(columns[0])),
            lambda every: binning.by_ranges(columns, bounds, every),
        )
