"""The power of a screen: the probability of a right answer for given true values."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from dpmic_jax.dp.noise.lattice import LatticeLaplace
from dpmic_jax.dp.selection import OneShotTopK
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.queries import Above

_POINTS = 20_001  # of the numerical integration
_REACH = 40  # its range in scales of the noise, which exceeds it with probability below e^-40

Line = Float[np.ndarray, " points"]


def ranked_chance(plan: Plan, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that all released values of `strong` are above all of `weak`.

    Args:
      plan: the plan of a query for the values of pairs.
      strong, weak: true values of MICr.
    """
    scale = plan.values.scale
    above = _laplace_above if isinstance(plan.values, LatticeLaplace) else _normal_above
    # Released values are clipped to [0, 1], so the maximum of the weak ones is integrated there.
    return _separated(above, scale, strong, weak, (0.0, 1.0))


def chosen_chance(plan: Plan, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that `TopK` selects exactly the k values of `strong`, and none of `weak`."""
    if plan.choice is None or not isinstance(plan.choice.selector, OneShotTopK):
        raise TypeError("expected the plan of a TopK")
    return _separated(_exponential_above, plan.choice.scale, strong, weak, (-np.inf, np.inf))


def found_chance(plan: Plan, value: float) -> float:
    """The probability that `Above` finds a pair of this value, if the search visits it.

    The noise on the pair has twice the scale b of the noise on the threshold; their difference
    exceeds z > 0 with probability 2/3 e^(-z/2b) - 1/6 e^(-z/b).
    """
    if plan.choice is None or not isinstance(plan.ask, Above):
        raise TypeError("expected the plan of an Above")
    gap, b = value - plan.ask.threshold, plan.choice.scale
    beyond = 2 / 3 * np.exp(-abs(gap) / (2 * b)) - 1 / 6 * np.exp(-abs(gap) / b)
    return float(1 - beyond if gap > 0 else beyond)


def _separated(
    above: Callable[[Line], Line],
    scale: float,
    strong: Sequence[float],
    weak: Sequence[float],
    ends: tuple[float, float],
) -> float:
    """P(min(strong + noise) > max(weak + noise)), integrated over the maximum."""
    low, high = ends
    first = max(low, min(weak) - _REACH * scale)
    last = min(high, max(weak) + _REACH * scale)
    line = np.linspace(first, last, _POINTS)
    below = _product(lambda value: 1 - above((line - value) / scale), weak)
    # The first step has all of the probability below the first point.
    steps = np.diff(below, prepend=0.0)
    middle = np.concatenate([line[:1], (line[1:] + line[:-1]) / 2])
    passed = _product(lambda value: above((middle - value) / scale), strong)
    return float((steps * passed).sum())


def _product(factor: Callable[[float], Line], values: Sequence[float]) -> Line:
    """The product of `factor(value)` over values; it is computed once for equal values."""
    distinct, counts = np.unique(np.asarray(values, float), return_counts=True)
    found = np.ones(_POINTS)
    for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        found *= factor(value) ** count
    return found


def _laplace_above(x: Line) -> Line:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x > 0, tail, 1 - tail)


def _normal_above(x: Line) -> Line:
    return ndtr(-x)


def _exponential_above(x: Line) -> Line:
    return np.exp(-np.maximum(x, 0))


def expected_count(chance: float, runs: int, *, share: float = 0.99) -> tuple[int, int]:
    """An interval that contains the number of right answers in `runs` with probability `share`."""
    from scipy.stats import binom  # imported here: it takes a second, and `screen` does not need it

    low, high = binom.interval(share, runs, min(max(chance, 0.0), 1.0))
    return int(low), int(high)
