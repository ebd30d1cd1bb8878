"""Spearman's rho and its conditional form.

Tied records share the mean of their ranks. With R and S the ranks of n records,

    rho = 12 sum_i (R_i - mean)(S_i - mean) / (n (n^2 - 1)),     w = n - 1.

Without ties this is 1 - 6 sum d^2 / (n (n^2 - 1)), d = R - S, the supplement's Definition 7
(which prints n (n - 1) by mistake). With ties it is the mean over all ways to break them, those of
x and those of y independently, and it is 0 for a constant column. Definition 7 with ties is larger
by (T_x + T_y) / 2 with T = sum (t^3 - t) / (n^3 - n) over groups of t tied records: it is 1 for two
constant columns, and about 1/4 for two independent fair coins. `by_distance` computes it.

A_i = #(x_j < x_i) - #(x_j > x_i) is 2 (R_i - mean), so rho = 3 H / (n^3 - n) with the integer
H = sum_i A_i B_i, and w rho = 3 H / (n (n + 1)).
"""

from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.causal import sensitivity
from dpmic_jax.causal.cumulative import above, below
from dpmic_jax.causal.strata import Absolute, BlockTest, Signed

_MOST_RECORDS = 2**20  # up to here n^3, which bounds H, fits int64


def rank_products(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Integer[np.ndarray, "*batch"]:
    """H, exact; in Python integers where n^3 may overflow int64."""
    x, y = counts.sum(axis=-1), counts.sum(axis=-2)
    a, b = below(x, axis=-1) - above(x, axis=-1), below(y, axis=-1) - above(y, axis=-1)
    inner = (counts * b[..., None, :]).sum(axis=-1)
    if x.sum(axis=-1).max(initial=0) > _MOST_RECORDS:
        a, inner = a.astype(object), inner.astype(object)
    return (a * inner).sum(axis=-1)


def by_distance(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Float64[np.ndarray, "*batch"]:
    """|1 - 6 sum d^2 / (n (n^2 - 1))|, Definition 7 corrected; 0 for fewer than two records."""
    x, y = counts.sum(axis=-1), counts.sum(axis=-2)
    a, b = below(x, axis=-1) - above(x, axis=-1), below(y, axis=-1) - above(y, axis=-1)
    n = x.sum(axis=-1).astype(np.float64)
    twice = (a[..., :, None] - b[..., None, :]).astype(np.float64)  # 2d
    distance = 1.5 * (counts * twice**2).sum(axis=(-2, -1))  # 6 sum d^2
    return np.where(n > 1, np.abs(1 - distance / np.maximum(n * (n * n - 1), 1.0)), 0.0)


class _Spearman(BlockTest):
    factor = 3  # w rho = 3 H / (n (n + 1))
    numerators = staticmethod(rank_products)

    @staticmethod
    def bottom(size: Any) -> Any:
        # An empty block has numerator 0; its denominator only has to differ from 0.
        return size * (size + 1) + (size == 0)

    @staticmethod
    def top(size: Any) -> Any:
        return size * (size + 1) * (size - 1)


class Spearman(_Spearman, Absolute):
    """Conditional Spearman's rho: Definition 8 of the supplement."""

    bound = staticmethod(sensitivity.spearman)


class SignedSpearman(_Spearman, Signed):
    """Conditional Spearman's rho with signs: blocks of opposite signs cancel."""

    bound = staticmethod(sensitivity.signed_spearman)
