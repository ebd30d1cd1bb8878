"""Private histograms that were bought for a report: what their cells are, and what they cost."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.dp.accounting.events import Event, PureDP

if TYPE_CHECKING:
    from dpmic_jax.results.screen_result import ScreenResult

_MECHANISM = "MICrHistogram"
_MOST_TICKS = 15  # of categories on an axis
_MISSING = "missing"


class Released(Protocol):
    """A release of `MICrHistogram`: what is needed of a `HistogramRelease`."""

    @property
    def event(self) -> Event: ...
    @property
    def key_is_secret(self) -> bool: ...
    @property
    def counts(self) -> Int[np.ndarray, "*pairs side side"]: ...
    @property
    def mass(self) -> Float[np.ndarray, "*pairs side side"]: ...


class Cells(NamedTuple):
    """The cells of an axis that can hold records.

    Attributes:
      name: of the column.
      labels: what each of these cells is called.
      places: which cell of the histogram each of them is.
      ticks: texts for the axis, at places from 0 to the number of these cells.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[int, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class NumberAxis:
    """A column of numbers, cut into equal cells from `low` to `high`, which are public.

    Attributes:
      name: of the column.
      low, high: its bounds; values outside count as at the bounds.
      missing: whether the first cell is that of the missing values, and the others are the cuts.
    """

    name: str
    low: float
    high: float
    missing: bool = False

    def cells(self, side: int) -> Cells:
        parts = side - self.missing
        step = (self.high - self.low) / parts
        edges = [_text(self._at(k / parts), step) for k in range(parts + 1)]
        labels = tuple(f"{low} to {high}" for low, high in pairwise(edges))
        ticks = [
            (self.missing + parts * k / 4, _text(self._at(k / 4), (self.high - self.low) / 4))
            for k in range(5)
        ]
        if self.missing:
            labels, ticks = (_MISSING, *labels), [(0.5, _MISSING), *ticks[1:]]
        return Cells(self.name, labels, tuple(range(side)), tuple(ticks))

    def _at(self, share: float) -> float:
        return self.low * (1 - share) + self.high * share


@dataclass(frozen=True)
class CategoryAxis:
    """A column of k declared categories: 0, 1, ... on the bounds -1/2 and k - 1/2.

    Attributes:
      name: of the column.
      values: the categories in their order, as texts.
      missing: as of `NumberAxis`.
    """

    name: str
    values: tuple[str, ...]
    missing: bool = False

    def cells(self, side: int) -> Cells:
        parts, found = side - self.missing, {0: [_MISSING]} if self.missing else {}
        for code, value in enumerate(self.values):
            # Category i is at the share (i + 1/2) / k of the bounds.
            place = self.missing + (2 * code + 1) * parts // (2 * len(self.values))
            found.setdefault(place, []).append(value)
        return _named_cells(self.name, found)


@dataclass(frozen=True)
class SpareAxis:
    """A column of k declared categories, with a cell for what is none of them if there are more.

    Of more than k cells the first is for missing values, and each category has one after it; else
    cells are those of `CategoryAxis`, and missing values are in the first.

    Attributes:
      name: of the column.
      values: the categories in their order, as texts.
    """

    name: str
    values: tuple[str, ...]

    def cells(self, side: int) -> Cells:
        found, count = {0: [_MISSING]}, len(self.values)
        for code, value in enumerate(self.values):
            place = 1 + code if side > count else (2 * code + 1) * side // (2 * count)
            found.setdefault(place, []).append(value)
        return _named_cells(self.name, found)


Axis = NumberAxis | CategoryAxis | SpareAxis


def _named_cells(name: str, found: dict[int, list[str]]) -> Cells:
    """Cells with what they hold."""
    labels = tuple(", ".join(values) for values in found.values())
    step = math.ceil(len(labels) / _MOST_TICKS)
    ticks = tuple((i + 0.5, labels[i]) for i in range(0, len(labels), step))
    return Cells(name, labels, tuple(found), ticks)


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """Histograms of some pairs of columns, bought in one event of their own.

    Attributes:
      axes: x and y of each pair, in the order of the release.
      release: of `MICrHistogram.release_batch`, or of its `release` for one pair.
      ledger: "identity#serial" of the charge's receipt; None if no ledger was charged.
    """

    axes: tuple[tuple[Axis, Axis], ...]
    release: Released
    ledger: str | None = None

    def __post_init__(self):
        event, counts = self.release.event, self.release.counts
        if event.mechanism != _MECHANISM or not isinstance(event.guarantee, PureDP):
            raise ValueError(f"expected a release of {_MECHANISM}, got one of {event.mechanism}")
        if len(self.axes) != event.count or counts.size != event.count * counts.shape[-1] ** 2:
            raise ValueError(
                f"expected the axes of {event.count} pairs, as many as were released, got "
                f"{len(self.axes)}"
            )

    @property
    def side(self) -> int:
        """Cells on each axis."""
        return self.release.counts.shape[-1]

    def check(self, result: "ScreenResult") -> None:
        """Refuse histograms of another table than the result's."""
        event, statement = self.release.event, result.statement
        for axis in (axis for pair in self.axes for axis in pair):
            if axis.name not in result.names:
                raise ValueError(f"the histograms have a column {axis.name!r}, the result has not")
        if (event.n, event.relation) != (statement.n, statement.relation):
            raise ValueError(
                "expected histograms of the table of the result, with its n and its records a "
                f"person: {statement.n} and {statement.relation.records}"
            )

    def pairs(
        self,
    ) -> Iterator[tuple[Cells, Cells, Int[np.ndarray, "x y"], Float[np.ndarray, "x y"]]]:
        """Of each pair its cells, their noisy counts, and how likely a record is in them."""
        shape = (len(self.axes), self.side, self.side)
        counts, mass = self.release.counts.reshape(shape), self.release.mass.reshape(shape)
        for (x, y), noisy, likely in zip(self.axes, counts, mass, strict=True):
            across, up = x.cells(self.side), y.cells(self.side)
            held = np.ix_(across.places, up.places)
            # Cells between two categories hold no one: what is there is known to be noise.
            left = likely[held].sum()
            yield across, up, noisy[held], likely[held] / left if left > 0 else likely[held]

    def text(self) -> str:
        """What they are and what they cost, in words."""
        event = self.release.event
        records, each = event.relation.records, event.guarantee.epsilon
        # Discrete Laplace noise of ratio r = e^(-epsilon/2) has the variance 2 r / (1 - r)^2.
        half = each / records / 2
        sd = math.sqrt(2 * math.exp(-half)) / -math.expm1(-half)
        many = f"{event.count} histograms" if event.count > 1 else "one histogram"
        whole = repr(event.epsilon).removesuffix(".0")
        # Rounded upwards: what is said has to hold.
        share = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(each)).normalize()
        parts = f" together, {share:f} each" if event.count > 1 else ""
        person = "one person's record moves" if records == 1 else f"each of a person's {records}"
        moves = "two of them by one" if records == 1 else "records moves two of them by one"
        return (
            f"Bought apart from the values of the table, as one event of its own: {many} for "
            f"epsilon = {whole}, delta = 0{parts} ({_MECHANISM}). Each is of {self.side} "
            f"x {self.side} counts on public bounds, with noise of sd {sd:.3g} in each; {person} "
            f"{moves}. Colours show records as they are estimated from the noisy counts: at least "
            f"0 in each cell, and n = {event.n} in all. "
            + (
                "The noise was drawn from a secret key. "
                if self.release.key_is_secret
                else "The noise was drawn from a seeded key: whoever guesses the seed can take it "
                "off. "
            )
            + (
                "It was not charged to a ledger: count it together with other releases of these "
                "data."
                if self.ledger is None
                else f"It was charged to ledger {self.ledger}."
            )
        )


def _text(value: float, step: float) -> str:
    """A number with the digits that tell it from others `step` apart."""
    if not 1e-6 < step < 1e9 or abs(value) > 1e12:
        return f"{value:.6g}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(step)))}f}"
