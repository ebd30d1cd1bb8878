"""Run the tile's programs over many pairs: on the cores of a CPU, on a GPU, on many devices."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from dpmic_jax.mic import kernel as tiles
from dpmic_jax.mic import numpy_scorer
from dpmic_jax.mic.coding import Codes, cheaper_codes, refined_codes
from dpmic_jax.mic.distance import kind_of, length_price, steps
from dpmic_jax.mic.grids import Bucket, Grid, buckets, compile_seconds, run_seconds
from dpmic_jax.mic.kernel import Layout
from dpmic_jax.mic.numpy_scorer import FewScorer
from dpmic_jax.mic.programs import Call, compiled_together, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import Gains

Device = Any  # jax.Device, which static checkers do not take for a type

# Side by side: what fills the vector units and caches of a CPU core, or a GPU.
LANES = {"cpu": 64}
MORE_LANES = 8192
# What the counts of a tile should take at least, so that calling programs costs little beside
# running them, and at most.
TILE_BYTES = 2**23, 2**30
_COMPILE_COUNTING = 0.4  # seconds
_COUNTED_TWICE = 10**5  # records of a table that is, at most


def layout_for(grids: tuple[Grid, ...], pairs: int, platform: str) -> Layout:
    """How to lay out a plan for about `pairs` pairs a device.

    The room of a CPU's tile does not depend on how many there are: one program serves all.
    """
    lanes = LANES.get(platform, MORE_LANES)
    room = lanes // 2 if platform == "cpu" else min(lanes // 2, 1 << (pairs - 1).bit_length())
    layout = Layout(buckets(grids, pairs), room, lanes, platform == "cpu")
    least, most = (size // 4 for size in TILE_BYTES)
    while platform == "cpu" and layout.pairs < 4 * lanes and 2 * layout.cells <= least:
        layout = layout._replace(pairs=2 * layout.pairs)
    while layout.pairs > 1 and layout.cells > most:
        layout = layout._replace(pairs=layout.pairs // 2)
    return layout


def score_pairs(
    cut: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains | None,
    *,
    devices: Sequence[Device] = (),
) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
    """Score pairs of columns of a table that has been cut, by the cheapest way (`scorer`).

    Without devices, many pairs run on the first device of JAX's default backend.
    """
    return scorer(cut, gains, devices=devices, pairs=len(pairs))(pairs)


def scorer(
    cut: BinnedTable,
    gains: Gains | None,
    *,
    devices: Sequence[Device] = (),
    pairs: int,
    tile: int = 2**31,
) -> "Scorer | ScorerOfParts | FewScorer":
    """Make ready to score a table that has been cut, some `pairs` pairs of it in all.

    A device scores no more than `tile` pairs at a time, or fewer where that is better. Without
    devices, pairs that take less time than compiling would are scored in numpy.
    """
    compiling = sum(map(compile_seconds, buckets(cut.grids, pairs)))
    if not devices and numpy_scorer.seconds(cut.grids, cut.n, pairs) < compiling:
        return numpy_scorer.FewScorer(cut, gains)
    devices = devices or jax.devices()[:1]
    parts = [
        Scorer(
            _codes(some),
            some.grids,
            gains,
            n=cut.n,
            devices=devices,
            tile=tile,
            pairs=pairs,
            bins=some.bins,
        )
        for some in _counted_together(cut)
    ]
    return parts[0] if len(parts) == 1 else ScorerOfParts(parts)


def _counted_together(cut: BinnedTable) -> list[BinnedTable]:
    """Grids that are merged, then those that are scored by their distance.

    Counting twice takes less than what it may save: tables whose pairs are scored by the distance
    alone have the programs of the second part. With many records it would take more.
    """
    merged = [place for place, grid in enumerate(cut.grids) if grid.parts > 1]
    others = [place for place, grid in enumerate(cut.grids) if grid.parts <= 1]
    if cut.n > _COUNTED_TWICE or not merged or not others:
        return [cut]
    return [cut.of_grids(merged), cut.of_grids(others)]


def _codes(cut: BinnedTable) -> Codes:
    if all(grid.parts <= 1 for grid in cut.grids):
        return refined_codes(cut.masters, cut.rows)  # whose program serves more numbers of records
    return cheaper_codes(cut.masters, cut.rows)


def seconds(grids: tuple[Grid, ...], n: int, pairs: int) -> float:
    """A guess of the time that scoring takes on this machine's CPU, compiling included."""
    cores, chosen = os.cpu_count() or 1, buckets(grids, pairs)
    compiling = _COMPILE_COUNTING + sum(map(compile_seconds, chosen)) / cores
    running = 2 * pairs * n * 1e-9 + sum(run_seconds(bucket, pairs) for bucket in chosen)
    return min(numpy_scorer.seconds(grids, n, pairs), compiling + running / cores)


