"""Max-information of (epsilon, delta)-DP and of zCDP over independent records, by truncation.

For record i let J be the distribution of (a, x_i) given x_1 ... x_(i-1), and K that of independent
copies. If J(Z_i > c) and K(Z_i < -c) are at most eta, then for all s, d > 0, outside an event of
probability n eta (1 + e^-c + 1/d) (Theorem C of docs/max_information.md),

    ln E[e^(sZ)] <= n ln[cosh((s + 1/2) c) / cosh(c/2)] + d sinh(s c) cosh(c/2)
                                                          / (sinh(c) cosh((s + 1/2) c)).

The first term is at most n s (1+s) c^2/2. The theorem holds for every epsilon.
"""

from collections.abc import Callable, Sequence

import numpy as np

from dpmic_jax.dp.arithmetic.exact_decimal import (
    check_positive,
    check_positive_int,
    check_probability,
)
from dpmic_jax.dp.max_information.moments import Moment, MomentTheorem

_SHARES = (1e-4, 1e6)  # the range of d that is searched, relative to about the best d
_UP = 1 + 2.0**-36  # a factor above the rounding errors


def approximate(epsilon: float, delta: float, n: int) -> MomentTheorem:
    """The bound for an (epsilon, delta)-DP computation on n independent records."""
    return profiled([(epsilon, delta)], n)


def profiled(curve: Sequence[tuple[float, float]], n: int) -> MomentTheorem:
    """The bound for a computation that is (epsilon, delta)-DP at every point of `curve`."""
    epsilons = np.array([check_positive("epsilon", epsilon) for epsilon, _ in curve])
    deltas = np.array([check_probability("delta", delta) for _, delta in curve])
    low = epsilons.min()

    def cut(excess: np.ndarray) -> np.ndarray:
        return low + excess

    def tail(c: np.ndarray) -> np.ndarray:
        return curve_tail(c, epsilons, deltas)

    width = (low * 1e-9, epsilons.max() - low + 8)
    return _theorem("Theorem C ((epsilon, delta)-DP)", cut, width, tail, n)


def concentrated(rho: float, n: int) -> MomentTheorem:
    """The bound for a rho-zCDP computation on n independent records."""
    rho = check_positive("rho", rho)

    # The inverse of `rho_tail`: eta = e^-x at c = cut(x).
    def cut(log_tail: np.ndarray) -> np.ndarray:
        return rho + 2 * np.sqrt(rho * log_tail)

    return _theorem("Theorem C (zCDP)", cut, (0.1, 700.0), lambda c: rho_tail(c, rho), n)


def curve_tail(c: np.ndarray, epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """J(Z_i > c) and K(Z_i < -c) are at most delta / (1 - e^(epsilon - c)) for epsilon < c.

    On Z_i > c, J <= e^epsilon K + delta and K <= e^-c J; on Z_i < -c, J and K are exchanged.
    """
    above = c[..., None] - epsilons
    each = np.where(above > 0, -deltas / np.expm1(-np.maximum(above, 1e-300)), np.inf)
    return each.min(axis=-1)


def rho_tail(c: np.ndarray, rho: float) -> np.ndarray:
    """J(Z_i > c) and K(Z_i < -c) are at most e^(-(c - rho)^2 / (4 rho)) for c >= rho.

    The zCDP bound on Rényi divergences also holds for P(a | x_1 ... x_i) and its mean over x_i, as
    they are quasi-convex. The tail follows by Markov's inequality for e^(u Z_i), with
    u = (c - rho) / (2 rho).
    """
    return np.exp(-(np.maximum(c - rho, 0) ** 2) / (4 * rho)) * _UP


def _theorem(
    name: str,
    cut: Callable[[np.ndarray], np.ndarray],
    width: tuple[float, float],
    tail: Callable[[np.ndarray], np.ndarray],
    n: int,
) -> MomentTheorem:
    """Theorem C, with c = cut(x) for x in `width`."""
    n = check_positive_int("n", n)

    def moment(s: np.ndarray, x: np.ndarray, share: np.ndarray) -> Moment:
        c = cut(x)
        base, weight = step(s, c)
        tails = n * tail(c) * _UP
        # d is scaled as the best d is, so that the best share varies little.
        d = share * np.sqrt((1 + s) * np.maximum(tails, 1e-300) / weight)
        failure = tails * (1 + np.exp(-c) + 1 / d) * _UP
        return Moment((n * base + d * weight) * _UP, failure)

    return MomentTheorem(theorem=name, moment=moment, free=(width, _SHARES))


def step(s: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln M and w with E[r^(1+s); |ln r| <= c] <= M (1 + w P(r < e^-c)) for every r of mean 1.

    M = cosh((s + 1/2) c) / cosh(c/2), w = sinh(s c) / (sinh(c) M).
    """
    # For small a, ln cosh a - ln cosh b = ln(1 + 2 sinh((a+b)/2) sinh((a-b)/2) / cosh b), without
    # cancellation; for large a the difference itself, without overflow.
    a, b = (s + 0.5) * c, c / 2
    near = np.log1p(2 * np.sinh(_low(a + b) / 2) * np.sinh(_low(a - b) / 2) / np.cosh(_low(b)))
    far = _log_cosh(a) - _log_cosh(b)
    base = np.where(a < 1, near, far)
    # sinh(s c) / sinh(c), without overflow
    return base, np.exp((s - 1) * c - base) * np.expm1(-2 * s * c) / np.expm1(-2 * c)


def _low(x: np.ndarray) -> np.ndarray:
    """x where the formula for small a is used; a cap elsewhere, against overflow."""
    return np.minimum(x, 4.0)


def _log_cosh(x: np.ndarray) -> np.ndarray:
    """ln cosh x for x >= 0, without overflow."""
    return x + np.log1p(np.exp(-2 * x)) - np.log(2)
