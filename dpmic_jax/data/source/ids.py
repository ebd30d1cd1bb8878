"""Ids of persons in the cells of a column, of whatever type.

An id is a whole number or a text. A cell that is a whole number, or a text of its digits, is that
number: 7, 7.0, "7", "007" and " 7 " are one id, since a column of integers with a hole is one of
floats in pandas, and one of texts in a CSV file. Any other cell is the text that it is written as,
without spaces around it. A cell that is empty, NaN, or one of `NULLS` is missing.

Ids are handled as 32 bytes: an integer of 64 bits as it is, a text by its BLAKE2b hash. Two texts
that have the same hash are not known to anybody.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from dpmic_jax.data.schema.text_format import NULLS
from dpmic_jax.data.source.cells import SPACE, as_text

BYTES = 32
NO_ID = bytes(BYTES)
# Of up to 18 digits, so of 64 bits.
SHORT = "[+-]?[0-9]{1,18}"
# Of a length at which conversions take no time.
_WHOLE = re.compile(r"([+-]?[0-9]{1,64})(?:\.0*)?")

# One id in `BYTES` bytes each, or `NO_ID`.
Ids = Shaped[np.ndarray, " n"]


@dataclass(frozen=True)
class PersonId:
    """The rule of a column of ids, for which `coded` yields `Ids`."""


def of_integers(values: Shaped[np.ndarray, " n"], missing: Bool[np.ndarray, " n"]) -> Ids:
    """Ids of integers or booleans of any dtype."""
    words = np.zeros((len(values), BYTES // 8), "<i8")
    words[:, 0], words[:, 1] = values.astype(np.int64), 1
    words[missing] = 0
    found = words.view(f"S{BYTES}").ravel()
    if values.dtype == np.uint64:
        large = np.flatnonzero(values >= 2**63)
        found[large] = of_cells(values[large].tolist())
    return found


def of_floats(values: Float[np.ndarray, " n"]) -> Ids:
    """Ids of numbers in floats, NaN where there is none."""
    values = values.astype(np.float64, copy=False)
    missing = np.isnan(values)
    whole = (np.abs(values) < 2.0**63) & (np.trunc(values) == values)
    found = of_integers(np.where(whole, values, 0).astype(np.int64), missing)
    other = np.flatnonzero(~whole & ~missing)
    found[other] = of_cells(values[other].tolist())
    return found


def of_cells(cells: Iterable[Any]) -> Ids:
    """Ids of cells of any types."""
    return np.array([of_cell(cell) for cell in cells], f"S{BYTES}")


def of_cell(cell: Any) -> bytes:
    """The id in one cell."""
    try:
        return of_text(_written(cell))
    except Exception:  # an exception of a cell's own methods would reveal the cell
        return NO_ID


def of_text(text: str) -> bytes:
    """The id in a text."""
    text = text.strip(SPACE)
    if text in _NONE:
        return NO_ID
    if found := _WHOLE.fullmatch(text):
        value = int(found[1])
        if -(2**63) <= value < 2**63:
            return value.to_bytes(8, "little", signed=True) + _INTEGER
        text = str(value)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=BYTES).digest()


def _written(cell: Any) -> str:
    """The text of a cell; of a number it depends on the value alone."""
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, bytes):
        return as_text(cell)
    if getattr(cell, "shape", None) == ():  # a numpy scalar
        cell = None if np.ma.getmaskarray(cell) else np.asarray(cell).item()
    if isinstance(cell, _REAL) and abs(cell) < _LARGE and int(cell) == cell:
        return str(int(cell))
    return str(cell)


_REAL: Any = (Real, Decimal)  # Any: static type checkers do not let a Real be compared
_LARGE = 10**64
_NONE = {*NULLS, "NaT"}
_INTEGER = (1).to_bytes(BYTES - 8, "little")
