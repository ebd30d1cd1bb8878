"""Certain bounds on e^-x: two integers on a fixed scale, one below and one above."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

# Bits after the point. The smallest number that matters, e^-60, then keeps 233 of them.
SCALE = 320
_DIGITS = 130  # more than the 97 digits of 2^320, so that rounding is below one unit


class Enclosure(NamedTuple):
    """low <= 2^320 y <= high for some real y >= 0."""

    low: int
    high: int

    def times(self, other: "Enclosure") -> "Enclosure":
        return Enclosure((self.low * other.low) >> SCALE, -((-self.high * other.high) >> SCALE))

    def twice(self) -> "Enclosure":
        return Enclosure(2 * self.low, 2 * self.high)


ONE = Enclosure(2**SCALE, 2**SCALE)


def powers(ratio: Enclosure, count: int) -> list[Enclosure]:
    """1, y, y^2, ... for y in `ratio`."""
    found = [ONE]
    for _ in range(count - 1):
        found.append(found[-1].times(ratio))
    return found


def bells(ratio: Enclosure, count: int) -> list[Enclosure]:
    """1, y, y^4, y^9, ...: from y^(j^2) to the next is a step of y^(2j + 1)."""
    found, step, square = [ONE], ratio, ratio.times(ratio)
    for _ in range(count - 1):
        found.append(found[-1].times(step))
        step = step.times(square)
    return found


@lru_cache(maxsize=256)
def exponential(x: Fraction) -> Enclosure:
    """e^-x for a rational x >= 0.

    `Decimal.exp` is correctly rounded, so the decimal next to its result, on either side, is
    beyond the truth; x is rounded outwards before, the result after.
    """
    if x > 1000:
        return Enclosure(0, 1)
    with localcontext(prec=_DIGITS) as context:
        unit, numerator, denominator = Decimal(2**SCALE), -x.numerator, x.denominator
        context.rounding = ROUND_FLOOR
        low = (Decimal(numerator) / denominator).exp().next_minus() * unit
        context.rounding = ROUND_CEILING
        high = (Decimal(numerator) / denominator).exp().next_plus() * unit
        return Enclosure(
            int(low.to_integral_value(ROUND_FLOOR)), int(high.to_integral_value(ROUND_CEILING))
        )


def growth(x: Fraction) -> Fraction:
    """A lower bound on e^x - 1, for a rational x >= 0."""
    # Beyond 2^92 it makes no difference to any check.
    return Fraction(2**SCALE, exponential(min(x, Fraction(64))).high) - 1


def rounded_up(value: Fraction, bits: int = 128) -> Fraction:
    """The next multiple of 2^-bits, so that certificates stay readable."""
    return Fraction(-(-(value.numerator << bits) // value.denominator), 2**bits)


def exact(name: str, value: float | Fraction) -> Fraction:
    """The rational number that `value` is, refused unless it is finite and above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise TypeError(f"expected {name} to be a float or a Fraction, got {type(value).__name__}")
    if not 0 < value < float("inf"):
        raise ValueError(f"expected 0 < {name} < inf, got {value}")
    return Fraction(value)


def integer(name: str, value: int, least: int, most: int) -> int:
    """`value`, refused unless it is an integer in the range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected {name} to be an int, got {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"expected {least} <= {name} <= {most}, got {value}")
    return value
