"""Round numbers in [0, 1] to a lattice, and release lattice points with integer noise."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int, Int32, Int64, UInt32
from scipy.special import ndtr, ndtri

from dpmic_jax.dp.arithmetic.intervals import exact, integer, rounded_up
from dpmic_jax.dp.noise import gaussian
from dpmic_jax.dp.noise.bounded import ClippedLaplace, PureCertificate, as_int32, clipped_pmf
from dpmic_jax.dp.noise.cube import MOST_VALUES, CubeNoise, uniforms
from dpmic_jax.dp.noise.distributions import (
    DiscreteGaussian,
    GaussianCertificate,
    JointCertificate,
)
from dpmic_jax.dp.rng.keys import AnyKey

Values = Float[np.ndarray, "*shape"]

_BITS = range(30, 9, -1)  # bits of a lattice, the finest first
# Sensitivity in steps. Rounding it up to an integer costs at most 1/1024 where it is 1024 or more.
_STEPS = range(16, 2048)
# Noise of a scale above 2^28 steps is not sampled; a little lower, for the slack in epsilon.
_LARGEST_SCALE = 2**28 * Fraction(1023, 1024)


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """The points 0, 2^-bits, ..., 1, with the sensitivity of a value in steps of the lattice.

    Both ends are points, so that a MIC of 1 can be released as 1. This costs one more bit in the
    distribution of the floor (`bounded.blind_pmf`), and nothing else: 2^bits + 1 points fit int32.

    Attributes:
      bits: the step is 2^-bits.
      sensitivity: number of steps by which one record can move a value.
    """

    bits: int
    sensitivity: int

    def __post_init__(self):
        integer("bits", self.bits, 1, _BITS[0])
        integer("sensitivity", self.sensitivity, 1, 2**30)

    @classmethod
    def for_sensitivity(cls, delta_up: Fraction, epsilon: float | Fraction) -> "Lattice":
        """A lattice for Laplace noise, with a sensitivity of 1024 to 2047 steps where possible.

        |floor u - floor v| <= ceil |u - v|, so rounding values down adds nothing to the
        sensitivity.

        Args:
          delta_up: an upper bound on the sensitivity of a value.
          epsilon: privacy parameter of the noise, whose scale has to stay below 2^28 steps.
        """
        return cls._finest(exact("delta_up", delta_up), exact("epsilon", epsilon) * _LARGEST_SCALE)

    @classmethod
    def for_gauss(cls, delta_up: Fraction, sigma_over_sensitivity: float | Fraction) -> "Lattice":
        """A lattice for Gaussian noise, whose sigma has to stay below 2^26 steps."""
        ratio = exact("sigma_over_sensitivity", sigma_over_sensitivity)
        return cls._finest(exact("delta_up", delta_up), gaussian.LARGEST / ratio)

    @classmethod
    def for_cube(cls, delta_up: Fraction) -> "Lattice":
        """A lattice for cube noise, whose scale has no limit."""
        return cls._finest(exact("delta_up", delta_up), Fraction(2**60))

    @classmethod
    def _finest(cls, delta_up: Fraction, most: Fraction) -> "Lattice":
        for bits in _BITS:
            steps = -(-(delta_up * 2**bits) // 1)
            # At the coarsest lattice more steps are taken (a sensitivity above 2), and at the
            # finest one fewer (a sensitivity below 16 * 2^-30): there is no other lattice.
            small = steps in _STEPS or (bits == _BITS[-1] and steps >= _STEPS.stop)
            if steps <= most and (small or (bits == _BITS[0] and steps < _STEPS.start)):
                return cls(bits=bits, sensitivity=steps)
        raise ValueError(
            f"no lattice for a sensitivity of {float(delta_up):.3g}: the noise would be thousands "
            "of times the range of values; use a larger epsilon or more records"
        )

    @property
    def top(self) -> int:
        """The point that represents 1."""
        return 2**self.bits

    def floor(self, value: Fraction) -> int:
        """The largest point at or below a value; values outside [0, 1] are clipped."""
        return min(max(int(value * self.top // 1), 0), self.top)

    def values(self, points: Int32[Array, "*shape"]) -> Float64[np.ndarray, "*shape"]:
        """Convert points to numbers in [0, 1], without rounding."""
        return np.asarray(points) * 2.0**-self.bits


@dataclass(frozen=True, kw_only=True)
class LatticeLaplace:
    """Release lattice points with discrete Laplace noise, exactly epsilon-DP (`bounded`).

    Attributes:
      epsilon: privacy parameter of each released point.
      lattice: the points, with their sensitivity.
    """

    epsilon: float | Fraction
    lattice: Lattice

    def __post_init__(self):
        self.certificate()

    @property
    def _clipped(self) -> ClippedLaplace:
        return ClippedLaplace(
            epsilon=self.epsilon, sensitivity=self.lattice.sensitivity, top=self.lattice.top
        )

    @property
    def scale(self) -> float:
        """The scale b of the Laplace noise, in the units of the values."""
        return float(1 / (self._clipped.noise.rate * self.lattice.top))

    @property
    def sd(self) -> float:
        """The standard deviation of the noise before clipping, in the units of the values."""
        return math.sqrt(2) * self.scale

    def cdf(self, x: Values) -> Values:
        """P(noise <= x), for x in the units of the values."""
        tail = np.exp(-np.abs(x / self.scale)) / 2
        return np.where(x < 0, tail, 1 - tail)

    def quantile(self, above: float) -> float:
        """The x >= 0 that noise exceeds with a probability of at most 1/2."""
        return -self.scale * math.log(2 * above)

    def largest_quantile(self, above: float, count: int) -> float:
        """What the largest of `count` independent noises exceeds with probability `above`."""
        return self.quantile(-math.expm1(math.log1p(-above) / count))

    def release(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Add noise to lattice points, and clip them to the lattice."""
        return self._clipped.release(points, key=key)

    def pmf(self, point: int, out: int) -> Fraction:
        """The probability that `point` is released as `out`."""
        return self._clipped.pmf(point, out)

    def certificate(self) -> PureCertificate:
        """The privacy loss for points that differ by at most the lattice's sensitivity."""
        return self._clipped.certificate()


