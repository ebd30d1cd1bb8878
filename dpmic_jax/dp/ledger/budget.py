"""The privacy budget of a data set, and a ledger of the events that are charged to it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import (
    Totals,
    combined,
    numerical,
    smallest_epsilon,
    totals,
)
from dpmic_jax.dp.accounting.events import Event, GaussianDP, ReplaceOne, zcdp_to_pure
from dpmic_jax.dp.accounting.gaussian_dp import delta_for, mu_for
from dpmic_jax.dp.accounting.zcdp import epsilon_for, rho_for
from dpmic_jax.dp.arithmetic.exact_decimal import (
    as_fraction,
    ceil_to_float,
    check_positive,
    check_probability,
    floor_to_float,
)
from dpmic_jax.dp.conversions import RECORD_BITS, PrivacyCost, privacy_cost

# The part of delta for inexact noise (`composition.numerical`), fixed in advance: outputs may
# steer how much of each part is used, so the parts must not be traded for one another.
_INEXACT_SHARE = Fraction(1, 64)


class BudgetExceeded(Exception):  # noqa: N818 - a refusal, not a mistake of the caller
    """An event costs more than is left of the budget; nothing was charged."""


class PrivacyAmount(NamedTuple):
    """An amount of privacy in three units; see `Ledger.spent` and `Ledger.left`."""

    epsilon: float
    delta: float
    rho: float


@dataclass(frozen=True)
class Budget:
    """A guarantee that all releases together are (epsilon, delta)-DP, chosen adaptively or not.

    Delta is divided into three fixed parts: `failure_share` of it for the events' own deltas, 1/64
    for inexact noise, and the rest. Events are admitted as long as the first two parts cover what
    they cost there and either

    - the sum of their epsilons is at most epsilon, or
    - the sum of their rhos is at most rho, the largest rho that is (epsilon, rest)-DP; an
      epsilon-DP event has rho = epsilon tanh(epsilon/2), a Gaussian one mu^2/2, or
    - there is only one release, and it is Gaussian with at most mu, the largest mu that is
      (epsilon, rest)-DP by the exact curve of the Gaussian mechanism.

    All sums are exact, of the decimal numbers as written: ten events of 0.1 fit a budget of 1.

    The guarantee holds even if each next event, with its epsilon, is chosen by earlier outputs.
    Inexact noise with total variations of v in sum costs v under one neighbour and e^epsilon v
    under the other; failures cost their probability. As outputs may steer both, each has its own
    part. Apart from these, outputs that end within the first rule have a privacy loss of at most
    epsilon. Outputs that end within the second rule are also outputs of the process that stops
    before the sum of rhos exceeds rho. That process is rho-zCDP: e^((alpha-1) (loss - alpha sum of
    rhos)) is a supermartingale for every order alpha (Feldman and Zrnic 2021; Whitehouse, Ramdas,
    Rogers and Wu 2023). So the excess of their probability over e^epsilon times a neighbour's adds
    up to at most rest. Sharper theorems, such as `dp.accounting.composition.optimal`, are not sound
    as stopping rules. Whether the third rule is used is decided by the first event, before there
    are outputs: if that event exceeds rho, no rule admits a second one. So outputs cannot steer
    between the second and the third rule, each of which may use all of rest.

    Attributes:
      epsilon: above zero and finite.
      delta: 0 for pure differential privacy; then all other events are refused.
      relation: the neighbouring relation; events have to protect at least as many records of a
        person.
      failure_share: the part of delta for the deltas of (epsilon, delta) events. Raise it if there
        are many; 1 leaves only the first rule, and refuses zCDP and Gaussian events.
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
        if self.failure_share != 1:  # 1 is no probability below 1, but is allowed here
            check_probability("failure_share", self.failure_share)
        object.__setattr__(self, "failure_share", float(self.failure_share))

    @property
    def failures(self) -> Fraction:
        """The largest allowed sum of the events' own deltas."""
        return as_fraction(self.delta) * as_fraction(self.failure_share)

    @property
    def inexact(self) -> Fraction:
        """The largest delta that inexact noise may add; 0 if only the first rule is left."""
        return as_fraction(self.delta) * _INEXACT_SHARE if self.rest else Fraction()

    @property
    def rest(self) -> float:
        """The part of delta for the second and the third rule."""
        share = 1 - as_fraction(self.failure_share) - _INEXACT_SHARE
        return floor_to_float(as_fraction(self.delta) * max(share, Fraction()))

    @property
    def rho(self) -> float:
        """The largest allowed sum of the events' rhos; 0.0 if no delta is left for zCDP."""
        return rho_for(self.epsilon, self.rest) if self.rest else 0.0

    @property
    def mu(self) -> float:
        """The largest allowed mu of a Gaussian event that is the only release; 0.0 as for `rho`."""
        return mu_for(self.epsilon, self.rest) if self.rest else 0.0

    def admits(self, events: Iterable[Event]) -> bool:
        """Whether the events fit the budget together."""
        return self.holds(totals(events))

    def holds(self, sums: Totals) -> bool:
        """Whether events with these sums fit the budget; nothing else about them matters."""
        within_epsilon = sums.epsilon is not None and sums.epsilon <= as_fraction(self.epsilon)
        within_rho = sums.rho <= as_fraction(self.rho)
        within_mu = sums.sole_mu is not None and sums.sole_mu <= as_fraction(self.mu)
        within_failures = sums.delta <= self.failures
        within_inexact = numerical(sums.variation, self.epsilon) <= self.inexact
        within_rule = within_epsilon or within_rho or within_mu
        return within_failures and within_inexact and within_rule


