"""Which grids a statistic scores: from (n, B, c) to a static plan of shapes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import NamedTuple

from dpmic_jax.mic.padding import rung

# The recursion holds bits of information as int32 in units of 2^-26, with -16 standing
# for "impossible": the entropy of the rows has to stay below 15 bits.
MOST_ROWS = 2**15

Cells = float | Callable[[int], float]
Sizes = Callable[[int], Iterable[int]]
MasterRule = Callable[[Fraction, int, int], int]


class Grid(NamedTuple):
    """One run of OptimizeAxis: `rows` fixed parts, and 2..`parts` of `master` to choose.

    With one part there is nothing to choose: such a grid is scored by its distance from
    independence (`distance`). With none the whole table of two nominal columns is scored by its
    information.

    A nominal column has one partition, into its bins. On the fixed axis it has as many parts if
    they are at most `height`, on the other axis if they are at most `width` and nothing is merged.
    Else the whole column is one part, so that the grid says nothing.
    """

    rows: int
    master: int
    parts: int
    room: int = 0  # for the bins of nominal columns, if these are more than rows or columns

    @property
    def height(self) -> int:
        """The most parts that a column has on the fixed axis."""
        return max(self.rows, self.room)

    @property
    def width(self) -> int:
        """The most parts that a column has on the other axis."""
        return max(self.master, self.unmerged)

    @property
    def unmerged(self) -> int:
        """The most bins of a nominal column that has its bins on the other axis."""
        return self.room if self.parts < 2 else 0

    @property
    def columns(self) -> tuple[int, int]:
        """What decides how columns are cut on the other axis."""
        return self.master, self.unmerged

    @property
    def scores(self) -> int:
        """How many numbers the grid is scored with, in one orientation."""
        return max(1, self.parts - 1)


@dataclass(frozen=True)
class power:  # noqa: N801 - reads as the function it is: power(0.6)(n) = n^0.6
    """The cell budget n^alpha, and at least 4."""

    alpha: float

    def __post_init__(self):
        if not 0 < self.alpha <= 1:
            raise ValueError(f"expected 0 < alpha <= 1, got {self.alpha}; or pass B as a number")

    def __call__(self, n: int) -> float:
        return max(4.0, n**self.alpha)


def all_sizes(largest: int) -> tuple[int, ...]:
    """Every fixed-axis size 2, 3, ..., `largest`: the papers' choice."""
    return tuple(range(2, largest + 1))


@dataclass(frozen=True)
class ladder:  # noqa: N801 - used like all_sizes
    """Fixed-axis sizes round(2 ratio^i) and the largest: most of the accuracy, less work."""

    ratio: float

    def __post_init__(self):
        if not 1 < self.ratio < math.inf:
            raise ValueError(f"expected a ladder ratio above 1, got {self.ratio}")

    def __call__(self, largest: int) -> tuple[int, ...]:
        steps = math.ceil(math.log(largest / 2) / math.log(self.ratio)) + 1
        rungs = {round(2 * self.ratio**i) for i in range(steps)}
        return tuple(sorted({size for size in rungs if size <= largest} | {largest}))


def reshef(c: Fraction, rows: int, parts: int) -> int:
    """Master size floor(c k_max): what Reshef et al. and the MIC paper's experiments use."""
    return math.floor(c * parts)


def definition(c: Fraction, rows: int, parts: int) -> int:
    """Master size floor(c l): Definitions 2.3 and 4.1 of the MIC paper."""
    return math.floor(c * rows)


def masters(grids: Iterable[Grid]) -> tuple[tuple[int, int], ...]:
    """The distinct ways in which columns are cut on the axis that is not fixed, ascending."""
    return _masters(tuple(grids))


@lru_cache(maxsize=256)
def _masters(grids: tuple[Grid, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({grid.columns for grid in grids}))


def cells(B: Cells, n: int) -> int:
    """The most cells k*l a grid may have."""
    value = B(n) if callable(B) else B
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"expected B to be a number or a rule like power(0.6), got {value!r}")
    if not 4 <= value < math.inf:
        raise ValueError(f"expected B >= 4 cells, got {value}; a 2 x 2 grid is the smallest")
    if value // 2 > MOST_ROWS:
        raise ValueError(f"expected B <= {2 * MOST_ROWS} cells, got {value}")
    return math.floor(value)


