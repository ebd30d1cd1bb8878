import itertools

import jax
import numpy as np
import pytest
from paper_oracles import rejected
from scipy import stats
from scipy.integrate import quad

from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mixtures import (
    Mixture,
    cell_masses,
    correlation_squared,
    draw,
    generating_points,
    mixture_with_r_squared,
)

FINE = 1e-5  # between the x among which generating points are chosen
# Gentle, fast, steep, and partly outside of the square.
SOME = ("F2", "F8", "F9", "F19")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_hundred_points_lie_on_the_graph_and_in_the_square(name):
    points = generating_points(FUNCTIONS[name])
    assert points.shape == (100, 2)
    np.testing.assert_array_equal(points[:, 1], FUNCTIONS[name](points[:, 0]))
    assert points.min() >= 0
    assert points.max() <= 1
    assert (np.diff(points[:, 0]) > 0).all()


def test_points_of_the_line_are_even_steps_along_it():
    points = generating_points(FUNCTIONS["F12"])
    np.testing.assert_allclose(points[:, 0], np.arange(100) / 99, rtol=0, atol=FINE)


def test_points_of_the_parabola_are_even_steps_along_its_arc():
    """The length of u -> 4 u^2 up to u is u sqrt(1 + 64 u^2) / 2 + asinh(8 u) / 16."""
    u = generating_points(FUNCTIONS["F13"])[:, 0] - 0.5
    along = u * np.sqrt(1 + 64 * u**2) / 2 + np.arcsinh(8 * u) / 16
    edge = np.sqrt(0.9 / 4)  # where the parabola leaves the square
    whole = edge * np.sqrt(1 + 64 * edge**2) + np.arcsinh(8 * edge) / 8
    slope = np.sqrt(1 + 64 * edge**2)
    np.testing.assert_allclose(np.diff(along), whole / 99, rtol=0, atol=3 * slope * FINE)
    assert u[0] == pytest.approx(-edge, abs=FINE)
    assert u[-1] == pytest.approx(edge, abs=FINE)


def test_points_of_two_straight_pieces_are_shared_out_by_their_lengths():
    """F9 is 0.99 long in x and then climbs all of y in the last hundredth."""
    flat, steep = np.hypot(0.99, 0.01), np.hypot(0.01, 0.99)
    points = generating_points(FUNCTIONS["F9"])
    on_flat = (points[:, 0] <= 0.99).sum()
    assert on_flat == pytest.approx(99 * flat / (flat + steep) + 1, abs=1)
    climbs = np.diff(points[points[:, 0] > 0.99, 1])
    np.testing.assert_allclose(climbs, 2 * flat / 99 * 0.99 / steep, rtol=0, atol=99 * FINE)


@pytest.mark.parametrize("name", ["F1", "F2", "F4", "F7", "F8", "F11"])
def test_what_the_square_cuts_off_has_no_length(name):
    """Each gap between neighbouring points is the same length of graph inside of the square."""

    def speed(x):
        y, after = FUNCTIONS[name](np.array([x, x + 1e-7]))
        return np.hypot(1, (after - y) / 1e-7) * (0 <= y <= 1)

    points = generating_points(FUNCTIONS[name])[:, 0]
    chosen = [0, 20, 45, 50, 70, 98]
    gaps = [quad(speed, points[i], points[i + 1], limit=200, epsabs=1e-6)[0] for i in chosen]
    whole = sum(
        quad(speed, a, b, limit=200, epsabs=1e-6)[0]
        for a, b in itertools.pairwise(np.linspace(0, 1, 30))
    )
    steepest = np.abs(np.diff(FUNCTIONS[name](np.linspace(0, 1, 1001)))).max() * 1000
    np.testing.assert_allclose(gaps, whole / 99, rtol=0, atol=4 * np.hypot(1, steepest) * FINE)


def test_spaced_along_all_of_its_graph_f8_would_keep_28_of_100_points():
    x = np.linspace(0, 1, 200_001)
    y = FUNCTIONS["F8"](x)
    length = np.append(0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    chosen = np.interp(np.linspace(0, length[-1], 100), length, y)
    assert ((chosen >= 0) & (chosen <= 1)).sum() == 28


def truncated_moments(centres, deviation):
    """Mass inside of [0, 1], and mean and second moment there, of every Gaussian."""
    a, b = (0 - centres) / deviation, (1 - centres) / deviation
    gaussian = stats.truncnorm(a, b, loc=centres, scale=deviation)
    return (
        stats.norm.cdf(b) - stats.norm.cdf(a),
        gaussian.mean(),
        gaussian.mean() ** 2 + gaussian.var(),
    )


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.3, 1.0])
def test_r_squared_of_the_line_follows_from_moments_of_truncated_gaussians(deviation):
    x = generating_points(FUNCTIONS["F12"])[:, 0]
    inside, mean, second = truncated_moments(x, deviation)
    weight = inside**2 / (inside**2).sum()
    variance = weight @ second - (weight @ mean) ** 2
    expected = ((weight @ mean**2 - (weight @ mean) ** 2) / variance) ** 2
    mixture = Mixture(np.stack([x, x], axis=1), deviation)
    # Cells are 1/4000 wide.
    assert correlation_squared(FUNCTIONS["F12"], mixture) == pytest.approx(expected, abs=1e-6)


