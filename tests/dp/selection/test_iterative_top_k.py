"""Peeled top-k, and report noisy max: selections made of others."""

import itertools
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest
from selecting import ALARM, boxes, int32, p_value

from dpmic_jax.dp.accounting.events import PureDP, pure_to_zcdp
from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.selection import (
    ExponentialMechanism,
    NoisyMax,
    OneShotTopK,
    PeeledTopK,
    PermuteAndFlip,
)

ONES = [PermuteAndFlip(epsilon=1.0), ExponentialMechanism(epsilon=1.0)]


@pytest.mark.parametrize("one", ONES)
def test_the_pmf_is_that_of_one_selection_after_the_other(one):
    scores = [4, 0, 3, 6]
    pmf = PeeledTopK(one=one, k=2).pmf(scores)
    assert sum(pmf.values()) == 1
    for i, j in itertools.permutations(range(4), 2):
        left = [scores[m] for m in range(4) if m != i]
        expected = one.pmf(scores)[i] * one.pmf(left)[j - (j > i)]
        assert pmf[i, j] == expected


@pytest.mark.parametrize("one", ONES)
def test_draws_follow_the_exact_distribution_and_no_other_scale(one, key):
    scores = [4, 0, 3, 6]
    counts = Counter(
        tuple(PeeledTopK(one=one, k=2).select(int32(scores), key=each).tolist())
        for each in jax.random.split(key, 800)
    )
    assert p_value(counts, PeeledTopK(one=one, k=2).pmf(scores)) > ALARM
    for epsilon in (Fraction(1, 2), 2.0):
        other = PeeledTopK(one=type(one)(epsilon=epsilon), k=2)
        assert p_value(counts, other.pmf(scores)) < ALARM


@pytest.mark.parametrize("one", ONES)
def test_exact_loss_is_k_epsilon_and_no_more(one):
    mechanism = PeeledTopK(one=one, k=2)
    found = exact_loss(mechanism.pmf, boxes([(0, 0, 20), (0, 1, 20, 19)], 1))
    assert found.at_most(2.0)
    assert not found.at_most(1.98)
    assert not found.at_most(1.0)  # the claim that forgets k
    assert mechanism.guarantee == PureDP(2.0)
    assert mechanism.certificate().epsilon_realised <= 2


def test_rho_is_an_eighth_of_epsilon_squared_each_with_the_exponential_mechanism():
    mechanism = PeeledTopK(one=ExponentialMechanism(epsilon=0.1), k=30)
    assert mechanism.rho == pytest.approx(30 * 0.1**2 / 8, rel=1e-9)
    assert mechanism.concentrated.rho == mechanism.rho
    flips = PeeledTopK(one=PermuteAndFlip(epsilon=0.1), k=30)
    assert flips.rho == pytest.approx(30 * pure_to_zcdp(0.1), rel=1e-12)
    assert 3.9 < flips.rho / mechanism.rho < 4


@pytest.mark.parametrize("one", ONES)
def test_no_candidate_is_chosen_twice_and_all_can_be_chosen(one, key):
    scores = int32([0] * 6)
    found = PeeledTopK(one=one, k=6).select(scores, key=key)
    assert sorted(found.tolist()) == list(range(6))


def test_more_winners_than_candidates_are_refused(key):
    with pytest.raises(ValueError, match="at least 3 candidates"):
        PeeledTopK(one=ONES[0], k=3).select(int32([1, 2]), key=key)
    with pytest.raises(ValueError, match="k"):
        PeeledTopK(one=ONES[0], k=0)


# --- report noisy max ----------------------------------------------------------------------


def test_noisy_max_is_one_shot_top_k_with_k_1(key):
    mechanism = NoisyMax(epsilon=1.0, sensitivity=2, top=30)
    same = OneShotTopK(epsilon=1.0, sensitivity=2, k=1, top=30)
    scores = int32([3, 30, 29, 17])
    for each in jax.random.split(key, 20):
        assert [int(mechanism.select(scores, key=each))] == same.select(scores, key=each).tolist()
    noisy = mechanism.noisy(scores, key=key)
    np.testing.assert_array_equal(noisy, mechanism.release(scores, key=key))
    assert int(mechanism.choose(noisy, key=key)) == int(same.choose(noisy, key=key)[0])
    assert mechanism.pmf([3, 30, 29]) == list(same.pmf([3, 30, 29]).values())
    assert mechanism.certificate() == same.certificate()
    assert mechanism.guarantee == PureDP(1.0)


def test_noisy_max_with_laplace_noise_would_err_more():
    """e^-x (2 + x) / 4 against e^-x / 2 for two candidates x = rate d apart."""
    mechanism, d = NoisyMax(epsilon=1.0, sensitivity=1, top=8), 8
    x = float(OneShotTopK(epsilon=1.0, sensitivity=1, k=1, top=8).rate) * d
    draws = np.random.default_rng(0).laplace(size=(2, 10**6))
    laplace = np.mean(draws[0] + x < draws[1])
    assert laplace == pytest.approx(np.exp(-x) * (2 + x) / 4, rel=0.03)
    assert float(mechanism.pmf([d, 0])[1]) == pytest.approx(np.exp(-x) / 2, rel=1e-9)
    assert mechanism.pmf([d, 0])[1] < laplace / 2
