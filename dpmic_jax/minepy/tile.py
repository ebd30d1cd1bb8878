"""Many pairs at once: clumps, superclumps, counts and OptimizeXAxis in one compiled program.

A lane is a pair in one orientation on one grid. Ranks come first and lanes last, so that walking
along the ranks is arithmetic on whole vectors. The rows of up to four grids are packed into one
word, so that one look-up brings them all into the order of the other column.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Int8, Integer

from dpmic_jax.mic.gains import Gains, gains_for
from dpmic_jax.mic.grids import Bucket
from dpmic_jax.mic.optimise import best_information
from dpmic_jax.minepy.partitions import Columns, next_cut

# Most ranks times lanes that are held at once; plans that need more are taken in turns.
MOST_HELD = 2**25
# What the recursion should hold in cache, and the fewest lanes that it is cut down to for that.
CACHE, FEWEST_LANES = 2**20, 64
# A CPU scores a tile on every core, so that a tile should not spread over them: XLA would hold what
# all buckets take at once, which is three times the memory and no longer kept between tiles.
COMPILER = {
    "cpu": {
        "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
        "xla_cpu_prefer_vector_width": 512,
    }
}


class Table(NamedTuple):
    """Columns on a device.

    Attributes:
      order: the records of each column by growing value.
      start, end: for each rank of each column, where its tied values begin and end.
      rows: each record's row in every size, packed into words.
    """

    order: Any  # Int[Array, "columns n"]; while a program is compiled, only its shape
    start: Any  # Int[Array, "columns n"]
    end: Any  # Int[Array, "columns n"]
    rows: Any  # UInt32[Array, "words columns n"]


class Layout(NamedTuple):
    """What the program is compiled for."""

    buckets: tuple[Bucket, ...]
    digits: np.dtype  # of rows within a word
    tied: bool

    def turns(self, held: int) -> Iterator[tuple[int, tuple[Bucket, ...]]]:
        """Buckets to take together where a grid holds so much, with their first grid's place."""
        begin, taken = 0, []
        for bucket in self.buckets:
            size = sum(len(one.grids) for one in taken)
            if taken and held * (size + len(bucket.grids)) > MOST_HELD:
                yield begin, tuple(taken)
                begin, taken = begin + size, []
            taken.append(bucket)
        yield begin, tuple(taken)


