"""How much may be spent on a data set, and the ledger that keeps to it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dpmic_jax.dp.composition import Totals, numerical, totals
from dpmic_jax.dp.events import Event, ReplaceOne, concentrated
from dpmic_jax.dp.written import at_least, at_most, chance, positive, written
from dpmic_jax.dp.zcdp import epsilon_for, rho_for


class BudgetExceeded(Exception):  # noqa: N818 - a refusal, not a mistake of the caller
    """An event costs more than is left; nothing was charged."""


class Amount(NamedTuple):
    """An amount of privacy in three currencies; see `Ledger.spent` and `Ledger.left`."""

    epsilon: float
    delta: float
    rho: float


@dataclass(frozen=True)
class Budget:
    """A promise: all releases together are (epsilon, delta)-DP, however they were chosen.

    Events are admitted as long as the sum of their own deltas stays within `failure_share`
    of delta and either

    - the sum of their epsilons stays within epsilon, or
    - the sum of their rhos stays within rho, the largest rho that is (epsilon, rest)-DP, where
      rest is the other part of delta and an epsilon-DP event has rho = epsilon tanh(epsilon/2).

    All sums are exact, of the numbers as they are written: ten events of 0.1 fit a budget of 1.

    This holds when each next event, with its epsilon, is chosen by what was released before.
    Failures have a chance of at most failure_share * delta. Without one, outputs that end
    within the first rule have a privacy loss of at most epsilon. Outputs that end within the
    second are outputs, too, of the process that stops before the sum of rhos passes rho. That
    one is rho-zCDP: e^((alpha-1) (loss - alpha sum of rhos)) is a supermartingale for every
    order alpha (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023). So the excess
    of their probability over e^epsilon times a neighbour's adds up to at most rest. Sharper
    theorems, such as `dp.composition.optimal`, are not sound as stopping rules.

    Attributes:
      epsilon: above zero and finite.
      delta: 0 for pure differential privacy; then zCDP and (epsilon, delta) events are refused.
      relation: whom the promise is for; events have to protect as many records a person.
      failure_share: the part of delta that is kept for events' own deltas. Those of integer
        noise are tiny. Raise it for (epsilon, delta) events; 1 leaves only the first rule.
    """

    epsilon: float
    delta: float = 0.0
    relation: ReplaceOne = ReplaceOne()
    failure_share: float = 1 / 64

    def __post_init__(self):
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", chance("delta", self.delta))
        if not isinstance(self.relation, ReplaceOne):
            raise TypeError(f"expected relation=ReplaceOne(records), got {self.relation!r}")
        if self.failure_share != 1:
            chance("failure_share", self.failure_share)
        object.__setattr__(self, "failure_share", float(self.failure_share))

    @property
    def failures(self) -> Fraction:
        """What events' own deltas may add up to."""
        return written(self.delta) * written(self.failure_share)

    @property
    def rest(self) -> float:
        """The delta that is left for the conversion from zCDP."""
        return at_most(written(self.delta) - self.failures)

    @property
    def rho(self) -> float:
        """What events' rhos may add up to; 0.0 if there is no delta for it."""
        return rho_for(self.epsilon, self.rest) if self.rest else 0.0

    def admits(self, events: Iterable[Event]) -> bool:
        """Whether the events keep the promise together."""
        return self._covers(totals(events))

    def _covers(self, sums: Totals) -> bool:
        within_epsilon = sums.epsilon is not None and sums.epsilon <= written(self.epsilon)
        within_rho = sums.rho <= written(self.rho)
        return self.failed(sums) <= self.failures and (within_epsilon or within_rho)

    def failed(self, sums: Totals) -> Fraction:
        """What events' own deltas add up to; inexact noise counts 1 + e^epsilon times."""
        return sums.delta + numerical(sums.variation, self.epsilon)


@dataclass(frozen=True)
class Ledger:
    """Events that were admitted to a budget. A change is a new ledger."""

    budget: Budget
    events: tuple[Event, ...] = ()

    def __post_init__(self):
        if not isinstance(self.budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {self.budget!r}")
        if not self.budget.admits(self.events):
            raise BudgetExceeded(f"the {len(self.events)} events do not fit {self.budget}")

    @property
    def spent(self) -> Amount:
        """The sums of delta and rho, and the least epsilon of a budget that admits all this."""
        sums = totals(self.events)
        plain = math.inf if sums.epsilon is None else at_least(sums.epsilon)
        rho = at_least(sums.rho)
        converted = epsilon_for(rho, self.budget.rest) if rho and self.budget.rest else math.inf
        return Amount(min(plain, converted), at_least(self.budget.failed(sums)), rho)

    @property
    def left(self) -> Amount:
        """The largest epsilon, or rho, or own delta of one event that would be admitted next."""
        budget, sums = self.budget, totals(self.events)
        rho = max(at_most(written(budget.rho) - sums.rho), 0.0)
        plain = 0.0 if sums.epsilon is None else at_most(written(budget.epsilon) - sums.epsilon)
        return Amount(
            max(plain, _pure(rho), 0.0), at_most(budget.failures - budget.failed(sums)), rho
        )

    def spend(self, event: Event) -> "Ledger":
        """Enter `event` in a new ledger, or refuse it."""
        if not isinstance(event, Event):
            raise TypeError(f"expected an Event, got {event!r}")
        if event.relation.records < self.budget.relation.records:
            raise ValueError(
                f"the budget protects people with {self.budget.relation.records} records; "
                f"{event.mechanism} protects {event.relation.records}: raise its records"
            )
        if not self.budget.admits((*self.events, event)):
            raise BudgetExceeded(self._refusal(event))
        return replace(self, events=(*self.events, event))

    def _refusal(self, event: Event) -> str:
        if not self.budget.delta and (event.delta or math.isinf(event.epsilon)):
            return f"{event.mechanism} is not epsilon-DP, and the budget has delta = 0"
        budget, spent, left = self.budget, self.spent, self.left
        costs = [("epsilon", event.epsilon, spent.epsilon, left.epsilon, budget.epsilon)]
        if budget.delta:
            costs += [
                ("rho", event.rho, spent.rho, left.rho, budget.rho),
                (
                    "delta",
                    float(budget.failed(totals([event]))),
                    spent.delta,
                    left.delta,
                    float(budget.failures),
                ),
            ]
        return f"{event.mechanism} asks for more than is left: " + "; ".join(
            f"{name}={asked:.12g} asked, {used:.12g} spent, {rest:.12g} of {all_:.12g} is left"
            for name, asked, used, rest, all_ in costs
        )


def _pure(rho: float) -> float:
    """The largest epsilon for which epsilon-DP is rho-zCDP, to 12 digits, rounded down."""
    low, high = 0.0, 1.0
    while rho and concentrated(high) <= rho:
        low, high = high, 2 * high
    while rho and high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if concentrated(middle) <= rho else (low, middle)
    return low
