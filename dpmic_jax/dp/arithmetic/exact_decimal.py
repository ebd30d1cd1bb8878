"""Numbers as their caller wrote them: checked, exact, and rounded to the safe side."""

import math
import operator
from fractions import Fraction


def as_fraction(value: float) -> Fraction:
    """The decimal number a caller wrote: 1/10 for 0.1, not the binary number beside it.

    All exact sums of privacy costs are sums of these, so ten charges of 0.1 are 1.
    """
    return Fraction(repr(float(value)))


def ceil_to_float(value: Fraction) -> float:
    """The smallest float that is not below `value`, as it is written."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    while nearest < math.inf and as_fraction(nearest) < value:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def floor_to_float(value: Fraction) -> float:
    """The largest float that is not above `value`, as it is written."""
    return 0.0 - ceil_to_float(-value)


def check_positive(name: str, value: float) -> float:
    """`value` as a float, if it is above zero and finite."""
    number = _number(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"expected 0 < {name} < inf, got {value}")
    return number


def check_probability(name: str, value: float) -> float:
    """`value` as a float, if it is at least 0 and below 1."""
    number = _number(name, value)
    if not 0 <= number < 1:
        raise ValueError(f"expected 0 <= {name} < 1, got {value}")
    return number


def check_positive_int(name: str, value: int) -> int:
    """`value` as an int, if it is a whole number above zero."""
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
    # A float32 0.1 is written 0.10000000149: whoever means that has to say float(...).
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected {name} to be a Python float, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if isinstance(value, int) and number != value:
        raise ValueError(f"expected {name} as a float, got an integer that no float holds")
    return number + 0.0  # -0.0 and 0.0 are one number and get one digest
