"""Noise on the values of all pairs, and the level that their largest exceeds by chance.

The laws are those on the reals: the package's lattices have a thousand steps a sensitivity, and
probabilities on them are the same to three digits.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from benchmarks.peers.setting import Setting
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.cube import CubeNoise

Numbers = Float[np.ndarray, "*shape"]
_RADII = 512  # quantiles of the radius of a cube


class Noise(ABC):
    """The noise on the values of the pairs of a table."""

    @abstractmethod
    def tail(self, t: Numbers) -> Numbers:
        """P(Z_i > t) for the noise of one pair."""

    @abstractmethod
    def largest_tail(self, t: float, values: Float[np.ndarray, " sets"], pairs: int) -> float:
        """P(max T_i + Z_i > t) over so many pairs, whose T_i are drawn from `values`."""


class _Independent(Noise):
    """Noise that is drawn for each pair on its own."""

    def largest_tail(self, t: float, values: Float[np.ndarray, " sets"], pairs: int) -> float:
        return -math.expm1(pairs * math.log1p(-self.tail(t - values).mean()))


@dataclass(frozen=True)
class Laplace(_Independent):
    """Independent Laplace noise of a scale."""

    scale: float

    def tail(self, t: Numbers) -> Numbers:
        """e^(-t/b) / 2 for t >= 0, and symmetric."""
        half = np.exp(-np.abs(t) / self.scale) / 2
        return np.where(t < 0, 1 - half, half)


@dataclass(frozen=True)
class Gaussian(_Independent):
    """Independent Gaussian noise of a standard deviation."""

    sd: float

    def tail(self, t: Numbers) -> Numbers:
        """1 - Phi(t / sd)."""
        return ndtr(-t / self.sd)


@dataclass(frozen=True)
class Cube(Noise):
    """Cube noise: independent and uniform on [-R, R], with one R for all pairs."""

    unit: float  # the sensitivity
    noise: CubeNoise  # of a sensitivity of 1

    def tail(self, t: Numbers) -> Numbers:
        """The tail of the package's law, and symmetric."""
        beyond = self.noise.tail(np.abs(t) / self.unit)
        return np.where(t < 0, 1 - beyond, beyond)

    def largest_tail(self, t: float, values: Float[np.ndarray, " sets"], pairs: int) -> float:
        """Given R the pairs are independent: 1 - E[P(T + Z <= t | R)^pairs]."""
        radii = self.unit * self.noise.radii(_RADII)[:, None]
        inside = np.clip((1 + (t - values) / radii) / 2, 0, 1).mean(axis=1)
        return float(1 - (inside**pairs).mean())


NoiseRule = Callable[[Setting, float], Noise]  # of a sensitivity


def laplace(setting: Setting, sensitivity: float) -> Noise:
    """Basic composition: epsilon / d for each of d pairs."""
    return Laplace(sensitivity * setting.pairs / setting.epsilon)


def cube(setting: Setting, sensitivity: float) -> Noise:
    """One cube for all pairs, by their sensitivity in the maximum norm."""
    one = CubeNoise(epsilon=setting.epsilon, sensitivity=1, values=setting.pairs)
    return Cube(sensitivity, one)


def gaussian(setting: Setting, sensitivity: float) -> Noise:
    """Gaussian noise by the sensitivity sqrt(d) Delta in L2, at the exact (epsilon, delta)."""
    mu = gaussian_ratio(setting.epsilon, setting.delta)
    return Gaussian(sensitivity * math.sqrt(setting.pairs) / mu)


@lru_cache(maxsize=64)
def gaussian_ratio(epsilon: float, delta: float) -> float:
    """The largest mu = sensitivity / sd of Gaussian noise that is (epsilon, delta)-DP.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018).
    """
    if not 0 < delta < 1:
        raise ValueError(f"expected 0 < delta < 1, got {delta}; use laplace or cube without one")

    def private(mu: float) -> bool:
        near, far = ndtr([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return bool(near - math.exp(epsilon) * far <= delta)

    found = doubled(private, epsilon / 100)
    assert found is not None, "delta approaches 1 as mu grows"
    return bisect(private, *found).holds


def level(noise: Noise, null: Float[np.ndarray, " sets"], pairs: int, false_alarms: float) -> float:
    """The value that the largest of so many independent pairs exceeds with a probability.

    Args:
      noise: on the values of pairs.
      null: values of independent pairs, without noise; none is negative.
      pairs: number of pairs of a table.
      false_alarms: the probability.
    """

    def exceeded(t: float) -> bool:
        return noise.largest_tail(t, null, pairs) > false_alarms

    found = doubled(exceeded, float(null.max()))
    assert found is not None, "there is no largest number to pass"
    return bisect(exceeded, *found, digits=6).fails
