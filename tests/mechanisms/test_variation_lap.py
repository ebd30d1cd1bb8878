"""Total variation plus noise: exact losses on tiny data, the law of the noise, refusals."""

import math
from dataclasses import replace
from fractions import Fraction

import jax
import numpy as np
import pytest

from dpmic_jax.data.table import Table
from dpmic_jax.dp.accounting.events import PureDP, ReplaceOne
from dpmic_jax.dp.audit import exact_loss, replace_one, sampled_loss
from dpmic_jax.dp.ledger.budget import Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.noise.lattice import Lattice, LatticeLaplace
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.mechanisms import mic_star_estimate
from dpmic_jax.mechanisms.release import add_noise
from dpmic_jax.mechanisms.variation import VariationLap, lattice_points, parts_for

UNIT = ((0, 1), (0, 1))
NINE = [(x, y) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)]
SMALL = VariationLap(epsilon=0.7, parts=3)


@pytest.fixture
def columns(rng):
    x = rng.random(200)
    return np.stack([x, np.abs(x - 0.5), rng.random(200), x + 0.1 * rng.random(200)], axis=1)


def point_of(lattice, data, parts=3):
    """The lattice point of a data set, by the code that releases it."""
    x, y = np.array(data).T
    return int(
        lattice_points(lattice, Table(("x", "y"), (x, y)), UNIT, np.array([[0, 1]]), parts)[0]
    )


def neighbouring_points(lattice, n):
    groups = [tuple(group) for group in replace_one(NINE, n)]
    point = {data: point_of(lattice, data) for group in groups for data in group}
    return {tuple(sorted({point[data] for data in group})) for group in groups}


def coarse(mechanism, n):
    """The mechanism's lattice with fewer points, so that its law is quickly written down."""
    return Lattice(bits=6, sensitivity=math.ceil(mechanism.sensitivity(n) * 64))


def law_of(law):
    return lambda point: {out: law.pmf(point, out) for out in range(law.lattice.top + 1)}


@pytest.mark.parametrize("n", [5, 6])
def test_exact_loss_on_every_small_data_set_is_at_most_epsilon(n):
    lattice = coarse(SMALL, n)
    law = LatticeLaplace(epsilon=SMALL.epsilon, lattice=lattice)
    loss = exact_loss(law_of(law), neighbouring_points(lattice, n))
    assert loss.at_most(SMALL.epsilon)
    assert not loss.at_most(0.9 * SMALL.epsilon)


def test_exact_loss_of_the_shipped_law_is_at_most_epsilon():
    law = SMALL.noise(5)
    groups = neighbouring_points(law.lattice, 5)
    assert exact_loss(law_of(law), groups).at_most(SMALL.epsilon)


