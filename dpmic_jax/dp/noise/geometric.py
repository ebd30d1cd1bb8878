"""The digits of a geometric integer: P(G = g) ~ e^(-rate g) splits over the digits of g.

So they are drawn independently. A low digit of up to 5 bits needs 64 random bits; the highest
one, whose weights reach down to e^-60, needs 128. A bit B that is 1 with probability
r / (1 + r), r = e^-rate, goes along: it makes a discrete Laplace law of G (`noise`), and keeps
the rounding small at every scale, which a test for zero of probability (1 - r) / (1 + r) does
not.
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

LARGEST = 2**31 - 1  # of int32; what lies beyond counts as this
RATES = Fraction(1, 2**28), Fraction(32)  # that the digits below can hold
# Factor by which rounding may move a ratio of probabilities, for a low digit and the highest.
# Seven low digits at most: together they stay within e^(2^-40).
_LOW, _HIGH = 1 + Fraction(1, 2**44), 1 + Fraction(1, 2**41)
_NATS = 60  # where the highest digit ends: e^-60 is 2^41 units of 2^-128
_STEP = Fraction(15, 4)  # least nats in a step of the highest digit, so that it has 16 at most
_BITS = 5  # of a low digit: words cost more than comparisons


class Digits(NamedTuple):
    """The bit B, if it is wanted, and the low digits; and the highest digit."""

    low: Block
    high: Block

    @property
    def words(self) -> int:
        """Random words that one draw takes."""
        return self.low.words + self.high.words

    def terms(self) -> list[Term]:
        """For the exact law of the sum."""
        return digit_sampler.terms(self.low) + digit_sampler.terms(self.high)

    def without_bit(self) -> "Digits":
        """G alone."""
        low = Block(self.low.thresholds[:, 1:], self.low.shifts[1:])
        return Digits(low, self.high)


class Ideal(NamedTuple):
    """Enclosures of the weights of B, the low digits, and the highest digit last."""

    weights: list[list[Enclosure]]
    shifts: list[int]

    @property
    def reach(self) -> int:
        """The largest G."""
        return (len(self.weights[-1]) << self.shifts[-1]) - 1


@lru_cache(maxsize=256)
def ideal(rate: Fraction) -> Ideal:
    """Digit d at shift s has weight e^(-rate 2^s d)."""
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
    """Digits with those weights, to so many limbs."""
    return digit_sampler.block([digit_sampler.rounded(q, limbs) for q in weights], shifts, limbs)


@lru_cache(maxsize=256)
def digits(rate: Fraction) -> Digits:
    """Tables of the fewest limbs that keep rounding within its allowance."""
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
    """Bound on how far, as a factor, rounding moves a ratio of two probabilities."""
    moved: Fraction | float = Fraction(1)
    for digit, ideal in enumerate(weights):
        moved *= digit_sampler.distortion(table.weights(digit), ideal)
    return moved


def distortion(tables: Digits, rate: Fraction) -> Fraction | float:
    """The same for the sum: P(g) / P(g + d) <= distortion e^(rate d), up to the reach of G."""
    *low, high = ideal(rate).weights
    low = low[len(low) - len(tables.low.shifts) :]  # without the first, the bit, if it is not there
    return factor(tables.low, low) * factor(tables.high, [high])


def magnitude(words: UInt32[Array, "words *shape"], tables: Digits) -> UInt32[Array, "*shape"]:
    """G + B, or G, from the first words; at most 2^31 - 1."""
    low, high = tables
    ones = tuple(1 for _ in words.shape[1:])
    below = digit_sampler.draw(words[: low.words], low)
    below = (below << low.shifts.reshape(-1, *ones)).sum(axis=0, dtype=jnp.uint32)
    (top,) = digit_sampler.draw(words[low.words : tables.words], high)
    # Compared before the shift, which could drop bits; after it the sum stays below 2^32.
    most = np.uint32(LARGEST) >> high.shifts[0]
    total = jnp.minimum((top << high.shifts[0]) + below, np.uint32(LARGEST))
    return jnp.where(top > most, np.uint32(LARGEST), total)
