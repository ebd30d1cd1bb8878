"""Sources: tables of any kind as columns of numbers with public bounds, in batches of records."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dpmic_jax.data.schema import Described, Schema, TextFormat, schema_of
from dpmic_jax.data.source.base import Batch, Source, is_index
from dpmic_jax.data.source.kinds import arrow_kinds, arrow_schema, column_kinds
from dpmic_jax.data.source.memory import MemorySource, held_columns
from dpmic_jax.data.source.persons import PersonSource
from dpmic_jax.data.source.query import Query
from dpmic_jax.data.source.streamed import is_streamed

_USUAL = TextFormat()

__all__ = [
    "Batch",
    "Query",
    "Source",
    "arrow_kinds",
    "arrow_schema",
    "column_kinds",
    "column_names",
    "open_source",
]


def open_source(data: Any, bounds: Described | Sequence[Any]) -> Source:
    """Match a table with its public description.

    Only names and types are checked here. Lists and columns of Python objects have no type: their
    cells are read one by one, and none is refused.

    Args:
      data: an array or list of records by columns (called x0, x1, ...), a pandas, polars or
        pyarrow data frame, a dictionary of columns, the path of a .csv, .tsv or .parquet file or
        of a folder of .parquet files, a `Query`, or what gives an Arrow stream again and again,
        such as a DuckDB relation, a polars LazyFrame or a pyarrow dataset.
      bounds: the public description of its columns, as for `schema_of`. For a table in memory also
        a sequence of (low, high), in the order of the columns.
    """
    if isinstance(data, str | os.PathLike):
        # Imported here: pyarrow is an optional dependency, and takes a while to import.
        from dpmic_jax.data.source.files import open_file

        return _by_person(schema_of(bounds), partial(open_file, data))
    if is_streamed(data):
        from dpmic_jax.data.source.streams import StreamSource, open_reader

        reader = open_reader(data)  # one for all passes, as it may hold a snapshot
        return _by_person(schema_of(bounds), lambda schema: StreamSource(schema, reader))
    columns = held_columns(data)
    if isinstance(bounds, Schema | Mapping | str | os.PathLike):
        return _by_person(schema_of(bounds), lambda schema: MemorySource(schema, columns, "data"))
    if len(bounds) != len(columns):
        raise ValueError(
            f"expected bounds to have a (low, high) for each of {len(columns)} columns, "
            f"got {len(bounds)}"
        )
    return MemorySource(schema_of(dict(zip(columns, bounds, strict=True))), columns, "data")


def _by_person(schema: Schema, opened: Callable[[Schema], Source]) -> Source:
    """The table that `opened` makes from a schema, with equally many records of every person."""
    return opened(schema) if schema.person is None else PersonSource(schema, opened)


def column_names(data: Any, text: TextFormat = _USUAL) -> tuple[str, ...]:
    """The names of all columns of a table, for the `template` of a bounds file.

    A first line of a file that looks like a record is refused as a header.

    Args:
      data: a table, as for `open_source`.
      text: how it is written, if it is a text file.
    """
    if isinstance(data, str | os.PathLike):
        from dpmic_jax.data.source.files import header_names

        return header_names(data, text)
    names = arrow_schema(data).names if is_streamed(data) else held_columns(data)
    return tuple(name for name in names if not is_index(name))
