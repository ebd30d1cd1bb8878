"""Arrow columns as the numbers that are screened."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Categories, Number, Rule, TextFormat, Times
from dpmic_jax.data.source import cells, ids
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
from dpmic_jax.data.source.ids import PersonId
from dpmic_jax.data.source.moments import NO_MOMENT, UNITS, Moments, scaled, text_moment
from dpmic_jax.data.source.number_text import plain

# Its functions are created on import, so static type checkers do not see them.
_compute: Any = pyarrow.compute

# Texts of a table that has types: none means a missing value.
TYPED = TextFormat(missing=())
# Bytes count as texts: one cell of bytes makes arrow convert a whole column of texts to bytes.
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
_USUAL_TIME = r"^[1-9]\d{3}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?$"
_KINDS = {"binary": "bytes", "timestamp": "dates", "date": "dates", "time": "times"}
_KINDS |= {
    "interval": "durations",
    "duration": "durations",
    "list": "lists",
    "struct": "records",
    "dictionary": "texts",
}


def check_type(given: Any, rule: Rule | PersonId, name: str) -> None:
    """Refuse an arrow type that does not fit the rule, without reading values."""
    kind = given.value_type if pa.types.is_dictionary(given) else given
    numeric = any(
        test(kind)
        for test in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_decimal,
        )
    )
    if is_text(kind) or pa.types.is_null(kind):
        return
    if isinstance(rule, Times):
        span = pa.types.is_duration(kind) or pa.types.is_interval(kind)
        fits = span if rule.kind == "duration" else _is_instant(kind)
    else:
        fits = numeric and (isinstance(rule, Number | PersonId) or rule.kind is not str)
    if not fits:
        raise wrong_type(name, rule, "numbers" if numeric else _kind(str(kind)))


def coded(values: Any, rule: Rule | PersonId, text: TextFormat) -> Column:
    """A column as the numbers that are screened.

    Args:
      values: an arrow array that has passed `check_type`.
      rule: its rule in the schema.
      text: how texts are written. Those that mean a missing value may be declared as categories.
    """
    if isinstance(rule, PersonId):
        return ids_of(values, text)
    if isinstance(rule, Categories):
        return codes(codes_of(values, rule, text), rule)
    return numbers(numbers_of(values, rule, text), rule.number)


def ids_of(values: Any, text: TextFormat) -> Column:
    """A column as ids of persons."""
    values = decoded(values)
    if is_text(values.type):
        return _text_ids(values, text)
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        return ids.of_cells(values.to_pylist())
    if pa.types.is_floating(values.type):
        return ids.of_floats(values.to_numpy(zero_copy_only=False))
    return ids.of_integers(_filled(values), _nulls(values))


def _text_ids(values: Any, text: TextFormat) -> Column:
    """Texts as ids: all at once if they are short integers, which is usual, else each text."""
    words = set(text.missing)
    # A declared text that reads as an id, such as -9, is missing.
    harmless = not any(re.fullmatch(ids.SHORT, word, re.ASCII) for word in words)
    if harmless and not pa.types.is_fixed_size_binary(values.type):
        short = _compute.match_substring_regex(values, f"^{ids.SHORT}$")
        if _compute.all(short, min_count=0).as_py():
            texts = values.cast(pa.string())
            # Without a plus sign, which arrow does not read.
            found = _compute.utf8_ltrim(texts, "+").cast(pa.int64())
            return ids.of_integers(_filled(found), _nulls(found))

    def found_in(cell: str) -> bytes:
        return ids.NO_ID if cell.strip(SPACE) in words else ids.of_text(cell)

    return by_text(values, found_in, ids.NO_ID)


def numbers_of(values: Any, rule: Number | Times, text: TextFormat) -> Float[np.ndarray, " n"]:
    """A column as numbers, NaN where a cell holds none of the rule's kind."""
    return moments_of(values, rule, text) if isinstance(rule, Times) else floats_of(values, text)


def moments_of(values: Any, rule: Times, text: TextFormat) -> Moments:
    """A column as days or microseconds, NaN where a cell is no moment of the rule's kind."""
    values = decoded(values)
    if is_text(values.type):
        return _text_moments(values, rule, text)
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    return _typed_moments(values, rule)


def _typed_moments(values: Any, rule: Times) -> Moments:
    """A column of dates, timestamps or durations as days or microseconds."""
    short = pa.types.is_date32(values.type)
    held = _filled(values.cast(pa.int32() if short else pa.int64())).astype(np.int64)
    unit = "D" if short else "ms" if pa.types.is_date64(values.type) else values.type.unit
    missing = _nulls(values) | (held == NO_MOMENT)
    return np.where(missing, np.nan, scaled(held, UNITS[unit], rule))


def _text_moments(values: Any, rule: Times, text: TextFormat) -> Moments:
    """Texts as the moments that `text_moment` reads.

    Arrow converts a whole batch at once if all texts are of its usual forms, and exist.
    """
    if rule.kind != "duration" and not text.dates:
        try:
            trimmed = _without(values.cast(pa.large_string()), text)
            if _compute.all(_compute.match_substring_regex(trimmed, _USUAL_TIME)).as_py():
                return _typed_moments(trimmed.cast(pa.timestamp("us")), rule)
        except pa.ArrowException:
            pass
    words = set(text.missing)

    def found_in(cell: str) -> float:
        return np.nan if cell.strip(SPACE) in words else text_moment(cell, rule, text.dates)

    return by_text(values, found_in, np.nan)


