"""Score pairs of columns with one column shuffled against the other.

Codes are made once for each column. A record's codes depend on its own value and on the multiset of
all values, not on its position, so shuffling codes is shuffling records. A lane is one pair in one
draw. Lanes are numbered draw by draw, and a tile holds a fixed number of them. One program draws
random words, one lays out the codes of a tile's lanes, and the programs of `mic` do the rest. Only
the second program depends on the number of columns, and none depends on the number of pairs or
draws, so they are seldom compiled anew.

All arithmetic is in integers (`exact_gains`): a lane has the same value in any tile, on any device.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int, Integer, Key, UInt32, UInt64
from tqdm import tqdm

from dpmic_jax.dp.rng.keys import AnyKey, noise_key, wrap
from dpmic_jax.dp.rng.orders import untied
from dpmic_jax.mic import batch
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.backends import Device, backend
from dpmic_jax.mic.characteristic import Measure
from dpmic_jax.mic.coding import (
    Codes,
    DirectCodes,
    FineCodes,
    FineEdges,
    RefinedCodes,
    cheaper_codes,
)
from dpmic_jax.mic.kernel import BucketCounts, counting_of
from dpmic_jax.mic.layout import Layout
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Call, Program, compiled, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import Gains, exact_gains

OBSERVED = 0  # the draw in which nothing is shuffled
MOST_DRAWS = 2**31 - 2  # the number of the last draw fits int32
SHUFFLE_BYTES = 2**28  # memory for the shuffles of a tile
_BYTES_PER_RECORD = 40  # of one lane, while its shuffle is drawn and applied
# Programs are laid out for this many lanes, however many there are: one set serves all calls.
PLANNED_LANES = 10_000
# "shuf" in ASCII. It is folded into the key first, so that a key that also breaks ties
# (`RandomTies(key)`) gives other words here.
_PURPOSE = 0x73687566
_TIED = 0x74696564  # "tied", likewise


def shuffles(
    key: AnyKey, draws: Integer[np.ndarray, " lanes"], n: int, mesh: Mesh
) -> Int[np.ndarray, "lanes n"]:
    """A uniform permutation of n records for each draw; the identity for draw 0.

    Lanes of the same draw have the same permutation. It sorts n independent words of 64 bits. Where
    two of them are equal, further words decide, so that the permutation is exactly uniform.
    """
    program, given = _drawing(key, draws, n)
    words = np.asarray(compiled(program, mesh, *given)(*given))[..., :n]
    high, low = words.swapaxes(0, 1)
    # The pairs of a draw share its order, so each draw is sorted once.
    distinct, first, lane = np.unique(draws, return_index=True, return_inverse=True)
    words = high[first].astype(np.uint64) << np.uint64(32) | low[first]
    orders = np.argsort(words, axis=1, kind="stable").astype(np.int32)
    for row in np.flatnonzero(_tied(words, orders)):
        purpose = jax.random.fold_in(noise_key(key), _TIED)
        orders[row] = untied(words[row], jax.random.fold_in(purpose, int(distinct[row])))
    orders[distinct == OBSERVED] = np.arange(n)
    return orders[lane]


def _tied(words: UInt64[np.ndarray, "draws n"], orders: Int[np.ndarray, "draws n"]) -> np.ndarray:
    """Whether two words of a draw are equal, which has a probability below n^2 / 2^65."""
    ordered = np.take_along_axis(words, orders, axis=1)
    return (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)


def _drawing(key: AnyKey, draws: Integer[np.ndarray, " lanes"], n: int) -> Call:
    # Words for the next power of two of records, so that few programs serve all n. Another size
    # may draw other words, and so change the results of a seed.
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
    table: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    measure: Measure,
    draws: range,
    *,
    key: AnyKey,
    devices: Sequence[Device] = (),
    tile: int = 2**31,
) -> Iterator[Float[np.ndarray, " lanes"]]:
    """The measure of every pair in every draw: of all pairs in the first draw, and so on.

    All pairs of a draw share its shuffle. Values come in chunks, one for each tile.

    Args:
      table: the columns.
      pairs: the two columns of each pair; the second is shuffled.
      measure: what to read off each characteristic matrix.
      draws: the draws to score; nothing is shuffled in draw 0.
      key: key of the shuffles.
      devices: devices to run on; by default the first device of JAX's default backend.
      tile: the most lanes that a device scores at a time.
    """
    gains, devices = exact_gains(table.n), devices or jax.devices()[:1]
    run = _Tiles(table, pairs, draws, gains, key=noise_key(key), devices=devices, tile=tile)
    for information in _with_bar(run, len(pairs) * len(draws)):
        values = np.asarray(measure(read.characteristic(table.grids, information)))
        if values.shape != information.shape[2:]:
            raise ValueError("expected measure to give one number for each matrix, as mic does")
        yield values


def distances(
    table: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    draws: range,
    *,
    key: AnyKey,
    devices: Sequence[Device] = (),
    tile: int = 2**31,
) -> Iterator[Int[np.ndarray, " lanes"]]:
    """The distance from independence (D of `mic.distance`) of every pair in every draw.

    The order, the chunks and the arguments are those of `measured`. Exact, so not private.

    Args:
      table: the columns, cut by `MICrAndDistance(micr=None)`.
      pairs: the two columns of each pair; the second is shuffled.
      draws: the draws to score; nothing is shuffled in draw 0.
      key: key of the shuffles.
      devices: devices to run on; by default the first device of JAX's default backend.
      tile: the most lanes that a device scores at a time.
    """
    devices = devices or jax.devices()[:1]
    run = _Tiles(table, pairs, draws, None, key=noise_key(key), devices=devices, tile=tile)
    for information in _with_bar(run, len(pairs) * len(draws)):
        yield information[-1].max(axis=0)


def _with_bar(
    tiles: Iterable[Int[np.ndarray, "entries 2 lanes"]], lanes: int
) -> Iterator[Int[np.ndarray, "entries 2 lanes"]]:
    """The same tiles, with a bar on a terminal if they take more than a second."""
    with tqdm(total=lanes, unit="draw", disable=None, delay=1) as bar:
        for information in tiles:
            yield information
            bar.update(information.shape[2])


class _Tiles:
    """The lanes of some pairs and draws, a tile at a time and in order."""

    def __init__(
        self,
        table: BinnedTable,
        pairs: Int[np.ndarray, "pairs 2"],
        draws: range,
        gains: Gains | None,
        *,
        key: Key[Array, ""],
        devices: Sequence[Device],
        tile: int,
    ):
        self._mesh, self._workers = Mesh(np.array(devices), ("pairs",)), batch.workers(devices)
        self._n, self._pairs, self._draws, self._key = table.n, pairs, draws, key
        platform = devices[0].platform
        codes = cheaper_codes(table.masters, table.rows, backend(platform))
        self._empty = codes.empty if isinstance(codes, RefinedCodes) else ()
        self._records = jax.tree.leaves(codes)[0].shape[-1]  # with padding
        room = max(1, SHUFFLE_BYTES // (_BYTES_PER_RECORD * self._records))
        layout = batch.layout_for(table.grids, PLANNED_LANES, platform)
        # A power of two: a layout is compiled, and few layouts serve tables of all sizes.
        layout = layout._replace(pairs=min(layout.pairs, 1 << (room.bit_length() - 1)))
        self._room, self._tile = layout.pairs, min(tile, layout.pairs)
        self._codes, gains = on_devices(self._mesh, (codes, gains))
        n = table.n if gains is None else None  # which distances need, and no information
        self._optimise = batch.Optimiser(
            layout, self._mesh, gains, self._others(layout), n=n, bins=table.bins
        )
        self._lay_out, self._count, _ = self._optimise.others

    def _others(self, layout: Layout) -> list[Call]:
        """The other programs, with arguments of their shapes: all are compiled in parallel."""
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
        # Tiles of even size, a multiple of the workers, so that all are busy to the end.
        tiles = min(-(-lanes // (most * self._workers)) * self._workers, lanes)
        tasks = (range(i * lanes // tiles, (i + 1) * lanes // tiles) for i in range(tiles))
        return batch.in_order(self._run, tasks, self._workers)

    def _run(self, lanes: range) -> Int[np.ndarray, "entries 2 lanes"]:
        draw, pair = np.divmod(np.array(lanes), len(self._pairs))
        chosen = np.stack([pair, self._draws.start + draw], axis=1)
        pair, draw, number = batch.share_out(chosen, self._mesh.size, self._room)
        orders = np.empty((len(draw), self._records), np.int32)
        orders[:, : self._n] = shuffles(self._key, draw, self._n, self._mesh)
        # Padding stays where it is.
        orders[:, self._n :] = np.arange(self._n, self._records)
        first, second = self._pairs[pair].astype(np.int32).T
        sides = self._lay_out(self._codes, first, second, orders)
        counts = self._count(sides, self._empty, number, np.int32(self._n))
        return self._optimise(counts, number, (first, second))


# Codes, and edges if there are any, of the first column of every lane and then of the second.
_Sides = tuple[Integer[Array, "sizes both _"], ...]
_SPLIT_SIDES = PartitionSpec(None, "pairs")


def _side_by_side(
    columns: Codes,
    first: Integer[Array, " lanes"],
    second: Integer[Array, " lanes"],
    orders: Integer[Array, "lanes n"],
) -> _Sides:
    """The codes of the two columns of every lane, the second column shuffled."""
    both = jnp.concatenate([first, second])

    def side_by_side(codes):  # "sizes columns n"
        shuffled = jnp.take_along_axis(
            codes[:, second], orders[None], axis=2, mode="promise_in_bounds"
        )
        return jnp.concatenate([codes[:, first], shuffled], axis=1)

    if isinstance(columns, DirectCodes):
        return side_by_side(columns.masters), side_by_side(columns.rows)
    # Shuffling moves the fine codes of records; the edges of a column's bins stay.
    fine, edges = columns.codes, columns.edges
    codes = side_by_side(fine.masters[None]), side_by_side(fine.rows[None])
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
    """Count the master grids of all lanes; `empty` is that of `RefinedCodes`, if any."""
    masters, rows, *edges = sides
    lane = jnp.arange(layout.pairs, dtype=jnp.int32)
    table = (
        RefinedCodes(FineCodes(masters[0], rows[0]), FineEdges(*edges), empty)
        if edges
        else DirectCodes(masters, rows)
    )
    return counting_of(layout)(table, lane, lane + np.int32(layout.pairs), number, n, layout=layout)


def _counting(layout: Layout) -> Program:
    inputs = _SPLIT_SIDES, EVERYWHERE, SPLIT, EVERYWHERE
    return Program(_count_sides, (("layout", layout),), inputs, SPLIT)
