"""MIC* at each distance from independence: the table behind the estimates of a private screen.

Distributions of one kind, whose columns fill their bounds in one way, are a curve from independence
to the strongest of them. Between two of its points the distance and the square root of MIC* are
taken to be linear, as MIC* grows like the square of the distance where it is small. At each
distance the table has quantiles of MIC* over all curves near it, in which all kinds count alike.

Intervals are tested on kinds that the table was made without. The margin in the table is the
smallest that makes them hold 95 % on average over kinds, for every n and noise that is tried
(a conformal margin, of the square root of MIC*).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.optimize import isotonic_regression

from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss
from dpmic_jax.mic.distance import split_distance, steps, steps_of
from dpmic_jax.paper.dependences import Curve
from dpmic_jax.screening.calibration import LARGEST, STEPS, Calibration, Estimates, estimates_by

RECORDS = (1000, 10_000, 100_000)
DEVIATIONS = (0.0, 0.01, 0.05)  # of Gaussian noise
SETS = 3  # data sets of each distribution
SEED = 20_221_117
_INDEPENDENT = 400  # pairs of independent columns
_WANTED = 0.95
_POPULATION = 2**20  # records that stand for a distribution
_QUANTILES = 40
_BETWEEN = 10  # points from one distribution of a curve to the next
_NEAR = 0.02  # distances that are taken to be alike
_FEW = 5  # density of distributions at a distance, of all kinds together, that is too small

_splits = jax.jit(split_distance)


class Known(NamedTuple):
    """A curve with the distances of its distributions."""

    curve: Curve
    distances: Float[np.ndarray, " distributions"]


class Trial(NamedTuple):
    """Estimates for kinds that the table was made without, at one n and noise.

    Attributes:
      n: records of each data set.
      noise: the standard deviation of the noise.
      kinds: of each data set.
      stars: MIC* of each.
      weights: of each; those of a kind add up to 1.
      found: what was estimated.
      independent: how many intervals of independent pairs hold 0.
    """

    n: int
    noise: float
    kinds: tuple[str, ...]
    stars: Float[np.ndarray, " sets"]
    weights: Float[np.ndarray, " sets"]
    found: Estimates
    independent: float


def calibrated(of: Sequence[Curve], command: str) -> dict[str, Any]:
    """The contents of the JSON file.

    Args:
      of: `dependences.curves()`.
      command: the command line that is recorded in the file.
    """
    every = known(of)
    found = calibration(every, margin=0)
    margin = max(conformal_margin(trial) for trial in trials(every, margin=0))
    return {
        "command": command,
        "seed": SEED,
        "margin": round(margin + 5e-5, 4),
        "typical": found.typical.round(5).tolist(),
        "quantiles": found.quantiles.round(4).tolist(),
        "tried": [summary(trial) for trial in trials(every, margin=margin)],
    }


def known(of: Sequence[Curve]) -> list[Known]:
    """Curves with their distances in the limit of many records."""
    # Sums are rounded rather than cells, so that the rounded cells add up to all records.
    sums = np.cumsum(_cells(of), axis=1)
    counts = np.diff(np.rint(sums / sums[:, -1:] * _POPULATION), axis=1, prepend=0)
    return [Known(*each) for each in zip(of, _by_curve(of, distances(counts)), strict=True)]


def _cells(of: Sequence[Curve]) -> Float[np.ndarray, "distributions cells"]:
    return np.concatenate([curve.masses.reshape(len(curve.masses), -1) for curve in of])


def _by_curve(of: Sequence[Curve], values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, np.cumsum([len(curve.stars) for curve in of])[:-1])


def distances(counts: Float[np.ndarray, "tables cells"]) -> Float[np.ndarray, " tables"]:
    """The distances from independence of tables of as many records each."""
    n, parts = int(counts[0].sum()), round(counts.shape[1] ** 0.5)
    tables = counts.T.reshape(parts, parts, -1).astype(np.int32)
    both = [np.asarray(_splits(each, steps(n))) for each in (tables, tables.swapaxes(0, 1))]
    return np.maximum(*both) / (2 * steps_of(n) * n)


def calibration(every: Sequence[Known], *, margin: float) -> Calibration:
    """Quantiles of MIC* at each distance, and a median that increases from 0 to 1."""
    distance, star, weight = np.concatenate([_points(each) for each in every], axis=1)
    order = np.argsort(star)
    distance, star, weight = distance[order], star[order], weight[order]
    levels = np.append((np.arange(_QUANTILES) + 0.5) / _QUANTILES, 0.5)
    found = []
    at = np.linspace(0, LARGEST, STEPS + 1)
    for here in at[1:-1]:
        near = weight * np.maximum(1 - np.abs(distance - here) / min(_NEAR, here), 0)
        if near.sum() > _FEW * _NEAR:
            below = (np.cumsum(near) - near / 2) / near.sum()
            found.append((here, near.sum(), *np.interp(levels, below, star)))
    places, support, *quantiles = np.array(found).T
    *rising, typical = (
        _increasing(at, places, each, support, strongest=share >= 0.5)
        for share, each in zip(levels, quantiles, strict=True)
    )
    return Calibration(typical, np.stack(rising, axis=1), margin)


def _points(of: Known) -> Float[np.ndarray, "3 points"]:
    """Distance, MIC* and weight of points all along a curve, from independence on."""
    place = np.arange(1, len(of.distances) * _BETWEEN + 1) / _BETWEEN
    ends = np.arange(len(of.distances) + 1)
    root = np.interp(place, ends, np.sqrt(np.append(0, np.maximum(of.curve.stars, 0))))
    distance = np.interp(place, ends, np.append(0, of.distances))
    return np.stack([distance, root**2, np.full(len(place), of.curve.share / len(place))])


def _increasing(
    at: Float[np.ndarray, " distances"],
    places: Float[np.ndarray, " places"],
    values: Float[np.ndarray, " places"],
    weights: Float[np.ndarray, " places"],
    *,
    strongest: bool,
) -> Float[np.ndarray, " distances"]:
    """The nearest increasing values, joined by lines through the middles of what is level.

    They begin at 0 for independence, and end at 1 if `strongest`: nothing is further from
    independence than a coin and its copy.
    """
    found = isotonic_regression(values, weights=weights)
    starts, ends = found.blocks[:-1], found.blocks[1:] - 1
    last = 1.0 if strongest else found.x[-1]
    middles = (places[starts] + places[ends]) / 2
    return np.interp(at, [0, *middles, LARGEST], [0, *found.x[starts], last])


def trials(every: Sequence[Known], *, margin: float) -> Iterator[Trial]:
    """Every n and noise, for each kind by the table that is made without it."""
    kinds = dict.fromkeys(each.curve.kind for each in every)
    without = {
        kind: calibration([each for each in every if each.curve.kind != kind], margin=margin)
        for kind in kinds
    }
    for n, deviation in product(RECORDS, DEVIATIONS):
        yield _trial(every, without, n, deviation)


def _trial(
    every: Sequence[Known], without: dict[str, Calibration], n: int, deviation: float
) -> Trial:
    of, noise = [each.curve for each in every], _gauss(deviation)
    rng = np.random.default_rng([SEED, n])
    cells = np.maximum(_cells(of), 0)
    cells /= cells.sum(axis=1, keepdims=True)
    even = np.full(cells.shape[1], 1 / cells.shape[1])
    exact = np.stack([distances(rng.multinomial(n, cells)) for _ in range(SETS)], axis=1)
    alone = distances(rng.multinomial(n, even, size=_INDEPENDENT))
    values, alone = (
        np.clip(each + deviation * rng.normal(size=each.shape), 0, 1) for each in (exact, alone)
    )
    found, stars, weights, kinds = [], [], [], []
    for curve, own in zip(of, _by_curve(of, values), strict=True):
        found.append(estimates_by(without[curve.kind], own.ravel(), noise, n))
        stars.append(np.repeat(curve.stars, SETS))
        weights.append(np.full(own.size, curve.share / own.size))
        kinds += [curve.kind] * own.size
    held = estimates_by(next(iter(without.values())), alone, noise, n).lower == 0
    return Trial(
        n,
        deviation,
        tuple(kinds),
        np.concatenate(stars),
        np.concatenate(weights),
        Estimates(*(np.concatenate(each) for each in zip(*found, strict=True))),
        float(held.mean()),
    )


def _gauss(deviation: float) -> LatticeGauss:
    """Noise of this deviation; of one step of a fine lattice for 0."""
    return LatticeGauss(sigma=max(deviation * 2**24, 1.0), lattice=Lattice(bits=24, sensitivity=1))


def conformal_margin(trial: Trial) -> float:
    """The smallest margin with which the intervals of a trial hold 95 % of MIC*."""
    star, lower, upper = np.sqrt([trial.stars, trial.found.lower, trial.found.upper])
    beyond = np.maximum(lower - star, star - upper)
    order = np.argsort(beyond)
    share = np.cumsum(trial.weights[order]) / trial.weights.sum()
    return max(float(beyond[order][np.searchsorted(share, _WANTED)]), 0.0)


def summary(trial: Trial) -> dict[str, Any]:
    """The mean coverage over kinds, the median width, the mean error, and kinds that fail."""
    found, weights, kinds = trial.found, trial.weights, np.array(trial.kinds)
    held = (found.lower <= trial.stars) & (trial.stars <= found.upper)
    of_kind = {kind: held[kinds == kind] @ weights[kinds == kind] for kind in trial.kinds}
    mean = weights / weights.sum()
    order = np.argsort(found.upper - found.lower)
    middle = order[np.searchsorted(np.cumsum(mean[order]), 0.5)]
    return {
        "n": trial.n,
        "noise": trial.noise,
        "coverage": round(float(held @ mean), 3),
        "width": round(float((found.upper - found.lower)[middle]), 3),
        "error": round(float(np.abs(found.mic - trial.stars) @ mean), 3),
        "independent": round(trial.independent, 3),
        "below 90 %": {kind: round(float(v), 2) for kind, v in of_kind.items() if v < 0.9},
    }
