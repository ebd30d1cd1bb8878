"""Convert between zCDP and (epsilon, delta)-DP by a tight bound, with conservative rounding.

A rho-zCDP mechanism is (epsilon, delta)-DP for every epsilon >= 0 and order alpha > 1 with

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)

(Canonne, Kamath and Steinke 2020, Proposition 12). Written with a = alpha - 1, ln delta is
a (alpha rho - epsilon) + a ln a - alpha ln alpha. Every order gives a valid bound, so an
order that is not quite the best one costs accuracy, never privacy.
"""

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpmic_jax.dp.arithmetic.exact_decimal import (
    ceil_to_float,
    check_positive,
    check_probability,
    floor_to_float,
)

# A factor that exceeds all rounding errors of the double precision formulas below together.
UP = 1 + 2.0**-36

# Decimal arithmetic is correctly rounded, so a budget's rho is the same on every machine.
_DIGITS = decimal.Context(prec=60)
_GOLDEN = (Decimal(5).sqrt(_DIGITS) - 1) / 2


def deltas(rho: float, epsilons: np.ndarray) -> np.ndarray:
    """The delta of a rho-zCDP mechanism at each epsilon, rounded up.

    At a negative epsilon it is 1 - e^epsilon (1 - delta(-epsilon)): for neighbours P and Q,
    the excess of P over e^epsilon Q is 1 - e^epsilon plus that of e^epsilon Q over P.
    """
    above = _deltas(rho, np.abs(epsilons))
    negative = np.minimum(epsilons, 0)
    return np.minimum((-np.expm1(negative) + np.exp(negative) * above) * UP, 1.0)


def _deltas(rho: float, epsilons: np.ndarray) -> np.ndarray:
    # The best order solves (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha) = 0. The left side is
    # increasing and concave in alpha and not positive at either start: Newton climbs to the root.
    a = np.maximum((epsilons - rho) / (2 * rho), max(np.exp(-3 * rho), 1e-300))
    for _ in range(40):
        slope = 2 * rho + 1 / (a * (1 + a))
        a = a + (epsilons - (2 * a + 1) * rho + np.log1p(1 / a)) / slope
    log_delta = a * ((1 + a) * rho - epsilons) - a * np.log1p(1 / a) - np.log1p(a)
    # Clipped so that no positive delta underflows to zero.
    return np.exp(np.clip(log_delta, -690, 0))


@lru_cache(maxsize=256)
def epsilon_for(rho: float, delta: float) -> float:
    """The smallest epsilon for which the bound makes rho-zCDP (epsilon, delta)-DP, rounded up."""
    rho_, log_delta = Decimal(repr(check_positive("rho", rho))), _log_delta(delta)

    def epsilon(log_a: Decimal) -> Decimal:
        a, gap = _order(log_a)
        return (1 + a) * rho_ - (log_delta + gap) / a

    return ceil_to_float(Fraction(max(_least(epsilon), Decimal(0))) * (1 + Fraction(1, 10**30)))


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """The largest rho for which the bound makes rho-zCDP (epsilon, delta)-DP, rounded down."""
    epsilon_, log_delta = Decimal(repr(check_positive("epsilon", epsilon))), _log_delta(delta)

    def minus_rho(log_a: Decimal) -> Decimal:
        a, gap = _order(log_a)
        return -(epsilon_ + (log_delta + gap) / a) / (1 + a)

    return floor_to_float(Fraction(max(-_least(minus_rho), Decimal(0))) * (1 - Fraction(1, 10**30)))


def _log_delta(delta: float) -> Decimal:
    if not check_probability("delta", delta):
        raise ValueError("expected 0 < delta < 1; zCDP implies no (epsilon, 0)-DP")
    return Decimal(repr(float(delta))).ln(_DIGITS)


def _order(log_a: Decimal) -> tuple[Decimal, Decimal]:
    """a = alpha - 1, and alpha ln alpha - a ln a, from ln a."""
    a = log_a.exp()
    return a, (1 + a) * (1 + a).ln() - a * log_a


def _least(value: Callable[[Decimal], Decimal]) -> Decimal:
    """The minimum of a unimodal function of ln(alpha - 1), by golden section search."""
    with decimal.localcontext(_DIGITS):
        # alpha - 1 from e^-50 to e^60: a better order outside would cost accuracy, not privacy.
        # 130 steps shrink the bracket by a factor of 10^27.
        low, high = Decimal(-50), Decimal(60)
        inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
        found = [value(inner[0]), value(inner[1])]
        for _ in range(130):
            if found[0] < found[1]:
                high, inner[1], found[1] = inner[1], inner[0], found[0]
                inner[0] = high - _GOLDEN * (high - low)
                found[0] = value(inner[0])
            else:
                low, inner[0], found[0] = inner[0], inner[1], found[1]
                inner[1] = low + _GOLDEN * (high - low)
                found[1] = value(inner[1])
        return min(found)
