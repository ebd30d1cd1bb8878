"""Dependence of pairs of columns within the groups of a third one. Not private."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from dpmic_jax.data.frame import MOST_CATEGORIES, TakenColumn, frame_of
from dpmic_jax.data.table import FEWEST_RECORDS
from dpmic_jax.frames.pairwise import pairwise
from dpmic_jax.frames.result import Pairwise
from dpmic_jax.frames.rows import column_at, rows
from dpmic_jax.inference.tables import Rng


def pairwise_given(X: Any, given: str, *, rng: Rng = 0, **options: Any) -> Pairwise:
    """A statistic of all pairs of columns, given a column of groups.

    The value of a pair is the mean of its values in the groups, weighted by their complete records.
    A dependence that comes from differences between groups alone is not in it. Groups of fewer than
    4 complete records of a pair are left out of its value; small ones have larger values by chance.

    P-values are of independence in every group: those of the groups, which are independent, are
    combined by Fisher's method, so each is valid.

    Args:
      X: a table, as for `pairwise`.
      given: the name of the column of groups, of at most 64 values. Records that miss it are left
        out.
      rng: a seed or generator of the random tables behind p-values.
      **options: the arguments `statistic`, `measure`, `missing`, `p_values`, `control`, `gains`,
        `devices` and `bounds` of `pairwise`.

    Returns:
      As of `pairwise`, without the column of groups. `records` are those of the groups used.
    """
    if "Y" in options:
        raise ValueError("expected one table; pairs of two tables are not scored by groups")
    frame = frame_of(X, "X")
    place = column_at(frame, given, "given")
    generator, found = np.random.default_rng(rng), []
    for group in _groups(frame.columns[place]):
        if len(group) >= FEWEST_RECORDS:
            found.append(pairwise(rows(X, group), rng=generator, **options))
    if not found:
        raise ValueError(f"no group of {given!r} has {FEWEST_RECORDS} records")
    others = np.delete(np.arange(len(frame.columns)), place)
    some = np.ix_(others, others)
    values, records = (np.array([getattr(each, of)[some] for each in found]) for of in _OF)
    records = np.where(np.isnan(values), 0, records)
    total = records.sum(axis=0)
    weighted = np.where(records > 0, values, 0) * records
    p_values = None
    if found[0].p_values is not None:
        p_values = _fisher(np.array([each.p_values[some] for each in found]))
    columns = tuple(frame.columns[i] for i in others)
    return replace(
        found[0],
        matrix=np.where(total > 0, weighted.sum(axis=0) / np.maximum(total, 1), np.nan),
        records=total,
        p_values=p_values,
        x_columns=columns,
        y_columns=columns,
        statistic=f"{found[0].statistic} given {given}",
    )


_OF = "matrix", "records"


def _groups(column: TakenColumn) -> list[np.ndarray]:
    """The records of each group."""
    occur, group = np.unique(column.values, return_inverse=True)
    if len(occur) > MOST_CATEGORIES:
        raise ValueError(
            f"column {column.name!r} has {len(occur)} values, and at most {MOST_CATEGORIES} can "
            "be groups: cut it into ranges first"
        )
    found = (np.flatnonzero((group == i) & ~column.missing) for i in range(len(occur)))
    return [records for records in found if len(records)]


def _fisher(p_values: np.ndarray) -> np.ndarray:
    """P-values of several independent tests together; NaN where there is none."""
    known = ~np.isnan(p_values)
    statistic = -2 * np.log(np.where(known, p_values, 1)).sum(axis=0)
    freedom = 2 * known.sum(axis=0)
    return np.where(freedom > 0, chi2.sf(statistic, np.maximum(freedom, 1)), np.nan)
