"""A table with public bounds -> columns of codes, for tests of dependence."""

from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.causal.queries import Coded
from dpmic_jax.mic.binning import WithMissing, by_range
from dpmic_jax.schema import Categories, Schema
from dpmic_jax.source import open_source

_ROWS = 2**18  # read at a time


class CodedTable(NamedTuple):
    """Names of the columns, their codes, and what is public about the table."""

    names: tuple[str, ...]
    data: Coded
    schema: Schema


def read_coded(table: Any, *, bounds: Any, bins: int) -> CodedTable:
    """Columns as codes: declared categories in their order, numbers in parts of equal width.

    Missing values with a part of their own are the first category. Nothing is looked at but
    whether the table is as the bounds say: codes depend on the schema and each value alone.

    Args:
      table: an array, a data frame, or the path of a CSV or Parquet file.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      bins: how many parts a column of numbers has, at least 2.
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 2:
        raise ValueError(f"expected bins to be an integer of at least 2, got {bins!r}")
    source = open_source(table, bounds)
    n = source.validate()
    categories = tuple(
        (len(rule.values) if isinstance(rule, Categories) else bins) + isinstance(own, WithMissing)
        for rule, own in zip(source.rules, source.bounds, strict=True)
    )
    codes, start = np.zeros((len(source.names), n), np.int32), 0
    for batch in source.batches(_ROWS):
        stop = start + len(batch[0])
        for column, (values, own, parts) in enumerate(
            zip(batch, source.bounds, categories, strict=True)
        ):
            codes[column, start:stop] = by_range([values], [own], [parts]).fine[0]
        start = stop
    return CodedTable(source.names, Coded(codes, categories), source.schema)
