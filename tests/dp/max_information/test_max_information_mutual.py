"""Conversions between mutual information and max-information, and description lengths."""

import itertools
import math

import numpy as np
import pytest
from informing import excess, in_nats, joint_and_product
from scipy import stats

from dpmic_jax.dp.max_information import (
    DescriptionLength,
    InformationTheorem,
    Laws,
    MaxInformation,
    compose,
    corollary_c_2,
    description_length,
    lemma_1_5,
    mutual_information,
    mutual_information_printed,
    pure,
    pure_any,
    russo_zou,
)


def random_distributions(rng, batch, rows=5, columns=6):
    """Joint distributions, some nearly independent, some far from it, and independent copies."""
    power = rng.choice([0.05, 0.5, 5.0], size=(batch, 1))
    joint = rng.gamma(np.broadcast_to(power, (batch, rows * columns))) + 1e-12
    joint = (joint / joint.sum(axis=1, keepdims=True)).reshape(batch, rows, columns)
    return joint, joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)


def information(joint, product):
    return (joint * np.log(joint / product)).sum(axis=(1, 2))


def rejections(joint, product, level):
    """The largest joint probability of an event that has `level` for independent copies.

    By Neyman and Pearson: cells in the order of their ratio, the last one in part.
    """
    order = np.argsort(-(joint / product).ravel())
    p, q = joint.ravel()[order].cumsum(), product.ravel()[order].cumsum()
    return np.interp(level, np.r_[0, q], np.r_[0, p])


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4])
def test_no_distribution_errs_more_than_alpha_at_the_level_of_its_information(rng, alpha):
    joint, product = random_distributions(rng, 30)
    for j, q, nats in zip(joint, product, information(joint, product), strict=True):
        found = InformationTheorem(nats=nats, laws=Laws.ANY).corrected(alpha)
        assert rejections(j, q, found.level) <= alpha
        assert excess(j, q, found.bits * math.log(2)) <= found.beta + 1e-12
        for beta in (0.01, 0.2):
            sharp = InformationTheorem(nats=nats, laws=Laws.ANY).at(beta)
            assert excess(j, q, in_nats(sharp)) <= beta
            assert sharp.bits <= lemma_1_5(nats, beta, Laws.ANY).bits


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4])
@pytest.mark.parametrize("many", [20, 10**4, 10**9])
def test_the_level_is_attained_by_revealing_one_of_many_values_with_probability_alpha(alpha, many):
    """A = X with probability alpha, else another of `many` values; for copies P(A = X) = 1/many."""
    if 1 / many >= alpha:
        return
    nats = alpha * math.log(alpha * many)
    nats += (1 - alpha) * math.log((1 - alpha) / (1 - 1 / many))
    found = InformationTheorem(nats=nats, laws=Laws.ANY).corrected(alpha)
    assert found.level == pytest.approx(1 / many, rel=1e-8)
    assert found.level <= 1 / many


@pytest.mark.parametrize("nats", [1e-4, 0.03, 1.0, 50.0])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_older_corrections_give_lower_levels(nats, alpha):
    best = InformationTheorem(nats=nats, laws=Laws.ANY).corrected(alpha).level
    bits = nats / math.log(2)
    printed = alpha / 2 * 2 ** (-2 / alpha * (bits + 0.54))
    assert corollary_c_2(alpha, nats) == pytest.approx(printed, rel=1e-9)
    assert corollary_c_2(alpha, nats) <= best
    gamma = russo_zou(alpha, nats)
    assert gamma <= best * (1 + 1e-8)
    if gamma > 0:
        errs = gamma + math.sqrt(nats / math.log(1 / (2 * gamma)))
        assert errs == pytest.approx(alpha, rel=1e-6)


def test_lemma_1_5_is_in_bits_on_both_sides():
    assert lemma_1_5(math.log(2), 0.1, Laws.ANY).bits == pytest.approx(15.4, rel=1e-9)


def test_theorem_e_bounds_the_information_of_random_distributions(rng):
    joint, product = random_distributions(rng, 80)
    exact = information(joint, product)
    for bits in (0.1, 1.0, 3.0):
        beta = excess(joint, product, np.full(80, bits * math.log(2)))
        for b, nats in zip(beta, exact, strict=True):
            bound = MaxInformation(bits, min(b * (1 + 1e-12), 0.999), Laws.ANY)
            assert nats <= mutual_information(bound, 5)
            if b <= 3 * (1 - 2**-bits) / 20:
                assert mutual_information(bound, 5) <= mutual_information_printed(bound, 5)


@pytest.mark.parametrize(("bits", "beta", "values"), [(1.0, 1e-3, 100), (5.0, 0.02, 10**6)])
def test_theorem_e_by_hand(bits, beta, values):
    totals = []
    for t in np.geomspace(1e-6, 100, 4001):
        w = beta / (1 - math.exp(-t))
        v = min(w, 1 / math.e)
        totals.append(bits * math.log(2) + t + w * math.log(values) + v * math.log(1 / v))
    found = mutual_information(MaxInformation(bits, beta, Laws.ANY), values)
    assert found == pytest.approx(min(*totals, math.log(values)), rel=1e-5)


