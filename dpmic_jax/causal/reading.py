"""A table with public bounds -> columns of codes, for tests of dependence."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.causal.queries import Coded
from dpmic_jax.data.schema import Categories, MissingBin, Rule, Schema
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.mic.binning import by_range

_ROWS = 2**18  # read at a time


class CodedTable(NamedTuple):
    """Names of the columns, their codes, and what is public about the table."""

    names: tuple[str, ...]
    data: Coded
    schema: Schema


@dataclass(frozen=True)
class TableCodes:
    """The codes of a table that are yet to be read, and what is public about them.

    Attributes:
      source: the table.
      bins: how many parts a column of numbers has, at least 2.
    """

    source: Source
    bins: int

    def __post_init__(self):
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or self.bins < 2:
            raise ValueError(f"expected bins to be an integer of at least 2, got {self.bins!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return self.source.names

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return self.source.schema

    @cached_property
    def n(self) -> int:
        """The number of records; no cell is parsed for it."""
        return self.source.validate()

    @property
    def categories(self) -> tuple[int, ...]:
        """How many each column may have."""
        return tuple(categories_of(rule, self.bins) for rule in self.source.rules)

    def read(self) -> Coded:
        """The codes themselves."""
        codes, start = np.zeros((len(self.names), self.n), np.int32), 0
        for batch in self.source.batches(_ROWS):
            stop = start + len(batch[0])
            for column, (values, own, parts) in enumerate(
                zip(batch, self.source.bounds, self.categories, strict=True)
            ):
                codes[column, start:stop] = by_range([values], [own], [parts]).fine[0]
            start = stop
        return Coded(codes, self.categories)


def categories_of(rule: Rule, bins: int) -> int:
    """How many codes a column may have; missing values with a bin of their own are one more."""
    parts = len(rule.values) if isinstance(rule, Categories) else bins
    return parts + isinstance(rule.missing, MissingBin)


def read_coded(table: Any, *, bounds: Any, bins: int) -> CodedTable:
    """Columns as codes: declared categories in their order, numbers in parts of equal width.

    Missing values with a part of their own are the first category; else those of numbers count
    as the middle of the bounds, and those of categories join the first. Codes depend on the schema
    and each value alone.

    Args:
      table: an array, a data frame, or the path of a CSV or Parquet file.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      bins: how many parts a column of numbers has, at least 2.
    """
    coded = TableCodes(open_source(table, bounds), bins)
    return CodedTable(coded.names, coded.read(), coded.schema)
