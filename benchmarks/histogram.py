"""The error of estimates of MIC* from one private histogram: `python -m benchmarks.histogram`.

It measures the mean absolute error against MIC* over 63 distributions: the 21 relationships of the
MIC paper at R^2 = 0.1, 0.5 and 0.9. Noise is drawn from numpy's generator, since accuracy is
measured here, not privacy. `--calibrate` fits the table of `dpmic_jax.mechanisms.deconvolution` on
R^2 = 0.1, 0.3, 0.5, 0.7 and 0.9 and prints it; its data sets are not those of the scores.

"by a stranger" is the error of the calibration with the scored function left out of the fit, and
with the grid sides of the table.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

import dpmic_jax
from dpmic_jax.mechanisms import deconvolution
from dpmic_jax.mic import characteristic as read
from dpmic_jax.paper import family as paper
from dpmic_jax.paper.functions import FUNCTIONS

R_SQUARED = (0.1, 0.3, 0.5, 0.7, 0.9)
SCORED = (0.1, 0.5, 0.9)
SETTINGS = tuple((n, epsilon) for n in deconvolution.SIZES for epsilon in deconvolution.EPSILONS)
BETWEEN = ((500, 0.5), (2500, 0.5), (2500, 2.0), (10000, 0.2))  # where the table is interpolated
QUICK = ((1000, 1.0), (5000, 1.0))
# Sides to try at each n. Noise hides finer grids, and coarser ones hide fast oscillations.
SIDES = {
    250: (12, 18, 24),
    1000: (12, 18, 24, 30),
    5000: (12, 18, 24, 36, 48),
    20000: (18, 24, 36, 48, 60),
}
FIRST_SIDE = 16
SCORING_SEED, FITTING_SEED = 0, 1
RESULTS = Path(__file__).parent / "results" / "histogram.json"

Values = Float[np.ndarray, "distributions repeats"]
Entry = dict[str, Any]


class Family(NamedTuple):
    """The paper's distributions at `R_SQUARED`, function by function, with their MIC*."""

    known: paper.Family
    places: list[int]  # indices in the paper's family
    stars: Float[np.ndarray, "distributions 1"]

    @property
    def functions(self) -> Int[np.ndarray, " distributions"]:
        return np.repeat(np.arange(len(FUNCTIONS)), len(R_SQUARED))

    @property
    def scored(self) -> Float[np.ndarray, " distributions"]:
        return np.isin(np.tile(R_SQUARED, len(FUNCTIONS)), SCORED)

    def error(self, values: Values) -> float:
        """Mean absolute error over the 63 distributions that are scored."""
        return float(np.abs(values - self.stars)[self.scored].mean())


def family() -> Family:
    known = paper.family()
    places = [index for index, r2 in enumerate(known.r_squared) if r2 in R_SQUARED]
    return Family(known, places, known.stars[places][:, None])


def data_sets(
    known: Family, n: int, repeats: int, seed: int
) -> Iterator[Float[np.ndarray, "repeats n 2"]]:
    """Data sets of each distribution, one distribution after another."""
    for place in known.places:
        both = paper.data_sets(known.known, range(place, place + 1), n, range(repeats), seed=seed)
        yield np.stack(both, axis=-1)


def count(
    data: Sequence[Float[np.ndarray, "repeats n 2"]], side: int
) -> Int[np.ndarray, "distributions repeats side side"]:
    def table(records: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, "side side"]:
        x, y = np.minimum((records * side).astype(int), side - 1).T
        return np.bincount(x * side + y, minlength=side**2).reshape(side, side)

    return np.array([[table(records) for records in sets] for sets in data])


def add_noise(
    counts: Int[np.ndarray, "*shape"], epsilon: float, generator: np.random.Generator
) -> Int[np.ndarray, "*shape"]:
    """Discrete Laplace noise of ratio e^(-epsilon/2), as a difference of two geometric samples."""
    stop = -np.expm1(-epsilon / 2)
    draws = generator.geometric(stop, (2, *counts.shape))
    return counts + draws[0] - draws[1]


