"""Cube noise on MICr of many pairs: one charge for all of them, and noise that belongs together."""

import itertools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from dpmic_jax import MICr, micr
from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.audit import replace_one
from dpmic_jax.dp.noise.cube import CubeNoise, uniform
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube
from dpmic_jax.dp.rng.keys import event_key, pair_key
from dpmic_jax.mechanisms import MICrCube, MICrLap
from dpmic_jax.mechanisms.additive_noise import lattice_points
from dpmic_jax.mechanisms.release import add_noise

SMALL = MICr(B=9, c=1)
LATTICE = Lattice(bits=10, sensitivity=16)
PAIRS = np.array(list(itertools.combinations(range(4), 2)))
UNIT = [(0, 1)] * 4


@pytest.fixture
def columns(rng):
    x = rng.random(200)
    return np.stack([x, np.abs(x - 0.5), rng.random(200), x + 0.1 * rng.random(200)], axis=1)


def released(columns, *, pairs=PAIRS, seed=1, epsilon=5.0, **settings):
    mechanism = MICrCube(epsilon=epsilon, statistic=SMALL)
    key = jax.random.key(seed)
    return mechanism.release_batch(columns, pairs=pairs, bounds=UNIT, key=key, **settings)


@pytest.mark.parametrize("n", [4, 5])
def test_one_record_moves_no_pair_by_more_than_the_sensitivity(n):
    """All pairs of three columns, for all data sets of n records with two values a column."""
    mechanism = MICrCube(epsilon=1.0, statistic=SMALL)
    lattice = mechanism.noise(n, 3).lattice
    groups = list(replace_one(list(itertools.product((0.2, 0.8), repeat=3)), n))
    datasets = sorted({data for group in groups for data in group})
    table = [column for data in datasets for column in np.array(data).T]
    pairs = np.concatenate([PAIRS[[0, 1, 3]] + 3 * i for i in range(len(datasets))])
    cut = SMALL.cut(table, [(0, 1)] * len(table))
    points = lattice_points(lattice, cut, pairs).reshape(-1, 3)
    point = dict(zip(datasets, points, strict=True))
    moves = [
        np.abs(point[a] - point[b]).max()
        for group in groups
        for a, b in itertools.combinations(sorted(group), 2)
    ]
    assert 0.5 * lattice.sensitivity < max(moves) <= lattice.sensitivity


def test_all_pairs_cost_epsilon_once():
    event = MICrCube(epsilon=0.5).event(1000, count=66)
    assert event.guarantee == PureDP(0.5)
    assert (event.count, event.epsilon) == (1, 0.5)


def test_the_number_of_pairs_is_in_the_event_and_so_in_the_noise(columns):
    mechanism = MICrCube(epsilon=5.0, statistic=SMALL)
    assert mechanism.event(200, count=6).digest != mechanism.event(200, count=5).digest
    some, fewer = released(columns), released(columns, pairs=PAIRS[:5])
    assert np.all(some.value[:5] != fewer.value)


def test_values_are_the_exact_ones_plus_coordinates_of_one_cube(columns):
    release = released(columns)
    mechanism = MICrCube(epsilon=5.0, statistic=SMALL)
    noise, key = mechanism.noise(200, 6), event_key(jax.random.key(1), release.event)
    radius = noise.noise.radius(jax.random.fold_in(key, np.uint32(2**32 - 2)))
    exact = lattice_points(noise.lattice, SMALL.cut(list(columns.T), UNIT), PAIRS)
    for value, point, pair in zip(release.value, exact, PAIRS, strict=True):
        words = np.asarray(jax.random.bits(pair_key(key, *pair), (16,), np.uint32))
        block = int.from_bytes(words[:4].astype("<u4").tobytes(), "little")
        wanted = min(max(int(point) + uniform(radius, iter([block])), 0), noise.lattice.top)
        assert value == wanted / noise.lattice.top


