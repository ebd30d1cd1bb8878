"""Score pairs of columns of which one is shuffled against the other.

Codes are made once a column. A record's codes depend on its own value and on the set of all
values, not on where it stands, so shuffling codes is shuffling records. A lane is one pair in
one draw; lanes are numbered draw by draw, and a tile has room for a fixed number of them. One
program draws words, one lays out the codes of a tile's lanes, and the tile's own programs do the
rest: only the second knows the number of columns, and none that of pairs or draws.

Everything is integer (`exact_gains`): a lane has the same value in any tile, on any device.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int, Integer, Key, UInt32
from tqdm import tqdm

from dpmic_jax.dp.rng.keys import AnyKey, noise_key, wrap
from dpmic_jax.mic import batch
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.batch import Device
from dpmic_jax.mic.characteristic import Measure
from dpmic_jax.mic.coding import (
    Codes,
    DirectCodes,
    FineCodes,
    FineEdges,
    RefinedCodes,
    cheaper_codes,
)
from dpmic_jax.mic.kernel import BucketCounts, Layout, count
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Call, Program, compiled, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import exact_gains

# The draw in which nothing is shuffled.
OBSERVED = 0
MOST_DRAWS = 2**31 - 2
# What the shuffles of a tile may take, 40 bytes a record and lane.
SHUFFLE_BYTES = 2**28
# Programs are laid out for so many lanes, however many there are: one set serves all calls.
PLANNED_LANES = 10_000
# Folded into the key first: a key that also breaks ties (`RandomTies(key)`) gives other words here.
_PURPOSE = 0x73687566


def shuffles(
    key: AnyKey, draws: Integer[np.ndarray, " lanes"], n: int, mesh: Mesh
) -> Int[np.ndarray, "lanes n"]:
    """A uniform permutation of n records for each draw, the same for the same draw; none for 0.

    The ranks of n independent words of 64 bits. Two of them are equal, and then in order, with
    a probability below n^2 / 2^65, which bounds the distance from uniform.
    """
    program, given = _drawing(key, draws, n)
    words = np.asarray(compiled(program, mesh, *given)(*given))[..., :n]
    high, low = words.swapaxes(0, 1)
    distinct, first, lane = np.unique(draws, return_index=True, return_inverse=True)
    words = high[first].astype(np.uint64) << np.uint64(32) | low[first]
    orders = np.argsort(words, axis=1, kind="stable").astype(np.int32)
    orders[distinct == OBSERVED] = np.arange(n)
    return orders[lane]


def _drawing(key: AnyKey, draws: Integer[np.ndarray, " lanes"], n: int) -> Call:
    # More words than records, so that few programs serve all n.
    most = max(64, 1 << (n - 1).bit_length())
    program = Program(_words, (("most", most),), (EVERYWHERE, SPLIT), SPLIT)
    return program, (np.asarray(jax.random.key_data(noise_key(key))), draws.astype(np.int32))


def _words(
    key: UInt32[Array, " words"], draws: Int[Array, " lanes"], *, most: int
) -> UInt32[Array, "lanes 2 most"]:
    purpose = jax.random.fold_in(wrap(key), _PURPOSE)
    return jax.vmap(lambda draw: jax.random.bits(jax.random.fold_in(purpose, draw), (2, most)))(
        draws
    )


def measured(
    cut: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    measure: Measure,
    draws: range,
    *,
    key: AnyKey,
    devices: Sequence[Device] = (),
    tile: int = 2**31,
) -> Iterator[Float[np.ndarray, " lanes"]]:
    """The measure of every pair in every draw: of all pairs in the first draw, and so on.

    All pairs of a draw share its shuffle.

    Args:
      cut: the columns.
      pairs: the two columns of each pair; the second is shuffled.
      measure: what to read off each characteristic matrix.
      draws: which ones; in draw 0 nothing is shuffled.
      key: of the shuffles.
      devices: where to run; the first device of JAX's default backend if none are given.
      tile: the most lanes that a device scores at a time.
    """
    devices = devices or jax.devices()[:1]
    run = _Tiles(cut, pairs, draws, key=noise_key(key), devices=devices, tile=tile)
    with tqdm(total=len(pairs) * len(draws), unit="draw", disable=None, delay=1) as bar:
        for information in run:
            values = np.asarray(measure(read.characteristic(cut.grids, information)))
            if values.shape != information.shape[2:]:
                raise ValueError("expected measure to give one number a matrix, as mic does")
            yield values
            bar.update(len(values))


class _Tiles:
    """The lanes of some pairs and draws, a tile at a time and in order."""

    def __init__(
        self,
        cut: BinnedTable,
        pairs: Int[np.ndarray, "pairs 2"],
        draws: range,
        *,
        key: Key[Array, ""],
        devices: Sequence[Device],
        tile: int,
    ):
        self._mesh, self._workers = Mesh(np.array(devices), ("pairs",)), batch.workers(devices)
        self._n, self._pairs, self._draws, self._key = cut.n, pairs, draws, key
        codes = cheaper_codes(cut.masters, cut.rows)
        self._empty = codes.empty if isinstance(codes, RefinedCodes) else ()
        self._records = jax.tree.leaves(codes)[0].shape[-1]  # with those that only pad
        room = max(1, SHUFFLE_BYTES // (40 * self._records))
        layout = batch.layout_for(cut.grids, PLANNED_LANES, devices[0].platform)
        layout = layout._replace(pairs=min(layout.pairs, 1 << (room.bit_length() - 1)))
        self._room, self._tile = layout.pairs, min(tile, layout.pairs)
        self._codes, gains = on_devices(self._mesh, (codes, exact_gains(cut.n)))
        self._optimise = batch.Optimiser(layout, self._mesh, gains, self._others(layout))
        self._lay_out, self._count, _ = self._optimise.others

    def _others(self, layout: Layout) -> list[Call]:
        """What is compiled beside the optimiser, with arguments of the shapes that it gets."""
        lanes = np.zeros(self._room * self._mesh.size, np.int32)
        orders = jax.ShapeDtypeStruct((len(lanes), self._records), np.int32)
        given = self._codes, lanes, lanes, orders
        sides = jax.eval_shape(_LAYING_OUT.function, *given)
        number, n = np.zeros(self._mesh.size, np.int32), np.int32(self._n)
        return [
            (_LAYING_OUT, given),
            (_counting(layout), (sides, self._empty, number, n)),
            _drawing(self._key, lanes, self._n),
        ]

    def __iter__(self) -> Iterator[Int[np.ndarray, "entries 2 lanes"]]:
        lanes, most = len(self._pairs) * len(self._draws), self._tile * self._mesh.size
        # As many tiles as keep all workers busy to the end, of even size.
        tiles = min(-(-lanes // (most * self._workers)) * self._workers, lanes)
        tasks = (range(i * lanes // tiles, (i + 1) * lanes // tiles) for i in range(tiles))
        return batch.in_order(self._run, tasks, self._workers)

    def _run(self, lanes: range) -> Int[np.ndarray, "entries 2 lanes"]:
        draw, pair = np.divmod(np.array(lanes), len(self._pairs))
        chosen = np.stack([pair, self._draws.start + draw], axis=1)
        pair, draw, number = batch.share_out(chosen, self._mesh.size, self._room)
        orders = np.empty((len(draw), self._records), np.int32)
        orders[:, : self._n] = shuffles(self._key, draw, self._n, self._mesh)
        # Records that only pad stay where they are.
        orders[:, self._n :] = np.arange(self._n, self._records)
        first, second = self._pairs[pair].astype(np.int32).T
        sides = self._lay_out(self._codes, first, second, orders)
        counts = self._count(sides, self._empty, number, np.int32(self._n))
        return self._optimise(counts, number)


# Codes, and edges if there are any, of the first column of every lane and then of the second.
_Sides = tuple[Integer[Array, "sizes both _"], ...]
_SPLIT_SIDES = PartitionSpec(None, "pairs")


def _side_by_side(
    columns: Codes,
    first: Integer[Array, " lanes"],
    second: Integer[Array, " lanes"],
    orders: Integer[Array, "lanes n"],
) -> _Sides:
    """Take the two columns of every lane, and shuffle the second."""
    both = jnp.concatenate([first, second])

    def shuffled(codes):  # "sizes columns n"
        moved = jnp.take_along_axis(
            codes[:, second], orders[None], axis=2, mode="promise_in_bounds"
        )
        return jnp.concatenate([codes[:, first], moved], axis=1)

    if isinstance(columns, DirectCodes):
        return shuffled(columns.masters), shuffled(columns.rows)
    fine, edges = columns.codes, columns.edges
    codes = shuffled(fine.masters[None]), shuffled(fine.rows[None])
    return *codes, edges.masters[:, both], edges.rows[:, both]


_LAYING_OUT = Program(_side_by_side, (), (EVERYWHERE, SPLIT, SPLIT, SPLIT), _SPLIT_SIDES)


def _count_sides(
    sides: _Sides,
    empty: Any,
    number: Integer[Array, "1"],
    n: Integer[Array, ""],
    *,
    layout: Layout,
) -> BucketCounts:
    """`count` the columns of all lanes; `empty` is that of `RefinedCodes`, if any."""
    masters, rows, *edges = sides
    lane = jnp.arange(layout.pairs, dtype=jnp.int32)
    table = (
        RefinedCodes(FineCodes(masters[0], rows[0]), FineEdges(*edges), empty)
        if edges
        else DirectCodes(masters, rows)
    )
    return count(table, lane, lane + np.int32(layout.pairs), number, n, layout=layout)


def _counting(layout: Layout) -> Program:
    inputs = _SPLIT_SIDES, EVERYWHERE, SPLIT, EVERYWHERE
    return Program(_count_sides, (("layout", layout),), inputs, SPLIT)
