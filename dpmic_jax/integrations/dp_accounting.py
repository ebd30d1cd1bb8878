"""Events of this library as those of dp-accounting."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from dpmic_jax.dp.accounting.composition import totals
from dpmic_jax.dp.accounting.events import ZCDP, Event, GaussianDP, Guarantee, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float

if TYPE_CHECKING:
    import dp_accounting


class DpAccountingEvents(NamedTuple):
    """What an accountant of dp-accounting composes.

    Attributes:
      event: all events, composed.
      neighboring_relation: the relation that the accountant has to have.
      variation: total variation between all noise and its ideal distribution, which `event` leaves
        out; 0 for epsilon-DP events. Add (1 + e^epsilon) times it to the delta at epsilon.
    """

    event: "dp_accounting.ComposedDpEvent"
    neighboring_relation: "dp_accounting.NeighboringRelation"
    variation: float


def to_dp_accounting(events: Iterable[Event]) -> DpAccountingEvents:
    """Events for an accountant of dp-accounting, which composes them with those of others.

    - epsilon-DP is a post-processing of randomised response with odds e^epsilon (Kairouz, Oh and
      Viswanath 2015), so it becomes a `RandomizedResponseDpEvent` with two buckets.
    - mu-GDP becomes a `GaussianDpEvent` of noise multiplier 1 / mu. `PLDAccountant` takes the
      sensitivity of a replaced record for twice that of a removed one, so it overstates the cost.
    - rho-zCDP becomes a `ZCDpEvent`, which `RdpAccountant` composes.

    Raises:
      ValueError: for an (epsilon, delta)-DP event, of which dp-accounting has no kind.
    """
    try:
        import dp_accounting
    except ImportError as error:
        raise ImportError(
            'to_dp_accounting needs dp-accounting: pip install "dpmic_jax[accounting]"'
        ) from error
    events = tuple(events)
    # Not SelfComposedDpEvent: PLDAccountant of 0.6.0 counts a repeated randomised response once.
    composed = [one for event in events for one in [_event(event.guarantee)] * event.count]
    return DpAccountingEvents(
        dp_accounting.ComposedDpEvent(composed),
        dp_accounting.NeighboringRelation.REPLACE_ONE,
        ceil_to_float(totals(events).variation),
    )


def _event(guarantee: Guarantee) -> "dp_accounting.DpEvent":
    import dp_accounting

    if isinstance(guarantee, PureDP):
        # A smaller parameter is less noise, so rounding goes down.
        noise = math.nextafter(2 / (1 + math.exp(guarantee.epsilon)) * (1 - 2.0**-50), 0)
        return dp_accounting.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
    if isinstance(guarantee, GaussianDP):
        multiplier = math.nextafter(float(1 / Fraction(guarantee.mu)), 0)
        return dp_accounting.GaussianDpEvent(noise_multiplier=multiplier)
    if isinstance(guarantee, ZCDP):
        return dp_accounting.ZCDpEvent(rho=guarantee.rho)
    raise ValueError(
        f"dp-accounting has no event for {guarantee}; compose it with "
        "dpmic_jax.dp.accounting.composition"
    )
