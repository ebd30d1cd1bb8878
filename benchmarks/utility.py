"""How often a screen of the demo table gives the right answer, and what `preview` predicts.

`python -m benchmarks.utility` writes `benchmarks/results/utility.json` and the table of
docs/planning.md. For each epsilon, delta and query, and 100 seeded keys, it counts the screens in
which all 8 dependent pairs are above all independent ones (`AllPairs`), or in which exactly the
dependent pairs are chosen (`TopK`); and those in which a dependent pair is released with a star,
for the pair for which this happens least often. Beside the counts is what `preview` predicts,
computed before any noise is drawn, with the interval that contains 99 % of such counts.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np

from benchmarks.pages import fill, table
from benchmarks.planning import PAGE, digits
from dpmic_jax.data.demo import demo
from dpmic_jax.data.source import open_source
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.screening import AllPairs, Ask, Preview, TopK, preview, screen
from dpmic_jax.screening.calibration import mic_of
from dpmic_jax.screening.power import expected_count
from dpmic_jax.screening.queries import Positions
from dpmic_jax.screening.tiles import DEFAULT, Points, TileScorer

RESULTS = Path(__file__).parent / "results" / "utility.json"
EPSILONS, DELTAS, ASKS = (0.02, 0.03, 0.05), (0.0, 1e-6), (AllPairs(), TopK(8))


class ScoredOnce(TileScorer):
    """A scorer that computes the scores of pairs once, as they do not depend on the key."""

    known: ClassVar[dict[Any, list[Points]]] = {}

    def __init__(self, *arguments: Any):
        self._arguments, self._plan = arguments, arguments[1]

    def _points(self, pairs: Positions, lattices: Sequence[Lattice]) -> Iterator[Points]:
        asked = (self._plan.statistic, tuple(lattices), pairs.tobytes())
        if asked not in self.known:
            self.known[asked] = list(TileScorer(*self._arguments)._points(pairs, lattices))
        yield from self.known[asked]


def truth(before: Preview) -> dict[frozenset[str], float]:
    """The distance of every pair without noise. It is not private: the demo table is synthetic."""
    plan, data = before.plan, demo()
    scorer = TileScorer(open_source(data.columns, data.bounds), plan, DEFAULT)
    lattice = plan.distances.lattice
    points = np.concatenate(list(scorer._points(plan.pairs, [lattice])))[:, 0]
    pairs = [frozenset(plan.names[i] for i in pair) for pair in plan.pairs.tolist()]
    return dict(zip(pairs, (points / lattice.top).tolist(), strict=True))


def measure(ask: Ask, epsilon: float, delta: float, keys: int) -> dict[str, Any]:
    """The number of right answers of `screen`, and the prediction of `preview`."""
    data, settings = demo(), {"ask": ask, "epsilon": epsilon, "delta": delta}
    before = preview(columns=tuple(data.columns), n=len(data.columns["age"]), **settings)
    distances = truth(before)
    dependent = [distances[pair] for pair in data.dependent]
    others = [distances[pair] for pair in distances if pair not in data.dependent]
    chance = before.chance(dependent, others)
    right, starred = 0, Counter(dict.fromkeys(data.dependent, 0))
    for seed in range(keys):
        with mock.patch("dpmic_jax.screening.execution.TileScorer", ScoredOnce):
            found = screen(data.columns, bounds=data.bounds, key=seeded_key(seed), **settings)
        names = [frozenset(found.names[i] for i in pair) for pair in found.pairs.tolist()]
        released = dict(zip(names, found.distance.tolist(), strict=True))
        if isinstance(ask, TopK):
            right += set(names) == set(data.dependent)
        else:
            weakest = min(released[pair] for pair in data.dependent)
            right += weakest > max(released[pair] for pair in set(names) - data.dependent)
        above = [name for name, star in zip(names, found.dependent, strict=True) if star]
        starred.update(data.dependent.intersection(above))
    return {
        "ask": str(ask),
        "epsilon": epsilon,
        "delta": delta,
        "keys": keys,
        "noise_sd": before.plan.distances.sd,
        "smallest": before.smallest,
        "weakest": mic_of(min(dependent)),
        "right": right,
        "expected": chance * keys,
        "interval": expected_count(chance, keys),
        "starred": min(starred.values()),
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
    head = ("ask", "epsilon", "delta", "noise sd", "found from MIC", "right", "expected, 99 %")
    lines = [
        (
            row["ask"],
            f"{row['epsilon']:g}",
            f"{row['delta']:g}",
            f"{row['noise_sd']:.3f}",
            digits(row["smallest"]),
            str(row["right"]),
            f"{row['expected']:.1f}, {row['interval'][0]} to {row['interval'][1]}",
            str(row["starred"]),
        )
        for row in rows
    ]
    shown = table((*head, "starred, worst pair"), lines)
    print(shown)
    content = {"command": "python -m benchmarks.utility", "rows": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    fill(PAGE, "utility", shown)


if __name__ == "__main__":
    main()
