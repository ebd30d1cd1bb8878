"""Seconds and memory of one pair and of 30 columns: `python -m benchmarks.exact_peers.speed`.

Each score has a process of its own. Before the first cell of a kind (pair, table) it is called with
200 records, so that what is compiled once is compiled (numba, JAX); then come the first call of the
size, and later calls. Seconds are of the processor, as other work slows the clock, which is noted
too. Memory is the most that the process has, above what it had before the calls. A cell that takes
too long is ended with its process, and the next cells get a new one.
"""

import json
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.exact_peers.scores import SCORES

LIMIT = 10  # seconds of the first call of a cell
MEMORY = 8 * 2**30  # of the address space of a process
CASES = {
    "one pair, n = 1000": (1000, 2),
    "one pair, n = 10 000": (10_000, 2),
    "one pair, n = 100 000": (100_000, 2),
    "30 columns, n = 1000": (1000, 30),
}
LEFT_OUT = {"MICe, adjusted for chance"}  # the time is that of TIC


def measured(
    known: dict[str, Any], only: set[str]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The cells that are not known yet."""
    for name in SCORES:
        if name in LEFT_OUT or (only and name not in only):
            continue
        left = [case for case in CASES if case not in known.get(name, {})]
        while left:
            for found in cells(name, left):
                case, *left = left
                print(name, case, found, flush=True)
                yield (name, case), found


def cells(name: str, cases: list[str]) -> Iterator[dict[str, Any]]:
    """Cells of one score in one process, up to the first that takes too long or fails."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.exact_peers.speed", name, *cases]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        lines = iter(process.stdout or ())
        for _ in cases:
            ready, line = next(lines, ""), next(lines, "")
            over = not line and process.wait() == -signal.SIGXCPU
            found = json.loads(line) if line else {"over": LIMIT} if over else {"failed": "ended"}
            yield found if ready else {"failed": "the small call"}
            if "later" not in found:
                return


def worker(name: str, *cases: str) -> None:
    """Print a line before each cell, and what was measured after it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    score, seen = SCORES[name](), set()
    for case in cases:
        n, columns = CASES[case]

        def call(frame: pd.DataFrame, columns: int = columns) -> Any:
            if columns > 2:
                return score.table(frame)
            return score.pair(*(frame[each].to_numpy().copy() for each in frame))

        if columns not in seen:
            call(table(200, columns))
        seen.add(columns)
        frame = table(n, columns)
        end = math.ceil(time.process_time()) + LIMIT
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        print("ready", flush=True)
        try:
            print(json.dumps(timed(call, frame)), flush=True)
        except MemoryError:
            print(json.dumps({"failed": f"over {MEMORY // 2**30} GB"}), flush=True)
            return


def table(n: int, columns: int) -> pd.DataFrame:
    """Columns of normal numbers, some of which depend on each other."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(n, 1))
    values = base * (np.arange(columns) % 3) / 2 + rng.normal(size=(n, columns))
    return pd.DataFrame(values, columns=[f"c{i}" for i in range(columns)])


def timed(call: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> dict[str, Any]:
    """Seconds and memory of the first call and of later ones."""
    Path("/proc/self/clear_refs").write_text("5")  # the most memory so far is what it has now
    before = _most_memory()
    seconds, wall = [], []
    while not seconds or (len(seconds) < 6 and sum(seconds) < 1.5):
        start = time.process_time(), time.perf_counter()
        call(frame)
        seconds.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    later = sorted(seconds[1:] or seconds)
    return {
        "first": seconds[0],
        "later": later[len(later) // 2],
        "range": [later[0], later[-1]],
        "clock": sorted(wall[1:] or wall)[len(later) // 2],
        "calls": len(seconds),
        "memory_mb": _most_memory() - before,
        "process_mb": _most_memory(),
    }


def _most_memory() -> float:
    """The most memory of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


if __name__ == "__main__":
    worker(*sys.argv[1:])
