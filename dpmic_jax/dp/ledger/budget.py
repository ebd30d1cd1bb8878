"""How much may be spent on a data set, and the ledger that keeps to it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import Totals, combined, numerical, totals
from dpmic_jax.dp.accounting.events import Event, ReplaceOne, zcdp_to_pure
from dpmic_jax.dp.accounting.zcdp import epsilon_for, rho_for
from dpmic_jax.dp.arithmetic.exact_decimal import (
    as_fraction,
    ceil_to_float,
    check_positive,
    check_probability,
    floor_to_float,
)
from dpmic_jax.dp.conversions import RECORD_BITS, PrivacyCost, privacy_cost

_INEXACT_SHARE = Fraction(1, 64)


class BudgetExceeded(Exception):  # noqa: N818 - a refusal, not a mistake of the caller
    """An event costs more than is left; nothing was charged."""


class PrivacyAmount(NamedTuple):
    """An amount of privacy in three currencies; see `Ledger.spent` and `Ledger.left`."""

    epsilon: float
    delta: float
    rho: float


@dataclass(frozen=True)
class Budget:
    """A promise: all releases together are (epsilon, delta)-DP, however they were chosen.

    Delta is cut into three fixed parts: `failure_share` of it for events' own deltas, 1/64 for
    noise that is off its law, and the rest. Events are admitted as long as the first two parts
    hold what they cost there and either

    - the sum of their epsilons stays within epsilon, or
    - the sum of their rhos stays within rho, the largest rho that is (epsilon, rest)-DP; an
      epsilon-DP event has rho = epsilon tanh(epsilon/2).

    All sums are exact, of the numbers as they are written: ten events of 0.1 fit a budget of 1.

    This holds when each next event, with its epsilon, is chosen by what was released before.
    Noise that is off by v in sum costs v under one neighbour and e^epsilon v under the other,
    failures cost their chance. As outputs may steer both, each has its own part. Without them,
    outputs that end within the first rule have a privacy loss of at most epsilon. Outputs that
    end within the second are outputs, too, of the process that stops before the sum of rhos
    passes rho. That one is rho-zCDP: e^((alpha-1) (loss - alpha sum of rhos)) is a
    supermartingale for every order alpha (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers
    and Wu 2023). So the excess of their probability over e^epsilon times a neighbour's adds up
    to at most rest. Sharper theorems, such as `dp.accounting.composition.optimal`, are not sound as
    stopping rules.

    Attributes:
      epsilon: above zero and finite.
      delta: 0 for pure differential privacy; then zCDP and (epsilon, delta) events are refused.
      relation: whom the promise is for; events have to protect as many records a person.
      failure_share: the part of delta that (epsilon, delta) events may use up. Raise it if there
        are many; 1 leaves only the first rule, and refuses zCDP.
    """

    epsilon: float
    delta: float = 0.0
    relation: ReplaceOne = ReplaceOne()
    failure_share: float = 1 / 64

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))
        if not isinstance(self.relation, ReplaceOne):
            raise TypeError(f"expected relation=ReplaceOne(records), got {self.relation!r}")
        if self.failure_share != 1:
            check_probability("failure_share", self.failure_share)
        object.__setattr__(self, "failure_share", float(self.failure_share))

    @property
    def failures(self) -> Fraction:
        """What events' own deltas may add up to."""
        return as_fraction(self.delta) * as_fraction(self.failure_share)

    @property
    def inexact(self) -> Fraction:
        """What noise that is off its law may add to delta; nothing if zCDP is refused."""
        return as_fraction(self.delta) * _INEXACT_SHARE if self.rest else Fraction()

    @property
    def rest(self) -> float:
        """The delta that is left for the conversion from zCDP."""
        share = 1 - as_fraction(self.failure_share) - _INEXACT_SHARE
        return floor_to_float(as_fraction(self.delta) * max(share, Fraction()))

    @property
    def rho(self) -> float:
        """What events' rhos may add up to; 0.0 if there is no delta for it."""
        return rho_for(self.epsilon, self.rest) if self.rest else 0.0

    def admits(self, events: Iterable[Event]) -> bool:
        """Whether the events keep the promise together."""
        return self.holds(totals(events))

    def holds(self, sums: Totals) -> bool:
        """Whether events of these sums keep the promise: nothing else of them decides."""
        within_epsilon = sums.epsilon is not None and sums.epsilon <= as_fraction(self.epsilon)
        within_rho = sums.rho <= as_fraction(self.rho)
        within_failures = sums.delta <= self.failures
        within_inexact = numerical(sums.variation, self.epsilon) <= self.inexact
        return within_failures and within_inexact and (within_epsilon or within_rho)