class Optimiser:
    """The programs of a layout's buckets: from counts to information."""

    def __init__(
        self,
        layout: Layout,
        mesh: Mesh,
        gains: Gains | None,
        others: Sequence[Call] = (),
        *,
        n: int | None = None,
        bins: Int[np.ndarray, " columns"] | None = None,
    ):
        _keep_memory()
        self._layout, self._devices, self._gains = layout, mesh.size, gains
        number = np.zeros(mesh.size, np.int32)
        # Only grids that are scored by their distance need to know n.
        of_distance = on_devices(mesh, steps(n)) if n else None
        self._tables = [gains if some.parts != 1 else of_distance for some in layout.buckets]
        self._splitting = None if n is None or bins is None else _splitting(bins, n)

        def call(bucket: Bucket, table: Any) -> Call:
            lanes = layout.room(bucket) * mesh.size
            counts = _shaped(lanes, bucket.master, bucket.rows)
            program = tiles.optimising_program(bucket, layout.lanes_of(bucket))
            own = [_shaped(lanes, 2)] * bucket.by_kinds
            return program, (counts, number, table, *own)

        # Compiled before the threads start, which would each trace the programs for themselves.
        calls = map(call, layout.buckets, self._tables)
        found = compiled_together(mesh, [*others, *calls])
        self.others, self._programs = found[: len(others)], found[len(others) :]

    def __call__(
        self,
        counts: Sequence[jax.Array],
        number: Int[np.ndarray, " devices"],
        both: tuple[Int[np.ndarray, " room_of_all"], ...] = (),
    ) -> Int[np.ndarray, "entries 2 some"]:
        """Information (`kernel.entries`) of `number` pairs on each device, of columns `both`."""
        layout = self._layout
        found = [
            program(some, 2 * len(bucket.grids) * number, table, *self._of_lanes(bucket, both))
            for program, some, bucket, table in zip(
                self._programs, counts, layout.buckets, self._tables, strict=True
            )
        ]
        by_device = [np.split(np.asarray(some), self._devices) for some in found]
        parts = [
            tiles.entries(layout, [some[i] for some in by_device], int(each), self._gains)
            for i, each in enumerate(number)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)

    def _of_lanes(
        self, bucket: Bucket, both: tuple[Int[np.ndarray, " room_of_all"], ...]
    ) -> list[Int[np.ndarray, "lanes 2"]]:
        """How the columns of every lane are split, where that depends on them."""
        if self._splitting is None or not bucket.by_kinds:
            return []
        merged, (kinds, prices) = np.stack(both, axis=1), self._splitting
        found = np.stack([kinds[merged], prices[merged[:, ::-1]]], axis=2)
        found = found.reshape(self._devices, -1, 2)
        more = self._layout.room(bucket) - found.shape[1]
        return [np.pad(found, ((0, 0), (0, more), (0, 0))).reshape(-1, 2)]


