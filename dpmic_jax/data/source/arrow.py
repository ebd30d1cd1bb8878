"""Arrow columns -> the numbers that are screened."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Categories, Number, Rule
from dpmic_jax.data.source import cells
from dpmic_jax.data.source.cells import SPACE, UNDECLARED, as_text, placed, text_number
from dpmic_jax.data.source.coding import (
    MISSING,
    Codes,
    codes,
    floats,
    numbers,
    whole_codes,
    wrong_type,
)

# Made when it is imported, so that static checkers see none of its functions.
_compute: Any = pyarrow.compute

# Bytes are taken for texts: of texts beside one arrow makes bytes.
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
_KINDS = {"binary": "bytes", "timestamp": "dates", "date": "dates", "time": "times"}
_KINDS |= {"duration": "durations", "list": "lists", "struct": "records", "dictionary": "texts"}


def check_type(given: Any, rule: Rule, name: str) -> None:
    """Refuse an arrow type that does not fit the rule; no value is looked at."""
    kind = given.value_type if pa.types.is_dictionary(given) else given
    counted = any(
        test(kind)
        for test in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_decimal,
        )
    )
    takes_numbers = isinstance(rule, Number) or rule.kind is not str
    if not (is_text(kind) or pa.types.is_null(kind) or (takes_numbers and counted)):
        raise wrong_type(name, rule, "numbers" if counted else _kind(str(kind)))


def coded(values: Any, rule: Rule, nulls: tuple[str, ...]) -> Column:
    """A column as numbers.

    Args:
      values: an arrow array that has passed `check_type`.
      rule: what the schema says of it.
      nulls: texts that stand for a missing value unless they are declared as categories.
    """
    if isinstance(rule, Number):
        return numbers(floats_of(values, nulls), rule)
    return codes(codes_of(values, rule, nulls), rule)


def floats_of(values: Any, nulls: tuple[str, ...]) -> Float[np.ndarray, " n"]:
    """A column as floats, NaN where a cell holds no number."""
    values = decoded(values)
    if is_text(values.type):
        return _text_floats(values, nulls)
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        # A cast rounds by the scale, which one value may give to all; cells are rounded once.
        return cells.numbers_of(values.to_pylist())
    if pa.types.is_floating(values.type):
        return floats(values.to_numpy(zero_copy_only=False))
    return np.where(_nulls(values), np.nan, floats(_filled(values)))


def codes_of(values: Any, rule: Categories, nulls: tuple[str, ...]) -> Codes:
    """Codes of categories, those of values that are missing or not declared among them."""
    values = decoded(values)
    if pa.types.is_null(values.type):
        return np.full(len(values), MISSING)
    if pa.types.is_decimal(values.type):
        return np.where(_nulls(values), MISSING, cells.codes_of(values.to_pylist(), rule))
    if not is_text(values.type):
        return whole_codes(_filled(values), _nulls(values), rule)
    place, words = placed(rule), set(nulls)

    def code(text: str) -> int:
        found = place(text)
        return MISSING if found == UNDECLARED and text.strip(SPACE) in words else found

    return by_text(values, code, MISSING)


def _text_floats(values: Any, nulls: tuple[str, ...]) -> Float[np.ndarray, " n"]:
    """Texts as `text_number` takes them.

    Arrow reads a whole batch at once, and what it takes for numbers `text_number` does, too, and
    for the same ones. It refuses a batch for one cell, so where it does, each is taken by itself.
    """
    for prepared in (lambda: values, lambda: _without(values.cast(pa.large_string()), nulls)):
        try:
            return prepared().cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            continue
    return by_text(values, text_number, np.nan)


def _without(values: Any, nulls: tuple[str, ...]) -> Any:
    """Trimmed texts, null where they stand for a missing value."""
    trimmed = _compute.ascii_trim(values, SPACE)
    blank = _compute.is_in(trimmed, pa.array(nulls, trimmed.type))
    return _compute.if_else(blank, pa.scalar(None, trimmed.type), trimmed)


def by_text(values: Any, found_in: Callable[[str], float], null: float) -> np.ndarray:
    """What is found in each text, looking at each distinct one once."""
    # As bytes, since a file may have text that is not UTF-8.
    encoded = values.cast(pa.large_binary()).dictionary_encode()
    distinct = [found_in(as_text(text)) for text in encoded.dictionary.to_pylist()]
    spots = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return np.array([*distinct, null])[spots]


def decoded(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _nulls(values: Any) -> np.ndarray:
    return values.is_null().to_numpy(zero_copy_only=False)


def _filled(values: Any) -> np.ndarray:
    """In a type that numpy has, with nulls filled in: numpy takes integers with nulls as floats."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return values.fill_null(0).to_numpy(zero_copy_only=False)


def is_text(kind: Any) -> bool:
    return str(kind) in _TEXTS or pa.types.is_fixed_size_binary(kind)


def _kind(text: str) -> str:
    """What a type holds; names of fields, and units, are not told."""
    found = [kind for part, kind in _KINDS.items() if part in text.split("<")[0].split("[")[0]]
    return found[0] if found else "values of another type"
