"""Sample digits by comparing random words with thresholds, and compute their exact distribution.

A digit with integer weights w_0, w_1, ... that sum to 2^(32 limbs) is the number of thresholds
T_j = w_j + w_(j+1) + ..., j = 1, 2, ..., that lie above a uniform integer of 32 limbs bits. Every
draw is compared with all thresholds: the number of steps is fixed, and no memory address depends
on a secret. The exact distribution is computed from the same arrays that the sampler uses.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from dpmic_jax.dp.arithmetic.intervals import Enclosure

# Sums over this many thresholds compile fast and are vectorised by XLA; longer ones are not.
CHUNK = 16


class Block(NamedTuple):
    """Tables of independent digits with equally many limbs, and the shift of each in their sum.

    Thresholds are padded with zeros: no number is below 0, so they are never counted.
    """

    thresholds: np.ndarray  # uint32, limbs x digits x size, the most significant limb first
    shifts: np.ndarray  # uint32, digits

    @property
    def words(self) -> int:
        """Number of random words that one draw takes."""
        return self.thresholds.shape[0] * self.thresholds.shape[1]

    def weights(self, digit: int) -> list[int]:
        """The weights w_0, w_1, ... of one digit, recovered from its thresholds."""
        numbers = [1 << (32 * len(self.thresholds))]
        for limbs in self.thresholds[:, digit].T.tolist():
            number = 0
            for limb in limbs:
                number = (number << 32) | limb
            numbers.append(number)
        return [above - below for above, below in zip(numbers, [*numbers[1:], 0], strict=True)]


def block(weights: Sequence[Sequence[int]], shifts: Sequence[int], limbs: int) -> Block:
    """Tables for digits with the given weights, each list of which sums to 2^(32 limbs)."""
    size = -(-(max(map(len, weights), default=1) - 1) // CHUNK) * CHUNK
    thresholds = np.zeros((limbs, len(weights), size), np.uint32)
    for digit, row in enumerate(weights):
        if sum(row) != 1 << (32 * limbs) or min(row) < 0:
            raise ArithmeticError("expected weights of a distribution: >= 0, sum 2^(32 limbs)")
        above = 0
        for j in range(len(row) - 1, 0, -1):
            above += row[j]
            for limb in range(limbs):
                thresholds[limb, digit, j - 1] = (above >> 32 * (limbs - 1 - limb)) & 0xFFFFFFFF
    return Block(thresholds, np.asarray(shifts, np.uint32))


def rounded(ideal: Sequence[Enclosure], limbs: int) -> list[int]:
    """Integer weights that sum to 2^(32 limbs) and are nearly proportional to `ideal`.

    Weights are rounded to the nearest integer. The first one is set to what is left over: it has
    to be among the largest, so that this changes it by a small factor only.
    """
    total = sum(q.low for q in ideal)
    rest = [((q.low << (32 * limbs + 1)) // total + 1) // 2 for q in ideal[1:]]
    return [(1 << (32 * limbs)) - sum(rest), *rest]


def distortion(weights: Sequence[int], ideal: Sequence[Enclosure]) -> Fraction | float:
    """An upper bound on max_d (w_d / q_d) / min_d (w_d / q_d), q the ideal distribution.

    Every ratio of two probabilities of the digit is within this factor of the ideal ratio. Neither
    distribution has to be normalised. Infinite if the supports differ.
    """
    if any(weights[len(ideal) :]) or not all(weights[: len(ideal)]):
        return math.inf
    # Quotients by integers in units of 2^-320 then have about 256 bits or more. They are rounded
    # up in the numerator and down in the denominator, so the result stays an upper bound.
    shift = 512
    pairs = list(zip(weights, ideal, strict=False))
    return Fraction(
        max(-(-(w << shift) // q.low) for w, q in pairs),
        min((w << shift) // q.high for w, q in pairs),
    )


def variation(weights: Sequence[int], ideal: Sequence[Enclosure], beyond: int) -> Fraction:
    """An upper bound on the total variation distance to the ideal distribution.

    Args:
      weights: integer weights of the digit.
      ideal: enclosures of the ideal weights, unnormalised.
      beyond: bound on the ideal weight of all further values, in units of 2^-320.
    """
    fine = 1 << 256
    total = sum(weights)
    low = sum(q.low for q in ideal)
    high = sum(q.high for q in ideal) + beyond
    apart = -(-beyond * fine // low)
    for weight, q in zip(weights, ideal, strict=False):
        here = weight * fine // total  # exact: both are powers of two
        apart += max(here - q.low * fine // high, -(-q.high * fine // low) - here)
    return Fraction(apart, 2 * fine)


def draw(words: UInt32[Array, "words *shape"], block: Block) -> UInt32[Array, "digits *shape"]:
    """Sample every digit: the number of its thresholds above the integer that its words form."""
    limbs, digits, size = block.thresholds.shape
    shape = words.shape[1:]
    number = words.reshape(limbs, digits, 1, *shape)
    limits = block.thresholds.reshape(limbs, digits, size, *(1 for _ in shape))
    count = jnp.zeros((digits, *shape), jnp.uint32)
    for start in range(0, size, CHUNK):
        limit = limits[:, :, start : start + CHUNK]
        # Lexicographic comparison from the least significant limb. [-1] would be traced as a
        # dynamic slice by JAX 0.7.
        below = number[limbs - 1] < limit[limbs - 1]
        for limb in range(limbs - 2, -1, -1):
            below = (number[limb] < limit[limb]) | ((number[limb] == limit[limb]) & below)
        count = count + below.sum(axis=1, dtype=jnp.uint32)
    return count


class Term(NamedTuple):
    """A digit in a sum: its weights, the step that it is multiplied by, and a fair sign or none."""

    weights: tuple[int, ...]
    step: int
    signed: bool = False

    @property
    def total(self) -> int:
        """The sum of all weights, of both signs if there is a sign."""
        return sum(self.weights) << self.signed

    @property
    def most(self) -> int:
        """The largest magnitude that the term can have."""
        return self.step * max(value for value, weight in enumerate(self.weights) if weight)


def terms(block: Block) -> tuple[Term, ...]:
    """The digits of a block as terms of a sum, for `tail`."""
    return tuple(
        Term(tuple(block.weights(digit)), 1 << int(shift))
        for digit, shift in enumerate(block.shifts)
    )


def tail(sum_of: tuple[Term, ...], least: int) -> Fraction:
    """The exact probability that a sum of independent digits is at least `least`."""
    return Fraction(_counting(sum_of)(least), math.prod(term.total for term in sum_of))


@lru_cache(maxsize=64)
def _counting(sum_of: tuple[Term, ...]) -> Callable[[int], int]:
    """The function from `least` to the weight of all sums from there on.

    The steps are powers of two in increasing order, so after the first digit the remaining bound
    can be rounded up to a multiple of the second step. Few different bounds arise, and each is
    computed once (dynamic programming), also for later calls.
    """
    known: dict[tuple[int, int], int] = {}
    everything = [1]
    for term in reversed(sum_of):
        everything.insert(0, everything[0] * term.total)
    reach = [sum(term.most for term in sum_of[i:]) for i in range(len(sum_of) + 1)]
    lowest = [-sum(term.most for term in sum_of[i:] if term.signed) for i in range(len(sum_of) + 1)]

    def ways(i: int, least: int) -> int:
        if least <= lowest[i]:
            return everything[i]
        if least > reach[i]:
            return 0
        step = sum_of[i].step
        least = -(-least // step) * step
        if (i, least) not in known:
            known[i, least] = sum(
                weight * ways(i + 1, least - sign * value * step)
                for value, weight in enumerate(sum_of[i].weights)
                for sign in ((1, -1) if sum_of[i].signed else (1,))
                if weight
            )
        return known[i, least]

    return partial(ways, 0)
