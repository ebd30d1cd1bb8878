"""Bisection: up to which number a condition holds, with both ends of the bracket by name."""

import math
from collections.abc import Callable
from typing import NamedTuple

Condition = Callable[[float], bool]


class Bracket(NamedTuple):
    """Two numbers between which a condition changes.

    Attributes:
      holds: where it does.
      fails: where it does not; larger.
    """

    holds: float
    fails: float


def doubled(condition: Condition, start: float, *, most: float = math.inf) -> Bracket | None:
    """A bracket of a condition that holds at 0: `start` is doubled until it fails.

    None if it still holds beyond `most`.
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
      condition: holds up to some number, and not beyond.
      low, high: where to begin.
      steps: how often; else until both ends agree to so many `digits`.
      digits: of the larger end.
    """
    left = math.inf if steps is None else steps
    while left > 0 and (steps is not None or high - low > 10.0**-digits * high):
        middle = (low + high) / 2
        low, high = (middle, high) if condition(middle) else (low, middle)
        left -= 1
    return Bracket(low, high)
