"""What a noisy histogram says about a pair: limits, symmetries, and what is refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax.mechanisms import deconvolution
from dpmic_jax.mechanisms.deconvolution import Design, design, estimate, laplace_variance
from dpmic_jax.mic import characteristic as read

LARGEST_ENTRY = Design(side=12, calibration=(0.0, 0.0, 0.0, 1.0))


def information(masses):
    """I of a table, from the definition."""
    masses = masses / masses.sum()
    alone = masses.sum(axis=1, keepdims=True) * masses.sum(axis=0, keepdims=True)
    there = masses > 0
    return (masses[there] * np.log2(masses[there] / alone[there])).sum()


def table(records, side):
    return np.histogram2d(*records.T, bins=side, range=[[0, 1], [0, 1]])[0].astype(int)


def laplace(shape, epsilon, rng):
    draws = rng.geometric(-math.expm1(-epsilon / 2), (2, *shape))
    return draws[0] - draws[1]


def wave(n, rng):
    """Two periods of a sine, with a little noise."""
    x = rng.random(n)
    y = 0.5 + 0.4 * np.sin(4 * np.pi * x) + 0.03 * rng.standard_normal(n)
    return np.stack([x, np.clip(y, 0, 1)], axis=1)


@pytest.fixture
def smooth_table(rng):
    """Ten million records: sampling noise is nothing beside the counts."""
    x, y = (np.arange(12) + 0.5) / 12, (np.arange(12) + 0.5)[:, None] / 12
    density = np.exp(-8 * (x - y**2) ** 2) + 0.2 + 0.1 * rng.random((12, 12))
    return np.round(1e7 * density / density.sum()).astype(int)


def test_without_noise_and_with_many_records_it_is_the_information_of_the_grid(smooth_table):
    """Oracle: every choice of quartile cuts, tried in turn, from the definition."""
    n = int(smooth_table.sum())
    found = estimate(smooth_table, n=n, variance=0.0, design=LARGEST_ENTRY).matrix
    dense = found.matrix
    for counts, value in ((smooth_table, dense), (smooth_table.T, dense.T)):
        below = np.append(0, np.cumsum(counts.sum(axis=0)))
        q1, q2, q3 = (int(np.abs(below - n * k / 4).argmin()) for k in (1, 2, 3))
        for size in (6, 12):  # 4 x 4 has both ways round in it
            merged = counts.reshape(size, 12 // size, 12).sum(axis=1)
            for parts in (2, 3, 4):
                tried = [
                    information(np.add.reduceat(merged, [0, *cuts], axis=1))
                    for cuts in itertools.combinations((q1, q2, q3), parts - 1)
                    if parts == 2 or q2 in cuts
                ]
                expected = max(tried) / np.log2(parts)
                assert value[size - 2, parts - 2] == pytest.approx(expected, abs=2e-4)


def test_no_entry_promises_more_than_the_best_grid_of_its_size(smooth_table):
    """Oracle: MICr's optimum over all cuts, which the quartiles can only fall short of."""
    n = int(smooth_table.sum())
    matrix = estimate(smooth_table, n=n, variance=0.0, design=LARGEST_ENTRY).matrix
    best = max(
        information(np.add.reduceat(counts, [0, cut], axis=1))
        for counts in (smooth_table, smooth_table.T)
        for cut in range(1, 12)
    )
    assert read.mev(matrix) <= best + 2e-4
    assert read.mev(matrix) >= 0.8 * best


counts_of_12 = arrays(np.int64, (12, 12), elements=st.integers(-9, 60))


@given(counts_of_12)
def test_swapping_the_columns_transposes_the_matrix(counts):
    one = estimate(counts, n=900, variance=8.0, design=LARGEST_ENTRY)
    other = estimate(counts.T, n=900, variance=8.0, design=LARGEST_ENTRY)
    np.testing.assert_allclose(one.matrix.matrix, np.swapaxes(other.matrix.matrix, 0, 1))
    np.testing.assert_allclose(one.mass, other.mass.T, atol=1e-12)
    assert one.mic == pytest.approx(other.mic)


@pytest.mark.parametrize("flip", [np.flipud, np.fliplr])
def test_turning_a_column_round_changes_nothing(rng, flip):
    counts = table(wave(2000, rng), 12) + laplace((12, 12), 1.0, rng)
    one = estimate(counts, n=2000, variance=laplace_variance(1.0), design=LARGEST_ENTRY)
    other = estimate(flip(counts), n=2000, variance=laplace_variance(1.0), design=LARGEST_ENTRY)
    np.testing.assert_allclose(one.matrix.values, other.matrix.values, atol=1e-9)
    np.testing.assert_allclose(one.mass, flip(other.mass), atol=1e-12)


@given(counts_of_12, st.floats(0, 500), st.integers(1, 10**6))
def test_masses_are_probabilities_and_entries_are_shares(counts, variance, n):
    found = estimate(counts, n=n, variance=variance, design=LARGEST_ENTRY)
    assert found.mass.min() >= 0
    assert found.mass.sum() == pytest.approx(1)
    assert np.isfinite(found.matrix.values).all()
    assert found.matrix.values.min() >= 0
    assert found.matrix.values.max() <= 1
    assert 0 <= found.mic <= 1