def test_lemma_1_5_names_its_range():
    with pytest.raises(ValueError, match=r"Lemma 1\.5 needs k > 0 and 0 <= beta <= 3"):
        mutual_information_printed(MaxInformation(1.0, 0.2, Laws.ANY), 4)
    bound = MaxInformation(2.0, 0.05, Laws.ANY)
    by_hand = 4 * math.log(2) + 0.1 * math.log2(7 / 0.1) / 0.75
    assert mutual_information_printed(bound, 7) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("values", [1, 2, 3, 10])
@pytest.mark.parametrize("beta", [1e-3, 0.025, 0.15, 0.4])
def test_theorem_f_holds_for_results_of_few_values_and_is_attained(rng, values, beta):
    bound = DescriptionLength(values).at(beta)
    assert bound.laws is Laws.ANY
    assert bound.bits <= description_length(values, beta).bits
    channel = rng.dirichlet(np.full(values, 0.2), size=(500, 8))
    prior = rng.dirichlet(np.full(8, 0.3), size=500)
    joint, product = joint_and_product(channel, prior)
    assert excess(joint, product, in_nats(bound)).max() <= beta
    # The value itself as the output: uniform, or m - 1 values of 2^-bits / 2 and one of the rest.
    half = min(2**-bound.bits / 2, 1 / values)
    priors = [
        np.full(values, 1 / values),
        np.r_[np.full(values - 1, half), 1 - (values - 1) * half],
    ]
    attained = [excess(*joint_and_product(np.eye(values), each), in_nats(bound)) for each in priors]
    if bound.bits > 0:
        assert max(attained) == pytest.approx(beta, rel=1e-8)
        less = [excess(*joint_and_product(np.eye(values), e), in_nats(bound) / 1.5) for e in priors]
        assert max(less) > beta


def test_the_description_length_is_as_printed():
    assert description_length(8, 0.25).bits == pytest.approx(5, rel=1e-9)


def test_bonferroni_needs_no_beta_and_is_attained():
    """m disjoint events of probability alpha / m each, and the output says which one occurred."""
    for values in (1, 3, 50):
        found = DescriptionLength(values).corrected(0.05)
        assert found.level == pytest.approx(0.05 / values, rel=1e-12)
        assert values * found.level <= 0.05
        assert (found.bits, found.beta) == (math.log2(values), 0.0)


def test_composition_holds_for_two_steps_of_any_distribution(rng):
    """A choice of 2 values, then randomised response on data that the choice made dependent."""
    sets = np.array(list(itertools.product(range(2), repeat=3)))
    epsilon, beta = 0.4, 0.02
    bound = compose([DescriptionLength(2).at(beta), pure_any(epsilon, 3)])
    assert (bound.beta, bound.laws) == (pytest.approx(beta), Laws.ANY)
    apart = (sets[:, None] != sets[None]).sum(axis=-1)
    response = np.exp(-epsilon * apart)
    response /= response.sum(axis=1, keepdims=True)
    for _ in range(300):
        prior = rng.dirichlet(np.full(8, 0.3))
        choice = rng.dirichlet([0.2, 0.2], size=8)
        turned = sets[:, ::-1].dot([4, 2, 1])
        both = np.concatenate(
            [choice[:, :1] * response, choice[:, 1:] * response[:, turned]], axis=1
        )
        joint, product = joint_and_product(both, prior)
        assert excess(joint, product, in_nats(bound)) <= bound.beta


def test_composition_adds_bits_and_betas_and_keeps_the_first_assumption():
    first = pure(0.1, 100).at(0.01)
    bound = compose([first, DescriptionLength(4).at(0.02), pure_any(0.1, 100)])
    assert bound.bits >= first.bits + DescriptionLength(4).at(0.02).bits + 10 / math.log(2)
    assert bound.bits == pytest.approx(
        first.bits + math.log2(3 / 0.08) + 10 / math.log(2), rel=1e-9
    )
    assert bound.beta == pytest.approx(0.03)
    assert bound.laws is Laws.PRODUCT


def test_a_bound_for_independent_records_may_not_come_second():
    steps = [DescriptionLength(4).at(0.01), pure(0.1, 100).at(0.01)]
    with pytest.raises(ValueError, match=r"step 2 .* independent records.*Theorem 3\.9"):
        compose(steps)
    assert compose(steps[::-1]).laws is Laws.PRODUCT
    with pytest.raises(ValueError, match="betas of the steps add up to"):
        compose([DescriptionLength(4).at(0.6)] * 2)
    with pytest.raises(ValueError, match="at least one step"):
        compose([])


def test_a_bound_for_independent_records_fails_as_a_second_step():
    """After n - 1 bits about n fair ones, a step with little about fair bits reveals the last.

    First release d_i = x_i xor x_1. Then, privately, whether the number of x_i xor d_i plus Laplace
    noise is above n/2: after d that number is 0 or n.
    """
    n, epsilon, beta = 101, 0.1, 0.01
    counts = np.arange(n + 1)
    less = np.exp(-epsilon * np.abs(counts - n / 2)) / 2
    above = np.where(counts > n / 2, 1 - less, less)
    channel = np.stack([above, 1 - above], axis=1)
    joint, product = joint_and_product(channel, stats.binom.pmf(counts, n, 0.5))
    second = 0.8
    assert excess(joint, product, second * math.log(2)) <= beta
    # d has n - 1 bits at beta = 0. Both together: P(x, d, b) = 2^n P(b | count) times P(x) P(d, b).
    together = sum(max(channel[n, b] - 2.0 ** (n - 1 + second - n), 0) for b in (0, 1))
    assert together > 10 * beta
