"""Many pairs at once: rows, superclumps and counts in one compiled program.

From the counts on it is `dpmic_jax.mic.kernel` that goes on, with the same programs for everyone.

A lane is a pair in one orientation on one grid. Ranks come first and lanes last, so that walking
along the ranks is arithmetic on whole vectors. Pairs are taken a block at a time, and their grids
some at a time, so that what is held stays small. The rows of up to four grids are packed into one
word, so that one look-up brings them all into the order of the other column.

n, the number of columns and of pairs are data: one program serves all tables with the same plan
and about as many records.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Integer

from dpmic_jax.mic import batch
from dpmic_jax.mic.grids import Grid
from dpmic_jax.mic.kernel import BucketCounts, Layout
from dpmic_jax.mic.padding import decade_if_small, rung
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Program
from dpmic_jax.minepy.partitions import Columns
from dpmic_jax.minepy.superclumps import clumps, row_of, short, superclumps

# Most ranks times lanes that are held at once, and how many a CPU's cache has room for.
MOST_HELD, CACHED = 2**25, 2**20
# Fewer pairs of a block, or lanes that are optimised side by side, would make vectors short.
FEWEST, FEWEST_LANES = 16, 16
# A table of more than some pairs is laid out as if it had many: tight, at the price of compiling.
SOME, MANY = 512, 8**5
# Grids that are cut into superclumps side by side: with more of them lanes wait for others, with
# fewer vectors are short.
TOGETHER = 4


class Table(NamedTuple):
    """Columns on a device, and room for more columns and records.

    Attributes:
      order: the records of each column by growing value.
      ties: whether another value begins at each rank of each column.
      rows: each record's row in every size, packed into words.
    """

    order: Any  # Int32[Array, "columns n_up"]; while a program is compiled, only its shape
    ties: Any  # Bool[Array, "columns n_up"]
    rows: Any  # UInt32[Array, "words columns n_up"]


class Blocks(NamedTuple):
    """How counting goes through a tile; it changes the speed, never the result.

    Attributes:
      pairs: that are counted at a time.
      grids: that are counted at a time.
      digits: how many grids' rows a word holds.
      tied: whether any column has ties.
    """

    pairs: int
    grids: int
    digits: int
    tied: bool


def layout_for(grids: tuple[Grid, ...], pairs: int, platform: str) -> Layout:
    """`batch.layout_for`, and less at a time where a tile's counts would be too many."""
    layout = batch.layout_for(grids, pairs if pairs <= SOME else max(pairs, MANY), platform)
    # A power of two, which blocks of pairs divide.
    layout = layout._replace(pairs=1 << (layout.pairs - 1).bit_length())
    while layout.pairs > 1 and layout.cells > MOST_HELD:
        # As many lanes as there are pairs for; but a vector has some.
        lanes = max(layout.lanes // 2, FEWEST_LANES)
        layout = layout._replace(pairs=layout.pairs // 2, lanes=lanes)
    return layout


def blocks_for(layout: Layout, columns: Columns, platform: str) -> Blocks:
    """As many pairs and grids as the cache has room for, or on other devices the memory."""
    n, grids = room(columns)[1], len(layout.grids)
    pairs = max(CACHED // (2 * n * grids), FEWEST) if platform == "cpu" else layout.pairs
    pairs = min(pairs, layout.pairs, max(MOST_HELD // (2 * n * grids), 1))
    pairs = 1 << (pairs.bit_length() - 1)  # which divides the pairs of a tile
    digits = 4 // columns.rows.dtype.itemsize
    some = max(MOST_HELD // (2 * n * pairs) // digits, 1) * digits
    tied = bool((columns.ties.end - columns.ties.start > 1).any())
    return Blocks(pairs, min(some, grids), digits, tied)


def room(columns: Columns) -> tuple[int, int]:
    """For how many columns and records a table has room."""
    count, n, grids = columns.rows.shape
    n_up = rung(n, 5)
    return decade_if_small(count, n_up * (5 + grids * columns.rows.itemsize)), n_up


def pack(columns: Columns) -> Table:
    """Columns as the program takes them."""
    (count, n, grids), digits = columns.rows.shape, columns.rows.dtype
    shape = room(columns)
    words = -(-grids * digits.itemsize // 4)
    rows = np.zeros((*shape, words * 4 // digits.itemsize), digits)
    rows[:count, :n, :grids] = columns.rows
    order, ties = np.zeros(shape, np.int32), np.zeros(shape, bool)
    order[:count, :n] = columns.order
    ties[:count, :n] = np.arange(n) == columns.ties.start.T
    return Table(order, ties, np.ascontiguousarray(np.moveaxis(rows.view(np.uint32), 2, 0)))


def counting_program(layout: Layout, blocks: Blocks) -> Program:
    """`count`, for a tile that is split over devices by its pairs."""
    settings = ("layout", layout), ("blocks", blocks)
    return Program(count, settings, (EVERYWHERE, SPLIT, SPLIT, SPLIT, EVERYWHERE), SPLIT)


def count(
    table: Table,
    first: Int[Array, " pairs"],
    second: Int[Array, " pairs"],
    number: Int[Array, "1"],
    n: Int[Array, ""],
    *,
    layout: Layout,
    blocks: Blocks,
) -> BucketCounts:
    """Count pairs of columns (x, y) on their superclumps: with y fixed, then with x fixed.

    Args:
      table: all columns.
      first, second: which two columns each pair has.
      number: how many pairs there are; the others only pad.
      n: how many records there are.
      layout: the plan, in buckets; static.
      blocks: how many pairs and grids are taken at a time; static.

    Returns:
      Counts of all lanes, bucket by bucket, as `dpmic_jax.mic.kernel.count` has them.
    """
    lanes, shapes = _lanes(layout, blocks)
    width = 2 * blocks.pairs * blocks.grids
    turns = len(lanes.cell) // width
    # Neighbouring grids have masters of like size, so that few lanes wait for others.
    together = 2 * blocks.pairs * min(TOGETHER, blocks.grids)
    # Short numbers, of which more fit the cache.
    size = sum(map(math.prod, shapes)) + max(grid.rows for grid in layout.grids)
    counts = jnp.zeros(size, short(table.order.shape[1]))

    def turn(i, counts):
        block, some = i // turns, i % turns
        begin = block * blocks.pairs
        x, y = (lax.dynamic_slice_in_dim(one, begin, blocks.pairs) for one in (first, second))
        merged, fixed = jnp.concatenate([x, y]), jnp.concatenate([y, x])
        here = Lanes(
            *(lax.dynamic_slice_in_dim(jnp.asarray(one), some * width, width) for one in lanes)
        )
        rows = _rows(table, merged, fixed, some, blocks)
        between = _spread(table.ties[merged].T, blocks.grids) if blocks.tied else None
        begins = clumps(rows[:, :width], between, n)
        marks = superclumps(begins, here.most, n, together)
        return _add(counts, rows, marks, here.cell + block * here.stride, here.height, n)

    number_of_blocks = (number[0] + (blocks.pairs - 1)) // blocks.pairs
    counts = lax.fori_loop(0, number_of_blocks * turns, turn, counts)
    stops = np.cumsum([math.prod(shape) for shape in shapes])
    return tuple(
        part.astype(jnp.int32).reshape(shape)
        for part, shape in zip(jnp.split(counts, stops)[:-1], shapes, strict=True)
    )


class Lanes(NamedTuple):
    """What tells lanes apart: for each grid in turn, both orientations of every pair of a block.

    Attributes:
      most: parts of the master.
      cell: the first cell of the lane's counts in the first block.
      stride: how far one block's counts are from the next one's.
      height: how far one part's counts are from the next one's.
    """

    most: Any
    cell: Any
    stride: Any
    height: Any


def _lanes(layout: Layout, blocks: Blocks) -> tuple[Lanes, list[tuple[int, int, int]]]:
    """The lanes of a block, and the shapes of a tile's counts, bucket by bucket."""
    pair = np.arange(blocks.pairs, dtype=np.int32)
    side = np.arange(2, dtype=np.int32)[:, None]
    same = np.ones((2, blocks.pairs), np.int32)
    lanes, shapes, begin = [], [], 0
    for bucket in layout.buckets:
        size, cells = 2 * len(bucket.grids), bucket.master * bucket.rows
        for i, grid in enumerate(bucket.grids):
            cell = begin + (pair * size + 2 * i + side) * cells
            stride = blocks.pairs * size * cells
            lanes.append((grid.master * same, cell, stride * same, bucket.rows * same))
        shapes.append((layout.room(bucket), bucket.master, bucket.rows))
        begin += math.prod(shapes[-1])
    # Grids beyond the last are counted beyond the last cell.
    lanes += [(same, begin * same, 0 * same, 0 * same)] * (-len(lanes) % blocks.grids)
    return Lanes(*np.array(lanes, np.int32).transpose(1, 0, 2, 3).reshape(4, -1)), shapes


def _rows(
    table: Table,
    merged: Int[Array, " both"],
    fixed: Int[Array, " both"],
    turn: Int[Array, ""],
    blocks: Blocks,
) -> Integer[Array, "n lanes"]:
    """The rows of the fixed column, by rank of the other one: for each grid in turn, all pairs."""
    words, bits = -(-blocks.grids // blocks.digits), 32 // blocks.digits
    spots = fixed[None], table.order[merged].T
    (n, both), dtype = spots[1].shape, np.dtype(f"uint{bits}")
    last = len(table.rows) - 1

    def unpack(i, rows):
        # Grids beyond the last have any rows.
        word = jnp.minimum(turn * words + i, last)
        found = table.rows.at[word, *spots].get(mode="promise_in_bounds")
        # One grid beside the other, no axis more: broadcasting along that would be scalar on CPU.
        digits = [found >> np.uint32(bits * digit) for digit in range(blocks.digits)]
        some = jnp.concatenate([one.astype(dtype) for one in digits], axis=1)
        return lax.dynamic_update_slice_in_dim(rows, some, i * some.shape[1], 1)

    return lax.fori_loop(0, words, unpack, jnp.zeros((n, words * blocks.digits * both), dtype))


def _spread(by_column: Bool[Array, "n both"], grids: int) -> Bool[Array, "n lanes"]:
    n, both = by_column.shape
    room = jnp.zeros((n, grids * both), bool)
    return lax.fori_loop(
        0, grids, lambda i, to: lax.dynamic_update_slice_in_dim(to, by_column, i * both, 1), room
    )


def _add(
    counts: Int[Array, " cells"],
    rows: Integer[Array, "n _"],
    marks: Integer[Array, "n_plus_1 lanes"],
    first: Int[Array, " lanes"],
    height: Int[Array, " lanes"],
    n: Int[Array, ""],
) -> Int[Array, " cells"]:
    """Count the records of every cell of every master grid."""
    width = marks.shape[1]

    def step(rank, carry):
        counts, cell = carry
        cell = cell + row_of(marks, rank).astype(jnp.int32) * height
        row = lax.dynamic_slice(rows, (rank, 0), (1, width))[0]
        spots = lax.optimization_barrier(cell + row.astype(jnp.int32))
        return counts.at[spots].add(1, mode="promise_in_bounds"), cell

    return lax.fori_loop(0, n, step, (counts, first))[0]