def _splitting(
    bins: Int[np.ndarray, " columns"], n: int
) -> tuple[Int[np.ndarray, " columns"], Int[np.ndarray, " columns"]]:
    """How each column is split, and what the other one is charged for its bins."""
    prices = [length_price(each, n) for each in bins.tolist()]
    return kind_of(bins).astype(np.int32), np.array(prices, np.int32)


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Let glibc keep freed blocks of up to 32 MB, not give them back to the system.

    Its threshold follows the largest block that was freed. Counts go from one program to the next
    and are freed with every tile: zeroing their pages anew would take a tenth of the time.
    """
    np.empty(2**25 - 2**16, np.uint8)


def _shaped(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.int32)


class Scorer:
    """A table on its devices and the tile's programs compiled for it: call it with pairs.

    Args:
      columns: codes of the columns.
      grids: the plan.
      gains: how phi is evaluated.
      n: number of records.
      devices: where to run; a tile is split evenly over them.
      tile: how many pairs a device scores at a time at most.
      pairs: about how many there will be in all, which steers the layout and not the result.
      bins: how many bins nominal columns have (`BinnedTable.bins`).
    """

    def __init__(
        self,
        columns: Codes,
        grids: tuple[Grid, ...],
        gains: Gains | None,
        *,
        n: int,
        devices: Sequence[Device],
        tile: int,
        pairs: int,
        bins: Int[np.ndarray, " columns"] | None = None,
    ):
        mesh = Mesh(np.array(devices), ("pairs",))
        self._layout = layout_for(grids, -(-pairs // mesh.size), devices[0].platform)
        self._devices, self.workers = mesh.size, workers(devices)
        self.most = mesh.size * min(tile, self._layout.pairs)  # pairs of a tile
        self._n = np.int32(n)
        self._columns, gains = on_devices(mesh, (columns, gains))
        spots, number = _shaped(self._layout.pairs * mesh.size), _shaped(mesh.size)
        counting = tiles.counting_program(self._layout)
        call = counting, (self._columns, spots, spots, number, self._n)
        distance = any(grid.parts == 1 for grid in grids)
        self._optimise = Optimiser(
            self._layout, mesh, gains, [call], n=n if distance else None, bins=bins
        )
        (self._count,) = self._optimise.others

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Information in units of 2^-26 bits (`kernel.entries`), tile by tile."""
        yield from in_order(self.run, even_tiles(pairs, self.most, self.workers), self.workers)

    def run(self, pairs: Int[np.ndarray, "some 2"]) -> Int[np.ndarray, "entries 2 some"]:
        """Information of one tile."""
        share = share_out(pairs, self._devices, self._layout.pairs)
        counts = self._count(self._columns, *share, self._n)
        return self._optimise(counts, share.number, share[:2])


class ScorerOfParts:
    """Scorers of parts of one plan, which take the same tiles."""

    def __init__(self, parts: Sequence[Scorer]):
        self._parts = parts

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Information in units of 2^-26 bits (`kernel.entries`), tile by tile."""
        most, workers = min(part.most for part in self._parts), self._parts[0].workers
        yield from in_order(self._run, even_tiles(pairs, most, workers), workers)

    def _run(self, pairs: Int[np.ndarray, "some 2"]) -> Int[np.ndarray, "entries 2 some"]:
        return np.concatenate([part.run(pairs) for part in self._parts])


def even_tiles(
    pairs: Int[np.ndarray, "pairs 2"], most: int, workers: int
) -> list[Int[np.ndarray, "some 2"]]:
    """As many tiles of at most `most` pairs as keep all workers busy to the end, of even size."""
    rounds = -(-len(pairs) // (most * workers))
    return np.array_split(pairs, min(rounds * workers, len(pairs)))


def workers(devices: Sequence[Device]) -> int:
    """How many tiles are under way at a time.

    XLA uses little more than one core for a tile, so a CPU takes a tile a core at a time. A GPU,
    or several devices, are kept busy by two.
    """
    alone = len(devices) == 1 and devices[0].platform == "cpu"
    return (os.cpu_count() or 1) if alone else 2


class Share(NamedTuple):
    """The pairs of a tile, for each device in turn, and the first column where there are none."""

    first: Int[np.ndarray, " room_of_all"]
    second: Int[np.ndarray, " room_of_all"]
    number: Int[np.ndarray, " devices"]


def share_out(pairs: Int[np.ndarray, "some 2"], devices: int, room: int) -> Share:
    """Split pairs evenly over devices, each with room for `room` pairs."""
    shares = np.array_split(pairs, devices)
    filled = np.zeros((devices, room, 2), np.int32)
    for to, share in zip(filled, shares, strict=True):
        to[: len(share)] = share
    first, second = np.ascontiguousarray(filled.reshape(-1, 2).T)
    return Share(first, second, np.array([len(share) for share in shares], np.int32))


def in_order(run: Callable[[Any], Any], tasks: Iterable[Any], workers: int) -> Iterator[Any]:
    """Results in order, with a bounded number of tasks under way: memory stays flat."""
    tasks, waiting = iter(tasks), []
    pool = ThreadPoolExecutor(workers)
    try:
        for task in itertools.islice(tasks, 3 * workers):
            waiting.append(pool.submit(run, task))
        while waiting:
            found = waiting.pop(0).result()
            waiting.extend(pool.submit(run, task) for task in itertools.islice(tasks, 1))
            yield found
    finally:  # an interrupt waits for the tasks that are under way only
        pool.shutdown(cancel_futures=True)