class Account(NamedTuple):
    """A budget and the sums that count against it: all that decides on the next event."""

    budget: Budget
    sums: Totals

    @property
    def spent(self) -> PrivacyAmount:
        """See `Ledger.spent`."""
        budget, sums = self.budget, self.sums
        delta = sums.delta + numerical(sums.variation, budget.epsilon)
        basic = math.inf if sums.epsilon is None else ceil_to_float(sums.epsilon)
        rho = ceil_to_float(sums.rho)
        converted = epsilon_for(rho, budget.rest) if rho and budget.rest else math.inf
        if sums.sole_mu is not None and budget.rest:
            mu = ceil_to_float(sums.sole_mu)
            converted = min(converted, smallest_epsilon(partial(delta_for, mu), budget.rest))
        return PrivacyAmount(min(basic, converted), ceil_to_float(delta), rho)

    @property
    def left(self) -> PrivacyAmount:
        """See `Ledger.left`."""
        budget, sums = self.budget, self.sums
        # An epsilon-DP event is admitted by either rule, so the larger of both is left. A sum may
        # exceed its own limit while the other rule holds.
        rho = max(floor_to_float(as_fraction(budget.rho) - sums.rho), 0.0)
        basic = (
            0.0
            if sums.epsilon is None
            else floor_to_float(as_fraction(budget.epsilon) - sums.epsilon)
        )
        return PrivacyAmount(
            max(basic, zcdp_to_pure(rho), 0.0), floor_to_float(budget.failures - sums.delta), rho
        )

    def admit(self, event: Event) -> None:
        """Raise `BudgetExceeded` unless `event` can be charged next."""
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
            before, more = (numerical(each.variation, budget.epsilon) for each in (old, new))
            room = budget.inexact
            costs += [
                ("rho", event.rho, spent.rho, left.rho, budget.rho),
                ("delta", new.delta, old.delta, left.delta, budget.failures),
                ("delta of inexact noise", more, before, room - before, room),
            ]
        amounts = [
            "{}={:.12g} asked, {:.12g} spent, {:.12g} of {:.12g} is left".format(
                name, *map(float, numbers)
            )
            for name, *numbers in costs
        ]
        if isinstance(event.guarantee, GaussianDP) and budget.admits([event]):
            amounts.append("it is admitted only as the first release, with nothing after it")
        return f"{event.mechanism} asks for more than is left: " + "; ".join(amounts)


@dataclass(frozen=True)
class Ledger:
    """A budget and the events that were charged to it; immutable, a charge gives a new ledger."""

    budget: Budget
    events: tuple[Event, ...] = ()

    def __post_init__(self):
        if not isinstance(self.budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {self.budget!r}")
        if not self.budget.admits(self.events):
            raise BudgetExceeded(f"the {len(self.events)} events do not fit {self.budget}")

    @property
    def spent(self) -> PrivacyAmount:
        """Delta and rho of all events, and the smallest epsilon of a budget that admits them."""
        return self._account.spent

    @property
    def left(self) -> PrivacyAmount:
        """The largest epsilon, or rho, or delta of one event that would be admitted next.

        The rho is that of zCDP; a Gaussian event may have more if it is the only release.
        """
        return self._account.left

    def privacy_cost(
        self, *, delta: float, beta: float, record_bits: int = RECORD_BITS
    ) -> PrivacyCost:
        """The cost of all charged events in all units; see `dp.conversions.privacy_cost`."""
        return privacy_cost(self.events, delta=delta, beta=beta, record_bits=record_bits)

    def charge(self, event: Event) -> "Ledger":
        """Return a new ledger with `event` charged, or raise `BudgetExceeded`."""
        self._account.admit(event)
        return replace(self, events=(*self.events, event))

    @property
    def _account(self) -> Account:
        return Account(self.budget, totals(self.events))
