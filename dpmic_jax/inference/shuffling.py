"""Score pairs of columns of which one is shuffled against the other.

Codes are made once a column. A record's codes depend on its own value and on the set of all
values, not on where it stands, so shuffling codes is shuffling records. A lane is one pair in
one draw; lanes are numbered draw by draw, and a tile is a fixed number of them, so that one
compiled program serves every number of columns, pairs and draws.

Everything is integer (`exact_gains`): a lane has the same value in any tile, on any device.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

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
        layout = Layout(buckets(cut.grids, PLANNED_LANES), lanes)
        self._programs = _compiled(layout, mesh)
        self._width = tile * len(devices)
        alone = len(devices) == 1 and platform == "cpu"
        self._workers = (os.cpu_count() or 1) if alone else 2
        self._n, self._pairs, self._draws, self._key = cut.n, pairs, draws, key

    def __iter__(self) -> Iterator[Int[np.ndarray, "entries 2 lanes"]]:
        starts = range(0, len(self._pairs) * len(self._draws), self._width)
        # Alone, so that the programs are compiled once, not by every thread for itself.
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
        sides = self._programs.lay_out(columns, first, second, orders)
        empty = columns.empty if isinstance(columns, RefinedCodes) else ()
        return np.asarray(self._programs.score(sides, empty, gains))[..., :wanted]


class _Programs(NamedTuple):
    """Two programs, so that the one that takes long to compile knows no number of columns."""

    lay_out: jax.stages.Wrapped
    score: jax.stages.Wrapped


@lru_cache(maxsize=64)
def _compiled(layout: Layout, mesh: Mesh) -> _Programs:
    """The programs of a tile: its lanes are split over the devices."""
    everywhere, split = PartitionSpec(), PartitionSpec("pairs")
    sides, found = PartitionSpec(None, "pairs"), PartitionSpec(None, None, "pairs")
    score = partial(_score_sides, layout=layout)
    return _Programs(
        sweep.split_over(mesh, _side_by_side, (everywhere, split, split, split), sides),
        sweep.split_over(mesh, score, (sides, everywhere, everywhere), found),
    )


# Codes, and edges if there are any, of the first column of every lane and then of the second.
_Sides = tuple[Integer[Array, "sizes both _"], ...]


def _side_by_side(
    columns: Codes,
    first: Integer[Array, " lanes"],
    second: Integer[Array, " lanes"],
    orders: Integer[Array, "lanes n"],
) -> _Sides:
    """Take the two columns of every lane, and shuffle the second."""
    both = jnp.concatenate([first, second])

    def shuffled(codes):  # "sizes columns m": the records, and those that only pad
        lanes, n, m = *orders.shape, codes.shape[2]
        rest = jnp.broadcast_to(jnp.arange(n, m, dtype=jnp.int32)[None], (lanes, m - n))
        order = jnp.concatenate([orders, rest], axis=1)[None]
        moved = jnp.take_along_axis(codes[:, second], order, axis=2, mode="promise_in_bounds")
        return jnp.concatenate([codes[:, first], moved], axis=1)

    if isinstance(columns, DirectCodes):
        return shuffled(columns.masters), shuffled(columns.rows)
    fine, edges = columns.codes, columns.edges
    codes = shuffled(fine.masters[None]), shuffled(fine.rows[None])
    return *codes, edges.masters[:, both], edges.rows[:, both]


def _score_sides(sides: _Sides, empty: Any, gains: Gains, *, layout: Layout) -> Information:
    """The tile program on the columns of all lanes; `empty` is that of `RefinedCodes`, if any."""
    masters, rows, *edges = sides
    lane = jnp.arange(rows.shape[1] // 2, dtype=jnp.int32)
    table = (
        RefinedCodes(FineCodes(masters[0], rows[0]), FineEdges(*edges), empty)
        if edges
        else DirectCodes(masters, rows)
    )
    return score(table, lane, lane + np.int32(len(lane)), gains, layout=layout)
