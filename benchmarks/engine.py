"""Speed of the MIC engine: against fast-mine, against the bare polynomial, and as n grows.

`python -m benchmarks.engine` prints a table and writes `benchmarks/results/engine.json`.
Every case runs in a separate process, so that peak memory is that of the case. Within it, our
rounds and the peer's alternate, so that both see the same load. Compilation is timed separately.
`--quick` takes fewer rounds; `--case NAME` runs one case.

`--against COMMIT` compares the same cases with that commit's engine instead (7bcc7ee is version
0.1.0): one process for each version, both compiled before the clock starts, with alternating
rounds. It prints ratios, above 1 where the working tree is faster, and writes
`benchmarks/results/engine_beside.json`.
"""

import argparse
import csv
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.beside import Asked, Trees, in_turn, trees

RESULTS = Path(__file__).parent / "results" / "engine.json"
DATA = Path(os.environ.get("DPMIC_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Case(NamedTuple):
    """A table, a statistic, and the settings of the peer."""

    load: Callable[[], np.ndarray]
    statistic: str
    B: float | None  # None: n^0.6
    c: float


def baseball() -> np.ndarray:
    """The performance columns of the real table, or random integers of the same shape."""
    path = DATA / "baseball.csv"
    if not path.exists():
        return np.random.default_rng(0).integers(0, 60, (337, 132)).astype(float)
    with path.open() as file:
        return np.array([[float(v) for v in row[2:]] for row in list(csv.reader(file))[1:]])


def spellman() -> np.ndarray:
    path = DATA / "Spellman.csv"
    if not path.exists():
        return np.random.default_rng(0).normal(size=(4381, 23))
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]


def synthetic() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(1000, 200))


CASES = {
    "baseball MICe": Case(baseball, "MICe", None, 15),
    "synthetic MICe": Case(synthetic, "MICe", None, 15),
    "Spellman MICe": Case(spellman, "MICe", None, 15),
    "baseball MICr B=40": Case(baseball, "MICr", 40, 5),
    "Spellman MICr B=150": Case(spellman, "MICr", 150, 5),
    "Spellman MICr B=150 c=1": Case(spellman, "MICr", 150, 1),
}


def spread(seconds: list[float], pairs: int) -> dict[str, float]:
    """Pairs per second of the best, the median and the worst round."""
    rates = sorted(pairs / s for s in seconds)
    return {"best": rates[-1], "median": float(np.median(rates)), "worst": rates[0]}


# --- one case, in a separate process ----------------------------------------------------


class Run(NamedTuple):
    """Columns that are binned for a statistic and ready to be scored."""

    cut: Any
    codes: Any
    binning_seconds: float

    def seconds(self, pairs: np.ndarray, gains: Any) -> float:
        import jax

        from dpmic_jax.mic.batch import Scorer

        began = time.perf_counter()
        score = Scorer(
            self.codes,
            self.cut.grids,
            gains,
            n=self.cut.n,
            devices=jax.devices()[:1],
            tile=len(pairs),
            pairs=len(pairs),
        )
        for _ in score(pairs):
            pass
        return time.perf_counter() - began


def make_run(X: np.ndarray, statistic: Any, bounds: Any = None) -> Run:
    from dpmic_jax.mic import coding

    began = time.perf_counter()
    columns = [np.ascontiguousarray(column) for column in X.T]
    cut = statistic.cut(columns, bounds) if bounds else statistic.cut(columns)
    codes = coding.cheaper_codes(cut.masters, cut.rows)
    return Run(cut, codes, time.perf_counter() - began)


def all_pairs(m: int, at_most: int = 10**9) -> np.ndarray:
    return np.array([(i, j) for i in range(m) for j in range(i)][:at_most], np.int32)


def bounds_of(X: np.ndarray) -> list[tuple[float, float]]:
    """Bounds taken from the data, for timing only: they are not public."""
    return [(float(c.min()), float(c.max()) + float(c.min() == c.max())) for c in X.T]


def statistic_of(case: Case, sizes: Any = None) -> Any:
    import dpmic_jax

    settings: dict[str, Any] = {"c": case.c}
    if case.B is not None:
        settings["B"] = case.B
    if sizes is not None:
        settings["sizes"] = sizes
    return getattr(dpmic_jax, case.statistic)(**settings)


