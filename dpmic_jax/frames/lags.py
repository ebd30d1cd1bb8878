"""Dependence of a time series on the past of others. Not private."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from dpmic_jax.data.frame import frame_of
from dpmic_jax.frames.pairwise import pairwise
from dpmic_jax.frames.result import Pairwise
from dpmic_jax.frames.rows import column_at, rows


def pairwise_lagged(X: Any, target: str, *, lags: Iterable[int], **options: Any) -> Pairwise:
    """A statistic of each column with a later (or earlier) record of one column.

    The value for lag k is of a column at time t and the target at time t + k. All values are of the
    same records of the columns, those whose t + k is in the table for every k, so they have the
    same grids and can be compared.

    There are no p-values: neighbouring records of a time series depend on each other, and a test
    that shuffles records would find every pair of smooth series dependent.

    Args:
      X: a table as for `pairwise`, whose records are at equal steps of time, in order.
      target: the name of the column that is looked at k steps later.
      lags: the values of k; negative ones look at the target before.
      **options: the arguments `statistic`, `measure`, `missing`, `gains` and `devices` of
        `pairwise`.

    Returns:
      As of `pairwise`, with a row for each column, the target's own past among them, and a column
      named "target, lag k" for each lag.
    """
    taken = set(options) & {"Y", "p_values", "control", "bounds", "y_bounds"}
    if taken:
        raise TypeError(f"pairwise_lagged takes no {', '.join(sorted(taken))}")
    steps = [operator.index(lag) for lag in lags]
    if not steps or len(set(steps)) < len(steps):
        raise ValueError(f"expected lags to be distinct whole numbers, got {steps}")
    frame = frame_of(X, "X")
    place = column_at(frame, target, "target")
    times = np.arange(max(0, -min(steps)), frame.n - max(0, *steps))
    if len(times) == 0:
        raise ValueError(f"expected lags within the {frame.n} records, got {steps}")
    later = {f"{target}, lag {k}": _column(X, place, times + k) for k in steps}
    return pairwise(rows(X, times), Y=later, **options)


def _column(X: Any, place: int, records: np.ndarray) -> Any:
    """Some records of one column."""
    if isinstance(X, Mapping):
        return rows(list(X.values())[place], records)
    if hasattr(X, "iloc"):
        return X.iloc[records, place]
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[records, place].to_native()
    return np.asarray(X)[records, place]
