"""Tiles of a screen on the workers of a Dask cluster.

A worker receives the public plan and the number of a tile. It returns the tile, noised, or
encrypted under the run's key if the query selects pairs. Workers read the table and the key from
files, so neither is sent over the network. A tile that is computed twice has the same bits.
"""

import threading
from collections.abc import Sequence
from typing import Any

from dpmic_jax.data.source import Source
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.persons import drawn
from dpmic_jax.screening.execution import ScreenTask, Tiles
from dpmic_jax.screening.queries import Positions
from dpmic_jax.screening.tiles import Points, Progress, TileScorer, packed, unpacked

_one_at_a_time = threading.Lock()


class WorkersLostError(InterruptedError):
    """A cluster gave up on a task. Its finished tiles are stored, so the run can be resumed."""


def check(source: Source, folder: Folder | None) -> None:
    """Refuse a table or a run that workers cannot read, before any work."""
    if folder is None:
        raise ValueError(
            "a Dask cluster needs out=, a folder that its workers see under the same path: the "
            "run's key is stored there"
        )
    if source.path is None:
        raise ValueError(
            "a Dask cluster needs a CSV or Parquet file that its workers see under the same path, "
            "since records are not sent over the network; write the table to Parquet"
        )


class Cluster:
    """An executor on the workers of a Dask cluster."""

    def __init__(self, task: ScreenTask, folder: Folder, client: Any):
        self._task, self._folder, self._client = task, folder, client

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        """Tiles with their numbers, in the order in which workers finish them."""
        from distributed import as_completed

        task, run, pairs = self._task, self._task.plan.event.label, len(self._task.plan.scored)
        futures = {
            self._client.submit(
                one_tile, task, self._folder, number, key=f"dpmic {run} {number}"
            ): number
            for number in numbers
        }
        try:
            for future in as_completed(list(futures)):
                number = futures[future]
                content = _answer(future)
                yield number, unpacked(task.plan, number, content, self._folder.key)
                future.release()
                progress(min(task.size, pairs - number * task.size))
        finally:
            self._client.cancel(list(futures))

    def noised(self, chosen: Positions) -> Points:
        """The noised values of the selected pairs."""
        # A pure task has a name by its arguments, under which Dask may keep an earlier result.
        future = self._client.submit(some_values, self._task, self._folder, chosen, pure=False)
        return _answer(future)


def _answer(future: Any) -> Any:
    """What a worker returned or raised; `WorkersLostError` if the workers are gone."""
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except (CancelledError, KilledWorker):
        raise WorkersLostError(
            "the Dask cluster lost its workers or its scheduler too often; repeat the call to "
            "resume, with smaller resources=Resources(memory=...) if they ran out of memory"
        ) from None


def one_tile(task: ScreenTask, folder: Folder, number: int) -> bytes:
    """Compute a tile on a worker, packed for the network."""
    # One at a time: threads of a process share its cores and its copy of the table anyway.
    with _one_at_a_time:
        key = folder.key
        (tile,) = _scorer(task, key).tiles([number], task.size, key, lambda _: None)
        return packed(task.plan, number, tile, key)


def some_values(task: ScreenTask, folder: Folder, chosen: Positions) -> Points:
    """Compute the noised values of selected pairs on a worker."""
    with _one_at_a_time:
        key = folder.key
        return _scorer(task, key).noised(chosen, key)


# The scorer of the current run, which holds its table.
_cached: dict[tuple[str | int, ...], TileScorer] = {}


def _scorer(task: ScreenTask, key: AnyKey) -> TileScorer:
    """The scorer of a run; each worker reads the table once."""
    # The file is part of the key because seeded runs of two tables may have the same label.
    run = (task.plan.event.label, *task.source.identity())
    if run not in _cached:
        _cached.clear()
        _cached[run] = TileScorer(drawn(task.source, key), task.plan, task.resources)
    return _cached[run]
