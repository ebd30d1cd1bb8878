"""The tile's programs: a tile of pairs -> all the information in their characteristic matrices.

`count` brings codes into counts of every master grid, and `optimise` counts into information, one
bucket of grids at a time. Static shapes, no host callback, integers in and out. n, the number of
columns and of pairs are data: programs depend on rungs (`shapes`) and on the plan.

A lane is one pair in one orientation on one grid: pair by pair, for each grid of a bucket in turn,
with the first column merged and the second fixed, then the other way round.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Integer

from dpmic_jax.mic import at_once, counting
from dpmic_jax.mic.coding import BLOCK, Codes, DirectCodes, FineCodes, FineEdges
from dpmic_jax.mic.distance import Steps, nominal_distance, split_distance
from dpmic_jax.mic.grids import Bucket
from dpmic_jax.mic.layout import Layout
from dpmic_jax.mic.optimise import at_most, best_information, table_information
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Program
from dpmic_jax.mic.xlogx import Gains

# Of every lane's grid.
Counts = Integer[Array, "lanes master rows"]
BucketCounts = tuple[Integer[Array, "_ _ _"], ...]
# In units of 2^-26 bits, for 2, 3, ... parts.
Information = Integer[Array, "turns sizes side_by_side"]


def counting_program(layout: Layout) -> Program:
    """`count`, for a tile that is split over devices by its pairs."""
    inputs = EVERYWHERE, SPLIT, SPLIT, SPLIT, EVERYWHERE
    return Program(counting_of(layout), (("layout", layout),), inputs, SPLIT)


def counting_of(layout: Layout) -> Callable[..., BucketCounts]:
    """`count`, or what does the same for a device that takes all lanes at once."""
    return count if layout.lane_by_lane else at_once.count


def optimising_program(
    bucket: Bucket,
    lanes: int,
    *,
    together: bool = False,
    by_triton: bool = False,
    edges: bool = False,
) -> Program:
    """What scores the lanes of a bucket, which are split over devices.

    Args:
      bucket: the grids.
      lanes: how many are scored side by side.
      together: by the programs for devices that take all lanes at once.
      by_triton: which have a kernel of their own for OptimizeAxis.
      edges: whether they are given records up to each edge instead of counts (`Layout.counted`).
    """
    inputs, settings = (SPLIT, SPLIT, EVERYWHERE), (("lanes", lanes),)
    if bucket.parts == 0:
        return Program(at_once.tables if together else tables, settings, inputs, SPLIT)
    if bucket.by_kinds:
        function = at_once.nominal_distances if together else nominal_distances
        return Program(function, settings, (*inputs, SPLIT), SPLIT)
    if bucket.parts == 1:
        return Program(at_once.distances if together else distances, settings, inputs, SPLIT)
    settings = (("parts", bucket.parts), *settings)
    if not together:
        return Program(optimise, settings, inputs, SPLIT)
    settings = (*settings, ("by_triton", by_triton), ("edges", edges))
    return Program(at_once.optimise, settings, inputs, SPLIT)


def count(
    columns: Codes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    number: Integer[Array, "1"],
    n: Integer[Array, ""],
    *,
    layout: Layout,
) -> BucketCounts:
    """Count pairs of columns on every master grid.

    Args:
      columns: codes of all columns, for either way of counting.
      first, second: which two columns each pair has.
      number: how many pairs there are; the others only pad.
      n: how many records there are.
      layout: the plan, in buckets; static.

    Returns:
      Counts of all lanes, bucket by bucket.
    """
    if isinstance(columns, DirectCodes):
        return _count_directly(columns, first, second, number, n, layout)

    def of_pair(pair):
        one, other = first[pair], second[pair]
        blocks = (n + (BLOCK - 1)) // BLOCK

        def add(block, total):
            return _add(total, columns.codes, one, other, block * BLOCK, BLOCK)

        total = lax.fori_loop(0, blocks, add, jnp.zeros(columns.empty.shape, jnp.int32))
        total = total.at[0, :, 0].add(n - blocks * BLOCK)
        return _read_off(total, columns.edges, one, other, layout)

    # A pair at a time: its counts stay in cache while its records stream past.
    return _pair_by_pair(of_pair, number, layout)


def _count_directly(
    columns: DirectCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    number: Integer[Array, "1"],
    n: Integer[Array, ""],
    layout: Layout,
) -> BucketCounts:
    both = jnp.stack([first, second], axis=1)
    record = (jnp.arange(columns.rows.shape[2], dtype=jnp.int32) < n).astype(jnp.int32)
    found = []
    for bucket, columns_of, rows in layout.spots():
        shape = layout.pairs, len(bucket.grids), 2
        # What each lane counts: size and column that is merged, size and column that is fixed.
        picks = [
            jnp.broadcast_to(jnp.expand_dims(some, axes), shape)
            for some, axes in ((columns_of, (0, 2)), (both, 1), (rows, (0, 2)), (both[:, ::-1], 1))
        ]

        def add(total, picks, begin, height=bucket.rows):
            codes = _pick(columns.masters, *picks[:2]), _pick(columns.rows, *picks[2:])
            return counting.direct(total, *codes, record, begin, height)

        cells = bucket.master * bucket.rows
        total = jnp.zeros(layout.room(bucket) * cells, jnp.int32)
        total = _add_lane_by_lane(add, total, picks, cells, 2 * shape[1] * number[0])
        found.append(total.reshape(-1, bucket.master, bucket.rows))
    return tuple(found)


def _add_lane_by_lane(add, total, picks, cells, number):
    picks = [some.reshape(-1) for some in picks]

    def lane(i, total):
        # In counts of its own: XLA would split a scatter to a large array over threads.
        counts = add(jnp.zeros(cells, jnp.int32), [some[i] for some in picks], jnp.int32(0))
        return lax.dynamic_update_slice_in_dim(total, counts, i * cells, 0)

    return lax.fori_loop(0, number, lane, total)


def _pick(
    table: Integer[Array, "sizes columns n"],
    size: Integer[Array, ""],
    column: Integer[Array, ""],
) -> Integer[Array, " n"]:
    """Codes of a column in a size."""
    return lax.dynamic_slice(table, (size, column, jnp.int32(0)), (1, 1, table.shape[2]))[0, 0]


def add_records(
    total: Integer[Array, "pairs columns 2 rows"],
    columns: FineCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    spare: Integer[Array, ""],
) -> Integer[Array, "pairs columns 2 rows"]:
    """Add a batch of records, of which `spare` only pad, to the counts on the refinement."""

    def of_pair(pair):
        total, one, other = pair
        n = columns.rows.shape[1]
        return _add(total, columns, one, other, 0, n).at[0, :, 0].add(-spare)

    return lax.map(of_pair, (total, first, second))


def count_refined(
    total: Integer[Array, "pairs columns 2 rows"],
    edges: FineEdges,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    number: Integer[Array, "1"],
    *,
    layout: Layout,
) -> BucketCounts:
    """`count`, off the counts that `add_records` has made."""

    def of_pair(pair):
        return _read_off(total[pair], edges, first[pair], second[pair], layout)

    return _pair_by_pair(of_pair, number, layout)


def _pair_by_pair(of_pair, number, layout: Layout) -> BucketCounts:
    """The lanes of all pairs, of which there are `number`."""

    def put(pair, found):
        return tuple(
            lax.dynamic_update_slice_in_dim(lanes, part, pair * len(part), 0)
            for lanes, part in zip(found, of_pair(pair), strict=True)
        )

    empty = tuple(
        jnp.zeros((layout.room(bucket), bucket.master, bucket.rows), jnp.int32)
        for bucket in layout.buckets
    )
    return lax.fori_loop(0, number[0], put, empty)


def _add(
    total: Integer[Array, "columns 2 rows"],
    columns: FineCodes,
    first: Integer[Array, ""],
    second: Integer[Array, ""],
    begin: Integer[Array, ""] | int,
    records: int,
) -> Integer[Array, "columns 2 rows"]:
    """Count some records of one pair in both orientations."""

    def codes(table, column):
        return lax.dynamic_slice(table, (column, jnp.int32(begin)), (1, records))[0]

    for side, (merged, fixed) in enumerate(((first, second), (second, first))):
        total = counting.refine(
            total, side, codes(columns.masters, merged), codes(columns.rows, fixed)
        )
    return total


def _read_off(
    total: Integer[Array, "columns 2 rows"],
    edges: FineEdges,
    first: Integer[Array, ""],
    second: Integer[Array, ""],
    layout: Layout,
) -> list[Integer[Array, "_ _ _"]]:
    """The counts of one pair on every grid, bucket by bucket."""
    merged, fixed = jnp.stack([first, second]), jnp.stack([second, first])
    before = counting.prefix(total)
    found = []
    for bucket, columns, rows in layout.spots():
        counts = counting.read_off(
            before,
            edges.masters[columns][:, merged, : bucket.master + 1],
            edges.rows[rows][:, fixed, : bucket.rows + 1],
        )
        found.append(counts.reshape(-1, bucket.master, bucket.rows))
    return found


def optimise(
    counts: Counts, number: Integer[Array, "1"], gains: Gains, *, parts: int, lanes: int
) -> Information:
    """OptimizeAxis on every lane.

    Args:
      counts: of all lanes.
      number: how many lanes there are; the others only pad.
      gains: how phi is evaluated.
      parts: the most to merge into; static.
      lanes: how many run side by side; static.

    Returns:
      Information in units of 2^-26 bits, `lanes` lanes a turn.
    """

    def turn(i):
        return best_information(_edges(counts, i * lanes, lanes), parts, gains)

    return _in_turns(turn, counts, number, parts - 1, lanes)


def distances(
    counts: Counts, number: Integer[Array, "1"], steps: Steps, *, lanes: int
) -> Information:
    """The distance from independence of every lane, across splits of the merged column.

    Args:
      counts: of all lanes.
      number: how many lanes there are; the others only pad.
      steps: the values of t.
      lanes: how many run side by side; static.
    """

    def turn(i):
        some = lax.dynamic_slice_in_dim(counts, i * lanes, lanes)
        return split_distance(jnp.moveaxis(some, 0, 2), steps)

    return _in_turns(turn, counts, number, 1, lanes)


def nominal_distances(
    counts: Counts,
    number: Integer[Array, "1"],
    steps: Steps,
    splitting: Integer[Array, "lanes 2"],
    *,
    lanes: int,
) -> Information:
    """`distances`, where some columns are nominal.

    Args:
      counts: of all lanes.
      number: how many lanes there are; the others only pad.
      steps: the values of t.
      splitting: of every lane how its merged column is split, and the price for its fixed one.
      lanes: how many run side by side; static.
    """

    def turn(i):
        some, own = (
            lax.dynamic_slice_in_dim(each, i * lanes, lanes) for each in (counts, splitting)
        )
        return nominal_distance(jnp.moveaxis(some, 0, 2), steps, own[:, 0], own[:, 1])

    return _in_turns(turn, counts, number, 1, lanes)


def tables(counts: Counts, number: Integer[Array, "1"], gains: Gains, *, lanes: int) -> Information:
    """The information of the whole table of every lane.

    Args:
      counts: of all lanes.
      number: how many lanes there are; the others only pad.
      gains: how phi is evaluated.
      lanes: how many run side by side; static.
    """

    def turn(i):
        return table_information(lax.dynamic_slice_in_dim(counts, i * lanes, lanes), gains)

    return _in_turns(turn, counts, number, 1, lanes)


def _in_turns(
    turn: Callable[[Array], Integer[Array, "*sizes side_by_side"]],
    counts: Counts,
    number: Integer[Array, "1"],
    sizes: int,
    lanes: int,
) -> Information:
    """The scores of all lanes, some at a time."""

    def put(i, found):
        some = turn(i)
        return lax.dynamic_update_slice_in_dim(found, some[(None,) * (3 - some.ndim)], i, 0)

    found = jnp.zeros((len(counts) // lanes, sizes, lanes), jnp.int32)
    return lax.fori_loop(0, lax.div(number[0] + (lanes - 1), np.int32(lanes)), put, found)


def _edges(
    counts: Counts, begin: Integer[Array, ""], lanes: int
) -> Integer[Array, "edges rows_and_sum some"]:
    """Records of each row, and of all, before each edge, for some lanes.

    Lanes come last, so that neighbouring lanes fill the vector units of a CPU and the threads of
    a GPU. A master column at a time: XLA splits what reads and writes half a megabyte over
    threads, which other tiles are using.
    """
    _, master, rows = counts.shape

    def add(column, carry):
        before, total = carry
        some = lax.dynamic_slice(counts, (begin, column, jnp.int32(0)), (lanes, 1, rows))
        some = jnp.moveaxis(some[:, 0], 0, 1)
        total = total + jnp.concatenate([some, some.sum(axis=0, keepdims=True, dtype=jnp.int32)])
        return lax.dynamic_update_slice_in_dim(before, total[None], column + 1, 0), total

    empty = jnp.zeros((master + 1, rows + 1, lanes), jnp.int32)
    return lax.fori_loop(0, master, add, (empty, empty[0]))[0]


def entries(
    layout: Layout, found: list[Integer[np.ndarray, "_ _ _"]], pairs: int, gains: Gains | None
) -> Integer[np.ndarray, "entries 2 pairs"]:
    """For each grid in turn, for 2, 3, ..., `parts` parts; in one orientation, then the other.

    Of a grid of one part the distance from independence, of one of none the information.
    """
    scored = []
    for bucket, some in zip(layout.buckets, found, strict=True):
        lanes = np.moveaxis(some, 1, 0).reshape(some.shape[1], -1)
        if bucket.parts > 1 and gains is not None:
            lanes = at_most(lanes, gains)
        shape = len(lanes), pairs, len(bucket.grids), 2
        lanes = lanes[:, : math.prod(shape[1:])].reshape(shape)
        for i, grid in enumerate(bucket.grids):
            scored.append(lanes[: grid.scores, :, i].swapaxes(1, 2))
    return np.concatenate(scored)
