"""Dates, timestamps and durations in text, as microseconds.

The forms are those of ISO 8601 and those that pandas, polars, pyarrow, DuckDB and PostgreSQL write:

    2020-02-29   2020-02-29T12:30   2020-02-29 12:30:15.5   2020-02-29T12:30:15Z   ... +02:00
    P3DT4H0.5S   -PT90M   P2W   04:05:06.5   3 days 04:05:06   -1 days +23:59:59.5

Digits are ASCII. Fractions of a microsecond are rounded down.
"""

import math
import re
from datetime import datetime
from fractions import Fraction

_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r" ?(?:Z|UTC|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?",
    re.ASCII,
)
# Limited digits, because Python refuses to read very long numbers.
_SECONDS = r"\d{1,15}(?:\.\d{1,40})?"
_DURATION = re.compile(
    rf"([+-]?)P(?=[-\dT])(?:(-?\d{{1,15}})W)?(?:(-?\d{{1,15}})D)?"
    rf"(?:T(?=[-\d])(?:(-?\d{{1,15}})H)?(?:(-?\d{{1,15}})M)?(?:(-?{_SECONDS})S)?)?",
    re.ASCII,
)
_CLOCK = re.compile(
    rf"(?=.)(?:([+-]?\d{{1,15}}) days?(?:,? |$))?(?:([+-]?)(\d{{1,15}}):(\d\d)(?::({_SECONDS}))?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1)
_HOUR, _DAY = 3600, 86400


def instant(text: str) -> int | None:
    """Microseconds since 1970 in UTC of a date, which is its midnight, or a timestamp.

    A text without a zone is in UTC. None if the text is neither.
    """
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    *numbers, fraction, sign, hours, minutes = found.groups(default="")
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    try:
        since = datetime(year, month, day, hour, minute, second) - _EPOCH
    except ValueError:  # the 30th of February
        return None
    east = (int(hours or 0) * 60 + int(minutes or 0)) * (-60 if sign == "-" else 60)
    seconds = since.days * _DAY + since.seconds - east
    return seconds * 10**6 + int(fraction[:6].ljust(6, "0"))


def duration(text: str) -> int | None:
    """Microseconds of a duration, None if the text is none."""
    if found := _DURATION.fullmatch(text):
        sign, weeks, days, hours, minutes, seconds = found.groups(default="0")
        whole = int(weeks) * 7 * _DAY + int(days) * _DAY + int(hours) * _HOUR + int(minutes) * 60
        return _microseconds((whole + Fraction(seconds)) * (-1 if sign == "-" else 1))
    if found := _CLOCK.fullmatch(text):
        days, sign, hours, minutes, seconds = found.groups(default="0")
        clock = int(hours) * _HOUR + int(minutes) * 60 + Fraction(seconds)
        return _microseconds(int(days) * _DAY + clock * (-1 if sign == "-" else 1))
    return None


def _microseconds(seconds: Fraction) -> int:
    return math.floor(seconds * 10**6)
