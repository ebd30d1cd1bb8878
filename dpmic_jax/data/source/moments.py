"""Dates, timestamps and durations as numbers: days, or microseconds, since 1970 in UTC.

Dates and timestamps, with a time zone and without, are taken for each other: libraries store one as
the other, and one cell with a zone can turn a column of dates into timestamps. What has no zone is
in UTC, a date is its midnight, and a timestamp in a column of dates is the day that it is in. A
finer unit, such as the nanoseconds of pandas, is rounded down.

As in `cells`, the number of a cell depends on that cell alone, and whatever it holds has one: NaN
if it is no moment of the column's kind.
"""

import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from dpmic_jax.data.iso_8601 import duration, instant
from dpmic_jax.data.schema.rules import Times, ticks
from dpmic_jax.data.source.cells import SPACE

Moments = Float64[np.ndarray, " n"]

_DAY = 86_400 * 10**6
# Microseconds of each of numpy's units that have a fixed length.
UNITS = {"W": 7 * _DAY, "D": _DAY, "h": _DAY // 24, "m": 60 * 10**6, "s": 10**6, "ms": 1000}
UNITS |= {unit: Fraction(1, 1000**k) for k, unit in enumerate(("us", "ns", "ps", "fs", "as"))}
_LARGEST = np.iinfo(np.int64).max
NO_MOMENT = np.iinfo(np.int64).min  # how numpy and pandas store NaT


def takes(rule: Times, array: Shaped[np.ndarray, " n"]) -> bool:
    """Whether the rule takes an array of datetime64 or timedelta64. Months have no fixed length."""
    if rule.kind == "duration":
        return array.dtype.kind == "m" and np.datetime_data(array.dtype)[0] in UNITS
    return array.dtype.kind == "M"


def array_moments(values: Shaped[np.ndarray, " n"], rule: Times) -> Moments:
    """The numbers of an array of datetime64 or timedelta64, NaN for NaT."""
    missing = np.isnat(values)
    held = np.where(missing, 0, values.astype(np.int64))
    unit, count = np.datetime_data(values.dtype)
    if unit not in UNITS:  # years and months, of which so many still are an int64 of days
        near = np.clip(held, -(10**6), 10**6).astype(values.dtype)
        held, unit, count = near.astype("M8[D]").astype(np.int64), "D", 1
    return np.where(missing, np.nan, scaled(held, count * UNITS[unit], rule))


def scaled(held: Shaped[np.ndarray, " n"], unit: Fraction | int, rule: Times) -> Moments:
    """Integers in a unit of so many microseconds as the numbers of the rule, computed exactly."""
    ratio = Fraction(unit) / (_DAY if rule.kind == "date" else 1)
    times, over = ratio.numerator, ratio.denominator
    fits = np.abs(held.astype(np.float64)) < _LARGEST // times - 1024
    fits &= over <= _LARGEST
    small = np.where(fits, held, 0).astype(np.int64)
    found = (small * min(times, _LARGEST) // min(over, _LARGEST)).astype(np.float64)
    found[~fits] = [float(int(value) * times // over) for value in held[~fits]]
    return found


def cell_moments(cells: Iterable[Any], rule: Times) -> Moments:
    """The number of each cell, NaN where it holds no moment of the rule's kind."""
    return np.array([moment(cell, rule) for cell in cells], np.float64)


def moment(cell: Any, rule: Times) -> float:
    """The number of a cell, or NaN. What has no time zone is in UTC."""
    if isinstance(cell, str):
        return text_moment(str.__str__(cell), rule)
    try:
        return _of_object(cell, rule)
    except Exception:  # as in `cells.number`
        return math.nan


def text_moment(text: str, rule: Times, form: str = "") -> float:
    """The number in a text, or NaN. All sources read texts by this rule.

    Args:
      text: the cell.
      rule: of its column.
      form: how dates and timestamps are written (`TextFormat.dates`).
    """
    trimmed = text.strip(SPACE)
    if rule.kind == "duration":
        found = duration(trimmed)
    else:
        found = _written_instant(trimmed, form) if form else instant(trimmed)
    if found is None:
        return math.nan
    return float(found // _DAY if rule.kind == "date" else found)


def _written_instant(text: str, form: str) -> int | None:
    """Microseconds since 1970 of a text in a form of `strptime`."""
    if not text.isascii():  # strptime takes digits of any script
        return None
    try:
        return ticks(datetime.strptime(text, form))
    except ValueError:
        return None


def _of_object(cell: Any, rule: Times) -> float:
    if isinstance(cell, np.ndarray):
        cell = cell[()]
    if isinstance(cell, np.datetime64 | np.timedelta64):
        array = np.asarray(cell)[None]
        return float(array_moments(array, rule)[0]) if takes(rule, array) else math.nan
    if not isinstance(cell, timedelta if rule.kind == "duration" else date) or cell != cell:
        return math.nan  # NaT is a date that differs from itself
    if isinstance(cell, timedelta):
        return float(ticks(cell))
    if not isinstance(cell, datetime):
        return float(ticks(cell) * (1 if rule.kind == "date" else _DAY))
    found = ticks(cell)
    return float(found // _DAY if rule.kind == "date" else found)
