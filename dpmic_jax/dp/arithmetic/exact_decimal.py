"""Numbers as the caller wrote them: argument checks, exact fractions and directed rounding."""

import math
import operator
from fractions import Fraction


def as_fraction(value: float) -> Fraction:
    """The decimal number that the caller wrote: 0.1 is 1/10, not the nearest binary fraction.

    Privacy costs are summed as these fractions, so ten charges of 0.1 add up to exactly 1.
    """
    return Fraction(repr(float(value)))


def ceil_to_float(value: Fraction) -> float:
    """The smallest float whose decimal form (`as_fraction`) is not below `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    # The nearest float may print as a decimal below `value`: step up until it does not.
    while nearest < math.inf and as_fraction(nearest) < value:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def floor_to_float(value: Fraction) -> float:
    """The largest float whose decimal form (`as_fraction`) is not above `value`."""
    return 0.0 - ceil_to_float(-value)  # a plain minus would turn 0.0 into -0.0


def check_positive(name: str, value: float) -> float:
    """Return `value` as a float, or raise unless 0 < value < inf."""
    number = _number(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"expected 0 < {name} < inf, got {value}")
    return number


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float, or raise unless 0 <= value < 1."""
    number = _number(name, value)
    if not 0 <= number < 1:
        raise ValueError(f"expected 0 <= {name} < 1, got {value}")
    return number


def check_positive_int(name: str, value: int) -> int:
    """Return `value` as an int, or raise unless it is an integer of at least 1."""
    if isinstance(value, bool):
        raise TypeError(f"expected {name} to be a whole number, got {value}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"expected {name} to be a whole number, got {value!r}") from None
    if number < 1:
        raise ValueError(f"expected {name} >= 1, got {number}")
    return number


def _number(name: str, value: float) -> float:
    # A float32 0.1 is the decimal 0.10000000149, which is hardly what was meant: such a value is
    # taken only after an explicit float(...).
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected {name} to be a Python float, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if isinstance(value, int) and number != value:
        raise ValueError(f"expected {name} as a float, got an integer that no float holds")
    return number + 0.0  # turns -0.0 into 0.0: equal numbers must have equal digests
