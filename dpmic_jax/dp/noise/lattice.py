"""Numbers in [0, 1] as points of a lattice, and their release with integer noise."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32

from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.noise import gaussian
from dpmic_jax.dp.noise.bounded import ClippedLaplace, PureCertificate, as_int32, clipped_pmf
from dpmic_jax.dp.noise.distributions import DiscreteGaussian, GaussianCertificate
from dpmic_jax.dp.rng.keys import AnyKey

_BITS = range(30, 9, -1)  # of a lattice chosen here, the finest first
_STEPS = range(16, 2048)  # of sensitivity; rounding 1024 or more up costs a thousandth at most
# Scales above this many steps are not drawn; a little lower, for the slack in epsilon.
_LARGEST_SCALE = 2**28 * Fraction(1023, 1024)


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """The points 0, 2^-bits, ..., 1, and how many steps one record can move a value.

    Both ends are points, so that a MIC of 1 can be released as 1. For the price of one bit in the
    law of the floor: 2^bits + 1 points fit int32, and nothing else depends on their number.

    Attributes:
      bits: the step is 2^-bits.
      sensitivity: in steps.
    """

    bits: int
    sensitivity: int

    def __post_init__(self):
        integer("bits", self.bits, 1, _BITS[0])
        integer("sensitivity", self.sensitivity, 1, 2**30)

    @classmethod
    def for_sensitivity(cls, delta_up: Fraction, epsilon: float | Fraction) -> "Lattice":
        """For Laplace noise: 1024 to 2047 steps of sensitivity, where that can be.

        |floor u - floor v| <= ceil |u - v|, so nothing is added for rounding values down.

        Args:
          delta_up: an upper bound on what one record can do to a value.
          epsilon: of the noise to come: its scale has to stay below 2^28 steps.
        """
        return cls._finest(exact("delta_up", delta_up), exact("epsilon", epsilon) * _LARGEST_SCALE)

    @classmethod
    def for_gauss(cls, delta_up: Fraction, sigma_over_sensitivity: float | Fraction) -> "Lattice":
        """The same for Gaussian noise: its sigma has to stay below 2^26 steps."""
        ratio = exact("sigma_over_sensitivity", sigma_over_sensitivity)
        return cls._finest(exact("delta_up", delta_up), gaussian.LARGEST / ratio)

    @classmethod
    def _finest(cls, delta_up: Fraction, most: Fraction) -> "Lattice":
        for bits in _BITS:
            steps = -(-(delta_up * 2**bits) // 1)
            # A sensitivity above 2 leaves no choice, nor does one so small that 2^30 is coarse.
            small = steps in _STEPS or (bits == _BITS[-1] and steps >= _STEPS.stop)
            if steps <= most and (small or (bits == _BITS[0] and steps < _STEPS.start)):
                return cls(bits=bits, sensitivity=steps)
        raise ValueError(
            f"no lattice for a sensitivity of {float(delta_up):.3g}: the noise would be thousands "
            "of times the range of values; spend more, or use more records"
        )

    @property
    def top(self) -> int:
        """The point that stands for 1."""
        return 2**self.bits

    def floor(self, value: Fraction) -> int:
        """The point at or below a value; values outside [0, 1] go to the ends."""
        return min(max(int(value * self.top // 1), 0), self.top)

    def floor_units(self, units: Int32[Array, "*shape"], *, bits: int) -> Int32[Array, "*shape"]:
        """The same for integers in units of 2^-bits, bits <= 30."""
        integer("bits", bits, 0, 30)
        units = jnp.clip(as_int32(units), np.int32(0), np.int32(2**bits))
        if bits >= self.bits:
            return units >> np.int32(bits - self.bits)
        return units << np.int32(self.bits - bits)

    def values(self, points: Int32[Array, "*shape"]) -> Float64[np.ndarray, "*shape"]:
        """Points as numbers in [0, 1], exactly."""
        return np.asarray(points) * 2.0**-self.bits


@dataclass(frozen=True, kw_only=True)
class LatticeLaplace:
    """Release lattice points with discrete Laplace noise, exactly epsilon-DP (`bounded`).

    Attributes:
      epsilon: of each released point.
      lattice: points, and their sensitivity.
    """

    epsilon: float | Fraction
    lattice: Lattice

    def __post_init__(self):
        self.certificate()

    @property
    def _law(self) -> ClippedLaplace:
        return ClippedLaplace(
            epsilon=self.epsilon, sensitivity=self.lattice.sensitivity, top=self.lattice.top
        )

    @property
    def scale(self) -> float:
        """Of the noise, as a number in the units of the values."""
        return float(1 / (self._law.noise.rate * self.lattice.top))

    def release(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy lattice points."""
        return self._law.release(points, key=key)

    def pmf(self, point: int, out: int) -> Fraction:
        """The probability that `point` is released as `out`."""
        return self._law.pmf(point, out)

    def certificate(self) -> PureCertificate:
        """For points that one record moves by the lattice's sensitivity."""
        return self._law.certificate()


@dataclass(frozen=True, kw_only=True)
class LatticeGauss:
    """Release lattice points with discrete Gaussian noise, in zCDP.

    Attributes:
      sigma: of the noise, in lattice steps.
      lattice: points, and their sensitivity.
    """

    sigma: float | Fraction
    lattice: Lattice

    def __post_init__(self):
        self._noise.certificate()

    @classmethod
    def for_rho(cls, rho: float | Fraction, lattice: Lattice, *, draws: int = 1) -> "LatticeGauss":
        """For `draws` points released together with rho in all: sigma^2 >= draws S^2 / 2 rho."""
        integer("draws", draws, 1, 2**40)
        variance = draws * Fraction(lattice.sensitivity) ** 2 / (2 * exact("rho", rho))
        # The next multiple of 2^-20 above the root.
        return cls(sigma=Fraction(isqrt(int(variance * 2**40)) + 1, 2**20), lattice=lattice)

    @property
    def _noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(sigma=self.sigma)

    @property
    def scale(self) -> float:
        """Of the noise, as a number in the units of the values."""
        return float(Fraction(self.sigma) / self.lattice.top)

    def release(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy lattice points."""
        points = as_int32(points)
        return _clip_sum(points, self._noise.sample(key, points.shape), np.int32(self.lattice.top))

    def pmf(self, point: int, out: int) -> Fraction:
        """The probability that `point` is released as `out`."""
        return clipped_pmf(self._noise, point, out, self.lattice.top)

    def certificate(self) -> GaussianCertificate:
        """For one released point; clipping costs nothing."""
        unit = self._noise.certificate()
        return unit._replace(rho=unit.rho * self.lattice.sensitivity**2)


@jax.jit
def _clip_sum(
    points: Int32[Array, "*shape"], noise: Int32[Array, "*shape"], top: Int32[Array, ""]
) -> Int32[Array, "*shape"]:
    # A point is at most 2^30 and noise stays below it, so the sum is an int32.
    return jnp.clip(jnp.clip(points, np.int32(0), top) + noise, np.int32(0), top)
