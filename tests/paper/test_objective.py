import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dpmic_jax.paper.objective import expected_error, weights, wsum

unit = st.floats(0, 1)


def by_definition(stars):
    """Appendix E.2.3: between the midpoints to the neighbours in sorted order, or to 0 and 1."""
    order = sorted(range(len(stars)), key=lambda index: stars[index])
    out = [0.0] * len(stars)
    for place, index in enumerate(order):
        left = 0.0 if place == 0 else (stars[order[place - 1]] + stars[index]) / 2
        last = place == len(order) - 1
        right = 1.0 if last else (stars[index] + stars[order[place + 1]]) / 2
        out[index] = right - left
    return out


@given(st.lists(unit, min_size=1, max_size=8))
def test_weights_are_lengths_between_midpoints_and_add_up_to_one(stars):
    found = weights(np.array(stars))
    np.testing.assert_allclose(found, by_definition(stars), rtol=0, atol=1e-15)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert (found >= 0).all()


def test_a_weight_is_the_share_of_the_interval_that_is_nearest(rng):
    stars = rng.random(7)
    points = (np.arange(100_000) + 0.5) / 100_000
    nearest = np.abs(points[:, None] - stars).argmin(axis=1)
    shares = np.bincount(nearest, minlength=7) / len(points)
    np.testing.assert_allclose(weights(stars), shares, rtol=0, atol=2e-5)


def test_wsum_weighs_average_errors():
    """Midpoint 0.5: weights 0.5 and 0.5; errors average 0.2 and 0.6."""
    assert wsum(np.array([[0.1, 0.3], [0.5, 0.7]]), np.array([0.2, 0.8])) == pytest.approx(0.4)
    # Midpoint 0.25: weights 0.75 and 0.25, in the order that was given.
    assert wsum(np.array([[0.1, 0.3], [0.5, 0.7]]), np.array([0.4, 0.1])) == pytest.approx(0.3)


def integrated(value, scale, of):
    """E of(clip(value + noise)): the density between the clips, and what is beyond them."""
    noisy = stats.laplace(loc=value, scale=scale)
    points = sorted({p for p in (value, *of.kinks) if 0 < p < 1})
    inside, _ = integrate.quad(
        lambda z: of(z) * noisy.pdf(z), 0, 1, points=points or None, limit=500, epsabs=1e-11
    )
    return inside + of(0.0) * noisy.cdf(0) + of(1.0) * noisy.sf(1)


class Away:
    """|z - target|."""

    def __init__(self, target):
        self.target, self.kinks = target, (target,)

    def __call__(self, z):
        return abs(z - self.target)


@given(value=unit, target=unit, scale=st.floats(0.01, 30))
def test_expected_error_is_the_integral_over_the_noise(value, target, scale):
    found = expected_error(np.array([value]), np.array([target]), scale)
    assert found[0] == pytest.approx(integrated(value, scale, Away(target)), abs=1e-9)


def test_without_noise_the_error_is_the_distance_and_nearly_so_with_little():
    values, targets = np.linspace(0, 1, 11), np.linspace(0, 1, 11)[::-1]
    for scale in (0, 1e-12, 1e-9):
        np.testing.assert_allclose(
            expected_error(values, targets, scale), np.abs(values - targets), rtol=0, atol=2e-9
        )


def test_overwhelming_noise_has_an_expected_error_of_one_half():
    values, targets = np.linspace(0, 1, 11), np.linspace(0, 1, 11) ** 2
    np.testing.assert_allclose(expected_error(values, targets, 1e6), 0.5, rtol=0, atol=1e-6)


def test_expectations_agree_with_noise_that_is_drawn(rng):
    values, targets = np.array([0.1, 0.5, 0.95]), np.array([0.4, 0.5, 0.6])
    released = np.clip(values + rng.laplace(scale=0.3, size=(200_000, 3)), 0, 1)
    # Releases vary by less than 0.5, so means of 200,000 by about 0.001.
    errors = np.abs(released - targets).mean(axis=0)
    np.testing.assert_allclose(expected_error(values, targets, 0.3), errors, atol=0.005)
