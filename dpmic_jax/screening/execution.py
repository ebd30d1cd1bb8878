"""One run's work, from tiles that may be there already to released values."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

from dpmic_jax.data.source import Source
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.mic.batch import Device
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.encryption import DecryptionError
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.queries import Positions
from dpmic_jax.screening.tiles import (
    Progress,
    Resources,
    TileScorer,
    chosen_pairs,
    packed,
    unpacked,
)


@dataclass(frozen=True)
class ScreenTask:
    """Inputs of an executor: all of them public, but for a table in memory."""

    source: Source
    plan: Plan
    resources: Resources
    size: int  # of a tile, in pairs


Tiles = Iterator[tuple[int, Int[np.ndarray, " tile"]]]


class Executor(Protocol):
    """Where a screen is computed. The noise of a pair does not depend on that."""

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        """Tiles with their numbers, in any order, as `TileScorer.tiles` makes them."""
        ...

    def noised(self, chosen: Positions) -> Int[np.ndarray, " chosen"]:
        """The values of chosen pairs, with noise."""
        ...


class LocalExecutor:
    """This process."""

    def __init__(self, task: ScreenTask, key: AnyKey, devices: Sequence[Device]):
        self._task, self._key, self._devices = task, key, devices

    @cached_property
    def _work(self) -> TileScorer:
        """The table, read when it is needed."""
        task = self._task
        return TileScorer(task.source, task.plan, task.resources, self._devices)

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        found = self._work.tiles(numbers, self._task.size, self._key, progress)
        return zip(numbers, found, strict=True)

    def noised(self, chosen: Positions) -> Int[np.ndarray, " chosen"]:
        return self._work.noised(chosen, self._key)


def released(
    task: ScreenTask, key: AnyKey, folder: Folder | None, executor: Executor
) -> tuple[Positions, Float[np.ndarray, " released"]]:
    """The pairs that are released, and their values. Tiles are kept as they come."""
    plan, pairs = task.plan, task.plan.pairs
    parts = [pairs[start : start + task.size] for start in range(0, len(pairs), task.size)]
    tiles = _kept(plan, key, folder, list(map(len, parts))) if folder else {}
    missing = [number for number in range(len(parts)) if number not in tiles]
    done = sum(map(len, tiles.values()))
    with tqdm(total=len(pairs), initial=done, unit=" pairs", disable=None) as bar:
        for number, tile in executor.tiles(missing, bar.update) if missing else ():
            tiles[number] = tile
            if folder:
                folder.keep_tile(number, packed(plan, number, tile, key))
    points = np.concatenate([tiles[number] for number in range(len(parts))])
    if plan.choice is not None:
        pairs = chosen_pairs(plan, plan.choice, points, key)
        points = executor.noised(pairs)
    return pairs, points * 2.0**-plan.values.lattice.bits


def _kept(
    plan: Plan, key: AnyKey, folder: Folder, lengths: Sequence[int]
) -> dict[int, Int[np.ndarray, " tile"]]:
    """Tiles of an interrupted run that are as they should be."""
    kept = {}
    for number, length in enumerate(lengths):
        content = folder.tile(number)
        with suppress(DecryptionError):
            if content is not None:
                tile = unpacked(plan, number, content, key)
                if len(tile) == length:
                    kept[number] = tile
    return kept
