"""The privacy cost of events in five units."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.conversions import of_guarantee, privacy_cost
from dpmic_jax.dp.ledger.budget import Budget, Ledger

N = 5000


def event(guarantee, count=1):
    return Event(
        mechanism="m",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=N,
        sensitivity=Fraction(1),
        count=count,
    )


def exact_excess(epsilon, n, bits):
    """P[(X, A) in O] - 2^bits P[X (x) A in O] at its largest, for n coins and randomised response.

    Each coin is reported correctly with odds e^epsilon, so the loss is a sum over coins.
    """
    right = 1 / (1 + math.exp(-epsilon))
    told = np.arange(n + 1)
    logs = np.array(
        [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in told]
    )
    joint = np.exp(logs + told * math.log(right) + (n - told) * math.log1p(-right))
    free = np.exp(logs - n * math.log(2))
    return np.maximum(joint - 2.0**bits * free, 0).sum()


@pytest.mark.parametrize("epsilon", [0.02, 0.2, 1.0])
def test_units_of_epsilon_hold_for_randomised_response(epsilon):
    found = privacy_cost([event(PureDP(epsilon))], delta=1e-6, beta=0.025)
    right = 1 / (1 + math.exp(-epsilon))
    entropy = -right * math.log(right) - (1 - right) * math.log1p(-right)
    assert math.log(2) - entropy <= found.nats <= epsilon**2 / 8 * 1.0001
    assert exact_excess(epsilon, N, found.bits) <= 0.025 * (1 + 1e-9)
    # Nearly tight: this mechanism has two thirds of the bits at n = 5000.
    assert exact_excess(epsilon, N, found.bits * 2 / 3) > 0.025
    assert found.epsilon == epsilon
    assert found.approximate_epsilon <= epsilon
    assert found.rho == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-9)


def test_a_ledger_has_the_privacy_cost_of_its_events():
    ledger = Ledger(Budget(1.0, 1e-6)).charge(event(PureDP(0.1))).charge(event(ZCDP(0.001)))
    found = ledger.privacy_cost(delta=1e-6, beta=0.01)
    assert found == privacy_cost(ledger.events, delta=1e-6, beta=0.01)
    assert found.epsilon == math.inf
    assert found.rho == pytest.approx(0.1 * math.tanh(0.05) + 0.001, rel=1e-9)
    # Nats add up: at most epsilon^2/8 and rho.
    assert found.nats == pytest.approx(0.1**2 / 8 + 0.001, rel=1e-3)
    assert 0 < found.approximate_epsilon < 1


def test_many_small_releases_reveal_little_about_one_person():
    many = privacy_cost([event(PureDP(0.01), count=100)], delta=1e-6, beta=0.025)
    one = privacy_cost([event(PureDP(1.0))], delta=1e-6, beta=0.025)
    assert many.epsilon == one.epsilon == 1
    assert many.nats < one.nats / 50
    assert many.approximate_epsilon < one.approximate_epsilon
    assert many.bits <= one.bits


def test_an_event_with_delta_has_no_pure_epsilon_but_finitely_many_nats():
    found = of_guarantee(ApproximateDP(0.5, 1e-9), n=N, delta=1e-6, beta=0.025)
    assert found.epsilon == math.inf
    assert 0.03 < found.nats < 0.14
    assert "none" in dict(found.lines())["epsilon"]
    # With larger records, the small probability of revealing everything costs more.
    kept = event(ApproximateDP(0.5, 1e-9))
    larger = privacy_cost([kept], delta=1e-6, beta=0.025, record_bits=2**17)
    assert larger.nats > found.nats


@pytest.mark.parametrize("mu", [0.03, 0.3])
def test_units_of_a_gaussian_event_hold_for_the_gaussian_mechanism(mu):
    found = of_guarantee(GaussianDP(mu), n=N, delta=1e-6, beta=0.025)
    through_rho = of_guarantee(ZCDP(mu**2 / 2 * (1 + 1e-12)), n=N, delta=1e-6, beta=0.025)
    assert found.epsilon == math.inf
    assert found.approximate_epsilon < through_rho.approximate_epsilon / 1.05
    assert mu**2 / 2 <= found.rho <= through_rho.rho
    assert found.bits <= through_rho.bits
    # A coin that is released with Gaussian noise: its mutual information is below the bound.
    x, step = np.linspace(-12, 12 + mu, 100_001, retstep=True)
    rows = np.array([norm.pdf(x), norm.pdf(x - mu)])
    nats = (rows * np.log(rows / rows.mean(axis=0))).sum() * step / 2
    assert nats <= found.nats <= mu**2 / 2 * (1 + 1e-12)
    off = of_guarantee(GaussianDP(mu, 1e-9), n=N, delta=1e-6, beta=0.025)
    assert off.nats > found.nats
    assert off.approximate_epsilon > found.approximate_epsilon


def test_every_unit_is_a_line():
    found = of_guarantee(PureDP(1.0), n=N, delta=0.0, beta=0.025)
    assert len(str(found).splitlines()) == 5
    assert "0.1233 nats, 0.1779 bits" in str(found)


def test_no_events_are_refused():
    with pytest.raises(ValueError, match="nothing was charged"):
        privacy_cost([], delta=0.0, beta=0.025)


@pytest.mark.parametrize("beta", [0.0, 1.0, -1.0])
def test_beta_outside_its_range_is_refused(beta):
    with pytest.raises(ValueError, match="0 < beta < 1"):
        privacy_cost([event(PureDP(0.1))], delta=0.0, beta=beta)
