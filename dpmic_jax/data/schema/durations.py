"""Durations in a bounds file: texts as ISO 8601 writes them, or numbers with a unit."""

import math
from datetime import timedelta
from fractions import Fraction
from typing import Any

from dpmic_jax.data.iso_8601 import duration

# Of fixed length, which months and years have not.
_SECONDS = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
UNITS = tuple(_SECONDS)


def iso_duration(value: timedelta) -> str:
    """A duration as text, such as P3DT0.5S."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{value.seconds}.{value.microseconds:06}".rstrip("0").rstrip(".")
    return f"{sign}P{value.days}DT{seconds}S"


def length(value: Any, unit: str | None) -> timedelta:
    """The duration that a value stands for, a text or a number of units."""
    if isinstance(value, timedelta):
        return value
    found = duration(value) if isinstance(value, str) else None
    if unit is not None and isinstance(value, int | float) and not isinstance(value, bool):
        found = _microseconds(value, unit)
    if found is None:
        raise ValueError(
            'expected a duration such as "P3D" or "PT12H", or a number with a unit such as '
            f'unit = "days", got {value!r} (numbers are written without quotes)'
        )
    try:
        return timedelta(microseconds=found)
    except OverflowError:
        raise ValueError(
            f"expected a duration of less than a billion days, got {value!r}"
        ) from None


def _microseconds(number: float, unit: str) -> int | None:
    return round(Fraction(number) * _SECONDS[unit] * 10**6) if math.isfinite(number) else None
