"""Score pairs of columns of which one is shuffled against the other.

Codes are made once a column. A record's codes depend on its own value and on the set of all
values, not on where it stands, so shuffling codes is shuffling records. A lane is one pair in
one draw; lanes are numbered draw by draw, and a tile is a fixed number of them, so that one
compiled program serves every number of pairs and draws.

Everything is integer (`exact_gains`): a lane has the same value in any tile, on any device.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Integer, Key, UInt32
from tqdm import tqdm

from dpmic_jax.dp.keys import AnyKey, noise_key
from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic import sweep
from dpmic_jax.mic.characteristic import Measure
from dpmic_jax.mic.gains import Gains, exact_gains
from dpmic_jax.mic.grids import buckets
from dpmic_jax.mic.settings import Cut
from dpmic_jax.mic.sweep import Device
from dpmic_jax.mic.tile import (
    Codes,
    DirectCodes,
    FineCodes,
    FineEdges,
    Information,
    Layout,
    RefinedCodes,
    cheaper_codes,
    score,
)

# The draw in which nothing is shuffled.
OBSERVED = 0
MOST_DRAWS = 2**31 - 2
# What the shuffles of a tile may take, 40 bytes a record and lane.
SHUFFLE_BYTES = 2**28
# Programs are laid out for so many lanes, however many there are: one serves all calls.
PLANNED_LANES = 10_000
# Folded into the key first: a key that also breaks ties (`random(key)`) gives other words here.
_PURPOSE = 0x73687566


def shuffles(
    key: AnyKey, draws: Integer[np.ndarray, " lanes"], n: int
) -> Int[np.ndarray, "lanes n"]:
    """A uniform permutation of n records for each draw, the same for the same draw; none for 0.

    The ranks of n independent words of 64 bits. Two of them are equal, and then in order, with
    a probability below n^2 / 2^65, which bounds the distance from uniform.
    """
    # More words than records, so that few programs serve all n.
    most = max(64, 1 << (n - 1).bit_length())
    words = np.asarray(_words(noise_key(key), jnp.asarray(draws, jnp.int32), most))[..., :n]
    high, low = words.swapaxes(0, 1)
    distinct, first, lane = np.unique(draws, return_index=True, return_inverse=True)
    words = high[first].astype(np.uint64) << np.uint64(32) | low[first]
    orders = np.argsort(words, axis=1, kind="stable").astype(np.int32)
    orders[distinct == OBSERVED] = np.arange(n)
    return orders[lane]


@partial(jax.jit, static_argnums=2)
def _words(key: Key[Array, ""], draws: Int[Array, " lanes"], n: int) -> UInt32[Array, "lanes 2 n"]:
    key = jax.random.fold_in(key, _PURPOSE)
    return jax.vmap(lambda draw: jax.random.bits(jax.random.fold_in(key, draw), (2, n)))(draws)


def measured(
    cut: Cut,
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
    codes = cheaper_codes(cut.masters, cut.rows)
    devices = tuple(devices) or tuple(jax.devices()[:1])
    run = _Tiles(cut, codes, pairs, draws, key=noise_key(key), devices=devices, tile=tile)
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
        cut: Cut,
        codes: Codes,
        pairs: Int[np.ndarray, "pairs 2"],
        draws: range,
        *,
        key: Key[Array, ""],
        devices: tuple[Device, ...],
        tile: int,
    ):
        platform = devices[0].platform
        room = max(1, SHUFFLE_BYTES // (40 * cut.n))
        tile = min(tile, room, sweep.tile_pairs(codes, 2**31, platform))
        lanes = sweep.LANES.get(platform, sweep.MORE_LANES)
        mesh = Mesh(np.array(devices), ("pairs",))
        everywhere = NamedSharding(mesh, PartitionSpec())
        self._table = jax.device_put((codes, exact_gains(cut.n)), everywhere)
        self._program = _compiled(Layout(buckets(cut.grids, PLANNED_LANES), lanes), mesh)
        self._width = tile * len(devices)
        alone = len(devices) == 1 and platform == "cpu"
        self._workers = (os.cpu_count() or 1) if alone else 2
        self._n, self._pairs, self._draws, self._key = cut.n, pairs, draws, key

    def __iter__(self) -> Iterator[Int[np.ndarray, "entries 2 lanes"]]:
        starts = range(0, len(self._pairs) * len(self._draws), self._width)
        # Alone, so that the program is compiled once, not by every thread for itself.
        yield self._run(starts[0])
        pool, waiting = ThreadPoolExecutor(self._workers), []
        try:
            for start in starts[1:]:
                waiting.append(pool.submit(self._run, start))
                if len(waiting) > 2 * self._workers:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()
        finally:  # an interrupt waits for the tiles that are under way only
            pool.shutdown(cancel_futures=True)

    def _run(self, start: int) -> np.ndarray:
        count = len(self._pairs) * len(self._draws)
        wanted = min(self._width, count - start)
        # The last tile is filled up by repeating a lane, so that one program serves all.
        lanes = np.minimum(start + np.arange(self._width), count - 1)
        draw, pair = np.divmod(lanes, len(self._pairs))
        orders = shuffles(self._key, self._draws.start + draw, self._n)
        first, second = self._pairs[pair].astype(np.int32).T
        columns, gains = self._table
        return np.asarray(self._program(columns, first, second, orders, gains))[..., :wanted]


@lru_cache(maxsize=64)
def _compiled(layout: Layout, mesh: Mesh) -> jax.stages.Wrapped:
    """The program of a tile: its lanes are split over the devices."""
    everywhere, split = PartitionSpec(), PartitionSpec("pairs")
    specs = (everywhere, split, split, split, everywhere)
    program = partial(_score_shuffled, layout=layout)
    return sweep.split_over(mesh, program, specs, PartitionSpec(None, None, "pairs"))


def _score_shuffled(
    columns: Codes,
    first: Integer[Array, " lanes"],
    second: Integer[Array, " lanes"],
    orders: Integer[Array, "lanes n"],
    gains: Gains,
    *,
    layout: Layout,
) -> Information:
    """The tile program on a table that has both columns of every lane, the second shuffled."""
    lane = jnp.arange(len(first), dtype=jnp.int32)
    both = jnp.concatenate([first, second])

    def shuffle(codes):  # "... columns m": the records, and those that only pad
        n, m = orders.shape[1], codes.shape[-1]
        rest = jnp.broadcast_to(jnp.arange(n, m, dtype=jnp.int32)[None], (len(lane), m - n))
        order = jnp.concatenate([orders, rest], axis=1)
        order = order.reshape((1,) * (codes.ndim - 2) + order.shape)
        moved = jnp.take_along_axis(codes[..., second, :], order, axis=-1, mode="promise_in_bounds")
        return jnp.concatenate([codes[..., first, :], moved], axis=-2)

    if isinstance(columns, DirectCodes):
        table = DirectCodes(shuffle(columns.masters), shuffle(columns.rows))
    else:
        table = RefinedCodes(
            FineCodes(shuffle(columns.codes.masters), shuffle(columns.codes.rows)),
            FineEdges(columns.edges.masters[:, both], columns.edges.rows[:, both]),
            columns.empty,
        )
    return score(table, lane, lane + np.int32(len(lane)), gains, layout=layout)
