"""Max-information of pure differential privacy: proofs against brute force."""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from informing import (
    data_sets,
    excess,
    in_nats,
    joint_and_product,
    product_distribution,
    response_excess,
    skewed_marginals,
    tilted_channels,
    uniform_response_excess,
)
from scipy import stats

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.max_information import Laws, max_information, pure, pure_any, pure_product
from dpmic_jax.dp.max_information.pure import log_moment, mean

BETAS = [1e-6, 1e-3, 0.01, 0.05, 0.3]


@pytest.mark.parametrize(("n", "letters", "outputs"), [(1, 3, 4), (2, 3, 3), (3, 2, 4), (4, 2, 5)])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.5])
def test_no_private_channel_exceeds_the_bounds(rng, n, letters, outputs, epsilon):
    sets, batch = data_sets(n, letters), 500
    channel = tilted_channels(rng, batch, sets, outputs, epsilon)
    prior = product_distribution(sets, skewed_marginals(rng, batch, n, letters))
    joint, product = joint_and_product(channel, prior)
    np.testing.assert_allclose(joint.sum(axis=(1, 2)), 1)
    for beta in BETAS:
        for bound in (pure(epsilon, n).at(beta), pure_product(epsilon, n, beta)):
            assert excess(joint, product, in_nats(bound)).max() <= beta
    assert excess(joint, product, in_nats(pure_any(epsilon, n))).max() <= 1e-15


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_the_first_form_holds_for_dependent_records(rng, epsilon):
    sets = data_sets(3, 2)
    channel = tilted_channels(rng, 500, sets, 4, epsilon)
    prior = rng.dirichlet(np.full(len(sets), 0.2), size=500)
    joint, product = joint_and_product(channel, prior)
    bound = pure_any(epsilon, 3)
    assert bound.laws is Laws.ANY
    assert excess(joint, product, in_nats(bound)).max() <= 1e-15


def test_dependent_records_violate_the_sharp_form():
    """One rare bit repeated n times, and whether the sum plus Laplace noise is above n/2."""
    n, epsilon, beta, rare = 400, 0.1, 1e-3, 4e-3
    wrong = math.exp(-n * epsilon / 2) / 2
    channel = np.array([[1 - wrong, wrong], [wrong, 1 - wrong]])
    joint, product = joint_and_product(channel, np.array([1 - rare, rare]))
    assert pure(epsilon, n).at(beta).laws is Laws.PRODUCT
    assert excess(joint, product, in_nats(pure(epsilon, n).at(beta))) > beta
    assert excess(joint, product, in_nats(pure_any(epsilon, n))) == 0


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 1), (0.5, 3), (2.0, 4)])
def test_the_first_form_is_approached_by_randomised_response_on_a_rare_value(epsilon, n):
    truth, rare = 1 / (1 + math.exp(-epsilon)), 1e-6
    largest = n * math.log(truth / (rare * truth + (1 - rare) * (1 - truth)))
    assert largest <= in_nats(pure_any(epsilon, n))
    assert largest >= in_nats(pure_any(epsilon, n)) * (1 - 1e-5)
    assert largest > in_nats(pure_any(epsilon, n)) / 1.5


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 0.03), (1000, 0.1), (3000, 0.3), (5000, 0.01)])
@pytest.mark.parametrize("beta", [1e-4, 0.025])
def test_randomised_response_of_many_records_keeps_the_bound_but_not_two_thirds(n, epsilon, beta):
    bound = pure(epsilon, n).at(beta)
    assert uniform_response_excess(n, epsilon, in_nats(bound)) <= beta
    assert uniform_response_excess(n, epsilon, in_nats(bound) / 1.5) > beta


