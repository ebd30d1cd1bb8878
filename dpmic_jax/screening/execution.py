"""The execution of a screen, from stored and new tiles to released values."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from dpmic_jax.data.source import Source
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.mic.backends import Device
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.encryption import DecryptionError
from dpmic_jax.runs.persons import drawn
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.queries import Above, Positions, TopK
from dpmic_jax.screening.tiles import (
    Points,
    Progress,
    Resources,
    TileScorer,
    chosen_pairs,
    largest_pairs,
    packed,
    unpacked,
)


@dataclass(frozen=True)
class ScreenTask:
    """Inputs of an executor. All of them are public, except for a table in memory."""

    source: Source
    plan: Plan
    resources: Resources
    size: int  # pairs in a tile


Tiles = Iterator[tuple[int, Points]]


class Executor(Protocol):
    """Where a screen is computed. Its result does not depend on the executor."""

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        """Tiles with their numbers, in any order, as `TileScorer.tiles` computes them."""
        ...

    def noised(self, chosen: Positions) -> Points:
        """The noised values of the selected pairs."""
        ...


class LocalExecutor:
    """An executor in this process."""

    def __init__(self, task: ScreenTask, key: AnyKey, devices: Sequence[Device]):
        self._task, self._key, self._devices = task, key, devices

    @cached_property
    def _scorer(self) -> TileScorer:
        """The scorer of the table, which is read when it is first needed."""
        task = self._task
        source = drawn(task.source, self._key)
        return TileScorer(source, task.plan, task.resources, self._devices, together=True)

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        """Tiles in the order of their numbers."""
        found = self._scorer.tiles(numbers, self._task.size, self._key, progress)
        return zip(numbers, found, strict=True)

    def noised(self, chosen: Positions) -> Points:
        """The noised values of the selected pairs."""
        return self._scorer.noised(chosen, self._key)


class Released(NamedTuple):
    """The released pairs with their values.

    Attributes:
      pairs: the columns of each pair.
      distances: noised distances from independence.
      micr: noised values of MICr; None if none were released.
      own: noised distances of the columns of `Plan.relative` from themselves.
    """

    pairs: Positions
    distances: Float[np.ndarray, " released"]
    micr: Float[np.ndarray, " released"] | None
    own: Float[np.ndarray, " relative"]


def released(task: ScreenTask, key: AnyKey, folder: Folder | None, executor: Executor) -> Released:
    """The released pairs and their values. Tiles are stored in the folder as they finish."""
    plan, pairs = task.plan, task.plan.scored
    # Of every tile its number of pairs; the last one may be shorter.
    sizes = [min(task.size, len(pairs) - start) for start in range(0, len(pairs), task.size)]
    tiles = _stored(plan, key, folder, sizes) if folder else {}
    missing = [number for number in range(len(sizes)) if number not in tiles]
    done = sum(map(len, tiles.values()))
    # disable=None shows a bar only on a terminal.
    with tqdm(total=len(pairs), initial=done, unit=" pairs", disable=None) as bar:
        for number, tile in executor.tiles(missing, bar.update) if missing else ():
            tiles[number] = tile
            if folder:
                folder.keep_tile(number, packed(plan, number, tile, key))
    points = np.concatenate([tiles[number] for number in range(len(sizes))])
    if plan.choice is not None:
        pairs = np.vstack([chosen_pairs(plan, plan.choice, points, key), plan.own])
        points = executor.noised(pairs)
    # Those of columns with themselves are the last.
    count = len(points) - len(plan.own)
    pairs, points, own = pairs[:count], points[:count], points[count:]
    if plan.choice is None and isinstance(plan.ask, TopK | Above):
        kept = largest_pairs(plan, points)
        pairs, points = pairs[kept], points[kept]
    # Exact: a lattice point times a power of two.
    step = 2.0**-plan.distances.lattice.bits
    micr = points[:, 1] * 2.0**-plan.values.lattice.bits if plan.values else None
    return Released(pairs, points[:, 0] * step, micr, own[:, 0] * step)


def _stored(plan: Plan, key: AnyKey, folder: Folder, sizes: Sequence[int]) -> dict[int, Points]:
    """The valid tiles of an interrupted run. Others are computed again."""
    stored = {}
    for number, size in enumerate(sizes):
        content = folder.tile(number)
        with suppress(DecryptionError):
            if content is not None:
                tile = unpacked(plan, number, content, key)
                if len(tile) == size:
                    stored[number] = tile
    return stored
