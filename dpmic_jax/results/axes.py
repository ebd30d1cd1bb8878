"""Axes of histograms: which cells hold records, what they are called, and where ticks are."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from dpmic_jax.data.limits import Scale
from dpmic_jax.data.scales import on_scale
from dpmic_jax.data.schema import MissingBin, Times
from dpmic_jax.data.schema.rules import moment

_MOST_TICKS = 15  # labels of categories on an axis
_MISSING = "missing"
_DAY = 86_400 * 10**6  # microseconds
_UNITS = {"d": _DAY, "h": _DAY // 24, "min": 60 * 10**6, "s": 10**6}


class Cells(NamedTuple):
    """The cells of an axis that can hold records.

    Attributes:
      name: name of the column.
      labels: label of each of these cells.
      places: position of each of these cells among all cells of the histogram.
      ticks: (position, label) of ticks, with positions from 0 to the number of these cells.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[int, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class NumberAxis:
    """A column of numbers, in cells between public bounds that have equal width on a scale.

    Attributes:
      name: name of the column.
      low, high: its bounds, to which values outside are clipped.
      missing: whether the first cell holds the missing values, and only the others are bins.
      scale: on which the cells have equal width.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    scale: Scale = "linear"

    def cells(self, side: int) -> Cells:
        """The cells of an axis of `side` cells."""
        bins = side - self.missing
        labels = (f"{low} to {high}" for low, high in pairwise(self._texts(bins)))
        return _scaled_cells(self.name, side, labels, self._texts(4), missing=self.missing)

    def _texts(self, parts: int) -> list[str]:
        """The ends of so many parts, each with the digits that its neighbours make necessary."""
        marks = _marks(self.low, self.high, self.scale, parts)
        return [_text(float(mark), step) for mark, step in _with_steps(marks)]


@dataclass(frozen=True)
class WholeAxis:
    """A column of whole numbers, in cells between bounds that include 1/2 beyond each end.

    Attributes:
      name, missing, scale: as for `NumberAxis`.
      low, high: the smallest and the largest number.
    """

    name: str
    low: float
    high: float
    missing: bool = False
    scale: Scale = "linear"

    def cells(self, side: int) -> Cells:
        """The cells of an axis of `side` cells."""
        marks = _marks(self.low - 0.5, self.high + 0.5, self.scale, side - self.missing)
        labels = (_held(low, high, str) for low, high in pairwise(marks))
        named = enumerate([_MISSING, *labels] if self.missing else labels)
        return _named_cells(self.name, {place: [label] for place, label in named})


@dataclass(frozen=True)
class TimeAxis:
    """A column of dates, timestamps or durations, in cells like those of numbers.

    Timestamps are shown in the time zone of the bounds.

    Attributes:
      name: name of the column.
      rule: its public description.
    """

    name: str
    rule: Times

    def cells(self, side: int) -> Cells:
        """The cells of an axis of `side` cells."""
        missing = isinstance(self.rule.missing, MissingBin)
        if self.rule.kind == "date":
            *marks, high = self._marks(side - missing)
            labels = [_held(low, end, self._day) for low, end in pairwise([*marks, high + 1])]
        else:
            labels = [f"{low} to {high}" for low, high in pairwise(self._texts(side - missing))]
        return _scaled_cells(self.name, side, labels, self._texts(4), missing=missing)

    def _marks(self, parts: int) -> list[Fraction]:
        number = self.rule.number
        return _marks(number.low, number.high, number.cut_scale, parts)

    def _texts(self, parts: int) -> list[str]:
        """The ends of so many parts."""
        if self.rule.kind == "date":
            return [self._day(round(mark)) for mark in self._marks(parts)]
        text = _duration_text if self.rule.kind == "duration" else self._time
        return [text(mark, step) for mark, step in _with_steps(self._marks(parts))]

    def _day(self, day: int) -> str:
        return moment(day, self.rule.low).isoformat()

    def _time(self, mark: Fraction, step: float) -> str:
        """A timestamp to the unit that distinguishes values that are `step` microseconds apart."""
        time = moment(round(mark), self.rule.low).replace(tzinfo=None)
        if step >= _DAY:
            return time.date().isoformat()
        spec = "minutes" if step >= 60 * 10**6 else "seconds" if step >= 10**6 else "microseconds"
        return time.isoformat(" ", spec)


@dataclass(frozen=True)
class CategoryAxis:
    """A column of k declared categories, coded 0, 1, ... on the bounds -1/2 and k - 1/2.

    Attributes:
      name: name of the column.
      values: the categories in their order, as texts.
      missing: as for `NumberAxis`.
    """

    name: str
    values: tuple[str, ...]
    missing: bool = False

    def cells(self, side: int) -> Cells:
        """The cells of an axis of `side` cells that hold a category."""
        bins, found = side - self.missing, {0: [_MISSING]} if self.missing else {}
        for code, value in enumerate(self.values):
            # Category i lies at the fraction (i + 1/2) / k of the way between the bounds.
            place = self.missing + (2 * code + 1) * bins // (2 * len(self.values))
            found.setdefault(place, []).append(value)
        return _named_cells(self.name, found)


@dataclass(frozen=True)
class SpareAxis:
    """A column of k declared categories whose missing values have a cell if there is one to spare.

    With more than k cells, the first holds the missing values, and each category has one after it.
    Otherwise the cells are those of `CategoryAxis`, and missing values are in the first.

    Attributes:
      name: name of the column.
      values: the categories in their order, as texts.
    """

    name: str
    values: tuple[str, ...]

    def cells(self, side: int) -> Cells:
        """The cells of an axis of `side` cells that hold a category or missing values."""
        found, count = {0: [_MISSING]}, len(self.values)
        for code, value in enumerate(self.values):
            place = 1 + code if side > count else (2 * code + 1) * side // (2 * count)
            found.setdefault(place, []).append(value)
        return _named_cells(self.name, found)


Axis = NumberAxis | WholeAxis | TimeAxis | CategoryAxis | SpareAxis


def _marks(low: float, high: float, scale: Scale, parts: int) -> list[Fraction]:
    """The ends of so many parts that have equal width on a scale."""
    place = on_scale(low, high, scale)
    return [place(Fraction(k, parts)) for k in range(parts + 1)]


def _with_steps(marks: list[Fraction]) -> Iterator[tuple[Fraction, float]]:
    """Each mark with the distance to the nearer of its neighbours."""
    steps = [float(high - low) for low, high in pairwise(marks)]
    return zip(marks, map(min, [steps[0], *steps], [*steps, steps[-1]]), strict=True)


def _held(low: Fraction, high: Fraction, text: Callable[[int], str]) -> str:
    """The whole numbers from low up to, but without, high."""
    first, last = math.ceil(low), math.ceil(high) - 1
    if first > last:
        return "nothing"
    return text(first) if first == last else f"{text(first)} to {text(last)}"


def _scaled_cells(
    name: str, side: int, labels: Iterable[str], ends: Sequence[str], *, missing: bool
) -> Cells:
    """Cells between bounds, after one for missing values if they have one, with ticks between."""
    bins, steps = side - missing, len(ends) - 1
    ticks = [(missing + bins * k / steps, text) for k, text in enumerate(ends)]
    if missing:
        labels, ticks = (_MISSING, *labels), [(0.5, _MISSING), *ticks[1:]]
    return Cells(name, tuple(labels), tuple(range(side)), tuple(ticks))


def _named_cells(name: str, found: dict[int, list[str]]) -> Cells:
    """Cells labelled by the values that they hold."""
    labels = tuple(", ".join(values) for values in found.values())
    step = math.ceil(len(labels) / _MOST_TICKS)
    ticks = tuple((i + 0.5, labels[i]) for i in range(0, len(labels), step))
    return Cells(name, labels, tuple(found), ticks)


def _text(value: float, step: float) -> str:
    """A number with enough digits to distinguish values that are `step` apart."""
    if not 1e-6 < step < 1e9 or abs(value) > 1e12:
        return f"{value:.6g}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(step)))}f}"


def _duration_text(mark: Fraction, step: float) -> str:
    """A duration of so many microseconds, in the largest unit that it has two of."""
    large = max(abs(mark), Fraction(step))
    name = next((name for name, unit in _UNITS.items() if large >= 2 * unit), "s")
    return f"{_text(float(mark / _UNITS[name]), step / _UNITS[name])} {name}"
