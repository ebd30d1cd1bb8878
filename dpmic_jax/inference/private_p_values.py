"""P-values that may be published: of noisy distances, against a null distribution that is public.

The distances of all pairs are released with one cube of noise, as by a screen: one person's r
records move each by at most r/n. Everything else is computed from what was released, at no cost.

**Theorem.** Let the records of different persons be independent, the x of a person's records
independent of their y, and x of one distribution in all records, and y too. Let F(x) >= P(T >= x)
be the proven tail of the distance (`screening.independence.distance_tail`), a <= 2^-10 the rate of
the noise Z on its lattice, and C = G V / a in steps of the lattice, with G ~ Gamma(d + 1) and V
uniform on [-1, 1]. Then

    p(x) = (1 + 6/5 a) E F(x - C - 3/2)   has   P(p(T + Z) <= u) <= u for all u.

Proof. p falls, so P(T + Z >= x) = E P(T >= x - Z | Z) <= E F(x - Z) <= p(x) suffices, and for the
last step P(Z >= z) <= (1 + 6/5 a) P(C >= z - 3/2) for integers z, as F(x - z) grows with z. Z >= z
if and only if rho V >= z - 1/2, rho = R + 1/2, of which rho has mass h(rho) / sum h on the
half-integers, h(s) = s^d e^(-as). For z >= 1 the probability g(rho) of that grows with rho. A
value of h is at most its integral over the next unit interval where it grows, and over the last one
where it falls; this takes the interval with the mode twice. So

    sum g h <= int g(s + 1) h(s) ds + g(mode + 1) max h,   sum h >= int h - max h.

max h / int h = a d^d e^(-d) / d! <= a/e. The median of G/a is above the mode d/a, so g(mode + 1)
is at most twice the mean of g(G/a + 1). Hence P(Z >= z) is at most (1 + 2a/e) / (1 - a/e) <= 1 +
6/5 a times P((G/a + 1) V >= z - 1/2), and (G/a + 1) V <= C + 1. For z <= 0 take P(Z >= 1 - z) from
below in the same way (docs/independence_proofs.md). []

The pairs share a radius, so that their p-values depend on each other in ways that are not worked
out: the corrections for several pairs are those that hold for any dependence.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.cube import random_bits
from dpmic_jax.dp.rng.keys import fold
from dpmic_jax.inference.multiple_testing import Control, FamilyWise
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.inference.private_result import Found
from dpmic_jax.mic import batch
from dpmic_jax.mic.statistics import BinnedTable
from dpmic_jax.screening.independence import NUMBERS, PairBins, chance_level, distance_tail
from dpmic_jax.screening.kinds import bins_of_pairs

_OBSERVED = 1  # folded into the event's key

_SMALLEST = 1e-12  # p-value
_STEPS = 2**13  # of the integral over the noise
_POINTS = 2**13  # of the tail of the distance

Line = Float[np.ndarray, "*shape"]


@dataclass(frozen=True, kw_only=True)
class PrivatePValues:
    """Noisy distances and p-values, all of which may be published.

    Attributes:
      control: the error to control over all pairs, `FamilyWise()` or `FalseDiscovery()`.
    """

    control: Control = FamilyWise()

    moved: ClassVar[int] = 1  # a record moves a distance by 1/n
    name: ClassVar[str] = "p-values of distances with cube noise"

    def __post_init__(self):
        # A class has the method too, but would fail only after the charge.
        if isinstance(self.control, type) or not callable(getattr(self.control, "adjusted", None)):
            raise TypeError(
                f"expected control to be FamilyWise() or FalseDiscovery(), got {self.control!r}"
            )

    @property
    def error(self) -> str:
        """The error that is controlled, in words."""
        return self.control.error

    def settings(self, alpha: float, pairs: int) -> dict[str, str]:
        """What is compared, for the event."""
        return {"control": type(self.control).__name__}

    def smallest_found(self, noise: DistanceNoise, alpha: float, sure: float) -> float:
        """The distance whose adjusted p-value is at most alpha with probability `sure`.

        It has to be as small as if it were alone: at alpha / d.
        """
        level = alpha / noise.pairs

        def above(x: float) -> bool:
            return float(p_values(np.asarray([x]), noise)[0]) > level

        bracket = doubled(above, 1e-3, most=1e6)
        if bracket is None:
            return float("inf")
        return bisect(above, *bracket, steps=30).fails + noise.quantile(1 - sure)

    def found(
        self,
        binned: BinnedTable,
        pairs: Int[np.ndarray, "pairs 2"],
        noise: DistanceNoise,
        alpha: float,
        key: Key[Array, ""],
    ) -> Found:
        """Noisy distances with their p-values.

        Args:
          binned: the columns, cut by `MICrAndDistance(micr=None)`.
          pairs: the two columns of each pair.
          noise: for `len(pairs)` pairs.
          alpha: the level of all pairs together.
          key: the event's key.
        """
        scored = batch.score_pairs(binned, pairs, None)
        exact = np.concatenate([some[-1].max(axis=0) for some in scored])
        bits = random_bits(fold(key, jnp.asarray([_OBSERVED], jnp.uint32)))
        drawn = zip(exact.tolist(), noise.draw(bits), strict=True)
        points = [noise.multiplier * distance + more for distance, more in drawn]
        # Clipping is post-processing.
        distances = np.array([min(max(point, 0), noise.top) / noise.top for point in points])
        p = p_values(distances, noise, bins_of_pairs(binned, pairs))
        adjusted = self.control.adjusted(p)
        return Found(
            dependent=tuple((adjusted <= alpha).tolist()),
            distances=tuple(distances.tolist()),
            p_values=tuple(p.tolist()),
            adjusted=tuple(adjusted.tolist()),
        )


def p_values(
    distances: Float[np.ndarray, " pairs"], noise: DistanceNoise, bins: PairBins = NUMBERS
) -> Line:
    """p of the theorem, from above, of distances that were released with noise.

    Args:
      distances: as released, clipped to [0, 1].
      noise: on each of them.
      bins: what pairs may have, as for `distance_tail`.
    """
    below, weights = _noise_steps(noise)
    # The upper end of every step of the noise, so that what is left for the distance is least.
    left = np.asarray(distances)[:, None] - below
    # 1e-6: far above what float arithmetic loses.
    factor = 1 + 6 / 5 * float(noise.cube.rate) + 1e-6
    found = factor * (_tail(noise, left, bins) @ weights) + _SMALLEST
    return np.where(distances <= 0, 1.0, np.minimum(1.0, found))


@lru_cache(maxsize=16)
def _noise_steps(noise: DistanceNoise) -> tuple[Line, Line]:
    """The upper ends of steps of the noise C, and the probability of each; but for 1e-12 of it."""
    reach = noise.quantile(_SMALLEST / 2)
    ends = np.linspace(-reach, reach, _STEPS + 1)
    outside = noise.tail(np.abs(ends))
    cdf = np.where(ends < 0, outside, 1 - outside)
    # In the upper half from tails, which are exact where 1 - tail is not.
    within = np.where(ends[1:] <= 0, np.diff(cdf), -np.diff(outside))
    middle = np.flatnonzero((ends[:-1] < 0) & (ends[1:] > 0))
    within[middle] = np.diff(cdf)[middle]
    weights = np.concatenate([outside[:1], within])
    return ends + 1.5 / noise.top, weights


def _tail(noise: DistanceNoise, x: Line, bins: PairBins) -> Line:
    """A bound on P(T >= x), from a table of it: the tail falls, so the point before x bounds it."""
    # Here a record moves what is released by 1/n, so `moved` is the records of one person.
    points, tail = _tails(noise.n, noise.moved, bins)
    place = np.searchsorted(points, x, side="right") - 1
    return np.where(place < 0, 1.0, tail[np.maximum(place, 0)])


@lru_cache(maxsize=16)
def _tails(n: int, records: int, bins: PairBins) -> tuple[Line, Line]:
    """Distances, and the proven tail at each."""
    points = np.linspace(0, chance_level(n, 1, records, bins, chance=1e-30), _POINTS)
    return points, distance_tail(points, n, records, bins)
