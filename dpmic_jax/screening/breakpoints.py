"""Fine public cells of a column, and breakpoints near its quantiles from counts in them.

The cells have equal widths on a public scale between the public bounds: the declared one, or, for
a column on a linear scale, one with a point at every 1/32 of the range and at every power of two
from the end that is furthest from 0 down to 2^-32 of it, on both sides of 0. So a column that
fills a small part of a wide range has cells wherever that part may be.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, log10
from typing import cast

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.data.limits import Column, WithMissing
from dpmic_jax.data.scales import on_scale
from dpmic_jax.data.schema import FixedValue, MissingBin, Number, Times
from dpmic_jax.data.schema.rules import moment
from dpmic_jax.mic.binning import by_range

_EQUAL, _OCTAVES = 32, 32
INTERVALS = (16, 8, 4, 2)  # parts of an axis, and what divides them
_DIGITS = 2  # of the distance to the nearest other breakpoint, that are kept

Numeric = Number | Times


@dataclass(frozen=True)
class Cells:
    """Cells of a column, the first of which is for missing values.

    Attributes:
      rule: the column's public description, with wide bounds.
      number: how many cells there are.
    """

    rule: Numeric
    number: int

    @property
    def limits(self) -> WithMissing:
        """The wide bounds, on the scale on which cells have equal width."""
        number = self.rule.number
        scale = number.cut_scale
        moments = isinstance(self.rule, Times) and self.rule.kind != "duration"  # 1970 is no zero
        if scale == "linear" and not moments:
            scale = _points(*number.cut_between, 1.0 if number.whole else 0.0)
        return WithMissing(*number.cut_between, scale)

    def tally(self, values: Column) -> Int64[np.ndarray, " cells"]:
        """How many values are in each cell; -inf is missing."""
        if isinstance(self.rule.missing, FixedValue):  # there, it is a value below all others
            values = np.maximum(values, np.finfo(np.float64).min)
        bins = by_range([values], [self.limits], [self.number]).fine[0]
        return np.bincount(bins, minlength=self.number)

    @property
    def edges(self) -> Float64[np.ndarray, " edges"]:
        """The edges of the cells for values that are not missing."""
        steps = self.number - 1
        place = on_scale(*self.limits)
        return np.array([float(place(Fraction(i, steps))) for i in range(steps + 1)])

    def learned(self, mass: Float64[np.ndarray, " cells"], intervals: int) -> Numeric:
        """The description with narrower bounds, and breakpoints between them.

        Args:
          mass: estimated records in every cell.
          intervals: how many intervals with equal numbers of records the breakpoints make. The
            bounds leave a quarter of such an interval outside.
        """
        shares = np.arange(1, intervals) / intervals
        outer = 1 / (4 * intervals)
        found = _quantiles(self.edges, mass[1:], np.array([outer, *shares, 1 - outer]))
        return self.rule if found is None else _described(self.rule, found)


def with_missing_bin(rule: Numeric) -> Numeric:
    """The rule under which missing values can be told from others, if they are not a fixed one."""
    fixed = isinstance(rule.missing, FixedValue)
    return rule if fixed else replace(rule, missing=MissingBin())


def intervals_for(error: float) -> int:
    """How many intervals noise supports: an error of a quantile is at most half of one."""
    return next((count for count in INTERVALS if 2 * error * count <= 1), INTERVALS[-1])


def _points(low: float, high: float, smallest: float) -> tuple[float, ...]:
    """Points at equal distances and at powers of two, between low and high."""
    furthest = max(abs(low), abs(high))
    sizes = [furthest / 2**octave for octave in range(_OCTAVES + 1)]
    octaves = [sign * size for size in sizes if size >= smallest for sign in (-1.0, 1.0)]
    place = on_scale(low, high)
    equal = [float(place(Fraction(i, _EQUAL))) for i in range(1, _EQUAL)]
    return tuple(sorted({x + 0.0 for x in (0.0, *octaves, *equal) if low < x < high}))


def _quantiles(
    edges: Float64[np.ndarray, " edges"],
    mass: Float64[np.ndarray, " cells"],
    shares: Float64[np.ndarray, " shares"],
) -> Float64[np.ndarray, " some"] | None:
    """The values below which shares of the mass lie, where every cell is filled evenly."""
    (held,) = np.nonzero(mass > 0)
    if not len(held):
        return None
    total = np.cumsum(mass[held])
    below = np.concatenate([[0.0], total[:-1]])
    sought = shares * total[-1]
    cell = np.minimum(np.searchsorted(total, sought, side="left"), len(held) - 1)
    part = np.clip((sought - below[cell]) / mass[held][cell], 0, 1)
    start, stop = edges[held[cell]], edges[held[cell] + 1]
    found = np.unique(start * (1 - part) + stop * part)
    return found if len(found) >= 2 else None


def _described(rule: Numeric, found: Float64[np.ndarray, " some"]) -> Numeric:
    number, fixed = rule.number, rule.number.missing
    values = _whole(found) if number.whole or isinstance(rule, Times) else _short(found)
    low, *inner, high = values
    low, high = max(low, number.low), min(high, number.high)
    if isinstance(fixed, FixedValue):  # public, and has to be within the bounds
        value = cast(float, fixed.value)
        low, high = min(low, value), max(high, value)
    inner = [value for value in inner if low < value < high]
    if low >= high:
        return rule
    if isinstance(rule, Times):
        low, *inner, high = (moment(value, rule.low) for value in (low, *inner, high))
    return replace(rule, low=low, high=high, scale="linear", breakpoints=tuple(inner))


def _whole(found: Float64[np.ndarray, " some"]) -> list[int]:
    """Whole numbers; a breakpoint opens the next interval."""
    inner = {ceil(value) for value in found[1:-1]}
    return [floor(found[0]), *sorted(inner), ceil(found[-1])]


def _short(found: Float64[np.ndarray, " some"]) -> list[float]:
    """The values with as many digits as keep them in order, well apart."""
    gaps = np.diff(found)
    nearest = np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
    digits = [_DIGITS - floor(log10(gap)) for gap in nearest]
    short = [round(float(value), digit) for value, digit in zip(found, digits, strict=True)]
    ordered = all(one < other for one, other in pairwise(short))
    return short if ordered else found.tolist()
