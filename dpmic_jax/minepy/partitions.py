"""How minepy cuts columns: rows of equal mass, clumps, superclumps.

Reshef et al. (2011), supplement: EquipartitionYAxis, GetClumpsPartition and
GetSuperclumpsPartition. Records are taken by rank, in the order of a column. A run is a range of
ranks that may not be cut: a tied value, or a clump.
"""

import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from dpmic_jax.mic.grids import Grid


class Runs(NamedTuple):
    """For each rank, where its run begins and where it ends; several series side by side."""

    start: Int[np.ndarray, "n series"]
    end: Int[np.ndarray, "n series"]


class Columns(NamedTuple):
    """Columns of a table, sorted, and cut into rows of every size.

    Attributes:
      order: the records of each column by growing value.
      ties: the tied values of each column, as runs.
      rows: each record's row in every size; records are in the order of the table.
      obtained: how many rows each size really has.
    """

    order: Int[np.ndarray, "columns n"]
    ties: Runs
    rows: Integer[np.ndarray, "columns n grids"]
    obtained: Int[np.ndarray, "columns grids"]


def cut_columns(values: Float[np.ndarray, "columns n"], grids: Sequence[Grid]) -> Columns:
    """Sort columns and cut each into the rows of all grids: EquipartitionYAxis."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    ties = runs((ordered[:, 1:] != ordered[:, :-1]).T)
    sizes = np.array([grid.rows for grid in grids], np.int64)
    series = np.repeat(np.arange(len(values)), len(sizes))
    edges = equal_mass(ties, np.tile(sizes, len(values)), series, whole=False)
    n, shape = values.shape[1], (len(values), values.shape[1], len(sizes))
    by_rank = parts_of(edges, n).reshape(n, len(values), len(sizes)).swapaxes(0, 1)
    rows = np.empty(shape, np.min_scalar_type(max(sizes, default=0)))
    rows[np.arange(len(values))[:, None], order] = by_rank
    return Columns(order, ties, rows, by_rank[:, -1].astype(np.int64) + 1)


def clumps(rows: Integer[np.ndarray, "n grids"], ties: Runs) -> Bool[np.ndarray, "n_minus_1 grids"]:
    """Whether a clump begins at rank 1, 2, ...: GetClumpsPartition.

    Records in one row make a clump; tied records in several rows make one of their own.
    """
    changes = rows[1:] != rows[:-1]
    begins = np.flatnonzero(ties.end[:-1, 0] == np.arange(1, len(rows)))  # of ties, less 1
    if len(begins) == len(changes):
        return changes
    between = np.zeros((len(changes), 1), bool)
    between[begins] = True
    inside = np.append(changes & ~between, np.zeros_like(changes[:1]), axis=0)
    # Changes inside the tie that begins at each rank of 0, begins + 1.
    mixed = np.logical_or.reduceat(inside, np.append(0, begins + 1), axis=0)
    found = np.zeros_like(changes)
    found[begins] = changes[begins] | mixed[1:] | mixed[:-1]
    return found


def superclumps(
    begins: Bool[np.ndarray, "n_minus_1 grids"], grids: Sequence[Grid]
) -> Int[np.ndarray, "parts grids"]:
    """Ranks at which the parts of each grid's master end: GetSuperclumpsPartition."""
    most = np.array([grid.master for grid in grids], np.int64)
    whole = begins.sum(axis=0) + 1 <= most
    return equal_mass(runs(begins), most, np.arange(len(most)), whole=whole)


def runs(begins: Bool[np.ndarray, "n_minus_1 series"]) -> Runs:
    """Runs that begin at rank 0, and at rank 1, 2, ... where it says so."""
    n = len(begins) + 1
    rank = np.arange(1, n)[:, None]
    edge = np.zeros((1, begins.shape[1]), np.int64)
    start = np.maximum.accumulate(np.concatenate([edge, np.where(begins, rank, 0)]))
    following = np.concatenate([np.where(begins, rank, n), edge + n])
    return Runs(start, np.minimum.accumulate(following[::-1])[::-1])


def equal_mass(
    runs: Runs,
    parts: Int[np.ndarray, " lanes"],
    series: Int[np.ndarray, " lanes"],
    *,
    whole: Bool[np.ndarray, " lanes"] | bool,
) -> Int[np.ndarray, "most_parts lanes"]:
    """Ranks at which parts of as equal mass as the runs allow end; n where there are no more.

    Args:
      runs: what may not be cut.
      parts: how many parts to make.
      series: which series of runs each lane cuts.
      whole: where every run is a part of its own.
    """
    n = len(runs.start)
    edges = np.empty((max(parts, default=0), len(parts)), np.int64)
    place = np.zeros(len(parts), np.int64)
    for made in range(len(edges)):

        def read(rank: Any) -> tuple[Any, Any]:
            return runs.start[rank, series], runs.end[rank, series]

        left = np.maximum(parts - made, 1)
        edges[made] = place = next_cut(np, place, left, n, whole, read)
    return edges


def next_cut(
    xp: ModuleType,
    place: Any,
    left: Any,
    n: Any,
    whole: Any,
    read: Callable[[Any], Any],
    divide: Callable[[Any, Any], Any] = operator.floordiv,
) -> Any:
    """Where a part ends that begins at rank `place`, if `left` parts are still to be made.

    The paper walks along the runs, and ends a part of h records before a run of s iff
    |h + s - m| >= |h - m|, with m the mean size of the parts to come. For a run of ranks a to b
    that says a + b >= 2 (place + m): a part ends where the run at rank place + m begins, if that
    is at least as near as where it ends, and if the part then holds anything. `read(rank)` gives
    a and b; `xp` is numpy or jax.numpy.
    """
    mean = divide(n - place, left)
    rest = n - place - mean * left
    # 2 (place + m) rounded up, in integers: no rounding decides where a part ends.
    twice = 2 * (place + mean) + xp.where(rest > 0, xp.where(2 * rest > left, 2, 1), 0)
    middle = xp.where(whole, place, place + mean)
    begin, end = read(xp.minimum(middle, n - 1))
    before = (begin + end >= twice) & (begin > place) & ~xp.asarray(whole)
    return xp.where(place < n, xp.where(before, begin, end), n)


def parts_of(edges: Int[np.ndarray, "parts lanes"], n: int) -> Int[np.ndarray, "n lanes"]:
    """The part of every rank."""
    ends = np.zeros((n + 1, edges.shape[1]), bool)
    np.put_along_axis(ends, edges, True, axis=0)
    return np.cumsum(ends[:n], axis=0, dtype=np.int32)
