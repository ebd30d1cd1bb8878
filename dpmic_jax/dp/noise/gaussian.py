"""A discrete Gaussian as a sum of small ones: X = x_0 + 4 x_1 + 16 x_2 + ... + 4^c x_c.

The digits of a discrete Gaussian are not independent. But a sum of discrete Gaussians is again
one, up to a smoothing error: with independent x ~ N(tau^2), y ~ N(v) on the integers,

    P(x + 4 y = z) ~ exp(-z^2 / 2(tau^2 + 16 v)) * sum over integers k of exp(-(k - c_z)^2 / 2s^2),

s^2 = tau^2 v / (tau^2 + 16 v), and by Poisson summation the sum differs from a constant by a
factor within 1 +- 2 (a + a^4 + a^9 + ...), a = e^(-2 pi^2 s^2): 2e-18 for tau = 6 and v >= 36.

So every x_i is sampled from a table of a few dozen thresholds, all of which are compared. The
inverse distribution function at sigma = 2^16 would have 10^6 thresholds: it would have to compare
all of them, or look some up at addresses that depend on a secret, which caches reveal.

The same sum shows that a discrete Gaussian is a rounded continuous one. For an integer f draw
y ~ N(f, sigma^2 - tau^2), and round it to the integer k with probability

    exp(-(k - y)^2 / 2 tau^2) / sum over integers j of exp(-(j - y)^2 / 2 tau^2).

The denominator is a constant times a factor within 1 +- e, e = 2 (a + a^4 + ...) as above with
a = e^(-2 pi^2 tau^2). If it were constant, the integral over y would be that of a product of two
Gaussians, and P(k) would be proportional to Q(k - f), Q the discrete Gaussian of variance sigma^2.
So P/Q lies between two bounds of ratio at most (1 + e) / (1 - e). Its mean under Q is 1, so it is
at most (1 + e) / (1 - e), and the total variation, the mean of its excess over 1, is at most
2 e / (1 - e). The rounding is post-processing. So d discrete Gaussians on integers that move by at
most S each are within d times this total variation of a mechanism that is mu-GDP with
mu^2 = d S^2 / (sigma^2 - tau^2).
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

LARGEST = 2**26  # largest standard deviation, for which the sum stays below 2^30
_LIMBS = 2  # 64 bits a part: only total variation counts here, not ratios of probabilities
_TAU2 = Fraction(36)  # variance of a low part: the smoothing error is then about 2e-18
_LOW_SIZE = 65  # values 0 .. 64 of a low part, more than ten standard deviations
_TWO_PI_SQUARED = Fraction("19.7392")  # a lower bound, which makes the error bound larger
# tau^2 of the rounding: the error is then 8e-26, far below that of the sampler.
ROUNDING_VARIANCE = Fraction(3)


class Parts(NamedTuple):
    """Tables of the magnitudes of the low parts x_0 .. x_(c-1), of variance 36, and of x_c."""

    low: Block
    high: Block

    @property
    def words(self) -> int:
        """Number of random words that one draw takes; the last one holds the signs of all parts."""
        return self.low.words + self.high.words + 1

    @property
    def reach(self) -> int:
        """The largest magnitude of the sum."""
        return sum(term.most for term in self.terms())

    def terms(self) -> tuple[Term, ...]:
        """The parts as terms of a sum, for its exact distribution."""
        blocks = digit_sampler.terms(self.low) + digit_sampler.terms(self.high)
        return tuple(term._replace(signed=True) for term in blocks)


class _Ideal(NamedTuple):
    """Enclosures of the weights of magnitudes 0, 1, ..., and a bound on the sum of all others."""

    weights: list[Enclosure]
    beyond: int

    def block(self, shifts: list[int]) -> Block:
        weights = digit_sampler.rounded(self.weights, _LIMBS)
        return digit_sampler.block([weights] * len(shifts), shifts, _LIMBS)


@lru_cache(maxsize=64)
def _ideal(variance: Fraction, size: int) -> _Ideal:
    """The weight 1 of magnitude 0, and 2 e^(-j^2 / 2 variance) of j = 1, 2, ..., size - 1."""
    ratio = exponential(1 / (2 * variance))
    bell = [q if j == 0 else q.twice() for j, q in enumerate(bells(ratio, size + 1))]
    # From j = size on, each weight is at most this factor times the one before: the sum of all
    # others is bounded by a geometric series.
    falling = exponential((2 * size + 1) / (2 * variance)).high
    return _Ideal(bell[:size], -(-bell[size].high * 2**SCALE // (2**SCALE - falling)))


def _top_variance(variance: Fraction, low_parts: int) -> Fraction:
    """The variance of x_c for which the variances of all parts add up to `variance`."""
    return variance / 16**low_parts - _TAU2 * (1 - Fraction(1, 16**low_parts)) / 15


@lru_cache(maxsize=256)
def parts(variance: Fraction) -> Parts:
    """The sampler's tables for a discrete Gaussian of this variance."""
    count = _low_parts(variance)
    low = _ideal(_TAU2, _LOW_SIZE).block([2 * i for i in range(count)])
    return Parts(low, _top_ideal(variance).block([2 * count]))


def distance(tables: Parts, variance: Fraction) -> Fraction:
    """A bound on the total variation between the sampled distribution and the ideal one.

    Errors of rounding, truncation and smoothing add up over the parts.
    """
    apart = _apart(tables.high, 0, _top_ideal(variance))
    for i in range(len(tables.low.shifts)):
        # v and s^2 of the module's docstring, for x_i and the sum of all higher parts.
        above = _top_variance(variance, i + 1)
        error = _smoothing_error(_TAU2 * above / (_TAU2 + 16 * above))
        apart += _apart(tables.low, i, _ideal(_TAU2, _LOW_SIZE)) + error / (1 - error)
    return apart


def rounding_error(variance: Fraction) -> Fraction:
    """Total variation between a discrete Gaussian and a rounded continuous one, rounded up.

    Args:
      variance: tau^2 of the module's docstring, the part of the variance that rounding adds.
    """
    error = _smoothing_error(variance)
    if error >= 1:
        raise ValueError(f"expected variance >= 1/16, got {float(variance)}")
    return 2 * error / (1 - error)


def _smoothing_error(variance: Fraction) -> Fraction:
    """How far the sum over k of exp(-(k - c)^2 / 2 variance) is from its mean over c, relatively.

    With a = e^(-2 pi^2 variance), a + a^4 + a^9 + ... is at most a / (1 - a).
    """
    ripple = Fraction(exponential(_TWO_PI_SQUARED * variance).high, 2**SCALE)
    return 2 * ripple / (1 - ripple)


def _low_parts(variance: Fraction) -> int:
    """The largest number of low parts that leaves the highest part a variance of at least 36."""
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
    """Map random words to x_0 + 4 x_1 + ..., each part with its own fair sign."""
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
