"""Run the tile's programs over many pairs: on the cores of a CPU, on a GPU, on many devices."""

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from dpmic_jax.mic import backends, numpy_scorer
from dpmic_jax.mic import kernel as tiles
from dpmic_jax.mic.backends import Backend, Device
from dpmic_jax.mic.coding import Codes, RefinedCodes, cheaper_codes, refined_codes
from dpmic_jax.mic.distance import Steps, kind_of, length_price, steps
from dpmic_jax.mic.grids import Bucket, Grid, buckets, compile_seconds, run_seconds
from dpmic_jax.mic.layout import Layout
from dpmic_jax.mic.numpy_scorer import FewScorer
from dpmic_jax.mic.padding import rung
from dpmic_jax.mic.programs import SPLIT, Call, Program, compiled_together, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import Gains

_COMPILE_COUNTING = 0.4  # seconds
# Tiles under way where one core alone does not work on each.
WORKERS = 2
_COUNTED_TWICE = 10**5  # records of a table that is, at most


def layout_for(
    grids: tuple[Grid, ...],
    pairs: int,
    platform: str,
    *,
    tile: int = 2**31,
    memory: int | None = None,
    refined: bool = False,
) -> Layout:
    """How to lay out a plan for about `pairs` pairs a device, whose counts may be refined ones.

    The room of a CPU's tile does not depend on how many there are: one program serves all. Other
    devices score as many pairs at a time as fit in so many bytes of memory, and at most `tile`.
    """
    backend = backends.backend(platform)
    chosen, lanes = buckets(grids, pairs, backend.seconds), backend.lanes
    if not backend.lane_by_lane:
        return _layout_at_once(
            Layout(chosen, min(pairs, tile), lanes, False, backend.triton, refined),
            memory or backend.memory,
        )
    layout = Layout(chosen, lanes // 2, lanes, True)
    least, most = (size // 4 for size in backends.TILE_BYTES)
    while layout.pairs < 4 * lanes and 2 * layout.cells <= least:
        layout = layout._replace(pairs=2 * layout.pairs)
    # Few pairs of a large plan would zero memory that they do not need.
    while layout.pairs > 1 and layout.cells > (most if pairs >= layout.pairs else 4 * least):
        layout = layout._replace(pairs=layout.pairs // 2)
    return layout


def _layout_at_once(layout: Layout, memory: int) -> Layout:
    """As few tiles as fit in memory, of even size, on a rung so that programs are shared."""
    one = layout._replace(pairs=1)
    largest = max(map(one.cells_of, one.buckets))
    held = 4 * (one.cells + 4 * largest)
    most = max(1, min(memory // (2 * WORKERS * held), (2**31 - 1) // largest))
    tiles = -(-layout.pairs // most)
    return layout._replace(pairs=min(most, rung(-(-layout.pairs // tiles), 4)))


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
    together: bool = False,
) -> "Scorer | ScorerOfParts | FewScorer":
    """Make ready to score a table that has been cut, some `pairs` pairs of it in all.

    A device scores no more than `tile` pairs at a time, or fewer where that is better; `together`
    lifts this limit for what is not a CPU. Without devices, pairs that take less time than
    compiling would are scored in numpy.
    """
    compiling = sum(map(compile_seconds, buckets(cut.grids, pairs)))
    if not devices and numpy_scorer.seconds(cut.grids, cut.n, pairs) < compiling:
        return numpy_scorer.FewScorer(cut, gains)
    devices = devices or jax.devices()[:1]
    backend = backends.backend(devices[0].platform)
    if together and not backend.lane_by_lane:
        tile = 2**31
    parts: list[Scorer] = []
    for some in _counted_together(cut):
        # No more room than the tiles have that all parts take.
        room = min([tile, *(part.layout.pairs for part in parts if not part.layout.lane_by_lane)])
        parts.append(
            Scorer(
                _codes(some, backend),
                some.grids,
                gains,
                n=cut.n,
                devices=devices,
                tile=room,
                pairs=pairs,
                bins=some.bins,
            )
        )
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


def _codes(cut: BinnedTable, backend: Backend) -> Codes:
    if all(grid.parts <= 1 for grid in cut.grids):
        return refined_codes(cut.masters, cut.rows)  # whose program serves more numbers of records
    return cheaper_codes(cut.masters, cut.rows, backend)


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
        self.layout, self._devices, self._gains = layout, mesh.size, gains
        number = np.zeros(mesh.size, np.int32)
        # Only grids that are scored by their distance need to know n.
        of_distance = on_devices(mesh, self._steps(n)) if n else None
        self._tables = [gains if some.parts != 1 else of_distance for some in layout.buckets]
        self._splitting = None if n is None or bins is None else _splitting(bins, n)

        def call(bucket: Bucket, table: Any) -> Call:
            lanes = layout.room(bucket) * mesh.size
            counts = _shaped(lanes, *layout.counted(bucket))
            program = tiles.optimising_program(
                bucket,
                layout.lanes_of(bucket),
                together=not layout.lane_by_lane,
                by_triton=layout.triton,
                edges=layout.edges,
            )
            own = [_shaped(lanes, 2)] * bucket.by_kinds
            return program, (counts, number, table, *own)

        # Compiled before the threads start, which would each trace the programs for themselves.
        calls = [*others, *map(call, layout.buckets, self._tables)]
        if not layout.lane_by_lane:
            calls.append((_JOINING, (self._joined_shapes(),)))
        found = compiled_together(mesh, calls)
        self.others, self._programs = found[: len(others)], found[len(others) :]

    def _steps(self, n: int) -> Steps:
        """The values of t: padded where they are looped over, and not where all are tried."""
        found = steps(n)
        all_ = len(found.weights) if self.layout.lane_by_lane else int(found.number)
        return found._replace(weights=found.weights[:all_])

    def __call__(
        self,
        counts: Sequence[jax.Array],
        number: Int[np.ndarray, " devices"],
        both: tuple[Int[np.ndarray, " room_of_all"], ...] = (),
    ) -> Int[np.ndarray, "entries 2 some"]:
        """Information (`kernel.entries`) of `number` pairs on each device, of columns `both`."""
        layout = self.layout
        found = [
            program(some, 2 * len(bucket.grids) * number, table, *self._of_lanes(bucket, both))
            for program, some, bucket, table in zip(
                self._programs, counts, layout.buckets, self._tables, strict=False
            )
        ]
        by_device = self._fetched(found)
        parts = [
            tiles.entries(layout, [some[i] for some in by_device], int(each), self._gains)
            for i, each in enumerate(number)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)

    def _joined_shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        shapes = map(self.layout.shape, self.layout.buckets)
        return tuple(_shaped(turns * self._devices, *rest) for turns, *rest in shapes)

    def _fetched(self, found: Sequence[jax.Array]) -> list[list[Int[np.ndarray, "_ _ _"]]]:
        """What each device has found, bucket by bucket: off a GPU in one array, as each waits."""
        layout, devices = self.layout, self._devices
        if layout.lane_by_lane:
            return [np.split(np.asarray(some), devices) for some in found]
        shapes = [layout.shape(bucket) for bucket in layout.buckets]
        joined = np.asarray(self._programs[-1](tuple(found))).reshape(devices, -1)
        parts = np.split(joined, np.cumsum([math.prod(shape) for shape in shapes])[:-1], axis=1)
        return [
            list(part.reshape(devices, *shape)) for part, shape in zip(parts, shapes, strict=True)
        ]

    def _of_lanes(
        self, bucket: Bucket, both: tuple[Int[np.ndarray, " room_of_all"], ...]
    ) -> list[Int[np.ndarray, "lanes 2"]]:
        """How the columns of every lane are split, where that depends on them."""
        if self._splitting is None or not bucket.by_kinds:
            return []
        merged, (kinds, prices) = np.stack(both, axis=1), self._splitting
        found = np.stack([kinds[merged], prices[merged[:, ::-1]]], axis=2)
        found = found.reshape(self._devices, -1, 2)
        more = self.layout.room(bucket) - found.shape[1]
        return [np.pad(found, ((0, 0), (0, more), (0, 0))).reshape(-1, 2)]


def joined(found: tuple[jax.Array, ...]) -> jax.Array:
    """Arrays of numbers as one."""
    return jnp.concatenate([some.reshape(-1) for some in found])


_JOINING = Program(joined, (), (SPLIT,), SPLIT)


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
        platform, memory = devices[0].platform, backends.memory_of(devices[0])
        each = -(-pairs // mesh.size)
        refined = isinstance(columns, RefinedCodes)
        self.layout = layout_for(grids, each, platform, tile=tile, memory=memory, refined=refined)
        self._devices, self.workers = mesh.size, workers(devices)
        self.most = mesh.size * min(tile, self.layout.pairs)  # pairs of a tile
        self._columns, gains, self._n = on_devices(mesh, (columns, gains, np.int32(n)))
        spots, number = _shaped(self.layout.pairs * mesh.size), _shaped(mesh.size)
        counting = tiles.counting_program(self.layout)
        call = counting, (self._columns, spots, spots, number, self._n)
        distance = any(grid.parts == 1 for grid in grids)
        self._optimise = Optimiser(
            self.layout, mesh, gains, [call], n=n if distance else None, bins=bins
        )
        (self._count,) = self._optimise.others
        self._like_this = partial(
            Scorer, self._columns, grids, gains, n=n, devices=devices, pairs=pairs, bins=bins
        )

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Information in units of 2^-26 bits (`kernel.entries`), tile by tile."""
        yield from in_order(self.run, self.tiles(pairs, self.most), self.workers)

    def tiles(self, pairs: Int[np.ndarray, "pairs 2"], most: int) -> list[Int[np.ndarray, "_ 2"]]:
        """Tiles of at most `most` pairs: for every core of a CPU, and few for what takes all."""
        return even_tiles(pairs, most, self.workers if self.layout.lane_by_lane else 1)

    def run(self, pairs: Int[np.ndarray, "some 2"]) -> Int[np.ndarray, "entries 2 some"]:
        """Information of one tile; of its halves where the device has too little memory."""
        try:
            return self._run(pairs)
        except jax.errors.JaxRuntimeError as error:
            least = self.layout.lane_by_lane or self.layout.pairs == 1
            if least or not is_out_of_memory(error):
                raise
        tiles = self._with_less.tiles(pairs, self._with_less.most)
        return np.concatenate([self._with_less.run(tile) for tile in tiles], axis=2)

    @cached_property
    def _with_less(self) -> "Scorer":
        return self._like_this(tile=self.layout.pairs // 2)

    def _run(self, pairs: Int[np.ndarray, "some 2"]) -> Int[np.ndarray, "entries 2 some"]:
        share = share_out(pairs, self._devices, self.layout.pairs)
        counts = self._count(self._columns, *share, self._n)
        return self._optimise(counts, share.number, share[:2])


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device has too little memory."""
    return "RESOURCE_EXHAUSTED" in str(error)


class ScorerOfParts:
    """Scorers of parts of one plan, which take the same tiles."""

    def __init__(self, parts: Sequence[Scorer]):
        self.parts, self.most = parts, min(part.most for part in parts)
        self.tiles = parts[0].tiles

    def __call__(
        self, pairs: Int[np.ndarray, "pairs 2"]
    ) -> Iterator[Int[np.ndarray, "entries 2 tile"]]:
        """Information in units of 2^-26 bits (`kernel.entries`), tile by tile."""
        workers = self.parts[0].workers
        yield from in_order(self._run, self.tiles(pairs, self.most), workers)

    def _run(self, pairs: Int[np.ndarray, "some 2"]) -> Int[np.ndarray, "entries 2 some"]:
        return np.concatenate([part.run(pairs) for part in self.parts])


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
    return (os.cpu_count() or 1) if alone else WORKERS


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
