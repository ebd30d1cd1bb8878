"""The level of independence, against columns of other kinds and other n than the simulated."""

import itertools
import math

import numpy as np
import pytest

from dpmic_jax import micr
from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import characteristic
from dpmic_jax.mic.xlogx import gains_for
from dpmic_jax.screening import default_screen_statistic
from dpmic_jax.screening.independence import independence_level

PAIRS = np.array(list(itertools.combinations(range(10), 2)))
KINDS = {
    "uniform": (lambda rng, n: rng.random(n), (0.0, 1.0)),
    "normal": (lambda rng, n: rng.normal(size=n), (-4.0, 4.0)),
    "exponential": (lambda rng, n: rng.exponential(size=n), (0.0, 10.0)),
    "log-normal": (lambda rng, n: np.exp(rng.normal(size=n)), (0.0, 20.0)),
    "rare": (lambda rng, n: (rng.random(n) < 0.02).astype(float), (-0.5, 1.5)),
    "ten levels": (lambda rng, n: rng.integers(0, 10, n), (-0.5, 9.5)),
}


def values(statistic, n, kind, rng):
    draw, bounds = KINDS[kind]
    cut = statistic.cut([draw(rng, n) for _ in range(10)], [bounds] * 10)
    tiles = batch.score_pairs(cut, PAIRS, gains_for(n))
    return np.concatenate([characteristic(cut.grids, tile).mic for tile in tiles])


@pytest.mark.parametrize("n", [200, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_independent_columns_stay_below_the_level(rng, kind, n):
    """A chance of 1e-3 in all pairs; this test looks at twelve such sets."""
    statistic = default_screen_statistic(n, 0.1)
    assert values(statistic, n, kind, rng).max() < independence_level(statistic, n, 45, 1e-3)


@pytest.mark.parametrize(
    ("n", "epsilon"),
    [(8, 1.0), (40, 0.2), (200, 0.1), pytest.param(20_000, 0.1, marks=pytest.mark.slow)],
)
def test_at_most_one_table_in_twenty_has_a_pair_above_the_level(rng, n, epsilon):
    tables, statistic = 200, default_screen_statistic(n, epsilon)
    pairs = (10 * np.arange(tables)[:, None, None] + PAIRS).reshape(-1, 2)
    cut = statistic.cut(list(rng.random((10 * tables, n))), [(0.0, 1.0)] * (10 * tables))
    tiles = batch.score_pairs(cut, pairs, gains_for(n))
    found = np.concatenate([characteristic(cut.grids, tile).mic for tile in tiles])
    largest = found.reshape(tables, len(PAIRS)).max(axis=1)
    level = independence_level(statistic, n, len(PAIRS), 0.05)
    allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)
    assert (largest > level).mean() <= allowed
    # A level of no use, or one of fewer pairs, would not do.
    assert (largest > 0.6 * level).mean() > allowed


@pytest.mark.slow
def test_uniform_columns_come_near_it(rng):
    """Otherwise it would be of no use."""
    statistic = default_screen_statistic(3000, 0.1)
    largest = values(statistic, 3000, "uniform", rng).max()
    assert largest > 0.6 * independence_level(statistic, 3000, 45, 0.05)


@pytest.mark.slow
def test_beyond_20000_records_it_falls_as_one_over_n(rng):
    statistic = default_screen_statistic(100_000, 0.1)
    found = values(statistic, 100_000, "uniform", rng)
    level = independence_level(statistic, 100_000, 45, 0.05)
    assert 0.6 * level < found.max() < 1.15 * level


def test_a_dependent_pair_is_far_above_it(rng):
    x = rng.random(3000)
    score = micr(x, x**2, bounds=[(0, 1), (0, 1)], B=30)
    assert score > 10 * independence_level(default_screen_statistic(3000, 0.1), 3000, 45, 0.05)
