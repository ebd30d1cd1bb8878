"""Measure on a GPU what is on paper elsewhere, and check that it gives the bits of the CPU."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.engine import all_pairs
from benchmarks.gpu.paper import by_xla_alone
from benchmarks.gpu.programs import TASKS, Task
from dpmic_jax.mic import batch
from dpmic_jax.mic.xlogx import exact_gains

ROUNDS = 5
CHECKED = 200  # pairs, as a CPU takes its time


def measured(name: str) -> dict[str, Any]:
    """Pairs per second of a task, with this library's kernels and without, and equality of bits."""
    task, device = TASKS[name](), jax.devices("gpu")[0]
    columns = task.cut.rows.fine.shape[0]
    pairs = all_pairs(columns)[: task.pairs]
    ours = _rates(task, pairs, device)
    with by_xla_alone():
        xla = _rates(task, pairs, device)
    some = pairs[:CHECKED]
    exact, gains = exact_gains(task.cut.n), task.gains
    return {
        "task": name,
        "device": device.device_kind,
        "pairs": len(pairs),
        "pairs_a_second": ours,
        "pairs_a_second_xla": xla,
        "integers_equal": bool((_both(task, exact, some, device) == 0).all()),
        "largest_difference_bits": float(np.abs(_both(task, gains, some, device)).max() / 2**26),
        "peak_bytes": (device.memory_stats() or {}).get("peak_bytes_in_use"),
    }


def _rates(task: Task, pairs: np.ndarray, device: Any) -> list[float]:
    """Of all rounds but the first, which compiles."""
    score = batch.scorer(task.cut, task.gains, devices=[device], pairs=len(pairs))
    seconds = [_seconds(lambda: list(score(pairs))) for _ in range(ROUNDS + 1)]
    return sorted(len(pairs) / each for each in seconds[1:])


def _both(task: Task, gains: Any, pairs: np.ndarray, device: Any) -> np.ndarray:
    """What the GPU finds, less what the CPU finds."""
    found = [
        np.concatenate(
            list(batch.scorer(task.cut, gains, devices=[where], pairs=len(pairs))(pairs)), axis=2
        ).astype(np.int64)
        for where in (device, jax.devices("cpu")[0])
    ]
    return found[0] - found[1]


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
