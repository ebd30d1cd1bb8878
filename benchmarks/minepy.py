"""Speed of pstats, which gives minepy's numbers for all pairs of a table, against fast-mine.

`python -m benchmarks.minepy` prints a table and writes `benchmarks/results/minepy.json`. Every
case runs in a separate process, so that peak memory is that of the case. Within it, our rounds and
the peer's alternate, so that both see the same load. Ours is the whole call, from the table to MIC
and TIC of every pair. Compilation is timed separately. The peer is a warmed loop on one thread,
over as many pairs as take a second or two. Processor time is reported too, which other work on the
machine disturbs less than wall-clock time.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.engine import all_pairs, spread

RESULTS = Path(__file__).parent / "results" / "minepy.json"


class Case(NamedTuple):
    n: int
    columns: int
    c: float
    est: str
    tied: bool = False

    def table(self) -> np.ndarray:
        X = np.random.default_rng(0).normal(size=(self.columns, self.n))
        return np.round(X, 1) if self.tied else X


CASES = {
    "n=500 c=5 mic_approx": Case(500, 40, 5, "mic_approx"),
    "n=500 c=5 mic_e": Case(500, 40, 5, "mic_e"),
    "n=500 c=5 mic_approx, ties": Case(500, 40, 5, "mic_approx", tied=True),
    "n=1000 c=15 mic_approx": Case(1000, 40, 15, "mic_approx"),
    "n=1000 c=15 mic_e": Case(1000, 40, 15, "mic_e"),
}


class Times(NamedTuple):
    wall: float
    processor: float


def timed(work: Any) -> Times:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Times(time.perf_counter() - wall, time.process_time() - processor)


class Peer:
    """fast-mine in a loop: MIC and TIC of some pairs."""

    def __init__(self, X: np.ndarray, case: Case):
        import fast_mine

        self.mine = fast_mine
        est = fast_mine.EST_MIC_E if case.est == "mic_e" else fast_mine.EST_MIC_APPROX
        self.settings = fast_mine.MineParameter(alpha=0.6, c=case.c, est=est)
        self.X = X
        self.pairs = np.random.default_rng(1).permutation(all_pairs(len(X)))[:2]
        self.run()
        count = int(np.clip(2 / timed(self.run).processor * 2, 5, 400))
        self.pairs = np.random.default_rng(1).permutation(all_pairs(len(X)))[:count]

    def run(self) -> list[tuple[float, float]]:
        found = []
        for i, j in self.pairs.tolist():
            problem = self.mine.MineProblem(self.X[i].copy(), self.X[j].copy(), self.X.shape[1])
            score = self.mine.mine_compute_score(problem, self.settings)
            found.append((self.mine.mine_mic(score), self.mine.mine_tic(score, True)))
        return found


def run_case(name: str, rounds: int) -> dict[str, Any]:
    from dpmic_jax.minepy import pstats

    case = CASES[name]
    X = case.table()
    pairs = len(X) * (len(X) - 1) // 2

    def ours() -> None:
        pstats(X, 0.6, case.c, case.est)

    cold, warm = timed(ours), [timed(ours)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peer, theirs = Peer(X, case), []
    for _ in range(rounds):
        warm.append(timed(ours))
        theirs.append(timed(peer.run))
    found = pstats(X, 0.6, case.c, case.est)
    matrix = np.zeros((2, len(X), len(X)))
    matrix[:, *np.triu_indices(len(X), 1)] = found
    i, j = peer.pairs.T  # i > j: MIC is symmetric, but square entries of mic_e are not
    swapped = [(b, a) for a, b in peer.pairs.tolist()]
    peer.pairs = np.array(swapped)
    gap = float(np.abs(matrix[:, j, i] - np.array(peer.run()).T).max())
    mine = spread([times.wall for times in warm[1:]], pairs)
    one = spread([times.wall for times in theirs], len(peer.pairs))
    work = [times.processor / pairs for times in warm[1:]]
    their_work = [times.processor / len(peer.pairs) for times in theirs]
    return {
        **case._asdict(),
        "pairs": pairs,
        "pairs_a_second": mine,
        "peer_pairs_a_second": one,
        "ratio": mine["median"] / one["median"],
        "processor_us_a_pair": 1e6 * float(np.median(work)),
        "peer_processor_us_a_pair": 1e6 * float(np.median(their_work)),
        "ratio_by_processor_time_on_2_cores": 2 * float(np.median(their_work) / np.median(work)),
        "largest_difference": gap,
        "compile_seconds": cold.wall - min(times.wall for times in warm),
        "compile_processor_seconds": cold.processor - min(times.processor for times in warm),
        "peak_mb": memory,
    }


def child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.minepy", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(found: dict[str, Any]) -> None:
    print(
        f"{'case':<28}{'pairs/s':>9}{'peer':>8}{'ratio':>7}{'us cpu':>8}{'peer':>8}{'ratio x2':>9}"
        f"{'differ':>9}{'compile s':>10}{'MB':>6}"
    )
    for name, row in found["cases"].items():
        print(
            f"{name:<28}{row['pairs_a_second']['median']:>9.0f}"
            f"{row['peer_pairs_a_second']['median']:>8.1f}{row['ratio']:>7.0f}"
            f"{row['processor_us_a_pair']:>8.0f}{row['peer_processor_us_a_pair']:>8.0f}"
            f"{row['ratio_by_processor_time_on_2_cores']:>9.0f}"
            f"{row['largest_difference']:>9.0e}{row['compile_seconds']:>10.1f}"
            f"{row['peak_mb']:>6.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", choices=CASES, help="run one case and print its JSON")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(options.case, options.rounds)))
        return
    import jax

    import dpmic_jax

    found: dict[str, Any] = {
        "command": f"python -m benchmarks.minepy --rounds {options.rounds}",
        "version": dpmic_jax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": os.getloadavg(),
        "cases": {},
    }
    for name in CASES:
        print(name, "...", file=sys.stderr)
        found["cases"][name] = child("--case", name, "--rounds", str(options.rounds))
    found["load_average_after"] = os.getloadavg()
    report(found)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
