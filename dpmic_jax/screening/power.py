"""The power of a screen: the probability of a right answer for given true values."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr, ndtr

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.dp.selection import OneShotTopK, SingleThresholdSparseVector
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.queries import Above, TopK

SURE = 0.95  # probability of what is said to be found
_QUANTILES = 1000  # of a pair's own noise
_RADII = 64  # quantiles of the radius of cube noise
_POINTS = 20_001  # of the numerical integration
_REACH = 40  # its range in scales of the noise, which exceeds it with probability below e^-40

Line = Float[np.ndarray, " points"]


def ranked_chance(plan: Plan, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that all released values of `strong` are above all of `weak`.

    Args:
      plan: the plan of a query for the values of pairs.
      strong, weak: true values of MICr.
    """
    # Released values are clipped to [0, 1], so the maximum of the weak ones is integrated there.
    ends = 0.0, 1.0
    noise = plan.values
    if not isinstance(noise, LatticeCube):
        return _separated(_normal_above, noise.scale, strong, weak, ends)
    # Given the radius, noises are independent and uniform.
    radii = noise.noise.radii(_RADII) / noise.lattice.top
    found = [_separated(_uniform_above, radius, strong, weak, ends) for radius in radii.tolist()]
    return float(np.mean(found))


def chosen_chance(plan: Plan, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that `TopK` selects exactly the k values of `strong`, and none of `weak`."""
    if plan.choice is None or not isinstance(plan.choice.selector, OneShotTopK):
        raise TypeError("expected the plan of a TopK")
    return _separated(_exponential_above, plan.choice.scale, strong, weak, (-np.inf, np.inf))


def selected_chance(plan: Plan, value: float, others: float) -> float:
    """The probability that `TopK` selects a pair of this value, if all other pairs have `others`.

    Given the noise of the pair, the number of other pairs above it is binomial.
    """
    if not isinstance(plan.ask, TopK) or plan.choice is None:
        raise TypeError("expected the plan of a TopK")
    noise = -np.log1p(-(np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    above = _exponential_above((value - others) / plan.choice.scale + noise)
    return float(bdtr(plan.ask.k - 1, len(plan.pairs) - 1, above).mean())


def smallest_found(plan: Plan, level: float | None, others: float, threshold: float) -> float:
    """The smallest MICr that is selected and called dependent with 95 % probability.

    Args:
      plan: the plan of any query.
      level: a released value above this is called dependent; None to ask for the selection only.
      others: MICr of the other candidates of a `TopK`.
      threshold: of an `Above`.

    Returns:
      The value, which may exceed 1; infinity if it exceeds 1000.
    """

    def missed(value: float) -> bool:
        # The noise of a selection and that of the values are independent.
        found = 1.0 if level is None else float(plan.values.cdf(np.asarray(value - level)))
        if isinstance(plan.ask, TopK):
            found *= selected_chance(plan, value, others)
        if isinstance(plan.ask, Above):
            found *= passed_chance(plan, value - threshold)
        return found < SURE

    found = doubled(missed, 1.0, most=1000)
    return float("inf") if found is None else bisect(missed, *found, steps=40).fails


def check_not_lost(plan: Plan) -> None:
    """Refuse a plan whose noise hides every dependence, by public numbers only.

    The most that could be hoped for: no other pair has a MICr above 0 by chance. A selection tells
    something even if the values of what is selected are lost.
    """
    selects = plan.choice is not None
    level = None if selects else plan.values.largest_quantile(1 - SURE, plan.released)
    times = smallest_found(plan, level, 0.0, 0.0)
    if times <= 1:
        return
    fewer = "a smaller k" if selects else "fewer pairs, or TopK(k) of them"
    raise ValueError(
        f"noise would hide every dependence: of {plan.ask}, even a pair with MICr = 1 would not be "
        f"found with 95 % probability. Use about {times:.2g} times the epsilon or the records, or "
        f"{fewer}; `dpmic plan` and preview() compare them. Pass force=True (--force) to spend "
        "epsilon all the same"
    )


def found_chance(plan: Plan, value: float) -> float:
    """The probability that `Above` finds a pair of this value, if the search visits it."""
    if not isinstance(plan.ask, Above):
        raise TypeError("expected the plan of an Above")
    return passed_chance(plan, value - plan.ask.threshold)


def passed_chance(plan: Plan, gap: float) -> float:
    """The probability that a pair passes the threshold of `Above`, which is lower by `gap`.

    With one threshold: P(G - Z >= g - z - gap) for exponential noise of means g and z, as the
    threshold is raised by the difference of the means. Algorithm 5: Laplace noise on the pair of
    twice the scale b of that on the threshold; their difference exceeds x > 0 with probability
    2/3 e^(-x/2b) - 1/6 e^(-x/b).
    """
    if plan.choice is None:
        raise TypeError("expected the plan of an Above")
    g, z = plan.choice.scale, plan.choice.threshold_scale
    if isinstance(plan.choice.selector, SingleThresholdSparseVector):
        x = g - z - gap
        return float(g * np.exp(-x / g) if x > 0 else g + z - z * np.exp(x / z)) / (g + z)
    beyond = 2 / 3 * np.exp(-abs(gap) / (2 * z)) - 1 / 6 * np.exp(-abs(gap) / z)
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


def _uniform_above(x: Line) -> Line:
    return np.clip((1 - x) / 2, 0, 1)


def _normal_above(x: Line) -> Line:
    return ndtr(-x)


def _exponential_above(x: Line) -> Line:
    return np.exp(-np.maximum(x, 0))


def expected_count(chance: float, runs: int, *, share: float = 0.99) -> tuple[int, int]:
    """An interval that contains the number of right answers in `runs` with probability `share`."""
    from scipy.stats import binom  # imported here: it takes a second, and `screen` does not need it

    low, high = binom.interval(share, runs, min(max(chance, 0.0), 1.0))
    return int(low), int(high)
