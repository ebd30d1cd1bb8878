"""A sentinel above all noisy scores, which every score becomes with the same small probability.

Noise from finitely many random words has a largest value. A score that is S higher reaches further,
so a candidate seen beyond that value would reveal its score. Therefore a noisy score is, with
probability gamma = 2^-44 and whatever the score, the `SENTINEL`, an atom of its distribution above
all ordinary sums (docs/selection.md). With A(d) = P(noise >= d), the noisy score of a candidate of
score s is y or more, for y up to the sentinel, with probability

    F_s(y) = gamma + (1 - gamma) A(y - s).

Lemma. Let p(x) <= e^a p(x + m) for noise x, x + m within reach R, let the noise be above R - m
with probability E <= (e^a - 1) gamma at most, and let |s - s'| <= S. Then, for m = 2 S,

    F_s(y) <= e^a F_s'(min(y + S, SENTINEL)).

Proof. Let d = y - s. The worst case is s' = s - S, where the right side has A(d + m). The sum of
the terms within reach gives A(d) <= e^a A(d + m) + E, and gamma + (1 - gamma) E <= e^a gamma. For
y + S beyond the sentinel A(d + m) = 0, which agrees with F_s'(SENTINEL) = gamma. At y = SENTINEL
both sides are gamma, without a shift by S. []
"""

from fractions import Fraction

import numpy as np
from jaxtyping import Array, Bool, UInt32

PROBABILITY = Fraction(1, 2**44)  # gamma
SENTINEL = 2**31 - 1  # the largest int32
WORDS = 2  # random words that decide on the sentinel


def drawn(words: UInt32[Array, "words *shape"]) -> Bool[Array, "*shape"]:
    """Whether the first two words select the sentinel: 44 of their bits are zero."""
    return (words[0] == 0) & (words[1] < np.uint32(2**20))


def check_below(most: int) -> int:
    """Return `most`, the largest ordinary noisy score, if it is below the sentinel."""
    if most >= SENTINEL:
        raise ValueError(
            f"scores and their noise reach up to {most}, beyond 2^31 - 2: use coarser scores, "
            "a larger epsilon, or ask for fewer candidates"
        )
    return most


def with_atom(tail: Fraction) -> Fraction:
    """F = gamma + (1 - gamma) tail."""
    return PROBABILITY + (1 - PROBABILITY) * tail