def floats_of(values: Any, text: TextFormat) -> Float[np.ndarray, " n"]:
    """A column as floats, NaN where a cell is not a number."""
    values = decoded(values)
    if is_text(values.type):
        return _text_floats(values, text)
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        # A cast would round to the scale of the column, which may depend on one value.
        return cells.numbers_of(values.to_pylist())
    if pa.types.is_floating(values.type):
        return floats(values.to_numpy(zero_copy_only=False))
    return np.where(_nulls(values), np.nan, floats(_filled(values)))


def codes_of(values: Any, rule: Categories, text: TextFormat) -> Codes:
    """Codes of categories, `MISSING` or `UNDECLARED`."""
    values = decoded(values)
    if pa.types.is_null(values.type):
        return np.full(len(values), MISSING)
    if pa.types.is_decimal(values.type):
        return np.where(_nulls(values), MISSING, cells.codes_of(values.to_pylist(), rule))
    if not is_text(values.type):
        return whole_codes(_filled(values), _nulls(values), rule)
    place, words = placed(rule), set(text.missing)
    written = str if rule.kind is str else plain(text)

    def code(cell: str) -> int:
        found = place(written(cell))
        return MISSING if found == UNDECLARED and cell.strip(SPACE) in words else found

    return by_text(values, code, MISSING)


def _text_floats(values: Any, text: TextFormat) -> Float[np.ndarray, " n"]:
    """Texts as the numbers that `text_number` reads, once they are `plain`.

    Arrow converts a whole batch at once. Whatever it accepts, `text_number` reads as the same
    number. It refuses a batch if it cannot convert one cell; then each cell is read by itself.
    """
    written, words = plain(text), set(text.missing)
    # A declared text that reads as a number, such as -999, is missing.
    harmless = all(np.isnan(text_number(written(word))) for word in words)
    ways: list[Callable[[], Any]] = [lambda: values] if text.has_plain_numbers and harmless else []
    if not text.thousands and not text.percent:
        ways.append(lambda: _with_point(_without(values.cast(pa.large_string()), text), text))
    for prepared in ways:
        try:
            return prepared().cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            continue

    def number(cell: str) -> float:
        return np.nan if cell.strip(SPACE) in words else text_number(written(cell))

    return by_text(values, number, np.nan)


def _without(values: Any, text: TextFormat) -> Any:
    """Trimmed texts, null where they mean a missing value."""
    trimmed = _compute.ascii_trim(values, SPACE)
    blank = _compute.is_in(trimmed, pa.array(text.missing, trimmed.type))
    return _compute.if_else(blank, pa.scalar(None, trimmed.type), trimmed)


def _with_point(values: Any, text: TextFormat) -> Any:
    """Numbers with a decimal point; those that have one instead of the mark become no numbers."""
    if text.decimal == ".":
        return values
    return _compute.replace_substring(
        _compute.replace_substring(values, ".", "?"), text.decimal, "."
    )


def by_text(
    values: Any, found_in: Callable[[str], float | bytes], null: float | bytes
) -> np.ndarray:
    """`found_in` of each text, which is called once for each distinct text."""
    # As bytes, because a file may contain text that is not UTF-8.
    encoded = values.cast(pa.large_binary()).dictionary_encode()
    distinct = [found_in(as_text(text)) for text in encoded.dictionary.to_pylist()]
    spots = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return np.array([*distinct, null])[spots]


def decoded(values: Any) -> Any:
    """The values of a dictionary-encoded array, durations of intervals; others as they are."""
    if pa.types.is_interval(values.type):
        return _durations(values)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


# Of more days no microseconds are counted in 64 bits; no bounds are as wide.
_MOST_DAYS = 10**8
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def _durations(values: Any) -> Any:
    """Intervals of days and nanoseconds as durations; months have no length, so null with them."""
    content = values.buffers()[1] if len(values) else b""
    held = np.frombuffer(content, _INTERVAL)[values.offset :][: len(values)]
    days = np.clip(held["days"].astype(np.int64), -_MOST_DAYS, _MOST_DAYS)
    whole = days * (86_400 * 10**6) + held["nanoseconds"] // 1000
    none = _nulls(values) | (held["months"] != 0)
    return pa.array(whole, pa.int64(), mask=none).cast(pa.duration("us"))


def _nulls(values: Any) -> np.ndarray:
    return values.is_null().to_numpy(zero_copy_only=False)


def _filled(values: Any) -> np.ndarray:
    """A numpy array with 0 for nulls; otherwise integers with nulls would become floats."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return values.fill_null(0).to_numpy(zero_copy_only=False)


def is_text(kind: Any) -> bool:
    """Whether an arrow type holds texts or bytes."""
    return str(kind) in _TEXTS or pa.types.is_fixed_size_binary(kind)


def _is_instant(kind: Any) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _kind(text: str) -> str:
    """The kind of values of a type, without names of fields and units."""
    found = [kind for part, kind in _KINDS.items() if part in text.split("<")[0].split("[")[0]]
    return found[0] if found else "values of another type"
