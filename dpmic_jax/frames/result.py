"""A statistic of many pairs of columns, with p-values if they were asked for. Not private."""

import itertools
import operator
import os
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.data.frame import TakenColumn
from dpmic_jax.inference.multiple_testing import Control, FalseDiscovery


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Pairwise:
    """A statistic of many pairs of columns.

    Attributes:
      matrix: row x, column y; NaN for pairs of fewer than 4 complete records.
      records: complete records of each pair.
      p_values: of each pair, NaN of a column with itself; None if they were not asked for.
      x_columns, y_columns: the columns, as they were taken; the same for all pairs of one table.
      measure: name of what was measured.
      statistic: name of the statistic.
      control: how p-values are adjusted for the number of pairs.
      backend: the library of the caller's data frame; None if the table was not a data frame.
    """

    matrix: Float[np.ndarray, "x_columns y_columns"]
    records: Int[np.ndarray, "x_columns y_columns"]
    x_columns: tuple[TakenColumn, ...]
    y_columns: tuple[TakenColumn, ...]
    measure: str
    statistic: str
    p_values: Float[np.ndarray, "x_columns y_columns"] | None = None
    control: Control = FalseDiscovery()
    backend: str | None = None

    @property
    def x_names(self) -> tuple[str, ...]:
        """Names of the columns in the rows of `matrix`."""
        return tuple(column.name for column in self.x_columns)

    @property
    def y_names(self) -> tuple[str, ...]:
        """Names of the columns in the columns of `matrix`."""
        return tuple(column.name for column in self.y_columns)

    @property
    def pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """Positions in `matrix` of every pair once, the strongest first, NaN last."""
        places = range(len(self.x_columns))
        every = (
            itertools.combinations(places, 2)
            if self.x_columns is self.y_columns
            else itertools.product(places, range(len(self.y_columns)))
        )
        pairs = np.array(list(every)).reshape(-1, 2)
        return pairs[np.argsort(-self.matrix[tuple(pairs.T)], kind="stable")]

    @property
    def adjusted(self) -> Float[np.ndarray, " pairs"]:
        """P-values adjusted for the number of pairs by `control`, in the order of `pairs`."""
        if self.p_values is None:
            raise ValueError("there are no p-values: call pairwise(..., p_values=True)")
        found = self.p_values[tuple(self.pairs.T)]
        known = ~np.isnan(found)
        found[known] = self.control.adjusted(found[known])
        return found

    def columns(self) -> dict[str, Any]:
        """The columns of `to_frame`: lists of names, arrays of numbers."""
        place = x, y = tuple(self.pairs.T)
        found: dict[str, Any] = {
            "x": [self.x_names[i] for i in x],
            "y": [self.y_names[j] for j in y],
            self.measure: self.matrix[place],
            "records": self.records[place],
        }
        if self.p_values is not None:
            found |= {"p": self.p_values[place], "p_adjusted": self.adjusted}
        return found

    def ranked(self) -> list[tuple[str, str, float]]:
        """Every pair once, the strongest first."""
        found = self.columns()
        return list(zip(found["x"], found["y"], found[self.measure].tolist(), strict=True))

    def top(self, k: int) -> Any:
        """The first k rows of `to_frame`: the k strongest pairs."""
        return self._framed({name: values[: _least(k)] for name, values in self.columns().items()})

    def to_frame(self) -> Any:
        """A data frame with a row for each pair, the strongest first.

        It is of the library of the caller's data frame, or of pandas.
        """
        return self._framed(self.columns())

    def wide(self) -> Any:
        """`matrix` as a data frame. That of pandas has the names of x as its index.

        Others have them in a first column, named "column".
        """
        values = dict(zip(self.y_names, self.matrix.T, strict=True))
        if self.backend in (None, "pandas"):
            return _pandas().DataFrame(values, index=list(self.x_names))
        first = "column"
        while first in values:
            first += "_"
        return self._framed({first: list(self.x_names), **values})

    def describe(self) -> Any:
        """A data frame that says how each column was taken, and how many values it misses."""
        same = self.x_columns is self.y_columns
        columns = self.x_columns if same else self.x_columns + self.y_columns
        return self._framed(
            {
                "column": [column.name for column in columns],
                "kind": [column.kind for column in columns],
                "categories": [len(column.categories) for column in columns],
                "missing": [int(column.missing.sum()) for column in columns],
                "taken": [column.note() for column in columns],
            }
        )

    @property
    def plot(self) -> Any:
        """Figures: `.heatmap()`, `.clustermap()`, `.network(threshold)`, `.volcano()`."""
        from dpmic_jax.frames.plots import PairPlots, scores_of

        return PairPlots(scores_of(self), self)

    def text(self, rows: int) -> str:
        """A table of the strongest `rows` pairs with bars, and what it is in one line."""
        from dpmic_jax.frames import text

        return text.text(self, rows)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """A self-contained HTML page, which is also written to `path`, if one is given.

        It has a heat map, and a table that can be sorted and filtered. It shows exact values.
        """
        from dpmic_jax.frames import html
        from dpmic_jax.results.export import write_text

        page = html.page(self)
        if path is not None:
            write_text(path, page)
        return page

    def __repr__(self) -> str:
        return self.text(rows=15)

    def _repr_html_(self) -> str:
        from dpmic_jax.frames import text

        return text.html(self, rows=15)

    def _framed(self, columns: dict[str, Any]) -> Any:
        if self.backend is None:
            return _pandas().DataFrame(columns)
        backend: Any = self.backend
        return nw.from_dict(columns, backend=backend).to_native()


def _least(k: int) -> int:
    if operator.index(k) < 1:
        raise ValueError(f"expected k >= 1, got {k}")
    return k


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            "to_frame needs pandas: pip install pandas, or pass a data frame, or use ranked()"
        ) from None
    return pd
