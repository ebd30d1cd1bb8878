"""Planning backwards: the epsilon, the records or the k with which a screen finds a given MIC.

A screen finds a MIC if its plan finds the distance from independence that relationships of this MIC
typically have (`calibration.distance_of`): such a pair is selected and called dependent with 95 %
probability.

The best that a budget can find only gets smaller with more epsilon, more records or a smaller k.
But from some budget on, the plan spends a part of it on MICr, and what it finds jumps up, by at
most a quarter. So the first number is sought at which the best would do; if the plan does not find
the MIC there, each stretch of numbers whose plans split their budget alike is searched in turn. The
answer finds the MIC, and the number before it does not. Numbers have three digits, as predictions
are no more exact.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from dpmic_jax.dp.accounting.events import ZCDP
from dpmic_jax.dp.selection import ZCDPTopK
from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.plan import Plan, described
from dpmic_jax.screening.preview import preview
from dpmic_jax.screening.queries import Above, AllPairs, Ask, Group, TopK

_ALL = AllPairs()
T = TypeVar("T", int, float)

# A millionth to 100.
_EPSILONS = (
    *(float(f"{digits}e{power}") for power in range(-8, 0) for digits in range(100, 1000)),
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
      Epsilon, rounded up to three digits, from 0.000001 to 100.
    """
    return _first(
        _EPSILONS,
        lambda epsilon: preview(**settings, epsilon=epsilon).plan,
        find,
        none="no epsilon up to 100 finds",
        more="more records",
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
        more="a larger epsilon",
    )


def largest_k(find: float, *, candidates: Group = _ALL, **settings: Any) -> int:
    """The largest k for which the top k contain a dependence of this MIC, and call it one.

    Args:
      find: the MIC, between 0 and 1.
      candidates: the pairs to select from.
      **settings: all arguments of `preview` but ask.

    Returns:
      k, which is all candidates but one if releasing the values of all of them finds the MIC.
    """

    def plan_of(k: int) -> Plan:
        return preview(**settings, ask=TopK(k, candidates=candidates)).plan

    return _first(
        range(len(plan_of(1).pairs) - 1, 0, -1),
        plan_of,
        find,
        none="no k finds",
        more="a larger epsilon, more records",
    )


class _Tried(NamedTuple):
    """What a plan finds.

    Attributes:
      found: the smallest distance that it finds.
      best: the smallest that any plan for this budget would, without MICr if need be.
      way: the kinds of its noise, and how it splits its budget; None if there is no plan.
    """

    found: float
    best: float
    way: tuple[str, float, float] | None


def _first(
    values: Sequence[T], plan_of: Callable[[T], Plan], find: float, *, none: str, more: str
) -> T:
    """The first of `values` whose plan finds a MIC.

    Args:
      values: those to try, the last of which finds most.
      plan_of: the plan with a value.
      find: the MIC.
      none: begins the refusal if none of them does.
      more: what to have more of in that case.
    """
    if not 0 < find < 1:
        raise ValueError(f"expected 0 < find < 1, a MIC, got {find}")
    far, most = distance_of(find), plan_of(values[-1])  # which refuses bad input

    @cache
    def tried(place: int) -> _Tried:
        try:
            return _try(plan_of(values[place]))
        except ValueError:  # more noise than can be drawn
            return _Tried(math.inf, math.inf, None)

    def finds(place: int) -> bool:
        return tried(place).found <= far

    def first(low: int, high: int) -> int | None:
        """The first place from `low` to `high` that finds it."""
        if tried(low).way != tried(high).way:
            middle = (low + high) // 2
            before = first(low, middle)
            return first(middle + 1, high) if before is None else before
        # What is found gets smaller from each place to the next.
        return bisect_left(range(high), True, lo=low, key=finds) if finds(high) else None

    last, found = len(values) - 1, None
    if tried(last).best <= far:
        place = bisect_left(range(last), True, key=lambda place: tried(place).best <= far)
        found = place if finds(place) else first(place, last)
    if found is None:
        raise ValueError(f"{none} a MIC of {find:g} with {most.ask}: {_reason(most, far, more)}")
    return values[found]


def _try(plan: Plan) -> _Tried:
    best = min([plan.smallest, *(found for _, found in plan.others)])
    return _Tried(plan.smallest, best, (described(plan.noises), _for_choice(plan), _for_micr(plan)))


def _for_choice(plan: Plan) -> float:
    """How much of the budget is for selecting pairs."""
    if plan.choice is None:
        return 0.0
    selector, whole = plan.choice.selector, plan.event.guarantee
    if isinstance(selector, ZCDPTopK) and isinstance(whole, ZCDP):
        return round(float(selector.rho) / whole.rho, 2)
    return round(float(selector.epsilon) / plan.epsilon, 2)  # pyright: ignore[reportAttributeAccessIssue]


def _for_micr(plan: Plan) -> float:
    """How the noise on distances compares with that on MICr, in units of what one person moves."""
    if plan.values is None:
        return 0.0
    of_distances, of_micr = (
        float(noise.scale * noise.lattice.top / noise.lattice.sensitivity)
        for noise in (plan.distances, plan.values)
    )
    return round(of_distances / of_micr, 1)


def _reason(plan: Plan, far: float, more: str) -> str:
    """Why the plan that finds most does not find this distance, and what to change."""
    chance = plan.workload.chance_level
    if isinstance(plan.ask, Above) and far <= plan.workload.threshold:
        return f"the threshold is a MIC of {plan.ask.threshold:g}; use a lower one"
    distance = f"its distance of about {far:.3g} is"
    if far <= chance:
        return (
            f"{distance} within what independent pairs of {plan.n} records reach by chance, "
            f"{chance:.3g}; use more records or fewer pairs"
        )
    return (
        f"{distance} below the smallest that is found, {plan.smallest:.3g}; use {more}, or "
        f"{_fewer(plan.ask)}"
    )


def _fewer(ask: Ask) -> str:
    """How to ask for less."""
    if isinstance(ask, TopK):
        return "fewer candidates" if ask.k == 1 else "a smaller k"
    if isinstance(ask, Above):
        return "a smaller at_most"
    return "fewer pairs, such as TopK(k) of them (--ask top:k)"
