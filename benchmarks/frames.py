"""Time of `pairwise` on data frames: python -m benchmarks.frames, on an idle machine.

Each table is scored in a process of its own, first with programs to compile, then again.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "frames.json"


def mixed(n: int, missing: float) -> pd.DataFrame:
    """30 columns of every kind, some of which depend on each other."""
    rng = np.random.default_rng(0)
    base, columns = rng.normal(size=n), {}
    for i in range(10):
        columns[f"number{i}"] = base * (i % 3) + 3 * rng.normal(size=n)
    for i in range(4):
        columns[f"count{i}"] = rng.poisson(2 + i + np.exp(base / 3) * (i % 2), n)
        columns[f"flag{i}"] = rng.random(n) < 0.1 + 0.1 * i
        columns[f"nominal{i}"] = pd.Categorical(rng.integers(0, 3 + 5 * i, n).astype(str))
    for i in range(3):
        grade = np.clip(base + rng.normal(size=n) + 2, 0, 4).astype(int)
        columns[f"grade{i}"] = pd.Categorical.from_codes(grade, list("abcde"), ordered=True)
    for i in range(2):
        columns[f"day{i}"] = pd.Timestamp(2020, 1, 1) + pd.to_timedelta(
            rng.integers(0, 999, n), "D"
        )
        column = base + rng.normal(size=n)
        columns[f"part{i}"] = np.where(rng.random(n) < missing, np.nan, column)
    columns["stay"] = pd.to_timedelta(rng.exponential(100, n), "min")
    return pd.DataFrame(columns)


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of the CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - cpu


def of_table(n: int, missing: float) -> None:
    """Print the times of one table."""
    import dpmic_jax as dm

    frame = mixed(n, missing)
    first = timed(lambda: dm.pairwise(frame, p_values=True))
    again = timed(lambda: dm.pairwise(frame, p_values=True))
    alone = timed(lambda: dm.pairwise(frame))
    print(json.dumps({"first": first, "again": again, "without p-values": alone}))


def of_corr() -> None:
    """Print the times of `df.corr(method=dm.mice)` and `pairwise`, after the first calls."""
    import dpmic_jax as dm

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 30)))
    ways = {"pairwise": lambda: dm.pairwise(frame), "corr": lambda: frame.corr(method=dm.mice)}
    for _ in range(2):
        found = {name: timed(run) for name, run in ways.items()}
    print(json.dumps(found))


def main() -> None:
    """Run every task in a process of its own."""
    found = {}
    for words in (["1000", "0"], ["10000", "0"], ["10000", "0.05"], ["corr"]):
        command = [sys.executable, "-m", "benchmarks.frames", *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[" ".join(words)] = json.loads(done.stdout)
        print(words, found[" ".join(words)])
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "corr":
        of_corr()
    else:
        of_table(int(sys.argv[1]), float(sys.argv[2]))
