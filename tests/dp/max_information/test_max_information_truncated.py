"""Max-information of (epsilon, delta)-DP and zCDP: each step of the proof, and the whole."""

import math

import numpy as np
import pytest
from informing import (
    data_sets,
    excess,
    in_nats,
    joint_and_product,
    neighbours,
    product_distribution,
    response_excess,
    skewed_marginals,
    uniform_response_excess,
)
from scipy import optimize, stats
from scipy.special import logsumexp

from dpmic_jax.dp.max_information import (
    InformationTheorem,
    Laws,
    approximate,
    approximate_product,
    concentrated,
    profiled,
    pure,
)
from dpmic_jax.dp.max_information.published import nu
from dpmic_jax.dp.max_information.truncated import curve_tail, rho_tail, step

LOG2 = math.log(2)


@pytest.mark.parametrize("c", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("s", [0.01, 0.7, 5.0, 40.0])
def test_no_ratio_has_a_larger_truncated_moment_and_two_values_attain_it(rng, s, c):
    base, weight = (float(each) for each in step(np.asarray(s), np.asarray(c)))
    values = np.exp(c * rng.normal(scale=1.5, size=(3000, 6)))
    weights = rng.dirichlet(np.full(6, 0.4), size=3000)
    values /= (values * weights).sum(axis=1, keepdims=True)
    kept = np.abs(np.log(values)) <= c
    moments = (weights * np.where(kept, values ** (1 + s), 0)).sum(axis=1)
    below = (weights * (np.log(values) < -c)).sum(axis=1)
    assert np.all(moments <= math.exp(base) * (1 + weight * below) * (1 + 1e-12))
    # A ratio of 0 with some probability, the rest on e^-c and e^c with mean 1.
    for lost in (0.0, 0.1 * (1 - math.exp(-c))):
        top = (1 - (1 - lost) * math.exp(-c)) / (2 * math.sinh(c))
        two = top * math.exp((1 + s) * c) + (1 - lost - top) * math.exp(-(1 + s) * c)
        assert two == pytest.approx(math.exp(base) * (1 + weight * lost), rel=1e-9)


def exact_delta(channel, pairs, epsilon):
    first, second = channel[:, pairs[:, 0]], channel[:, pairs[:, 1]]
    return np.maximum(first - math.exp(epsilon) * second, 0).sum(axis=-1).max(axis=-1)


def tails(channel, prior, c):
    joint, product = joint_and_product(channel, prior)
    z = np.log(joint) - np.log(product)
    return (joint * (z > c)).sum(axis=(1, 2)), (product * (z < -c)).sum(axis=(1, 2))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
def test_tails_of_approximate_privacy_are_bounded(rng, epsilon):
    """Any channel is (epsilon, delta)-DP for its own delta."""
    channel = rng.dirichlet(np.full(6, 0.7), size=(4000, 4)) + 1e-9
    channel /= channel.sum(axis=-1, keepdims=True)
    prior = skewed_marginals(rng, 4000, 1, 4)[:, 0]
    delta = exact_delta(channel, np.array([(i, j) for i in range(4) for j in range(4)]), epsilon)
    for c in (epsilon * 1.1, epsilon + 0.3, epsilon + 2):
        most = curve_tail(np.full(4000, c)[:, None], np.array([epsilon]), np.ones(1))[:, 0] * delta
        for tail in tails(channel, prior, c):
            assert np.all(tail <= most + 1e-15)


def test_the_tail_of_approximate_privacy_is_attained():
    """Each of many values has an output of its own that is e^c times likelier under it."""
    many, c, epsilon, top = 400, 1.5, 0.4, 1e-3
    channel = np.full((many, many), top * math.exp(-c)) + np.eye(many) * top * (1 - math.exp(-c))
    channel = np.c_[channel, 1 - channel.sum(axis=1)][None]
    delta = exact_delta(channel, np.array([(0, 1), (1, 0)]), epsilon)
    cut = c - 0.02
    most = curve_tail(np.array([cut]), np.array([epsilon]), delta)
    upper, _ = tails(channel, np.full((1, many), 1 / many), cut)
    assert upper <= most
    assert upper >= 0.95 * most


@pytest.mark.parametrize("rho", [0.01, 0.3])
def test_tails_of_concentrated_privacy_are_bounded(rng, rho):
    """Random channels, mixed with their mean until they are rho-zCDP."""
    channel = rng.dirichlet(np.full(5, 0.5), size=(400, 3)) + 1e-6
    channel /= channel.sum(axis=-1, keepdims=True)
    centre = channel.mean(axis=1, keepdims=True)
    orders = np.concatenate([[1 + 1e-6], np.geomspace(1.01, 1e3, 40)])[:, None, None, None]

    def fits(weight):
        logs = np.log(centre + weight[:, None, None] * (channel - centre))
        good = np.ones(len(logs), bool)
        for i, j in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
            exponent = orders[..., 0] * logs[:, i] + (1 - orders[..., 0]) * logs[:, j]
            divergence = logsumexp(exponent, axis=-1) / (orders[..., 0, 0] - 1)
            good &= (divergence <= orders[..., 0, 0] * rho).all(axis=0)
        return good

    low, high = np.zeros(400), np.ones(400)
    for _ in range(20):
        middle = (low + high) / 2
        good = fits(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    channel = centre + low[:, None, None] * (channel - centre)
    prior = skewed_marginals(rng, 400, 1, 3)[:, 0]
    for c in rho + math.sqrt(rho) * np.array([0.1, 0.5, 1.0, 2.0, 3.0]):
        for tail in tails(channel, prior, c):
            assert np.all(tail <= rho_tail(np.asarray(c), rho))


def test_the_tail_of_concentrated_privacy_has_the_right_exponent():
    """Gaussian noise on a rare bit: ln f_1/f_0 is normal(rho, 2 rho) where the bit is 1."""
    rho, rare = 0.02, 1e-3
    for deviations in (5.0, 8.0, 10.0):
        c = rho + deviations * math.sqrt(2 * rho)
        ratio = math.log((1 - rare) * math.exp(c) / (1 - rare * math.exp(c)))
        log_tail = math.log(rare) + stats.norm.logsf((ratio - rho) / math.sqrt(2 * rho))
        most = math.log(rho_tail(np.asarray(c), rho))
        assert log_tail <= most
        assert log_tail >= most - 7 - 6


@pytest.mark.parametrize(("n", "letters"), [(1, 3), (2, 3), (3, 2)])
def test_no_channel_has_more_than_its_delta_allows(rng, n, letters):
    sets = data_sets(n, letters)
    channel = rng.dirichlet(np.full(4, 3.0), size=(12, len(sets)))
    prior = product_distribution(sets, skewed_marginals(rng, 12, n, letters))
    joint, product = joint_and_product(channel, prior)
    for each in range(12):
        pairs = neighbours(sets)
        curve = [
            (e, exact_delta(channel[each : each + 1], pairs, e).item()) for e in (0.2, 1.0, 2.5)
        ]
        bound = profiled(curve, n).at(0.1)
        assert excess(joint[each], product[each], in_nats(bound)) <= 0.1


@pytest.mark.parametrize(("n", "epsilon", "delta"), [(500, 0.05, 1e-9), (2000, 0.02, 1e-12)])
@pytest.mark.parametrize("beta", [1e-3, 0.025])
def test_responses_that_reveal_all_with_probability_delta_keep_the_bound(n, epsilon, delta, beta):
    bound = approximate(epsilon, delta, n).at(beta)
    assert bound.laws is Laws.PRODUCT
    rest = uniform_response_excess(n, epsilon, in_nats(bound))
    assert delta + (1 - delta) * rest <= beta
    # The loss against pure privacy: |Z_i| <= epsilon in place of a range of epsilon.
    assert bound.bits <= 4.5 * pure(epsilon, n).at(beta).bits


def test_two_thirds_of_the_bound_are_violated():
    n, epsilon, delta, beta, rare = 3, 1.0, 1e-17, 1e-9, 0.05
    bound = in_nats(approximate(epsilon, delta, n).at(beta))
    assert response_excess(n, epsilon, rare, bound) + delta <= beta
    assert response_excess(n, epsilon, rare, bound / 1.5) > beta


def test_there_is_no_bound_if_a_leak_is_likelier_than_beta():
    assert approximate(0.1, 1e-4, 1000).at(0.05).bits == math.inf
    found = approximate(0.1, 1e-4, 1000).corrected(0.05)
    assert found.level == 0
    assert found.bits == math.inf


@pytest.mark.parametrize("sigma", [2.0, 10.0])
@pytest.mark.parametrize("weight", [0.1, 0.5])
def test_a_count_with_gaussian_noise_keeps_both_bounds(sigma, weight):
    n, rho = 60, 1 / (2 * sigma**2)
    counts, outputs = np.arange(n + 1), np.arange(-200, 261)
    noise = np.exp(-((outputs[None, :] - counts[:, None]) ** 2) / (2 * sigma**2))
    channel = noise / noise.sum(axis=1, keepdims=True)
    # The loss depends on the count only, so counts can replace data sets.
    joint, product = joint_and_product(channel, stats.binom.pmf(counts, n, weight))
    for theorem in (concentrated(rho, n), InformationTheorem(nats=n * rho, laws=Laws.PRODUCT)):
        for beta in (1e-3, 0.025):
            assert excess(joint, product, in_nats(theorem.at(beta))) <= beta


def leaking_response(rho, log_chance):
    """The largest e for which responses of odds e^e, given with this probability, are rho-zCDP."""
    orders = np.concatenate([[1.0001], np.geomspace(1.01, 1e5, 500)])
    low, high = 0.0, 20.0
    for _ in range(50):
        e = (low + high) / 2
        truth, lie = -math.log1p(math.exp(-e)), -e - math.log1p(math.exp(-e))
        first = np.array([math.log1p(-math.exp(log_chance)), truth + log_chance, lie + log_chance])
        exponent = orders[:, None] * first + (1 - orders[:, None]) * first[[0, 2, 1]]
        fits = np.all(logsumexp(exponent, axis=1) / (orders - 1) <= orders * rho)
        low, high = (e, high) if fits else (low, e)
    return low


def test_moments_of_concentrated_privacy_do_not_add_up_over_records():
    """Why there is no ln E[e^(sZ)] <= n s (1+s) rho: all records may leak at once, already two."""
    rho, log_chance, s, weight = 0.01, -30.0, 40.0, 0.03
    e = leaking_response(rho, log_chance)
    truth = 1 / (1 + math.exp(-e))
    one = 0.0
    for one_told, zero_told in ((truth, 1 - truth), (1 - truth, truth)):
        mean = weight * one_told + (1 - weight) * zero_told
        moment = weight * one_told ** (1 + s) + (1 - weight) * zero_told ** (1 + s)
        one += moment / mean**s
    two = np.logaddexp(0.0, log_chance + 2 * math.log(one))
    assert two > 1.3 * 2 * s * (1 + s) * rho


def test_bounds_of_concentrated_privacy_hold_where_the_naive_one_breaks():
    rho, n, log_chance, beta = 0.01, 1000, math.log(1e-6), 5e-7
    e = leaking_response(rho, log_chance)
    orders = np.geomspace(1e-3, 1e3, 2000)
    naive = ((1 + orders) * n * rho + math.log(1 / beta) / orders).min()

    def exact(nats):
        return math.exp(log_chance) * uniform_response_excess(n, e, nats)

    assert exact(naive) > beta
    for theorem in (concentrated(rho, n), InformationTheorem(nats=n * rho, laws=Laws.PRODUCT)):
        assert exact(in_nats(theorem.at(beta))) <= beta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-20), (0.1, 1e-16), (0.5, 1e-18)])
