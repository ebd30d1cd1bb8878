"""A column's values -> bin codes, by width on public bounds or by rank; once a column.

All sizes of a column are coded at once. The cuts of every size together make one finest
partition; a record keeps its bin in that one (`fine`), and a size is the list of fine bins
at which its parts begin (`edges`). So a grid and its refinement always agree, and one
histogram of fine bins serves every size.

Everything here is numpy in the column's own dtype: 32-bit JAX would merge values that
differ only in the low bits of a float64 or an int64.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Integer

from dpmic_jax.data.limits import (
    CategoryLimits,
    Column,
    Limits,
    NominalLimits,
    Scale,
    WithMissing,
)
from dpmic_jax.data.scales import on_scale
from dpmic_jax.mic.lookup import FEW, Coder, Cuts, Partition, Search, coder


class Partitions(NamedTuple):
    """Columns cut into parts of several sizes.

    Attributes:
      fine: bin of each record in the finest partition, column by column.
      edges: for each column and size, the fine bin at which part 0, 1, ... begins; the last
        edge, and all that pad the list, lie past every record.
      cuts: for each column the value at which fine bin 1, 2, ... begins: a record's bin is
        the number of cuts at or below its value.
    """

    fine: Integer[np.ndarray, "columns n"]
    edges: Integer[np.ndarray, "columns sizes longest"]
    cuts: tuple[Cuts, ...]

    def of_sizes(self, places: Sequence[int], longest: int) -> "Partitions":
        """The same columns in some of the sizes, of which `places` are the positions.

        The largest of them has fewer than `longest` parts.
        """
        kept, codes, found = [], [], []
        for cuts, fine, edges in zip(self.cuts, self.fine, self.edges[:, places], strict=True):
            past = len(cuts) + 1
            begins = np.unique([0, *edges[edges < past]])
            codes.append((np.searchsorted(begins, np.arange(past), side="right") - 1)[fine])
            found.append(np.searchsorted(begins, edges))  # those past every record too
            kept.append(cuts[begins[1:] - 1])
        fine = np.array(codes, np.min_scalar_type(max(map(len, kept))))
        return Partitions(fine, np.array(found, np.int32)[:, :, :longest], tuple(kept))


class Order(NamedTuple):
    """Records in order of value, and where each group that may not be split ends."""

    records: Integer[np.ndarray, " n"]
    ends: Integer[np.ndarray, " groups"]


Ties = Callable[[Column, int], Order]


def by_rank(columns: Sequence[Column], sizes: Sequence[int], ties: Ties) -> Partitions:
    """Parts that hold as equal numbers of records as ties allow."""
    n = len(columns[0])
    fine, cuts = _no_codes(len(columns), n, sizes), []
    begins = np.empty((len(columns), len(sizes), max(sizes) + 1), np.int64)
    orders = [ties(values, index) for index, values in enumerate(columns)]
    tied = [index for index, order in enumerate(orders) if len(order.ends) < n]
    begins[:] = _mass_edges((np.arange(1, n + 1),), sizes)
    if tied:
        begins[tied] = _mass_edges(tuple(orders[index].ends for index in tied), sizes)
    edges = np.empty(begins.shape, np.int32)
    for index, (values, order) in enumerate(zip(columns, orders, strict=True)):
        starts = np.unique(begins[index])
        inner = starts[(starts > 0) & (starts < n)]
        fine[index, order.records] = np.searchsorted(inner, np.arange(n), side="right")
        edges[index] = np.searchsorted(inner, begins[index], side="left") + (begins[index] > 0)
        cuts.append(values[order.records[inner]])
    return Partitions(fine, edges, tuple(cuts))


def _no_codes(
    columns: int, n: int, sizes: Sequence[int], most: int = 0
) -> Integer[np.ndarray, "columns n"]:
    """Room for the fine bins, in the smallest dtype that surely holds them, and `most` bins."""
    return np.empty((columns, n), np.min_scalar_type(max(sum(sizes), most)))


def _mass_edges(
    ends: tuple[Integer[np.ndarray, "_"], ...], sizes: Sequence[int]
) -> Integer[np.ndarray, "columns sizes longest"]:
    """Ranks at which the parts of every size begin, for columns with the given tied groups.

    Walking the groups in order, a part of h records that would grow by a group of s stops
    first iff |h + s - rs| >= |h - rs|, where rs is the mean size left for the parts to come.
    For a part that begins at rank p and a group of ranks a to b that says
    a + b >= 2 (p + rs), and the midpoints grow along the column: a binary search a part.
    """
    n = int(ends[0][-1])
    # One sorted array for all columns: column j's doubled midpoints lie in [j, j+1) * 4n.
    starts = [np.concatenate(([0], group[:-1])) for group in ends]
    offsets = 4 * n * np.arange(len(ends))
    first = np.cumsum([0, *(len(group) for group in ends)])
    middle = np.concatenate(
        [a + b + offset for a, b, offset in zip(starts, ends, offsets, strict=True)]
    )
    begin = np.append(np.concatenate(starts), n)
    left = np.broadcast_to(np.asarray(sizes), (len(ends), len(sizes)))
    edges = np.full((*left.shape, max(sizes) + 1), n, np.int64)
    edges[..., 0] = 0
    group = np.repeat(first[:-1, None], len(sizes), axis=1)
    for part in range(1, max(sizes)):
        rank = edges[..., part - 1]
        # ceil(2 rs) in integers: no rounding decides where a part stops.
        room = -(-2 * (n - rank) // np.maximum(left - part + 1, 1))
        goal = np.searchsorted(middle, 2 * rank + room + offsets[:, None], side="left")
        group = np.clip(goal, group + 1, first[1:, None])  # a part holds one group at least
        done = (group == first[1:, None]) | (part >= left)
        group = np.where(done, first[1:, None], group)
        edges[..., part] = np.where(done, n, begin[group])
    return edges


def by_range(
    columns: Sequence[Column], bounds: Sequence[Limits], sizes: Sequence[int]
) -> Partitions:
    """Parts of equal width on public bounds; what lies outside goes to the outer parts.

    The cut p/q of [low, high] is low + (high - low) p/q, computed exactly and rounded once
    to the column's dtype, so that sizes which share a cut share it to the last bit. On
    `ScaledBounds` it is the value at p/q of the way on that scale, to 40 digits.

    On bounds `WithMissing` the first of q parts holds the missing values, and the others
    are q - 1 parts of equal width. Categories are cut as `CategoryLimits` says. Nominal categories
    have one bin each, after one for missing values, if they fit into q parts; else all of them are
    in the first part. No kind of cut looks at a value.
    """
    (partitions,) = by_ranges(columns, bounds, [sizes])
    return partitions


def by_ranges(
    columns: Sequence[Column],
    bounds: Sequence[Limits],
    every: Sequence[Sequence[int]],
    rooms: Sequence[Sequence[int]] | None = None,
) -> tuple[Partitions, ...]:
    """`by_range` for several lists of sizes, looking at each value once.

    Args:
      columns: the values.
      bounds: limits of each column.
      every: the lists of sizes.
      rooms: for each of these sizes the most bins of a nominal column that has them as its parts;
        by default the size.
    """
    every, n = tuple(map(tuple, every)), len(columns[0])
    most = max((limits.bins for limits in bounds if isinstance(limits, NominalLimits)), default=0)
    fine = [_no_codes(len(columns), n, sizes, most) for sizes in every]
    cuts = []
    for index, (values, limits) in enumerate(zip(columns, bounds, strict=True)):
        own = every, values.dtype, type(limits), *limits
        partitions = _partitions(*own)
        code = Search(partitions) if n < FEW else _coder(*own)
        code(values, [codes[index] for codes in fine])
        cuts.append([partition.cuts for partition in partitions])
    return tuple(
        Partitions(codes, _range_edges(bounds, sizes, tuple(room)), own)
        for codes, sizes, room, own in zip(
            fine, every, rooms or every, zip(*cuts, strict=True), strict=True
        )
    )


def _partitions(
    every: tuple[tuple[int, ...], ...], dtype: np.dtype, kind: type, *limits: float | Scale
) -> tuple[Partition, ...]:
    """The cuts of one column for every list of sizes."""
    if kind is CategoryLimits:
        firsts = [_category_edges(sizes, *limits)[0] for sizes in every]
        return tuple(Partition(np.array(codes, dtype), len(codes)) for codes in firsts)
    if kind is NominalLimits:
        return (_nominal_cuts(dtype, *limits),) * len(every)
    return tuple(_width_cuts(sizes, kind, dtype, *limits) for sizes in every)


@lru_cache(maxsize=64)
def _coder(
    every: tuple[tuple[int, ...], ...], dtype: np.dtype, kind: type, *limits: float | Scale
) -> Coder:
    """Kept, for a table comes in batches."""
    return coder(_partitions(every, dtype, kind, *limits))


def _range_edges(
    bounds: Sequence[Limits], sizes: tuple[int, ...], rooms: tuple[int, ...]
) -> Integer[np.ndarray, "columns sizes longest"]:
    """Where the parts of every size begin among the fine bins of each column."""
    _, edges = _width_edges(sizes)
    edges = np.broadcast_to(edges, (len(bounds), *edges.shape))
    if not any(
        isinstance(limits, WithMissing | CategoryLimits | NominalLimits) for limits in bounds
    ):
        return edges
    edges = edges.copy()
    for column, limits in zip(edges, bounds, strict=True):
        if isinstance(limits, WithMissing):
            column[:] = _missing_edges(sizes)[1]
        elif isinstance(limits, CategoryLimits):
            column[:] = _category_edges(sizes, limits.categories)[1]
    more = max(*rooms, max(sizes)) - max(sizes)
    edges = np.pad(edges, ((0, 0), (0, 0), (0, more)), mode="edge")
    for column, limits in zip(edges, bounds, strict=True):
        if isinstance(limits, NominalLimits):
            column[:] = _nominal_edges(limits.bins, rooms, column.shape[1])
    return edges


def _nominal_cuts(dtype: np.dtype, count: Any, missing: Any) -> Partition:
    """Every code but the first begins a bin."""
    codes = np.arange(1 - missing, count).astype(dtype)
    return Partition(codes, len(codes))


def _nominal_edges(
    bins: int, rooms: tuple[int, ...], longest: int
) -> Integer[np.ndarray, "sizes longest"]:
    """Every bin is a part of the sizes that have room for all; else the first part has all."""
    own = np.minimum(np.arange(longest), bins)
    return np.where(np.array(rooms)[:, None] < bins, bins * (own > 0), own)


@lru_cache(maxsize=64)
def _width_edges(
    sizes: tuple[int, ...],
) -> tuple[tuple[Fraction, ...], Integer[np.ndarray, "sizes longest"]]:
    """Every cut p/q of the unit interval, and where each size finds its own among them."""
    fractions = sorted({Fraction(p, q) for q in sizes for p in range(1, q)})
    place = {fraction: index + 1 for index, fraction in enumerate(fractions)}
    edges = np.full((len(sizes), max(sizes) + 1), len(fractions) + 1, np.int32)
    for row, q in zip(edges, sizes, strict=True):
        # Without any part, as beside a part for missing values that is the only one, all are past.
        row[:q] = [0, *(place[Fraction(p, q)] for p in range(1, q))][:q]
    return tuple(fractions), edges


@lru_cache(maxsize=64)
def _missing_edges(
    sizes: tuple[int, ...],
) -> tuple[tuple[Fraction, ...], Integer[np.ndarray, "sizes longest"]]:
    """The same with fine bin 0, and part 0 of every size, for the missing values."""
    fractions, inner = _width_edges(tuple(q - 1 for q in sizes))
    return fractions, np.pad(inner + 1, ((0, 0), (1, 0)))


@lru_cache(maxsize=1024)
def _category_edges(
    sizes: tuple[int, ...], count: int
) -> tuple[tuple[int, ...], Integer[np.ndarray, "sizes longest"]]:
    """The codes at which some part begins, and where each size finds its own among them."""
    begins = [_category_begins(q, count) for q in sizes]
    firsts = sorted({code for codes in begins for code in codes})
    place = {code: index + 1 for index, code in enumerate(firsts)}
    edges = np.full((len(sizes), max(sizes) + 1), len(firsts) + 1, np.int32)
    for row, codes in zip(edges, begins, strict=True):
        row[: len(codes) + 1] = [0, *(place[code] for code in codes)]
    return tuple(firsts), edges


def _category_begins(parts: int, count: int) -> list[int]:
    """The code at which part 1, 2, ... begins; part 0 begins below all of them.

    The cut p/q of (-1/2, count - 1/2) is count p/q - 1/2, and a part begins at the next code.
    """
    if parts > count:
        return list(range(count))
    return [-((parts - 2 * count * p) // (2 * parts)) for p in range(1, parts)]


def _lowest(dtype: np.dtype) -> Cuts:
    """The cut below every value but -inf."""
    return np.array([(np.iinfo if dtype.kind in "iu" else np.finfo)(dtype).min], dtype)


@lru_cache(maxsize=1024)
def _width_cuts(
    sizes: tuple[int, ...],
    kind: type,
    dtype: np.dtype,
    low: float,
    high: float,
    scale: Scale = "linear",
) -> Partition:
    """The cuts in a column's dtype, and how many of them its largest value reaches.

    Looked up by sizes and bounds: hashing all fractions would take longer than a small screen.
    """
    if kind is WithMissing:
        cut, reached = _width_cuts(tuple(q - 1 for q in sizes), tuple, dtype, low, high, scale)
        lowest = _lowest(dtype)
        # A cut below every float of the dtype is reached by all but what is missing.
        return Partition(np.append(lowest, np.maximum(cut, lowest)), reached + 1)
    fractions, _ = _width_edges(sizes)
    exact = list(map(on_scale(low, high, scale), fractions))
    if dtype.kind in "iu":
        # An integer is at or above a cut iff it is at or above the cut rounded up.
        limits, up = np.iinfo(dtype), [math.ceil(cut) for cut in exact]
        inside = [min(max(cut, limits.min), limits.max) for cut in up]
        return Partition(np.array(inside, dtype), sum(cut <= limits.max for cut in up))
    return Partition(np.array([_round(cut, dtype) for cut in exact], dtype), len(exact))


def _round(value: Fraction, dtype: np.dtype) -> np.floating:
    """The float of `dtype` nearest to `value`, ties to even, rounding once."""
    with np.errstate(over="ignore"):
        near = dtype.type(float(value))
    if dtype.itemsize == 8 or np.isinf(near):
        return near
    # float(value) may have landed on the midpoint of two shorter floats.
    around = (np.nextafter(near, dtype.type(-np.inf)), near, np.nextafter(near, dtype.type(np.inf)))
    even = [candidate.view(f"u{dtype.itemsize}") & 1 for candidate in around]
    gaps = [
        abs(Fraction(float(candidate)) - value) if np.isfinite(candidate) else math.inf
        for candidate in around
    ]
    return around[min(range(3), key=lambda index: (gaps[index], even[index]))]


def codes(partitions: Partitions) -> Integer[np.ndarray, "sizes columns n"]:
    """Each record's part in every size of partition, in the smallest dtype that holds it."""
    fine, edges, cuts = partitions
    columns, sizes, longest = edges.shape
    finest = 1 + max(map(len, cuts))
    begins = np.zeros((columns, finest + 1), np.min_scalar_type(longest))
    out = np.empty((sizes, columns, fine.shape[1]), begins.dtype)
    column = np.arange(columns)[:, None]
    for size in range(sizes):
        begins[:] = 0
        np.add.at(begins, (column, np.minimum(edges[:, size, 1:], finest)), 1)
        part = np.cumsum(begins[:, :finest], axis=1, dtype=begins.dtype)
        out[size] = np.take_along_axis(part, fine, axis=1)
    return out
