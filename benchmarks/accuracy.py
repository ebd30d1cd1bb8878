"""How far private MICr is from MICe on the paper's real collections, at the default settings.

`python -m benchmarks.accuracy` prints a table and writes `benchmarks/results/accuracy.json`. For
every pair the mean unsigned error of 100 releases against MICe (alpha = 0.6, c = 15), as in section
5.2 of the MIC paper; the median over pairs is reported, with the sensitivity of this package and
with the published one. The data come from `DPMIC_DATA`, or `shared/data` beside the project.
"""

import argparse
import csv
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

from dpmic_jax import MICe, pairwise
from dpmic_jax.dp.keys import event_key
from dpmic_jax.mechanisms.additive import MICrLap, lattice_points
from dpmic_jax.mechanisms.debias import debias
from dpmic_jax.mechanisms.published import PublishedMICrLap
from dpmic_jax.mechanisms.release import Release, add_noise

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
DATA = Path(os.environ.get("DPMIC_DATA", Path(__file__).parents[2] / "shared" / "data"))
NOT_PERFORMANCE = ("PLAYER", "Record_ID#", "SALARY", "ROOKIE", "POS")


class Collection(NamedTuple):
    """Columns whose pairs are scored, with the bounds of section 5.2."""

    columns: np.ndarray
    bounds: list[tuple[float, float]]


def _widened(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) / 100 or 1.0  # one column of the baseball table is constant
    return low - margin, high + margin


def baseball() -> Collection:
    """The 129 performance columns; each its own range and one per cent."""
    with (DATA / "baseball.csv").open() as file:
        names, *rows = csv.reader(file)
    kept = [i for i, name in enumerate(names) if name not in NOT_PERFORMANCE]
    columns = np.array([[float(row[i]) for i in kept] for row in rows])
    return Collection(columns, [_widened(c.min(), c.max()) for c in columns.T])


def spellman4381() -> Collection:
    """The 23 time points; the range of all of them and one per cent."""
    columns = np.genfromtxt(DATA / "Spellman.csv", delimiter=",", skip_header=1)[:, 1:]
    return Collection(columns, [_widened(columns.min(), columns.max())] * columns.shape[1])


COLLECTIONS = {"Baseball": baseball, "Spellman4381": spellman4381}


def releases(mechanism: MICrLap, collection: Collection, pairs: np.ndarray, draws: int) -> Release:
    """As `mechanism.release_batch` with labels 0, 1, ..., but scoring the pairs once."""
    n, key = len(collection.columns), jax.random.key(0)
    law, columns = mechanism.law(n), list(np.ascontiguousarray(collection.columns.T))
    cut = mechanism.settings(n).cut(columns, collection.bounds)
    points = lattice_points(law.lattice, cut, pairs)
    noisy = [
        add_noise(law, points, pairs, event_key(key, mechanism.event(n, label=str(draw))))
        for draw in range(draws)
    ]
    value = law.lattice.values(np.stack(noisy))
    return Release(value, mechanism.event(n), False, law.scale, law.lattice)


def measure(name: str, epsilon: float, draws: int) -> dict[str, Any]:
    collection = COLLECTIONS[name]()
    pairs = np.array([(i, j) for i in range(collection.columns.shape[1]) for j in range(i)])
    truth = pairwise(collection.columns, statistic=MICe()).matrix[tuple(pairs.T)]
    row: dict[str, Any] = {"collection": name, "epsilon": epsilon, "pairs": len(pairs)}
    for kind in (MICrLap, PublishedMICrLap):
        mechanism = kind(epsilon=epsilon)
        found = releases(mechanism, collection, pairs, draws)
        gap = found.value - truth
        row[kind.__name__] = {
            "B": mechanism.settings(len(collection.columns)).B,
            "scale": found.scale,
            "median_bias": float(np.median(gap.mean(axis=0))),
            "median_variance": float(np.median(found.value.var(axis=0))),
            "median_unsigned_error": float(np.median(np.abs(gap).mean(axis=0))),
            "median_unsigned_error_debiased": float(
                np.median(np.abs(debias(found) - truth).mean(axis=0))
            ),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--prior", action="store_true", help="fit the prior of `debias` and stop")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.prior:
        stars = np.ravel(json.loads((RESULTS.parent / "ladder.json").read_text())["mic_star"])
        a, b, _, _ = stats.beta.fit(stars, floc=0, fscale=1)
        print(f"Beta({a:.3f}, {b:.3f}), by maximum likelihood to {len(stars)} values of MIC*")
        return
    if not (DATA / "baseball.csv").exists():
        raise SystemExit("no baseball.csv and Spellman.csv found: set DPMIC_DATA to their folder")
    rows = [measure(name, epsilon, options.draws) for name in COLLECTIONS for epsilon in (1.0, 0.1)]
    print(f"{'collection':<14}{'eps':>5}{'':>20}{'B':>5}{'bias':>9}{'variance':>10}", end="")
    print(f"{'unsigned':>10}{'debiased':>10}")
    for row in rows:
        for kind in ("MICrLap", "PublishedMICrLap"):
            found = row[kind]
            print(
                f"{row['collection']:<14}{row['epsilon']:>5}{kind:>20}{found['B']:>5}"
                f"{found['median_bias']:>9.3f}{found['median_variance']:>10.5f}"
                f"{found['median_unsigned_error']:>10.4f}"
                f"{found['median_unsigned_error_debiased']:>10.4f}"
            )
    options.out.parent.mkdir(exist_ok=True)
    command = f"python -m benchmarks.accuracy --draws {options.draws}"
    options.out.write_text(json.dumps({"command": command, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
