"""The kinds of a table's columns by their types. No value is read: types are public, values not.

Also the values that a type itself lists, such as the categories of a dictionary, and the least and
largest value that a Parquet file keeps beside a column, are values.
"""

import os
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from dpmic_jax.data.schema import TextFormat
from dpmic_jax.data.source.base import is_index
from dpmic_jax.data.source.memory import Held, held_columns
from dpmic_jax.data.source.streamed import is_streamed

# Kinds as in a bounds file; None if the type says nothing, "ignored" if it cannot be screened.
Kinds = dict[str, str | None]

_USUAL = TextFormat()
_NUMPY = {"b": "boolean", "i": "whole", "u": "whole", "f": "number", "M": "timestamp"}
_NUMPY |= {"m": "duration", "U": "nominal", "S": "nominal", "O": None}
_TYPED = {nw.Boolean: "boolean", nw.Categorical: "nominal", nw.Enum: "nominal", nw.Date: "date"}
_TYPED |= {nw.Duration: "duration", nw.String: "nominal", nw.Unknown: None, nw.Object: None}


def column_kinds(data: Any, text: TextFormat = _USUAL) -> Kinds:
    """The kinds of all columns by name, for the `template` of a bounds file.

    Columns of text files, lists and Python objects have no type, and kind None.

    Args:
      data: a table, as for `open_source`.
      text: how it is written, if it is a text file.
    """
    if isinstance(data, str | os.PathLike) or is_streamed(data):
        return arrow_kinds(arrow_schema(data, text))
    return _named({name: _held(column) for name, column in held_columns(data).items()})


def arrow_schema(data: Any, text: TextFormat = _USUAL) -> Any:
    """The names and Arrow types of all columns of a table, without reading a value.

    A column without a type, such as those of a text file or of a list, has the type null.

    Args:
      data: a table, as for `open_source`.
      text: how it is written, if it is a text file.

    Returns:
      A `pyarrow.Schema`.
    """
    # Imported here: pyarrow is an optional dependency, and takes a while to import.
    if isinstance(data, str | os.PathLike):
        from dpmic_jax.data.source.files import file_schema

        return file_schema(data, text)
    if is_streamed(data):
        from dpmic_jax.data.source.streams import open_reader

        return open_reader(data).schema
    import pyarrow as pa

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.head(0).to_arrow().schema
    return pa.schema([(name, pa.null()) for name in held_columns(data)])


def arrow_kinds(types: Any) -> Kinds:
    """The kinds of the columns of an Arrow schema."""
    return _named({field.name: _arrow(field.type) for field in types})


def _named(kinds: Mapping[str, str | None]) -> Kinds:
    return {name: kind for name, kind in kinds.items() if not is_index(name)}


def _held(column: Held) -> str | None:
    if isinstance(column, np.ndarray):
        return _NUMPY.get(column.dtype.kind, "ignored")
    # narwhals finds the type of Python objects from values.
    if str(getattr(column.to_native(), "dtype", "")) == "object":
        return None
    kind: Any = column.dtype
    if kind == nw.Datetime:
        return _timestamp(kind.time_zone)
    if kind.is_integer():
        return "whole"
    return "number" if kind.is_numeric() else _TYPED.get(type(kind), "ignored")


def _arrow(kind: Any) -> str | None:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "ordered" if kind.ordered else _arrow(kind.value_type)
    if pa.types.is_timestamp(kind):
        return _timestamp(kind.tz)
    for test, found in (
        (pa.types.is_null, None),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "whole"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
        (pa.types.is_date, "date"),
        (pa.types.is_duration, "duration"),
        (pa.types.is_interval, "duration"),
        (_is_text, "nominal"),
    ):
        if test(kind):
            return found
    return "ignored"


def _is_text(kind: Any) -> bool:
    from dpmic_jax.data.source.arrow import is_text

    return is_text(kind) and "binary" not in str(kind)


def _timestamp(zone: str | None) -> str:
    return "timestamp" if zone is None else "timestamp with time zone"