def test_theorem_3_1_by_hand(epsilon, delta):
    n, beta, best = 1000, 0.05, math.inf
    for hat in np.geomspace(1e-30, epsilon / 15, 20001):
        d1 = 2 * delta / hat + 2 * delta / (1 - math.exp(-epsilon))
        d2 = 2 * hat / (1 - math.exp(-3 * epsilon))
        left = beta - n * (d1 + d2)
        if left <= 0:
            continue
        t = math.sqrt(2 * math.log(1 / left))
        mean = (
            6 * epsilon * (math.exp(6 * epsilon) / (1 - d2) - 1) + (math.exp(3 * epsilon) - 1) * d2
        )
        mean += hat + 2 * (math.exp(3 * epsilon) * d2 + hat) ** 2
        best = min(best, n * mean + 6 * t * epsilon * math.sqrt(n))
    found = approximate_product(epsilon, delta, n, beta)
    assert in_nats(found) == pytest.approx(best, rel=1e-6)
    assert approximate(epsilon, delta, n).at(beta).bits < found.bits / 5


def test_the_mean_of_theorem_3_1_covers_what_its_lemma_bounds(rng):
    """Lemma 3.7 on random priors and posteriors that are (3 epsilon, delta-hat)-near."""
    epsilon = 0.1
    prior = rng.dirichlet(np.full(5, 1.0), size=20000)
    posterior = prior * np.exp(rng.uniform(-3.6, 3.6, size=prior.shape) * 2 * epsilon)
    posterior /= posterior.sum(axis=1, keepdims=True)
    apart = np.maximum(
        np.maximum(posterior - math.exp(3 * epsilon) * prior, 0).sum(axis=1),
        np.maximum(prior - math.exp(3 * epsilon) * posterior, 0).sum(axis=1),
    )
    near = (apart <= epsilon / 15) & (apart > 0)
    assert near.sum() > 1000
    z = np.log(posterior / prior)
    kept = np.abs(z) <= 6 * epsilon
    means = (posterior * z * kept).sum(axis=1) / (posterior * kept).sum(axis=1)
    assert np.all(means[near] <= nu(epsilon, apart[near]))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.51, 1e-9), (0.1, 0.1), (0.2, 0.3)])
