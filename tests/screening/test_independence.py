"""The dependence threshold holds 5 % for any marginal distributions, by proof and by simulation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.distance import splits, steps_of
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening.independence import (
    _chernoff,
    _worst,
    chance_level,
    dependence_level,
    distance_tail,
)
from dpmic_jax.screening.noises import Share, value_noise

COLUMNS = 10
PAIRS = np.array(list(itertools.combinations(range(COLUMNS), 2)))
KINDS = {
    "uniform": (lambda rng, n: rng.random(n), (0.0, 1.0)),
    "normal": (lambda rng, n: rng.normal(size=n), (-4.0, 4.0)),
    "log-normal": (lambda rng, n: np.exp(rng.normal(size=n)), (0.0, 20.0)),
    "rare": (lambda rng, n: (rng.random(n) < 0.02).astype(float), (0.0, 1.0)),
    "two values": (lambda rng, n: rng.integers(0, 2, n), (0.0, 1.0)),
    "ten levels": (lambda rng, n: rng.integers(0, 10, n), (-0.5, 9.5)),
}


def distances(columns, bounds, pairs):
    cut = MICrAndDistance(micr=None).cut(columns, bounds)
    n = len(columns[0])
    found = np.concatenate(list(score_pairs(cut, pairs, None)), axis=2)
    return found[-1].max(axis=0) / (2 * steps_of(n) * n)


@pytest.mark.parametrize("kind", KINDS)
def test_independent_columns_of_any_kind_stay_below_the_level(rng, kind):
    draw, bounds = KINDS[kind]
    n = 500
    found = distances([draw(rng, n) for _ in range(COLUMNS)], [bounds] * COLUMNS, PAIRS)
    assert found.max() < chance_level(n, len(PAIRS), chance=1e-3)


def test_the_level_is_of_use(rng):
    """Uniform columns come near it; no level that is half as high would hold."""
    n = 500
    found = distances(list(rng.random((COLUMNS, n))), [(0.0, 1.0)] * COLUMNS, PAIRS)
    assert found.max() > 0.6 * chance_level(n, len(PAIRS))


def test_persons_of_many_records_stay_below_their_own_level_and_pass_that_of_single_ones(rng):
    """Everyone's records are alike: the worst that persons of r records may do."""
    n, r = 500, 5
    columns = list(np.repeat(rng.random((COLUMNS, n // r)), r, axis=1))
    found = distances(columns, [(0.0, 1.0)] * COLUMNS, PAIRS)
    assert found.max() < chance_level(n, len(PAIRS), r, chance=1e-3)
    assert found.min() > chance_level(n, len(PAIRS))


def test_records_of_different_distributions_may_be_independent_and_pass_the_level():
    """Why the theorem is about identical distributions: here nothing is random at all."""
    n = 500
    x = np.repeat([0.2, 0.8], n // 2)
    assert distances([x, x], [(0.0, 1.0)] * 2, PAIRS[:1])[0] > chance_level(n, 1, chance=1e-12)


@pytest.mark.parametrize("signs", [False, True])
def test_moments_of_absolute_binomials_are_within_the_bound(rng, signs):
    """E exp(h sum |X_j|) for independent centred binomials, exactly, against exp(m phi(c^2/m))."""
    slopes, bounds = _chernoff(signs, 16)
    for p, size in itertools.product([0.5, 0.6, 0.9, 0.99], [1, 2, 9, 60]):
        proxy = 0.25 if p == 0.5 else (2 * p - 1) / (2 * math.log(p / (1 - p)))
        x = np.arange(size + 1)
        chance, away = stats.binom.pmf(x, size, p), np.abs(x - size * p)
        for c, bound in zip(slopes[1::20], bounds[1::20], strict=True):
            h = c / math.sqrt(proxy * 16 * size)  # 16 parts of `size` records each
            assert 16 * np.log(chance @ np.exp(h * away)) <= bound + 1e-9


@pytest.mark.parametrize("n", [50, 1000, 10**6])
def test_every_p_has_a_t_within_its_error(n):
    steps, cells = steps_of(n), 256
    t = steps / (steps + np.arange(steps + 1))
    error, proxy = _worst(n, 1)
    for place in np.linspace(0, 1, 7):
        p = 0.5 + (np.arange(cells) + place) / (2 * cells)
        assert np.all(np.abs(p[:, None] - t).min(axis=1) <= error + 1e-12)
        inside = np.clip(p, 0.5 + 1e-9, 1 - 1e-9)
        assert np.all((2 * inside - 1) / (2 * np.log(inside / (1 - inside))) <= proxy + 1e-9)


def test_the_tail_adds_up_all_splits():
    """Hoeffding and a union bound over 2^16 signs and all splits can only be larger."""
    n, x = 2000, np.linspace(0.05, 0.2, 20)
    events = 2 * len(splits()) * 2.0**16
    loose = events * np.exp(-2 * n * np.maximum(x - 1 / steps_of(n), 0) ** 2)
    assert np.all(distance_tail(x, n) <= np.minimum(1, loose) + 1e-12)
    assert np.all(distance_tail(x, n, 4) >= distance_tail(x, n))


@pytest.mark.parametrize("gaussian", [False, True])
def test_false_alarms_of_noise_and_chance_together_are_five_percent(rng, gaussian):
    """With distances that have the proven tail exactly, drawn by its inverse."""
    n, pairs, tables = 2000, 45, 4000
    share = Share(mu_squared=Fraction(1, 4)) if gaussian else Share(epsilon=Fraction(1))
    noise = value_noise(share, Fraction(1, n), pairs)
    level = dependence_level(noise, n, pairs)
    x = np.linspace(0, 0.3, 5000)
    tail = distance_tail(x, n)
    by_chance = np.interp(rng.random((tables, pairs)), tail[::-1], x[::-1])
    if gaussian:
        drawn = rng.normal(0, noise.scale, (tables, pairs))
    else:
        radius = noise.scale * rng.gamma(pairs + 1, size=(tables, 1))
        drawn = radius * rng.uniform(-1, 1, (tables, pairs))
    alarms = ((by_chance + drawn).max(axis=1) > level).mean()
    assert alarms <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)
    # The bound adds up over pairs, which costs little: two thirds of the noise would not do.
    assert ((by_chance + 1.5 * drawn).max(axis=1) > level).mean() > 0.1
