"""Distributions on which the estimate of MIC* is calibrated: their masses, and MIC* of tables."""

import itertools

import numpy as np
import oracles
import paper_oracles
import pytest
from scipy import stats

from dpmic_jax.paper import dependences
from dpmic_jax.paper.dependences import (
    boundary,
    copula_masses,
    mic_star_of,
    normal_copula,
    other_shapes,
    t_copula,
)
from dpmic_jax.paper.mixtures import POINTS, Mixture

PARTS = 16
EVEN = np.arange(PARTS + 1) / PARTS


def test_mic_star_of_a_table_is_the_best_of_all_partitions_tried_in_turn(rng):
    masses = rng.dirichlet(np.full(42, 0.3)).reshape(7, 6)
    tried = [paper_oracles.by_enumeration(table, len(table)) for table in (masses, masses.T)]
    for table, values in zip((masses, masses.T), tried, strict=True):
        np.testing.assert_allclose(boundary(table), values, atol=1e-12)
    assert mic_star_of(masses) == pytest.approx(max(map(max, tried)))


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5])
def test_mic_star_of_a_flag_and_its_copy_is_its_entropy(p):
    entropy = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    assert mic_star_of(np.diag([p, 1 - p])) == pytest.approx(entropy)


def test_masses_of_a_normal_copula_are_those_of_normal_variables():
    rho = 0.7
    masses = copula_masses(normal_copula(rho), EVEN, EVEN)
    both = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    edges = stats.norm.ppf(EVEN).clip(-9, 9)
    # Integrated at 8 points of a part, which shows where quantiles are infinite.
    for i, j, off in ((3, 5, 1e-5), (8, 8, 1e-5), (2, 14, 1e-5), (0, 0, 3e-4), (15, 12, 3e-4)):
        low, high = edges[[i, j]], edges[[i + 1, j + 1]]
        assert masses[i, j] == pytest.approx(both.cdf(high, lower_limit=low), abs=off)


@pytest.mark.parametrize("freedom", [1, 3])
def test_masses_of_a_t_copula_are_those_of_draws(rng, freedom):
    rho, n = 0.5, 400_000
    normal = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    both = normal / np.sqrt(rng.chisquare(freedom, n) / freedom)[:, None]
    u, v = stats.t.cdf(both, freedom).T
    drawn = np.histogram2d(u, v, [EVEN, EVEN])[0] / n
    masses = copula_masses(t_copula(freedom, rho), EVEN, EVEN)
    assert np.abs(masses - drawn).max() < 5 * np.sqrt(masses.max() / n)
    # Uncorrelated ones are dependent, as they share their scale.
    assert mic_star_of(copula_masses(t_copula(freedom, 0.0), EVEN, EVEN)) > 0.01


@pytest.mark.parametrize("copula", [normal_copula(0.9), t_copula(1, 0.6)], ids=["normal", "t"])
def test_columns_of_a_copula_have_the_masses_that_its_edges_say(copula):
    for u, v in itertools.product(
        (EVEN, EVEN**3, stats.norm.cdf(np.linspace(-3, 3, 17))), repeat=2
    ):
        u, v = ((each - each[0]) / (each[-1] - each[0]) for each in (u, v))
        masses = copula_masses(copula, u, v)
        np.testing.assert_allclose(masses.sum(axis=1), np.diff(u), atol=1e-12)
        # Integrated over u, by middles of steps.
        np.testing.assert_allclose(masses.sum(axis=0), np.diff(v), atol=3e-3)
        assert masses.min() > -1e-12


@pytest.fixture(scope="module")
def curves():
    """Those that take no mixture."""
    return [*dependences._copulas(), *dependences._few_values()]


def of_kind(curves, kind):
    return [curve for curve in curves if curve.kind == kind]


def test_masses_add_up_and_every_kind_counts_once(curves):
    for curve in curves:
        np.testing.assert_allclose(curve.masses.sum(axis=(1, 2)), 1, atol=1e-12)
        assert np.all((curve.stars > 0) & (curve.stars < 1))
    for kind in {curve.kind for curve in curves}:
        assert sum(curve.share for curve in of_kind(curves, kind)) == pytest.approx(1)
    even = of_kind(curves, "normal")[0].masses
    np.testing.assert_allclose(even.sum(axis=2), 1 / PARTS, atol=1e-12)
    np.testing.assert_allclose(even.sum(axis=1), 1 / PARTS, atol=3e-3)


def test_flags_and_counts_are_as_far_apart_in_their_bounds_as_their_values(curves):
    for kind, filled in (("flag and flag", [0, 15]), ("count and count", [0, 4, 8, 12, 15])):
        of_x = of_kind(curves, kind)[0].masses.sum(axis=2)
        assert np.flatnonzero(of_x.max(axis=0) > 1e-9).tolist() == filled


def test_mic_star_of_two_flags_is_their_information(curves):
    for curve in of_kind(curves, "flag and flag"):
        for masses, star in zip(curve.masses, curve.stars, strict=True):
            table = np.maximum(masses[np.ix_([0, 15], [0, 15])], 0)
            assert star == pytest.approx(oracles.information(table), abs=1e-9)


def test_masses_of_mixtures_are_those_of_draws_on_columns_that_fill_their_bounds_or_do_not(rng):
    centres = np.stack([np.linspace(0.1, 0.9, 5), np.linspace(0.9, 0.2, 5) ** 2], axis=1)
    mixture, n = Mixture(centres, 0.1), 200_000
    drawn = paper_oracles.rejected(*mixture, n, rng)
    curves = list(dependences._of_mixtures("a line", [mixture], np.array([0.5])))
    assert sum(curve.share for curve in curves) == pytest.approx(1)
    even, skewed = EVEN, EVEN ** (1 / 3)
    edges = [(even, even), (skewed, even), (even, skewed), (skewed, skewed)]
    for curve, (x, y) in zip(curves, edges, strict=True):
        counted = np.histogram2d(*drawn.T, [x, y])[0] / n
        assert np.abs(curve.masses[0] - counted).max() < 5 * np.sqrt(counted.max() / n)


def test_shapes_have_a_hundred_centres_in_the_square():
    for centres in other_shapes().values():
        assert centres.shape == (POINTS, 2)
        assert centres.min() > 0
        assert centres.max() < 1
