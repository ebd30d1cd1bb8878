"""Private bounds of a column: two quantiles inside a wide public interval.

The public interval is cut into public cells. An end of the range is the outer edge of the cell
that holds the record of a given rank, chosen by permute-and-flip with half of epsilon.

Relation: one person's records are replaced by others; n is public. Score of cell [a, b) for
rank t: minus the number of ranks by which the cell misses it,
-max(0, #{x < a} + 1 - t, t - #{x < b}). Exactly one cell, that of the t-th smallest record, has
score 0. Replacing r records moves every count by at most r, and a maximum of terms moves by no
more than they do: sensitivity r. Each end is epsilon/2-DP (`dp.selection`), the two together are
epsilon-DP by composition, and putting the ends in order only reads what is released.

Cuts are rational numbers rounded once to a float, which is then the cut; records are compared
with them as floats, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Int32

from dpmic_jax.data.limits import Bounds, Column, ScaledBounds
from dpmic_jax.data.table import bounds_of
from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.rng.keys import AnyKey, event_key, is_secret
from dpmic_jax.dp.selection import PermuteAndFlip
from dpmic_jax.mechanisms.inputs import Held, held_column
from dpmic_jax.runs.charged import AnyLedger, ReleaseCharge, charged_release

_MOST_CELLS = 2**20
_MARGIN = Context(prec=30)


@dataclass(frozen=True)
class PrivateBounds:
    """A private range of a column.

    Attributes:
      low: the lower end; always below `high`, and both within the public interval.
      high: the upper end.
      event: what was charged for it.
      key_is_secret: whether the choice came from a secret key. If not, anyone who guesses the seed
        can undo it: the range is for research, not for publication.
      receipt: of the charge, if `ledger=` was given.
    """

    low: float
    high: float
    event: Event
    key_is_secret: bool
    receipt: Receipt | None = None

    @property
    def bounds(self) -> Bounds:
        """(low, high), as the mechanisms on bounded columns take it."""
        return self.low, self.high


@dataclass(frozen=True, kw_only=True)
class EqualCells:
    """`count` cells of equal width.

    The ends are no finer than a cell: 2^14 of them suffice where the records fill more than
    about 1/500 of the interval.
    """

    count: int = 2**14

    def __post_init__(self):
        integer("count", self.count, 2, _MOST_CELLS)

    def edges(self, within: Bounds) -> tuple[float, ...]:
        """The edges of the cells, each once, from one end of `within` to the other."""
        return _equal_edges(within, self.count)


@dataclass(frozen=True, kw_only=True)
class OctaveCells:
    """Cells that grow with the distance from 0, for intervals that span orders of magnitude.

    Edges at 0 and at +-smallest 2^e (1 + i / steps), e = 0, 1, ..., i = 0 .. steps - 1.

    Attributes:
      smallest: magnitudes below it are not told apart.
      steps: cells in every octave.
    """

    smallest: float
    steps: int = 64

    def __post_init__(self):
        check_positive("smallest", self.smallest)
        integer("steps", self.steps, 1, _MOST_CELLS)

    def edges(self, within: Bounds) -> tuple[float, ...]:
        """The edges of the cells, each once, from one end of `within` to the other."""
        return _octave_edges(within, self.smallest, self.steps)


@dataclass(frozen=True, kw_only=True)
class QuantileBounds:
    """The range between two private quantiles: epsilon-DP.

    Both ranks are moved inwards, if need be, to `margin`: nearer to the ends, noise would
    choose a cell beyond all records, and of those there may be many. With probability
    1 - failure each end is then within `margin` ranks of its rank, and so among the records.

    Attributes:
      epsilon: of both ends together.
      within: a public interval that is surely wide enough; values outside count as at its ends.
      quantiles: the shares of records below the lower and below the upper end.
      cells: where the ends may lie.
      failure: chance that an end is further off than `margin`.
      relation: how many records one person may own.
    """

    epsilon: float
    within: Bounds
    quantiles: tuple[float, float] = (0.005, 0.995)
    cells: EqualCells | OctaveCells = EqualCells()
    failure: float = 0.01
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)
        object.__setattr__(self, "within", _interval(self.within))
        object.__setattr__(self, "quantiles", _shares(self.quantiles))
        if not 0 < self.failure < 1:
            raise ValueError(f"expected 0 < failure < 1, got {self.failure}")
        if not isinstance(self.cells, EqualCells | OctaveCells):
            raise TypeError(f"expected cells as EqualCells or OctaveCells, got {self.cells!r}")
        self.selector()  # refuses an epsilon that is too small
        self.cells.edges(self.within)

    def selector(self) -> PermuteAndFlip:
        """How each of the two cells is chosen."""
        return PermuteAndFlip(
            epsilon=as_fraction(self.epsilon) / 2, sensitivity=self.relation.records
        )

    @property
    def margin(self) -> int:
        """Ranks that an end misses with probability failure / 2 at most: ln(cells/failure) / rate.

        A cell that misses by e comes before the best one with probability 1/2, and is then
        accepted with probability e^(-rate e); there are fewer than `cells` of them.
        """
        rate = self.selector().rate
        cells = len(self.cells.edges(self.within)) - 1
        nats = _MARGIN.ln(Decimal(cells) / _MARGIN.create_decimal_from_float(self.failure))
        return math.ceil(Fraction(nats) / rate)

    def ranks(self, n: int) -> tuple[int, int]:
        """The records sought, counted from the smallest and from the largest, both from 1."""
        low, high = map(as_fraction, self.quantiles)
        margin = self.margin
        from_low, from_high = (max(int(share * n) + 1, margin) for share in (low, 1 - high))
        if from_low + from_high > n:
            raise ValueError(
                f"{n} records are too few for bounds at epsilon={self.epsilon}: each end takes "
                f"{margin} records to hide one; use a larger epsilon, fewer cells or public bounds"
            )
        return from_low, from_high

    def event(self, n: int, *, label: str = "") -> Event:
        """What it costs, before any data is seen.

        Args:
          n: number of records; public.
          label: what tells this column from others that share the key and the settings: with
            the same key and event the noise is the same.
        """
        return Event(
            mechanism="private_bounds",
            guarantee=PureDP(self.epsilon),
            relation=self.relation,
            n=n,
            sensitivity=Fraction(self.relation.records),
            settings=(
                ("cells", repr(self.cells)),
                ("quantiles", repr(self.quantiles)),
                ("ranks", repr(self.ranks(n))),
                ("within", repr(self.within)),
            ),
            label=label,
        )

    def release(
        self,
        x: Any,
        *,
        key: AnyKey,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
    ) -> PrivateBounds:
        """Release a range of a column of numbers.

        What is no number, or missing, counts as the midpoint of `within`. The other arguments are
        those of `MICrLap.release`.
        """
        held = held_column(x)
        with charged_release(
            self._cost, held.n, 1, ReleaseCharge(key, label, event, ledger)
        ) as run:
            scores = map(jnp.asarray, self.scores(self._values(held)))
            keys = jax.random.split(event_key(run.key, run.event))
            low, high = (
                int(self.selector().select(score, key=one))
                for score, one in zip(scores, keys, strict=True)
            )
            ends = self._range(low, high)
            return PrivateBounds(*ends, run.event, is_secret(run.key), run.receipt)

    def _cost(self, n: int, *, count: int, label: str) -> Event:
        return self.event(n, label=label)

    def _values(self, held: Held) -> Column:
        (values,) = held.coded([self.within]).columns
        return values

    def pmf(self, x: Any) -> dict[Bounds, Fraction]:
        """The exact probability of every range that `release` may give; for a few dozen cells."""
        scores = self.scores(self._values(held_column(x)))
        lows, highs = (self.selector().pmf(score.tolist()) for score in scores)
        found: dict[Bounds, Fraction] = {}
        for low, p in enumerate(lows):
            for high, q in enumerate(highs):
                ends = self._range(low, high)
                found[ends] = found.get(ends, Fraction(0)) + p * q
        return found

    def scores(self, values: Column) -> tuple[Int32[np.ndarray, " cells"], ...]:
        """Of every cell, for the lower end and for the upper one."""
        below = counts_below(values, self.cells.edges(self.within))
        n = len(values)
        from_low, from_high = self.ranks(n)
        return tuple(_misses(below, rank) for rank in (from_low, n + 1 - from_high))

    def _range(self, low: int, high: int) -> Bounds:
        """From the outer edge of one cell to that of the other, whichever is lower."""
        edges = self.cells.edges(self.within)
        return edges[min(low, high)], edges[max(low, high) + 1]


def private_bounds(
    x: Any,
    *,
    epsilon: float,
    within: Bounds,
    key: AnyKey,
    label: str = "",
    event: Event | None = None,
    ledger: AnyLedger = None,
) -> PrivateBounds:
    """Release a range of a column: two private quantiles inside a wide public interval.

    `QuantileBounds(epsilon=epsilon, within=within).release(x, ...)`: see there for what it costs,
    and to choose quantiles and cells.
    """
    mechanism = QuantileBounds(epsilon=epsilon, within=within)
    return mechanism.release(x, key=key, label=label, event=event, ledger=ledger)


def counts_below(values: Column, edges: Sequence[float]) -> Int[np.ndarray, " edges"]:
    """#{x < edge} for every edge, with 0 at the first and n at the last one."""
    cell = np.searchsorted(np.array(edges[1:-1]), values.astype(np.float64), side="right")
    return np.concatenate(([0], np.cumsum(np.bincount(cell, minlength=len(edges) - 1))))


