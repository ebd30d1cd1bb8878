"""The exact (epsilon, delta) curve of Gaussian differential privacy, with conservative rounding.

A mechanism is mu-GDP (Dong, Roth and Su 2022) if its outputs tell two neighbours apart no better
than one draw tells N(0, 1) from N(mu, 1). Gaussian noise of standard deviation sigma on a vector
that moves by at most s in the Euclidean norm is s/sigma-GDP. With Phi and phi the distribution
function and density of N(0, 1), mu-GDP implies (epsilon, delta)-DP for every epsilon with

    delta = Phi(-x) - e^epsilon Phi(-y),   x = epsilon/mu - mu/2,   y = epsilon/mu + mu/2,

and Gaussian noise has no smaller delta (Balle and Wang 2018, Theorem 8). Through rho = mu^2/2 and
the conversion from zCDP the delta would be several times as large.

The noise of this library is discrete, and its outputs are within a total variation of those of a
mechanism that is exactly mu-GDP (`dp.noise.gaussian.rounding_error`). This is the delta of
`events.GaussianDP`.
"""

import decimal
import math
from decimal import Decimal
from functools import lru_cache

import numpy as np

from dpmic_jax.dp.accounting.zcdp import UP
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.decimal_math import HALF, exactly, up
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, check_probability

# Phi(-39) is below the smallest positive float.
_FAR = 39
# Up to here Phi(-y) is computed from its series; beyond, a simple bound is as good.
_SERIES = 50


def deltas(mu: float, epsilons: np.ndarray) -> np.ndarray:
    """The delta of a mu-GDP mechanism at each epsilon, rounded up.

    At a negative epsilon it is 1 - e^epsilon (1 - delta(-epsilon)), as in `zcdp.deltas`.
    """
    above = _deltas(mu, np.abs(epsilons))
    negative = np.minimum(epsilons, 0)
    return np.minimum((-np.expm1(negative) + np.exp(negative) * above) * UP, 1.0)


def _deltas(mu: float, epsilons: np.ndarray) -> np.ndarray:
    """phi(x) (R(x) - R(y)), with R = Phi(-x) / phi(x), since e^epsilon phi(y) = phi(x)."""
    # Imported here, so that a ledger which only records charges does not load it.
    from scipy.special import erfcx

    with np.errstate(over="ignore"):
        ratio = np.minimum(epsilons / mu, 1e200)
    # All roundings of x go down, since delta decreases in x; so does the cut at 37, beyond which
    # phi underflows.
    x = ratio - mu / 2 - 2.0**-50 * (ratio + mu / 2)
    near = np.clip(x, -8, 37)
    first, second = erfcx(near / math.sqrt(2)), erfcx((near + mu) / math.sqrt(2))
    # The margin is far above the errors of `erfcx`, of which a difference may keep all.
    gap = first - second + 2.0**-45 * (first + second)
    found = np.exp(-(near**2) / 2) * gap / 2
    # Phi(8) is 1 in floats.
    return np.where(x < near, 1.0, found * UP)


def delta_for(mu: float, epsilon: float) -> float:
    """The smallest delta at which every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    As Phi(-x) = 1/2 - phi(x) s(x), with s(x) = x + x^3/3 + x^5/(3 5) + ..., the delta is
    (1 - e^epsilon)/2 + phi(x) (s(y) - s(x)). The precision grows with the digits that cancel.
    It is the same on every machine.
    """
    mu = check_positive("mu", mu)
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
    ratio, half = as_fraction(epsilon) / as_fraction(mu), as_fraction(mu) / 2
    low, high = ratio - half, ratio + half
    if abs(low) > _FAR:
        return 1.0 if low < 0 else math.ulp(0.0)
    # Terms are at most e^epsilon, and delta is at least about phi(x) mu / (x^2 + 3).
    lost = float(min(high, _SERIES)) ** 2 / (2 * math.log(10)) + abs(math.log10(mu))
    with decimal.localcontext(decimal.Context(prec=70 + math.ceil(lost))) as context:
        exact_mu, exact_epsilon = exactly(mu), exactly(epsilon)
        x, y = exact_epsilon / exact_mu - exact_mu / 2, exact_epsilon / exact_mu + exact_mu / 2
        density = (-x * x / 2).exp() / (2 * _pi(context.prec)).sqrt()
        below = HALF - density * _series(x)
        if high <= _SERIES:
            above = HALF * exact_epsilon.exp() - density * _series(y)
        else:
            above = density * y / (1 + y * y)  # Gordon (1941): a lower bound
        return min(up(below - above), 1.0)


@lru_cache(maxsize=256)
def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP is (epsilon, delta)-DP, to 12 digits, rounded down."""
    check_positive("epsilon", epsilon)
    if not check_probability("delta", delta):
        raise ValueError("expected 0 < delta < 1; Gaussian DP implies no (epsilon, 0)-DP")

    def within(mu: float) -> bool:
        return delta_for(mu, epsilon) <= delta

    # It holds at the start: either x is above 50 there, or the delta at epsilon = 0 is below
    # mu / sqrt(2 pi).
    start = max(min(epsilon / 64, math.sqrt(epsilon) / 2), 2 * delta)
    found = doubled(within, start)
    assert found is not None  # `doubled` has no limit here
    return bisect(within, *found, steps=42).holds


def _series(x: Decimal) -> Decimal:
    """s(x) = x + x^3/3 + x^5/(3 5) + ..., in the precision of the context."""
    # Terms that no longer change the sum fall by more than half each: the rest is below the last.
    total, term, odd, square = Decimal(0), x, 1, x * x
    while total + term != total:
        total += term
        odd += 2
        term = term * square / odd
    return total


@lru_cache(maxsize=256)
def _pi(digits: int) -> Decimal:
    """Machin's formula: pi/4 = 4 arctan(1/5) - arctan(1/239)."""
    with decimal.localcontext(decimal.Context(prec=digits + 10)):
        return 4 * (4 * _arctan_of_inverse(5) - _arctan_of_inverse(239))


def _arctan_of_inverse(n: int) -> Decimal:
    """arctan(1/n) = 1/n - 1/(3 n^3) + 1/(5 n^5) - ..."""
    total, power, odd = Decimal(0), Decimal(1) / n, 1
    while total + power / odd != total:
        total += power / odd
        power, odd = -power / (n * n), odd + 2
    return total