def test_theorem_3_1_names_its_range(epsilon, delta):
    with pytest.raises(ValueError, match=r"Theorem 3\.1 needs 0 < epsilon <= 1/2"):
        approximate_product(epsilon, delta, 100, 0.05)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_beta_out_of_range_names_the_theorem(beta):
    with pytest.raises(ValueError, match=r"Theorem 3\.1 needs 0 < beta < 1"):
        approximate_product(0.1, 1e-9, 100, beta)
    with pytest.raises(ValueError, match=r"Theorem C .* needs 0 < beta < 1"):
        concentrated(0.1, 100).at(beta)


@pytest.mark.parametrize("rho", [0.0, 2e-4])
def test_theorem_c_by_hand(rho):
    """The formulas of docs/max_information.md on a grid: (0.02, 1e-12)-DP, or rho-zCDP."""
    n, epsilon, delta, beta = 1000, 0.02, 1e-12, 0.01
    over = np.geomspace(1e-3, 1, 60) * (0.1 if rho else epsilon)
    c = ((rho if rho else epsilon) + over * (3 if rho else 1))[:, None, None]
    eta = np.exp(-((c - rho) ** 2) / (4 * rho)) if rho else delta / (1 - np.exp(epsilon - c))
    d, s = np.geomspace(1e-6, 10, 60)[:, None], np.geomspace(0.05, 50, 120)
    m = np.cosh((s + 0.5) * c) / np.cosh(c / 2)
    v = n * np.log(m) + d * np.sinh(s * c) / (m * np.sinh(c))
    left = beta - n * eta * (1 + np.exp(-c) + 1 / d)
    factor = s**s / (1 + s) ** (1 + s)
    nats = (v - np.log(np.where(left > 0, left, np.nan) / factor)) / s
    theorem = concentrated(rho, n) if rho else approximate(epsilon, delta, n)
    found = in_nats(theorem.at(beta))
    assert found <= np.nanmin(nats) * (1 + 1e-9)
    assert found == pytest.approx(np.nanmin(nats), rel=0.01)


@pytest.mark.parametrize(
    "theorem",
    [concentrated(1e-7, 10**6), approximate(0.1, 1e-18, 10**4), approximate(1.0, 1e-9, 100)],
)
def test_the_search_finds_what_differential_evolution_finds(theorem):
    def minus_log_level(logs):
        with np.errstate(all="ignore"):
            s, *free = map(np.asarray, np.exp(logs))
            moment = theorem.moment(s, *free)
            value = moment.log_moment / s - (1 + 1 / s) * np.log(0.05 - moment.failure)
        return float(value) if np.isfinite(value) else 1e9

    box = [(-13, 13), *(tuple(np.log(each)) for each in theorem.free)]
    found = optimize.differential_evolution(minus_log_level, box, rng=7, popsize=20, tol=1e-9)
    assert -math.log(theorem.corrected(0.05).level) <= found.fun + 1e-5