@given(arrays(np.float64, (3, 7), elements=st.floats(-50, 50)), st.floats(0.5, 100))
def test_the_simplex_projection_is_the_nearest_point(counts, n):
    """By its variational inequality: no vertex of the simplex is in an acute direction."""
    nearest = deconvolution.to_simplex(counts, n)
    np.testing.assert_allclose(nearest.sum(axis=1), n)
    away = counts - nearest
    towards_vertices = n * away - (away * nearest).sum(axis=1, keepdims=True)
    assert towards_vertices.max() <= 1e-6 * (1 + n) * 50


def test_many_pairs_are_each_pair_alone(rng):
    counts = rng.integers(-5, 40, (2, 3, 12, 12))
    together = estimate(counts, n=700, variance=8.0, design=LARGEST_ENTRY)
    assert together.mic.shape == (2, 3)
    alone = estimate(counts[1, 2], n=700, variance=8.0, design=LARGEST_ENTRY)
    np.testing.assert_allclose(together.matrix.values[1, 2], alone.matrix.values)
    np.testing.assert_allclose(together.mass[1, 2], alone.mass)


def test_deconvolution_takes_out_the_noise_that_the_projection_leaves_in(rng):
    """The mean over 40 noises is nearer the information without noise than the plug-in's is."""
    n, epsilon, plan = 2000, 1.0, design(n=2000, epsilon=1.0)
    exact = table(wave(n, rng), plan.side)
    noisy = exact + laplace((40, plan.side, plan.side), epsilon, rng)
    sizes = plan.columns
    found = estimate(noisy, n=n, variance=laplace_variance(epsilon), design=plan).matrix
    unaware = estimate(noisy, n=n, variance=0.0, design=plan).matrix
    truth = deconvolution.largest(estimate(exact, n=n, variance=0.0, design=plan).matrix, sizes[2])
    error, unaware_error = (
        abs(deconvolution.largest(matrix, sizes[2]).mean() - truth) for matrix in (found, unaware)
    )
    assert error < 0.1
    assert error < unaware_error / 1.5


def test_constant_columns_and_empty_noise_say_nothing():
    counts = np.zeros((12, 12), int)
    counts[3, 7] = 5000
    matrix = estimate(counts, n=5000, variance=0.0, design=LARGEST_ENTRY).matrix
    assert matrix.values.max() < 0.01


@pytest.mark.parametrize(("n", "low", "high"), [(1000, 0.1, 0.8), (5000, 0.03, 0.85)])
def test_independent_is_low_and_a_curve_is_high(rng, n, low, high):
    plan, noise = design(n=n, epsilon=1.0), laplace_variance(1.0)
    for records, holds in (
        (lambda: rng.random((n, 2)), lambda mic: mic.mean() < low),
        (lambda: wave(n, rng), lambda mic: mic.mean() > high),
    ):
        counts = np.stack([table(records(), plan.side) for _ in range(10)])
        counts = counts + laplace(counts.shape, 1.0, rng)
        assert holds(estimate(counts, n=n, variance=noise, design=plan).mic)


def test_mic_is_the_calibration_of_the_best_entries(rng):
    plan = Design(side=12, calibration=(0.05, -0.3, 0.2, 0.9))
    found = estimate(rng.integers(0, 30, (12, 12)), n=2000, variance=2.0, design=plan)
    dense = found.matrix.matrix
    best = [np.nanmax([*dense[size - 2], *dense[:, size - 2]]) for size in (6, 12)]
    four = np.nanmax(dense[:3, :3])
    expected = 0.05 - 0.3 * four + 0.2 * best[0] + 0.9 * best[1]
    assert found.mic == pytest.approx(np.clip(expected, 0, 1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_variance_is_that_of_its_probabilities(epsilon):
    x = np.arange(-2000, 2001)
    weights = np.exp(-epsilon / 2 * np.abs(x))
    assert laplace_variance(epsilon) == pytest.approx((x**2 * weights).sum() / weights.sum())


def test_design_gives_the_fitted_points_and_is_clamped_outside():
    for (n, epsilon), (side, *calibration) in deconvolution.FITTED.items():
        found = design(n=n, epsilon=epsilon)
        assert found.side == side
        assert found.calibration == pytest.approx(calibration)
    assert design(n=10, epsilon=1e-3) == design(n=250, epsilon=0.1)
    assert design(n=10**9, epsilon=50.0) == design(n=20000, epsilon=3.0)


@given(st.integers(1, 10**7), st.floats(1e-4, 100))
def test_design_lies_between_the_fitted_points(n, epsilon):
    found = np.array([design(n=n, epsilon=epsilon).side, *design(n=n, epsilon=epsilon).calibration])
    fitted = np.array(list(deconvolution.FITTED.values()))
    assert (found >= fitted.min(axis=0) - 1e-9).all()
    assert (found <= fitted.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: design(n=0, epsilon=1.0), "n >= 1"),
        (lambda: design(n=10, epsilon=0.0), "epsilon"),
        (lambda: design(n=10, epsilon=math.nan), "epsilon"),
        (lambda: laplace_variance(-1.0), "epsilon"),
        (lambda: Design(side=16, calibration=(0, 0, 0, 1)), "side"),
        (lambda: Design(side=12, calibration=(0, 0, math.nan, 1)), "calibration"),
        (lambda: estimate(np.zeros((9, 9)), n=9, variance=0, design=LARGEST_ENTRY), "12 x 12"),
        (lambda: estimate(np.zeros((12, 12)), n=0, variance=0, design=LARGEST_ENTRY), "n >= 1"),
        (
            lambda: estimate(np.zeros((12, 12)), n=9, variance=-1, design=LARGEST_ENTRY),
            "variance",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
