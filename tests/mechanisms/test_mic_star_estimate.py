from dataclasses import replace

import jax
import numpy as np
import pytest

import dpmic_jax as dm
from dpmic_jax.mechanisms import MICrCube, mic_star_estimate, tuned_defaults
from dpmic_jax.mechanisms.mic_star import posterior_median


def release(n, epsilon, values):
    mechanism = dm.MICrLap(epsilon=epsilon)
    law = mechanism.noise(n)
    return dm.Release(np.asarray(values), mechanism.event(n), False, law)


def family_of(pairs):
    """Three quantiles each, all equal."""
    values, stars = np.array(pairs, float).T
    return tuned_defaults.Family(("F",) * len(stars), stars, np.repeat(values[:, None], 3, axis=1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_is_the_weighted_median_by_simulation_from_the_definition(rng, epsilon):
    """Draw a distribution, take its MICr, add noise, clip, and look at who lands near."""
    n, b = 250, dm.MICrLap(epsilon=epsilon).noise(250).scale
    family = family_of(rng.random((40, 2)))
    which = rng.integers(40, size=4_000_000)
    out = np.clip(family.values[which, 0] + rng.laplace(scale=b, size=len(which)), 0, 1)
    for r in (0.0, 0.3, 0.6, 1.0):
        near = np.abs(out - r) < 0.01 if 0 < r < 1 else (out == r)
        seen = np.sort(family.stars[which[near]])
        # A median of few values jumps: between the quantiles around it is near enough.
        low, high = np.quantile(seen, [0.47, 0.53])
        assert low <= posterior_median(release(n, epsilon, r), family) <= high


def test_with_hardly_any_noise_it_is_the_star_of_the_nearest_value():
    family = family_of([(0.1, 0.05), (0.5, 0.4), (0.9, 0.95)])
    found = posterior_median(release(10**6, 10.0, [0.1, 0.52, 0.9, 1.0]), family)
    np.testing.assert_array_equal(found, [0.05, 0.4, 0.95, 0.95])


def test_with_endless_noise_it_is_the_median_of_all_stars(rng):
    family = family_of(rng.random((101, 2)))
    found = posterior_median(release(25, 1e-4, [0.0, 0.5, 1.0]), family)
    np.testing.assert_allclose(found, np.median(family.stars), atol=0.02)


@pytest.mark.parametrize("n", [50, 250])
def test_the_error_against_mic_star_falls_on_the_family_itself(rng, n):
    family = tuned_defaults.family(n)
    values = np.repeat(family.values, 20, axis=1)
    stars = np.broadcast_to(family.stars[:, None], values.shape)
    b = dm.MICrLap(epsilon=0.1).noise(n).scale
    out = np.clip(values + rng.laplace(scale=b, size=values.shape), 0, 1)
    found = posterior_median(release(n, 0.1, out), family)
    assert np.abs(found - stars).mean() < 0.85 * np.abs(out - stars).mean()


@pytest.mark.slow
def test_takes_what_a_default_mechanism_releases_and_keeps_its_shape(rng):
    x, y = rng.random((2, 400))
    key = jax.random.key(1)
    for mechanism in (dm.MICrLap(epsilon=1.0), dm.MICrGauss(rho=0.5)):
        one = mechanism.release(x, y, bounds=[(0, 1), (0, 1)], key=key)
        assert 0 <= mic_star_estimate(one) <= 1
        many = mechanism.release_batch(
            np.stack([x, y, x * y], axis=1), pairs=[(0, 1), (0, 2)], bounds=[(0, 1)] * 3, key=key
        )
        assert mic_star_estimate(many).shape == (2,)


def test_other_statistics_are_refused_with_the_remedy(rng):
    x, y = rng.random((2, 100))
    mechanism = dm.MICrLap(epsilon=1.0, statistic=dm.MICr(B=10))
    found = mechanism.release(x, y, bounds=[(0, 1), (0, 1)], key=jax.random.key(0))
    with pytest.raises(ValueError, match="without passing statistic, or use debias"):
        mic_star_estimate(found)
    assert dm.debias(replace(found)) is not None


def test_cube_noise_takes_the_same_table():
    """One pair has Laplace noise; for many the default statistic is that of their noise."""
    laplace, cube = dm.MICrLap(epsilon=1.0), MICrCube(epsilon=1.0)
    values = np.array([0.0, 0.2, 0.9])
    one = dm.Release(values, cube.event(250), False, cube.noise(250))
    same = dm.Release(values, laplace.event(250), False, laplace.noise(250))
    np.testing.assert_allclose(mic_star_estimate(one), mic_star_estimate(same), atol=0.01)
    many = dm.Release(values, cube.event(250, count=66), False, cube.noise(250, 66))
    assert np.ptp(mic_star_estimate(many)) < np.ptp(mic_star_estimate(one))
