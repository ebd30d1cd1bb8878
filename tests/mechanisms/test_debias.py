from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube, LatticeGauss, LatticeLaplace
from dpmic_jax.mechanisms.debias import FAMILY, BetaPrior, debias, fitted_prior
from dpmic_jax.mechanisms.release import Release
from dpmic_jax.paper.family import family

UNIFORM = BetaPrior(a=1, b=1)
PURE = PureDP(1.0)
LATTICE = Lattice(bits=10, sensitivity=16)


def released(value, scale, guarantee=PURE):
    event = Event(
        mechanism="test", guarantee=guarantee, relation=ReplaceOne(), n=9, sensitivity=scale
    )
    noise = (
        LatticeGauss(sigma=scale * LATTICE.top, lattice=LATTICE)
        if isinstance(guarantee, ZCDP)
        else LatticeLaplace(epsilon=LATTICE.sensitivity / (scale * LATTICE.top), lattice=LATTICE)
    )
    assert noise.scale == pytest.approx(float(scale), rel=1e-4, abs=1e-4)
    return Release(np.asarray(value), event, False, noise)


def scale(tenths):
    return Fraction(tenths, 10)


@pytest.mark.parametrize(("guarantee", "noise"), [(PURE, stats.laplace), (ZCDP(0.1), stats.norm)])
def test_is_the_mean_of_values_that_gave_such_a_release(rng, guarantee, noise):
    """By simulation from the definition: draw values, add noise, clip, look at who lands near."""
    prior, b = BetaPrior(a=0.8, b=2.0), 0.2
    values = rng.beta(prior.a, prior.b, 4_000_000)
    out = np.clip(values + noise.rvs(scale=b, size=len(values), random_state=rng), 0, 1)
    for r in (0.0, 0.25, 0.6, 1.0):
        near = np.abs(out - r) < 0.005 if 0 < r < 1 else out == r
        mean, error = values[near].mean(), values[near].std() / np.sqrt(near.sum())
        assert debias(released(r, scale(2), guarantee), prior) == pytest.approx(
            mean, abs=5 * error + 0.003
        )


def test_is_the_mean_under_cube_noise(rng):
    """Of one value out of five, by simulation from the definition."""
    noise = LatticeCube(epsilon=0.5, lattice=LATTICE, points=5)
    prior, draws = BetaPrior(a=0.8, b=2.0), 4_000_000
    values = rng.beta(prior.a, prior.b, draws)
    # (R + 1/2) epsilon / S is Gamma(6), to 1 in R^2.
    radius = rng.gamma(6, float(1 / noise.noise.rate), draws) / LATTICE.top
    out = np.clip(values + radius * rng.uniform(-1, 1, draws), 0, 1)
    event = Event(
        mechanism="test", guarantee=PURE, relation=ReplaceOne(), n=9, sensitivity=Fraction(1)
    )
    for r in (0.0, 0.25, 0.6, 1.0):
        near = np.abs(out - r) < 0.005 if 0 < r < 1 else out == r
        mean, error = values[near].mean(), values[near].std() / np.sqrt(near.sum())
        found = debias(Release(np.asarray(r), event, False, noise), prior)
        assert found == pytest.approx(mean, abs=5 * error + 0.003)


def test_without_noise_it_is_the_value():
    value = np.array([0.1, 0.5004, 0.93])
    found = debias(released(value, scale(0) + scale(1) / 10**4), UNIFORM)
    np.testing.assert_allclose(found, value, atol=2e-3)


def test_with_endless_noise_it_is_the_prior_mean():
    found = debias(released([0.0, 0.4, 1.0], scale(10**6)), BetaPrior(a=1, b=3))
    np.testing.assert_allclose(found, 0.25, atol=1e-3)


def test_squared_error_falls_if_the_prior_is_right(rng):
    values = rng.beta(0.85, 0.98, 20_000)
    out = np.clip(values + rng.laplace(scale=0.3, size=len(values)), 0, 1)
    means = debias(released(out, scale(3)), BetaPrior(a=0.85, b=0.98))
    assert np.mean((means - values) ** 2) < 0.8 * np.mean((out - values) ** 2)


def test_a_strange_prior_is_refused():
    with pytest.raises(ValueError, match="a > 0"):
        BetaPrior(a=0, b=1)


@pytest.mark.parametrize(("a", "b"), [(0.9, 3.0), (4.0, 6.0)])
def test_the_fitted_prior_is_the_one_that_values_came_from(rng, a, b):
    values = rng.beta(a, b, 20_000)
    out = np.clip(values + rng.laplace(scale=0.1, size=len(values)), 0, 1)
    found = fitted_prior(released(out, scale(1)))
    # Five times the spread that refitting on new draws has.
    assert found.a == pytest.approx(a, rel=0.21)
    assert found.b == pytest.approx(b, rel=0.21)


def test_unsigned_error_falls_with_a_fitted_prior(rng):
    values = rng.beta(3, 9, 5000)
    out = np.clip(values + rng.laplace(scale=0.3, size=len(values)), 0, 1)
    release = released(out, scale(3))
    found = debias(release, fitted_prior(release))
    assert np.abs(found - values).mean() < 0.6 * np.abs(out - values).mean()


def test_few_values_fit_no_prior():
    with pytest.raises(ValueError, match="50 released values or more, got 3"):
        fitted_prior(released([0.1, 0.2, 0.3], scale(1)))


def test_the_family_prior_is_the_likeliest_for_its_mic_star():
    stars = family().stars
    a, b, _, _ = stats.beta.fit(stars, floc=0, fscale=1)
    assert FAMILY.a == pytest.approx(a, abs=6e-4)
    assert FAMILY.b == pytest.approx(b, abs=6e-4)
