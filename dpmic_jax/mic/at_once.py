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

from dpmic_jax.mic import optimise_triton, prefix_triton
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

# Of counts on the refinement that are made and read off at a time.
REFINED_BYTES = 2**29
# Of counts of a tile that are scattered to at a time, at most; indices are 32 bits.
_MOST_CELLS = 2**30

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

    def of_some(both):
        total = jnp.zeros((len(both), *columns.empty.shape), jnp.int32)
        total = _refine(total, columns.codes, both, n)
        return _read_off(total, columns.edges, both, layout)

    return _some_at_a_time(of_some, both, math.prod(columns.empty.shape))


def add_records(
    total: Integer[Array, "pairs columns 2 rows"],
    columns: FineCodes,
    first: Integer[Array, " pairs"],
    second: Integer[Array, " pairs"],
    spare: Integer[Array, ""],
) -> Integer[Array, "pairs columns 2 rows"]:
    """`kernel.add_records`, for all pairs in one scatter."""
    n = columns.rows.shape[1] - spare
    return _refine(total, columns, jnp.stack([first, second], axis=1), n)


def count_refined(
    total: Integer[Array, "pairs columns 2 rows"],
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
) -> Information:
    """`kernel.optimise`, of all lanes for which there is room."""
    del number
    if by_triton and isinstance(gains, FastGains | ExactGains):
        return optimise_triton.best_information(edges_of(counts), parts, gains)[None]
    some = _in_turns(counts, lanes)
    return lax.map(
        lambda counts: best_information(
            jnp.transpose(edges_of(counts), (2, 1, 0)), parts, gains, at_once=True
        ),
        some,
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
        """Of t = 1 / u, or with the sides exchanged."""
        apart = 0
        for j in range(part.shape[2]):
            one, of_part = near[..., j, None], part[..., j, None]
            apart += jnp.abs((number + k) * one - other * of_part)
        beyond = jnp.abs((number + k) * total[..., None] - other * n[..., None])
        return apart + weighted(weight, beyond)

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
    total: Integer[Array, "*cells"], cell: Integer[Array, "*lanes n_up"], n: Integer[Array, ""]
) -> Integer[Array, "*cells"]:
    """Counts, and the first n records of every lane in their cells."""
    record = (jnp.arange(cell.shape[-1], dtype=jnp.int32) < n).astype(jnp.int32)
    record = jnp.broadcast_to(record, cell.shape)
    added = total.reshape(-1).at[cell].add(record, mode="promise_in_bounds")
    return added.reshape(total.shape)


def _codes(
    table: Integer[Array, "*sizes columns n"],
    *lanes: Integer[Array, "*lanes"],
) -> Integer[Array, "*lanes n"]:
    """Codes of a column, in a size, for every lane."""
    return table.at[lanes].get(mode="promise_in_bounds").astype(jnp.uint32)


def _refine(
    total: Integer[Array, "pairs columns 2 rows"],
    columns: FineCodes,
    both: Integer[Array, "pairs 2"],
    n: Integer[Array, ""],
) -> Integer[Array, "pairs columns 2 rows"]:
    """Add the first n records to counts on the refinement, in one scatter."""
    pairs, width, sides, height = total.shape
    side = jnp.arange(sides, dtype=jnp.uint32)
    pair = jnp.arange(pairs, dtype=jnp.uint32)[:, None] * np.uint32(width * sides)
    merged, fixed = _codes(columns.masters, both), _codes(columns.rows, both[:, ::-1])
    line = (pair + side[None])[..., None] + merged * np.uint32(sides)
    cell = line * np.uint32(height) + fixed
    return _added(total, cell, n)


def _read_off(
    total: Integer[Array, "pairs columns 2 rows"],
    edges: FineEdges,
    both: Integer[Array, "pairs 2"],
    layout: Layout,
) -> tuple[Counts, ...]:
    """The counts of some pairs on every grid, bucket by bucket."""
    pairs, width, sides, height = total.shape
    before = (prefix_triton.prefix_sums if layout.triton else _prefix_sums)(total).reshape(-1)
    pair = jnp.arange(pairs, dtype=jnp.int32)[:, None, None, None, None] * np.int32(width)
    side = np.arange(sides, dtype=np.int32)[None, None, :, None, None]
    found = []
    for bucket, masters, rows in layout.spots():
        at = jnp.expand_dims(both, 1), jnp.expand_dims(both[:, ::-1], 1)
        column = edges.masters[masters[None, :, None], at[0], : bucket.master + 1][..., None]
        row = edges.rows[rows[None, :, None], at[1], : bucket.rows + 1][..., None, :]
        spot = ((pair + column.astype(jnp.int32) - 1) * sides + side) * height + row - 1
        # Before the first column and row there are none.
        none = (column == 0) | (row == 0)
        corner = before.at[jnp.where(none, 0, spot)].get(mode="promise_in_bounds")
        corner = jnp.where(none, 0, corner)
        by_column = corner[..., 1:, :] - corner[..., :-1, :]
        counts = by_column[..., 1:] - by_column[..., :-1]
        found.append(counts.reshape(-1, bucket.master, bucket.rows))
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
    turns = min(pairs, -(-4 * cells * pairs // REFINED_BYTES))
    while pairs % turns:
        turns += 1
    if turns == 1:
        return of_some(given)
    parts = jax.tree.map(lambda array: array.reshape(turns, -1, *array.shape[1:]), given)
    return tuple(found.reshape(-1, *found.shape[2:]) for found in lax.map(of_some, parts))