def run_case(name: str, rounds: int) -> dict[str, Any]:
    from dpmic_jax.mic.grids import evaluations
    from dpmic_jax.mic.xlogx import exact_gains, fast_gains

    case = CASES[name]
    X = case.load()
    limits = bounds_of(X) if case.statistic == "MICr" else None
    run, pairs = make_run(X, statistic_of(case), limits), all_pairs(X.shape[1])
    fast, exact = fast_gains(len(X)), exact_gains(len(X))
    cold = run.seconds(pairs, fast)
    warm = [run.seconds(pairs, fast)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peer = Peer(X, case)
    theirs = []
    for _ in range(rounds):
        warm.append(run.seconds(pairs, fast))
        theirs.append(peer.seconds())
    integers = [run.seconds(pairs, exact) for _ in range(3)][1:]
    ours, one = spread(warm, len(pairs)), spread(theirs, peer.pairs)
    two = peer.two_processes()
    work = 2 * sum(evaluations(grid) for grid in run.cut.grids)
    result = {
        "n": len(X),
        "columns": X.shape[1],
        "pairs": len(pairs),
        "evaluations_a_pair": work,
        "counting": type(run.codes).__name__,
        "pairs_a_second": ours,
        "pairs_a_second_with_binning": len(pairs) / (min(warm) + run.binning_seconds),
        "pairs_a_second_integer": spread(integers, len(pairs)),
        "peer_1_thread": one,
        "peer_2_processes": two,
        "ratio_to_1_thread": ours["median"] / one["median"],
        "ratio_to_2_processes": ours["median"] / two,
        "giga_evaluations_a_second": work * ours["best"] / 1e9,
        "compile_seconds": cold - min(warm),
        "peak_mb": memory,
    }
    return result


def run_ladder(rounds: int) -> dict[str, Any]:
    """Pairs per second of all sizes and of ladder(1.25), in turn, on a table with many pairs."""
    import dpmic_jax
    from dpmic_jax.mic.grids import all_sizes, ladder
    from dpmic_jax.mic.xlogx import fast_gains

    X = np.random.default_rng(0).random((4381, 64), np.float32)
    pairs, gains = all_pairs(64), fast_gains(4381)
    runs = [
        make_run(X, dpmic_jax.MICr(B=150, c=5, sizes=sizes), [(0.0, 1.0)] * 64)
        for sizes in (all_sizes, ladder(1.25))
    ]
    for run in runs:
        run.seconds(pairs, gains)
    seconds = [[run.seconds(pairs, gains) for run in runs] for _ in range(rounds)]
    every, some = (spread(list(times), len(pairs)) for times in zip(*seconds, strict=True))
    return {
        "n": 4381,
        "pairs": len(pairs),
        "all_sizes": every,
        "ladder_1.25": some,
        "ratio": some["median"] / every["median"],
    }


class Peer:
    """fast-mine on as many pairs as take a second or two."""

    def __init__(self, X: np.ndarray, case: Case):
        self.X, self.alpha, self.c = X, 0.6 if case.B is None else case.B, case.c
        one_fast_mine(X, self.alpha, self.c, [(0, 1)])
        began = time.perf_counter()
        one_fast_mine(X, self.alpha, self.c, [(0, 1), (0, 2)])
        self.pairs = int(np.clip(3 / (time.perf_counter() - began), 3, 200))
        order = np.random.default_rng(1).permutation(all_pairs(X.shape[1]))
        self.chosen = order[: self.pairs].tolist()
        self.pairs = len(self.chosen)

    def seconds(self) -> float:
        began = time.perf_counter()
        one_fast_mine(self.X, self.alpha, self.c, self.chosen)
        return time.perf_counter() - began

    def two_processes(self) -> float:
        """Pairs per second of two warmed processes, each on all of the chosen pairs."""
        context = multiprocessing.get_context("spawn")
        jobs = [(self.X, self.alpha, self.c, self.chosen)] * 2
        with context.Pool(2) as pool:
            pool.starmap(one_fast_mine, [(*job[:3], job[3][:2]) for job in jobs], chunksize=1)
            began = time.perf_counter()
            pool.starmap(one_fast_mine, jobs, chunksize=1)
            return 2 * self.pairs / (time.perf_counter() - began)


def one_fast_mine(X: np.ndarray, alpha: float, c: float, pairs: list) -> None:
    import fast_mine

    settings = fast_mine.MineParameter(alpha=alpha, c=c, est=fast_mine.EST_MIC_E)
    for i, j in pairs:
        x, y = X[:, i].astype(float).copy(), X[:, j].astype(float).copy()
        fast_mine.mine_mic(
            fast_mine.mine_compute_score(fast_mine.MineProblem(x, y, len(x)), settings)
        )


def run_roofline(rounds: int) -> dict[str, Any]:
    """Evaluations of the bare x log2 x polynomial per second on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import jax
    import jax.numpy as jnp

    from dpmic_jax.mic.xlogx import xlog2x

    rows, lanes, times = 16, 1024, 200
    x = jnp.asarray(np.random.default_rng(0).random((rows, lanes), np.float32))

    @jax.jit
    def kernel(x):
        # The shift changes, as the edge does in OptimizeAxis, so XLA can move nothing out of
        # the loop.
        def again(_, carry):
            total, shift = carry
            for row in range(rows):
                total = total + xlog2x(x[row] - shift)
            return total, shift * np.float32(0.5)

        start = jnp.zeros(lanes, jnp.float32), jnp.full(lanes, 1e-3, jnp.float32)
        return jax.lax.fori_loop(0, times, again, start)[0]

    kernel(x).block_until_ready()
    seconds = []
    for _ in range(20 * rounds):
        began = time.perf_counter()
        kernel(x).block_until_ready()
        seconds.append(time.perf_counter() - began)
    return {"giga_evaluations_a_second_a_core": rows * lanes * times / min(seconds) / 1e9}


def run_records(n: int, rounds: int) -> dict[str, Any]:
    """Milliseconds per pair at n records, 20 columns, B=150, c=5, after the columns are binned."""
    import jax
    import jax.numpy as jnp

    import dpmic_jax
    from dpmic_jax.mic import coding
    from dpmic_jax.mic.xlogx import exact_gains, fast_gains

    X = np.random.default_rng(0).random((n, 20), np.float32)
    run = make_run(X, dpmic_jax.MICr(B=150, c=5), [(0.0, 1.0)] * 20)
    pairs, gains = all_pairs(20, 190 if n <= 10**5 else 64), fast_gains(n)
    cold = run.seconds(pairs, gains)
    refined = coding.refined_codes(run.cut.masters, run.cut.rows)

    @jax.jit
    def scatter_pass(columns, rows):
        cell = columns.astype(jnp.int32) * refined.empty.shape[2] + rows.astype(jnp.int32)
        flat = jnp.zeros(refined.empty.size, jnp.int32)
        return flat.at[cell].add(1, mode="promise_in_bounds")

    codes = refined.codes.masters[0, :n], refined.codes.rows[1, :n]  # without the padding
    scatter_pass(*codes).block_until_ready()
    ours, passes = [], []
    for _ in range(rounds):
        ours.append(run.seconds(pairs, gains) / len(pairs))
        for _ in range(10):
            began = time.perf_counter()
            scatter_pass(*codes).block_until_ready()
            passes.append(time.perf_counter() - began)
    exact = exact_gains(n)
    integer = [run.seconds(pairs, exact) / len(pairs) for _ in range(3)][1:]
    return {
        "n": n,
        "counting": type(run.codes).__name__,
        "ms_a_pair": 1e3 * float(np.median(ours)),
        "ms_a_pair_best_worst": [1e3 * min(ours), 1e3 * max(ours)],
        "ms_a_pair_integer": 1e3 * min(integer),
        "ms_scatter_pass": 1e3 * float(np.median(passes)),
        "scatter_passes_a_pair": float(np.median(ours) / np.median(passes)),
        "binning_seconds": run.binning_seconds,
        "compile_seconds": cold - min(ours) * len(pairs),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


# --- cold starts -------------------------------------------------------------------------

COLD = {
    "one pair, n=1000": "import numpy as np; r = np.random.default_rng(0).random((1000, 2));"
    "import dpmic_jax as d; d.mice(r[:, 0], r[:, 1])",
    "30 columns, n=1000": "import numpy as np; r = np.random.default_rng(0).random((1000, 30));"
    "import dpmic_jax as d; d.pairwise(r, statistic=d.MICe())",
}


def cold_starts() -> dict[str, Any]:
    """Seconds from starting Python to the first answer, without and with compiled programs."""
    found = {}
    for name, program in COLD.items():
        with tempfile.TemporaryDirectory() as cache:
            environment = {
                **os.environ,
                "JAX_COMPILATION_CACHE_DIR": cache,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            }
            seconds = []
            for _ in range(4):
                began = time.perf_counter()
                subprocess.run([sys.executable, "-c", program], check=True, env=environment)
                seconds.append(time.perf_counter() - began)
        found[name] = {"cold": seconds[0], "with_cache": sorted(seconds[1:])}
    return found


# --- comparison with another commit ------------------------------------------------------

# Runs with the benchmarks of its own commit, so it uses only what every commit has.
ANSWERS = """
import json, resource, sys, time
import numpy as np
import dpmic_jax
from benchmarks import engine
from dpmic_jax.mic.grids import ladder
try:
    from dpmic_jax.mic.xlogx import exact_gains, fast_gains
except ModuleNotFoundError:  # version 0.1.0
    from dpmic_jax import exact_gains, fast_gains

name = sys.argv[1]
if name in engine.CASES:
    case = engine.CASES[name]
    X, statistic = case.load(), engine.statistic_of(case)
    bounds = engine.bounds_of(X) if case.statistic == "MICr" else None
    pairs = engine.all_pairs(X.shape[1])
elif name == "ladder":
    X = np.random.default_rng(0).random((4381, 64), np.float32)
    statistic = dpmic_jax.MICr(B=150, c=5, sizes=ladder(1.25))
    bounds, pairs = [(0.0, 1.0)] * 64, engine.all_pairs(64)
else:
    X = np.random.default_rng(0).random((int(name), 20), np.float32)
    statistic, bounds = dpmic_jax.MICr(B=150, c=5), [(0.0, 1.0)] * 20
    pairs = engine.all_pairs(20, 190 if len(X) <= 10**5 else 64)
run = engine.make_run(X, statistic, bounds)
gains = {"float": fast_gains(len(X)), "integer": exact_gains(len(X))}
for line in sys.stdin:
    began = time.process_time()
    wall = run.seconds(pairs, gains[line.strip()])
    cpu = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([len(pairs), wall, cpu, peak]), flush=True)
