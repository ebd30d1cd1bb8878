"""The public description of one column: bounds or categories, and missing values."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from dpmic_jax.data.limits import SCALES, Scale, ScaledBounds
from dpmic_jax.data.scales import middle

Value = str | int | float | bool
Moment = date | datetime | timedelta

_DAY_ZERO = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Midpoint:
    """Missing values of a column of numbers count as the middle of its bounds, on their scale.

    On a log scale from 1 to 10^6 that is 1000. So they are in a middle bin on any scale.
    """


@dataclass(frozen=True)
class SparePart:
    """Missing values of a column of categories have a bin that no category uses.

    Partitions with more bins than categories have such a bin; in others they are in the first. A
    nominal column always has such a bin.
    """


@dataclass(frozen=True)
class MissingBin:
    """Missing values have their own bin in every partition."""


@dataclass(frozen=True)
class FixedValue:
    """Missing values count as this public value."""

    value: Value | Moment


Missing = Midpoint | SparePart | MissingBin | FixedValue


@dataclass(frozen=True)
class Number:
    """A column of numbers with public bounds, to which values outside are clipped.

    A value that is not a number is missing, and so is NaN.

    Attributes:
      low, high: the bounds.
      missing: how missing values are treated.
      scale: on which bins have equal width: `"linear"`, `"log"` (low > 0), `"sqrt"` (low >= 0).
      breakpoints: public values between low and high. Each interval between two of them has an
        equal share of the bins, cut into equal widths; instead of a scale.
      whole: whether the values are whole numbers. The bounds are then moved outwards by 1/2, so
        that low and high get bins as wide as those of the numbers between them.
    """

    low: float
    high: float
    missing: Midpoint | MissingBin | FixedValue = field(default=Midpoint(), kw_only=True)
    scale: str = field(default="linear", kw_only=True)
    breakpoints: tuple[float, ...] = field(default=(), kw_only=True)
    whole: bool = field(default=False, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "low", _finite(self.low, "low"))
        object.__setattr__(self, "high", _finite(self.high, "high"))
        if self.low >= self.high:
            raise ValueError(
                f"expected low < high, got {self.low} and {self.high}; correct them, or ignore the "
                "column"
            )
        _check_missing(self.missing, Midpoint)
        if isinstance(self.missing, FixedValue):
            value = _finite(self.missing.value, "the value for missing ones")
            if not self.low <= value <= self.high:
                raise ValueError(f"expected a value for missing ones from low to high, got {value}")
            object.__setattr__(self, "missing", FixedValue(value))
        if not isinstance(self.whole, bool):
            raise TypeError(f"expected whole = true or false, got {self.whole!r}")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(
                f"expected whole bounds of whole numbers, got {self.low} and {self.high}"
            )
        object.__setattr__(self, "breakpoints", _breakpoints(self.breakpoints, self.low, self.high))
        _check_scale(self.scale, self.breakpoints, self.low)
        if self.whole and self.scale != "linear":
            raise ValueError("expected whole numbers without a scale: remove one")

    @property
    def number(self) -> "Number":
        """The numbers that are binned: these."""
        return self

    @property
    def cut_between(self) -> tuple[float, float]:
        """The bounds between which bins are cut."""
        if self.whole:
            return self.low - 0.5, self.high + 0.5
        return self.low, self.high

    @property
    def cut_scale(self) -> Scale:
        """The scale on which bins have equal width."""
        return self.breakpoints or self.scale

    @property
    def midpoint(self) -> float:
        """The value in the middle of the scale between the bounds, rounded once."""
        return middle(ScaledBounds(*self.cut_between, self.cut_scale))


@dataclass(frozen=True)
class Times:
    """A column of dates, timestamps or durations with public bounds, to which values are clipped.

    They are binned as numbers: dates as days since 1970, timestamps and durations as microseconds.

    Attributes:
      low, high: two dates, two datetimes (both with a time zone, or both without), or two
        timedeltas.
      missing: how missing values are treated.
      scale, breakpoints: as for `Number`; a scale is for durations only.
    """

    low: Moment
    high: Moment
    missing: Midpoint | MissingBin | FixedValue = field(default=Midpoint(), kw_only=True)
    scale: str = field(default="linear", kw_only=True)
    breakpoints: tuple[Moment, ...] = field(default=(), kw_only=True)

    def __post_init__(self):
        ends = [_kind_of_time(end) for end in (self.low, self.high)]
        if None in ends or ends[0] != ends[1]:
            raise TypeError(
                "expected low and high as two dates, two timestamps (both with a time zone, or "
                f"both without) or two durations, got {self.low!r} and {self.high!r}"
            )
        if ticks(self.low) >= ticks(self.high):
            raise ValueError(
                f"expected low < high, got {self.low} and {self.high}; correct them, or ignore the "
                "column"
            )
        object.__setattr__(self, "breakpoints", tuple(self.breakpoints))
        fixed = [self.missing.value] if isinstance(self.missing, FixedValue) else []
        for value in (*self.breakpoints, *fixed):
            if _kind_of_time(value) != self.kind:
                raise TypeError(f"expected a {self.kind} like low and high, got {value!r}")
        if self.kind != "duration" and self.scale != "linear":
            raise ValueError(f"expected no scale for a {self.kind}: use breakpoints")
        _ = self.number  # refuses what no numbers have

    @property
    def kind(self) -> str:
        """`date`, `timestamp`, `timestamp with time zone` or `duration`."""
        kind = _kind_of_time(self.low)
        assert kind is not None
        return kind

    @cached_property
    def number(self) -> Number:
        """The numbers that are binned."""
        missing = self.missing
        if isinstance(missing, FixedValue):
            missing = FixedValue(ticks(missing.value))
        return Number(
            ticks(self.low),
            ticks(self.high),
            missing=missing,
            scale=self.scale,
            breakpoints=tuple(map(ticks, self.breakpoints)),
        )


def ticks(moment: Any) -> int:
    """Days of a date, microseconds of a timestamp or a duration, since 1970 and in UTC."""
    if isinstance(moment, timedelta):
        return moment // _MICROSECOND
    if isinstance(moment, datetime):
        since = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
        return since // _MICROSECOND
    return (moment - _DAY_ZERO).days


def moment(tick: float, like: Any) -> Any:
    """The date, timestamp or duration of which `ticks` is given, of the kind of another."""
    if isinstance(like, timedelta):
        return int(tick) * _MICROSECOND
    if isinstance(like, datetime):
        found = _EPOCH + int(tick) * _MICROSECOND
        return found.replace(tzinfo=None) if like.tzinfo is None else found.astimezone(like.tzinfo)
    return _DAY_ZERO + timedelta(days=int(tick))


@dataclass(frozen=True)
class Categories:
    """A column of declared categories.

    Ordered categories are coded 0, 1, ... in the order given. Of nominal ones, which have no
    order, no order is used: relabelling them changes nothing (docs/nominal.md). A column of two
    categories is the same either way.

    Attributes:
      values: texts, integers or booleans, all of one kind.
      missing: how missing values are treated.
      ordered: whether the order is meaningful.
      other: a public category, of `values` or in addition to them, that every value counts as that
        is none of them. Without it such a value is missing.
      kind: the type of the values, `str`, `int` or `bool`.
    """

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    missing: SparePart | MissingBin | FixedValue = field(default=SparePart(), kw_only=True)
    ordered: bool = field(default=False, kw_only=True)
    other: Value | None = field(default=None, kw_only=True)
    # A field, because (0, 1) == (False, True) in Python.
    kind: type = field(init=False, repr=False)

    def __post_init__(self):
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise TypeError(
                f'expected categories as a list such as ["a", "b"], got {self.values!r}'
            )
        values = tuple(map(_plain, self.values))
        other = _plain(self.other)
        if other is not None and not any(_same(other, value) for value in values):
            values = (*values, other)  # its type is checked with the others'
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "other", other)
        if not values:
            raise ValueError("expected at least one category; declare all that may occur")
        if {type(value) for value in values} not in ({str}, {int}, {bool}):
            raise TypeError(
                "expected categories that are all texts, all whole numbers or all booleans, "
                f"got {list(values)}"
            )
        if again := twice(values):
            raise ValueError(f"expected distinct categories, got {again[0]!r} twice")
        object.__setattr__(self, "kind", type(values[0]))
        if self.kind is int and not all(-(2**63) <= value < 2**63 for value in values):
            raise ValueError("expected categories of at most 64 bits; declare longer ones as text")
        if not isinstance(self.ordered, bool):
            raise TypeError(f"expected ordered = true or false, got {self.ordered!r}")
        _check_missing(self.missing, SparePart)
        if isinstance(self.missing, FixedValue):
            value = _plain(self.missing.value)
            if type(value) is not self.kind or value not in values:
                raise ValueError(
                    f"expected one of the categories as the value for missing ones, got {value!r}"
                )
            object.__setattr__(self, "missing", FixedValue(value))

    @property
    def nominal(self) -> bool:
        """Whether the column has more than two categories, and they have no order."""
        return not self.ordered and len(self.values) > 2


Rule = Number | Times | Categories


def kind_of(rule: Rule) -> str:
    """What a bounds file calls the kind of a column."""
    if isinstance(rule, Number):
        return "whole" if rule.whole else "number"
    if isinstance(rule, Times):
        return rule.kind
    return "boolean" if rule.kind is bool else "ordered" if rule.ordered else "nominal"


def twice(values: Sequence[Any]) -> list[Any]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite(value: Any, what: str) -> float:
    """A finite number, as a float if that is exact, so that equal numbers are written alike."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected {what} to be a number, got {value!r}")
    if not abs(value) <= np.finfo(float).max.item():
        raise ValueError(f"expected {what} to be finite, got {value}")
    return float(value) + 0.0 if float(value) == value else value


