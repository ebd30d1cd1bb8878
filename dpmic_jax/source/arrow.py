"""Arrow columns -> the numbers that are screened."""

from typing import Any

import numpy as np
import pyarrow as pa

from dpmic_jax.mic.binning import Column
from dpmic_jax.schema import Categories, Number, Rule
from dpmic_jax.source.coding import MISSING, UNDECLARED, codes, numbers, whole_codes, wrong_type


def check_type(given: Any, rule: Rule, name: str) -> None:
    """Refuse an arrow type that does not fit the rule, before a value is looked at."""
    kind = given.value_type if pa.types.is_dictionary(given) else given
    whole = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if isinstance(rule, Number):
        fits = whole or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    elif rule.kind is str:
        fits = str(kind) in ("string", "large_string", "string_view")
    else:
        fits = whole if rule.kind is int else pa.types.is_boolean(kind)
    if not (fits or pa.types.is_null(kind)):
        raise wrong_type(name, rule, str(kind))


def coded(values: Any, rule: Rule, name: str, nulls: tuple[str, ...]) -> Column:
    """A column as numbers.

    Args:
      values: an arrow array that has passed `check_type`.
      rule: what the schema says of it.
      name: of the column, for error texts.
      nulls: texts that stand for a missing value unless they are declared as categories.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if isinstance(rule, Number):
        return numbers(_plain(values).to_numpy(zero_copy_only=False), rule, name)
    if rule.kind is str:
        return codes(_text_codes(values, rule, nulls), rule, name)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    # Filled in, for numpy takes integers with nulls as floats, which do not hold all of them.
    whole = _plain(values).fill_null(0).to_numpy(zero_copy_only=False)
    return codes(whole_codes(whole, missing, rule), rule, name)


def _plain(values: Any) -> Any:
    """In a type that numpy has."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.uint8())
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.float64())
    return values


def _text_codes(values: Any, rule: Categories, nulls: tuple[str, ...]) -> np.ndarray:
    # As bytes, since a file may have text that is not UTF-8.
    encoded = values.cast(pa.large_string()).cast(pa.large_binary()).dictionary_encode()
    places = {text.encode(): MISSING for text in nulls}
    places |= {text.encode(): place for place, text in enumerate(map(str, rule.values))}
    distinct = [places.get(text, UNDECLARED) for text in encoded.dictionary.to_pylist()]
    spots = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return np.array([*distinct, MISSING])[spots]
