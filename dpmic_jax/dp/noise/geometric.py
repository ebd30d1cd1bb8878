"""The digits of a geometric variable: P(G = g) ~ e^(-rate g) is a product over the digits of g.

So the digits are independent and are sampled one by one. A low digit of up to 5 bits needs 64
random bits; the highest one, whose weights go down to e^-60, needs 128. The tables also hold a
bit B that is 1 with probability r / (1 + r), r = e^-rate, which makes discrete Laplace noise of G
(`distributions.DiscreteLaplace`). It keeps the rounding error small at every scale, unlike a test
for zero of probability (1 - r) / (1 + r).
"""

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from dpmic_jax.dp.arithmetic.intervals import Enclosure, exponential, powers
from dpmic_jax.dp.noise import digit_sampler
from dpmic_jax.dp.noise.digit_sampler import Block, Term

LARGEST = 2**31 - 1  # the largest int32, at which draws saturate
RATES = Fraction(1, 2**28), Fraction(32)  # range of the rates that the digits below can represent
# Factor by which rounding may change a ratio of probabilities, for the low digits together and
# for the highest digit. Together they stay within 1 + 2^-40, the slack of `distributions`.
_LOW, _HIGH = 1 + Fraction(1, 2**44), 1 + Fraction(1, 2**41)
_NATS = 60  # where the highest digit ends: e^-60 is 2^41 units of 2^-128
_STEP = Fraction(15, 4)  # least nats per step of the highest digit, for at most 16 values of it
_BITS = 5  # most bits of a low digit: random words cost more than comparisons, so few digits


class Digits(NamedTuple):
    """Tables of the bit B (optional) and the low digits, and of the highest digit."""

    low: Block
    high: Block

    @property
    def words(self) -> int:
        """Number of random words that one draw takes."""
        return self.low.words + self.high.words

    def terms(self) -> tuple[Term, ...]:
        """The digits as terms of a sum, for its exact distribution."""
        return digit_sampler.terms(self.low) + digit_sampler.terms(self.high)

    def without_bit(self) -> "Digits":
        """The tables of G alone, without B."""
        low = Block(self.low.thresholds[:, 1:], self.low.shifts[1:])
        return Digits(low, self.high)


class Ideal(NamedTuple):
    """Enclosures of the weights of B, of the low digits, and of the highest digit last."""

    weights: list[list[Enclosure]]
    shifts: list[int]

    @property
    def reach(self) -> int:
        """The largest value of G."""
        return (len(self.weights[-1]) << self.shifts[-1]) - 1


@lru_cache(maxsize=256)
def ideal(rate: Fraction) -> Ideal:
    """The ideal weights: value d of the digit at shift s has weight e^(-rate 2^s d)."""
    # The low digits have `width` bits in all, divided evenly; B has shift 0 and values 0 and 1.
    width = 0
    while rate * 2**width < _STEP:
        width += 1
    count = -(-width // _BITS)
    bits = [width // count + (i < width % count) for i in range(count)]
    shifts = [0, *(sum(bits[:i]) for i in range(count)), width]
    sizes = [2, *(2**b for b in bits), -(-_NATS // (rate * 2**width))]
    ratios = [exponential(rate)]
    for _ in range(width):
        ratios.append(ratios[-1].times(ratios[-1]))
    return Ideal([powers(ratios[s], n) for s, n in zip(shifts, sizes, strict=True)], shifts)


def rounded(weights: list[list[Enclosure]], shifts: list[int], limbs: int) -> Block:
    """Tables of digits with these weights, rounded to thresholds of `limbs` words."""
    return digit_sampler.block([digit_sampler.rounded(q, limbs) for q in weights], shifts, limbs)


@lru_cache(maxsize=256)
def digits(rate: Fraction) -> Digits:
    """The sampler's tables, with the fewest limbs that keep rounding within `_LOW` and `_HIGH`."""
    if not RATES[0] <= rate <= RATES[1]:
        raise ValueError(f"expected 2^-28 <= rate <= 32, got {float(rate)}")
    weights, shifts = ideal(rate)

    def fewest(part: slice, allowed: Fraction) -> Block:
        for limbs in (2, 3, 4):
            table = rounded(weights[part], shifts[part], limbs)
            if factor(table, weights[part]) <= allowed:
                return table
        raise ArithmeticError(f"128 bits do not hold the digits of rate {float(rate)}")

    return Digits(fewest(slice(0, -1), _LOW), fewest(slice(-1, None), _HIGH))


def factor(table: Block, weights: list[list[Enclosure]]) -> Fraction | float:
    """Bound on the factor by which rounding changes a ratio of two probabilities of the digits."""
    found: Fraction | float = Fraction(1)
    for digit, ideal in enumerate(weights):
        found *= digit_sampler.distortion(table.weights(digit), ideal)
    return found


def distortion(tables: Digits, rate: Fraction) -> Fraction | float:
    """Bound on that factor for the sum: P(g) / P(g + d) <= distortion e^(rate d) within reach."""
    *low, high = ideal(rate).weights
    low = low[len(low) - len(tables.low.shifts) :]  # drops B's weights if the tables have no B
    return factor(tables.low, low) * factor(tables.high, [high])


def magnitude(words: UInt32[Array, "words *shape"], tables: Digits) -> UInt32[Array, "*shape"]:
    """Map the first `tables.words` random words to G + B (or G), at most 2^31 - 1."""
    low, high = tables
    ones = tuple(1 for _ in words.shape[1:])
    below = digit_sampler.draw(words[: low.words], low)
    below = (below << low.shifts.reshape(-1, *ones)).sum(axis=0, dtype=jnp.uint32)
    (top,) = digit_sampler.draw(words[low.words : tables.words], high)
    # Compared before the shift, which could drop bits. If `top` passes, the sum is below 2^32.
    most = np.uint32(LARGEST) >> high.shifts[0]
    total = jnp.minimum((top << high.shifts[0]) + below, np.uint32(LARGEST))
    return jnp.where(top > most, np.uint32(LARGEST), total)
