"""Time of `pairwise` on data frames: python -m benchmarks.frames, on an idle machine.

Each table is scored in a process of its own, first with programs to compile, then again. With
`peers`, p-values are compared with those of phik, dcor, hyppo and scipy on the same table
(`pip install phik dcor hyppo`): seconds for some of its pairs. Tests that permute take a time
proportional to the permutations: a few are measured, and 1000 counted, of which hyppo's are the
default.
"""

import itertools
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


# One column of each kind; the peers that take numbers only have codes.
KINDS = ["number1", "count1", "flag2", "nominal1", "grade0", "day0"]
PERMUTATIONS = 1000


def of_phik() -> None:
    """Print seconds a pair of phik's significance matrix, with its defaults."""
    import phik

    frame = mixed(10_000, 0)[KINDS]
    numbers = [name for name in KINDS if name.startswith(("number", "count"))]
    frame["day0"] = frame["day0"].astype("int64")
    done = timed(lambda: phik.significance_matrix(frame, interval_cols=[*numbers, "day0"]))
    print(json.dumps([seconds / 21 for seconds in done]))  # each column with itself as well


def codes() -> np.ndarray:
    """The columns of `KINDS` as numbers."""
    frame = mixed(10_000, 0)[KINDS]
    return np.stack([pd.factorize(frame[name], sort=True)[0] for name in KINDS]).astype(float)


def of_one_pair(test: Callable[[np.ndarray, np.ndarray, int], object], few: int) -> None:
    """Print seconds for a pair with `PERMUTATIONS`, of which a few are measured.

    The first call, which may compile, does not count.

    Args:
      test: takes two columns and the number of permutations.
      few: how many are measured.
    """
    x, y = codes()[[0, 1]]
    test(x, y, 1)
    one, some = (timed(lambda reps=reps: test(x, y, reps)) for reps in (1, 1 + few))
    each = [(b - a) / few for a, b in zip(one, some, strict=True)]
    print(json.dumps([a + (PERMUTATIONS - 1) * more for a, more in zip(one, each, strict=True)]))


def of_dcor() -> None:
    """Distance covariance, whose permutations take a matrix of all pairs of records."""
    from dcor.independence import distance_covariance_test

    of_one_pair(lambda x, y, reps: distance_covariance_test(x, y, num_resamples=reps), 2)


def of_hyppo() -> None:
    """Distance correlation, whose fast way for two columns is taken by itself."""
    from hyppo.independence import Dcorr

    of_one_pair(lambda x, y, reps: Dcorr().test(x, y, reps=reps, auto=False), 20)


def of_chatterjee() -> None:
    """Chatterjee's xi in scipy, asymptotic: no permutations."""
    from scipy.stats import chatterjeexi

    table = codes()
    pairs = list(itertools.combinations(range(len(table)), 2))
    done = timed(lambda: [chatterjeexi(table[i], table[j]) for i, j in pairs])
    print(json.dumps([seconds / len(pairs) for seconds in done]))


PEERS = {"phik": of_phik, "dcor": of_dcor, "hyppo": of_hyppo, "chatterjeexi": of_chatterjee}


def main(peers: bool) -> None:
    """Run every task in a process of its own."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    tasks = [["1000", "0"], ["10000", "0"], ["10000", "0.05"], ["corr"]]
    for words in [[name] for name in PEERS] if peers else tasks:
        command = [sys.executable, "-m", "benchmarks.frames", *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[" ".join(words)] = json.loads(done.stdout)
        print(words, found[" ".join(words)], flush=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 1 or sys.argv[1] == "peers":
        main(len(sys.argv) > 1)
    elif sys.argv[1] in PEERS:
        PEERS[sys.argv[1]]()
    elif sys.argv[1] == "corr":
        of_corr()
    else:
        of_table(int(sys.argv[1]), float(sys.argv[2]))