@pytest.mark.parametrize("weight", [0.03, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_randomised_response_of_skewed_bits_keeps_the_bound(weight, epsilon):
    n = 120
    for beta in (1e-4, 0.025):
        assert response_excess(n, epsilon, weight, in_nats(pure(epsilon, n).at(beta))) <= beta


@pytest.mark.parametrize("weight", [0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_a_count_with_geometric_noise_keeps_the_bound(weight, epsilon):
    """Counts can replace data sets, since the loss depends on the count only."""
    n, outputs = 80, np.arange(-400, 481)
    counts = np.arange(n + 1)
    noise = np.exp(-epsilon * np.abs(outputs[None, :] - counts[:, None]))
    channel = noise * math.tanh(epsilon / 2)
    joint, product = joint_and_product(channel, stats.binom.pmf(counts, n, weight))
    for beta in (1e-3, 0.025):
        assert excess(joint, product, in_nats(pure(epsilon, n).at(beta))) <= beta


def test_two_thirds_of_the_bound_are_violated_for_few_records_too():
    n, epsilon, beta, rare = 3, 1.0, 1e-9, 0.05
    bound = in_nats(pure(epsilon, n).at(beta))
    assert response_excess(n, epsilon, rare, bound) <= beta
    assert response_excess(n, epsilon, rare, bound / 1.5) > beta


@given(st.integers(1, 10**7), st.floats(1e-5, 5), st.floats(1e-9, 0.9))
def test_the_bound_is_below_azuma_and_azuma_below_theorem_1_4(n, epsilon, beta):
    azuma = n * float(exact_mean(epsilon)) + epsilon * math.sqrt(n * math.log(1 / beta) / 2)
    bound = max_information(PureDP(epsilon), n=n, beta=beta)
    assert in_nats(bound) <= azuma * (1 + 1e-7)
    assert azuma <= in_nats(pure_product(epsilon, n, beta))
    assert bound.bits <= pure_any(epsilon, n).bits


def test_theorem_1_4_is_as_printed():
    epsilon, n, beta = 0.1, 1000, 0.05
    nats = 0.01 * 1000 / 2 + 0.1 * math.sqrt(1000 * math.log(40) / 2)
    assert pure_product(epsilon, n, beta).bits == pytest.approx(nats / math.log(2), rel=1e-9)
    assert pure_any(epsilon, n).bits == pytest.approx(100 / math.log(2), rel=1e-9)


def exact_mean(epsilon):
    with decimal.localcontext(decimal.Context(prec=60)):
        u = Decimal(epsilon) / (1 - (-Decimal(epsilon)).exp())
        return u - 1 - u.ln()


def log_two_point(s, epsilon, q):
    """ln E[r^(1+s)] for r of mean 1 with values m and m e^epsilon, the larger w.p. q."""
    top = 1 - q + q * ((1 + s) * epsilon).exp()
    return top.ln() - (1 + s) * (1 - q + q * epsilon.exp()).ln()


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("s", [1e-3, 0.2, 1.0, 7.0, 300.0])
def test_the_moment_is_that_of_the_worst_two_values(epsilon, s):
    with decimal.localcontext(decimal.Context(prec=60)):
        eps, order = Decimal(epsilon), Decimal(s)
        a, b = ((1 + order) * eps).exp() - 1, eps.exp() - 1
        q = (a - (1 + order) * b) / (a * b * order)
        exact = log_two_point(order, eps, q)
        # On both sides of the best weight it is less: the weight is where the maximum is.
        for k in range(1, 200):
            assert log_two_point(order, eps, Decimal(k) / 200) <= exact
        assert log_two_point(order, eps, q * Decimal("0.999")) < exact
        assert log_two_point(order, eps, min(q * Decimal("1.001"), Decimal(1))) < exact
    found = float(log_moment(np.asarray(s), epsilon))
    assert found == pytest.approx(float(exact), rel=1e-9)
    assert found >= exact
    assert found <= s * (1 + s) * epsilon**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_no_distribution_in_the_range_has_a_larger_moment(rng, epsilon):
    raw = np.exp(epsilon * rng.beta(0.3, 0.3, size=(5000, 5)))
    weights = rng.dirichlet(np.full(5, 0.5), size=5000)
    ratio = raw / (raw * weights).sum(axis=1, keepdims=True)
    for s in (0.01, 0.5, 3.0, 20.0):
        moments = (weights * ratio ** (1 + s)).sum(axis=1)
        assert np.log(moments).max() <= log_moment(np.float64(s), epsilon)
    assert (weights * ratio * np.log(ratio)).sum(axis=1).max() <= mean(epsilon)


@pytest.mark.parametrize("epsilon", [1e-7, 1e-3, 0.019, 0.021, 0.5, 2.0, 30.0])
def test_the_mean_is_u_minus_1_minus_log_u(epsilon):
    assert mean(epsilon) == pytest.approx(float(exact_mean(epsilon)), rel=1e-9)
    assert mean(epsilon) >= exact_mean(epsilon)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_beta_out_of_range_names_the_theorem(beta):
    with pytest.raises(ValueError, match=r"Theorem 1\.4 needs 0 < beta < 1"):
        pure_product(0.1, 10, beta)
    with pytest.raises(ValueError, match=r"Theorem B.* needs 0 < beta < 1"):
        pure(0.1, 10).at(beta)