@dataclass(frozen=True, kw_only=True)
class LatticeGauss:
    """Release lattice points with discrete Gaussian noise, which is zCDP and nearly Gaussian DP.

    Attributes:
      sigma: standard deviation of the noise, in lattice steps.
      lattice: the points, with their sensitivity.
    """

    sigma: float | Fraction
    lattice: Lattice

    def __post_init__(self):
        self._noise.certificate()

    @classmethod
    def for_rho(cls, rho: float | Fraction, lattice: Lattice, *, draws: int = 1) -> "LatticeGauss":
        """Noise for `draws` points that are rho-zCDP together: sigma^2 >= draws S^2 / 2 rho."""
        integer("draws", draws, 1, 2**40)
        variance = draws * Fraction(lattice.sensitivity) ** 2 / (2 * exact("rho", rho))
        return cls(sigma=root(variance), lattice=lattice)

    @classmethod
    def for_mu_squared(
        cls, mu_squared: float | Fraction, lattice: Lattice, *, draws: int
    ) -> "LatticeGauss":
        """Noise for `draws` points that are mu-GDP together, up to `joint_certificate`.

        One person moves all of them at once, each by at most S steps: sqrt(draws) S in the
        Euclidean norm. So sigma^2 is draws S^2 / mu^2 plus the variance of rounding, or more. mu^2
        adds up over vectors of points, and can be divided among them.
        """
        integer("draws", draws, 1, 2**40)
        variance = draws * Fraction(lattice.sensitivity) ** 2 / exact("mu_squared", mu_squared)
        return cls(sigma=root(variance + gaussian.ROUNDING_VARIANCE), lattice=lattice)

    @property
    def _noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(sigma=self.sigma)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, in the units of the values."""
        return float(Fraction(self.sigma) / self.lattice.top)

    @property
    def sd(self) -> float:
        """The same as `scale`."""
        return self.scale

    def cdf(self, x: Values) -> Values:
        """P(noise <= x), for x in the units of the values."""
        return ndtr(x / self.scale)

    def quantile(self, above: float) -> float:
        """The x >= 0 that noise exceeds with a probability of at most 1/2."""
        return -self.scale * float(ndtri(above))

    def largest_quantile(self, above: float, count: int) -> float:
        """What the largest of `count` independent noises exceeds with probability `above`."""
        return self.quantile(-math.expm1(math.log1p(-above) / count))

    def release(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Add noise to lattice points, and clip them to the lattice."""
        points = as_int32(points)
        return _clip_sum(points, self._noise.sample(key, points.shape), np.int32(self.lattice.top))

    def pmf(self, point: int, out: int) -> Fraction:
        """The probability that `point` is released as `out`."""
        return clipped_pmf(self._noise, point, out, self.lattice.top)

    def certificate(self) -> GaussianCertificate:
        """rho and total variation of one released point; clipping is post-processing."""
        unit = self._noise.certificate()
        return unit._replace(rho=unit.rho * self.lattice.sensitivity**2)

    def joint_certificate(self, draws: int) -> JointCertificate:
        """mu and total variation of `draws` points that are released together."""
        integer("draws", draws, 1, 2**40)
        variance = self._noise.variance - gaussian.ROUNDING_VARIANCE
        if variance <= 0:
            raise ValueError(f"expected sigma^2 > 3 for Gaussian DP, got sigma={float(self.sigma)}")
        each = gaussian.rounding_error(gaussian.ROUNDING_VARIANCE)
        each += self._noise.certificate().total_variation
        moved = draws * Fraction(self.lattice.sensitivity) ** 2
        return JointCertificate(moved / variance, rounded_up(draws * each))


