"""Digits drawn by comparing random words with thresholds, and their exact law.

A digit with integer weights w_0, w_1, ... that sum to 2^(32 limbs) counts the thresholds
T_j = w_j + w_(j+1) + ..., j = 1, 2, ..., that lie above a uniform number of that many bits. All
thresholds are compared whatever is drawn: the number of steps is fixed, and nothing is looked
up at a secret place. The law is read back from the same arrays.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from dpmic_jax.dp.arithmetic.intervals import Enclosure

# Sums over this many thresholds compile fast and run as vectors; longer ones do not.
CHUNK = 16


class Block(NamedTuple):
    """Independent digits, each of as many limbs, and how far each is shifted in the sum.

    Thresholds are padded with zeros, which no number is below.
    """

    thresholds: np.ndarray  # uint32, limbs x digits x size, the most significant limb first
    shifts: np.ndarray  # uint32, digits

    @property
    def words(self) -> int:
        """Random words that one draw takes."""
        return self.thresholds.shape[0] * self.thresholds.shape[1]

    def weights(self, digit: int) -> list[int]:
        """w_0, w_1, ... of one digit, from its thresholds."""
        numbers = [1 << (32 * len(self.thresholds))]
        for limbs in self.thresholds[:, digit].T.tolist():
            number = 0
            for limb in limbs:
                number = (number << 32) | limb
            numbers.append(number)
        return [above - below for above, below in zip(numbers, [*numbers[1:], 0], strict=True)]


def block(weights: Sequence[Sequence[int]], shifts: Sequence[int], limbs: int) -> Block:
    """Thresholds of digits with the given weights, each list summing to 2^(32 limbs)."""
    size = -(-(max(map(len, weights), default=1) - 1) // CHUNK) * CHUNK
    thresholds = np.zeros((limbs, len(weights), size), np.uint32)
    for digit, row in enumerate(weights):
        if sum(row) != 1 << (32 * limbs) or min(row) < 0:
            raise ArithmeticError("weights have to be a law: at least 0, summing to 2^(32 limbs)")
        above = 0
        for j in range(len(row) - 1, 0, -1):
            above += row[j]
            for limb in range(limbs):
                thresholds[limb, digit, j - 1] = (above >> 32 * (limbs - 1 - limb)) & 0xFFFFFFFF
    return Block(thresholds, np.asarray(shifts, np.uint32))


def rounded(ideal: Sequence[Enclosure], limbs: int) -> list[int]:
    """Integer weights near proportional to `ideal`, summing to 2^(32 limbs).

    Weights are rounded to the nearest integer; the first, which has to be among the largest,
    takes what that leaves.
    """
    total = sum(q.low for q in ideal)
    rest = [((q.low << (32 * limbs + 1)) // total + 1) // 2 for q in ideal[1:]]
    return [(1 << (32 * limbs)) - sum(rest), *rest]


def distortion(weights: Sequence[int], ideal: Sequence[Enclosure]) -> Fraction | float:
    """An upper bound on the largest ratio of w_d / q_d to the smallest, q_d the ideal law.

    Nothing has to be known of the normalisation. A ratio of two probabilities of the digit is
    within this factor of the ideal ratio; infinite where a value cannot come up that should.
    """
    if any(weights[len(ideal) :]) or not all(weights[: len(ideal)]):
        return inf
    shift = 512  # bits: quotients of 2^-320 units keep more than 256
    pairs = list(zip(weights, ideal, strict=False))
    return Fraction(
        max(-(-(w << shift) // q.low) for w, q in pairs),
        min((w << shift) // q.high for w, q in pairs),
    )


def variation(weights: Sequence[int], ideal: Sequence[Enclosure], beyond: int) -> Fraction:
    """An upper bound on the total variation distance to the ideal law.

    `beyond` bounds the unnormalised mass, in units of 2^-320, that the ideal law has further out.
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
    """How many thresholds lie above the number that the limbs spell, digit by digit."""
    limbs, digits, size = block.thresholds.shape
    shape = words.shape[1:]
    number = words.reshape(limbs, digits, 1, *shape)
    limits = block.thresholds.reshape(limbs, digits, size, *(1 for _ in shape))
    count = jnp.zeros((digits, *shape), jnp.uint32)
    for start in range(0, size, CHUNK):
        limit = limits[:, :, start : start + CHUNK]
        # Not [-1], which JAX 0.7 traces as a dynamic slice.
        below = number[limbs - 1] < limit[limbs - 1]
        for limb in range(limbs - 2, -1, -1):
            below = (number[limb] < limit[limb]) | ((number[limb] == limit[limb]) & below)
        count = count + below.sum(axis=1, dtype=jnp.uint32)
    return count


class Term(NamedTuple):
    """A digit in a sum: its weights, the step it counts in, and whether it has a fair sign."""

    weights: Sequence[int]
    step: int
    signed: bool = False

    @property
    def total(self) -> int:
        return sum(self.weights) << self.signed

    @property
    def most(self) -> int:
        return self.step * max(value for value, weight in enumerate(self.weights) if weight)


def terms(block: Block) -> list[Term]:
    """The digits of a block, for the exact law of their sum."""
    return [Term(block.weights(digit), 1 << int(shift)) for digit, shift in enumerate(block.shifts)]


def tail(sum_of: Sequence[Term], least: int) -> Fraction:
    """The exact probability that a sum of independent digits is at least `least`.

    The steps are powers of two in increasing order, so what the first digit leaves over has to
    be reached in steps of the second: few different amounts arise, and each is worked out once.
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

    return Fraction(ways(0, least), everything[0])
