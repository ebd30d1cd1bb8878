"""Run the tile program over many pairs: on the cores of a CPU, on a GPU, on many devices."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Int

from dpmic_jax.mic.gains import Gains
from dpmic_jax.mic.grids import Grid, buckets
from dpmic_jax.mic.settings import Cut
from dpmic_jax.mic.tile import Codes, DirectCodes, Layout, cheaper_codes, score

Device = Any  # jax.Device, which static checkers do not take for a type

# Side by side: what fills the vector units and caches of a CPU core, or a GPU.
LANES = {"cpu": 64}
MORE_LANES = 8192
# What the counts on all grids of a tile may take, where they are all held at once.
TILE_BYTES = 2**30


def tile_pairs(columns: Codes, pairs: int, platform: str) -> int:
    """How many pairs make a good tile."""
    most = LANES.get(platform, MORE_LANES) // 2
    if not isinstance(columns, DirectCodes):
        grids, _, rows = columns.edges.rows.shape
        most = min(most, max(1, TILE_BYTES // (8 * grids * rows * columns.edges.masters.shape[2])))
    return min(pairs, most)


def score_pairs(
    cut: Cut,
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains,
    *,
    devices: Sequence[Device] = (),
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score pairs of columns of a table that has been cut, counting the cheaper way.

    Runs on the first device of JAX's default backend if none are given.
    """
    return scorer(cut, gains, devices=devices, pairs=len(pairs))(pairs)


def information(
    columns: Codes,
    grids: tuple[Grid, ...],
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains,
    *,
    devices: Sequence[Device],
    tile: int,
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score every pair, a tile at a time, in order; the arguments are those of `Scorer`."""
    return Scorer(columns, grids, gains, devices=devices, tile=tile, pairs=len(pairs))(pairs)


def scorer(
    cut: Cut, gains: Gains, *, devices: Sequence[Device] = (), pairs: int, tile: int = 2**31
) -> "Scorer":
    """Make ready to score a table that has been cut, some `pairs` pairs of it in all.

    A device scores no more than `tile` pairs at a time, or fewer where that is better.
    """
    codes = cheaper_codes(cut.masters, cut.rows)
    devices = devices or jax.devices()[:1]
    tile = min(tile, tile_pairs(codes, pairs, devices[0].platform))
    return Scorer(codes, cut.grids, gains, devices=devices, tile=tile, pairs=pairs)


class Scorer:
    """A table on its devices and the tile program compiled for it: call it with pairs.

    Args:
      columns: codes of the columns.
      grids: the plan.
      gains: how phi is evaluated.
      devices: where to run; a tile is split evenly over them.
      tile: how many pairs a device scores at a time.
      pairs: about how many there will be in all, which steers the layout and not the result.
    """

    def __init__(
        self,
        columns: Codes,
        grids: tuple[Grid, ...],
        gains: Gains,
        *,
        devices: Sequence[Device],
        tile: int,
        pairs: int,
    ):
        layout = Layout(buckets(grids, pairs), LANES.get(devices[0].platform, MORE_LANES))
        mesh = Mesh(np.array(devices), ("pairs",))
        everywhere = NamedSharding(mesh, PartitionSpec())
        self._table = jax.device_put((columns, gains), everywhere)
        self._width = tile * len(devices)
        # XLA uses little more than one core for a tile, so a CPU takes a tile a core at a time.
        # A GPU, or several devices, are kept busy by two.
        alone = len(devices) == 1 and devices[0].platform == "cpu"
        self._workers = (os.cpu_count() or 1) if alone else 2
        # Compiled before the threads start, which would each trace the program for themselves.
        spots = np.zeros(self._width, np.int32)
        columns, gains = self._table
        self._program = compiled(layout, mesh).lower(columns, spots, spots, gains).compile()

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Information in units of 2^-26 bits (`tile.score`), of the next so many pairs."""
        starts = range(0, len(pairs), self._width)
        with ThreadPoolExecutor(min(self._workers, len(starts))) as pool:
            run = partial(self._run, pairs)
            yield from _in_order(pool, run, starts, ahead=2 * self._workers)

    def _run(self, pairs: Int[np.ndarray, "pairs 2"], start: int) -> np.ndarray:
        wanted = pairs[start : start + self._width]
        # The last tile is filled up by repeating its pairs, so that one program serves all.
        first, second = np.resize(wanted, (self._width, 2)).astype(np.int32).T
        columns, gains = self._table
        return np.asarray(self._program(columns, first, second, gains))[..., : len(wanted)]


def _in_order(pool, run, starts, ahead):
    """Results in order, with only so many tiles under way: memory stays flat."""
    waiting = []
    for start in starts:
        waiting.append(pool.submit(run, start))
        if len(waiting) > ahead:
            yield waiting.pop(0).result()
    for future in waiting:
        yield future.result()


@lru_cache(maxsize=64)
def compiled(layout: Layout, mesh: Mesh) -> jax.stages.Wrapped:
    """The tile program, jitted for some devices: the pairs of a tile are split over them."""
    everywhere, split = PartitionSpec(), PartitionSpec("pairs")
    specs = (everywhere, split, split, everywhere)
    program = partial(score, layout=layout)
    return split_over(mesh, program, specs, PartitionSpec(None, None, "pairs"))


def split_over(
    mesh: Mesh,
    program: Callable[..., Any],
    in_specs: tuple[PartitionSpec, ...],
    out_specs: PartitionSpec,
) -> jax.stages.Wrapped:
    """A program jitted for some devices, each of which takes its part of the arguments."""
    if mesh.size > 1:
        program = jax.shard_map(
            program, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )
    return jax.jit(program)
