"""The tile's programs for devices that take all lanes at once: a GPU, or a TPU.

Such a device starves on a lane or a pair at a time, and waits for the host at every turn of a loop
whose length is data. So these programs work on the whole room of a tile, in few kernels and in
loops of fixed length; what only pads is computed too, and dropped by `kernel.entries`. They take
and give what those of `kernel` do, to the same integers.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Integer

from dpmic_jax.mic import backends, optimise_triton, prefix_triton
from dpmic_jax.mic.coding import Codes, DirectCodes, FineCodes, FineEdges
from dpmic_jax.mic.distance import (
    CUTS,
    Steps,
    splits,
    splits_of_kinds,
    weighted,
)
from dpmic_jax.mic.grids import Bucket
from dpmic_jax.mic.layout import Layout
from dpmic_jax.mic.optimise import best_information, table_information
from dpmic_jax.mic.xlogx import ExactGains, FastGains, Gains

# Of a count, where those of both orientations share a word.
_HALF = 16

Counts = Integer[Array, "lanes master rows"]
Edges = Integer[Array, "lanes rows_and_sum edges"]
Information = Integer[Array, "turns sizes side_by_side"]


def count(
    columns: Codes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    number: Integer[Array, "1"],
    n: Integer[Array, ""],
    *,
    layout: Layout,
) -> tuple[Counts, ...]:
    """`kernel.count`, of all pairs for which there is room."""
    del number
    both = jnp.stack([first, second], axis=1)
    if isinstance(columns, DirectCodes):
        return tuple(
            _count_directly(columns, both, n, bucket, masters, rows)
            for bucket, masters, rows in layout.spots()
        )

    shape = refined_room(columns.empty.shape, columns.codes.rows.shape[1])

    def of_some(both):
        total = jnp.zeros((len(both), *shape), jnp.int32)
        total = _refine(total, columns.codes, both, n)
        return _read_off(total, columns.edges, both, layout)

    return _some_at_a_time(of_some, both, math.prod(shape))


def refined_room(shape: tuple[int, int, int], records: int) -> tuple[int, int, int]:
    """Of one pair's counts on the refinement, of at most so many records.

    Half of a word holds up to 2^16 - 1 records, so that one holds the counts of both orientations,
    and their prefix sums: half as many bytes are moved.
    """
    columns, sides, rows = shape
    return columns, 1 if records < 2**_HALF else sides, rows


def add_records(
    total: Integer[Array, "pairs columns sides rows"],
    columns: FineCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    spare: Integer[Array, ""],
) -> Integer[Array, "pairs columns sides rows"]:
    """`kernel.add_records`, for all pairs in one scatter."""
    n = columns.rows.shape[1] - spare
    return _refine(total, columns, jnp.stack([first, second], axis=1), n)


def count_refined(
    total: Integer[Array, "pairs columns sides rows"],
    edges: FineEdges,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    number: Integer[Array, "1"],
    *,
    layout: Layout,
) -> tuple[Counts, ...]:
    """`kernel.count_refined`, of all pairs for which there is room."""
    del number

    def of_some(given):
        total, both = given
        return _read_off(total, edges, both, layout)

    both = jnp.stack([first, second], axis=1)
    return _some_at_a_time(of_some, (total, both), math.prod(total.shape[1:]))


def optimise(
    counts: Counts,
    number: Integer[Array, "1"],
    gains: Gains,
    *,
    parts: int,
    lanes: int,
    by_triton: bool,
    edges: bool = False,
) -> Information:
    """`kernel.optimise`, of all lanes for which there is room.

    `edges` says that `counts` are those up to each edge (`edges_of`) already.
    """
    del number
    master = counts.shape[2] if edges else counts.shape[1] + 1
    before = (lambda given: given) if edges else edges_of
    fits = optimise_triton.chunk_of(master, parts) is not None
    if by_triton and fits and isinstance(gains, FastGains | ExactGains):
        return optimise_triton.best_information(before(counts), parts, gains)[None]
    return lax.map(
        lambda some: best_information(
            jnp.transpose(before(some), (2, 1, 0)), parts, gains, at_once=True
        ),
        _in_turns(counts, lanes),
    )


def edges_of(counts: Counts) -> Edges:
    """Records of each row, and of all, before each edge."""
    before = jnp.cumsum(jnp.swapaxes(counts, 1, 2), axis=2, dtype=jnp.int32)
    before = jnp.concatenate([before, before.sum(axis=1, keepdims=True, dtype=jnp.int32)], axis=1)
    return jnp.pad(before, ((0, 0), (0, 0), (1, 0)))


def tables(counts: Counts, number: Integer[Array, "1"], gains: Gains, *, lanes: int) -> Information:
    """`kernel.tables`, of all lanes for which there is room."""
    del number
    return lax.map(lambda some: table_information(some, gains)[None], _in_turns(counts, lanes))


def distances(
    counts: Counts, number: Integer[Array, "1"], steps: Steps, *, lanes: int
) -> Information:
    """`kernel.distances`, of all lanes for which there is room: every split and t at once."""
    del number
    sides, free = jnp.asarray(splits())[None], np.arange(len(splits()))[None] < CUTS
    price = jnp.where(free, 0, steps.price)
    return lax.map(lambda some: _largest(some, steps, sides, price)[None], _in_turns(counts, lanes))


def nominal_distances(
    counts: Counts,
    number: Integer[Array, "1"],
    steps: Steps,
    splitting: Integer[Array, "lanes 2"],
    *,
    lanes: int,
) -> Information:
    """`kernel.nominal_distances`, of all lanes for which there is room."""
    del number
    sides, unions = map(jnp.asarray, splits_of_kinds(counts.shape[1]))

    def of_some(given):
        some, own = given
        kinds, prices = own[:, 0], own[:, 1]
        of_union = jnp.where(unions[kinds], steps.price, 0)
        return jnp.maximum(_largest(some, steps, sides[kinds], of_union) - prices, 0)[None]

    return lax.map(of_some, (_in_turns(counts, lanes), _in_turns(splitting, lanes)))


def _in_turns(
    array: Integer[Array, "lanes *shape"], lanes: int
) -> Integer[Array, "turns some *shape"]:
    return array.reshape(-1, lanes, *array.shape[1:])


def _largest(
    counts: Integer[Array, "lanes parts others"],
    steps: Steps,
    sides: Bool[Array, "_ splits parts"],
    price: Integer[Array, "_ splits"],
) -> Integer[Array, " lanes"]:
    """The largest D, each less its price: by lanes, splits and values of t.

    The values of t come last, so that XLA finds the smallest distance in one kernel.
    """
    part = counts.sum(axis=1, dtype=jnp.int32)[:, None]
    n = part.sum(axis=2, dtype=jnp.int32)
    near = jnp.where(sides[..., None], counts[:, None], 0).sum(axis=2, dtype=jnp.int32)
    total = near.sum(axis=2, dtype=jnp.int32)
    number, k = steps.number, np.arange(1, len(steps.weights) + 1, dtype=np.int32)[None, None]
    weight = jnp.asarray(steps.weights)[None, None]

    def distance(k, other):
        """Of t = 1 / u, or with the sides exchanged.

        |x - y| is x + y - 2 min(x, y), and the sums of x and of y are known, so that a part takes
        two operations. What is added up is at most G n, as (G + k) a_j - G c_j is at most k c_j.
        """
        least = 0
        for j in range(part.shape[2]):
            least += jnp.minimum((number + k) * near[..., j, None], other * part[..., j, None])
        one, two = (number + k) * total[..., None], other * n[..., None]
        return (one - least) + (two - least) + weighted(weight, jnp.abs(one - two))

    found = jnp.minimum(distance(k, number), distance(k, k))
    found = jnp.where(k <= number, found, np.iinfo(np.int32).max).min(axis=2)
    one_sided = 2 * number * jnp.minimum(total, n - total)
    return jnp.maximum((jnp.minimum(found, one_sided) - price).max(axis=1), 0)


def _count_directly(
    columns: DirectCodes,
    both: Integer[Array, "pairs 2"],
    n: Integer[Array, ""],
    bucket: Bucket,
    masters: Integer[Array, " grids"],
    rows: Integer[Array, " grids"],
) -> Counts:
    """Every grid of a bucket in one scatter."""
    shape = len(both), len(masters), 2
    lanes, cells = math.prod(shape), bucket.master * bucket.rows
    first = jnp.arange(lanes, dtype=jnp.uint32).reshape(shape)[..., None] * np.uint32(cells)
    merged = _codes(columns.masters, masters[None, :, None], both[:, None])
    fixed = _codes(columns.rows, rows[None, :, None], both[:, None, ::-1])
    cell = first + merged * np.uint32(bucket.rows) + fixed
    return _added(jnp.zeros((lanes, bucket.master, bucket.rows), jnp.int32), cell, n)


def _added(
    total: Integer[Array, "*cells"],
    cell: Integer[Array, "*lanes sides n_up"],
    n: Integer[Array, ""],
    one: tuple[int, int] = (1, 1),
) -> Integer[Array, "*cells"]:
    """Counts, and the first n records of every lane in their cells: what one adds, by side."""
    record = (jnp.arange(cell.shape[-1], dtype=jnp.int32) < n).astype(jnp.int32)
    record = jnp.broadcast_to(record[None] * np.array(one, np.int32)[:, None], cell.shape)
    added = total.reshape(-1).at[cell].add(record, mode="promise_in_bounds")
    return added.reshape(total.shape)


def _codes(
    table: Integer[Array, "*sizes columns n"],
    *lanes: Integer[Array, "*lanes"],
) -> Integer[Array, "*lanes n"]:
    """Codes of a column, in a size, for every lane."""
    return table.at[lanes].get(mode="promise_in_bounds").astype(jnp.uint32)


def _refine(
    total: Integer[Array, "pairs columns sides rows"],
    columns: FineCodes,
    both: Integer[Array, "pairs 2"],
    n: Integer[Array, ""],
) -> Integer[Array, "pairs columns sides rows"]:
    """Add the first n records to counts on the refinement, in one scatter."""
    pairs, width, sides, height = total.shape
    side = np.arange(2, dtype=np.uint32) % np.uint32(sides)
    pair = jnp.arange(pairs, dtype=jnp.uint32)[:, None] * np.uint32(width * sides)
    merged, fixed = _codes(columns.masters, both), _codes(columns.rows, both[:, ::-1])
    line = (pair + side[None])[..., None] + merged * np.uint32(sides)
    cell = line * np.uint32(height) + fixed
    return _added(total, cell, n, (1, 1 if sides == 2 else 2**_HALF))


def _read_off(
    total: Integer[Array, "pairs columns sides rows"],
    edges: FineEdges,
    both: Integer[Array, "pairs 2"],
    layout: Layout,
) -> tuple[Counts, ...]:
    """What is counted of some pairs (`Layout.counted`) on every grid, bucket by bucket."""
    pairs, width, sides, height = total.shape
    before = (prefix_triton.prefix_sums if layout.triton else _prefix_sums)(total).reshape(-1)
    pair = jnp.arange(pairs, dtype=jnp.int32)[:, None, None, None, None] * np.int32(width)
    side = np.arange(2, dtype=np.int32)[None, None, :, None, None]
    found = []
    for bucket, masters, rows in layout.spots():
        at = jnp.expand_dims(both, 1), jnp.expand_dims(both[:, ::-1], 1)
        column = edges.masters[masters[None, :, None], at[0], : bucket.master + 1][..., None, :]
        row = edges.rows[rows[None, :, None], at[1], : bucket.rows + 1][..., None]
        spot = ((pair + column.astype(jnp.int32) - 1) * sides + side % sides) * height + row - 1
        # Before the first column and row there are none.
        none = (column == 0) | (row == 0)
        corner = before.at[jnp.where(none, 0, spot)].get(mode="promise_in_bounds")
        if sides == 1:
            corner = (corner >> _HALF * side) & np.int32(2**_HALF - 1)
        corner = jnp.where(none, 0, corner)
        by_row = corner[..., 1:, :] - corner[..., :-1, :]
        if layout.edges and bucket.parts > 1:
            counts = jnp.concatenate([by_row, corner[..., -1:, :]], axis=-2)
        else:
            counts = jnp.swapaxes(by_row[..., 1:] - by_row[..., :-1], -1, -2)
        found.append(counts.reshape(-1, *layout.counted(bucket)))
    return tuple(found)


def _prefix_sums(
    counts: Integer[Array, "pairs columns sides rows"],
) -> Integer[Array, "pairs columns sides rows"]:
    """How many records lie up to each column and each row."""
    # XLA would sum up again for every bucket what it reads off.
    return lax.optimization_barrier(jnp.cumsum(jnp.cumsum(counts, axis=3), axis=1))


def _some_at_a_time(of_some, given, cells: int) -> tuple[Counts, ...]:
    """What is found of all pairs, of which as many are worked on at a time as there is room for."""
    pairs = len(jax.tree.leaves(given)[0])
    turns = min(pairs, -(-4 * cells * pairs // backends.REFINED_BYTES))
    while pairs % turns:
        turns += 1
    if turns == 1:
        return of_some(given)
    parts = jax.tree.map(lambda array: array.reshape(turns, -1, *array.shape[1:]), given)
    return tuple(found.reshape(-1, *found.shape[2:]) for found in lax.map(of_some, parts))
