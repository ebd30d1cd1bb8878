"""Spearman's rho, and its conditional form.

Tied records share the mean of their ranks. With R and S the ranks of n records,

    rho = 12 sum_i (R_i - mean)(S_i - mean) / (n (n^2 - 1)),     w = n - 1.

Without ties this is 1 - 6 sum d^2 / (n (n^2 - 1)), d = R - S, the supplement's Definition 7
(which prints n (n - 1), a slip). With ties it is the mean over all ways to break them, those of x
and of y independently, and is 0 for a constant column; Definition 7 as it stands is larger by half
the share of ties, (T_x + T_y) / 2 with T = sum (t^3 - t) / (n^3 - n) over groups of t: 1 for two
constant columns, and about 1/4 for two independent fair coins. `by_distance` gives it.

A_i = #(x_j < x_i) - #(x_j > x_i) is 2 (R_i - mean), so rho = 3 H / (n^3 - n) with the integer
H = sum_i A_i B_i, and w rho = 3 H / (n (n + 1)).
"""

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.causal import sensitivity
from dpmic_jax.causal.cumulative import above, below
from dpmic_jax.causal.strata import Absolute, BlockTest, Signed

_MOST = 2**20  # records, up to which n^3 fits int64


def rank_products(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Integer[np.ndarray, "*batch"]:
    """H, exactly; in Python's integers where n^3 may pass int64."""
    x, y = counts.sum(axis=-1), counts.sum(axis=-2)
    a, b = below(x, axis=-1) - above(x, axis=-1), below(y, axis=-1) - above(y, axis=-1)
    inner = (counts * b[..., None, :]).sum(axis=-1)
    if x.sum(axis=-1).max(initial=0) > _MOST:
        a, inner = a.astype(object), inner.astype(object)
    return (a * inner).sum(axis=-1)


def by_distance(
    counts: Int64[np.ndarray, "*batch rows columns"],
) -> Float64[np.ndarray, "*batch"]:
    """|1 - 6 sum d^2 / (n (n^2 - 1))|, as Definition 7 is meant; 0 for less than two records."""
    x, y = counts.sum(axis=-1), counts.sum(axis=-2)
    a, b = below(x, axis=-1) - above(x, axis=-1), below(y, axis=-1) - above(y, axis=-1)
    n = x.sum(axis=-1).astype(np.float64)
    twice = (a[..., :, None] - b[..., None, :]).astype(np.float64)  # 2d
    away = 1.5 * (counts * twice**2).sum(axis=(-2, -1))
    return np.where(n > 1, np.abs(1 - away / np.maximum(n * (n * n - 1), 1.0)), 0.0)


class _Spearman(BlockTest):
    factor = 3

    @staticmethod
    def numerators(counts: Any) -> Any:
        return rank_products(counts)

    @staticmethod
    def bottom(size: Any) -> Any:
        # An empty block has 0 above.
        return size * (size + 1) + (size == 0)

    @staticmethod
    def top(size: Any) -> Any:
        return size * (size + 1) * (size - 1)


class Spearman(_Spearman, Absolute):
    """Conditional Spearman's rho: Definition 8 of the supplement."""

    @staticmethod
    def bound(n: int, blocks: int) -> Fraction:
        return sensitivity.spearman(n, blocks)


class SignedSpearman(_Spearman, Signed):
    """The same with signs, so that blocks of opposite signs cancel."""

    @staticmethod
    def bound(n: int, blocks: int) -> Fraction:
        return sensitivity.signed_spearman(n, blocks)
