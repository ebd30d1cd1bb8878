"""Events for dp-accounting: its accountants find what ours do, and never less."""

import math
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting import pld, rdp

from dpmic_jax import ReplaceOne
from dpmic_jax.dp.accounting.composition import optimal
from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, Event, GaussianDP, PureDP
from dpmic_jax.integrations import to_dp_accounting


def event(guarantee, count=1):
    return Event(
        mechanism="any",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=100,
        sensitivity=Fraction(1),
        count=count,
    )


def delta_of(kind, events, epsilon):
    exported = to_dp_accounting(events)
    accountant = kind(neighboring_relation=exported.neighboring_relation)
    accountant.compose(exported.event)
    return accountant.get_delta(epsilon) + (1 + math.exp(epsilon)) * exported.variation


def test_pure_events_have_the_optimal_composition():
    events = [event(PureDP(0.3), 5), event(PureDP(0.1), 10)]
    found = delta_of(pld.PLDAccountant, events, 1.0)
    # Theirs rounds losses up to a grid.
    assert found * (1 - 1e-2) < optimal(events)(1.0) < found
    assert delta_of(rdp.RdpAccountant, events, 1.0) >= found


def test_gaussian_and_zcdp_events_cost_no_less_than_the_exact_curve():
    gaussian = [event(GaussianDP(0.4), 3)]
    exact = optimal(gaussian)(1.0)
    for kind in (pld.PLDAccountant, rdp.RdpAccountant):
        assert delta_of(kind, gaussian, 1.0) >= exact * (1 - 1e-6)
    assert delta_of(rdp.RdpAccountant, gaussian, 1.0) < 20 * exact
    zcdp = [event(ZCDP(0.08, 1e-12), 3)]
    assert to_dp_accounting(zcdp).variation == pytest.approx(3e-12)
    assert delta_of(rdp.RdpAccountant, zcdp, 1.0) >= optimal(zcdp)(1.0) * (1 - 1e-6)


def test_a_kind_of_event_that_dp_accounting_has_not_is_refused():
    with pytest.raises(ValueError, match="no event for ApproximateDP"):
        to_dp_accounting([event(PureDP(0.1)), event(ApproximateDP(0.1, 1e-6))])
    assert to_dp_accounting([]).event == dp_accounting.ComposedDpEvent([])
