"""Top-k under zCDP: its budget, its distribution, its range, its Rényi divergence, mistakes."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import jax
import pytest
from selecting import ALARM, boxes, int32, p_value

from dpmic_jax.dp.accounting.events import ZCDP
from dpmic_jax.dp.accounting.zcdp import epsilon_for, rho_for
from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.selection import (
    ExponentialMechanism,
    OneShotTopK,
    PeeledTopK,
    PermuteAndFlip,
    ZCDPTopK,
)

TWO = ZCDPTopK(rho=0.0625, sensitivity=1, k=2)  # epsilon_each = 1/2
ALPHAS = [1.001, 1.5, 2.0, 5.0, 30.0]
# Half of the candidates rise and half fall, and what is left does so again after a winner.
GROUP = [(0,) * 6, (1, 1, 1, -1, -1, -1), (1, -1, -1, -1, -1, -1), (1, 1, 1, 1, 1, -1)]


def divergence(p, q, alpha):
    """The Rényi divergence of order alpha, in nats."""
    moment = math.fsum(float(p[o]) ** alpha * float(q[o]) ** (1 - alpha) for o in p)
    return math.log(moment) / (alpha - 1)


def worst(pmf, group, alpha):
    found = [pmf(scores) for scores in group]
    return max(
        divergence(p, q, alpha)
        for other in found[1:]
        for p, q in ((found[0], other), (other, found[0]))
    )


# --- the budget ----------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "each"), [(20, 0.0987), (50, 0.0624), (200, 0.0312)])
def test_a_winner_has_more_epsilon_than_the_pure_one_at_the_same_delta(k, each):
    """The last column of the table in docs/selection.md: (1, 1e-6)-DP for all k."""
    mechanism = ZCDPTopK(rho=rho_for(1.0, 1e-6), sensitivity=1, k=k)
    assert float(mechanism.epsilon_each) == pytest.approx(each, abs=6e-5)
    assert mechanism.epsilon_each > Fraction(19, 10) / k
    assert epsilon_for(mechanism.guarantee.rho, 1e-6) <= 1.0


@pytest.mark.parametrize("rho", [1e-9, 0.1, Fraction(1, 3), 2.0, 50.0])
@pytest.mark.parametrize("k", [1, 7, 300])
@pytest.mark.parametrize("sensitivity", [1, 2048])
def test_the_certificate_keeps_rho_and_wastes_none(rho, k, sensitivity):
    mechanism = ZCDPTopK(rho=rho, sensitivity=sensitivity, k=k)
    found = mechanism.certificate()
    asked = rho if isinstance(rho, Fraction) else Fraction(repr(rho))
    assert asked * (1 - Fraction(1, 10**4)) <= found.rho_realised <= asked
    assert found.rho_realised == k * found.range_each**2 / 8
    assert found.range_each > mechanism.rounds.one.certificate().epsilon_realised
    assert found.delta_numerical == 0
    assert isinstance(mechanism.guarantee, ZCDP)
    assert mechanism.guarantee.delta == 0
    assert asked <= Fraction(repr(mechanism.guarantee.rho)) <= asked * (1 + Fraction(1, 2**50))


# --- the distribution ----------------------------------------------------------------------


def test_the_pmf_is_that_of_exponential_mechanisms_without_replacement():
    scores = [4, 0, 3, 6]
    pmf = TWO.pmf(scores)
    assert sum(pmf.values()) == 1
    for i, j in itertools.permutations(range(4), 2):
        weights = [math.exp(0.5 * s / 2) for s in scores]
        p = weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i])
        assert float(pmf[i, j]) == pytest.approx(p, rel=1e-9)


def test_draws_follow_the_exact_distribution_and_no_other_scale(key):
    scores, mechanism = [8, 0, 6, 12], replace(TWO, rho=0.25)
    counts = Counter(
        tuple(mechanism.select(int32(scores), key=each).tolist())
        for each in jax.random.split(key, 1500)
    )
    assert p_value(counts, mechanism.pmf(scores)) > ALARM
    for factor in (4 / 9, 9 / 4):
        assert p_value(counts, replace(mechanism, rho=0.25 * factor).pmf(scores)) < ALARM


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_renyi_divergence_is_within_alpha_rho_and_near_it(alpha, k):
    mechanism = ZCDPTopK(rho=k / 32, sensitivity=1, k=k)
    found = worst(mechanism.pmf, GROUP, alpha)
    assert found <= alpha * mechanism.guarantee.rho * (1 + 1e-9)
    if alpha < 3:
        assert found > 0.85 * alpha * mechanism.guarantee.rho


@pytest.mark.parametrize("alpha", [2, 3, 16])
@pytest.mark.parametrize(("rho", "k"), [(0.02, 2), (1.0, 2), (6.0, 3)])
def test_renyi_divergence_over_all_neighbours_is_within_alpha_rho_exactly(alpha, rho, k):
    """Integer orders need no rounding: sum p^alpha q^(1 - alpha) <= e^((alpha - 1) alpha rho)."""
    mechanism = ZCDPTopK(rho=rho, sensitivity=1, k=k)
    allowed = exp_between(alpha * (alpha - 1) * Fraction(repr(rho)), 40)[0]
    for group in boxes([(0, 0, 0), (0, 1, 5), (0, 0, 20)], 1):
        pmfs = [mechanism.pmf(scores) for scores in group]
        for p, q in itertools.permutations(pmfs, 2):
            assert sum(p[o] ** alpha / q[o] ** (alpha - 1) for o in p) <= allowed


@pytest.mark.parametrize("rho", [0.02, 1.0, 30.0])
def test_the_range_of_each_round_is_within_the_certificate_exactly(rho):
    """Of the largest over the least ratio, for every set of candidates that may be left."""
    mechanism = ZCDPTopK(rho=rho, sensitivity=1, k=2)
    length = mechanism.certificate().range_each
    allowed, nearly = exp_between(length, 60)[0], exp_between(Fraction(99, 100) * length, 30)[1]
    reached = Fraction(0)
    for group in boxes([(0, 0), (0, 0, 1), (0, 2, 30), (0, 1, 4, 9)], 1):
        pmfs = [mechanism.rounds.one.pmf(scores) for scores in group]
        for p, q in itertools.permutations(pmfs, 2):
            ratios = [a / b for a, b in zip(p, q, strict=True)]
            found = max(ratios) / min(ratios)
            assert found <= allowed
            reached = max(reached, found)
    assert reached > nearly


def test_the_pure_guarantee_of_the_rounds_holds_as_well():
    found = exact_loss(TWO.pmf, boxes([(0, 0, 20), (0, 1, 20, 19)], 1))
    assert found.at_most(2 * TWO.epsilon_each)
    assert not found.at_most(TWO.epsilon_each)


# --- what breaks it ------------------------------------------------------------------------


def test_noise_for_three_halves_of_rho_is_caught():
    broken = replace(TWO, rho=TWO.rho * 3 / 2)
    assert worst(broken.pmf, GROUP, 1.001) > 1.2 * 1.001 * TWO.rho


def test_rounds_that_forget_k_are_caught():
    broken = PeeledTopK(one=ZCDPTopK(rho=TWO.rho, sensitivity=1, k=1).rounds.one, k=2)
    assert worst(broken.pmf, GROUP, 1.001) > 1.7 * 1.001 * TWO.rho


def test_scores_whose_exponent_forgets_the_factor_2_are_caught():
    broken = PeeledTopK(one=ExponentialMechanism(epsilon=1.0), k=2)  # epsilon s / S
    assert worst(broken.pmf, GROUP, 1.001) > 3 * 1.001 * TWO.rho


@pytest.mark.parametrize("each", [0.1, 0.02])
def test_permute_and_flip_and_one_shot_noise_have_four_times_the_rho(each):
    """From scores 2 S apart to equal ones: log ratios at both ends of -epsilon .. epsilon."""
    group = [(3, 3), (4, 2)]
    eighth = each**2 / 8

    def flips(scores):
        return dict(enumerate(PermuteAndFlip(epsilon=each).pmf(scores)))

    one_shot = OneShotTopK(epsilon=each, sensitivity=1, k=1, top=9).pmf
    exponential = ZCDPTopK(rho=eighth, sensitivity=1, k=1).pmf
    for pmf in (flips, one_shot):
        p, q = (pmf(scores) for scores in group)
        ratios = [math.log(a / b) for a, b in zip(p.values(), q.values(), strict=True)]
        assert max(ratios) - min(ratios) > 1.9 * each
        assert worst(pmf, group, 1.001) > 3.4 * 1.001 * eighth
    assert worst(exponential, group, 1.001) <= 1.001 * eighth * (1 + 1e-6)


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, -1.0, float("nan"), float("inf")])
def test_an_invalid_rho_is_refused(rho):
    with pytest.raises(ValueError, match="rho"):
        ZCDPTopK(rho=rho, sensitivity=1, k=2)


def test_invalid_settings_are_refused(key):
    with pytest.raises(ValueError, match="k"):
        replace(TWO, k=0)
    with pytest.raises(ValueError, match="sensitivity"):
        replace(TWO, sensitivity=0)
    with pytest.raises(ValueError, match="at least 2 candidates"):
        TWO.select(int32([1]), key=key)
    with pytest.raises(ValueError, match="epsilon"):
        replace(TWO, rho=1e-25)