def test_some_pairs_get_the_noise_they_have_among_all():
    noise = MICrCube(epsilon=1.0, statistic=SMALL).noise(500, 5000)
    assert isinstance(noise, LatticeCube)
    pairs = np.array(list(itertools.combinations(range(101), 2)))[:5000]
    points, key = np.full(5000, noise.lattice.top // 2), jax.random.key(3)
    whole = add_noise(noise, points, pairs, key)
    for some in (slice(0, 1), slice(17, 300), slice(4090, 5000)):
        np.testing.assert_array_equal(add_noise(noise, points[some], pairs[some], key), whole[some])


def test_a_rule_is_asked_with_the_epsilon_of_the_same_deviation():
    asked = []

    def rule(n, epsilon):
        asked.append(epsilon)
        return SMALL

    mechanism = MICrCube(epsilon=2.0, statistic=rule)
    for count in (1, 66):
        mechanism.resolve(1000, count)
        same = MICrLap(epsilon=asked[-1], statistic=SMALL).noise(1000)
        cube = mechanism.noise(1000, count)
        deviation = cube.noise.sd / cube.lattice.top
        assert deviation == pytest.approx(math.sqrt(2) * same.scale, rel=2e-3)


def test_its_noise_is_2_4_times_smaller_than_laplace_noise_for_66_pairs():
    cube = MICrCube(epsilon=1.0, statistic=SMALL).noise(10_000, 66)
    laplace = MICrLap(epsilon=1 / 66, statistic=SMALL).noise(10_000)
    deviation = cube.noise.sd / cube.lattice.top
    assert math.sqrt(2) * laplace.scale / deviation == pytest.approx(2.39, abs=0.02)


def test_measured_deviation_is_that_of_the_law():
    """On the real path, with the spread of 300 releases of 66 values each."""
    noise = MICrCube(epsilon=50.0, statistic=SMALL).noise(10_000, 66)
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    points = np.full(66, noise.lattice.top // 2)
    drawn = [add_noise(noise, points, pairs, jax.random.key(seed)) - points for seed in range(300)]
    spread = np.std(drawn) / noise.noise.sd
    # Values share a radius, whose own spread is 1/sqrt(67): 300 of these average to 0.7 %.
    assert spread == pytest.approx(1, abs=0.03)


def test_one_pair_is_released_alone(columns):
    one = MICrCube(epsilon=1000.0, statistic=SMALL).release(
        columns[:, 0], columns[:, 1], bounds=UNIT[:2], key=jax.random.key(1)
    )
    exact = micr(columns[:, 0], columns[:, 1], bounds=UNIT[:2], B=9, c=1)
    assert isinstance(one.value, float)
    assert abs(one.value - exact) < 0.01


def test_the_radius_is_in_nothing_that_a_release_shows(columns):
    release = released(columns)
    noise = MICrCube(epsilon=5.0, statistic=SMALL).noise(200, 6)
    key = event_key(jax.random.key(1), release.event)
    radius = noise.noise.radius(jax.random.fold_in(key, np.uint32(2**32 - 2)))
    assert str(radius) not in f"{release!r}{release.event.to_json()}{noise!r}"
    assert "radius" not in CubeNoise.__dataclass_fields__


def test_an_event_of_a_rule_is_that_of_its_statistic_for_so_many_pairs():
    """A rule may give another statistic, with another sensitivity, for other noise."""
    mechanism = MICrCube(
        epsilon=1.0,
        statistic=lambda n, epsilon: MICr(B=4 if epsilon > 0.5 else 60_000, c=1),
    )
    settled = mechanism.settled(10**6, 66)
    assert mechanism.event(10**6, count=66) == settled.event(10**6, count=66)
    assert mechanism.noise(10**6, 66) == settled.noise(10**6, 66)
    assert mechanism.event(10**6).sensitivity != settled.event(10**6).sensitivity


@pytest.mark.parametrize("count", [0, -5, True, 2.5, "x"])
def test_a_number_of_pairs_has_to_be_one(count):
    with pytest.raises((TypeError, ValueError), match="count"):
        MICrCube(epsilon=1.0, statistic=SMALL).event(1000, count=count)


def test_a_radius_for_some_values_is_refused_to_more():
    noise = MICrCube(epsilon=1.0, statistic=SMALL).noise(500, 5)
    with pytest.raises(ValueError, match="must not serve 6"):
        add_noise(noise, np.zeros(6, np.int32), PAIRS, jax.random.key(0))


def test_more_random_words_are_drawn_where_the_first_do_not_suffice():
    """A radius of hundreds of bits takes more than a pair's 512."""
    noise = LatticeCube(epsilon=Fraction(1, 10**150), lattice=LATTICE, points=6)
    key, points = jax.random.key(2), np.full(6, LATTICE.top // 2)
    found = [add_noise(noise, points, PAIRS, key) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    assert set(found[0]) <= {0, LATTICE.top}  # so wide is the noise
    assert len(set(found[0])) == 2
