"""Screen every table, and print what was found; see the package's docstring."""

import json
import time
from pathlib import Path
from typing import Any

import dpmic_jax as dm
from benchmarks.real_tables import CASES, HERE, Case, before, kinds, now
from dpmic_jax.data.schema import read_schema
from dpmic_jax.data.source import open_source

RESULTS = Path(__file__).parents[1] / "results" / "real_tables.json"
KEYS = 5
EPSILON = 1.0


def measured(name: str, case: Case) -> dict[str, Any]:
    """What a table is, what it took, and what its screens found."""
    bounds = HERE / f"{name}.toml"
    # Patterns of the file meet the names of the table here.
    schema = open_source(case.file, read_schema(bounds)).schema
    found, stars, seconds = dict.fromkeys(case.known, 0), [], []
    for seed in range(KEYS):
        start = time.perf_counter()
        result = dm.screen(
            case.file,
            bounds=bounds,
            epsilon=EPSILON,
            ask=dm.AllPairs(),
            key=dm.seeded_key(seed),
        )
        seconds.append(time.perf_counter() - start)
        names = [result.names[column] for column in range(len(result.names))]
        starred = {
            frozenset((names[x], names[y]))
            for (x, y), star in zip(result.pairs.tolist(), result.dependent, strict=True)
            if star
        }
        stars.append(len(starred))
        for pair in case.known:
            found[pair] += frozenset(pair) in starred
    hand, old = now(name), before(schema)
    return {
        "records": result.statement.n,
        "kinds": kinds(schema),
        "pairs": len(result.pairs),
        "threshold": result.dependence_threshold,
        "lines": hand.lines,
        "lines in 0.1.0": old.lines,
        "steps in 0.1.0": old.steps,
        "minutes replaced": round(old.minutes - hand.minutes, 1),
        "known": {f"{x} - {y}": times for (x, y), times in found.items()},
        "stars": stars,
        "seconds": [round(each, 2) for each in seconds],
    }


def row(name: str, case: dict[str, Any]) -> str:
    """A line of the table."""
    every = sum(times == KEYS for times in case["known"].values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in case["kinds"].items())
    return (
        f"| {name} | {case['records']} | {kinds} | {case['lines']} ({case['lines in 0.1.0']} and "
        f"{case['steps in 0.1.0']} steps) | {case['minutes replaced']} | {every} of "
        f"{len(case['known'])} | {min(case['stars'])} to {max(case['stars'])} of {case['pairs']} |"
    )


def main() -> None:
    print("| table | records | columns | lines (in 0.1.0) | minutes replaced | known | stars |")
    print("|---|---|---|---|---|---|---|")
    results = {}
    for name, case in CASES.items():
        results[name] = measured(name, case)
        print(row(name, results[name]), flush=True)
    for name, case in results.items():
        for pair, times in case["known"].items():
            if times < KEYS:
                print(f"{name}: {pair} in {times} of {KEYS} screens")
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
