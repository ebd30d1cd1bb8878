"""Decimal logarithms and entropies of high precision, whose results are rounded up only once."""

import decimal
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from fractions import Fraction

from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float

# Relative. Far above the rounding of the 60 digits or more that `precise` leaves, and far below
# the last bit of a float.
_MARGIN = Fraction(1, 10**30)
HALF = Decimal("0.5")


def precise(*small: float) -> AbstractContextManager[decimal.Context]:
    """A decimal context that keeps 60 digits even if terms of order `small`^4 cancel."""
    lost = max(0, *(-math.floor(math.log10(number)) for number in small))
    return decimal.localcontext(
        decimal.Context(prec=100 + 4 * lost, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    )


def exactly(value: float) -> Decimal:
    """The decimal number that the caller wrote: 0.1 is 1/10, not the nearest binary fraction."""
    return Decimal(repr(float(value)))


def up(value: Decimal) -> float:
    """Round a value that is known to more than 30 digits up to a float."""
    return ceil_to_float(Fraction(value) * (1 + _MARGIN))


def x_log_x(value: Decimal) -> Decimal:
    """x ln x, with its limit 0 at x = 0."""
    return value * value.ln() if value else Decimal(0)


def entropy(chance: Decimal) -> Decimal:
    """The binary entropy h(p) = -p ln p - (1-p) ln(1-p), in nats."""
    return -x_log_x(chance) - x_log_x(1 - chance)


def symmetric_information(delta: Decimal) -> Decimal:
    """Capacity in nats of a binary symmetric channel whose rows have total variation delta:

    ln 2 - h((1 - delta)/2) = ((1 + delta) ln(1 + delta) + (1 - delta) ln(1 - delta)) / 2.
    """
    return HALF * (x_log_x(1 + delta) + x_log_x(1 - delta))


def variation_by(
    growing: Callable[[Decimal], tuple[Decimal, Decimal]], nats: Decimal, *, most: float
) -> float:
    """The delta at which an increasing convex function reaches `nats`, rounded up; at most 1.

    Newton's method from above: the tangent of a convex function reaches `nats` at or above the
    root, so every iterate is an upper bound on it, and it is safe to stop at any of them.

    Args:
      growing: maps delta to the function's value and slope there.
      nats: the value to reach.
      most: an upper bound on the root, from a weaker inequality; where Newton's method starts.
    """
    delta, tries = exactly(min(most, 0.5)), 1
    # The start has to be above the root. `most` is cut to 1/2 because the functions have a pole
    # at 1, so step towards 1 until it is.
    while growing(delta)[0] < nats:
        tries += 1
        delta = 1 - HALF**tries
        if tries > 60:
            return 1.0
    for _ in range(100):
        value, slope = growing(delta)
        step = (value - nats) / slope
        delta -= step
        if abs(step) <= delta * Decimal("1e-40"):
            break
    return min(up(delta), 1.0)


def symmetric_information_and_slope(delta: Decimal) -> tuple[Decimal, Decimal]:
    """`symmetric_information` and its derivative, ln((1 + delta) / (1 - delta)) / 2."""
    plus, minus = (1 + delta).ln(), (1 - delta).ln()
    return HALF * ((1 + delta) * plus + (1 - delta) * minus), HALF * (plus - minus)


def symmetric_divergence_and_slope(delta: Decimal) -> tuple[Decimal, Decimal]:
    """KL divergence of that channel's rows, delta ln((1 + delta) / (1 - delta)), and its slope."""
    log_odds = (1 + delta).ln() - (1 - delta).ln()
    return delta * log_odds, log_odds + 2 * delta / (1 - delta * delta)
