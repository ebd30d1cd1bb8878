"""How long a screen takes, what memory, and where the time goes.

`python -m benchmarks.screening` prints a table and writes `benchmarks/results/screening.json`. Each
case is a process of its own, so that peak memory is that of the case: it writes a Parquet file of
made-up columns, then screens it with B = 150, c = 5 on the ladder. Seconds are those of `screen`
from the call to the result: the check of the file, compiling, reading, scoring and noise. They are
taken twice in the process, and the second time nothing is compiled any more. After that each stage
is timed alone, for its share: by the path of row batches, so not for the case of 1000 records,
which counts grid by grid. That case scores the pairs of 150 of its 1000 columns, and says so.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results" / "screening.json"
GENERATED = 2**18  # records at a time


class Case(NamedTuple):
    """A table, and how many of its columns are screened."""

    records: int
    columns: int
    part: int  # the first so many columns
    settings: dict[str, float]


CASES = {
    "10^6 x 30": Case(10**6, 30, 30, {"B": 150, "c": 5}),
    "10^7 x 10": Case(10**7, 10, 10, {"B": 150, "c": 5}),
    "10^3 x 1000": Case(10**3, 1000, 150, {"B": 80, "c": 5}),
}


def write_table(path: Path, records: int, columns: int) -> None:
    """Columns in threes: a random walk's step, a noisy wave of it, and a noisy square."""
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
    """One case, in this process."""
    from dpmic_jax import MICr, ladder, secret_key
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
    """Seconds of each stage by itself, on a part of the pairs where there are many."""
    import jax

    from dpmic_jax.mic import streaming
    from dpmic_jax.mic.gains import exact_gains
    from dpmic_jax.screening.asks import AllPairs
    from dpmic_jax.source import open_source

    source, rows = open_source(path, bounds), 2**18
    n = source.validate()
    pairs = AllPairs().pairs(source.names)[:64]
    share = len(AllPairs().pairs(source.names)) / len(pairs)
    reading = timed(lambda: [None for _ in source.batches(rows)])
    cuts = [statistic.cut(columns, source.bounds) for columns in source.batches(rows)]
    both = timed(lambda: [None for c in source.batches(rows) if statistic.cut(c, source.bounds)])
    scoring: dict[str, float] = {}
    original = streaming._scoring

    def scored(*arguments: Any) -> Any:
        program = original(*arguments)

        def call(*given: Any) -> Any:
            jax.block_until_ready(given)
            started = time.perf_counter()
            found = jax.block_until_ready(program(*given))
            scoring["seconds"] = scoring.get("seconds", 0.0) + time.perf_counter() - started
            return found

        return call

    def score() -> Iterator[np.ndarray]:
        gains = exact_gains(n)
        yield from streaming.score_batches(lambda: cuts, pairs, gains, rows=rows, group=len(pairs))

    list(score())  # compiles
    whole = timed(lambda: list(score()))
    streaming._scoring = scored
    try:
        list(score())
    finally:
        streaming._scoring = original
    # Tiles are scored side by side on the cores.
    tiles = -(-len(pairs) // 32)
    optimising = scoring["seconds"] / min(tiles, 2)
    return {
        "reading": reading,
        "binning": both - reading,
        "counting": share * max(whole - optimising, 0.0),
        "optimising": share * optimising,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--write", nargs=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
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
    arguments.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
