"""The public description of one column: bounds or categories, and missing values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

Value = str | int | float | bool


@dataclass(frozen=True)
class Midpoint:
    """Missing values of a column of numbers count as the midpoint of its bounds."""


@dataclass(frozen=True)
class SparePart:
    """Missing values of a column of categories have a bin that no category uses.

    Partitions with more bins than categories have such a bin; in others they are in the first.
    """


@dataclass(frozen=True)
class MissingBin:
    """Missing values have their own bin in every partition."""


@dataclass(frozen=True)
class FixedValue:
    """Missing values count as this public value."""

    value: Value


Missing = Midpoint | SparePart | MissingBin | FixedValue


@dataclass(frozen=True)
class Number:
    """A column of numbers with public bounds, to which values outside are clipped.

    A value that is not a number is missing, and so is NaN.
    """

    low: float
    high: float
    missing: Midpoint | MissingBin | FixedValue = field(default=Midpoint(), kw_only=True)

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

    @property
    def midpoint(self) -> float:
        """The midpoint of the bounds, computed exactly and rounded once."""
        return float((Fraction(self.low) + Fraction(self.high)) / 2)


@dataclass(frozen=True)
class Categories:
    """A column of declared categories, coded 0, 1, ... in the order given.

    A value that is none of them is missing.

    Attributes:
      values: texts, integers or booleans, all of one kind.
      missing: how missing values are treated.
      ordered: whether the order is meaningful. MIC depends on it in any case; unless this is set,
        the caller is warned.
      kind: the type of the values, `str`, `int` or `bool`.
    """

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    missing: SparePart | MissingBin | FixedValue = field(default=SparePart(), kw_only=True)
    ordered: bool = field(default=False, kw_only=True)
    # A field, because (0, 1) == (False, True) in Python.
    kind: type = field(init=False, repr=False)

    def __post_init__(self):
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise TypeError(
                f'expected categories as a list such as ["a", "b"], got {self.values!r}'
            )
        values = tuple(map(_plain, self.values))
        object.__setattr__(self, "values", values)
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


Rule = Number | Categories


def twice(values: Sequence[Any]) -> list[Any]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


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


def _check_missing(missing: Any, default: type) -> None:
    if not isinstance(missing, default | MissingBin | FixedValue):
        raise TypeError(
            f"expected missing as {default.__name__}, MissingBin or FixedValue, got {missing!r}"
        )
