"""Any table -> screened columns of numbers with public bounds, in row batches."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dpmic_jax.data.schema import Described, Schema, schema_of
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.memory import MemorySource, held_columns

__all__ = ["Batch", "Source", "column_names", "open_source"]


def open_source(data: Any, bounds: Described | Sequence[Any]) -> Source:
    """Match a table with what is public about it.

    Only names and types are looked at here. Lists and columns of Python objects have no type:
    their cells are taken one by one, and none is refused.

    Args:
      data: an array or list of records by columns (called x0, x1, ...), a pandas, polars or
        pyarrow data frame, a dictionary of columns, or the path of a .csv or .parquet file.
      bounds: what is public about its columns: see `schema_of`. For a table in memory also a
        sequence of (low, high), in the order of the columns.
    """
    if isinstance(data, str | os.PathLike):
        # pyarrow is an extra, and takes a while to import.
        from dpmic_jax.data.source.files import open_file

        return open_file(data, schema_of(bounds))
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
    """The names of all columns of a table, to write a bounds file for; see `template`.

    What looks like a record is not taken for the header of a file.
    """
    if isinstance(data, str | os.PathLike):
        from dpmic_jax.data.source.files import header_names

        return header_names(data)
    return tuple(held_columns(data))
