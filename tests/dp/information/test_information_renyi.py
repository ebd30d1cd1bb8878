"""Information of other orders, by its closed form on random channels and input distributions."""

import math

import numpy as np
import pytest
from channels import SHAPES, loss, random_channels, sibson, windows
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.information import published, pure_to_group_renyi, pure_to_mi, pure_to_renyi

ORDERS = [0.1, 0.5, 0.9, 1.1, 2.0, 5.0, 50.0, math.inf]


@pytest.mark.parametrize("order", ORDERS)
def test_no_channel_has_more_information_than_the_bound(order):
    rng = np.random.default_rng(9)
    for shape in SHAPES:
        made = random_channels(rng, *shape, 200)
        held = loss(made)
        made = made[np.isfinite(held) & (held > 1e-6) & (held < 12)]
        epsilons = loss(made) * (1 + 1e-9)
        bound = np.array([pure_to_renyi(PureDP(float(e)), order=order).nats for e in epsilons])
        # To the rounding of sums to a power of 1 / order, times order / (order - 1).
        slack = 1e-13 * max(10.0, 10 / order)
        for sharpness in (0.3, 1.0, 30.0):
            inputs = rng.dirichlet(np.full(shape[0], sharpness), size=len(made))
            assert (sibson(made, inputs, order) <= bound + slack).all()


@pytest.mark.parametrize("order", ORDERS[:-1])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_many_inputs_attain_the_bound(order, epsilon):
    """Windows on a circle, of the best width for the order."""
    big, odds = math.expm1(order * epsilon), math.expm1(epsilon)
    best = (big - order * odds) / ((order - 1) * big * odds)
    inputs = min(range(20, 500), key=lambda m: abs(max(round(best * m), 1) / m - best))
    channel = windows(epsilon, max(round(best * inputs), 1), inputs)[None]
    told = sibson(channel, np.full((1, inputs), 1 / inputs), order)[0]
    bound = pure_to_renyi(PureDP(epsilon), order=order).nats
    assert told <= bound + 1e-12
    if best * 500 > 5:
        assert told == pytest.approx(bound, abs=1e-7)
    assert told > bound / 1.5


def test_order_infinity_is_epsilon_in_the_limit_of_many_inputs():
    channel = windows(1.0, 1, 3000)[None]
    assert 0.99 < sibson(channel, None, math.inf)[0] < 1.0
    assert pure_to_renyi(PureDP(1.0), order=math.inf).nats == 1.0


@given(st.floats(1e-4, 20.0), st.floats(0.01, 200.0))
def test_the_bound_grows_with_the_order_and_stays_below_lemma_4(epsilon, order):
    found = pure_to_renyi(PureDP(epsilon), order=order).nats
    assert 0 < found <= published.lemma_4(PureDP(epsilon), order=order).nats
    assert found <= pure_to_renyi(PureDP(epsilon), order=1.5 * order).nats * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 10.0])
def test_order_one_is_mutual_information(epsilon):
    expected = pure_to_mi(PureDP(epsilon)).nats
    assert pure_to_renyi(PureDP(epsilon), order=1.0).nats == expected
    for order in (1 - 1e-12, math.nextafter(1.0, 2), 1 + 1e-12):
        near = pure_to_renyi(PureDP(epsilon), order=order).nats
        assert near == pytest.approx(expected, rel=1e-9)


def test_a_group_has_the_bound_of_its_total_epsilon():
    found = pure_to_group_renyi(PureDP(0.1), records=10, order=2.0)
    assert found == pure_to_renyi(PureDP(1.0), order=2.0)
    printed = published.corollary_6(PureDP(0.1), records=10, order=2.0)
    assert printed.nats == 1.0
    assert found.nats < printed.nats / 2
    assert pure_to_renyi(PureDP(1e5), order=500.0).nats == 1e5


@pytest.mark.parametrize("order", [-1.0, math.nan])
def test_orders_out_of_range_are_refused(order):
    for bound in (pure_to_renyi, published.lemma_4):
        with pytest.raises(ValueError, match="Lemma 4 is about orders alpha >= 0"):
            bound(PureDP(1.0), order=order)
    with pytest.raises(ValueError, match="alpha >= 0"):
        published.corollary_6(PureDP(1.0), records=2, order=order)
    with pytest.raises(ValueError, match="alpha >= 0"):
        pure_to_group_renyi(PureDP(1.0), records=2, order=order)
