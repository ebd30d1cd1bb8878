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
from dpmic_jax.screening.tiles import Progress, Resources, TileScorer, chosen_pairs, opened


@dataclass(frozen=True)
class ScreenTask:
    """What whoever does the work has to know: all of it public, but for a table in memory."""

    source: Source
    plan: Plan
    resources: Resources
    size: int  # of a tile, in pairs


class Executor(Protocol):
    """Whoever does the work. The noise of a pair does not depend on who that is."""

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Iterator[tuple[int, bytes]]:
        """Tiles by their numbers, in any order, as `Work.tiles` makes them."""
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

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Iterator[tuple[int, bytes]]:
        found = self._work.tiles(numbers, self._task.size, self._key, progress)
        return zip(numbers, found, strict=True)

    def noised(self, chosen: Positions) -> Int[np.ndarray, " chosen"]:
        return self._work.noised(chosen, self._key)


def released(
    task: ScreenTask, key: AnyKey, folder: Folder | None, crew: Executor
) -> tuple[Positions, Float[np.ndarray, " released"]]:
    """The pairs that are released, and their values. Tiles are kept as they come."""
    plan, pairs = task.plan, task.plan.pairs
    parts = [pairs[start : start + task.size] for start in range(0, len(pairs), task.size)]
    contents = _kept(plan, key, folder, list(map(len, parts)))
    missing = [number for number in range(len(parts)) if number not in contents]
    done = sum(len(parts[number]) for number in contents)
    with tqdm(total=len(pairs), initial=done, unit=" pairs", disable=None) as bar:
        for number, content in crew.tiles(missing, bar.update) if missing else ():
            contents[number] = content
            if folder:
                folder.keep_tile(number, content)
    noisy = [opened(plan, number, contents[number], key) for number in range(len(parts))]
    points = np.concatenate(noisy)
    if plan.choice is not None:
        pairs = chosen_pairs(plan, plan.choice, points, key)
        points = crew.noised(pairs)
    return pairs, points * 2.0**-plan.values.lattice.bits


def _kept(
    plan: Plan, key: AnyKey, folder: Folder | None, lengths: Sequence[int]
) -> dict[int, bytes]:
    """Tiles of an interrupted run that are as they should be."""
    kept = {}
    for number, length in enumerate(lengths) if folder else ():
        content = folder.tile(number) if folder else None
        with suppress(DecryptionError):
            if content is not None and len(opened(plan, number, content, key)) == length:
                kept[number] = content
    return kept
