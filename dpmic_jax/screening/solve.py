"""Planning backwards: the epsilon, the records or the k with which a screen finds a given MIC.

A screen finds a MIC if its plan finds the distance from independence that relationships of this MIC
typically have (`calibration.distance_of`): such a pair is selected and called dependent with 95 %
probability.

The best that a budget can find only gets smaller with more epsilon, more records or a smaller k.
But from some budget on, the plan spends a part of it on MICr, and what it finds jumps up, by at
most a quarter. So the first number is sought at which the best would do; if the plan does not
choose the best there, the search goes on with what the plan finds. Either way the answer finds the
MIC, and the number before it does not. Numbers have three digits, as predictions are no more exact.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.independence import chance_level
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.preview import preview
from dpmic_jax.screening.queries import AllPairs, Group, TopK

_ALL = AllPairs()
T = TypeVar("T", int, float)

# 0.001 to 100.
_EPSILONS = (
    *(float(f"{digits}e{power}") for power in range(-5, 0) for digits in range(100, 1000)),
    100.0,
)
# 4 to 4 million. Distances of more records are computed in fewer steps, and find less.
_RECORDS = (
    *range(4, 1000),
    *(digits * 10**power for power in range(1, 4) for digits in range(100, 1000)),
    *range(1_000_000, 4_000_001, 10_000),
)


def smallest_epsilon(find: float, **settings: Any) -> float:
    """The smallest epsilon with which a screen finds dependences of this MIC.

    Args:
      find: the MIC, between 0 and 1.
      **settings: all arguments of `preview` but epsilon.

    Returns:
      Epsilon, rounded up to three digits, from 0.001 to 100.
    """
    return _first(
        _EPSILONS,
        lambda epsilon: preview(**settings, epsilon=epsilon).plan,
        find,
        none="no epsilon up to 100 finds",
        advice="use more records, fewer pairs, or TopK(k) of them",
    )


def fewest_records(find: float, **settings: Any) -> int:
    """The fewest records with which a screen finds dependences of this MIC.

    Args:
      find: the MIC, between 0 and 1.
      **settings: all arguments of `preview` but n.

    Returns:
      n, rounded up to three digits, from 4 to 4 million.
    """
    return _first(
        _RECORDS,
        lambda n: preview(**settings, n=n).plan,
        find,
        none="no number of records up to 4 million finds",
        advice="use a larger epsilon, fewer pairs, or TopK(k) of them",
    )


def largest_k(find: float, *, candidates: Group = _ALL, **settings: Any) -> int:
    """The largest k for which the top k contain a dependence of this MIC, and call it one.

    Args:
      find: the MIC, between 0 and 1.
      candidates: the pairs to select from.
      **settings: all arguments of `preview` but ask.

    Returns:
      k, which is all candidates but one if the values of all of them can be released.
    """

    def plan_of(k: int) -> Plan:
        return preview(**settings, ask=TopK(k, candidates=candidates)).plan

    return _first(
        range(len(plan_of(1).pairs) - 1, 0, -1),
        plan_of,
        find,
        none="no k finds",
        advice="use a larger epsilon, more records, or fewer candidates",
    )


def _first(
    values: Sequence[T], plan_of: Callable[[T], Plan], find: float, *, none: str, advice: str
) -> T:
    """The first of `values` whose plan finds a MIC.

    Args:
      values: those to try, the last of which finds most.
      plan_of: the plan with a value.
      find: the MIC.
      none: begins the refusal if none of them does.
      advice: what to change then.
    """
    far, most = distance_of(find), plan_of(values[-1])  # which refuses bad input

    @cache
    def found(value: T) -> tuple[float, float]:
        """What the plan finds, and the best that its budget can find."""
        try:
            plan = plan_of(value)
        except ValueError:  # more noise than can be drawn
            return math.inf, math.inf
        return plan.smallest, min([plan.smallest, *(other for _, other in plan.others)])

    def finds(value: T) -> bool:
        return found(value)[0] <= far

    first = bisect_left(values, True, key=lambda value: found(value)[1] <= far)
    if first < len(values) and not finds(values[first]):
        first = bisect_left(values, True, lo=first + 1, key=finds)
    if first == len(values):
        raise ValueError(
            f"{none} a MIC of {find:g} with {most.ask}: its distance of about {far:.3g} is below "
            f"{most.smallest:.3g}, {_reason(most, far, advice)}"
        )
    return values[first]


def _reason(plan: Plan, far: float, advice: str) -> str:
    """Why the plan that finds most does not find this distance, and what to change."""
    threshold = plan.workload.threshold
    if far <= threshold:
        return f"as the threshold has {threshold:.3g}; use a lower threshold"
    if far <= chance_level(plan.n, len(plan.pairs), plan.event.relation.records):
        return (
            f"and independent pairs of {plan.n} records get as far by chance; use more records or "
            "fewer pairs"
        )
    return f"the smallest that is found; {advice}"
