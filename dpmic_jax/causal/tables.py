"""Counts of many queries at once: records by block of the given columns, by x and by y.

The records enter here and nowhere else. Queries that share their given columns are counted
together, in one of two ways that end in the same integers. Many pairs of few categories: records
are sorted by block, columns are written as indicators of all categories but the last, and a
product of the indicators with themselves counts every pair. Few pairs, or many categories: one
scatter-add of flattened codes for each.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Int32, Int64, UInt8

from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.mic.padding import decade_if_small, rung
from dpmic_jax.mic.programs import EVERYWHERE, Program, compiled

LARGEST_TABLE = 2**20  # cells of one query
_HELD = 2**22  # cells of the tables that are held at a time
_ROWS = 4096  # records of a product, at most: its sums are then exact in float32
# A record costs a product about this much less than a scatter-add, for each entry.
_CHEAPER = 32
_FEWEST = 16  # pairs that are worth a product
_PADDED = 16  # widths are rounded up to this: few programs serve all


class Tables(NamedTuple):
    """Counts of some queries, all of one shape."""

    place: Int64[np.ndarray, " some"]  # which of the queries these are
    counts: Int64[np.ndarray, "some blocks rows columns"]


class _Indicators(NamedTuple):
    """Of all categories but each column's last, and at the end of every record."""

    first: dict[int, int]  # where a column's begin
    held: UInt8[Array, "n_up width"]  # records from n on are none


def blocks(query: Query, categories: Sequence[int]) -> int:
    """How many blocks the given columns can make; empty ones count."""
    return prod(categories[column] for column in query.given)


def check(queries: Sequence[Query], categories: Sequence[int]) -> None:
    """Refuse queries that make no sense, and tables that are too large."""
    for query in queries:
        x, y, given = query
        named = (x, y, *given)
        if min(named) < 0 or max(named) >= len(categories):
            raise ValueError(f"expected columns 0 .. {len(categories) - 1} in queries, got {query}")
        if len(set(named)) < len(named) or list(given) != sorted(given):
            raise ValueError(
                f"expected x, y and the given columns to be different, and the given ones in "
                f"ascending order, got {query}"
            )
        cells = categories[x] * categories[y] * blocks(query, categories)
        if cells > LARGEST_TABLE:
            raise ValueError(
                f"{query} has a table of {cells} cells, one for each combination of categories; "
                f"at most {LARGEST_TABLE} are counted: join categories, use coarser bins, or "
                "condition on fewer columns"
            )


def tables(data: Coded, queries: Sequence[Query]) -> Iterator[Tables]:
    """The counts of all queries, in some order, a part at a time."""
    check(queries, data.categories)
    together: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, query in enumerate(queries):
        together[query.given].append(place)
    everything = _named(queries)
    held: dict[tuple[int, ...], _Indicators] = {}
    for given, places in together.items():
        block, count = _block(data, given)
        named = _named([queries[place] for place in places])
        # Indicators of nearly the same columns are made once.
        named = everything if 4 * len(named) >= 3 * len(everything) else named
        width = 1 + sum(data.categories[c] - 1 for c in named)
        products = len(places) >= _FEWEST and count * width**2 <= 4 * _HELD
        if products and width**2 <= _CHEAPER * len(places):
            if named not in held:
                held = {named: _indicators(data, named)}
            yield from _by_products(data, queries, places, held[named], block, count)
        else:
            yield from _one_by_one(data, queries, places, block, count)


def _named(queries: Sequence[Query]) -> tuple[int, ...]:
    return tuple(sorted({column for query in queries for column in query[:2]}))


def _block(data: Coded, given: tuple[int, ...]) -> tuple[Int64[np.ndarray, " n"], int]:
    """The block of each record, and how many there can be."""
    block, count = np.zeros(data.n, np.int64), 1
    for column in given:
        block = block * data.categories[column] + data.codes[column]
        count *= data.categories[column]
    return block, count


