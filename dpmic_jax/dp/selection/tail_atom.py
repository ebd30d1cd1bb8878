"""A place above all noisy scores, which every candidate reaches with the same small chance.

Noise from finitely many words ends somewhere. Where it ends for one score it goes on for a score
S higher, and a candidate seen there would give its score away. So with probability gamma = 2^-44
a noisy score is the `PLACE`, whatever the score. With A(d) = P(noise >= d), a candidate of score s
is at y or above, y up to the place, with probability

    F_s(y) = gamma + (1 - gamma) A(y - s).

Lemma. Let p(x) <= e^a p(x + m) for noise x, x + m within reach R, let the noise be above R - m
with probability E <= (e^a - 1) gamma at most, and let |s - s'| <= S. Then, for m = 2 S,

    F_s(y) <= e^a F_s'(min(y + S, PLACE)).

Proof. d = y - s, and s' = s - S is the worst case: it asks for A(d + m). Adding up the terms within
reach, A(d) <= e^a A(d + m) + E, and gamma + (1 - gamma) E <= e^a gamma. For y + S beyond the place
A(d + m) = 0, which is what F_s'(PLACE) = gamma has. At y = PLACE both are gamma, without S. []
"""

from fractions import Fraction

import numpy as np
from jaxtyping import Array, Bool, UInt32

CHANCE = Fraction(1, 2**44)
PLACE = 2**31 - 1
WORDS = 2


def drawn(words: UInt32[Array, "words *shape"]) -> Bool[Array, "*shape"]:
    """Whether the first two words say jackpot: 44 bits are zero."""
    return (words[0] == 0) & (words[1] < np.uint32(2**20))


def below(most: int) -> int:
    """`most`, the largest noisy score without a jackpot, refused unless it is below the place."""
    if most >= PLACE:
        raise ValueError(
            f"scores and their noise reach up to {most}, beyond 2^31 - 2: use coarser scores, "
            "a larger epsilon, or ask for fewer candidates"
        )
    return most


def share(tail: Fraction) -> Fraction:
    """F where A is `tail`."""
    return CHANCE + (1 - CHANCE) * tail
