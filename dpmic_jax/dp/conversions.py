"""What was spent, in all the units of the literature side by side.

For everyone in the data:
- epsilon: no output is more than e^epsilon times likelier than for a neighbour;
- (epsilon, delta): the same, but for a chance of delta;
- rho: the privacy loss is as if it were Gaussian of variance 2 rho (zCDP);
- nats: mutual information of one person's records and all outputs, given all other records.

For whoever tests on the same data:
- bits of max-information: how much likelier any finding is than on fresh data.

Events are taken as fixed beforehand. What a ledger promises, whoever steers it, is its budget.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpmic_jax.dp.accounting.composition import epsilon_at, totals
from dpmic_jax.dp.accounting.events import Event, Guarantee, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float, check_positive_int

# A record of 1024 numbers of 64 bits.
RECORD_BITS = 2**16


@dataclass(frozen=True, kw_only=True)
class PrivacyCost:
    """One cost in five units. All are upper bounds; each holds for all events together.

    Attributes:
      n: number of records.
      epsilon: infinite if no epsilon holds without a delta.
      approximate_epsilon, delta: together (epsilon, delta)-DP, at the delta that was asked for.
      rho: of zCDP; if events have deltas of their own, up to these.
      nats: about one person's records, given all the others'.
      bits: of max-information with independent records, at beta.
      beta: the chance that max-information leaves aside.
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
        """Each unit's name and amount, in words."""
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
    """What events cost together.

    Args:
      events: of one data set.
      delta: at which to state (epsilon, delta)-DP; 0 for events that are epsilon-DP.
      beta: at which to state max-information, above 0 and below 1; half of a test's alpha is
        a good choice.
      record_bits: what one person's records take at most, in bits. Without epsilon-DP they tell
        at most everything with a small chance, which is a bound only if they are finite.
    """
    # Imported here: a ledger that only records charges needs none of it.
    from dpmic_jax.dp.information import total_mi
    from dpmic_jax.dp.max_information import max_information_after

    events = tuple(events)
    if not events:
        raise ValueError("expected at least one event: nothing was spent")
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
    """What one release from n records costs that keeps a guarantee."""
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
