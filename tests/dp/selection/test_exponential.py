"""The exponential mechanism: its distribution, its loss, its bounded range, its zCDP."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selecting import ALARM, boxes, int32, p_value

from dpmic_jax.dp.accounting.events import ZCDP, PureDP
from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.dp.selection import ExponentialMechanism

ONE = ExponentialMechanism(epsilon=1.0)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=6), st.sampled_from([0.1, 1.0, 5.0]))
def test_the_pmf_matches_the_definition(scores, epsilon):
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=2)
    found = mechanism.pmf(scores)
    assert sum(found) == 1
    weights = [math.exp(epsilon * (s - max(scores)) / 4) for s in scores]
    for p, weight in zip(found, weights, strict=True):
        assert float(p) == pytest.approx(weight / sum(weights), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 2000), (0.001, 2000), (1e-6, 2**30)])
def test_weights_of_many_digits_are_powers_of_e(epsilon, sensitivity):
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    for d in (1, 2047, 2048, 2049, 4194303, 4194304, 123456789, 2**32 - 1):
        d = min(d, mechanism.certificate().furthest)
        best, other = mechanism.pmf([d, 0])
        low, high = exp_between(-mechanism.rate * d, 40)
        margin = Fraction(1, 2**50)
        assert low * (1 - margin) <= other / best <= high * (1 + margin)


def test_draws_follow_the_exact_distribution_and_no_other_scale(key):
    scores = [0, -1, -3, 0, -7, -12, -2]
    mechanism = ExponentialMechanism(epsilon=3.0, sensitivity=2)
    keys = jax.random.split(key, 2000)
    counts = Counter(int(mechanism.select(int32(scores), key=one)) for one in keys)

    def fits(factor):
        other = ExponentialMechanism(epsilon=3.0 * factor, sensitivity=2)
        return p_value(counts, dict(enumerate(other.pmf(scores))))

    assert fits(1) > ALARM
    assert max(fits(2 / 3), fits(3 / 2)) < ALARM


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "corners"),
    [
        (1.0, 1, [(0, 0), (0, 30), (0, 15, 30), (0, 0, 3, 30)]),
        (0.1, 1, [(0, 0), (0, 200), (0, 0, 200)]),
        (1.0, 3, [(0, 0), (0, 90), (0, 5, 90)]),
        (40.0, 1, [(0, 0), (0, 1), (0, 2), (0, 1, 3)]),
    ],
)
def test_exact_loss_over_neighbours_is_epsilon_and_no_more(epsilon, sensitivity, corners):
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    found = exact_loss(lambda s: dict(enumerate(mechanism.pmf(s))), boxes(corners, sensitivity))
    assert found.at_most(epsilon)
    assert not found.at_most(0.98 * epsilon)


@pytest.mark.parametrize("epsilon", [2.0, 64.0, 100.0])
def test_exact_loss_holds_for_candidates_beyond_the_furthest_distance(epsilon):
    mechanism = ExponentialMechanism(epsilon=epsilon)
    furthest = mechanism.certificate().furthest
    near = [-furthest - 1, -furthest, -furthest + 1, -furthest // 2, -2]
    corners = list(itertools.product([0], near, near))
    found = exact_loss(lambda s: dict(enumerate(mechanism.pmf(s))), boxes(corners, 1))
    assert found.at_most(epsilon)


def test_weights_for_three_halves_of_epsilon_are_caught():
    mechanism = ExponentialMechanism(epsilon=1.5)
    found = exact_loss(lambda s: dict(enumerate(mechanism.pmf(s))), boxes([(0, 20)], 1))
    assert not found.at_most(1.0)


def ratios(mechanism, one, other):
    return [math.log(p / q) for p, q in zip(mechanism.pmf(one), mechanism.pmf(other), strict=True)]


def test_the_range_of_all_log_ratios_is_epsilon_wherever_it_lies():
    group = next(boxes([(0, 0, 2, 20)], 1))
    ranges = []
    for one, other in itertools.permutations(group, 2):
        found = ratios(ONE, one, other)
        ranges.append(max(found) - min(found))
    assert 0.999 < max(ranges) <= 1 + 1e-12


@pytest.mark.parametrize("alpha", [1.001, 2.0, 5.0, 50.0])
def test_renyi_divergence_is_within_alpha_rho_and_near_it(alpha):
    """rho = epsilon^2 / 8: half of what epsilon alone says, and reached where half of the
    candidates go up, half of them down, and alpha is near 1."""
    mechanism = ExponentialMechanism(epsilon=0.5)
    worst = 0.0
    for up in range(1, 8):
        one, other = (0,) * 8, (1,) * up + (-1,) * (8 - up)
        pairs = [
            (float(p), float(q))
            for p, q in zip(mechanism.pmf(one), mechanism.pmf(other), strict=True)
        ]
        for way in (pairs, [(q, p) for p, q in pairs]):
            moment = sum(p**alpha * q ** (1 - alpha) for p, q in way)
            worst = max(worst, math.log(moment) / (alpha - 1))
    assert worst <= alpha * mechanism.rho * (1 + 1e-9)
    if alpha < 3:
        assert worst > 0.95 * alpha * mechanism.rho
    assert mechanism.concentrated == ZCDP(mechanism.rho)
    assert mechanism.rho == pytest.approx(0.5**2 / 8, rel=1e-9)


@pytest.mark.parametrize("epsilon", [2.0**-16, 0.01, 0.5, 1.0, 7.0, 40.0, 79.0, 200.0])
@pytest.mark.parametrize("sensitivity", [1, 5, 2048])
def test_the_certificate_keeps_epsilon_and_wastes_none(epsilon, sensitivity):
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    realised, delta, furthest = mechanism.certificate()
    assert realised <= epsilon
    assert delta == 0
    assert furthest >= 1
    if mechanism.rate < 40:
        assert realised > Fraction(epsilon) - Fraction(1, 2**39)
    assert mechanism.guarantee == PureDP(epsilon)


# --- the program ---------------------------------------------------------------------------


def test_ineligible_candidates_are_never_chosen(key):
    scores, eligible = int32([50, 3, 1, 2]), np.array([False, True, True, True])
    found = {int(ONE.select_among(scores, eligible, key=one)) for one in jax.random.split(key, 200)}
    assert found == {1, 2, 3}


def test_scores_may_be_as_far_apart_as_int32_allows(key):
    scores = int32([-(2**31), 2**31 - 1, -1, 0])
    found = {int(ONE.select(scores, key=one)) for one in jax.random.split(key, 50)}
    assert found == {1}


def test_draws_cover_the_whole_range_of_weights(key):
    """Both ends of the line are hit: 2^12 equal candidates, from the first eighth to the last."""
    many = int32(np.zeros(2**12))
    found = [int(ONE.select(many, key=seeded_key(i))) for i in range(100)]
    assert min(found) < 2**9
    assert max(found) >= 2**12 - 2**9


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 2.0**-40])
def test_an_invalid_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        ExponentialMechanism(epsilon=epsilon)


@pytest.mark.parametrize("scores", [[1, 2], np.array([1, 2]), np.zeros((2, 2), np.int32)])
def test_scores_that_are_not_an_int32_array_are_refused(scores, key):
    with pytest.raises(TypeError, match="int32"):
        ONE.select(scores, key=key)
