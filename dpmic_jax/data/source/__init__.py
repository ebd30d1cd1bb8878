"""Sources: tables of any kind as columns of numbers with public bounds, in batches of records."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from dpmic_jax.data.schema import Described, Schema, schema_of
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.memory import MemorySource, held_columns
from dpmic_jax.data.source.query import Query

__all__ = ["Batch", "Query", "Source", "arrow_schema", "column_names", "open_source"]


def open_source(data: Any, bounds: Described | Sequence[Any]) -> Source:
    """Match a table with its public description.

    Only names and types are checked here. Lists and columns of Python objects have no type: their
    cells are read one by one, and none is refused.

    Args:
      data: an array or list of records by columns (called x0, x1, ...), a pandas, polars or
        pyarrow data frame, a dictionary of columns, the path of a .csv or .parquet file or of a
        folder of .parquet files, a `Query`, or what gives an Arrow stream again and again, such as
        a DuckDB relation, a polars LazyFrame or a pyarrow dataset.
      bounds: the public description of its columns, as for `schema_of`. For a table in memory also
        a sequence of (low, high), in the order of the columns.
    """
    if isinstance(data, str | os.PathLike):
        # Imported here: pyarrow is an optional dependency, and takes a while to import.
        from dpmic_jax.data.source.files import open_file

        return open_file(data, schema_of(bounds))
    if _is_streamed(data):
        from dpmic_jax.data.source.streams import StreamSource, open_reader

        return StreamSource(schema_of(bounds), open_reader(data))
    columns = held_columns(data)
    if isinstance(bounds, Schema | Mapping | str | os.PathLike):
        return MemorySource(schema_of(bounds), columns, "data")
    if len(bounds) != len(columns):
        raise ValueError(
            f"expected bounds to have a (low, high) for each of {len(columns)} columns, "
            f"got {len(bounds)}"
        )
    return MemorySource(schema_of(dict(zip(columns, bounds, strict=True))), columns, "data")


def column_names(data: Any) -> tuple[str, ...]:
    """The names of all columns of a table, for the `template` of a bounds file.

    A first line of a file that looks like a record is refused as a header.
    """
    if isinstance(data, str | os.PathLike):
        from dpmic_jax.data.source.files import header_names

        return header_names(data)
    if _is_streamed(data):
        return tuple(arrow_schema(data).names)
    return tuple(held_columns(data))


def arrow_schema(data: Any) -> Any:
    """The names and Arrow types of all columns of a table, without reading a value.

    A column without a type, such as those of a CSV file or of a list, has the type null.

    Args:
      data: a table, as for `open_source`.

    Returns:
      A `pyarrow.Schema`.
    """
    import pyarrow as pa

    if isinstance(data, str | os.PathLike):
        from dpmic_jax.data.source.files import file_schema

        return file_schema(data)
    if _is_streamed(data):
        from dpmic_jax.data.source.streams import open_reader

        return open_reader(data).schema
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.head(0).to_arrow().schema
    return pa.schema([(name, pa.null()) for name in held_columns(data)])


def _is_streamed(data: Any) -> bool:
    """Whether a table is not in memory, nor in a file that is read here."""
    known = nw.from_native(data, eager_only=True, pass_through=True, allow_series=True)
    if isinstance(known, nw.DataFrame | nw.Series):
        return False
    return (
        isinstance(data, Query | nw.LazyFrame)
        or hasattr(data, "__arrow_c_stream__")
        or nw.dependencies.is_polars_lazyframe(data)
        or _is_dataset(data)
    )


def _is_dataset(data: Any) -> bool:
    loaded = sys.modules.get("pyarrow.dataset")  # not imported: a dataset's module is loaded
    return loaded is not None and isinstance(data, loaded.Dataset)
