"""MIC* at each distance from independence: the table behind the estimates of a private screen.

Distributions of one kind, whose columns fill their bounds in one way, are a curve from independence
to the strongest of them. Between two of its points the distance and the square root of MIC* are
taken to be linear, as MIC* grows like the square of the distance where it is small. At each
distance the table has quantiles of MIC* over all curves near it, in which all kinds count alike.

The interval is tested on kinds that the table was made without. The level in the table is the
smallest at which 95 % are held on average over kinds, for every n and noise that is tried.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int32
from scipy.optimize import isotonic_regression

from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss
from dpmic_jax.mic.distance import split_distance, steps, steps_of
from dpmic_jax.paper.dependences import Curve, curves
from dpmic_jax.screening.calibration import LARGEST, STEPS, Calibration, estimates_by

RECORDS = (1000, 10_000, 100_000)
DEVIATIONS = (0.0, 0.01, 0.05)  # of Gaussian noise
LEVELS = (0.95, 0.96, 0.97, 0.98, 0.99)
SETS = 3  # data sets of each distribution
SEED = 20_221_117
_WANTED = 0.95
_POPULATION = 2**20  # records that stand for a distribution
_QUANTILES = 40
_BETWEEN = 10  # points from one distribution of a curve to the next
_NEAR = 0.02  # distances that are taken to be alike
_FEW = 5  # density of distributions at a distance, of all kinds together, that is too small

Counts = Int32[np.ndarray, "tables columns rows"]
_splits = jax.jit(split_distance)


class Known(NamedTuple):
    """A curve with the distances of its distributions."""

    curve: Curve
    distances: Float[np.ndarray, " distributions"]


def calibrated(command: str) -> dict[str, Any]:
    """The contents of the JSON file.

    Args:
      command: the command line that is recorded in the file.
    """
    every = known(curves())
    for level in LEVELS:
        rows = coverage(every, level)
        if min(row["coverage"] for row in rows) >= _WANTED:
            break
    else:
        raise RuntimeError(f"no level up to {LEVELS[-1]} holds {_WANTED:.0%}")
    found = calibration(every, level)
    return {
        "command": command,
        "seed": SEED,
        "level": level,
        "typical": found.typical.round(5).tolist(),
        "quantiles": found.quantiles.round(4).tolist(),
        "coverage": rows,
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


def calibration(every: Sequence[Known], level: float) -> Calibration:
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
    return Calibration(typical, np.stack(rising, axis=1), level)


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


def coverage(every: Sequence[Known], level: float) -> list[dict[str, Any]]:
    """How often intervals hold MIC* of kinds that the table was made without.

    Args:
      every: all curves.
      level: of the posterior interval.

    Returns:
      for each n and noise the mean over kinds, the median width, the mean error of the estimate,
      and the kinds that are held in less than 90 % of cases.
    """
    kinds = list(dict.fromkeys(each.curve.kind for each in every))
    without = {
        kind: calibration([each for each in every if each.curve.kind != kind], level)
        for kind in kinds
    }
    rows = []
    for n in RECORDS:
        rng = np.random.default_rng([SEED, n])
        of = [each.curve for each in every]
        values = _sampled(of, n, rng)
        for deviation in DEVIATIONS:
            noisy = [np.clip(v + deviation * rng.normal(size=v.shape), 0, 1) for v in values]
            noise = _gauss(deviation)
            held = {kind: _held(of, noisy, without[kind], kind, noise, n) for kind in kinds}
            mean = np.mean(list(held.values()), axis=0)
            low = {kind: round(each[0], 2) for kind, each in held.items() if each[0] < 0.9}
            summary = dict(zip(("coverage", "width", "error"), mean.round(3).tolist(), strict=True))
            rows.append({"n": n, "noise": deviation, **summary, "low": low})
    return rows


def _gauss(deviation: float) -> LatticeGauss:
    """Noise of this deviation; of one step of a fine lattice for 0."""
    return LatticeGauss(sigma=max(deviation * 2**24, 1.0), lattice=Lattice(bits=24, sensitivity=1))


def _sampled(
    of: Sequence[Curve], n: int, rng: np.random.Generator
) -> list[Float[np.ndarray, "distributions sets"]]:
    cells = np.maximum(_cells(of), 0)
    cells /= cells.sum(axis=1, keepdims=True)
    return _by_curve(of, np.stack([distances(rng.multinomial(n, cells)) for _ in range(SETS)], 1))


def _held(of, noisy, table, kind, noise, n) -> tuple[float, float, float]:
    """Coverage, width and error over the distributions of a kind, weighted by shares."""
    total = np.zeros(3)
    for curve, values in zip(of, noisy, strict=True):
        if curve.kind == kind:
            star, found = curve.stars[:, None], estimates_by(table, values, noise, n)
            holds = (found.lower <= star) & (star <= found.upper)
            errors = np.abs(found.mic - star)
            total += curve.share * np.array(
                [each.mean() for each in (holds, found.upper - found.lower, errors)]
            )
    return tuple(total.tolist())
