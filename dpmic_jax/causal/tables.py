"""Contingency tables of many queries at once: counts by block of the given columns, by x and by y.

A block is a combination of categories of the given columns. Rank tests and contingency tests read
the records through this module only. Queries that share their given columns are counted together,
in one of two ways with the same result. For many pairs of few categories the records are sorted by
block, every column becomes indicators of its categories but the last, and a product of the
indicators with themselves counts every pair. For few pairs, or many categories, each pair takes one
`bincount` of flattened codes.
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

LARGEST_TABLE = 2**20  # cells of the table of one query
_CELLS_HELD = 2**22  # cells of the tables that are in memory at a time
_PRODUCT_ROWS = 4096  # most records of one product: far below 2^24, so float32 sums are exact
# An entry of a product costs about this much less, for each record, than a bincount.
_PRODUCT_SPEEDUP = 32
_FEWEST_PAIRS = 16  # fewest pairs for which a product is worth while
_WIDTH_STEP = 16  # widths are rounded up to a multiple of this, so that few programs are compiled


class Tables(NamedTuple):
    """Tables of some queries, all of one shape."""

    place: Int64[np.ndarray, " some"]  # positions of these queries among all
    counts: Int64[np.ndarray, "some blocks rows columns"]


class _Indicators(NamedTuple):
    """Indicators of all categories but each column's last; the last one is 1 for every record."""

    first: dict[int, int]  # position of a column's first indicator
    values: UInt8[Array, "n_up width"]  # rows from n on are padding, and all 0


def blocks(query: Query, categories: Sequence[int]) -> int:
    """The number of blocks of the given columns, whether they occur or not."""
    return prod(categories[column] for column in query.given)


def check(queries: Sequence[Query], categories: Sequence[int]) -> None:
    """Raise ValueError for queries of wrong columns, and for tables that are too large."""
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
    """The tables of all queries, some at a time and in any order."""
    check(queries, data.categories)
    together: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, query in enumerate(queries):
        together[query.given].append(place)
    everything = _named(queries)
    made: dict[tuple[int, ...], _Indicators] = {}  # the last indicators, by their columns
    for given, places in together.items():
        block, count = _block(data, given)
        named = _named([queries[place] for place in places])
        # Indicators of all columns are made once, and serve groups that use most of them.
        named = everything if 4 * len(named) >= 3 * len(everything) else named
        width = 1 + sum(data.categories[c] - 1 for c in named)
        # A product has width^2 entries for each block, whether they are asked for or not.
        products = len(places) >= _FEWEST_PAIRS and count * width**2 <= 4 * _CELLS_HELD
        if products and width**2 <= _PRODUCT_SPEEDUP * len(places):
            if named not in made:
                made = {named: _indicators(data, named)}
            yield from _by_products(data, queries, places, made[named], block, count)
        else:
            yield from _one_by_one(data, queries, places, block, count)


def _named(queries: Sequence[Query]) -> tuple[int, ...]:
    return tuple(sorted({column for query in queries for column in query[:2]}))


def _block(data: Coded, given: tuple[int, ...]) -> tuple[Int64[np.ndarray, " n"], int]:
    """The block of each record, and the number of blocks."""
    block, count = np.zeros(data.n, np.int64), 1
    for column in given:
        block = block * data.categories[column] + data.codes[column]
        count *= data.categories[column]
    return block, count


