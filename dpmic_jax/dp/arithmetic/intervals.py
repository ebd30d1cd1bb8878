"""Interval arithmetic for e^-x: a lower and an upper integer bound in units of 2^-320."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

# Bits after the binary point. The smallest weight in use, e^-60, keeps 233 significant bits.
SCALE = 320
_DIGITS = 130  # 2^320 has 97 digits, so decimal rounding is far below one unit


class Enclosure(NamedTuple):
    """low <= 2^320 y <= high for some real y >= 0."""

    low: int
    high: int

    def times(self, other: "Enclosure") -> "Enclosure":
        """An enclosure of the product, rounded outwards."""
        return Enclosure((self.low * other.low) >> SCALE, -((-self.high * other.high) >> SCALE))

    def twice(self) -> "Enclosure":
        """An enclosure of 2 y, without rounding."""
        return Enclosure(2 * self.low, 2 * self.high)


ONE = Enclosure(2**SCALE, 2**SCALE)


def powers(ratio: Enclosure, count: int) -> list[Enclosure]:
    """Enclosures of 1, y, y^2, ..., y^(count - 1) for y in `ratio`."""
    found = [ONE]
    for _ in range(count - 1):
        found.append(found[-1].times(ratio))
    return found


def bells(ratio: Enclosure, count: int) -> list[Enclosure]:
    """Enclosures of y^(j^2), j = 0 .. count - 1: Gaussian weights for y = e^(-1 / 2 sigma^2).

    From y^(j^2) to the next is a factor of y^(2j + 1).
    """
    found, step, square = [ONE], ratio, ratio.times(ratio)
    for _ in range(count - 1):
        found.append(found[-1].times(step))
        step = step.times(square)
    return found


@lru_cache(maxsize=256)
def exponential(x: Fraction) -> Enclosure:
    """An enclosure of e^-x for a rational x >= 0.

    `Decimal.exp` is correctly rounded, so the true value lies between the decimals next to its
    result. x is rounded outwards before, and the bounds are rounded outwards after.
    """
    if x > 1000:
        return Enclosure(0, 1)  # e^-1000 is below one unit, 2^-320
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
    # Capped at e^64 - 1, about 2^92: a lower bound may be smaller, and no check needs more.
    return Fraction(2**SCALE, exponential(min(x, Fraction(64))).high) - 1


def rounded_up(value: Fraction, bits: int = 128) -> Fraction:
    """Round up to a multiple of 2^-bits, so that certificates have short fractions."""
    return Fraction(-(-(value.numerator << bits) // value.denominator), 2**bits)


def exact(name: str, value: float | Fraction) -> Fraction:
    """Return `value` as the fraction that it is in binary, or raise unless 0 < value < inf."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise TypeError(f"expected {name} to be a float or a Fraction, got {type(value).__name__}")
    if not 0 < value < float("inf"):
        raise ValueError(f"expected 0 < {name} < inf, got {value}")
    return Fraction(value)


def integer(name: str, value: int, least: int, most: int) -> int:
    """Return `value`, or raise unless it is an int with least <= value <= most."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected {name} to be an int, got {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"expected {least} <= {name} <= {most}, got {value}")
    return value