def _parts(
    data: Coded, queries: Sequence[Query], places: Sequence[int], count: int
) -> Iterator[tuple[Int64[np.ndarray, " some"], int, int]]:
    """Queries of one shape, as many as are held at a time."""
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place in places:
        x, y, _ = queries[place]
        shapes[data.categories[x], data.categories[y]].append(place)
    for (rows, columns), alike in shapes.items():
        step = max(1, _HELD // (count * rows * columns))
        for start in range(0, len(alike), step):
            yield np.array(alike[start : start + step]), rows, columns


def _one_by_one(
    data: Coded,
    queries: Sequence[Query],
    places: Sequence[int],
    block: Int64[np.ndarray, " n"],
    count: int,
) -> Iterator[Tables]:
    for some, rows, columns in _parts(data, queries, places, count):
        found = np.empty((len(some), count * rows * columns), np.int64)
        for row, place in zip(found, some, strict=True):
            x, y, _ = queries[place]
            cell = (block * rows + data.codes[x]) * columns + data.codes[y]
            row[:] = np.bincount(cell, minlength=len(row))
        yield Tables(some, found.reshape(len(some), count, rows, columns))


def _by_products(
    data: Coded,
    queries: Sequence[Query],
    places: Sequence[int],
    held: _Indicators,
    block: Int64[np.ndarray, " n"],
    count: int,
) -> Iterator[Tables]:
    first, indicators = held
    whole = indicators.shape[1] - 1  # an indicator of every record
    rows, owner = _sorted_by_block(block, count)
    pairs = _products(indicators, rows, owner, count)
    for some, height, width in _parts(data, queries, places, count):
        at = [
            np.array([[*range(first[c], first[c] + size - 1), whole] for c in columns])
            for size, columns in (
                (height, [queries[place].x for place in some]),
                (width, [queries[place].y for place in some]),
            )
        ]
        found = pairs[:, at[0][:, :, None], at[1][:, None, :]].astype(np.int64)
        # The last category is what the others leave of all records.
        found[..., -1, :] -= found[..., :-1, :].sum(axis=-2)
        found[..., -1] -= found[..., :-1].sum(axis=-1)
        yield Tables(some, np.moveaxis(found, 0, 1))


def _indicators(data: Coded, named: Sequence[int]) -> _Indicators:
    first, begin = {}, 0
    for column in named:
        first[column] = begin
        begin += data.categories[column] - 1
    width = -(-(begin + 1) // _PADDED) * _PADDED
    found = np.zeros((width, 1 + decade_if_small(data.n, width)), np.uint8)
    for column, start in first.items():
        for category in range(data.categories[column] - 1):
            found[start + category, : data.n] = data.codes[column] == category
    found[-1, : data.n] = 1
    return _Indicators(first, jnp.asarray(np.ascontiguousarray(found.T)))


def _sorted_by_block(
    block: Int64[np.ndarray, " n"], count: int
) -> tuple[Int32[np.ndarray, "products rows"], Int32[np.ndarray, " products"]]:
    """Records in groups that lie in one block each, filled up with n, which is no record."""
    n = len(block)
    rows = max(64, min(_ROWS, rung(max(n // rung(count, 1), 1), 1)))
    sizes = np.bincount(block, minlength=count)
    groups = -(-sizes // rows)
    owner = np.repeat(np.arange(count), groups)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(groups) - groups, groups)
    begin = (np.cumsum(sizes) - sizes)[owner] + within * rows
    spot = begin[:, None] + np.arange(rows)
    order = np.append(np.argsort(block.astype(np.min_scalar_type(count)), kind="stable"), n)
    record = order[np.where(spot < np.cumsum(sizes)[owner][:, None], spot, n)]
    return record.astype(np.int32), owner.astype(np.int32)


def _products(
    indicators: UInt8[Array, "n_up width"],
    rows: Int32[np.ndarray, "products rows"],
    owner: Int32[np.ndarray, " products"],
    count: int,
) -> Int32[np.ndarray, "blocks width width"]:
    """How many records of each block have both of two indicators."""
    number = len(owner)
    up = rung(number, 1) - number
    given = indicators, np.pad(rows, ((0, up), (0, 0))), np.pad(owner, (0, up)), np.int32(number)
    program = Program(_add_products, (("count", rung(count, 1)),), (EVERYWHERE,) * 4, EVERYWHERE)
    mesh = Mesh(np.array(jax.devices()[:1]), ("pairs",))
    return np.asarray(compiled(program, mesh, *given)(*given))[:count]


def _add_products(
    indicators: UInt8[Array, "n_up width"],
    rows: Int32[Array, "products_up rows"],
    owner: Int32[Array, " products_up"],
    number: Int32[Array, ""],
    *,
    count: int,
) -> Int32[Array, "blocks_up width width"]:
    """The first so many products, each added to its block; the others only pad."""

    def add(i, total):
        held = indicators.at[rows[i]].get(mode="promise_in_bounds").astype(jnp.float32)
        both = jnp.matmul(held.T, held, precision=lax.Precision.HIGHEST)
        return total.at[owner[i]].add(both.astype(jnp.int32))

    width = indicators.shape[1]
    return lax.fori_loop(0, number, add, jnp.zeros((count, width, width), jnp.int32))
