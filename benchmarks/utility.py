"""How often a screen of the demo table gives the right answer, and what `preview` predicts.

`python -m benchmarks.utility` writes `benchmarks/results/utility.json` and the table of
docs/planning.md. For each epsilon, delta and question, and 100 seeded keys, it counts the screens
in which all dependent pairs are above all independent ones (`AllPairs`), in which exactly the 8
dependent pairs are chosen (`TopK`), and in which all pairs with a MICr above 0.5 are among those
called dependent or chosen. Beside the counts are the prediction of `preview`, computed before any
noise is drawn, and the interval that contains 99 % of such counts.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np

from benchmarks.pages import fill
from benchmarks.planning import PAGE
from dpmic_jax import MICr, pairwise
from dpmic_jax.data.demo import demo
from dpmic_jax.data.table import Table
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.mic.grids import ladder
from dpmic_jax.screening import AllPairs, Ask, TopK, preview, screen
from dpmic_jax.screening.power import expected_count
from dpmic_jax.screening.tiles import TileScorer

RESULTS = Path(__file__).parent / "results" / "utility.json"
EPSILONS, DELTAS, ASKS = (0.2, 0.5, 1.0), (0.0, 1e-6), (AllPairs(), TopK(8))
STRONG = 0.5


class ScoredOnce(TileScorer):
    """A scorer that computes the scores of pairs once, as they do not depend on the key."""

    known: ClassVar[dict[Any, list[np.ndarray]]] = {}

    def __init__(self, *arguments: Any):
        self._arguments, self._plan = arguments, arguments[1]

    def _points(self, pairs: np.ndarray, lattice: Any) -> Iterator[np.ndarray]:
        asked = (self._plan.statistic, lattice, pairs.tobytes())
        if asked not in self.known:
            self.known[asked] = list(TileScorer(*self._arguments)._points(pairs, lattice))
        yield from self.known[asked]


def truth(B: float, c: float) -> dict[frozenset[str], float]:
    """MICr of every pair without noise, by the non-private `pairwise`."""
    data = demo()
    table = Table(tuple(data.columns), tuple(data.columns.values()))
    statistic = MICr(B=B, c=c, sizes=ladder(1.25))
    found = pairwise(table, statistic=statistic, bounds=data.bounds).ranked()
    return {frozenset((x, y)): value for x, y, value in found}


def measure(ask: Ask, epsilon: float, delta: float, keys: int) -> dict[str, Any]:
    """The number of right answers of `screen`, and the prediction of `preview`."""
    data, settings = demo(), {"ask": ask, "epsilon": epsilon, "delta": delta}
    before = preview(columns=tuple(data.columns), n=len(data.columns["age"]), **settings)
    values = truth(before.plan.statistic.B, before.plan.statistic.c)
    dependent = [values[pair] for pair in values if pair in data.dependent]
    others = [values[pair] for pair in values if pair not in data.dependent]
    chance = before.chance(dependent, others)
    strong = {pair for pair, value in values.items() if value > STRONG}
    right, strong_found = 0, 0
    for seed in range(keys):
        with mock.patch("dpmic_jax.screening.execution.TileScorer", ScoredOnce):
            found = screen(data.columns, bounds=data.bounds, key=seeded_key(seed), **settings)
        names = [frozenset((x, y)) for x, y, *_ in found.ranked()]
        if isinstance(ask, TopK):
            right += set(names) == set(data.dependent)
            called = set(names)
        else:
            mic = dict(zip(names, found.mic, strict=True))
            weakest = min(mic[pair] for pair in data.dependent)
            right += weakest > max(mic[pair] for pair in set(names) - data.dependent)
            called = {pair for pair, above in zip(names, found.dependent, strict=True) if above}
        strong_found += strong <= called
    return {
        "ask": str(ask),
        "epsilon": epsilon,
        "delta": delta,
        "keys": keys,
        "noise_sd": before.plan.values.sd,
        "right": int(right),
        "expected": chance * keys,
        "interval": expected_count(chance, keys),
        "strong_found": int(strong_found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100)
    arguments = parser.parse_args()
    rows = [
        measure(ask, epsilon, delta, arguments.keys)
        for ask in ASKS
        for epsilon in EPSILONS
        for delta in DELTAS
    ]
    lines = [
        "| ask | epsilon | delta | noise sd | right | expected, 99 % | all above 0.5 found |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        low, high = row["interval"]
        lines.append(
            f"| {row['ask']} | {row['epsilon']:g} | {row['delta']:g} | {row['noise_sd']:.3f} | "
            f"{row['right']} | {row['expected']:.1f}, {low} to {high} | {row['strong_found']} |"
        )
    print("\n".join(lines))
    content = {"command": "python -m benchmarks.utility", "rows": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    fill(PAGE, "utility", "\n".join(lines))


if __name__ == "__main__":
    main()
