"""Single cells of a table as numbers or codes of categories, whatever they hold.

Lists, columns of Python objects and CSV files have no type. The type that numpy, pandas or a CSV
reader would infer depends on all values, so one record would decide how the values of others are
read: whether integers are rounded, or numbers become texts. So each cell is read by itself, and
numbers are always float64.
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
MISSING = -2  # results treat it like `UNDECLARED`, unless there is a category for the undeclared
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
# As in readers of CSV files. The texts count like the booleans, because one text in a column makes
# polars convert all its booleans to texts.
_WORDS = {"True": 1, "TRUE": 1, "true": 1, "False": 0, "FALSE": 0, "false": 0}
_PLAIN = {float, int, bool}
_REAL: Any = (Real, Decimal)  # Any: static type checkers do not let a Real be compared


def numbers_of(cells: Iterable[Any]) -> Float64[np.ndarray, " n"]:
    """Each cell as a number, NaN where it is not one."""
    cells = list(cells)
    # A shortcut: for these types numpy agrees with `number`, unless an integer is too large.
    if set(map(type, cells)) <= _PLAIN:
        try:
            return np.array(cells, np.float64)
        except OverflowError:
            pass
    return np.array([number(cell) for cell in cells], np.float64)


def number(cell: Any) -> float:
    """The float64 nearest to a cell, infinite if it is too large; NaN if it is not a number."""
    kind = type(cell)
    if kind is float:
        return cell
    if kind is str:
        return text_number(cell)
    try:
        return _float(_scalar(cell))
    except Exception:  # an exception of a cell's own methods would reveal the cell
        return math.nan


def text_number(text: str) -> float:
    """The number in a text, in ASCII digits, or NaN. All sources read texts by this rule."""
    text = text.strip(SPACE)
    return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, math.nan)


def as_text(cell: bytes) -> str:
    """The text of bytes. Bytes that are not UTF-8 become a text that is no number or category."""
    return cell.decode("utf-8", "surrogateescape")


def codes_of(cells: Iterable[Any], rule: Categories) -> Int64[np.ndarray, " n"]:
    """The position of each cell among the categories, `MISSING` or `UNDECLARED`."""
    place = placed(rule)
    return np.array([place(cell) for cell in cells], np.int64)


def placed(rule: Categories) -> Callable[[Any], int]:
    """The function from a cell to its position among the categories, `MISSING` or `UNDECLARED`.

    Texts have to be equal to a category. Integers and booleans are compared as numbers: 1, 1.0,
    True, "1" and "True" are the same, and a text that reads as NaN is missing.
    """
    places: dict[Any, int] = {value: place for place, value in enumerate(rule.values)}
    # 1, 1.0 and True are equal keys of a dictionary, and large numbers are compared exactly.
    key = _text if rule.kind is str else _key

    def place(cell: Any) -> int:
        found = places.get(key(cell), UNDECLARED)
        return MISSING if found == UNDECLARED and _is_missing(cell, rule) else found

    return place


def _key(cell: Any) -> Any:
    return cell if type(cell) in _PLAIN else _whole(cell)


def _is_missing(cell: Any, rule: Categories) -> bool:
    """Whether a cell that is no category holds nothing, rather than another value."""
    try:
        # A date of numpy has no `_scalar`, and is missing only if it is NaT.
        held = cell if isinstance(cell, np.generic) else _scalar(cell)
        if isinstance(held, str):
            return rule.kind is not str and held.strip(SPACE).lower().lstrip("+-") == "nan"
        # NaN, NaT and a Decimal that is not a number differ from themselves; pandas' NA does not
        # say, and has no other value.
        return held is None or type(held).__name__ == "NAType" or bool(held != held)
    except Exception:  # as in `number`
        return False


def _text(cell: Any) -> str | None:
    """The text of a cell as a plain str: a subclass may define its own comparison."""
    try:
        return str.__str__(cell) if isinstance(cell, str) else None
    except Exception:  # as in `number`
        return None


def _whole(cell: Any) -> int | None:
    """The integer of at most 64 bits that a cell holds, exactly; None if it holds none."""
    try:
        held: Any = _scalar(cell)
        if isinstance(held, str):
            text = held.strip(SPACE)
            held = Decimal(text) if _NUMBER.fullmatch(text) else _WORDS.get(text)
        # Compared before the conversion: an integer of a million digits takes a while to make.
        if not isinstance(held, _REAL) or not -(2**63) <= held < 2**63:
            return None
        return int(held) if int(held) == held else None
    except Exception:  # as in `number`
        return None


def _scalar(cell: Any) -> Any:
    """The value in a numpy scalar or an array without dimensions; other cells as they are.

    The value of a masked cell is None.
    """
    if isinstance(cell, np.ma.MaskedArray) and cell.shape == () and np.ma.getmaskarray(cell):
        return None
    if not isinstance(cell, np.generic) and getattr(cell, "shape", None) == ():
        cell = np.asarray(cell)[()]
    if isinstance(cell, np.generic):
        # Other kinds are missing: `item` of durations and dates may be an integer.
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