class Account(NamedTuple):
    """A budget and the sums of what was taken of it: all that the next event is judged by."""

    budget: Budget
    sums: Totals

    @property
    def spent(self) -> PrivacyAmount:
        """See `Ledger.spent`."""
        budget, sums = self.budget, self.sums
        delta = sums.delta + numerical(sums.variation, budget.epsilon)
        plain = math.inf if sums.epsilon is None else ceil_to_float(sums.epsilon)
        rho = ceil_to_float(sums.rho)
        converted = epsilon_for(rho, budget.rest) if rho and budget.rest else math.inf
        return PrivacyAmount(min(plain, converted), ceil_to_float(delta), rho)

    @property
    def left(self) -> PrivacyAmount:
        """See `Ledger.left`."""
        budget, sums = self.budget, self.sums
        rho = max(floor_to_float(as_fraction(budget.rho) - sums.rho), 0.0)
        plain = (
            0.0
            if sums.epsilon is None
            else floor_to_float(as_fraction(budget.epsilon) - sums.epsilon)
        )
        return PrivacyAmount(
            max(plain, zcdp_to_pure(rho), 0.0), floor_to_float(budget.failures - sums.delta), rho
        )

    def admit(self, event: Event) -> None:
        """Raise unless `event` may be next."""
        if not isinstance(event, Event):
            raise TypeError(f"expected an Event, got {event!r}")
        if event.relation.records < self.budget.relation.records:
            raise ValueError(
                f"the budget protects people with {self.budget.relation.records} records; "
                f"{event.mechanism} protects {event.relation.records}: raise its records"
            )
        if not self.budget.holds(combined(self.sums, totals([event]))):
            raise BudgetExceeded(self._refusal(event))

    def _refusal(self, event: Event) -> str:
        if not self.budget.delta and (event.delta or math.isinf(event.epsilon)):
            return f"{event.mechanism} is not epsilon-DP, and the budget has delta = 0"
        budget, spent, left = self.budget, self.spent, self.left
        costs = [("epsilon", event.epsilon, spent.epsilon, left.epsilon, budget.epsilon)]
        if budget.delta:
            old, new = self.sums, totals([event])
            off, more = (numerical(each.variation, budget.epsilon) for each in (old, new))
            room = budget.inexact
            costs += [
                ("rho", event.rho, spent.rho, left.rho, budget.rho),
                ("delta", new.delta, old.delta, left.delta, budget.failures),
                ("delta of inexact noise", more, off, room - off, room),
            ]
        return f"{event.mechanism} asks for more than is left: " + "; ".join(
            "{}={:.12g} asked, {:.12g} spent, {:.12g} of {:.12g} is left".format(
                name, *map(float, numbers)
            )
            for name, *numbers in costs
        )


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
    def spent(self) -> PrivacyAmount:
        """The delta and rho of all events, and the least epsilon of a budget that admits them."""
        return self._account.spent

    @property
    def left(self) -> PrivacyAmount:
        """The largest epsilon, or rho, or own delta of one event that would be admitted next."""
        return self._account.left

    def privacy_cost(
        self, *, delta: float, beta: float, record_bits: int = RECORD_BITS
    ) -> PrivacyCost:
        """What was spent, in all units: the arguments are those of `privacy_cost`."""
        return privacy_cost(self.events, delta=delta, beta=beta, record_bits=record_bits)

    def charge(self, event: Event) -> "Ledger":
        """Enter `event` in a new ledger, or refuse it."""
        self._account.admit(event)
        return replace(self, events=(*self.events, event))

    @property
    def _account(self) -> Account:
        return Account(self.budget, totals(self.events))