def _misses(below: Int[np.ndarray, " edges"], rank: int) -> Int32[np.ndarray, " cells"]:
    """Minus the number of ranks by which each cell misses the record of a rank."""
    misses = np.maximum(np.maximum(below[:-1] + 1 - rank, rank - below[1:]), 0)
    return -np.minimum(misses, np.iinfo(np.int32).max).astype(np.int32)


@lru_cache(maxsize=64)
def _equal_edges(within: Bounds, count: int) -> tuple[float, ...]:
    (low, below), (high, above) = (end.as_integer_ratio() for end in within)
    low, high = low * above, high * below
    # A quotient of two integers is rounded once.
    parts = ((low * (count - i) + high * i, count * below * above) for i in range(count + 1))
    return _distinct([numerator / denominator for numerator, denominator in parts])


@lru_cache(maxsize=64)
def _octave_edges(within: Bounds, smallest: float, steps: int) -> tuple[float, ...]:
    furthest, first = Fraction(max(map(abs, within))), Fraction(smallest)
    octaves = (math.ceil(furthest / first) - 1).bit_length()
    if not 0 < 2 * octaves * steps <= _MOST_CELLS:
        raise ValueError(
            f"smallest={smallest} and steps={steps} make {2 * octaves * steps} cells of within, "
            "expected 1 to 2^20; choose smallest below the far end of within, or fewer steps"
        )
    exact = (first * 2**e * (steps + i) / steps for e in range(octaves) for i in range(steps))
    found = [0.0, *(float(cut) for cut in exact if cut < furthest)]
    inside = [cut for size in found for cut in (-size, size) if within[0] < cut < within[1]]
    return _distinct([*within, *inside])


def _distinct(edges: list[float]) -> tuple[float, ...]:
    return tuple(sorted({edge + 0.0 for edge in edges}))  # -0.0 is 0.0


def _interval(within: Bounds) -> Bounds:
    (found,) = bounds_of(("x",), [within], "within")
    if isinstance(found, ScaledBounds):
        raise ValueError(f"expected within as (low, high), without a scale, got {within!r}")
    low, high = (float(end) + 0.0 for end in found)
    if low == high:
        raise ValueError(f"expected the ends of within to be two floats, got {within!r}")
    return low, high


def _shares(quantiles: tuple[float, float]) -> tuple[float, float]:
    low, high = quantiles
    if not 0 <= low < high <= 1:
        raise ValueError(f"expected quantiles (low, high), 0 <= low < high <= 1, got {quantiles}")
    return float(low), float(high)
