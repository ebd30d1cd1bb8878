"""Cube noise on distances from independence, in integers: what the private tests compare.

n times the distance of a pair is D / 2G for an integer D (`mic.distance`), which one record moves
by at most 2G. So nothing is rounded: the points are m D, for a power of two m that makes the
lattice fine beside the noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.noise.cube import BLOCK, CubeNoise, RandomBits, uniform
from dpmic_jax.mic.distance import steps_of

FINE = 2**10  # steps of the lattice in a scale of the noise, at least
_MOST_EPSILON = 2.0**49  # with it the sensitivity is below 2^60 steps, as cube noise needs

Values = Float[np.ndarray, "*shape"]


@dataclass(frozen=True, kw_only=True)
class DistanceNoise:
    """One cube of noise on what is compared of `pairs` pairs: epsilon-DP for all together.

    Attributes:
      epsilon: of all pairs together.
      n: number of records.
      pairs: number of pairs.
      moved: how many times 1/n one person's records move what is compared of a pair, at most.
    """

    epsilon: float
    n: int
    pairs: int
    moved: int

    def __post_init__(self):
        if self.epsilon > _MOST_EPSILON:
            raise ValueError(f"expected epsilon <= {_MOST_EPSILON:.3g}, got {self.epsilon:.3g}")

    @property
    def sensitivity(self) -> Fraction:
        """The most that one person's records move what is compared, in units of the distance."""
        return Fraction(self.moved, self.n)

    @property
    def multiplier(self) -> int:
        """m, the points of the lattice in one unit of D."""
        found, least = 1, FINE * as_fraction(self.epsilon)
        while self.moved * 2 * steps_of(self.n) * found < least:
            found *= 2
        return found

    @property
    def top(self) -> int:
        """The point of a distance of 1."""
        return 2 * steps_of(self.n) * self.n * self.multiplier

    @property
    def cube(self) -> CubeNoise:
        """The distribution of the noise, in points."""
        steps = self.moved * 2 * steps_of(self.n) * self.multiplier
        return CubeNoise(epsilon=as_fraction(self.epsilon), sensitivity=steps, values=self.pairs)

    def draw(self, bits: RandomBits) -> list[int]:
        """Noise on all pairs, from the next random bits. The radius is drawn anew."""
        radius = self.cube.radius_from(bits)
        blocks = iter(lambda: bits.take(BLOCK), None)
        return [uniform(radius, blocks) for _ in range(self.pairs)]

    def draws(self, bits: RandomBits) -> Iterator[int]:
        """Noise on all pairs, again and again: independent vectors, one number at a time."""
        while True:
            yield from self.draw(bits)

    def tail(self, x: Values) -> Values:
        """P(noise > x) of one pair, for x >= 0 in units of the distance; nearly exact."""
        return np.asarray(self.cube.tail(np.asarray(x) * self.top))

    def quantile(self, above: float) -> float:
        """The distance that the noise of one pair exceeds with a probability of at most 1/2."""
        return self.cube.quantile(above) / self.top

    def settings(self) -> dict[str, str]:
        """What decides the noise, beside epsilon and n, for an event."""
        return {
            "distance": f"2 x {steps_of(self.n)} steps a record, times {self.multiplier}",
            "noise": f"cube of {self.pairs} values, sensitivity {self.cube.sensitivity}",
        }
