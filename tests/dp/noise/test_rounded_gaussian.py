"""Gaussian DP of discrete Gaussian noise: the theorem of `dp.noise.gaussian`, by enumeration."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpmic_jax.dp.accounting.composition import numerical
from dpmic_jax.dp.accounting.gaussian_dp import delta_for, mu_for
from dpmic_jax.dp.noise.distributions import DiscreteGaussian
from dpmic_jax.dp.noise.gaussian import rounding_error
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss


@pytest.mark.parametrize("tau2", [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)])
@pytest.mark.parametrize("sigma", [1.0, 2.5])
def test_a_rounded_gaussian_is_as_near_to_a_discrete_one_as_stated(tau2, sigma):
    """Rounding at random, integrated over the continuous draw."""
    y, step = np.linspace(-12 * sigma, 12 * sigma, 40_001, retstep=True)
    k = np.arange(-40, 41)
    kernel = np.exp(-((k[:, None] - y) ** 2) / float(2 * tau2))
    continuous = norm.pdf(y, scale=math.sqrt(sigma**2 - float(tau2))) * step
    rounded = kernel / kernel.sum(axis=0) @ continuous
    discrete = norm.pdf(k, scale=sigma) / norm.pdf(k, scale=sigma).sum()
    apart = np.abs(rounded - discrete).sum() / 2
    assert apart <= rounding_error(tau2)
    # The ripple e of 2 e / (1 - e) is that of the normaliser, and two thirds of it are too little.
    error = float(rounding_error(tau2) / (2 + rounding_error(tau2)))
    ripple = np.abs(kernel.sum(axis=0) / math.sqrt(2 * math.pi * tau2) - 1).max()
    assert error * 2 / 3 < ripple <= error


@cache
def real_deltas(sigma, sensitivity, values, epsilons):
    """The delta of the sampler at each epsilon: every outcome of all values together."""
    law = DiscreteGaussian(sigma=sigma)
    reach = range(-math.ceil(9 * sigma) - 16, math.ceil(9 * sigma) + 17)
    one = np.array([float(law.pmf(x)) for x in reach])
    moved = np.array([float(law.pmf(x - sensitivity)) for x in reach])
    p, q = np.ones(1), np.ones(1)
    for _ in range(values):
        p, q = np.outer(p, one).ravel(), np.outer(q, moved).ravel()
    return [np.maximum(p - math.exp(each) * q, 0).sum() for each in epsilons]


def bounds(sigma, sensitivity, values, tau2, epsilons):
    """The theorem: the curve of mu, and (1 + e^epsilon) times the total variation."""
    variance = Fraction(sigma) ** 2 - tau2
    mu = math.sqrt(values * Fraction(sensitivity) ** 2 / variance)
    off = DiscreteGaussian(sigma=sigma).certificate().total_variation + rounding_error(tau2)
    return [delta_for(mu, each) + numerical(values * off, each) for each in epsilons]


EPSILONS = (0.0, 0.3, 1.0, 2.0, 4.0)


@pytest.mark.parametrize("values", [1, 2, 3])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("tau2", [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)])
@pytest.mark.parametrize("sigma", [0.75, 1.5])
def test_the_curve_holds_where_the_noise_is_as_coarse_as_the_lattice(
    sigma, tau2, sensitivity, values
):
    real = real_deltas(sigma, sensitivity, values, EPSILONS)
    stated = bounds(sigma, sensitivity, values, tau2, EPSILONS)
    assert all(exact <= bound for exact, bound in zip(real, stated, strict=True))


@pytest.mark.parametrize("values", [1, 2, 3])
@pytest.mark.parametrize("sensitivity", [2, 6])
def test_the_curve_holds_and_less_noise_fewer_values_or_less_sensitivity_break_it(
    sensitivity, values
):
    sigma, tau2 = 4.0, Fraction(1)
    real = real_deltas(sigma, sensitivity, values, EPSILONS)

    def holds(**changes):
        claim = {"sigma": sigma, "sensitivity": sensitivity, "values": values, **changes}
        stated = bounds(tau2=tau2, epsilons=EPSILONS, **claim)
        return all(exact <= bound for exact, bound in zip(real, stated, strict=True))

    assert holds()
    assert not holds(sigma=sigma * 3 / 2)
    assert not holds(sensitivity=sensitivity / 2)
    if values > 1:
        assert not holds(values=values - 1)


def test_moving_all_values_at_once_is_the_worst_that_one_person_can_do():
    """Two values that move by at most 2 each: every other pair of moves has a smaller delta."""
    sigma = 3.0
    law, reach = DiscreteGaussian(sigma=sigma), range(-40, 41)
    pmf = {move: np.array([float(law.pmf(x - move)) for x in reach]) for move in range(-2, 3)}
    ideal = np.outer(pmf[0], pmf[0])

    def delta(one, other, epsilon):
        return np.maximum(ideal - math.exp(epsilon) * np.outer(pmf[one], pmf[other]), 0).sum()

    for epsilon in EPSILONS:
        (bound,) = bounds(sigma, 2, 2, Fraction(1), [epsilon])
        moves = itertools.product(range(-2, 3), repeat=2)
        assert max(delta(*move, epsilon) for move in moves) <= bound


@pytest.mark.parametrize(("sigma", "sensitivity"), [(20.0, 1), (50.0, 13), (200.0, 200)])
def test_the_stated_delta_is_that_of_dp_accounting_for_the_discrete_gaussian(sigma, sensitivity):
    library = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, sensitivity=sensitivity, value_discretization_interval=1e-4
    )
    optimistic = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, sensitivity=sensitivity, value_discretization_interval=1e-4,
        pessimistic_estimate=False,
    )  # fmt: skip
    noise = LatticeGauss(sigma=sigma, lattice=Lattice(bits=20, sensitivity=sensitivity))
    found = noise.joint_certificate(1)
    mu = math.sqrt(found.mu_squared)
    for at in (0.0, 0.5, 2.0, 4.0):
        epsilon = at * mu
        stated = delta_for(mu, epsilon) + float(numerical(found.total_variation, epsilon))
        assert optimistic.get_delta_for_epsilon(epsilon) <= stated
        # The variance of rounding costs 1 in 130 of sigma = 20, and nothing for larger ones.
        assert stated <= library.get_delta_for_epsilon(epsilon) * (1.1 if sigma == 20 else 1.02)


@given(st.floats(1e-3, 5), st.integers(1, 10**5))
def test_noise_for_a_mu_costs_that_mu_and_no_more(mu, draws):
    lattice = Lattice.for_gauss(Fraction(3, 1000), math.sqrt(draws) / mu)
    noise = LatticeGauss.for_mu_squared(Fraction(mu) ** 2, lattice, draws=draws)
    found = noise.joint_certificate(draws)
    assert Fraction(mu) ** 2 * Fraction(999, 1000) <= found.mu_squared <= Fraction(mu) ** 2
    assert found.total_variation <= draws * Fraction(1, 10**16)
    assert noise.scale == pytest.approx(0.003 * math.sqrt(draws) / mu, rel=2e-3)
    less = LatticeGauss(sigma=noise.sigma * Fraction(2, 3), lattice=lattice)
    assert less.joint_certificate(draws).mu_squared > 2 * Fraction(mu) ** 2
    assert noise.joint_certificate(draws + 1).mu_squared > Fraction(mu) ** 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_the_addend_of_half_a_million_values_is_negligible(epsilon, delta):
    values = 499_500  # the pairs of 1000 columns
    mu = mu_for(epsilon, delta)
    lattice = Lattice.for_gauss(Fraction(1, 100), math.sqrt(values) / mu)
    noise = LatticeGauss.for_mu_squared(Fraction(mu) ** 2, lattice, draws=values)
    off = numerical(noise.joint_certificate(values).total_variation, epsilon)
    assert off <= Fraction(delta) / 64
    per_value = numerical(noise.joint_certificate(1).total_variation, epsilon)
    assert off == pytest.approx(values * per_value, rel=1e-6)


def test_noise_that_is_too_small_to_be_rounded_is_refused():
    lattice = Lattice(bits=10, sensitivity=1)
    with pytest.raises(ValueError, match=r"sigma\^2 > 3"):
        LatticeGauss(sigma=1.7, lattice=lattice).joint_certificate(1)
    least = LatticeGauss.for_mu_squared(10**4, lattice, draws=1)
    assert least.joint_certificate(1).mu_squared <= 10**4
    with pytest.raises(ValueError, match="mu_squared"):
        LatticeGauss.for_mu_squared(0.0, lattice, draws=1)
    with pytest.raises(ValueError, match="draws"):
        LatticeGauss.for_mu_squared(1.0, lattice, draws=0)
    with pytest.raises(ValueError, match="variance"):
        rounding_error(Fraction(1, 20))


def test_two_vectors_of_values_share_a_mu():
    """Distances and their MICr, on lattices of their own: squares of mu add up to the whole."""
    whole, sigmas = Fraction(1), []
    for share, sensitivity in ((Fraction(3, 4), 3), (Fraction(1, 4), 1)):
        lattice = Lattice(bits=10, sensitivity=sensitivity)
        noise = LatticeGauss.for_mu_squared(whole * share, lattice, draws=1)
        sigmas.append((float(noise.sigma), sensitivity))
    rows = []
    for sigma, sensitivity in sigmas:
        law, reach = DiscreteGaussian(sigma=sigma), range(-60, 61)
        rows.append([[float(law.pmf(x - move)) for x in reach] for move in (0, sensitivity)])
    p, q = (np.outer(rows[0][i], rows[1][i]) for i in (0, 1))
    for epsilon in EPSILONS:
        real = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert real <= delta_for(1.0, epsilon) + 1e-15
        assert real > delta_for(2 / 3, epsilon)