def plug_in(counts: Int[np.ndarray, "distributions repeats side side"], n: int) -> Values:
    """The simplest estimate: project on the simplex, and take the best boundary entry.

    One axis has 2, 3 or 4 parts, cut at quartiles; the other keeps all its cells.
    """
    flat = counts.reshape(-1, counts.shape[-2] * counts.shape[-1])
    masses = deconvolution.to_simplex(flat.astype(float), n).reshape(-1, *counts.shape[-2:]) / n
    best = np.zeros(len(masses))
    for table in (masses, masses.swapaxes(1, 2)):
        edges = deconvolution.quartiles(table.sum(axis=1), 1)
        before = np.pad(np.cumsum(table, axis=2), ((0, 0), (0, 0), (1, 0)))
        for chosen in ([0, 1, 4], [0, 2, 4], [0, 3, 4], [0, 1, 2, 4], [0, 2, 3, 4], range(5)):
            at = np.repeat(edges[:, None, list(chosen)], table.shape[1], axis=1)
            parts = np.maximum(np.diff(np.take_along_axis(before, at, axis=2), axis=2), 0)
            best = np.maximum(best, _information(parts) / np.log2(parts.shape[2]))
    return best.reshape(counts.shape[:2])


def _information(masses: Float[np.ndarray, "pairs columns parts"]) -> Float[np.ndarray, " pairs"]:
    def entropy(mass: Float[np.ndarray, "pairs ..."]) -> Float[np.ndarray, " pairs"]:
        flat = mass.reshape(len(mass), -1)
        return -(flat * np.log2(np.maximum(flat, 1e-300))).sum(axis=1)

    return entropy(masses.sum(axis=1)) + entropy(masses.sum(axis=2)) - entropy(masses)


def features(matrix: read.Characteristic, columns: Sequence[int]) -> Float[np.ndarray, "*sets 4"]:
    """The features of the linear calibration."""
    best = [deconvolution.largest(matrix, size) for size in columns]
    return np.stack([np.ones_like(best[0]), *best], axis=-1)


def fit(known: Family, found: Float[np.ndarray, "distributions repeats 4"]) -> list[float]:
    """Least squares with a slight ridge penalty: the best entries of three sizes are correlated."""
    return _least_squares(found, np.broadcast_to(known.stars, found.shape[:2])).tolist()


def by_a_stranger(known: Family, found: Float[np.ndarray, "distributions repeats 4"]) -> Values:
    """Calibrated values of each function, from a fit on the other twenty."""
    stars = np.broadcast_to(known.stars, found.shape[:2])
    values = np.empty(found.shape[:2])
    for left_out in range(len(FUNCTIONS)):
        here = known.functions == left_out
        values[here] = found[here] @ _least_squares(found[~here], stars[~here])
    return np.clip(values, 0, 1)


def _least_squares(
    found: Float[np.ndarray, "distributions repeats 4"], stars: Values
) -> Float[np.ndarray, "4"]:
    rows, wanted = found.reshape(-1, 4), stars.ravel()
    ridge = 1e-4 * len(rows) * np.diag([0.0, 1, 1, 1])
    # The ridge shrinks towards the finest entry itself, not towards zero.
    prior = np.array([0.0, 0, 0, 1])
    return np.linalg.solve(rows.T @ rows + ridge, rows.T @ wanted + ridge @ prior)