def _same_shape(
    data: Coded, queries: Sequence[Query], places: Sequence[int], count: int
) -> Iterator[tuple[Int64[np.ndarray, " some"], int, int]]:
    """Groups of queries whose tables have one shape and fit in memory together."""
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place in places:
        x, y, _ = queries[place]
        shapes[data.categories[x], data.categories[y]].append(place)
    for (rows, columns), alike in shapes.items():
        step = max(1, _CELLS_HELD // (count * rows * columns))
        for start in range(0, len(alike), step):
            yield np.array(alike[start : start + step]), rows, columns


def _one_by_one(
    data: Coded,
    queries: Sequence[Query],
    places: Sequence[int],
    block: Int64[np.ndarray, " n"],
    count: int,
) -> Iterator[Tables]:
    for some, rows, columns in _same_shape(data, queries, places, count):
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
    indicators: _Indicators,
    block: Int64[np.ndarray, " n"],
    count: int,
) -> Iterator[Tables]:
    first, values = indicators
    whole = values.shape[1] - 1  # the indicator of every record
    rows, owner = _sorted_by_block(block, count)
    pairs = _products(values, rows, owner, count)
    for some, height, width in _same_shape(data, queries, places, count):
        # For each query the positions of its indicators; `whole` stands in for the last category.
        at = [
            np.array([[*range(first[c], first[c] + size - 1), whole] for c in columns])
            for size, columns in (
                (height, [queries[place].x for place in some]),
                (width, [queries[place].y for place in some]),
            )
        ]
        found = pairs[:, at[0][:, :, None], at[1][:, None, :]].astype(np.int64)
        # The last category has the records that no other category has.
        found[..., -1, :] -= found[..., :-1, :].sum(axis=-2)
        found[..., -1] -= found[..., :-1].sum(axis=-1)
        yield Tables(some, np.moveaxis(found, 0, 1))


def _indicators(data: Coded, named: Sequence[int]) -> _Indicators:
    first, begin = {}, 0
    for column in named:
        first[column] = begin
        begin += data.categories[column] - 1
    width = -(-(begin + 1) // _WIDTH_STEP) * _WIDTH_STEP
    # At least one row of padding, which `_sorted_by_block` refers to as record n.
    values = np.zeros((width, 1 + decade_if_small(data.n, width)), np.uint8)
    for column, start in first.items():
        for category in range(data.categories[column] - 1):
            values[start + category, : data.n] = data.codes[column] == category
    values[-1, : data.n] = 1
    return _Indicators(first, jnp.asarray(np.ascontiguousarray(values.T)))


def _sorted_by_block(
    block: Int64[np.ndarray, " n"], count: int
) -> tuple[Int32[np.ndarray, "products rows"], Int32[np.ndarray, " products"]]:
    """Groups of records, each within one block and padded with record n, and their blocks."""
    n = len(block)
    # About as many rows as a block has records: larger groups would be mostly padding.
    rows = max(64, min(_PRODUCT_ROWS, rung(max(n // rung(count, 1), 1), 1)))
    sizes = np.bincount(block, minlength=count)
    groups = -(-sizes // rows)
    owner = np.repeat(np.arange(count), groups)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(groups) - groups, groups)
    begin = (np.cumsum(sizes) - sizes)[owner] + within * rows
    spot = begin[:, None] + np.arange(rows)
    # numpy sorts small integers by radix, in linear time.
    order = np.append(np.argsort(block.astype(np.min_scalar_type(count)), kind="stable"), n)
    record = order[np.where(spot < np.cumsum(sizes)[owner][:, None], spot, n)]
    return record.astype(np.int32), owner.astype(np.int32)


def _products(
    indicators: UInt8[Array, "n_up width"],
    rows: Int32[np.ndarray, "products rows"],
    owner: Int32[np.ndarray, " products"],
    count: int,
) -> Int32[np.ndarray, "blocks width width"]:
    """For each block and two indicators the number of records that have both."""
    number = len(owner)
    pad = rung(number, 1) - number
    given = indicators, np.pad(rows, ((0, pad), (0, 0))), np.pad(owner, (0, pad)), np.int32(number)
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
    """Add each of the first `number` products to its block; the others are padding."""

    def add(i, total):
        # Matrix products of floats are fast everywhere; full precision keeps counts exact where
        # the default is lower, as on GPUs and TPUs.
        some = indicators.at[rows[i]].get(mode="promise_in_bounds").astype(jnp.float32)
        both = jnp.matmul(some.T, some, precision=lax.Precision.HIGHEST)
        return total.at[owner[i]].add(both.astype(jnp.int32))

    width = indicators.shape[1]
    return lax.fori_loop(0, number, add, jnp.zeros((count, width, width), jnp.int32))