def put(columns: Columns) -> Table:
    """Bring columns to the device."""
    count, n, grids = columns.rows.shape
    digits = columns.rows.dtype
    words = -(-grids * digits.itemsize // 4)
    rows = np.zeros((count, n, words * 4 // digits.itemsize), digits)
    rows[..., :grids] = columns.rows
    packed = np.ascontiguousarray(np.moveaxis(rows.view(np.uint32), 2, 0))
    return Table(
        jax.device_put(columns.order.astype(np.int32)),
        jax.device_put(columns.ties.start.T.astype(np.int32)),
        jax.device_put(columns.ties.end.T.astype(np.int32)),
        jax.device_put(packed),
    )


@lru_cache(maxsize=32)
def program(
    layout: Layout, n: int, columns: int, words: int, pairs: int, backend: str
) -> Callable[..., Int[Array, "scored 2 pairs"]]:
    """`score` for tables and tiles of one shape, compiled: threads need not wait for each other."""

    def shaped(*shape: int, dtype: Any = np.int32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype)

    by_rank, pair = shaped(columns, n), shaped(pairs)
    table = Table(by_rank, by_rank, by_rank, shaped(words, columns, n, dtype=np.uint32))
    lowered = jax.jit(partial(score, layout=layout)).lower(table, pair, pair, gains_for(n))
    try:
        return lowered.compile(compiler_options=COMPILER.get(backend))
    except jax.errors.JaxRuntimeError:  # an XLA that does not know these options
        return lowered.compile()


def score(
    table: Table,
    first: Int[Array, " pairs"],
    second: Int[Array, " pairs"],
    gains: Gains,
    *,
    layout: Layout,
) -> Int[Array, "scored 2 pairs"]:
    """Score pairs of columns (x, y).

    Returns:
      Information in units of 2^-26 bits: for each grid in turn, for 2, 3, ..., `parts` parts;
      with y fixed, then with x fixed.
    """
    merged, fixed = jnp.concatenate([first, second]), jnp.concatenate([second, first])
    n, pairs = table.order.shape[1], len(first)
    found = []
    for begin, taken in layout.turns(n * 2 * pairs):
        rows = _rows(table, merged, fixed, begin, sum(len(one.grids) for one in taken), layout)
        begins = _begins(rows, table, merged, tied=layout.tied)
        counts = _count(rows, _superclumps(begins, taken, 2 * pairs), taken)
        found += [
            _optimise(count, bucket, gains, 2 * pairs)
            for count, bucket in zip(counts, taken, strict=True)
        ]
    return jnp.concatenate(found).reshape(-1, 2, pairs)


def _rows(
    table: Table,
    merged: Int[Array, " both"],
    fixed: Int[Array, " both"],
    begin: int,
    grids: int,
    layout: Layout,
) -> Integer[Array, "n lanes"]:
    """The rows of the fixed column, by rank of the other one: for each grid in turn, all pairs."""
    digits = 4 // layout.digits.itemsize
    spots = fixed[None], table.order[merged].T
    words = {
        word: table.rows[word].at[spots].get(mode="promise_in_bounds")
        for word in range(begin // digits, (begin + grids - 1) // digits + 1)
    }

    def rows(grid: int) -> Integer[Array, "n both"]:
        shift = np.uint32(32 // digits * (grid % digits))
        return (words[grid // digits] >> shift).astype(layout.digits)

    # One grid beside the other, not one more axis: broadcasting along that would be scalar on CPU.
    return jnp.concatenate([rows(begin + i) for i in range(grids)], axis=1)


def _begins(
    rows: Integer[Array, "n lanes"], table: Table, merged: Int[Array, " both"], *, tied: bool
) -> Bool[Array, "n_minus_1 lanes"]:
    """Whether a clump begins at rank 1, 2, ...: `partitions.clumps`."""
    n = len(rows)
    changes = rows[1:] != rows[:-1]
    if not tied:
        return changes
    grids = rows.shape[1] // len(merged)

    def spread(ranks: Int[Array, "both n"]) -> Int[Array, "n lanes"]:
        by_rank = ranks.T[:, None].astype(_ranks(n))
        return jnp.broadcast_to(by_rank, (n, grids, len(merged))).reshape(n, -1)

    start, end = spread(table.start[merged]), spread(table.end[merged])
    rank = _rank(1, n)
    between = start[1:] == rank
    inside = changes & ~between
    # A change inside the tie that begins at this rank, or inside the one before it.
    mixed = _nearest(inside, n, reverse=True) < end[1:]
    mixed_before = _nearest(inside, 0) > start[:-1]
    return between & (changes | mixed | mixed_before)


def _superclumps(
    begins: Bool[Array, "n_minus_1 lanes"], taken: tuple[Bucket, ...], both: int
) -> Int8[Array, "n lanes"]:
    """Whether a part of the master ends before each rank: `partitions.superclumps`."""
    n, lanes = len(begins) + 1, begins.shape[1]
    starts = _nearest(begins, 0).reshape(-1)  # of ranks 1 .. n - 1
    ends = _nearest(begins, n, reverse=True).reshape(-1)  # of ranks 0 .. n - 2
    masters = np.array([grid.master for one in taken for grid in one.grids], np.int32)
    parts = _total(begins) + 1
    marks = jnp.zeros((n + 1) * lanes, jnp.int8)
    # Grids of like masters go together, so that few lanes wait for others.
    levels = np.log2(masters).astype(int).repeat(both)
    for level in np.unique(levels).tolist():
        chosen = np.flatnonzero(levels == level).astype(np.int32)
        lane, most = jnp.asarray(chosen), jnp.asarray(masters.repeat(both)[chosen])
        whole = parts[lane] <= most

        def step(place, made, lane=lane, most=most, whole=whole):
            def read(at):
                # Where to look is computed for whole vectors, but looked up one by one.
                at = lax.optimization_barrier(at)
                start = _look_up(starts, jnp.maximum(at - 1, 0) * lanes + lane)
                end = _look_up(ends, jnp.minimum(at, n - 2) * lanes + lane)
                return jnp.where(at > 0, start, 0), jnp.where(at < n - 1, end, n)

            left = jnp.maximum(most - made, 1)
            place = next_cut(jnp, place, left, n, whole, read, partial(_divide, n))
            return place, place * lanes + lane

        made = jnp.arange(masters.repeat(both)[chosen].max(), dtype=jnp.int32)
        spots = lax.scan(step, jnp.zeros(len(lane), jnp.int32), made)[1]
        marks = marks.at[spots].set(1, mode="promise_in_bounds")
    return marks.reshape(n + 1, lanes)[:n]


class Packing(NamedTuple):
    """How the grids of a bucket run: `width` lanes side by side, in `turns`.

    A turn holds several grids, or a grid takes several turns.
    """

    turns: int
    width: int


def _packing(bucket: Bucket, both: int) -> Packing:
    """As many lanes as keep the recursion in cache."""
    lane = 4 * (bucket.master + 1) * (bucket.rows + bucket.parts)
    lanes, most = both * len(bucket.grids), max(CACHE // lane, FEWEST_LANES)
    if most >= both:
        turns = -(-len(bucket.grids) // min(most // both, len(bucket.grids)))
        return Packing(turns, -(-len(bucket.grids) // turns) * both)
    split = next((by for by in (2, 4, 8) if both % by == 0 and both // by <= most), 1)
    return Packing(lanes * split // both, both // split)


def _count(
    rows: Integer[Array, "n lanes"], marks: Int8[Array, "n lanes"], taken: tuple[Bucket, ...]
) -> list[Int[Array, "turns edges rows width"]]:
    """Records of every cell of every master grid, bucket by bucket, after an empty part."""
    both = rows.shape[1] // sum(len(bucket.grids) for bucket in taken)
    shapes, cells, strides, heights, size = [], [], [], [], 0
    for bucket in taken:
        turns, width = _packing(bucket, both)
        shapes.append((turns, bucket.master + 1, bucket.rows, width))
        turn, place = np.divmod(np.arange(len(bucket.grids) * both, dtype=np.int32), width)
        height = bucket.rows * width
        # Part 0 is the empty one.
        cells.append(size + turn * (bucket.master + 1) * height + height + place)
        strides.append(np.full_like(place, width))
        heights.append(np.full_like(place, height))
        size += math.prod(shapes[-1])
    cell, stride, height = map(jnp.asarray, map(np.concatenate, (cells, strides, heights)))

    def step(cell, here):
        mark, row = here
        cell = cell + mark.astype(jnp.int32) * height
        return cell, cell + row.astype(jnp.int32) * stride

    cells = lax.scan(step, cell, (marks, rows))[1]
    # Short numbers, of which more fit the cache.
    counts = jnp.zeros(size, _ranks(len(rows))).at[cells].add(1, mode="promise_in_bounds")
    stops = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    return [
        count.reshape(shape) for count, shape in zip(jnp.split(counts, stops), shapes, strict=True)
    ]


def _optimise(
    counts: Int[Array, "turns edges rows width"], bucket: Bucket, gains: Gains, both: int
) -> Int[Array, "scored both"]:
    """Merge the master parts of every grid of a bucket."""

    def best(count):
        start = jnp.zeros(count.shape[1:], jnp.int32)
        edges = lax.scan(lambda total, part: (total + part.astype(jnp.int32),) * 2, start, count)[1]
        return best_information(edges, bucket.parts, gains, blocks=bucket.blocks)

    found = jnp.moveaxis(lax.map(best, counts), 1, 0).reshape(bucket.parts - 1, -1, both)
    return jnp.concatenate([found[: grid.parts - 1, i] for i, grid in enumerate(bucket.grids)])


def _ranks(n: int) -> type[np.signedinteger]:
    """Short numbers, where they do: twice as many fit a vector."""
    return np.int16 if n < 2**15 else np.int32


def _rank(begin: int, n: int) -> Int[Array, "ranks 1"]:
    return jnp.arange(begin, n, dtype=_ranks(n))[:, None]


def _nearest(
    flags: Bool[Array, "n_minus_1 lanes"], otherwise: int, *, reverse: bool = False
) -> Int[Array, "n_minus_1 lanes"]:
    """The nearest flagged rank at or before each of 1, 2, ..., or at or after it.

    A loop of short vectors: jax.lax.cummax takes 40 times longer.
    """

    def step(nearest, here):
        flag, rank = here
        nearest = jnp.where(flag, rank, nearest)
        return nearest, nearest

    n, lanes = len(flags) + 1, flags.shape[1]
    start = jnp.full(lanes, otherwise, _ranks(n))
    return lax.scan(step, start, (flags, _rank(1, n)[:, 0]), reverse=reverse)[1]


def _divide(n: int, ranks: Int[Array, " lanes"], by: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
    """Rounded down. A CPU divides whole vectors of floats, but integers one by one."""
    if n >= 2**23:
        return ranks // by
    about = (ranks.astype(jnp.float32) / by.astype(jnp.float32)).astype(jnp.int32)
    rest = ranks - about * by  # right on CPU; other devices may round a quotient up
    return about + (rest >= by).astype(jnp.int32) - (rest < 0).astype(jnp.int32)


def _look_up(table: Int[Array, " spots"], at: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
    return table.at[at].get(mode="promise_in_bounds").astype(jnp.int32)


def _total(flags: Bool[Array, "n lanes"]) -> Int[Array, " lanes"]:
    start = jnp.zeros(flags.shape[1], jnp.int32)
    return lax.scan(lambda total, flag: (total + flag.astype(jnp.int32), None), start, flags)[0]
