"""Read a table with public bounds into coded columns, for tests of dependence."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpmic_jax.causal.queries import Coded
from dpmic_jax.data.schema import Categories, FixedValue, MissingBin, Rule, Schema
from dpmic_jax.data.source import Source, open_source
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.mic.binning import by_range
from dpmic_jax.runs.persons import drawn

_ROWS = 2**18  # rows that are read at a time


class CodedTable(NamedTuple):
    """Names of the columns, their codes, and the public schema of the table."""

    names: tuple[str, ...]
    data: Coded
    schema: Schema


@dataclass(frozen=True)
class TableCodes:
    """The coded columns of a table that has not been read yet, and their public description.

    Attributes:
      source: the table.
      bins: number of bins of a column of numbers, at least 2.
    """

    source: Source
    bins: int

    def __post_init__(self):
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or self.bins < 2:
            raise ValueError(f"expected bins to be an integer of at least 2, got {self.bins!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.source.names

    @property
    def schema(self) -> Schema:
        """The public schema of the table."""
        return self.source.schema

    @cached_property
    def n(self) -> int:
        """The number of records; no cell is parsed to count them."""
        return self.source.validate()

    @property
    def nominal(self) -> tuple[str, ...]:
        """Names of the columns whose categories have no order."""
        rules = zip(self.names, self.source.rules, strict=True)
        return tuple(name for name, rule in rules if isinstance(rule, Categories) and rule.nominal)

    @property
    def categories(self) -> tuple[int, ...]:
        """The number of categories of each column."""
        return tuple(categories_of(rule, self.bins) for rule in self.source.rules)

    def read(self, key: AnyKey | None = None) -> Coded:
        """Read the table and code every column; the key draws the records of persons."""
        codes, start = np.zeros((len(self.names), self.n), np.int32), 0
        source = self.source if key is None else drawn(self.source, key)
        for batch in source.batches(_ROWS):
            stop = start + len(batch[0])
            for column, (values, limits, count) in enumerate(
                zip(batch, self.source.bounds, self.categories, strict=True)
            ):
                # With one size the finest partition has exactly its bins.
                codes[column, start:stop] = by_range([values], [limits], [count]).fine[0]
            start = stop
        return Coded(codes, self.categories)


def categories_of(rule: Rule, bins: int) -> int:
    """The number of categories of a column; a bin for missing values is one more.

    Nominal columns have one unless missing values count as a public category.
    """
    if isinstance(rule, Categories) and rule.nominal:
        return len(rule.values) + (not isinstance(rule.missing, FixedValue))
    count = len(rule.values) if isinstance(rule, Categories) else bins
    return count + isinstance(rule.missing, MissingBin)


def read_coded(table: Any, *, bounds: Any, bins: int, key: AnyKey | None = None) -> CodedTable:
    """Read a table into codes: declared categories in their order, numbers in bins of equal width.

    Missing values with a bin of their own are the first category. Otherwise a missing number counts
    as the middle of the bounds, and a missing category joins the first; nominal columns have a
    category for it. A code depends on the schema and on its own value only. The codes are values of
    records, which is to say that they are not private.

    Args:
      table: an array, a data frame, or the path of a CSV or Parquet file.
      bounds: public bounds: {name: (low, high)}, a `Schema`, or the path of a bounds file.
      bins: number of bins of a column of numbers, at least 2.
      key: the key that draws the records of persons, if the bounds have `person`.
    """
    coded = TableCodes(open_source(table, bounds), bins)
    return CodedTable(coded.names, coded.read(key), coded.schema)
