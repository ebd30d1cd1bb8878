"""Speed of independence tests: all order-0 and order-1 tests of 50 binary columns.

`python -m benchmarks.causal_tests` prints a table and writes
`benchmarks/results/causal_tests.json`. There are 1225 pairs, each also given one of 48 other
columns: 60 025 tests of 100 000 records. The first call, which compiles, is timed separately. The
peer is scipy's `kendalltau` in a loop, once for each stratum of a query, on some hundred queries
drawn at random; its time for all queries is extrapolated from the mean.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from itertools import combinations, pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from dpmic_jax.causal.contingency import ChiSquare, GTest
from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.spearman import Spearman
from dpmic_jax.dp.noise.lattice import Lattice

RESULTS = Path(__file__).parent / "results" / "causal_tests.json"


def table(columns: int, n: int) -> Coded:
    """A chain: each column is its predecessor, flipped for a third of the records."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (columns, n)).astype(np.uint8)
    for before, column in pairwise(codes):
        column[:] = before ^ (rng.random(n) < 1 / 3)
    return Coded(codes, (2,) * columns)


def queries(columns: int) -> list[Query]:
    pairs = list(combinations(range(columns), 2))
    given = (Query(x, y, (z,)) for x, y in pairs for z in range(columns) if z not in (x, y))
    return [*(Query(x, y) for x, y in pairs), *given]


def seconds_of(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spread(seconds: list[float]) -> dict[str, float]:
    return {"best": min(seconds), "median": float(np.median(seconds)), "worst": max(seconds)}


def peer(data: Coded, sample: list[Query]) -> tuple[float, float]:
    """scipy's seconds per query, and the largest difference between its scores and ours."""
    from scipy.stats import kendalltau

    def blocks(query: Query) -> list[np.ndarray]:
        if not query.given:
            return [data.codes[[query.x, query.y]]]
        return [data.codes[[query.x, query.y]][:, data.codes[query.given[0]] == z] for z in (0, 1)]

    def one(query: Query) -> None:
        for x, y in blocks(query):
            kendalltau(x, y)

    def score(query: Query) -> float:
        top = whole = 0.0
        for x, y in blocks(query):
            m = len(x)
            x, y = x.astype(bool), y.astype(bool)
            apart = int((x & y).sum()) * int((~x & ~y).sum())
            apart -= int((x & ~y).sum()) * int((~x & y).sum())
            top += 9 * abs(apart) / (2 * m + 5)
            whole += 9 * m * (m - 1) / (2 * (2 * m + 5))
        return top / sqrt(whole)

    one(sample[0])
    seconds = seconds_of(lambda: [one(query) for query in sample]) / len(sample)
    ours = Kendall(data).scores(sample)
    return seconds, float(np.abs(ours - [score(query) for query in sample]).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=200, help="queries of the peer")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    import jax
    import scipy

    import dpmic_jax

    data, asked = table(options.columns, options.n), queries(options.columns)
    found: dict[str, Any] = {
        "command": f"python -m benchmarks.causal_tests --rounds {options.rounds} "
        f"--sample {options.sample} --columns {options.columns} --n {options.n}",
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": os.getloadavg(),
        "n": options.n,
        "columns": options.columns,
        "tests": len(asked),
    }
    lattice = Lattice.for_sensitivity(Kendall(data).sensitivity(asked), 1.0)
    cases: dict[str, Callable[[], Any]] = {
        "Kendall": lambda: Kendall(data).scores(asked),
        "Kendall, lattice points": lambda: Kendall(data).points(asked, lattice),
        "Spearman": lambda: Spearman(data).scores(asked),
        "G-test, p-values": lambda: GTest(data).p_values(asked),
        "chi-square, p-values": lambda: ChiSquare(data).p_values(asked),
    }
    found["first_call_seconds"] = seconds_of(cases["Kendall"])
    found["seconds"] = {
        name: spread([seconds_of(work) for _ in range(options.rounds)])
        for name, work in cases.items()
    }
    chosen = np.random.default_rng(1).choice(len(asked), options.sample, replace=False)
    seconds, apart = peer(data, [asked[i] for i in chosen])
    found["scipy_seconds_a_test"] = seconds
    found["scipy_seconds_of_all"] = seconds * len(asked)
    found["ratio"] = found["scipy_seconds_of_all"] / found["seconds"]["Kendall"]["median"]
    found["largest_difference_to_counted_pairs"] = apart
    found["load_average_after"] = os.getloadavg()
    for name, one in {
        "first call": {"median": found["first_call_seconds"]},
        **found["seconds"],
    }.items():
        print(f"{name:28} {one['median']:8.2f} s")
    print(f"{'scipy.stats.kendalltau':28} {found['scipy_seconds_of_all']:8.0f} s (from a sample)")
    print(f"ratio {found['ratio']:.0f}, scores differ by {apart:.1e} at most")
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
