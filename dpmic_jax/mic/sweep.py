"""Run the tile program over many pairs: on the cores of a CPU, on a GPU, on many devices."""

import os
from collections.abc import Iterator, Sequence
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
    codes = cheaper_codes(cut.masters, cut.rows)
    devices = devices or jax.devices()[:1]
    tile = tile_pairs(codes, len(pairs), devices[0].platform)
    return information(codes, cut.grids, pairs, gains, devices=devices, tile=tile)


def information(
    columns: Codes,
    grids: tuple[Grid, ...],
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains,
    *,
    devices: Sequence[Device],
    tile: int,
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score every pair, a tile at a time, in order.

    Args:
      columns: codes of the columns.
      grids: the plan.
      pairs: the two columns of each pair.
      gains: how phi is evaluated.
      devices: where to run; a tile is split evenly over them.
      tile: how many pairs a device scores at a time.

    Yields:
      Information in units of 2^-26 bits (`tile.score`), of the next so many pairs.
    """
    layout = Layout(buckets(grids, len(pairs)), LANES.get(devices[0].platform, MORE_LANES))
    mesh = Mesh(np.array(devices), ("pairs",))
    columns, gains = jax.device_put((columns, gains), NamedSharding(mesh, PartitionSpec()))
    width = tile * len(devices)
    # Compiled before the threads start, which would each trace the program for themselves.
    spots = np.zeros(width, np.int32)
    program = compiled(layout, mesh).lower(columns, spots, spots, gains).compile()

    def run(start: int) -> np.ndarray:
        wanted = pairs[start : start + width]
        # The last tile is filled up by repeating its pairs, so that one program serves all.
        first, second = np.resize(wanted, (width, 2)).astype(np.int32).T
        return np.asarray(program(columns, first, second, gains))[..., : len(wanted)]

    starts = range(0, len(pairs), width)
    # XLA uses little more than one core for a tile, so a CPU takes a tile a core at a time. A
    # GPU, or several devices, are kept busy by two.
    alone = len(devices) == 1 and devices[0].platform == "cpu"
    workers = (os.cpu_count() or 1) if alone else 2
    with ThreadPoolExecutor(min(workers, len(starts))) as pool:
        yield from _in_order(pool, run, starts, ahead=2 * workers)


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
    program = partial(score, layout=layout)
    if mesh.size > 1:
        everywhere, split = PartitionSpec(), PartitionSpec("pairs")
        program = jax.shard_map(
            program,
            mesh=mesh,
            in_specs=(everywhere, split, split, everywhere),
            out_specs=PartitionSpec(None, None, "pairs"),
            check_vma=False,
        )
    return jax.jit(program)
