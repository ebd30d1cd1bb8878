"""Geometric noise without an end, drawn up to a level beyond which all values act alike.

The digits of `geometric` make G in 0 .. N - 1, and end after 60 nats. Noise for a threshold that is
compared with many candidates has to go on: with coins of probability q, the smallest multiple of
2^-128 that is not below e^(-rate N), let J be the number of heads before the first tail, and

    Z = G + N J,    P(Z = z) = P(G = z mod N) (1 - q) q^(z div N),    z = 0, 1, 2, ...

Lemma. P(z) <= kappa e^(rate d) P(z + d) for all z, d >= 0, kappa the distortion of the digits.
Proof. Let z = g + N j and z + d = g' + N j'. Then P(z) / P(z + d) = P(g) / P(g') q^(j - j'). The
first factor is at most kappa e^(rate (g' - g)), whichever of the two is larger, and the second at
most e^(rate N (j' - j)). Since d = g' - g + N (j' - j), the product is kappa e^(rate d). []

Only min(Z, most + 1) is needed, where `most` is the level. Then as many coins are enough as make
N J alone exceed it, and the draw takes a fixed number of words and steps.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from dpmic_jax.dp.arithmetic.intervals import SCALE, exponential, integer, rounded_up
from dpmic_jax.dp.noise import digit_sampler, geometric
from dpmic_jax.dp.noise.digit_sampler import Block, tail

_LIMBS = 4  # words of a coin: e^-64, the least probability of heads, is 2^35 units of 2^-128
_UNITS = 2 ** (32 * _LIMBS)


class Tables(NamedTuple):
    """What random words are compared with: digits of G, coins of J, and the length N of a block."""

    digits: geometric.Digits
    coins: Block
    length: np.uint32

    @property
    def words(self) -> int:
        """Number of random words that one draw takes."""
        return self.digits.words + self.coins.words


@dataclass(frozen=True, kw_only=True)
class EndlessGeometric:
    """min(Z, most + 1), with P(Z >= z) ~ e^(-rate z) for z = 0, 1, 2, ... without an end.

    Attributes:
      rate: the decay of Z, from 2^-28 to 32.
      most: all larger values are drawn as most + 1.
    """

    rate: Fraction
    most: int

    def __post_init__(self):
        integer("most", self.most, 0, 2**32 - 2)
        if self.most + 2 * self.length >= 2**32:  # the largest G + N J
            raise ValueError(
                f"a threshold's noise of scale {float(1 / self.rate):.3g} is beyond 2^32: use "
                "coarser scores or a larger epsilon"
            )

    @property
    def length(self) -> int:
        """N, the number of values that one block of digits has."""
        return geometric.ideal(self.rate).reach + 1

    @property
    def heads(self) -> Fraction:
        """q, the probability that a further block follows."""
        return rounded_up(
            Fraction(exponential(self.rate * self.length).high, 2**SCALE), 32 * _LIMBS
        )

    @property
    def tables(self) -> Tables:
        """The tables of the sampler."""
        return _tables(self)

    @property
    def rounding(self) -> Fraction:
        """ln kappa, rounded up: P(z) <= e^(rate d + rounding) P(z + d)."""
        return rounded_up(Fraction(geometric.distortion(self.tables.digits, self.rate)) - 1)

    def pmf(self) -> list[Fraction]:
        """The probability of each value 0, 1, ..., most + 1."""
        return _pmf(self)


def draw(
    words: UInt32[Array, "words *shape"], tables: Tables, most: UInt32[Array, ""]
) -> UInt32[Array, "*shape"]:
    """Map the first `tables.words` random words to min(Z, most + 1)."""
    digits, coins, length = tables
    heads = digit_sampler.draw(words[digits.words : tables.words], coins)
    blocks = jnp.cumprod(heads, axis=0).sum(axis=0, dtype=jnp.uint32)
    return jnp.minimum(geometric.magnitude(words, digits) + length * blocks, most + np.uint32(1))


@lru_cache(maxsize=64)
def _tables(noise: EndlessGeometric) -> Tables:
    heads = int(noise.heads * _UNITS)
    count = noise.most // noise.length + 1  # so that N count > most
    coins = digit_sampler.block([[_UNITS - heads, heads]] * count, [0] * count, _LIMBS)
    digits = geometric.digits(noise.rate).without_bit()
    return Tables(digits, coins, np.uint32(noise.length))


@lru_cache(maxsize=64)
def _pmf(noise: EndlessGeometric) -> list[Fraction]:
    heads, within = noise.heads, tails(noise.rate)

    def reached(z: int) -> Fraction:
        """P(Z >= z)."""
        blocks, rest = divmod(z, noise.length)
        return heads**blocks * (heads + (1 - heads) * within[rest])

    levels = [reached(z) for z in range(noise.most + 2)]
    return [a - b for a, b in zip(levels, [*levels[1:], Fraction(0)], strict=True)]


@lru_cache(maxsize=64)
def tails(rate: Fraction) -> list[Fraction]:
    """P(G >= g) of one block of digits, for g = 0, 1, ..., N; the last of them is 0."""
    terms = geometric.digits(rate).without_bit().terms()
    return [tail(terms, g) for g in range(geometric.ideal(rate).reach + 2)]
