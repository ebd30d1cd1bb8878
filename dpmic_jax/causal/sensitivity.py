"""Sensitivities of the rank tests: bounds that are proven here, and bounds as published.

Neighbours differ in one of n records, which may also change its block; n and the number k of
blocks are public. docs/causal_sensitivity.md has the proofs and the theorems' numbers. Every bound
is a rational number, no smaller than the real one.

Let w(m) be the weight of a block of m records, and W the least sum of weights that n records in k
blocks can have, attained by even blocks since w is convex. A score moves by c / sqrt(W) at most. No
score exceeds the root of its own sum of weights, which bounds the move where blocks are small and
W is near 0.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt

from dpmic_jax.dp.arithmetic.intervals import integer

_FINE = 2**64  # square roots are rounded to multiples of 1 / _FINE


def tau(n: int) -> Fraction:
    """Sensitivity of |tau| to a replaced record: 4/n, attained for n >= 4 (Theorem 1)."""
    return min(Fraction(1), Fraction(4, _records(n)))


def tau_inserted(n: int) -> Fraction:
    """Sensitivity of |tau| to a record added to n: 4 / (n + 1), attained for n >= 3."""
    return min(Fraction(1), Fraction(4, _records(n) + 1))


def rho(n: int) -> Fraction:
    """Sensitivity of |rho| to a replaced record: 6 / (n + 1), attained for n >= 5 (Theorem 2)."""
    return min(Fraction(1), Fraction(6, _records(n) + 1))


def rho_inserted(n: int) -> Fraction:
    """Sensitivity of |rho| to a record added to n: 6 / (n + 2), attained for n >= 4."""
    return min(Fraction(1), Fraction(6, _records(n) + 2))


def kendall(n: int, blocks: int) -> Fraction:
    """Sensitivity of the conditional tau with absolute values.

    c = 18 m / (2m + 7) < 9 for one block, 9 m (5m + 9) / ((2m + 5)(2m + 7)) < 45/4 for more,
    m = n - 1.
    """
    m = _records(n) - 1
    if blocks == 1:
        return _replaced(Fraction(18 * m, 2 * m + 7), n, blocks, weight_tau)
    return _replaced(
        Fraction(9 * m * (5 * m + 9), (2 * m + 5) * (2 * m + 7)), n, blocks, weight_tau
    )


def signed_kendall(n: int, blocks: int) -> Fraction:
    """Sensitivity of the signed conditional tau: c = 18 m (3m + 4) / ((2m + 5)(2m + 7)) < 27/2."""
    if blocks == 1:
        return kendall(n, 1)
    m = _records(n) - 1
    return _replaced(
        Fraction(18 * m * (3 * m + 4), (2 * m + 5) * (2 * m + 7)), n, blocks, weight_tau
    )


def spearman(n: int, blocks: int) -> Fraction:
    """Sensitivity of the conditional rho with absolute values.

    c = 6 m / (m + 2) < 6 for one block, (8m - 2) / (m + 2) < 8 for more, m = n - 1.
    """
    m = _records(n) - 1
    top = 6 * m if blocks == 1 else max(8 * m - 2, 0)  # 0 for a single record, m = 0
    return _replaced(Fraction(top, m + 2), n, blocks, weight_rho)


def signed_spearman(n: int, blocks: int) -> Fraction:
    """Sensitivity of the signed conditional rho: c = (10m - 4) / (m + 2) < 10."""
    if blocks == 1:
        return spearman(n, 1)
    m = _records(n) - 1
    return _replaced(Fraction(max(10 * m - 4, 0), m + 2), n, blocks, weight_rho)


def kendall_inserted(n: int, blocks: int) -> Fraction:
    """Sensitivity of the conditional tau with absolute values to a record added to n.

    c = 63 n (n + 2) / (2 (2n + 5)(2n + 7)) < 63/8, with W of n + 1 records.
    """
    c = Fraction(63 * _records(n) * (n + 2), 2 * (2 * n + 5) * (2 * n + 7))
    return _over_root(c, n + 1, blocks, weight_tau, step=Fraction(0))


def spearman_inserted(n: int, blocks: int) -> Fraction:
    """Sensitivity of the conditional rho with absolute values to a record added to n.

    c = (11n - 2) / (2 (n + 2)) < 11/2, with W of n + 1 records.
    """
    c = Fraction(11 * _records(n) - 2, 2 * (n + 2))
    return _over_root(c, n + 1, blocks, weight_rho, step=Fraction(0))


def weight_tau(m: int) -> Fraction:
    """Weight of a block of m records: 9 m (m - 1) / (2 (2m + 5)); a record adds less than 9/4."""
    return Fraction(9 * m * (m - 1), 2 * (2 * m + 5))


def weight_rho(m: int) -> Fraction:
    """Weight of a block of m records: m - 1, and 0 for an empty block."""
    return Fraction(max(m - 1, 0))


def least_weight(n: int, blocks: int, weight: Callable[[int], Fraction]) -> Fraction:
    """The least sum of weights of n records in `blocks` blocks, attained by even blocks."""
    size, larger = divmod(n, blocks)
    return (blocks - larger) * weight(size) + larger * weight(size + 1)


def g_statistic(n: int) -> Fraction:
    """Bound on the sensitivity of G = 2 sum O ln(O / E) over all blocks: 4 (1 + ln n), not sharp.

    The chi-square statistic has no useful bound: one record can move it from n to 0.
    """
    # 1e-30 is far above the rounding error of 40 digits, so the bound stays an upper one.
    with localcontext(prec=40):
        return 4 * (1 + Fraction(Decimal(_records(n)).ln() + Decimal("1e-30")))


def published_tau(n: int) -> Fraction:
    """Theorem 6 of the supplement: 2 / (n - 1). False: its proof bounds increases only."""
    return Fraction(2, n - 1)


def published_kendall(n: int, blocks: int, least: int) -> Fraction:
    """Theorem 7 of the supplement for blocks of at least `least` records. It does not hold.

    The last line of its proof: (27/4 + 9 / (2 least)) / sqrt(c (n - k)) with
    c = 9 least / (2 (2 least + 5)); about 9/2 / sqrt(n - k). (The theorem states sqrt(n - 1).)
    """
    c = Fraction(9 * least, 2 * (2 * least + 5))
    return (Fraction(27, 4) + Fraction(9, 2 * least)) / root(c * (n - blocks))


def published_rho(n: int) -> Fraction:
    """Theorem 8 of the supplement: 30 / n. It holds, and is five times too large."""
    return Fraction(30, n)


def published_spearman(n: int, blocks: int, least: int) -> Fraction:
    """Theorem 9 of the supplement, by the last line of its proof. It holds.

    (31 + 30 / least) / sqrt(n - k), for blocks of at least `least` records.
    """
    return (31 + Fraction(30, least)) / root(Fraction(n - blocks))


def root(value: Fraction) -> Fraction:
    """The square root, rounded down to a multiple of 2^-64."""
    return Fraction(isqrt(int(value * _FINE**2)), _FINE)


def _over_root(
    c: Fraction,
    n: int,
    blocks: int,
    weight: Callable[[int], Fraction],
    *,
    step: Fraction,
) -> Fraction:
    """The largest min(c / sqrt(V), sqrt(V + step)) for V >= W, and at most sqrt(w(n)).

    V is the smaller sum of weights of two neighbours; the other sum is at most V + step.
    """
    integer("blocks", blocks, 1, 2**62)
    # No score is larger than this; `root` rounds down, so one unit is added.
    largest = root(weight(n)) + Fraction(1, _FINE)
    # The first term falls with V and the second grows; they are equal where V (V + step) = c^2.
    # V and its root are rounded down, so that c / sqrt(V) is rounded up.
    equal = root(c * c + step * step / 4) - step / 2
    least = root(max(least_weight(n, blocks, weight), equal, Fraction(0)))
    return min(largest, c / least) if least else largest


def _replaced(c: Fraction, n: int, blocks: int, weight: Callable[[int], Fraction]) -> Fraction:
    """The bound for a replaced record.

    Weights are convex, so a block gains at most what a block of n - 1 records gains.
    """
    return _over_root(c, n, blocks, weight, step=weight(n) - weight(n - 1))


def _records(n: int) -> int:
    return integer("n", n, 1, 2**31 - 1)
