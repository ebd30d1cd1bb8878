"""Screen every table, and print what was found; see the package's docstring."""

import json
import time
from pathlib import Path
from typing import Any

import dpmic_jax as dm
from benchmarks.real_tables import CASES, HERE, Case, before, kinds, now
from dpmic_jax.data.schema import Schema, read_schema
from dpmic_jax.data.source import open_source
from dpmic_jax.screening.queries import Ask

RESULTS = Path(__file__).parents[1] / "results" / "real_tables.json"
KEYS = 5
EPSILON = 1.0
HEADINGS = (
    *("table", "columns", "lines (in 0.1.0)", "minutes replaced"),
    *("asked", "records", "known", "stars"),
)


def measured(name: str, case: Case) -> dict[str, Any]:
    """What a table is, what it took, and what its screens found."""
    # Patterns of the file meet the names of the table here.
    schema = open_source(case.file, read_schema(HERE / f"{name}.toml")).schema
    ask = case.ask(len(schema.columns))
    hand, old = now(name), before(schema)
    facts = {
        "kinds": kinds(schema),
        "asked": str(ask),
        "lines": hand.lines,
        "lines in 0.1.0": old.lines,
        "steps in 0.1.0": old.steps,
        "minutes replaced": round(old.minutes - hand.minutes, 1),
    }
    try:
        return {**facts, **screened(case, schema, ask)}
    except ValueError as refusal:
        return {**facts, "refused": str(refusal)}


def screened(case: Case, schema: Schema, ask: Ask) -> dict[str, Any]:
    """What was found with each key."""
    found, stars, seconds = dict.fromkeys(case.known, 0), [], []
    for seed in range(KEYS):
        start = time.perf_counter()
        result = dm.screen(
            case.file, bounds=schema, epsilon=EPSILON, ask=ask, key=dm.seeded_key(seed)
        )
        seconds.append(round(time.perf_counter() - start, 2))
        starred = {
            frozenset((result.names[x], result.names[y]))
            for (x, y), star in zip(result.pairs.tolist(), result.dependent, strict=True)
            if star
        }
        stars.append(len(starred))
        for pair in case.known:
            found[pair] += frozenset(pair) in starred
    return {
        "records": result.statement.n,
        "pairs": result.candidates,
        "released": len(result.pairs),
        "threshold": result.dependence_threshold,
        "known": {f"{x} - {y}": times for (x, y), times in found.items()},
        "stars": stars,
        "seconds": seconds,
    }


def row(name: str, case: dict[str, Any]) -> str:
    """A line of the table."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in case["kinds"].items())
    hand = f"{case['lines']} ({case['lines in 0.1.0']} and {case['steps in 0.1.0']} steps)"
    public = f"| {name} | {kinds} | {hand} | {case['minutes replaced']} | {case['asked']} |"
    if "refused" in case:
        return f"{public} refused | - | - |"
    every = sum(times == KEYS for times in case["known"].values())
    stars = f"{min(case['stars'])} to {max(case['stars'])} of {case['released']}"
    return f"{public} {case['records']} | {every} of {len(case['known'])} | {stars} |"


def main() -> None:
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    results = {}
    for name, case in CASES.items():
        results[name] = measured(name, case)
        print(row(name, results[name]), flush=True)
    for name, case in results.items():
        if "refused" in case:
            print(f"{name}: {case['refused']}")
        for pair, times in case.get("known", {}).items():
            if times < KEYS:
                print(f"{name}: {pair} in {times} of {KEYS} screens")
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