def sampled_r_squared(function, records):
    """corr(f(X), Y)^2 and its standard error, over 50 batches."""
    batches = np.split(records, 50)
    found = [np.corrcoef(function(b[:, 0]), b[:, 1])[0, 1] ** 2 for b in batches]
    whole = np.corrcoef(function(records[:, 0]), records[:, 1])[0, 1] ** 2
    return whole, np.std(found, ddof=1) / np.sqrt(50)


@pytest.mark.parametrize("r_squared", [0.1, 0.9])
@pytest.mark.parametrize("name", ["F2", "F8", "F9", "F21"])
def test_samples_have_the_r_squared_that_was_wanted(rng, name, r_squared):
    """Within five standard errors, which are below 0.01 throughout."""
    mixture = mixture_with_r_squared(FUNCTIONS[name], r_squared)
    found, error = sampled_r_squared(FUNCTIONS[name], rejected(*mixture, 50_000, rng))
    assert error < 0.01
    assert found == pytest.approx(r_squared, abs=5 * error)


@pytest.mark.parametrize("name", SOME)
def test_r_squared_agrees_with_samples_at_any_deviation(rng, name):
    mixture = Mixture(generating_points(FUNCTIONS[name]), 0.04)
    found, error = sampled_r_squared(FUNCTIONS[name], rejected(*mixture, 50_000, rng))
    assert correlation_squared(FUNCTIONS[name], mixture) == pytest.approx(found, abs=5 * error)


def test_without_noise_r_squared_is_one_and_with_much_noise_it_is_zero():
    centres = generating_points(FUNCTIONS["F15"])
    assert correlation_squared(FUNCTIONS["F15"], Mixture(centres, 1e-4)) > 0.9999
    assert correlation_squared(FUNCTIONS["F15"], Mixture(centres, 2.0)) < 1e-4


def test_masses_of_cells_are_those_of_the_gaussians(rng):
    centres, edges = rng.random((5, 2)), np.sort(rng.random(4))
    for axis in (0, 1):
        found = cell_masses(Mixture(centres, 0.3), axis, edges)
        for cell, point in np.ndindex(3, 5):
            gaussian = stats.norm(centres[point, axis], 0.3)
            expected = gaussian.cdf(edges[cell + 1]) - gaussian.cdf(edges[cell])
            assert found[cell, point] == pytest.approx(expected, abs=1e-14)


def agreement(function, records, others):
    """The smallest p-value of equal distributions: of x, of y, and of y about the graph."""
    both = [(r[:, 0], r[:, 1], r[:, 1] - function(r[:, 0])) for r in (records, others)]
    return min(stats.ks_2samp(a, b).pvalue for a, b in zip(*both, strict=True))


# R^2 of 0.1 has the widest Gaussians, 0.9 the narrowest.
@pytest.mark.parametrize("r_squared", [0.1, 0.9])
@pytest.mark.parametrize("name", SOME)
def test_draws_follow_the_distribution_of_rejection_sampling_and_not_a_wider_or_narrower_one(
    rng, key, name, r_squared
):
    mixture = mixture_with_r_squared(FUNCTIONS[name], r_squared)
    drawn = np.stack(draw(mixture, 20_000, key=key), axis=1).astype(float)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    for factor in (2 / 3, 1, 3 / 2):
        others = rejected(mixture.centres, factor * mixture.deviation, 20_000, rng)
        same = agreement(FUNCTIONS[name], drawn, others)
        assert same > 1e-4 if factor == 1 else same < 1e-9


def test_centres_near_the_border_are_drawn_less_often(key):
    """A Gaussian in a corner has a quarter of its mass inside, one in the middle all of it."""
    mixture = Mixture(np.array([[0.0, 0.0], [0.5, 0.5]]), 0.01)
    x, _ = draw(mixture, 20_000, key=key)
    corner = (np.asarray(x) < 0.25).mean()
    # 1/4 of 5/4; the standard error of a share of 0.2 is 0.0028.
    assert corner == pytest.approx(0.2, abs=5 * 0.0028)


def test_draws_depend_on_the_key_alone(key):
    mixture = mixture_with_r_squared(FUNCTIONS["F7"], 0.7)
    once, again = (np.stack(draw(mixture, 500, key=key)) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    other = np.stack(draw(mixture, 500, key=jax.random.fold_in(key, 1)))
    assert not np.isclose(once, other, rtol=0, atol=1e-6).all(axis=0).any()


def test_the_noise_of_a_record_does_not_follow_from_the_centres_that_were_drawn(key):
    """With one key for both draws the same words would choose centres and noise.

    They need not meet in the same record: n words for centres are the first n of 2 n words for
    noise, or every second, or the first or second half.
    """
    n = 5000
    along = np.linspace(0.1, 0.9, 100)
    mixture = Mixture(np.stack([along, along], axis=1), 0.0005)
    x, y = (np.asarray(column, float) for column in draw(mixture, n, key=key))
    # Centres are 16 deviations apart, so each record determines its centre and its noise.
    centre = np.rint((x - 0.1) / 0.8 * 99)
    noise = np.stack([x, y], axis=1) - along[centre.astype(int), None]
    alignments = [noise[:, 0], noise[:, 1], noise.ravel()[:n], noise.ravel()[n:]]
    alignments += [noise.T.ravel()[0::2], noise.T.ravel()[1::2]]
    for one in alignments:
        assert abs(stats.spearmanr(centre, one).statistic) < 5 / np.sqrt(n)
