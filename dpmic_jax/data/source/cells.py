"""One cell of a table -> a number, or a whole number, or nothing; whatever it holds.

A list, a column of Python objects and a CSV file have no type of their own. What numpy, pandas or a
CSV reader would infer depends on all values, so that one record would decide how those of others
are read: integers are exact or rounded, numbers become texts. So each cell is taken by itself, and
numbers are float64 always.
"""

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.data.schema import Categories

SPACE = " \t\n\r\v\f"
UNDECLARED = -1
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
# As readers of CSV files take them. True is the number 1, and so is its text: beside a text, polars
# makes texts of all booleans.
_WORDS = {"True": 1, "TRUE": 1, "true": 1, "False": 0, "FALSE": 0, "false": 0}
_PLAIN = {float, int, bool}
_REAL: Any = (Real, Decimal)  # static checkers think that a Real is not to be compared


def numbers_of(cells: Iterable[Any]) -> Float64[np.ndarray, " n"]:
    """Each cell as a number, NaN where it holds none."""
    cells = list(cells)
    # Of these types numpy makes the number that `number` does, unless one is too large.
    if set(map(type, cells)) <= _PLAIN:
        try:
            return np.array(cells, np.float64)
        except OverflowError:
            pass
    return np.array([number(cell) for cell in cells], np.float64)


def number(cell: Any) -> float:
    """The float64 nearest to what the cell holds, infinite if it is too large; or NaN."""
    kind = type(cell)
    if kind is float:
        return cell
    if kind is str:
        return text_number(cell)
    try:
        return _float(_scalar(cell))
    except Exception:  # what a cell's own methods raise would tell that it is there
        return math.nan


def text_number(text: str) -> float:
    """What a text says in ASCII digits, or NaN; the same wherever texts are read as numbers."""
    text = text.strip(SPACE)
    return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, math.nan)


def as_text(cell: bytes) -> str:
    """The text in a cell of a column of bytes; what is not UTF-8 is no number, and not declared."""
    return cell.decode("utf-8", "surrogateescape")


def codes_of(cells: Iterable[Any], rule: Categories) -> Int64[np.ndarray, " n"]:
    """The place of each cell among the categories, or `UNDECLARED`."""
    place = placed(rule)
    return np.array([place(cell) for cell in cells], np.int64)


def placed(rule: Categories) -> Callable[[Any], int]:
    """What gives a cell its place among the categories.

    Texts are declared as they are. For whole numbers and booleans the number counts: 1, 1.0,
    True, "1" and "True" are the same.
    """
    places: dict[Any, int] = {value: place for place, value in enumerate(rule.values)}
    if rule.kind is str:
        return lambda cell: places.get(_text(cell), UNDECLARED)

    def place(cell: Any) -> int:
        # Python calls 1, 1.0 and True equal, and compares exactly.
        return places.get(cell if type(cell) in _PLAIN else _whole(cell), UNDECLARED)

    return place


def _text(cell: Any) -> str | None:
    """The text that a cell is, whatever a class of its own makes of comparing it."""
    try:
        return str.__str__(cell) if isinstance(cell, str) else None
    except Exception:  # as above
        return None


def _whole(cell: Any) -> int | None:
    """The whole number of at most 64 bits that a cell holds, exactly."""
    try:
        held: Any = _scalar(cell)
        if isinstance(held, str):
            text = held.strip(SPACE)
            held = Decimal(text) if _NUMBER.fullmatch(text) else _WORDS.get(text)
        # Compared first: a whole number of a million digits takes a while to make.
        if not isinstance(held, _REAL) or not -(2**63) <= held < 2**63:
            return None
        return int(held) if int(held) == held else None
    except Exception:  # as above
        return None


def _scalar(cell: Any) -> Any:
    """What is in a numpy scalar or in an array without dimensions, else the cell itself.

    Nothing is in one that is masked.
    """
    if isinstance(cell, np.ma.MaskedArray) and cell.shape == () and np.ma.getmaskarray(cell):
        return None
    if not isinstance(cell, np.generic) and getattr(cell, "shape", None) == ():
        cell = np.asarray(cell)[()]
    if isinstance(cell, np.generic):
        # Durations call themselves integers, and dates become some.
        return cell.item() if cell.dtype.kind in "biufU" else None
    return cell


def _float(held: Any) -> float:
    if isinstance(held, str):
        return text_number(held)
    if not isinstance(held, _REAL):
        return math.nan
    try:
        return float(held)
    except OverflowError:
        return math.inf if held > 0 else -math.inf
