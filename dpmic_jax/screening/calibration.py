"""From a released distance from independence to MIC*: an estimate and an interval.

Distributions of the same distance differ in MIC*. `calibration.json` has what MIC* is at each
distance d, as quantiles over distributions of many kinds (`paper.dependences`); the command
`dpmic paper distances` makes it.

The distance of n records is above d where d is small. Over these distributions it has a mean of

    m(d) = (d^3 + m(0)^3)^(1/3),   m(0) = 2.25 / (sqrt(n) + 1.4),

m(0) being that of independent columns, and a standard deviation of at most about 0.45 / sqrt(n).
The noise of the release is added. So d has a posterior, and MIC* the mixture of its laws at every
d:

- The estimate is the median if half of all pairs are independent, and others have any d alike.
- The interval holds 95 % if the pair is dependent. It is widened by a margin on both sides of the
  square root of MIC*, so that it holds 95 % on average for kinds of distributions that are not in
  the table. It goes down to 0 unless 97.5 % of independent pairs would be released lower. An
  estimate outside of it is moved to its nearer end.

It is post-processing and costs no privacy. Where it fails: columns that leave most of their bounds
empty, and functions that turn within a sixteenth of the bounds, may have a MIC* above the interval.
"""

import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss

LARGEST = math.sqrt(2) - 1  # the largest distance
STEPS = 42  # of the table, from 0 to the largest distance
_FINE = 4 * STEPS
_SAMPLING = ndtri((np.arange(9) + 0.5) / 9)  # stands for a standard normal variable
_RESOLUTION = 1000  # of released values, and of MIC*
_WIDTH = 0.004  # half the width over which released values are taken to be alike, at least


class Calibration(NamedTuple):
    """What MIC* is at distances from 0 to the largest, in equal steps.

    Attributes:
      typical: its median, which increases from 0 to 1.
      quantiles: at the middles of equal parts.
      margin: by which an interval of the square root of MIC* is widened on both sides.
    """

    typical: Float[np.ndarray, " distances"]
    quantiles: Float[np.ndarray, "distances quantiles"]
    margin: float


class Estimates(NamedTuple):
    """Estimates of MIC*, with the ends of their 95 % intervals."""

    mic: Float[np.ndarray, "*shape"]
    lower: Float[np.ndarray, "*shape"]
    upper: Float[np.ndarray, "*shape"]


def mic_of(distance: float) -> float:
    """The typical MIC* of a distribution at this distance from independence."""
    return float(np.interp(distance, _distances(STEPS), shipped().typical))


def distance_of(mic: float) -> float:
    """The distance from independence of a distribution with this MIC*, typically.

    Args:
      mic: between 0 and 1.
    """
    if not 0 < mic < 1:
        raise ValueError(f"expected 0 < mic < 1, got {mic}")
    return float(np.interp(mic, shipped().typical, _distances(STEPS)))


def estimates(
    released: Float[np.ndarray, "*shape"], noise: LatticeCube | LatticeGauss, n: int
) -> Estimates:
    """Estimate MIC* from noisy distances.

    Args:
      released: distances with noise, clipped to [0, 1].
      noise: the noise in them, in their units.
      n: number of records.
    """
    return estimates_by(shipped(), released, noise, n)


def estimates_by(
    calibration: Calibration,
    released: Float[np.ndarray, "*shape"],
    noise: LatticeCube | LatticeGauss,
    n: int,
) -> Estimates:
    """`estimates` by another table."""
    grid = np.arange(_RESOLUTION + 1) / _RESOLUTION
    found = _on_grid(calibration, grid, noise, n)
    return Estimates(*(np.interp(released, grid, each) for each in found))


def typical_value(distance: Float[np.ndarray, "*shape"], n: int) -> Float[np.ndarray, "*shape"]:
    """m(d), the mean distance of n records of distributions at a distance d."""
    independent = 2.25 / (math.sqrt(n) + 1.4)
    return np.cbrt(distance**3 + independent**3)


def _on_grid(
    calibration: Calibration,
    grid: Float[np.ndarray, " values"],
    noise: LatticeCube | LatticeGauss,
    n: int,
) -> Estimates:
    deviation = 0.45 / math.sqrt(n)
    gaps = np.linspace(-2, 2, 4 * _RESOLUTION + 1)
    # The law of noise and sampling together, once for all distances.
    below = np.mean([noise.cdf(gaps - each) for each in deviation * _SAMPLING], axis=0)
    means = typical_value(_distances(_FINE), n)
    # A value that noise and sampling do not reach says as much as the furthest that they do.
    reach = np.interp([1e-6, 1 - 1e-6], below, gaps)
    reached = np.clip(grid, means[0] + reach[0], means[-1] + reach[1])
    gap, half = reached[:, None] - means, max(_WIDTH, deviation / 4)
    low, high = (np.interp(gap + each, gaps, below) for each in (-half, half))
    # 0 stands for all values below it, and 1 for all above. Far out all of them are 0 in floats:
    # the nearest distance then decides.
    low[0], high[-1] = 0, 1
    likelihood = high - low + 1e-12 / (1 + np.abs(gap) / half) ** 2
    mic = np.arange(_RESOLUTION + 1) / _RESOLUTION
    law = _law_of_mic(calibration, mic)
    dependent = likelihood @ law / likelihood.sum(axis=1, keepdims=True)
    independent, others = likelihood[:, :1], likelihood.mean(axis=1, keepdims=True)
    either = (independent + others * dependent) / (independent + others)
    median, least, most = (
        np.sqrt(mic[(found >= level).argmax(axis=1)])
        for found, level in ((either, 0.5), (dependent, 0.025), (dependent, 0.975))
    )
    upper = np.minimum(most + calibration.margin, 1)
    # A median of equal weights may be 0 where independence is refuted, if the noise is small.
    refuted = np.interp(grid - means[0], gaps, below) > 0.975
    lower = np.where(refuted, np.maximum(least - calibration.margin, 0), 0)
    return Estimates(*(each**2 for each in (np.clip(median, lower, upper), lower, upper)))


def _law_of_mic(
    calibration: Calibration, mic: Float[np.ndarray, " mic"]
) -> Float[np.ndarray, "distances mic"]:
    """P(MIC* <= mic) at each of the fine distances; 1 where columns are independent."""
    distances, known = _distances(_FINE), _distances(STEPS)
    quantiles = [np.interp(distances, known, each) for each in calibration.quantiles.T]
    return np.mean([each[:, None] <= mic for each in quantiles], axis=0)


def _distances(steps: int) -> Float[np.ndarray, " distances"]:
    return np.linspace(0, LARGEST, steps + 1)


@lru_cache(maxsize=1)
def shipped() -> Calibration:
    """The calibration that comes with the package."""
    table = _table()
    return Calibration(np.array(table["typical"]), np.array(table["quantiles"]), table["margin"])


def _table() -> dict[str, Any]:
    file = resources.files("dpmic_jax.screening").joinpath("calibration.json")
    return json.loads(file.read_text())
