"""The curve of Gaussian DP, against its definition, mpmath and dp_accounting."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpmic_jax.dp.accounting import zcdp
from dpmic_jax.dp.accounting.gaussian_dp import delta_for, deltas, mu_for


def exact_delta(mu, epsilon):
    """Theorem 8 of Balle and Wang in 900 digits, of the decimals as written."""
    with mpmath.workdps(900):
        mu, epsilon = mpmath.mpf(repr(mu)), mpmath.mpf(repr(epsilon))
        low, high = ((epsilon / mu + sign * mu / 2) / mpmath.sqrt(2) for sign in (-1, 1))
        exact = (mpmath.erfc(low) - mpmath.exp(epsilon) * mpmath.erfc(high)) / 2
        return Fraction(mpmath.nstr(exact, 60))


@pytest.mark.parametrize("mu", [0.03, 0.5, 3.0])
@pytest.mark.parametrize("at", [-2.0, 0.0, 1.0, 3.0])
def test_the_curve_is_the_excess_of_one_normal_density_over_another(mu, at):
    """The definition: the integral of (p - e^epsilon q)+, as a sum."""
    epsilon = at * mu
    x, step = np.linspace(-12, 12 + mu, 2_000_001, retstep=True)
    excess = np.maximum(norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), 0).sum() * step
    assert deltas(mu, np.array([epsilon])).item() == pytest.approx(excess, rel=1e-6)
    if epsilon >= 0:
        assert delta_for(mu, epsilon) == pytest.approx(excess, rel=1e-6)


@given(st.floats(-6, 1), st.floats(0, 36))
def test_both_curves_are_never_below_the_exact_one_and_hardly_above_it(log_mu, at):
    mu = 10.0**log_mu
    epsilon = at * mu
    least = exact_delta(mu, epsilon)
    found = Fraction(repr(delta_for(mu, epsilon)))
    assert least <= found <= least * (1 + Fraction(1, 10**15)) + Fraction(repr(5e-324))
    quick = deltas(mu, np.array([epsilon])).item()
    # Both terms of a small mu nearly cancel in floats.
    assert least <= quick <= float(least) * (1 + 1e-10 + 1e-11 / mu) + 1e-290


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(60.0, 1700.0), (60.0, 2000.0), (1e6, 5e11), (99.0, 9.0)]
)
def test_at_a_huge_epsilon_the_curve_is_a_little_above_the_exact_one(mu, epsilon):
    least = exact_delta(mu, epsilon)
    assert least <= Fraction(repr(delta_for(mu, epsilon))) <= min(least * Fraction(101, 100), 1)
    assert least <= deltas(mu, np.array([epsilon])).item()


@given(st.floats(0.01, 5), st.floats(-5, 5))
def test_a_negative_epsilon_is_the_curve_of_the_neighbour(mu, epsilon):
    found = deltas(mu, np.array([epsilon])).item()
    exact = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert exact * (1 - 1e-9) - 1e-15 <= found <= exact * (1 + 1e-8) + 1e-12


@given(st.floats(-3, 1), st.floats(-12, -1))
def test_the_mu_of_a_budget_is_the_largest_that_dp_accounting_admits(log_epsilon, log_delta):
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    mu = mu_for(epsilon, delta)
    assert exact_delta(mu, epsilon) <= Fraction(repr(delta))
    assert exact_delta(mu * (1 + 1e-11), epsilon) > Fraction(repr(delta))
    within = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert within == pytest.approx(delta, rel=1e-7)
    # Noise of two thirds is far too little.
    assert GaussianPrivacyLoss(2 / (3 * mu)).get_delta_for_epsilon(epsilon) > 1.4 * delta


@pytest.mark.parametrize(("epsilon", "saved"), [(1.0, 0.0676), (0.1, 0.0801), (3.0, 0.06)])
def test_the_curve_needs_6_to_9_percent_less_noise_than_zcdp(epsilon, saved):
    through_rho = math.sqrt(2 * zcdp.rho_for(epsilon, 1e-6))
    assert 1 - through_rho / mu_for(epsilon, 1e-6) == pytest.approx(saved, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(5e-324, 5e-324), (1e-300, 1e-300), (1e-12, 0.5), (1.0, 5e-324), (600.0, 1e-6), (1e100, 0.9)],
)
def test_every_budget_has_a_mu(epsilon, delta):
    mu = mu_for(epsilon, delta)
    assert mu > 0
    assert delta_for(mu, epsilon) <= delta
    assert delta_for(mu * 1.5, epsilon) > delta


def test_deltas_beyond_the_range_of_floats_are_bounded():
    assert delta_for(1e-3, 1.0) == 5e-324
    assert delta_for(5e-324, 1.0) == 5e-324
    assert delta_for(1e3, 1.0) == 1.0
    assert deltas(1e3, np.array([1.0])).item() == 1.0
    assert 0 < deltas(5e-324, np.array([1.0])).item() < 1e-280


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_parameters_are_refused(bad):
    with pytest.raises(ValueError, match="mu"):
        delta_for(bad, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        mu_for(bad, 1e-6)
    with pytest.raises(ValueError, match="delta"):
        mu_for(1.0, bad)
    if bad:
        with pytest.raises(ValueError, match="epsilon"):
            delta_for(1.0, bad)
