"""The non-private front doors: one pair, or all pairs of a table."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

from dpmic_jax.data.limits import Column, NumberLimits
from dpmic_jax.data.table import (
    BoundsOf,
    Pairs,
    Table,
    bounds_of,
    one_pair,
    positions,
    same_length,
    table,
)
from dpmic_jax.mic import batch
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Characteristic, Measure, PairCharacteristic
from dpmic_jax.mic.grids import Cells, power
from dpmic_jax.mic.statistics import BinnedTable, MICe, MICr, Statistic
from dpmic_jax.mic.xlogx import Gains, gains_for


def mice(x: Any, y: Any, *, B: Cells = power(0.6), c: float = 15) -> float:
    """MICe of two columns.

    Args:
      x, y: two columns of numbers, record by record.
      B: the most cells a grid may have, or a rule of n such as `power(0.6)`.
      c: how many times finer than the parts wanted the master partition is.

    Returns:
      A number from 0 (independent) to 1 (one is a noiseless function of the other, and no value
      of it is frequent). A column of few values has less, even with itself: a flag has the entropy
      of its values, which is 1 only if they are balanced.
    """
    return _mic(x, y, MICe(B=B, c=c), None)


def micr(x: Any, y: Any, *, bounds: Sequence[NumberLimits], B: Cells, c: float = 5) -> float:
    """MICr of two columns, on public bounds `((x_low, x_high), (y_low, y_high))`."""
    return _mic(x, y, MICr(B=B, c=c), bounds)


def _mic(x: Any, y: Any, statistic: Statistic, bounds: BoundsOf | None) -> float:
    """MIC of a pair, without the grid that attains it."""
    cut, found = _scored(x, y, statistic, bounds)
    return np.asarray(read.mic(read.characteristic(cut.grids, found))).item()


def characteristic(
    x: Any, y: Any, *, statistic: Statistic, bounds: BoundsOf | None = None
) -> PairCharacteristic:
    """The whole characteristic matrix of a pair, and the grid that attains its maximum."""
    cut, found = _scored(x, y, statistic, bounds)
    matrix = read.characteristic(cut.grids, found)
    cuts = read.attaining_grid(cut, (0, 1), found[..., 0])
    return PairCharacteristic(matrix.values[0], matrix.entries, *cuts)


def _scored(
    x: Any, y: Any, statistic: Statistic, bounds: BoundsOf | None
) -> tuple[BinnedTable, Int[np.ndarray, "entries 2 1"]]:
    """A pair in bins, and the information of all its grids."""
    pair = one_pair(x, y)
    cut = _cut(pair.columns, statistic, _limits(pair, statistic, bounds, "bounds"))
    (found,) = _information(cut, np.array([[0, 1]]), gains_for, ())
    return cut, found


def characteristics(
    X: Any,
    *,
    pairs: Pairs,
    statistic: Statistic,
    bounds: BoundsOf | None = None,
    gains: Callable[[int], Gains] = gains_for,
    devices: Sequence[Device] = (),
) -> Characteristic:
    """The whole characteristic matrices of some pairs of columns of a table.

    Args:
      X: records by columns: an array, or a pandas, polars or pyarrow data frame.
      pairs: the columns of each pair (x, y), by name or by position.
      statistic, bounds, gains, devices: as for `pairwise`.

    Returns:
      One matrix a pair, in the order of `pairs`, and every statistic that is read off them.
    """
    data = table(X, "X")
    chosen = positions(data.names, pairs)
    cut = _cut(data.columns, statistic, _limits(data, statistic, bounds, "bounds"))
    tiles = _information(cut, chosen, gains, devices)
    found = [read.characteristic(cut.grids, tile) for tile in tiles]
    return Characteristic(np.concatenate([tile.values for tile in found]), found[0].entries)


@dataclass(frozen=True)
class Pairwise:
    """A statistic of many pairs of columns.

    Attributes:
      matrix: row x, column y.
      x_names, y_names: of the columns; the same for all pairs of one table.
      measure: name of what was measured.
      source: the data frame that came in, if it was one.
    """

    matrix: Float[np.ndarray, "x_columns y_columns"]
    x_names: tuple[str, ...]
    y_names: tuple[str, ...]
    measure: str
    source: Any = None

    def ranked(self) -> list[tuple[str, str, float]]:
        """Every pair once, the strongest first."""
        pairs = (
            itertools.combinations(range(len(self.x_names)), 2)
            if self.x_names == self.y_names
            else itertools.product(range(len(self.x_names)), range(len(self.y_names)))
        )
        rows = [(self.x_names[i], self.y_names[j], float(self.matrix[i, j])) for i, j in pairs]
        return sorted(rows, key=lambda row: -row[2])

    def to_frame(self) -> Any:
        """`ranked` as a data frame: of the flavour that came in, else pandas."""
        data = dict(zip(("x", "y", self.measure), zip(*self.ranked(), strict=True), strict=True))
        data = {name: list(values) for name, values in data.items()}
        if self.source is not None:
            implementation = nw.from_native(self.source, eager_only=True).implementation
            return nw.from_dict(data, backend=implementation).to_native()
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas: pip install pandas, or pass a data frame, or use ranked()"
            ) from None
        return pd.DataFrame(data)


def pairwise(
    X: Any,
    *,
    statistic: Statistic,
    bounds: BoundsOf | None = None,
    Y: Any = None,
    y_bounds: BoundsOf | None = None,
    measure: Measure = read.mic,
    gains: Callable[[int], Gains] = gains_for,
    devices: Sequence[Device] = (),
) -> Pairwise:
    """A statistic of all pairs of columns of a table, or of two tables.

    Args:
      X: records by columns: an array, or a pandas, polars or pyarrow data frame.
      statistic: `MICe()` or `MICr(B=...)`.
      bounds: for MICr, public (low, high) or `ScaledBounds` of every column of X, in order or by
        name.
      Y: if given, pair every column of X with every column of Y instead; one column of Y is
        one against all.
      y_bounds: the bounds of the columns of Y.
      measure: what to read off each characteristic matrix: `mic`, `tic`, `mas`, ...
      gains: `fast_gains`, or `exact_gains` for the same bits on any machine.
      devices: where to run; the first device of JAX's default backend if none are given.

    Returns:
      The statistic of every pair. Of one table the matrix is symmetric, and its diagonal
      holds each column with itself.
    """
    left = table(X, "X")
    limits = _limits(left, statistic, bounds, "bounds")
    if Y is None:
        if len(left.names) < 2:
            raise ValueError("expected X to have at least 2 columns, got 1; pass Y for cross pairs")
        if y_bounds is not None:
            raise ValueError("y_bounds are the bounds of Y, which was not passed")
        right, columns = left, left.columns
        pairs = np.array(list(itertools.combinations_with_replacement(range(len(columns)), 2)))
    else:
        right = table(Y, "Y")
        same_length(left.columns[0], right.columns[0], "X and Y")
        limits += _limits(right, statistic, y_bounds, "y_bounds")
        columns = left.columns + right.columns
        pairs = np.array(list(itertools.product(*_split(len(columns), len(left.columns)))))
    cut = _cut(columns, statistic, limits)
    found = _information(cut, pairs, gains, devices)
    values = np.concatenate([measure(read.characteristic(cut.grids, tile)) for tile in found])
    matrix = np.empty((len(left.names), len(right.names)))
    x, y = pairs.T - [[0], [len(columns) - len(right.names)]]
    matrix[x, y] = values
    if Y is None:
        matrix[y, x] = values
    return Pairwise(matrix, left.names, right.names, measure.__name__, left.source)


def _split(total: int, first: int) -> tuple[range, range]:
    return range(first), range(first, total)


def _limits(
    table: Table, statistic: Statistic, bounds: BoundsOf | None, argument: str
) -> tuple[NumberLimits, ...]:
    if isinstance(statistic, MICr):
        return bounds_of(table.names, bounds, argument)
    if bounds is not None:
        raise ValueError(f"MICe cuts by rank and takes no {argument}; leave them out, or use MICr")
    return ()


def _cut(
    columns: Sequence[Column], statistic: Statistic, limits: Sequence[NumberLimits]
) -> BinnedTable:
    if isinstance(statistic, MICr):
        return statistic.cut(columns, limits)
    return statistic.cut(columns)


def _information(
    cut: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Callable[[int], Gains],
    devices: Sequence[Device],
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score pairs tile by tile, with a bar on a terminal if that takes a while."""
    with tqdm(total=len(pairs), unit="pair", disable=None, delay=1) as bar:
        for found in batch.score_pairs(cut, pairs, gains(cut.n), devices=devices):
            yield found
            bar.update(found.shape[2])
