"""Bisection for the largest number at which a condition holds, with named bracket ends."""

import math
from collections.abc import Callable
from typing import NamedTuple

Condition = Callable[[float], bool]


class Bracket(NamedTuple):
    """Two numbers between which a condition changes from true to false.

    Attributes:
      holds: the lower end, where the condition holds.
      fails: the upper end, where it does not.
    """

    holds: float
    fails: float


def doubled(condition: Condition, start: float, *, most: float = math.inf) -> Bracket | None:
    """Double `start` until the condition fails, and return the bracket of the last two numbers.

    The condition has to hold at 0. Returns None if it still holds when `most` is passed.
    """
    low, high = 0.0, start
    while condition(high):
        low, high = high, 2 * high
        if high > most:
            return None
    return Bracket(low, high)


def bisect(
    condition: Condition, low: float, high: float, *, steps: int | None = None, digits: int = 12
) -> Bracket:
    """Halve a bracket from `low`, where the condition holds, to `high`, where it does not.

    Args:
      condition: holds up to some number, and fails beyond it.
      low, high: the ends of the first bracket.
      steps: number of halvings. By default the bracket is halved until it is no wider than
        10^-digits times its upper end.
      digits: relative accuracy, in decimal digits; ignored if `steps` is given.
    """
    left = math.inf if steps is None else steps
    while left > 0 and (steps is not None or high - low > 10.0**-digits * high):
        middle = (low + high) / 2
        low, high = (middle, high) if condition(middle) else (low, middle)
        left -= 1
    return Bracket(low, high)