def plan(*, B: float, c: float, master: MasterRule, sizes: Sizes) -> tuple[Grid, ...]:
    """Every grid to score, by growing number of rows.

    For l = 2 .. floor(B/2) the other axis has k = 2 .. min(l, floor(B/l)) parts, taken
    from a master partition of max(2, floor(c k_max)) or max(2, floor(c l)) parts. Entries
    with more parts than the master has are not in the plan.
    """
    B = math.floor(B)
    grids = []
    for rows in sizes(B // 2):
        parts = min(rows, B // rows)
        # str(c) is the number the caller wrote: floor(0.29 * 100) is 29, not 28.
        size = max(2, master(Fraction(str(c)), rows, parts))
        grids.append(Grid(rows, size, min(parts, size)))
    return tuple(grids)


class Bucket(NamedTuple):
    """Grids that share one compiled loop, padded to one shape.

    Rows are on a rung; the master's sizes are multiples of c, and few as they are.
    """

    grids: tuple[Grid, ...]

    @property
    def rows(self) -> int:
        """Rows of the padded shape."""
        return rung(max(grid.height for grid in self.grids), 4)

    @property
    def master(self) -> int:
        """Master columns of the padded shape."""
        return max(grid.width for grid in self.grids)

    @property
    def parts(self) -> int:
        """The most columns that any of the grids merges into."""
        return max(grid.parts for grid in self.grids)

    @property
    def by_kinds(self) -> bool:
        """Whether distances are across splits that depend on the kinds of columns."""
        return self.parts == 1 and self.grids[0].room > 0


class BucketShape(NamedTuple):
    """What the price of a bucket depends on, by the names that `Bucket` has."""

    grids: range
    rows: int
    master: int
    parts: int


def evaluations(grid: Grid) -> int:
    """How often x log x has to be evaluated to score a grid in one orientation."""
    if grid.parts == 2:
        return 2 * grid.master * grid.rows
    return grid.master * (grid.master + 1) // 2 * grid.rows


def compile_seconds(bucket: Bucket | BucketShape) -> float:
    """What compiling the loop of a bucket takes, measured on one CPU core."""
    if bucket.parts <= 1:
        return 0.35
    return 0.25 + 0.009 * min(bucket.rows, 128) + (0.45 if bucket.parts > 2 else 0.0)


def run_seconds(bucket: Bucket | BucketShape, pairs: int) -> float:
    """Seconds to run a bucket for `pairs` pairs, measured on one CPU core."""
    rows, master, parts = bucket.rows, bucket.master, bucket.parts
    if parts == 0:
        nanoseconds = 2 * master * rows
    elif parts == 1:
        nanoseconds = 6.25e3 * rows  # for 128 values of t
    elif parts == 2:
        nanoseconds = 0.3 * 2 * master * (rows + 1)
    else:
        nanoseconds = 0.3 * master * (master + 1) / 2 * (rows + 1 + 0.5 * parts)
    nanoseconds += 4 * master * rows  # for cells that are counted and moved
    return 2 * pairs * len(bucket.grids) * nanoseconds / 1e9


def cpu_seconds(bucket: Bucket | BucketShape, pairs: int) -> float:
    """A price of a bucket, which only steers how grids are grouped: results do not depend on it.

    Compiling counts for less, as compiled programs are kept and used again.
    """
    return 0.6 * compile_seconds(bucket) + run_seconds(bucket, pairs)


def buckets(
    grids: tuple[Grid, ...],
    pairs: int,
    seconds: Callable[[Bucket | BucketShape, int], float] = cpu_seconds,
) -> tuple[Bucket, ...]:
    """Group neighbouring grids so that compiling and running about `pairs` pairs take least time.

    Few pairs want few, padded programs; many pairs want tight ones. Tables of some number of
    pairs share programs: the next power of 8 is planned for. `seconds` is the price of a bucket.
    """
    merged = tuple(grid for grid in grids if grid.parts > 1)
    others = tuple(Bucket((grid,)) for grid in grids if grid.parts <= 1)
    planned = 8 ** max(1, math.ceil(math.log(pairs, 8)))
    return (*_buckets(merged, planned, seconds), *others)


@lru_cache(maxsize=256)
def _buckets(
    grids: tuple[Grid, ...], pairs: int, seconds: Callable[[Bucket | BucketShape, int], float]
) -> tuple[Bucket, ...]:
    """Shortest path over the places where the plan may be split."""
    best = [0.0]  # seconds of the first 0, 1, 2, ... grids
    begins = [0]  # where the last bucket of these begins
    for stop in range(1, len(grids) + 1):
        height = width = parts = 0
        least, begin = math.inf, 0
        for start in reversed(range(stop)):
            # Not `Bucket`, which would look at all grids for every price.
            grid = grids[start]
            height, width = max(height, grid.height), max(width, grid.width)
            parts = max(parts, grid.parts)
            shape = BucketShape(range(start, stop), rung(height, 4), width, parts)
            price = best[start] + seconds(shape, pairs)
            if price <= least:
                least, begin = price, start
        best.append(least)
        begins.append(begin)
    found, stop = [], len(grids)
    while stop:
        found.append(Bucket(grids[begins[stop] : stop]))
        stop = begins[stop]
    return tuple(reversed(found))
