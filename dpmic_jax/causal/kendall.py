"""Kendall's tau-a and its conditional form.

Two of n records are concordant if x and y order them the same way, discordant if x and y order them
in opposite ways, and neither if they tie in x or in y. With C concordant and D discordant pairs,
K = C - D,

    tau = K / (n (n - 1) / 2),     w = 9 n (n - 1) / (2 (2n + 5)),     w tau = 9 K / (2n + 5).

(The supplement's Definition 5 calls every pair discordant that is not concordant. Read literally,
it calls tied data dependent. Here ties count 0.)
"""

from typing import Any

import numpy as np
from jaxtyping import Int64

from dpmic_jax.causal import sensitivity
from dpmic_jax.causal.cumulative import above, below
from dpmic_jax.causal.strata import Absolute, BlockTest, Signed


def concordance(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Int64[np.ndarray, "*batch"]:
    """K = C - D, exact: pairs with higher x and higher y, less those with higher x and lower y.

    |K| is below 2^62 for up to 3 10^9 records.
    """
    # Records of higher x only, so that each pair is counted once.
    later = above(counts, axis=-2)
    return (counts * (above(later, axis=-1) - below(later, axis=-1))).sum(axis=(-2, -1))


class _Kendall(BlockTest):
    factor = 18  # w tau = 9 K / (2n + 5) over the common denominator 2 (2n + 5)
    numerators = staticmethod(concordance)

    @staticmethod
    def bottom(size: Any) -> Any:
        return 2 * (2 * size + 5)

    @staticmethod
    def top(size: Any) -> Any:
        return 9 * size * (size - 1)


class Kendall(_Kendall, Absolute):
    """Conditional Kendall's tau: Definition 6 of the supplement."""

    bound = staticmethod(sensitivity.kendall)


class SignedKendall(_Kendall, Signed):
    """Conditional Kendall's tau with signs: blocks of opposite signs cancel."""

    bound = staticmethod(sensitivity.signed_kendall)