@dataclass(frozen=True, kw_only=True)
class LatticeCube:
    """Release many lattice points with one cube of noise: epsilon-DP for all together (`cube`).

    Attributes:
      epsilon: privacy parameter of all released points together.
      lattice: the points, with their sensitivity.
      points: how many points are released at most.
    """

    epsilon: float | Fraction
    lattice: Lattice
    points: int

    def __post_init__(self):
        exact("epsilon", self.epsilon)
        integer("points", self.points, 1, MOST_VALUES)

    @cached_property
    def noise(self) -> CubeNoise:
        """The noise, in lattice steps."""
        return CubeNoise(
            epsilon=self.epsilon, sensitivity=self.lattice.sensitivity, values=self.points
        )

    @property
    def scale(self) -> float:
        """S / epsilon in the units of the values: one point would have Laplace noise of it."""
        return float(1 / (self.noise.rate * self.lattice.top))

    @property
    def sd(self) -> float:
        """The standard deviation of the noise before clipping, in the units of the values."""
        return self.noise.sd / self.lattice.top

    def cdf(self, x: Values) -> Values:
        """P(noise <= x), for x in the units of the values."""
        tail = self.noise.tail(np.abs(x) * self.lattice.top)
        return np.where(x < 0, tail, 1 - tail)

    def quantile(self, above: float) -> float:
        """The x >= 0 that noise exceeds with a probability of at most 1/2."""
        return self.noise.quantile(above) / self.lattice.top

    def largest_quantile(self, above: float, count: int) -> float:
        """What the largest of `count` noises exceeds with probability `above`."""
        return self.noise.largest_quantile(above, count) / self.lattice.top

    def drawn(
        self,
        radius: int,
        words: UInt32[np.ndarray, "some words"],
        blocks: Callable[[int], Iterator[int]],
    ) -> Int64[np.ndarray, " some"]:
        """Noise for some of the points, clipped to what can matter on the lattice.

        Args:
          radius: `noise.radius(key)`, the same for all of them; secret.
          words, blocks: for each point the words of the first of random integers of `cube.BLOCK`
            bits, from a key of its own, and these integers (`cube.uniforms`).
        """
        top = self.lattice.top
        return np.clip(uniforms(radius, words, blocks), -top, top).astype(np.int64)

    def release(
        self, points: Int[np.ndarray, " some"], drawn: Int64[np.ndarray, " some"]
    ) -> Int32[np.ndarray, " some"]:
        """Add noise to some of the lattice points, and clip them to the lattice.

        Args:
          points: exact points, each of which is released once.
          drawn: the noise on each of them.
        """
        if len(points) > self.points:
            raise ValueError(
                f"cube noise for {self.points} points must not serve {len(points)}: their loss "
                "would exceed epsilon; make the noise for all of them"
            )
        return np.clip(points.astype(np.int64) + drawn, 0, self.lattice.top).astype(np.int32)


def root(variance: Fraction) -> Fraction:
    """The square root, rounded up to a multiple of 2^-20: more noise, never less."""
    return Fraction(math.isqrt(int(variance * 2**40)) + 1, 2**20)


LatticeNoise = LatticeLaplace | LatticeGauss | LatticeCube


@jax.jit
def _clip_sum(
    points: Int32[Array, "*shape"], noise: Int32[Array, "*shape"], top: Int32[Array, ""]
) -> Int32[Array, "*shape"]:
    # A point is at most 2^30 and noise stays below 2^30 in magnitude, so the sum fits int32.
    return jnp.clip(jnp.clip(points, np.int32(0), top) + noise, np.int32(0), top)
