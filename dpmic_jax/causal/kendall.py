"""Kendall's tau-a, and its conditional form.

Of n records, two are concordant if x and y order them the same way, discordant if in opposite
ways, and neither if x or y ties them. With C and D such pairs, K = C - D,

    tau = K / (n (n - 1) / 2),     w = 9 n (n - 1) / (2 (2n + 5)),     w tau = 9 K / (2n + 5).

(The supplement's Definition 5 calls every pair discordant that is not concordant; read so, tied
data would depend. Ties count 0 here.)
"""

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int64

from dpmic_jax.causal import sensitivity
from dpmic_jax.causal.cumulative import above, below
from dpmic_jax.causal.strata import Absolute, BlockTest, Signed


def concordance(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Int64[np.ndarray, "*batch"]:
    """C - D, exactly: every cell with the records above it on both axes, less those across.

    Below 2^62 for up to 3 10^9 records.
    """
    later = above(counts, axis=-2)
    return (counts * (above(later, axis=-1) - below(later, axis=-1))).sum(axis=(-2, -1))


class _Kendall(BlockTest):
    factor = 18

    @staticmethod
    def numerators(counts: Any) -> Any:
        return concordance(counts)

    @staticmethod
    def bottom(size: Any) -> Any:
        return 2 * (2 * size + 5)

    @staticmethod
    def top(size: Any) -> Any:
        return 9 * size * (size - 1)


class Kendall(_Kendall, Absolute):
    """Conditional Kendall's tau: Definition 6 of the supplement."""

    @staticmethod
    def bound(n: int, blocks: int) -> Fraction:
        return sensitivity.kendall(n, blocks)


class SignedKendall(_Kendall, Signed):
    """The same with signs, so that blocks of opposite signs cancel."""

    @staticmethod
    def bound(n: int, blocks: int) -> Fraction:
        return sensitivity.signed_kendall(n, blocks)