"""


def run_beside(name: str, both: Trees, rounds: int) -> dict[str, Any]:
    """Pairs per second of both commits on one case, with float and with integer gains."""
    with ExitStack() as stack:
        cache = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        asked = [stack.enter_context(Asked(ANSWERS, name, tree=t, cache=cache)) for t in both]
        found: dict[str, Any] = {}
        for path in ("float", "integer"):
            in_turn(
                [partial(ask, path) for ask in asked], 2
            )  # the first round compiles, the second warms up
            turns = np.array(in_turn([partial(ask, path) for ask in asked], rounds))
            (other, now), pairs = turns.swapaxes(1, 2), int(turns[0, 0, 0])
            found[path] = {
                "other": spread(other[1].tolist(), pairs),
                "now": spread(now[1].tolist(), pairs),
                # Ratios of successive turns, which saw the same load.
                "ratio": float(np.median(other[1] / now[1])),
                "ratio_rounds": (other[1] / now[1]).tolist(),
                "ratio_by_processor_time": float(np.median(other[2] / now[2])),
                "peak_mb": [other[3].max(), now[3].max()],
            }
    return found


def report_beside(name: str, found: dict[str, Any]) -> None:
    for path, row in found.items():
        print(
            f"{name:<25}{path:<9}{row['other']['median']:>9.0f}{row['now']['median']:>9.0f}"
            f"{row['ratio']:>7.2f} ({min(row['ratio_rounds']):.2f}-{max(row['ratio_rounds']):.2f})"
            f"{row['ratio_by_processor_time']:>7.2f}"
            f"{row['peak_mb'][0]:>8.0f}{row['peak_mb'][1]:>6.0f}",
            flush=True,
        )


def main_beside(commit: str, names: Sequence[str], rounds: int) -> dict[str, Any]:
    os.environ["DPMIC_DATA"] = str(DATA)  # the same for both, wherever they are unpacked
    print(
        f"{'case':<25}{'gains':<9}{'other/s':>9}{'now/s':>9}{'ratio':>7} {'(rounds)':<11}"
        f"{'CPU':>7}{'MB':>8}{'now':>6}"
    )
    found: dict[str, Any] = {"cases": {}}
    with trees(commit) as both:
        for name in names:
            found["cases"][name] = run_beside(name, both, rounds)
            report_beside(name, found["cases"][name])
    return found


# --- all cases ---------------------------------------------------------------------------


def child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.engine", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(found: dict[str, Any]) -> None:
    roof = 2 * found["roofline"]["giga_evaluations_a_second_a_core"]
    print(f"\nroofline: {roof / 2:.2f} G x log2 x a second a core")
    print(
        f"{'case':<25}{'pairs/s':>9}{'(integer)':>10}{'peer':>8}{'ratio':>7}{'vs 2 proc':>10}"
        f"{'of roof':>9}{'compile s':>10}{'MB':>6}"
    )
    for name, row in found["cases"].items():
        print(
            f"{name:<25}{row['pairs_a_second']['median']:>9.0f}"
            f"{row['pairs_a_second_integer']['median']:>10.0f}"
            f"{row['peer_1_thread']['median']:>8.1f}{row['ratio_to_1_thread']:>7.0f}"
            f"{row['ratio_to_2_processes']:>10.0f}"
            f"{row['giga_evaluations_a_second'] / roof:>9.0%}"
            f"{row['compile_seconds']:>10.1f}{row['peak_mb']:>6.0f}"
        )
    print(f"\n{'n':>9}{'ms a pair':>11}{'(integer)':>10}{'scatter ms':>11}{'passes':>8}{'MB':>7}")
    for row in found["records"]:
        print(
            f"{row['n']:>9}{row['ms_a_pair']:>11.2f}{row['ms_a_pair_integer']:>10.2f}"
            f"{row['ms_scatter_pass']:>11.2f}{row['scatter_passes_a_pair']:>8.1f}"
            f"{row['peak_mb']:>7.0f}"
        )
    row = found["ladder"]
    print(
        f"B=150, c=5, {row['pairs']} pairs: {row['all_sizes']['median']:.0f} pairs/s, "
        f"ladder(1.25) {row['ladder_1.25']['median']:.0f}, {row['ratio']:.1f} times as many"
    )
    for name, row in found["cold_start"].items():
        print(f"{name}: cold {row['cold']:.1f} s, with cache {row['with_cache'][1]:.1f} s")


def about(command: str) -> dict[str, Any]:
    import dpmic_jax

    return {
        "command": command,
        "version": dpmic_jax.__version__,
        "jax": version("jax"),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "real_data": (DATA / "baseball.csv").exists(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 10^6")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", help="run one case and print its JSON")
    parser.add_argument("--against", metavar="COMMIT", help="measure beside it, as 7bcc7ee")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds = 2 if options.quick else options.rounds
    records = (10**4, 10**5) if options.quick else (10**4, 10**5, 10**6)
    flags = " --quick" * options.quick
    if options.against:
        names = [options.case] if options.case else [*CASES, *map(str, records), "ladder"]
        flags = flags or f" --rounds {rounds}"
        command = f"python -m benchmarks.engine{flags} --against {options.against}"
        found = about(command) | main_beside(options.against, names, rounds)
        out = options.out or RESULTS.with_name("engine_beside.json")
        if options.out or not options.case:
            out.write_text(json.dumps(found, indent=1) + "\n")
    elif options.case == "roofline":
        print(json.dumps(run_roofline(rounds)))
    elif options.case == "ladder":
        print(json.dumps(run_ladder(rounds)))
    elif options.case in CASES:
        print(json.dumps(run_case(options.case, rounds)))
    elif options.case:
        print(json.dumps(run_records(int(options.case), rounds)))
    else:
        extra = ["--rounds", str(rounds)]
        found = about(f"python -m benchmarks.engine{flags}") | {"cases": {}, "records": []}
        roofs = []
        for name in CASES:
            print(name, "...", file=sys.stderr)
            # Measured for every case, and the best kept: load must not lower the roofline.
            roofs.append(child("--case", "roofline", *extra))
            found["cases"][name] = child("--case", name, *extra)
        found["roofline"] = max(roofs, key=lambda roof: max(roof.values()))
        for n in records:
            print(n, "records ...", file=sys.stderr)
            found["records"].append(child("--case", str(n), *extra))
        found["ladder"] = child("--case", "ladder", *extra)
        found["cold_start"] = cold_starts()
        report(found)
        (options.out or RESULTS).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
