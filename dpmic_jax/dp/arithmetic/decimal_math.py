"""Logarithms with digits to spare, so that a promise is rounded to the safe side and no further."""

import decimal
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from fractions import Fraction

from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float

_MARGIN = Fraction(1, 10**30)
HALF = Decimal("0.5")


def precise(*small: float) -> AbstractContextManager[decimal.Context]:
    """A decimal context in which fourth powers of `small` can cancel and 60 digits are left."""
    lost = max(0, *(-math.floor(math.log10(number)) for number in small))
    return decimal.localcontext(
        decimal.Context(prec=100 + 4 * lost, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    )


def exactly(value: float) -> Decimal:
    """The decimal number that the caller wrote."""
    return Decimal(repr(float(value)))


def up(value: Decimal) -> float:
    """The float next above a value that is known to more than 30 digits."""
    return ceil_to_float(Fraction(value) * (1 + _MARGIN))


def x_log_x(value: Decimal) -> Decimal:
    return value * value.ln() if value else Decimal(0)


def entropy(chance: Decimal) -> Decimal:
    """h(p) = -p ln p - (1-p) ln(1-p), nats."""
    return -x_log_x(chance) - x_log_x(1 - chance)


def symmetric_information(delta: Decimal) -> Decimal:
    """Capacity of the binary symmetric channel whose two rows are delta apart.

    ln 2 - h((1 - delta)/2) = ((1 + delta) ln(1 + delta) + (1 - delta) ln(1 - delta)) / 2.
    """
    return HALF * (x_log_x(1 + delta) + x_log_x(1 - delta))


def variation_by(
    growing: Callable[[Decimal], tuple[Decimal, Decimal]], nats: Decimal, *, most: float
) -> float:
    """The delta at which a convex function of it reaches `nats`, rounded up; 1 if none below does.

    Newton's method from above: a tangent of a convex function never leads below the root, so
    wherever it stops delta is safe.

    Args:
      growing: delta -> its value and slope.
      nats: to reach.
      most: an upper bound on the delta.
    """
    delta, tries = exactly(min(most, 0.5)), 1
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
    plus, minus = (1 + delta).ln(), (1 - delta).ln()
    return HALF * ((1 + delta) * plus + (1 - delta) * minus), HALF * (plus - minus)


def symmetric_divergence_and_slope(delta: Decimal) -> tuple[Decimal, Decimal]:
    """Divergence of the rows of that channel: delta ln((1 + delta) / (1 - delta))."""
    log_odds = (1 + delta).ln() - (1 - delta).ln()
    return delta * log_odds, log_odds + 2 * delta / (1 - delta * delta)
