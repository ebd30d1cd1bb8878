import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax.results.relative import relative_distances

distances = st.floats(0, 0.42)


def exact_distance(tables):
    """Total variation from the nearest independent 2 x 2 table, cells in the last axis."""
    u, v = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401))
    independent = np.stack([u * v, u * (1 - v), (1 - u) * v, (1 - u) * (1 - v)], axis=-1)
    return np.array([np.abs(independent - each).sum(axis=-1).min() / 2 for each in tables])


@pytest.mark.parametrize("p", [0.02, 0.1, 0.3, 0.5])
def test_a_flag_is_furthest_from_itself_by_the_formula(p, rng):
    own = exact_distance([[p, 0, 0, 1 - p]])[0]
    s = np.sqrt(1 - p)
    assert own == pytest.approx(2 * s * (1 - s), abs=2 / 400)
    # Any other flag, made of this one by a random map.
    high, low = rng.random((2, 100))
    others = np.stack([p * high, p * (1 - high), (1 - p) * low, (1 - p) * (1 - low)], axis=-1)
    found = exact_distance(others)
    assert found.max() <= own + 2 / 400
    assert found.max() > own / 4


@given(arrays(float, 3, elements=distances), st.floats(0, 0.1), st.data())
def test_limits_hold_for_all_that_the_half_width_allows(released, half, data):
    found = relative_distances(released[:1], released[1:2], released[2:], half)
    assert 0 <= found.lower[0] <= found.value[0] <= found.upper[0] <= 1
    moved = data.draw(arrays(float, 3, elements=st.floats(-1, 1)))
    distance, *own = np.maximum(released + half * moved, 0)
    if distance <= min(own) and min(own) > 0:
        assert found.lower[0] - 1e-9 <= distance / min(own) <= found.upper[0] + 1e-9


def test_limits_of_noisy_values_cover_the_exact_ratio_and_narrow_ones_do_not(rng):
    exact, scale = np.array([0.012, 0.03, 0.025]), 0.0005
    half = -scale * np.log(0.05 / 3)  # each of three Laplace noises exceeds it in 1 of 60 draws
    noisy = np.clip(exact + rng.laplace(0, scale, (4000, 3)), 0, 1).T
    for width, covers in ((half, True), (half / 3, False)):
        found = relative_distances(*noisy, width)
        held = np.mean((found.lower <= 12 / 25) & (found.upper >= 12 / 25))
        assert (held >= 0.95) == covers


def test_a_known_column_is_enough_and_none_gives_nothing():
    nan = np.nan
    found = relative_distances(
        np.array([0.01, 0.01, 0.01]), np.array([0.02, nan, nan]), np.array([nan, 0.04, nan]), 0.001
    )
    np.testing.assert_allclose(found.value, [0.5, 0.25, nan])
    assert np.isnan(found.lower[2])
    assert np.isnan(found.upper[2])


def test_a_flag_that_may_be_constant_has_no_upper_limit():
    one = np.array([0.001])
    assert relative_distances(one, np.array([0.004]), one * np.nan, 0.005).upper == 1
    assert relative_distances(one, np.array([0.0]), one * np.nan, 0.002) == (0, 0, 1)


def test_a_negative_width_is_refused():
    with pytest.raises(ValueError, match="half_width"):
        relative_distances(np.ones(1), np.ones(1), np.ones(1), -0.1)
