"""Exact values: MIC of one pair, characteristic matrices of some. Not private."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from dpmic_jax.data.limits import Column, NumberLimits
from dpmic_jax.data.table import (
    BoundsOf,
    Pairs,
    Table,
    bounds_of,
    one_pair,
    positions,
    table,
)
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic import grid_groups
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Characteristic, PairCharacteristic
from dpmic_jax.mic.grids import Cells, power
from dpmic_jax.mic.one_pair import score_pair
from dpmic_jax.mic.statistics import BinnedTable, MICe, MICr, Statistic
from dpmic_jax.mic.xlogx import Gains, exact_gains, gains_for


def mice(x: Any, y: Any, *, B: Cells = power(0.6), c: float = 15) -> float:
    """MICe of two columns. Not private.

    Calls that are repeated, as by `df.corr(method=dpmic_jax.mice)`, use compiled programs, which
    serve columns of other lengths too and give the same bits. For a table, `pairwise` is faster.
    For many records, so is `characteristic(x, y, statistic=MICe.for_large_n()).mic`.

    Args:
      x, y: two columns of numbers, record by record: arrays, or Series of pandas or polars.
      B: the most cells a grid may have, or a rule of n such as `power(0.6)`.
      c: how many times finer than the parts wanted the master partition is.

    Returns:
      A number from 0 to 1, near 0 if the columns are independent. It is 1 only if the axis with
      fewer parts is balanced and a noiseless function of the other. A column of few values that
      are not balanced has less with every column, itself included: a flag at most its entropy,
      which is 0.47 if one value has 10 % of the records (docs/rare_flags.md).
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
    found = score_pair(cut)
    if found is None:
        (found,) = _information(cut, np.array([[0, 1]]), exact_gains, ())
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
        for found in grid_groups.score_pairs(cut, pairs, gains(cut.n), devices=devices):
            yield found
            bar.update(found.shape[2])
