"""Score pairs of a table that is read in row batches, whether or not it fits in memory.

Counts add up over batches, so the records need not be held at once: either their bin codes are
(a few bytes a value), or the counts of a group of pairs are, while the records stream past.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Int

from dpmic_jax.mic import at_once, backends, kernel
from dpmic_jax.mic.backends import Device, memory_of
from dpmic_jax.mic.batch import Optimiser, is_out_of_memory, layout_for, share_out
from dpmic_jax.mic.coding import FineCodes, filled, fine_edges, refined_shape
from dpmic_jax.mic.layout import Layout
from dpmic_jax.mic.padding import decade
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Program, on_devices
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.mic.xlogx import Gains


def joined(cuts: Iterable[BinnedTable], n: int) -> BinnedTable:
    """One cut of all n records, from cuts of their batches in order."""
    whole, done = None, 0
    for cut in cuts:
        if whole is None:
            masters, rows = (
                part._replace(fine=np.empty((len(part.fine), n), part.fine.dtype))
                for part in (cut.masters, cut.rows)
            )
            whole = cut._replace(masters=masters, rows=rows)
        for to, part in ((whole.masters, cut.masters), (whole.rows, cut.rows)):
            to.fine[:, done : done + cut.n] = part.fine
        done += cut.n
    if whole is None or done != n:
        raise ValueError(f"expected batches of {n} records in all, got {done}")
    return whole


def code_bytes(cut: BinnedTable) -> int:
    """What the codes of one record take."""
    return sum(len(part.fine) * part.fine.itemsize for part in (cut.masters, cut.rows))


def count_bytes(cut: BinnedTable) -> int:
    """What the counts of one pair take on the common refinement."""
    return 4 * math.prod(refined_shape(cut.masters, cut.rows))


def score_batches(
    batches: Callable[[], Iterable[BinnedTable]],
    pairs: Int[np.ndarray, "pairs 2"],
    gains: Gains | None,
    *,
    n: int | None = None,
    rows: int,
    group: int,
    devices: Sequence[Device] = (),
) -> Iterator[Int[np.ndarray, "entries 2 group"]]:
    """Score pairs, a group at a time, reading the table once a group.

    Args:
      batches: starts a pass over the table, cut batch by batch.
      pairs: the two columns of each pair.
      gains: how phi is evaluated.
      n: number of records, for grids that are scored by their distance from independence.
      rows: the most records that a batch has.
      group: how many pairs are counted at a time: what memory has to hold. Where a GPU has too
        little for them, the table is read again for half as many.
      devices: where to run; tiles of a group are split evenly over them.

    Yields:
      Information in units of 2^-26 bits (`kernel.entries`), tile by tile.
    """
    devices = devices or jax.devices()[:1]
    mesh = Mesh(np.array(devices), ("pairs",))
    by_lanes, done = backends.backend(devices[0].platform).lane_by_lane, 0
    while done < len(pairs):
        wanted = pairs[done : done + group]
        try:
            found = _one_pass(batches(), rows, wanted, group, gains, n, mesh)
        except jax.errors.JaxRuntimeError as error:
            if by_lanes or group == 1 or not is_out_of_memory(error):
                raise
            group = -(-group // 2)
            continue
        yield found
        done += len(wanted)


def _one_pass(
    batches: Iterable[BinnedTable],
    rows: int,
    pairs: Int[np.ndarray, "group 2"],
    group: int,
    gains: Gains | None,
    n: int | None,
    mesh: Mesh,
) -> Int[np.ndarray, "entries 2 group"]:
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise ValueError("expected batches of records, got none")
    task = _Pass(first, rows, pairs, group, gains, n, mesh)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for cut in itertools.chain([first], batches):
            task.add(cut, pool)
        return np.concatenate(list(pool.map(task.score, range(len(task.shares)))), axis=2)


class _Pass:
    """One pass over the table: the counts of a group of pairs, a tile beside the other."""

    def __init__(
        self,
        cut: BinnedTable,
        rows: int,
        pairs: Int[np.ndarray, "group 2"],
        group: int,
        gains: Gains | None,
        n: int | None,
        mesh: Mesh,
    ):
        self._rows, self._columns, self._mesh = rows, decade(len(cut.rows.fine)), mesh
        platform = mesh.devices.flat[0].platform
        each = -(-group // mesh.size)
        memory = memory_of(mesh.devices.flat[0])
        layout = layout_for(cut.grids, each, platform, memory=memory, refined=True)
        # Counts on the refinement are much larger than those of the grids: no more than asked for,
        # and as many for the last group, so that one program serves all.
        shape, room = refined_shape(cut.masters, cut.rows), min(layout.pairs, each)
        if not layout.lane_by_lane:
            shape = at_once.refined_room(shape, 2**31 if n is None else n)
            room = max(1, min(room, backends.MOST_CELLS // math.prod(shape)))
        layout = layout._replace(pairs=room)
        wide = room * mesh.size
        self.shares = [
            share_out(part, mesh.size, room)
            for part in np.split(pairs, range(wide, len(pairs), wide))
        ]
        split = NamedSharding(mesh, SPLIT)
        empty = np.zeros((wide, *shape), np.int32)
        self._totals = [jax.device_put(empty, split) for _ in self.shares]
        self._edges, gains = on_devices(
            mesh, (fine_edges(cut.masters, cut.rows, self._columns), gains)
        )
        one, codes = self.shares[0], self._codes(cut)
        calls = [
            (_adding(layout), (empty, codes, one.first, one.second, np.int32(0))),
            (_reading(layout), (empty, self._edges, one.first, one.second, one.number)),
        ]
        self._optimise = Optimiser(layout, mesh, gains, calls, n=n, bins=cut.bins)
        self._add, self._read = self._optimise.others

    def _codes(self, cut: BinnedTable) -> FineCodes:
        """A batch, filled up to the most records and columns, so that one program serves all."""
        return FineCodes(
            *(filled(one.fine, self._columns, self._rows) for one in (cut.masters, cut.rows))
        )

    def add(self, cut: BinnedTable, pool: ThreadPoolExecutor) -> None:
        """Count a batch of records."""
        codes, spare = on_devices(self._mesh, self._codes(cut)), np.int32(self._rows - cut.n)

        def added(total, share):
            return self._add(total, codes, share.first, share.second, spare)

        self._totals = list(pool.map(added, self._totals, self.shares))

    def score(self, tile: int) -> Int[np.ndarray, "entries 2 tile"]:
        """What a tile of pairs has been found to tell."""
        share = self.shares[tile]
        counts = self._read(
            self._totals[tile], self._edges, share.first, share.second, share.number
        )
        return self._optimise(counts, share.number, share[:2])


def _adding(layout: Layout) -> Program:
    inputs = SPLIT, EVERYWHERE, SPLIT, SPLIT, EVERYWHERE
    # A GPU adds to the counts where they are: copying them takes longer than adding.
    overwritten = () if layout.lane_by_lane else (0,)
    return Program(_programs(layout).add_records, (), inputs, SPLIT, overwritten)


def _reading(layout: Layout) -> Program:
    inputs = SPLIT, EVERYWHERE, SPLIT, SPLIT, SPLIT
    return Program(_programs(layout).count_refined, (("layout", layout),), inputs, SPLIT)


def _programs(layout: Layout) -> ModuleType:
    return kernel if layout.lane_by_lane else at_once