def _breakpoints(given: Any, low: float, high: float) -> tuple[float, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"expected breakpoints as a list of numbers, got {given!r}")
    found = tuple(_finite(value, "breakpoints") for value in given)
    line = (low, *found, high)
    if any(one >= other for one, other in itertools.pairwise(line)):
        raise ValueError(
            f"expected breakpoints in increasing order between {low} and {high}, got {list(found)}"
        )
    return found


def _check_scale(scale: Any, breakpoints: tuple[float, ...], low: float) -> None:
    if scale not in SCALES:
        raise ValueError(f"expected scale as one of {', '.join(SCALES)}, got {scale!r}")
    if breakpoints and scale != "linear":
        raise ValueError("expected a scale or breakpoints, got both: remove one")
    if scale == "log" and low <= 0:
        raise ValueError(
            f"expected low > 0 on a log scale, got {low}; choose the smallest value that should be "
            "told apart: lower ones count as it"
        )
    if scale == "sqrt" and low < 0:
        raise ValueError(f"expected low >= 0 on a square root scale, got {low}")


def _kind_of_time(value: Any) -> str | None:
    if isinstance(value, timedelta):
        return "duration"
    if isinstance(value, datetime):
        return "timestamp" if value.tzinfo is None else "timestamp with time zone"
    return "date" if isinstance(value, date) else None


def _check_missing(missing: Any, default: type) -> None:
    if not isinstance(missing, default | MissingBin | FixedValue):
        raise TypeError(
            f"expected missing as {default.__name__}, MissingBin or FixedValue, got {missing!r}"
        )
