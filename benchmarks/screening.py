"""Time and memory of a screen, and the share of each stage.

`python -m benchmarks.screening` prints a table and writes `benchmarks/results/screening.json`. Each
case runs in a separate process, so that peak memory is that of the case. It writes a Parquet file
of synthetic columns, then screens it with B = 150, c = 5 and a ladder of sizes. Seconds are those
of `screen` from the call to the result: validating the file, compiling, reading, scoring and noise.
They are measured twice in the process; the second time nothing is compiled. After that each stage
is timed alone, on the path of row batches, so not for the case of 1000 records, which counts grid
by grid. That case scores the pairs of 150 of its 1000 columns, and says so.

`--against COMMIT` compares every case with that commit's package instead (7bcc7ee is version
0.1.0), in turn, each round in a new process. It prints the ratios, below 1 where the working tree
needs less, and writes `benchmarks/results/screening_beside.json`. `--case NAME --against COMMIT`
prints one case only.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.beside import Trees, fresh_cost, in_turn, trees

RESULTS = Path(__file__).parent / "results" / "screening.json"
GENERATED = 2**18  # records at a time


class Case(NamedTuple):
    """A table, and the number of its columns that are screened."""

    records: int
    columns: int
    part: int  # the number of columns to screen, from the first on
    settings: dict[str, float]


CASES = {
    "10^6 x 30": Case(10**6, 30, 30, {"B": 150, "c": 5}),
    "10^7 x 10": Case(10**7, 10, 10, {"B": 150, "c": 5}),
    "10^3 x 1000": Case(10**3, 1000, 150, {"B": 80, "c": 5}),
}


def write_table(path: Path, records: int, columns: int) -> None:
    """Write columns in threes: a random walk's step, a noisy wave of it, and a noisy square."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, names = np.random.default_rng(0), [f"c{i}" for i in range(columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, records, GENERATED):
            n = min(GENERATED, records - start)
            x = rng.random((-(-columns // 3), n))
            noise = 0.2 * rng.normal(size=(2, *x.shape))
            made = np.stack([x, np.sin(9 * x) + noise[0], x**2 + noise[1]], axis=1)
            made = made.reshape(-1, n)[:columns]
            writer.write_table(pa.table(dict(zip(names, made, strict=True)), schema=schema))


BOUNDS = ((0.0, 1.0), (-2.0, 2.0), (-1.0, 2.0))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def run(name: str) -> dict[str, Any]:
    """Measure one case, in this process."""
    from dpmic_jax import MICr, secret_key
    from dpmic_jax.mic.grids import ladder
    from dpmic_jax.screening import TopK, screen

    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write = [sys.executable, "-m", "benchmarks.screening", "--write", str(path), name]
        subprocess.run(write, check=True)
        bounds: dict[str, Any] = {f"c{i}": BOUNDS[i % 3] for i in range(case.part)}
        statistic = MICr(**case.settings, sizes=ladder(1.25))
        columns = case.part
        before = peak_mb()

        def whole() -> None:
            screen(
                path,
                bounds=bounds,
                epsilon=1.0,
                ask=TopK(10),
                key=secret_key(),
                statistic=statistic,
                force=True,  # only time is measured, also where noise hides everything
            )

        first, again = timed(whole), timed(whole)
        peak = peak_mb()
        pairs = columns * (columns - 1) // 2
        all_pairs = case.columns * (case.columns - 1) // 2
        return {
            "case": name,
            "records": case.records,
            "columns": columns,
            "pairs": pairs,
            "seconds_first": first,
            "seconds": again,
            "peak_mb": peak,
            "import_mb": before,
            "all_pairs": all_pairs,
            "seconds_all_pairs": again * all_pairs / pairs,
            "stages": stages(path, bounds, statistic) if case.records > 10**4 else {},
        }


def stages(path: Path, bounds: dict[str, Any], statistic: Any) -> dict[str, float]:
    """Seconds of each stage alone, on a subset of the pairs where there are many."""
    import jax

    from dpmic_jax.data.source import open_source
    from dpmic_jax.mic import streaming
    from dpmic_jax.mic.xlogx import exact_gains
    from dpmic_jax.screening.queries import AllPairs

    source, rows = open_source(path, bounds), 2**18
    n = source.validate()
    pairs = AllPairs().pairs(source.names)[:64]
    share = len(AllPairs().pairs(source.names)) / len(pairs)
    reading = timed(lambda: [None for _ in source.batches(rows)])
    cuts = [statistic.cut(columns, source.bounds) for columns in source.batches(rows)]
    both = timed(lambda: [None for c in source.batches(rows) if statistic.cut(c, source.bounds)])
    seconds: list[float] = []
    original = streaming._Pass.score

    def scored(self: streaming._Pass, tile: int) -> Any:
        jax.block_until_ready(self._totals[tile])
        started = time.perf_counter()
        found = original(self, tile)
        seconds.append(time.perf_counter() - started)
        return found

    def score() -> Iterator[np.ndarray]:
        gains = exact_gains(n)
        yield from streaming.score_batches(lambda: cuts, pairs, gains, rows=rows, group=len(pairs))

    list(score())  # compiles
    whole = timed(lambda: list(score()))
    streaming._Pass.score = scored
    try:
        list(score())
    finally:
        streaming._Pass.score = original
    # Tiles are scored side by side on the cores.
    optimising = sum(seconds) / min(len(seconds), 2)
    return {
        "reading": reading,
        "binning": both - reading,
        "counting": share * max(whole - optimising, 0.0),
        "optimising": share * optimising,
    }


# Runs with the benchmarks of its own commit. The first two measurements are the two screens, in
# processor seconds, which other work on the machine disturbs less.
CASE = """
import json, sys, time
from benchmarks import screening

cpu, by_the_clock = [], screening.timed

def timed(action):
    began = time.process_time()
    found = by_the_clock(action)
    cpu.append(time.process_time() - began)
    return found

screening.timed = timed
print(json.dumps({**screening.run(sys.argv[1]), "cpu": cpu[:2]}))
"""
COMPARED = {
    "with compiling": lambda row: row["seconds_first"],
    "with compiling, CPU": lambda row: row["cpu"][0],
    "without": lambda row: row["seconds"],
    "without, CPU": lambda row: row["cpu"][1],
    "binning": lambda row: row["stages"].get("binning"),
    "peak MB": lambda row: row["peak_mb"],
}


def beside(name: str, both: Trees, rounds: int) -> dict[str, Any]:
    """Every measurement of both commits, and the median ratio of successive turns."""
    costs = in_turn([partial(fresh_cost, ("-c", CASE, name), tree) for tree in both], rounds)
    rows = [[json.loads(cost.output) for cost in side] for side in costs]
    found = {}
    for what, read in COMPARED.items():
        other, now = ([read(row) for row in side] for side in rows)
        if None in other + now:
            continue  # the case has no stages
        ratios = [b / a for a, b in zip(other, now, strict=True)]
        found[what] = {"other": other, "now": now, "ratio": median(ratios), "ratios": ratios}
    return found


def main_beside(commit: str, names: Iterable[str], rounds: int) -> dict[str, Any]:
    print("| case | | other | now | ratio (rounds) |\n|---|---|---|---|---|", flush=True)
    found = {}
    with trees(commit) as both:
        for name in names:
            found[name] = beside(name, both, rounds)
            for what, row in found[name].items():
                print(
                    f"| {name} | {what} | {median(row['other']):.1f} | {median(row['now']):.1f} | "
                    f"{row['ratio']:.2f} ({min(row['ratios']):.2f}-{max(row['ratios']):.2f}) |",
                    flush=True,
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--write", nargs=2)
    parser.add_argument("--against", metavar="COMMIT", help="measure beside it, as 7bcc7ee")
    parser.add_argument("--rounds", type=int, default=3, help="with --against")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.against:
        names = [arguments.case] if arguments.case else CASES
        found = main_beside(arguments.against, names, arguments.rounds)
        command = (
            f"python -m benchmarks.screening --against {arguments.against} "
            f"--rounds {arguments.rounds}"
        )
        out = arguments.out or RESULTS.with_name("screening_beside.json")
        if arguments.out or not arguments.case:
            out.write_text(json.dumps({"command": command, "cases": found}, indent=1) + "\n")
        return
    if arguments.write:
        path, name = arguments.write
        write_table(Path(path), CASES[name].records, CASES[name].part)
        return
    if arguments.case:
        print(json.dumps(run(arguments.case)))
        return
    rows = []
    print("| case | pairs | first | again | peak MB | reading | binning | counting | optimising |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in CASES:
        command = [sys.executable, "-m", "benchmarks.screening", "--case", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        rows.append(row)
        total = sum(row["stages"].values())
        shares = [f"{100 * part / total:.0f} %" for part in row["stages"].values()]
        parts = " | ".join(shares or 4 * ["-"])
        print(
            f"| {name} | {row['pairs']} | {row['seconds_first']:.1f} s | {row['seconds']:.1f} s | "
            f"{row['peak_mb']:.0f} | {parts} |"
        )
        if row["all_pairs"] > row["pairs"]:
            minutes = row["seconds_all_pairs"] / 60
            print(f"extrapolated to all {row['all_pairs']} pairs: {minutes:.1f} minutes")
    content = {"command": "python -m benchmarks.screening", "rows": rows}
    (arguments.out or RESULTS).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
