import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.results.relative import largest_distance, relative_distance

shares = st.floats(0, 1)


def distance_of(tables):
    """Total variation from the nearest independent table, of tables with cells in the last axis."""
    u, v = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401))
    independent = np.stack([u * v, u * (1 - v), (1 - u) * v, (1 - u) * (1 - v)], axis=-1)
    return np.array([np.abs(independent - each).sum(axis=-1).min() / 2 for each in tables])


def tables_with(n, x, y):
    """All 2 x 2 tables of n records of which x and y have the flags."""
    both = np.arange(max(0, x + y - n), min(x, y) + 1)
    return np.stack([both, x - both, y - both, n - x - y + both], axis=-1) / n


@pytest.mark.parametrize("x", range(9))
def test_the_largest_distance_is_that_of_the_furthest_table_with_these_marginals(x):
    for y in range(9):
        furthest = distance_of(tables_with(8, x, y)).max()
        # Tables on the grid of the oracle are no nearer than the nearest, and one is within a cell.
        assert -1e-12 <= furthest - largest_distance(x / 8, y / 8) < 2 / 400


def test_a_rare_flag_is_as_far_from_independence_as_it_is_frequent():
    assert largest_distance(0.01, 0.01) == pytest.approx(0.01, rel=0.01)
    assert largest_distance(0.5, 0.5) == pytest.approx(math.sqrt(2) - 1)
    assert largest_distance(0.3, 0) == largest_distance(1, 0.3) == 0


@given(shares, shares)
def test_values_and_columns_may_be_exchanged_and_equal_shares_allow_most(x, y):
    largest = largest_distance(x, y)
    assert largest == largest_distance(y, x)
    assert largest == pytest.approx(largest_distance(1 - x, y), abs=1e-12)
    assert largest <= largest_distance(x, x) + 1e-12


@given(st.floats(0, 0.4), st.floats(0, 0.1), shares, shares, st.floats(0, 0.2), st.data())
def test_limits_hold_for_all_that_the_half_widths_allow(distance, off, x, y, width, data):
    found = relative_distance(distance, off, x, y, width)
    assert 0 <= found.lower <= found.value <= found.upper <= 1
    moved = st.floats(-1, 1)
    true = max(distance + off * data.draw(moved), 0)
    x, y = (min(max(each + width * data.draw(moved), 0), 1) for each in (x, y))
    largest = largest_distance(x, y)
    if true <= largest and largest > 0:
        assert found.lower - 1e-9 <= true / largest <= found.upper + 1e-9


def covered(half, rng, runs=2000):
    """How often limits hold for flags of 3 and 2.5 %, noise being Laplace and limits 95 %."""
    x, y, distance, scale = 0.03, 0.025, 0.012, 0.0005
    true = distance / largest_distance(x, y)
    distance_half, share_half = (-half * scale * math.log(above) for above in (0.025, 0.0125))
    hits = 0
    for noise in rng.laplace(0, scale, (runs, 3)):
        noisy = np.clip(np.array([distance, x, y]) + noise, 0, 1)
        _, low, high = relative_distance(noisy[0], distance_half, noisy[1], noisy[2], share_half)
        hits += low <= true <= high
    return hits / runs


def test_limits_cover_the_exact_ratio_and_narrow_ones_do_not(rng):
    assert covered(1, rng) >= 0.95
    # Interval arithmetic adds errors that seldom come together: limits are wider than they need be.
    assert covered(1 / 3, rng) < 0.95


def test_a_flag_that_may_be_constant_has_no_upper_limit():
    assert relative_distance(0.001, 0.001, 0.004, 0.3, 0.005).upper == 1
    assert relative_distance(0.001, 0.002, 0.0, 0.3, 0.005) == (0, 0, 1)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((1.5, 0, 0.1, 0.1, 0), "distance"),
        ((0.1, -1, 0.1, 0.1, 0), "distance_half_width"),
        ((0.1, 0, -0.1, 0.1, 0), "share_x"),
        ((0.1, 0, 0.1, math.nan, 0), "share_y"),
        ((0.1, 0, 0.1, 0.1, math.nan), "share_half_width"),
    ],
)
def test_what_is_no_share_or_width_is_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=f"{name}\\b"):
        relative_distance(*arguments)