def score(known: Family, settings: Sequence[tuple[int, float]], repeats: int) -> list[Entry]:
    """The errors of every estimator on the same data sets, for every n and epsilon."""
    generator, entries = np.random.default_rng(SCORING_SEED), []
    for n, epsilon in tqdm(settings, desc="scoring", disable=None):
        data = list(data_sets(known, n, repeats, SCORING_SEED))
        design = deconvolution.design(n=n, epsilon=epsilon)
        exact = count(data, design.side)
        noisy_counts = add_noise(exact, epsilon, generator)
        variance = deconvolution.laplace_variance(epsilon)
        found = deconvolution.estimate(noisy_counts, n=n, variance=variance, design=design)
        first = add_noise(count(data, FIRST_SIDE), epsilon, generator)
        entries.append(
            {
                "n": n,
                "epsilon": epsilon,
                "side": design.side,
                "first_attempt": known.error(plug_in(first, n)),
                "plug_in": known.error(plug_in(noisy_counts, n)),
                "plug_in_without_noise": known.error(plug_in(exact, n)),
                "largest_entry": known.error(np.asarray(read.mic(found.matrix))),
                "mic": known.error(found.mic),
                "mic_by_a_stranger": known.error(
                    by_a_stranger(known, features(found.matrix, design.columns))
                ),
                "mic_bias_by_r_squared": [
                    float((found.mic - known.stars)[start :: len(R_SQUARED)].mean())
                    for start in range(len(R_SQUARED))
                ],
            }
        )
    return entries


def calibrate(known: Family, repeats: int) -> dict[tuple[int, float], list[float]]:
    """At every point of the table, the side with the smallest leave-one-out error, and its fit."""
    generator, table = np.random.default_rng(FITTING_SEED), {}
    for n in deconvolution.SIZES:
        data = list(data_sets(known, n, repeats, FITTING_SEED))
        exact = {side: count(data, side) for side in SIDES[n]}
        for epsilon in tqdm(deconvolution.EPSILONS, desc=f"n = {n}"):
            best = np.inf
            for side in SIDES[n]:
                design = deconvolution.Design(side=side, calibration=(0, 0, 0, 1))
                matrix = deconvolution.estimate(
                    add_noise(exact[side], epsilon, generator),
                    n=n,
                    variance=deconvolution.laplace_variance(epsilon),
                    design=design,
                ).matrix
                found = features(matrix, design.columns)
                error = known.error(by_a_stranger(known, found))
                if error < best:
                    best, table[n, epsilon] = error, [side, *fit(known, found)]
    return table


def show(entries: Sequence[Entry]) -> None:
    titles = {
        "first_attempt": f"simplex {FIRST_SIDE}",
        "plug_in": "simplex",
        "plug_in_without_noise": "no noise",
        "largest_entry": "max entry",
        "mic": "mic",
        "mic_by_a_stranger": "by a stranger",
    }
    print(f"{'n, epsilon':<14}{'side':>5}" + "".join(f"{title:>14}" for title in titles.values()))
    for entry in entries:
        cells = "".join(f"{entry[name]:>14.4f}" for name in titles)
        print(f"{entry['n']}, {entry['epsilon']:g}".ljust(14) + f"{entry['side']:>5}" + cells)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.histogram", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="data sets a distribution")
    parser.add_argument("--quick", action="store_true", help="3 repeats, epsilon = 1 only")
    parser.add_argument("--calibrate", action="store_true", help="print the table, score nothing")
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error(f"expected --repeats of at least 1, got {chosen.repeats}")
    known = family()
    if chosen.calibrate:
        for (n, epsilon), (side, *numbers) in calibrate(known, chosen.repeats).items():
            print(f"    ({n}, {epsilon}): ({side}, {', '.join(f'{x:.3f}' for x in numbers)}),")
        return
    settings, repeats = (QUICK, 3) if chosen.quick else (SETTINGS + BETWEEN, chosen.repeats)
    entries = score(known, settings, repeats)
    show(entries)
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.histogram", *sys.argv[1:]]),
        "dpmic_jax": dpmic_jax.__version__,
        "numpy": np.__version__,
        "r_squared": SCORED,
        "functions": list(FUNCTIONS),
        "repeats": repeats,
        "seed": SCORING_SEED,
        "results": entries,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\nwritten to {RESULTS.parent.name}/{RESULTS.name}")


if __name__ == "__main__":
    main()
