"""Scales: where a value lies at a public fraction of the way between two bounds.

Everything is exact, or rounded to a number of digits that is fixed here, and nothing depends on
the platform or on a setting of the process: `decimal` computes roots, logarithms and exponentials
correctly rounded, in a context of its own.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from dpmic_jax.data.limits import NumberLimits, Scale, ScaledBounds

# Roots and logarithms are computed to 50 digits and rounded to 40, so that a value that is a short
# number is that number: the cuts of (1, 10^6) by six are the powers of ten.
_COMPUTED, _KEPT = (
    Context(prec, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, capitals=1, clamp=0, traps=[])
    for prec in (50, 40)
)
_HALF = Fraction(1, 2)

Place = Callable[[Fraction], Fraction]


def on_scale(low: float, high: float, scale: Scale = "linear") -> Place:
    """A function that takes a fraction of the way from low to high on a scale to the value there.

    It never decreases. On a linear scale and between breakpoints the value is exact; on other
    scales it is right to 40 digits.
    """
    if not isinstance(scale, str):
        return _between((low, *scale, high))
    if scale == "linear":
        return _between((low, high))
    start, stop = Decimal(low), Decimal(high)
    return _log(start, stop) if scale == "log" else _sqrt(start, stop)


def middle(limits: NumberLimits) -> float:
    """The value halfway between two bounds on their scale, rounded once."""
    scale = limits.scale if isinstance(limits, ScaledBounds) else "linear"
    return float(on_scale(limits[0], limits[1], scale)(_HALF))


def _between(points: tuple[float, ...]) -> Place:
    exact, last = [Fraction(point) for point in points], len(points) - 2

    def place(fraction: Fraction) -> Fraction:
        steps = fraction * (last + 1)
        first = min(steps.__floor__(), last)
        return exact[first] + (exact[first + 1] - exact[first]) * (steps - first)

    return place


def _log(low: Decimal, high: Decimal) -> Place:
    ratio = _COMPUTED.ln(_COMPUTED.divide(high, low))

    def place(fraction: Fraction) -> Fraction:
        power = _COMPUTED.exp(_COMPUTED.multiply(ratio, _decimal(fraction)))
        return Fraction(_KEPT.multiply(low, power))

    return place


def _sqrt(low: Decimal, high: Decimal) -> Place:
    first, last = _COMPUTED.sqrt(low), _COMPUTED.sqrt(high)
    step = _COMPUTED.subtract(last, first)

    def place(fraction: Fraction) -> Fraction:
        root = _COMPUTED.fma(step, _decimal(fraction), first)
        return Fraction(_KEPT.multiply(root, root))

    return place


def _decimal(fraction: Fraction) -> Decimal:
    return _COMPUTED.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
