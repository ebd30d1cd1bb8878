"""A Gaussian integer as a sum of small ones: X = x_0 + 4 x_1 + 16 x_2 + ... + 4^c x_c.

The digits of a Gaussian are not independent, but a sum of Gaussians is Gaussian, on the
integers too, up to a smoothing error: with independent x ~ N(tau^2), y ~ N(v) on the integers,

    P(x + 4 y = z) ~ exp(-z^2 / 2(tau^2 + 16 v)) * sum over integers k of exp(-(k - c_z)^2 / 2s^2),

s^2 = tau^2 v / (tau^2 + 16 v), and by Poisson summation the sum differs from a constant by a
factor within 1 +- 2 (a + a^4 + a^9 + ...), a = e^(-2 pi^2 s^2): 2e-18 for tau = 6 and v >= 36.

So every x_i comes from a table of a few dozen thresholds that are all compared. An inverse
distribution function would have 10^6 of them at sigma = 2^16, and has either to compare with
all or to look some up at secret places, which caches show.
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32

from dpmic_jax.dp.arithmetic.intervals import SCALE, Enclosure, bells, exponential
from dpmic_jax.dp.noise import digit_sampler
from dpmic_jax.dp.noise.digit_sampler import Block, Term

LARGEST = 2**26  # standard deviation; the sum then stays below 2^30
_LIMBS = 2
_TAU2 = Fraction(36)
_LOW_SIZE = 65  # values 0 .. 64 of a low part, more than ten standard deviations
_TWO_PI_SQUARED = Fraction("19.7392")  # from below


class Parts(NamedTuple):
    """The low parts x_0 .. x_(c-1), all of variance 36, and x_c; magnitudes only."""

    low: Block
    high: Block

    @property
    def words(self) -> int:
        """Random words that one draw takes: the last holds a sign for every part."""
        return self.low.words + self.high.words + 1

    @property
    def reach(self) -> int:
        """The largest magnitude of the sum."""
        return sum(term.most for term in self.terms())

    def terms(self) -> list[Term]:
        """For the exact law of the sum."""
        blocks = digit_sampler.terms(self.low) + digit_sampler.terms(self.high)
        return [term._replace(signed=True) for term in blocks]


class _Ideal(NamedTuple):
    """Enclosures of the weights of magnitudes 0, 1, ..., and a bound on all that follow."""

    weights: list[Enclosure]
    beyond: int

    def block(self, shifts: list[int]) -> Block:
        weights = digit_sampler.rounded(self.weights, _LIMBS)
        return digit_sampler.block([weights] * len(shifts), shifts, _LIMBS)


@lru_cache(maxsize=64)
def _ideal(variance: Fraction, size: int) -> _Ideal:
    """1, then 2 e^(-j^2 / 2 variance) for j = 1, 2, ..., size - 1."""
    ratio = exponential(1 / (2 * variance))
    bell = [q if j == 0 else q.twice() for j, q in enumerate(bells(ratio, size + 1))]
    # From j = size on, each weight is at most this many times the one before.
    falling = exponential((2 * size + 1) / (2 * variance)).high
    return _Ideal(bell[:size], -(-bell[size].high * 2**SCALE // (2**SCALE - falling)))


def _top_variance(variance: Fraction, low_parts: int) -> Fraction:
    """What x_c has to have so that the variances add up."""
    return variance / 16**low_parts - _TAU2 * (1 - Fraction(1, 16**low_parts)) / 15


@lru_cache(maxsize=256)
def parts(variance: Fraction) -> Parts:
    """Tables for a variance."""
    count = _low_parts(variance)
    low = _ideal(_TAU2, _LOW_SIZE).block([2 * i for i in range(count)])
    return Parts(low, _top_ideal(variance).block([2 * count]))


def distance(tables: Parts, variance: Fraction) -> Fraction:
    """A bound on the total variation between the sum's law and the ideal one.

    What the tables round and cut off adds up over the parts, and so does the smoothing error.
    """
    apart = _apart(tables.high, 0, _top_ideal(variance))
    for i in range(len(tables.low.shifts)):
        above = _top_variance(variance, i + 1)
        smooth = _TAU2 * above / (_TAU2 + 16 * above)
        ripple = Fraction(exponential(_TWO_PI_SQUARED * smooth).high, 2**SCALE)
        error = 2 * ripple / (1 - ripple)
        apart += _apart(tables.low, i, _ideal(_TAU2, _LOW_SIZE)) + error / (1 - error)
    return apart


def _low_parts(variance: Fraction) -> int:
    """As many as leave the highest part a variance of 36."""
    count = 0
    while _top_variance(variance, count + 1) >= _TAU2:
        count += 1
    return count


def _top_ideal(variance: Fraction) -> _Ideal:
    top = _top_variance(variance, _low_parts(variance))
    # Nine standard deviations, rounded up to whole chunks of thresholds.
    chunks = -(-(isqrt(int(81 * top)) + 1) // digit_sampler.CHUNK)
    return _ideal(top, chunks * digit_sampler.CHUNK + 1)


def _apart(table: Block, digit: int, ideal: _Ideal) -> Fraction:
    return digit_sampler.variation(table.weights(digit), ideal.weights, ideal.beyond)


def total(words: UInt32[Array, "words *shape"], tables: Parts) -> Int32[Array, "*shape"]:
    """x_0 + 4 x_1 + ..., each with its own fair sign."""
    low, high = tables
    ones = tuple(1 for _ in words.shape[1:])
    sizes = jnp.concatenate(
        [
            digit_sampler.draw(words[: low.words], low),
            digit_sampler.draw(words[low.words : low.words + high.words], high),
        ]
    )
    shifts = jnp.concatenate([jnp.asarray(low.shifts), jnp.asarray(high.shifts)])
    steps = (sizes << shifts.reshape(-1, *ones)).astype(jnp.int32)
    place = np.arange(len(shifts), dtype=np.uint32).reshape(-1, *ones)
    negative = (words[tables.words - 1 : tables.words] >> place) & np.uint32(1)
    return jnp.where(negative == 1, -steps, steps).sum(axis=0, dtype=jnp.int32)
