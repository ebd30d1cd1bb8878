"""Max-information of epsilon-DP over independent records, sharper than Theorem 1.4.

Given x_1 ... x_(i-1), the probability of a result a differs by at most e^epsilon between values of
x_i, so the ratio of posterior to prior of X_i is between m and m e^epsilon for some m. The moment
of such a ratio r of mean 1 is largest if it takes two values, and its maximum over their weights
is (Theorem B of docs/max_information.md)

    ln E[r^(1+s)] = (1+s) L((1+s) epsilon/2) - s L(s epsilon/2) - L(epsilon/2)

with L(x) = ln(sinh(x)/x). It is below s (1+s) epsilon^2/8. Each record adds this much to
ln E[e^(sZ)].
"""

import math

import numpy as np

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive, check_positive_int
from dpmic_jax.dp.max_information.moments import Moment, MomentTheorem

NAME = "Theorem B (epsilon-DP)"


def pure(epsilon: float, n: int) -> MomentTheorem:
    """The bound for an epsilon-DP computation on n independent records."""
    epsilon, n = check_positive("epsilon", epsilon), check_positive_int("n", n)

    def moment(s: np.ndarray) -> Moment:
        return Moment(n * log_moment(s, epsilon), np.zeros_like(s))

    return MomentTheorem(theorem=NAME, moment=moment)


def log_moment(s: np.ndarray, epsilon: float) -> np.ndarray:
    """The largest ln E[r^(1+s)] of a ratio r in [m, m e^epsilon] of mean 1, rounded up."""
    half, t = np.asarray(epsilon / 2), 1 + s
    first, second, third = t * _log_sinhc(t * half), s * _log_sinhc(s * half), _log_sinhc(half)
    # The terms cancel, so the margin for rounding is relative to their sum and not to the result.
    return first - second - third + 2.0**-48 * (first + second + third)


def mean(epsilon: float) -> float:
    """The largest mean of Z_i: u - 1 - ln u, u = epsilon / (1 - e^-epsilon); about epsilon^2/8.

    It is computed as L(x) + x L'(x) at x = epsilon/2, which loses no digits.
    """
    half = check_positive("epsilon", epsilon) / 2
    # x coth x - 1; its series alternates, so the first terms, up to a positive one, bound it.
    series = half**2 / 3 - half**4 / 45 + 2 * half**6 / 945
    slope = series if half < 0.1 else half / math.tanh(half) - 1
    return (float(_log_sinhc(np.asarray(half))) + slope) * (1 + 2.0**-40)


def _log_sinhc(x: np.ndarray) -> np.ndarray:
    """L(x) = ln(sinh(x)/x), to a few units in the last place."""
    # Below 1 by the series of sinh(x)/x - 1, above by ln sinh x = x + ln(1 - e^-2x) - ln 2.
    small = np.minimum(x, 1.0)
    square, term, total = small * small, np.ones_like(small), np.zeros_like(small)
    for k in range(1, 12):
        term = term * square / (2 * k * (2 * k + 1))
        total = total + term
    large = np.maximum(x, 1.0)
    return np.where(
        x < 1, np.log1p(total), large + np.log1p(-np.exp(-2 * large)) - np.log(2 * large)
    )
