"""How far one record can move a rank test: what holds, and what was published.

Neighbours differ in one of n records, which may also change its block; n and the number k of
blocks are public. docs/causal_sensitivity.md has the proofs. Everything is a rational number, no
smaller than the real one.

With w(m) the weight of a block of m records, and W the least sum of weights that n records in k
blocks can have (even blocks: w is convex), a score moves by c / sqrt(W) at most. No score is above
the root of its own sum of weights, so that small blocks cannot do more than moderate ones.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt

from dpmic_jax.dp.arithmetic.intervals import integer

_FINE = 2**64  # roots are rounded to multiples of 1 / _FINE


def tau(n: int) -> Fraction:
    """Of |tau|, one record replaced: 4/n, attained from n = 4 on (Theorem 1)."""
    return min(Fraction(1), Fraction(4, _records(n)))


def tau_inserted(n: int) -> Fraction:
    """The same for one record more than n: 4 / (n + 1), attained from n = 3 on."""
    return min(Fraction(1), Fraction(4, _records(n) + 1))


def rho(n: int) -> Fraction:
    """Of |rho|, one record replaced: 6 / (n + 1), attained from n = 5 on (Theorem 2)."""
    return min(Fraction(1), Fraction(6, _records(n) + 1))


def rho_inserted(n: int) -> Fraction:
    """The same for one record more than n: 6 / (n + 2), attained from n = 4 on."""
    return min(Fraction(1), Fraction(6, _records(n) + 2))


def kendall(n: int, blocks: int) -> Fraction:
    """Of the conditional form with absolute values: 9 / sqrt(W) in one block, else 45/4 (limits).

    c = 18 m / (2m + 7) for one block, 9 m (5m + 9) / ((2m + 5)(2m + 7)) for more, m = n - 1.
    """
    m = _records(n) - 1
    if blocks == 1:
        return _replaced(Fraction(18 * m, 2 * m + 7), n, blocks, weight_tau)
    return _replaced(
        Fraction(9 * m * (5 * m + 9), (2 * m + 5) * (2 * m + 7)), n, blocks, weight_tau
    )


def signed_kendall(n: int, blocks: int) -> Fraction:
    """Of the signed form: 27/2 / sqrt(W) in the limit, c = 18 m (3m + 4) / ((2m + 5)(2m + 7))."""
    if blocks == 1:
        return kendall(n, 1)
    m = _records(n) - 1
    return _replaced(
        Fraction(18 * m * (3 * m + 4), (2 * m + 5) * (2 * m + 7)), n, blocks, weight_tau
    )


def spearman(n: int, blocks: int) -> Fraction:
    """Of the conditional form with absolute values: 6 / sqrt(W) in one block, else 8 (limits).

    c = 6 m / (m + 2) for one block, (8m - 2) / (m + 2) for more, m = n - 1.
    """
    m = _records(n) - 1
    top = 6 * m if blocks == 1 else max(8 * m - 2, 0)
    return _replaced(Fraction(top, m + 2), n, blocks, weight_rho)


def signed_spearman(n: int, blocks: int) -> Fraction:
    """Of the signed form: 10 / sqrt(W) in the limit, c = (10m - 4) / (m + 2)."""
    if blocks == 1:
        return spearman(n, 1)
    m = _records(n) - 1
    return _replaced(Fraction(max(10 * m - 4, 0), m + 2), n, blocks, weight_rho)


def kendall_inserted(n: int, blocks: int) -> Fraction:
    """Of `kendall`, for one record more than n: 63/8 / sqrt(W) in the limit, W of n + 1 records.

    c = 63 n (n + 2) / (2 (2n + 5)(2n + 7)).
    """
    c = Fraction(63 * _records(n) * (n + 2), 2 * (2 * n + 5) * (2 * n + 7))
    return _over_root(c, n + 1, blocks, weight_tau, step=Fraction(0))


def spearman_inserted(n: int, blocks: int) -> Fraction:
    """Of `spearman`, for one record more than n: 11/2 / sqrt(W), c = (11n - 2) / (2 (n + 2))."""
    c = Fraction(11 * _records(n) - 2, 2 * (n + 2))
    return _over_root(c, n + 1, blocks, weight_rho, step=Fraction(0))


def weight_tau(m: int) -> Fraction:
    """Of a block of m records: 9 m (m - 1) / (2 (2m + 5)); it grows by less than 9/4 a record."""
    return Fraction(9 * m * (m - 1), 2 * (2 * m + 5))


def weight_rho(m: int) -> Fraction:
    """Of a block of m records: m - 1, and 0 for an empty one."""
    return Fraction(max(m - 1, 0))


def least_weight(n: int, blocks: int, weight: Callable[[int], Fraction]) -> Fraction:
    """The least sum of weights of n records in so many blocks: the blocks are even."""
    less, longer = divmod(n, blocks)
    return (blocks - longer) * weight(less) + longer * weight(less + 1)


def g_statistic(n: int) -> Fraction:
    """Of G = 2 sum O ln(O / E) over all blocks: 4 (1 + ln n), a bound that is not sharp.

    Of the chi-square statistic there is none of use: one record moves it from n to 0.
    """
    with localcontext(prec=40):
        return 4 * (1 + Fraction(Decimal(_records(n)).ln() + Decimal("1e-30")))


def published_tau(n: int) -> Fraction:
    """Theorem 6: 2 / (n - 1). It does not hold: its proof bounds increases only."""
    return Fraction(2, n - 1)


def published_kendall(n: int, blocks: int, least: int) -> Fraction:
    """Theorem 7, as its proof ends, for blocks of `least` records or more. It does not hold.

    (27/4 + 9 / (2 least)) / sqrt(c (n - k)) with c = 9 least / (2 (2 least + 5)); about
    9/2 / sqrt(n - k). (The theorem itself has sqrt(n - 1).)
    """
    c = Fraction(9 * least, 2 * (2 * least + 5))
    return (Fraction(27, 4) + Fraction(9, 2 * least)) / root(c * (n - blocks))


def published_rho(n: int) -> Fraction:
    """Theorem 8: 30 / n. It holds, five times over."""
    return Fraction(30, n)


def published_spearman(n: int, blocks: int, least: int) -> Fraction:
    """Theorem 9, as its proof ends: (31 + 30 / least) / sqrt(n - k). It holds."""
    return (31 + Fraction(30, least)) / root(Fraction(n - blocks))


def root(value: Fraction) -> Fraction:
    """A rational at or below the root, by 2^-64 at most."""
    return Fraction(isqrt(int(value * _FINE**2)), _FINE)


def _over_root(
    c: Fraction,
    n: int,
    blocks: int,
    weight: Callable[[int], Fraction],
    *,
    step: Fraction,
) -> Fraction:
    """Largest min(c / sqrt(V), sqrt(V + step)) for V >= W, and at most sqrt(w(n)).

    V is the smaller sum of weights of two neighbours, step the most that the other's is above.
    """
    integer("blocks", blocks, 1, 2**62)
    most = root(weight(n)) + Fraction(1, _FINE)
    # V (V + step) = c^2 where both are equal.
    equal = root(c * c + step * step / 4) - step / 2
    least = root(max(least_weight(n, blocks, weight), equal, Fraction(0)))
    return min(most, c / least) if least else most


def _replaced(c: Fraction, n: int, blocks: int, weight: Callable[[int], Fraction]) -> Fraction:
    """One block gains at most what the largest one can, since weights are convex."""
    return _over_root(c, n, blocks, weight, step=weight(n) - weight(n - 1))


def _records(n: int) -> int:
    return integer("n", n, 1, 2**31 - 1)
