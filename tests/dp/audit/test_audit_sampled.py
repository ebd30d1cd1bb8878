"""Lower bounds on epsilon from draws: what they catch, and that they keep their confidence."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.published_geom import PublishedGeom, appendix_grids
from dpmic_jax.dp.audit import FEATURES, bound_of_event, event_loss, lowest_bit, sampled_loss

DRAWS = 10**6
CONFIDENCE = 1 - 1e-6  # so that a sound mechanism fails here once in a million seeds


def discrete_laplace(epsilon, size, rng):
    """A difference of two geometric draws: P(x) is proportional to e^-epsilon|x|."""
    return rng.geometric(1 - math.exp(-epsilon), size) - rng.geometric(1 - math.exp(-epsilon), size)


def noisy(value, epsilon, rng, low=0, high=10, draws=DRAWS):
    return np.clip(value + discrete_laplace(epsilon, draws, rng), low, high)


def audit(first, second, **settings):
    return sampled_loss(first, second, confidence=CONFIDENCE, **settings)


def test_correct_noise_has_a_bound_just_below_epsilon(rng):
    bound = audit(noisy(4, 1.0, rng), noisy(5, 1.0, rng))
    assert 0.95 < bound.epsilon <= 1.0


def test_noise_at_two_thirds_of_the_scale_is_detected(rng):
    bound = audit(noisy(4, 1.5, rng), noisy(5, 1.5, rng))
    assert 1.4 < bound.epsilon <= 1.5


def test_noise_at_three_halves_of_the_scale_loses_two_thirds(rng):
    bound = audit(noisy(4, 2 / 3, rng), noisy(5, 2 / 3, rng))
    assert 0.63 < bound.epsilon <= 2 / 3


def test_a_reused_key_is_detected_and_two_keys_pass(rng):
    """Two counts; one record moves both by 1, in opposite directions."""
    one = discrete_laplace(1.0, DRAWS, rng), discrete_laplace(1.0, DRAWS, rng)
    reused = [np.stack([4 + a + x, 4 - a + x], axis=1) for a, x in enumerate(one)]
    assert audit(*reused).epsilon > 8
    fresh = [np.stack([noisy(4 + a, 1.0, rng), noisy(4 - a, 1.0, rng)], axis=1) for a in (0, 1)]
    assert 1.5 < audit(*fresh).epsilon <= 2.0


def test_truncation_to_the_range_of_the_data_is_detected(rng):
    bound = audit(noisy(4, 1.0, rng, high=8), noisy(5, 1.0, rng, high=9))
    assert bound.epsilon > 5
    assert bound.swapped  # 9 occurs on the second data set only
    assert bound.event == "output at least 9"


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.03)])
def test_laplace_noise_in_float32_is_detected(values, key):
    """Its scale is right for epsilon = 1. The lattice on which an output lies tells the value."""
    scale = np.float32(values[1] - values[0])
    draws = [
        np.float32(value) + scale * np.asarray(jax.vmap(jax.random.laplace)(keys))
        for value, keys in zip(values, jax.random.split(key, (2, DRAWS)), strict=True)
    ]
    bound = audit(*draws)
    assert bound.epsilon > 5
    assert bound.event.startswith("lowest bit")
    # Looking at the order of outputs only, nothing is wrong with it.
    in_order = {f"below {t}": lambda draws, t=t: draws < t for t in np.linspace(-1, 2, 7)}
    assert event_loss(*draws, in_order, confidence=CONFIDENCE).epsilon <= 1.0


def test_laplace_noise_in_float32_is_detected_where_both_values_share_their_lattice(key):
    scale = np.float32(0.05)
    draws = [
        np.float32(value) + scale * np.asarray(jax.random.laplace(one, (DRAWS,)))
        for value, one in zip((0.4, 0.45), jax.random.split(key), strict=True)
    ]
    bound = audit(*draws)
    assert bound.epsilon > 1.1
    assert "likelier values" in bound.event


def test_laplace_noise_in_float32_rounded_to_a_public_lattice_shows_nothing(key):
    draws = [
        np.round((value + np.asarray(jax.random.laplace(one, (DRAWS,)))) * 8) / 8
        for value, one in zip((0.0, 1.0), jax.random.split(key), strict=True)
    ]
    assert 0.9 < audit(*draws).epsilon <= 1.0


def test_published_geom_charged_once_is_detected(rng):
    geom = PublishedGeom(grids=appendix_grids(6), n=5, epsilon=1.0)
    draws = []
    for data in ((0, 0, 0, 0, 0), (0, 0, 0, 0, 10)):
        pmf = geom.law(data)
        p = np.array([float(chance) for chance in pmf.values()])
        draws.append(rng.choice(np.array(list(pmf)), 2 * DRAWS, p=p / p.sum()))
    assert 1.1 < audit(*draws).epsilon <= 3.0


def test_delta_lowers_the_bound(rng):
    """Sound noise, which tells the value outright with probability 1/100."""
    draws = []
    for value in (4, 5):
        told = rng.random(DRAWS) < 0.01
        draws.append(np.where(told, 100 + value, noisy(value, 1.0, rng)))
    assert audit(*draws).epsilon > 5
    assert 0.9 < audit(*draws, delta=0.01).epsilon <= 1.0


def test_a_custom_feature_is_used(rng):
    """Whether neighbouring outputs of one release are in order, which no threshold sees."""
    first, second = rng.normal(size=(2, 100_000, 2))
    second.sort(axis=1)
    features = {"rises": lambda draws: draws[:, 0] < draws[:, 1]}
    assert audit(first, second, features=features | dict(FEATURES)).event.startswith("rises")


def test_nan_counts_as_an_output(rng):
    first, second = rng.integers(0, 5, (2, 10_000)).astype(float)
    first[rng.random(10_000) < 0.1] = np.nan
    assert audit(first, second).epsilon > 2


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.3, 0.1), (0.9, 0.3), (0.05, 0.04)])
@pytest.mark.parametrize("draws", [12, 40])
def test_bound_fails_at_most_as_often_as_stated(p, q, draws):
    hits = np.arange(draws + 1)
    chance = np.outer(stats.binom.pmf(hits, draws, p), stats.binom.pmf(hits, draws, q))
    for confidence in (0.8, 0.95):
        above = [
            [
                bound_of_event(a, draws, b, draws, confidence=confidence) > math.log(p / q)
                for b in hits
            ]
            for a in hits
        ]
        assert chance[np.array(above)].sum() <= 1 - confidence


def test_bound_is_tight_with_many_draws():
    bound = bound_of_event(300_000, 10**6, 100_000, 10**6, confidence=CONFIDENCE)
    assert 0.97 * math.log(3) < bound < math.log(3)
    allowed = bound_of_event(300_000, 10**6, 100_000, 10**6, confidence=CONFIDENCE, delta=0.1)
    assert 0.94 * math.log(2) < allowed < math.log(2)


def test_choosing_the_event_on_other_draws_keeps_the_confidence(rng):
    """Both data sets have the same distribution, so every bound above 0 is a false alarm."""
    alarms = 0
    for _ in range(400):
        first, second = rng.integers(0, 40, (2, 400))
        alarms += sampled_loss(first, second, confidence=0.8).epsilon > 0
    assert alarms <= stats.binom.isf(1e-6, 400, 0.2)


def test_bonferroni_makes_bounds_of_more_events_lower(rng):
    draws = noisy(4, 1.0, rng), noisy(5, 1.0, rng)
    events = {f"at least {t}": lambda x, t=t: x >= t for t in range(11)}
    many = event_loss(*draws, events, confidence=CONFIDENCE)
    one = event_loss(*draws, {many.event: events[many.event]}, confidence=CONFIDENCE)
    assert 0.95 < many.epsilon < one.epsilon <= 1.0


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_lowest_bit_is_that_of_the_exact_fraction(numbers):
    found = lowest_bit(np.array(numbers, np.float32))
    for number, place in zip(numbers, found.tolist(), strict=True):
        if number:
            odd = Fraction(number) / Fraction(2) ** place
            assert odd.denominator == 1
            assert odd.numerator % 2 == 1


def test_zero_infinity_and_nan_have_lowest_bits_of_their_own():
    places = lowest_bit(np.array([0.0, np.inf, np.nan, 1.0, 5e-324]))
    assert len(set(places.tolist())) == 5


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_an_invalid_confidence_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        sampled_loss(np.zeros(8), np.ones(8), confidence=confidence)


def test_fewer_than_four_draws_are_refused():
    assert sampled_loss(np.zeros(8), np.ones(8), confidence=0.99).epsilon == 0
    with pytest.raises(ValueError, match="4 draws"):
        sampled_loss(np.zeros(3), np.ones(3), confidence=0.99)
