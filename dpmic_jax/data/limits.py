"""Types of columns, and of the public limits between which they are binned."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

Column = Shaped[np.ndarray, " n"]
Bounds = tuple[float, float]

SCALES = "linear", "log", "sqrt"
# One of `SCALES`, or breakpoints between the bounds.
Scale = str | tuple[float, ...]


class ScaledBounds(NamedTuple):
    """Bounds of a column whose bins have equal width on a scale.

    With breakpoints b_1 < ... < b_m the scale is the increasing function that is linear between
    low, b_1, ..., b_m and high, and takes them to 0, 1/(m+1), ..., 1.
    """

    low: float
    high: float
    scale: Scale


NumberLimits = Bounds | ScaledBounds


class WithMissing(NamedTuple):
    """Bounds of a column in which -inf encodes a missing value, which has its own bin."""

    low: float
    high: float
    scale: Scale = "linear"


class CategoryLimits(NamedTuple):
    """Limits of a column of codes 0 .. k - 1 of k categories, with -1 for missing values.

    If there are q > k bins, the first is for -1, and each category has one of the next. So a
    missing value never has to be an error. A table without missing values has the same MICr as on
    the bounds (-1/2, k - 1/2): there, too, each category has its own bin, in the same order. Only
    the positions of the empty bins differ, and an empty bin adds phi(0) = 0 to every sum. If
    q <= k, those bounds leave no bin empty. Then the bins are those of the bounds, and -1 is in the
    first one.
    """

    categories: int


class NominalLimits(NamedTuple):
    """Limits of a column of codes 0 .. k - 1 of k categories without order, and -1 for missing.

    A bin is one category, or the missing values; there is no other partition of the column.

    Attributes:
      categories: k, at least 3.
      missing: whether missing values have a bin. If not, there is no code -1.
    """

    categories: int
    missing: bool

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self.categories + self.missing


Limits = NumberLimits | WithMissing | CategoryLimits | NominalLimits


def in_declared_order(limits: Limits) -> Limits:
    """Limits that cut nominal categories like ordered ones, whose codes are the same."""
    if not isinstance(limits, NominalLimits):
        return limits
    count = limits.categories
    return CategoryLimits(count) if limits.missing else (-0.5, count - 0.5)