@pytest.mark.parametrize("n", [5, 6])
def test_noise_of_two_thirds_the_scale_is_caught(n):
    lattice = coarse(SMALL, n)
    weak = replace(lattice, sensitivity=2 * lattice.sensitivity // 3)
    law = LatticeLaplace(epsilon=SMALL.epsilon, lattice=weak)
    assert not exact_loss(law_of(law), neighbouring_points(lattice, n)).at_most(1.4 * SMALL.epsilon)


def test_neighbours_that_are_furthest_apart_are_as_hard_to_tell_as_promised():
    """All records in one corner, and one of them in the opposite corner: really drawn."""
    mechanism, n = VariationLap(epsilon=1.0, parts=8), 60
    law, together = mechanism.noise(n), [(0.1, 0.1)] * n
    points = [point_of(law.lattice, data, 8) for data in (together, [(0.9, 0.9), *together[1:]])]
    assert points[1] - points[0] in (law.lattice.sensitivity - 1, law.lattice.sensitivity)
    pairs = np.stack([np.arange(300_000), np.zeros(300_000, int)], axis=1)
    keys = jax.random.split(secret_key().key)
    drawn = [
        add_noise(law, np.full(len(pairs), point), pairs, key)
        for point, key in zip(points, keys, strict=True)
    ]
    assert 0.85 < sampled_loss(*drawn, confidence=1 - 1e-6).epsilon <= 1.0


def test_noise_has_the_scale_of_the_sensitivity(rng):
    """Laplace noise has mean absolute value 4 (n-1) / n^2 / epsilon: not 2/3 or 3/2 of it."""
    n = 4000
    x = rng.random(n)
    columns = np.stack([x, *(np.clip(x + rng.normal(0, 0.4, n), 0, 1) for _ in range(400))], axis=1)
    mechanism = VariationLap(epsilon=1.0)
    pairs = [(0, i) for i in range(1, 401)]
    bounds = [(0, 1)] * 401
    found = mechanism.release_batch(columns, pairs=pairs, bounds=bounds, key=jax.random.key(3))
    nearly = VariationLap(epsilon=1e5).release_batch(
        columns, pairs=pairs, bounds=bounds, key=jax.random.key(4)
    )
    noise = np.abs(np.asarray(found.value) - nearly.value).mean()
    # The standard error of a mean of 400 is a twentieth.
    assert noise == pytest.approx(4 * (n - 1) / n**2, rel=0.2)
    assert found.scale == pytest.approx(4 * (n - 1) / n**2, rel=0.002)


def test_with_hardly_any_noise_it_is_the_statistic(columns):
    x, y = columns[:, 0], columns[:, 1]
    found = VariationLap(epsilon=1e5, parts=4).release(x, y, bounds=UNIT, key=jax.random.key(0))
    counts = np.histogram2d(x, y, 4, UNIT)[0]
    expected = 0.0
    for table in (counts, counts.T):
        for cut in (1, 2, 3):
            near, whole = table[:cut].sum(axis=0) / 200, table.sum(axis=0) / 200
            expected = max(expected, 2 * np.abs(near - near.sum() * whole).sum())
    assert found.value == pytest.approx(expected, abs=1e-5)


def test_the_lattice_point_is_right_beyond_64_bits():
    """n^2 2^30 does not fit: the line has half of its records on each side of the middle."""
    n = 200_000
    x = (np.arange(n) + 0.5) / n
    lattice = Lattice(bits=30, sensitivity=1)
    data = Table(("x", "y"), (x, x))
    found = lattice_points(lattice, data, UNIT, np.array([[0, 1]]), 2)
    assert found.tolist() == [lattice.top]


def test_a_pair_has_the_same_noise_alone_and_among_others(columns):
    mechanism, key = VariationLap(epsilon=0.5), jax.random.key(5)
    bounds = [(0, 1)] * 4
    many = mechanism.release_batch(columns, pairs=[(0, 1), (2, 3), (0, 3)], bounds=bounds, key=key)
    few = mechanism.release_batch(columns, pairs=[(2, 3)], bounds=bounds, key=key)
    assert np.asarray(many.value)[1] == np.asarray(few.value)[0]
    one = mechanism.release(columns[:, 0], columns[:, 1], bounds=UNIT, key=key)
    assert one.value == np.asarray(many.value)[0]
    other = mechanism.release(columns[:, 0], columns[:, 1], bounds=UNIT, key=key, label="again")
    assert other.value != one.value


def test_the_event_says_what_it_costs_and_a_ledger_refuses_what_it_cannot_pay():
    event = VariationLap(epsilon=0.6, relation=ReplaceOne(2)).event(100, count=2)
    assert event.guarantee == PureDP(0.6)
    assert event.sensitivity == 2 * Fraction(4 * 99, 100**2)
    assert event.settings == (("parts", "20"),)
    assert event.mechanism == "VariationLap"
    ledger = Ledger(Budget(epsilon=2.0)).charge(event)
    with pytest.raises(BudgetExceeded):
        ledger.charge(event)


def test_a_seeded_key_is_marked_and_a_secret_one_too(columns):
    x, y = columns[:, 0], columns[:, 1]
    mechanism = VariationLap(epsilon=1.0)
    assert not mechanism.release(x, y, bounds=UNIT, key=jax.random.key(0)).key_is_secret
    assert mechanism.release(x, y, bounds=UNIT, key=secret_key()).key_is_secret


@pytest.mark.parametrize(("n", "parts"), [(2, 3), (25, 10), (250, 32), (10_000, 200), (10**8, 256)])
def test_there_are_two_root_n_parts_within_reason(n, parts):
    assert parts_for(n) == parts
    assert VariationLap(epsilon=1.0).resolve(n) == parts


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"epsilon": 0.0}, ValueError, "0 < epsilon"),
        ({"epsilon": math.nan}, ValueError, "0 < epsilon"),
        ({"epsilon": 1.0, "parts": 1}, ValueError, "2 <= parts <= 256"),
        ({"epsilon": 1.0, "parts": 257}, ValueError, "2 <= parts <= 256"),
        ({"epsilon": 1.0, "parts": 2.5}, TypeError, "parts"),
    ],
)
def test_wrong_settings_are_refused_when_made(wrong, error, text):
    with pytest.raises(error, match=text):
        VariationLap(**wrong)


def test_a_rule_that_gives_wrong_parts_is_refused():
    with pytest.raises(ValueError, match="2 <= parts <= 256"):
        VariationLap(epsilon=1.0, parts=lambda n: n).resolve(1000)


FOUR = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("x", "bounds", "text"),
    [
        (FOUR, ((0, 1),), "bounds"),
        (FOUR, ((1, 0), (0, 1)), "bounds"),
        (FOUR[:3], UNIT, "at least 4 records"),
    ],
)
def test_bad_input_is_refused(x, bounds, text):
    with pytest.raises(ValueError, match=text) as refusal:
        VariationLap(epsilon=1.0).release(x, FOUR[: len(x)], bounds=bounds, key=jax.random.key(0))
    assert "0.3" not in str(refusal.value)


def test_what_is_no_key_is_refused():
    with pytest.raises(TypeError, match="key"):
        VariationLap(epsilon=1.0).release(FOUR, FOUR, bounds=UNIT, key=7)  # pyright: ignore[reportArgumentType]


def test_mic_star_is_estimated_from_the_default_and_no_other(columns):
    x, y = columns[:, 0], columns[:, 3] / 1.1
    strong = VariationLap(epsilon=5.0).release(x, y, bounds=UNIT, key=jax.random.key(1))
    weak = VariationLap(epsilon=5.0).release(x, columns[:, 2], bounds=UNIT, key=jax.random.key(1))
    assert mic_star_estimate(strong) > 0.7
    assert mic_star_estimate(weak) < 0.2
    other = VariationLap(epsilon=5.0, parts=9).release(x, y, bounds=UNIT, key=jax.random.key(1))
    with pytest.raises(ValueError, match="without passing parts"):
        mic_star_estimate(other)
