"""The privacy cost of events in all units of the literature.

Privacy of the people in the data:
- epsilon: no output is more than e^epsilon times as likely as on a neighbouring data set;
- (epsilon, delta): the same, up to a probability of delta;
- rho: the privacy loss is bounded like a Gaussian one of variance 2 rho (zCDP);
- nats: mutual information of one person's records and all outputs, given all other records.

Validity of later tests on the same data:
- bits of max-information: how much more likely any finding is than on fresh data.

All of these hold for events whose guarantees are fixed beforehand. If they are chosen adaptively,
what holds is the budget of the ledger that was charged.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpmic_jax.dp.accounting.composition import epsilon_at, totals
from dpmic_jax.dp.accounting.events import Event, Guarantee, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float, check_positive_int

# Default bound on the size of one person's records: 1024 numbers of 64 bits.
RECORD_BITS = 2**16


@dataclass(frozen=True, kw_only=True)
class PrivacyCost:
    """The privacy cost of all events together, in five units; all are upper bounds.

    Attributes:
      n: number of records.
      epsilon: of epsilon-DP; infinite if no epsilon holds without a delta.
      approximate_epsilon, delta: of (epsilon, delta)-DP, at the delta that was asked for.
      rho: of zCDP, up to the deltas of the events if they have any.
      nats: mutual information about one person's records, given all other records.
      bits: beta-approximate max-information, for independent records.
      beta: the probability that max-information leaves out.
    """

    n: int
    epsilon: float
    approximate_epsilon: float
    delta: float
    rho: float
    nats: float
    bits: float
    beta: float

    def lines(self) -> list[tuple[str, str]]:
        """The name and the amount of each unit, as text."""
        pair = f"({self.approximate_epsilon:.6g}, {self.delta:g})"
        return [
            ("epsilon", _or_none(self.epsilon, f"{self.epsilon:.6g}")),
            ("(epsilon, delta)", _or_none(self.approximate_epsilon, pair)),
            ("rho", f"{self.rho:.6g}"),
            ("about one person", f"{self.nats:.4g} nats, {self.nats / math.log(2):.4g} bits"),
            ("max-information", f"{self.bits:.4g} bits at beta = {self.beta:g}, n = {self.n}"),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines())
        return "\n".join(f"{name:<{width}}  {amount}" for name, amount in self.lines())


def privacy_cost(
    events: Iterable[Event], *, delta: float, beta: float, record_bits: int = RECORD_BITS
) -> PrivacyCost:
    """The privacy cost of events together, in all units.

    Args:
      events: releases from one data set, at least one.
      delta: at which to state (epsilon, delta)-DP; 0 for events that are epsilon-DP.
      beta: at which to state max-information, above 0 and below 1; half of a test's alpha is
        a good choice.
      record_bits: an upper bound on the size of one person's records, in bits. A guarantee with
        a delta may reveal all of them with a small probability, so `nats` depends on their size.
    """
    # Imported here, so that a ledger which only records charges does not load them.
    from dpmic_jax.dp.information import total_mi
    from dpmic_jax.dp.max_information import max_information_after

    events = tuple(events)
    if not events:
        raise ValueError("expected at least one event: nothing was charged")
    sums = totals(events)
    return PrivacyCost(
        n=events[0].n,
        epsilon=math.inf if sums.epsilon is None or sums.delta else ceil_to_float(sums.epsilon),
        approximate_epsilon=epsilon_at(events, delta),
        delta=float(delta),
        rho=ceil_to_float(sums.rho),
        nats=total_mi(events, values=2 ** check_positive_int("record_bits", record_bits)).nats,
        bits=max_information_after(events, beta=beta).bits,
        beta=float(beta),
    )


def of_guarantee(guarantee: Guarantee, *, n: int, delta: float, beta: float) -> PrivacyCost:
    """The privacy cost of one release from n records with this guarantee, in all units."""
    event = Event(
        mechanism="any",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=n,
        sensitivity=Fraction(1),
    )
    return privacy_cost([event], delta=delta, beta=beta)


def _or_none(epsilon: float, text: str) -> str:
    return "none: it takes a delta, or a larger one" if math.isinf(epsilon) else text
