"""Tiles of a screen on the workers of a Dask cluster.

To a worker travel the public plan and the number of a tile; back comes the tile, noised, or for
selecting asks encrypted under the run's key. Workers read the table and the key from files of their
own, so neither goes over the network. A tile that is computed twice is the same tile.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.source import Source
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.screening.execution import ScreenTask, Tiles
from dpmic_jax.screening.queries import Positions
from dpmic_jax.screening.tiles import Progress, TileScorer, packed, table_identity, unpacked

_one_at_a_time = threading.Lock()


class WorkersLostError(InterruptedError):
    """A cluster gave up on a task. The tiles it had finished are kept: the run can go on."""


def check(source: Source, folder: Folder | None) -> None:
    """Refuse what workers could not do, before any work."""
    if folder is None:
        raise ValueError(
            "a Dask cluster needs out=: a folder that its workers see under the same path, where "
            "the run's key is kept"
        )
    if source.path is None:
        raise ValueError(
            "a Dask cluster needs a CSV or Parquet file that its workers see under the same path, "
            "since records are not sent over the network; write the table to Parquet"
        )


class Cluster:
    """The workers of a Dask cluster."""

    def __init__(self, task: ScreenTask, folder: Folder, client: Any):
        self._task, self._folder, self._client = task, folder, client

    def tiles(self, numbers: Sequence[int], progress: Progress) -> Tiles:
        from distributed import as_completed

        task, run, pairs = self._task, self._task.plan.event.label, len(self._task.plan.pairs)
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

    def noised(self, chosen: Positions) -> Int[np.ndarray, " chosen"]:
        # Not pure: under one name Dask would keep the answer of an earlier run.
        done = self._client.submit(some_values, self._task, self._folder, chosen, pure=False)
        return _answer(done)


def _answer(future: Any) -> Any:
    """What a worker gave back, or raised; workers that are no more raise `WorkersLostError`."""
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except (CancelledError, KilledWorker):
        raise WorkersLostError(
            "the Dask cluster lost its workers or its scheduler too often; repeat the call to go "
            "on, with smaller resources=Resources(memory=...) if they ran out of memory"
        ) from None


def one_tile(task: ScreenTask, folder: Folder, number: int) -> bytes:
    """What a worker does for a tile."""
    # Threads of one process share its cores anyway, and the table in its memory.
    with _one_at_a_time:
        key = folder.key
        (tile,) = _work(task).tiles([number], task.size, key, lambda _: None)
        return packed(task.plan, number, tile, key)


def some_values(task: ScreenTask, folder: Folder, chosen: Positions) -> Int[np.ndarray, " chosen"]:
    """What a worker does once the pairs are chosen."""
    with _one_at_a_time:
        return _work(task).noised(chosen, folder.key)


_held: dict[tuple[str | int, ...], TileScorer] = {}


def _work(task: ScreenTask) -> TileScorer:
    """The table of the run at hand, read once a worker."""
    # With the file, for seeded runs of two tables may have one label.
    run = (task.plan.event.label, *table_identity(task.source))
    if run not in _held:
        _held.clear()
        _held[run] = TileScorer(task.source, task.plan, task.resources)
    return _held[run]
