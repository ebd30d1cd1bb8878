"""Speed of tests: 10^4 permutations of 100 pairs of 1000 records, against fast-mine.

`python -m benchmarks.permutation` prints a table and writes `benchmarks/results/permutation.json`.
Every case runs in a separate process, so that peak memory is that of the case. Within it, our
rounds and the peer's alternate, so that both see the same load. Compilation is timed separately.

- `null table`: 10^4 draws from the null distribution of MICe, then the 100 pairs, all measured.
- `permutation MICe`, `permutation MICr`: rounds of 100 pairs times some permutations. The seconds
  of 10^4 permutations are extrapolated from the rate, or measured with `--full`.

The peer computes MICe of a pair with one permuted column in a loop on one thread, some hundred
times. It would need 100 * 10^4 evaluations, also where our null table needs 10^4.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import spread

RESULTS = Path(__file__).parent / "results" / "permutation.json"
N, PAIRS, DRAWS = 1000, 100, 10_000
B_MICR = 80


def columns() -> list[np.ndarray]:
    return list(np.random.default_rng(0).random((2 * PAIRS, N)))


def pairs() -> np.ndarray:
    return np.arange(2 * PAIRS).reshape(PAIRS, 2)


def seconds_of(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Peer:
    """fast-mine, warmed, on as many evaluations as take a few seconds."""

    def __init__(self, alpha: float, c: float):
        self.alpha, self.c, self.rng = alpha, c, np.random.default_rng(1)
        self.columns = columns()
        self.seconds(1)
        self.evaluations = int(np.clip(5 / self.seconds(2) * 2, 3, 100))

    def seconds(self, evaluations: int) -> float:
        import fast_mine

        settings = fast_mine.MineParameter(alpha=self.alpha, c=self.c, est=fast_mine.EST_MIC_E)
        chosen = self.rng.integers(0, PAIRS, evaluations)
        shuffled = [self.rng.permutation(self.columns[2 * i + 1]) for i in chosen]
        began = time.perf_counter()
        for i, y in zip(chosen, shuffled, strict=True):
            problem = fast_mine.MineProblem(self.columns[2 * i].copy(), y, N)
            fast_mine.mine_mic(fast_mine.mine_compute_score(problem, settings))
        return time.perf_counter() - began


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_null_table(rounds: int, draws: int) -> dict[str, Any]:
    import jax

    import dpmic_jax
    from dpmic_jax.inference import NullTable, null_law

    values, chosen = columns(), pairs()

    def table(seed: int, count: int) -> Callable[[], Any]:
        return lambda: null_law(dpmic_jax.MICe(), N, draws=count, key=jax.random.key(seed))

    def test(seed: int, count: int) -> Callable[[], Any]:
        key = jax.random.key(seed)
        return lambda: NullTable(draws=count).p_values(values, chosen, key=key)

    cold = seconds_of(table(0, 64)) + seconds_of(test(0, 64))
    warm = seconds_of(table(1, 64)) + seconds_of(test(1, 64))
    peak_before_peer, peer, tables, tests, theirs = memory(), Peer(0.6, 15), [], [], []
    for seed in range(2, 2 + rounds):
        tables.append(seconds_of(table(seed, draws)))
        tests.append(seconds_of(test(seed, draws)))  # the null table exists by now
        theirs.append(peer.seconds(peer.evaluations))
    ours, one = spread(tables, draws), spread(theirs, peer.evaluations)
    total = float(np.median(tables) + np.median(tests))
    by_peer = PAIRS * draws / one["median"]
    return {
        "draws": draws,
        "draws_a_second": ours,
        "seconds_of_table": float(np.median(tables)),
        "seconds_of_100_pairs": float(np.median(tests)),
        "peer_evaluations": peer.evaluations * rounds,
        "peer_a_second": one,
        "ratio_a_draw": ours["median"] / one["median"],
        "peer_seconds_for_all_permutations": by_peer,
        "ratio_of_whole_job": by_peer / total,
        "compile_seconds": cold - warm,
        "peak_mb": max(peak_before_peer, memory()),
    }


def run_permutation(name: str, rounds: int, draws: int) -> dict[str, Any]:
    import jax

    import dpmic_jax
    from dpmic_jax.inference import Permutation

    micr = name == "MICr"
    statistic = dpmic_jax.MICr(B=B_MICR) if micr else dpmic_jax.MICe()
    values, chosen, bounds = columns(), pairs(), [(0.0, 1.0)] * (2 * PAIRS)

    def test(seed: int, count: int) -> Callable[[], Any]:
        settings = Permutation(statistic=statistic, draws=count)
        return lambda: settings.p_values(values, chosen, bounds, key=jax.random.key(seed))

    cold, warm = seconds_of(test(0, 1)), seconds_of(test(1, 1))
    # The peer has no MICr; its MICe with the same B and c does at least as much work.
    peak_before_peer = memory()
    peer, times = Peer(B_MICR if micr else 0.6, 5 if micr else 15), []
    theirs = [
        peer.seconds(peer.evaluations)
    ]  # measured before as well, as a full run has one round
    for seed in range(2, 2 + rounds):
        times.append(seconds_of(test(seed, draws)))
        theirs.append(peer.seconds(peer.evaluations))
    # The observed values are evaluations too.
    ours, one = spread(times, PAIRS * (draws + 1)), spread(theirs, peer.evaluations)
    return {
        "draws_a_round": draws,
        "evaluations_a_second": ours,
        "seconds_of_10^4_permutations": PAIRS * (DRAWS + 1) / ours["median"],
        "measured_in_full": draws == DRAWS,
        "peer_evaluations": peer.evaluations * len(theirs),
        "peer_a_second": one,
        "peer_seconds_for_all_permutations": PAIRS * DRAWS / one["median"],
        "ratio": ours["median"] / one["median"],
        "compile_seconds": cold - warm,
        "peak_mb": max(peak_before_peer, memory()),
    }


CASES: dict[str, Callable[[int, int, bool], dict[str, Any]]] = {
    "null table": lambda rounds, sample, full: run_null_table(rounds, DRAWS),
    "permutation MICe": lambda rounds, sample, full: run_permutation(
        "MICe", 1 if full else rounds, DRAWS if full else sample
    ),
    "permutation MICr": lambda rounds, sample, full: run_permutation(
        "MICr", 1 if full else rounds, DRAWS if full else sample
    ),
}


def report(found: dict[str, Any]) -> None:
    table = found["cases"]["null table"]
    print(
        f"null table: {table['draws']} draws in {table['seconds_of_table']:.1f} s and 100 pairs in "
        f"{table['seconds_of_100_pairs']:.2f} s; fast-mine would need "
        f"{table['peer_seconds_for_all_permutations']:.0f} s, {table['ratio_of_whole_job']:.0f} "
        f"times as long ({table['ratio_a_draw']:.0f} times a draw)"
    )
    for name in ("permutation MICe", "permutation MICr"):
        row = found["cases"][name]
        print(
            f"{name}: {row['evaluations_a_second']['median']:.0f} evaluations a second, "
            f"{row['seconds_of_10^4_permutations']:.0f} s for all; fast-mine "
            f"{row['peer_a_second']['median']:.1f} a second, ratio {row['ratio']:.0f}"
        )


def child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.permutation", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=100, help="permutations a round")
    parser.add_argument("--full", action="store_true", help="10^4 permutations, once")
    parser.add_argument("--case", choices=CASES, help="run one case and print its JSON")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(CASES[options.case](options.rounds, options.sample, options.full)))
        return
    import jax

    import dpmic_jax

    extra = ["--rounds", str(options.rounds), "--sample", str(options.sample)]
    extra += ["--full"] * options.full
    found: dict[str, Any] = {
        "command": " ".join(["python -m benchmarks.permutation", *extra]),
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": os.getloadavg(),
        "n": N,
        "pairs": PAIRS,
        "cases": {},
    }
    for name in CASES:
        print(name, "...", file=sys.stderr)
        found["cases"][name] = child("--case", name, *extra)
    found["load_average_after"] = os.getloadavg()
    report(found)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
