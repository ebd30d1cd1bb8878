"""Tiles of a screen on the workers of a Dask cluster.

To a worker travel the public plan and the number of a tile; back comes the tile, noised, or for
selecting asks sealed under the run's key. Workers read the table and the key from files of their
own, so neither goes over the network. A tile that is computed twice is the same tile.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpmic_jax.screening.folder import Folder
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.work import Resources, Work, table_identity
from dpmic_jax.source import Source

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Task:
    """What a worker has to know: all of it public."""

    source: Source
    plan: Plan
    resources: Resources
    folder: Folder
    size: int


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


def tiles(client: Any, task: Task, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Finished tiles, in any order."""
    from distributed import as_completed

    run = task.plan.event.label
    futures = {
        client.submit(one_tile, task, number, key=f"dpmic {run} {number}"): number
        for number in numbers
    }
    try:
        for future in as_completed(list(futures)):
            yield futures[future], future.result()
            future.release()
    finally:
        client.cancel(list(futures))


def one_tile(task: Task, number: int) -> bytes:
    """What a worker does."""
    # Threads of one process share its cores anyway, and the table in its memory.
    with _one_at_a_time:
        (content,) = _work(task).tiles([number], task.size, task.folder.key, lambda _: None)
        return content


_held: dict[tuple[str | int, ...], Work] = {}


def _work(task: Task) -> Work:
    """The table of the run at hand, read once a worker."""
    # With the file, for seeded runs of two tables may have one label.
    run = (task.plan.event.label, *table_identity(task.source))
    if run not in _held:
        _held.clear()
        _held[run] = Work(task.source, task.plan, task.resources)
    return _held[run]
