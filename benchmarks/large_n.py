"""MICe of large tables: time, memory, and what its rule for large n loses.

`python -m benchmarks.large_n time` measures each case in a process of its own, on an idle machine;
`loss` compares `MICe.for_large_n()` with the full setting, B = n^0.6 and c = 15, on the same data
sets of 63 distributions (the 21 functions of the MIC paper at R^2 = 0.1, 0.5 and 0.9; for 10^5
records at 0.5), and both with MIC*; without a word, both are done.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "large_n.json"
LOST_AT = {10_000: (0.1, 0.5, 0.9), 100_000: (0.5,)}  # records, and R^2 of the distributions
# Statistic, records, columns.
CASES = [
    *(("large", n, columns) for n in (10_000, 100_000, 1_000_000) for columns in (2, 30)),
    *(("full", *shape) for shape in ((10_000, 2), (10_000, 30), (100_000, 2), (1_000_000, 2))),
]
SECONDS = 240  # that a case may take


def statistic(name: str) -> Any:
    from dpmic_jax import MICe

    return {"large": MICe.for_large_n, "full": MICe}[name]()


def columns_of(n: int, columns: int) -> np.ndarray:
    """Every third column depends on the first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, columns))
    x[:, 1::3] += np.sin(4 * x[:, :1])
    return x


def timed(name: str, n: int, columns: int) -> dict[str, Any]:
    """Seconds on the clock and of the CPU, of the first call and of a later one; peak memory."""
    import dpmic_jax as dm

    table, chosen, found = columns_of(n, columns), statistic(name), {}
    for call in ("first", "later"):
        began, cpu = time.perf_counter(), time.process_time()
        if columns == 2:
            value = dm.pairwise(table[:, :1], Y=table[:, 1:], statistic=chosen).matrix[0, 0]
        else:
            value = dm.pairwise(table, statistic=chosen).matrix[0, 1]
        found[call] = [time.perf_counter() - began, time.process_time() - cpu]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**found, "value": float(value), "peak MB": peak}


def times(keep: Callable[[list[dict[str, Any]]], None]) -> None:
    found = []
    for name, n, columns in CASES:
        own = {"statistic": name, "n": n, "columns": columns}
        words = map(str, own.values())
        command = [sys.executable, "-m", "benchmarks.large_n", *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            more = json.loads(done.stdout) if done.returncode == 0 else {"ended": done.returncode}
        except subprocess.TimeoutExpired:
            more = {"ended": f"after {SECONDS} s"}
        found.append({**own, **more})
        print(found[-1], flush=True)
        keep(found)


def values(data: np.ndarray, name: str) -> np.ndarray:
    """MICe of data sets of two columns."""
    import dpmic_jax as dm
    from dpmic_jax.mic import batch
    from dpmic_jax.mic import characteristic as read
    from dpmic_jax.mic.xlogx import gains_for

    chosen = statistic(name)
    if data.shape[1] > 20_000:  # codes of all data sets would not fit
        pairs = ((one[:, :1], one[:, 1:]) for one in data)
        return np.array([dm.pairwise(x, Y=y, statistic=chosen).matrix[0, 0] for x, y in pairs])
    sets, columns = len(data), [*data[..., 0], *data[..., 1]]
    cut = chosen.cut(columns)
    pairs = np.stack([np.arange(sets), sets + np.arange(sets)], axis=1)
    found = batch.score_pairs(cut, pairs, gains_for(cut.n))
    return np.concatenate([read.mic(read.characteristic(cut.grids, part)) for part in found])


def losses(keep: Callable[[list[dict[str, Any]]], None]) -> None:
    from dpmic_jax.paper.family import data_sets, family

    known, found = family(), []
    for n, r_squared in LOST_AT.items():
        chosen = [i for i, value in enumerate(known.r_squared) if value in r_squared]
        sets = [data_sets(known, range(i, i + 1), n, range(1), seed=0) for i in chosen]
        data = np.concatenate([np.stack(both, axis=-1) for both in sets])
        none = np.random.default_rng(1).random((5, n, 2))  # independent
        of = {name: values(data, name) for name in ("large", "full")}
        alone = {name: values(none, name) for name in of}
        lost, stars = of["full"] - of["large"], known.stars[chosen]
        worst = int(np.abs(lost).argmax())
        found.append(
            {
                "n": n,
                "mean of full minus large": lost.mean(),
                "largest of full minus large": lost.max(),
                "smallest of full minus large": lost.min(),
                "worst at": [known.names[chosen[worst]], known.r_squared[chosen[worst]]],
                "rank correlation": float(
                    np.corrcoef(_ranks(of["full"]), _ranks(of["large"]))[0, 1]
                ),
                "error to MIC*": {name: np.abs(each - stars).mean() for name, each in of.items()},
                "independent": {name: each.mean() for name, each in alone.items()},
                "values": {name: each.round(5).tolist() for name, each in of.items()},
            }
        )
        print({name: value for name, value in found[-1].items() if name != "values"}, flush=True)
        keep(found)


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def main(words: list[str]) -> None:
    if len(words) == 3:
        print(json.dumps(timed(words[0], int(words[1]), int(words[2]))))
        return
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def keep(word: str, rows: list[dict[str, Any]]) -> None:
        content = found | {word: rows, "command": "python -m benchmarks.large_n"}
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")

    for word in words or ["time", "loss"]:
        {"time": times, "loss": losses}[word](partial(keep, word))
        found = json.loads(RESULTS.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
