"""MIC plus noise: exact losses on tiny data, the same bits however it is run, refusals."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache

import jax
import numpy as np
import pytest

from dpmic_jax import MICe, MICr, mice, micr
from dpmic_jax.dp.accounting.composition import delta_at
from dpmic_jax.dp.accounting.events import PureDP, ReplaceOne
from dpmic_jax.dp.audit import exact_delta, exact_loss, replace_one, replace_one_in_sequences
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.dp.rng.keys import event_key, secret_key
from dpmic_jax.mechanisms.additive_noise import MICeLap, MICrGauss, MICrLap, lattice_points
from dpmic_jax.mechanisms.published import (
    PublishedMICeLap,
    PublishedMICrGeom,
    PublishedMICrLap,
)
from dpmic_jax.mic.ties import RandomTies

UNIT = ((0, 1), (0, 1))
NINE = [(x, y) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)]
# B = 9 has entries of two and of three parts, so every case of the proof is met.
SMALL = MICr(B=9, c=1)
RANGE = {
    "MICrLap": MICrLap(epsilon=0.7, statistic=SMALL),
    "PublishedMICrLap": PublishedMICrLap(epsilon=0.7, statistic=SMALL),
}


@pytest.fixture
def columns(rng):
    x = rng.random(200)
    return np.stack([x, np.abs(x - 0.5), rng.random(200), x + 0.1 * rng.random(200)], axis=1)


@dataclass(frozen=True, eq=False)
class SameTies(RandomTies):
    """Data sets side by side in one table break ties as each would alone."""

    def __call__(self, values, column):
        return super().__call__(values, column % 2)


def points_of(mechanism, lattice, datasets, key=None):
    """The lattice point of each data set, by the code that releases it."""
    table = [column for data in datasets for column in np.array(data).T]
    pairs = np.arange(len(table)).reshape(-1, 2)
    if isinstance(mechanism, MICeLap):
        cut = replace(mechanism.statistic, ties=SameTies(key)).cut(table)
    else:
        cut = mechanism.resolve(len(datasets[0])).cut(table, [(0, 1)] * len(table))
    return lattice_points(lattice, cut, pairs, jax.devices()[:1]).tolist()


def neighbouring_points(mechanism, lattice, groups, key=None):
    """Groups of points that neighbouring data sets have, each group once."""
    groups = list(groups)
    datasets = sorted({data for group in groups for data in group})
    point = dict(zip(datasets, points_of(mechanism, lattice, datasets, key), strict=True))
    return {tuple(sorted({point[data] for data in group})) for group in groups}


def coarse(mechanism, n):
    """The mechanism's lattice with fewer points, so that its law is quickly written down."""
    return Lattice(bits=6, sensitivity=math.ceil(mechanism.sensitivity(n) * 64))


def law_of(law):
    return lambda point: {out: law.pmf(point, out) for out in range(law.lattice.top + 1)}


@cache
def coarse_groups(name, n):
    """On the mechanism's coarse lattice, of all data sets of n records in nine places."""
    mechanism = RANGE[name]
    return neighbouring_points(mechanism, coarse(mechanism, n), replace_one(NINE, n))


def test_exact_loss_of_the_shipped_law_is_at_most_epsilon():
    mechanism = RANGE["MICrLap"]
    law = mechanism.noise(4)
    groups = neighbouring_points(mechanism, law.lattice, replace_one(NINE, 4))
    assert exact_loss(law_of(law), groups).at_most(mechanism.epsilon)


@pytest.mark.parametrize(("name", "n"), [("MICrLap", 4), ("MICrLap", 6), ("PublishedMICrLap", 5)])
def test_exact_loss_on_every_small_data_set_is_at_most_epsilon(name, n):
    mechanism = RANGE[name]
    law = LatticeLaplace(epsilon=mechanism.epsilon, lattice=coarse(mechanism, n))
    assert exact_loss(law_of(law), coarse_groups(name, n)).at_most(mechanism.epsilon)


@pytest.mark.parametrize("n", [4, 6])
def test_noise_of_two_thirds_the_scale_is_caught(n):
    mechanism = RANGE["MICrLap"]
    lattice = coarse(mechanism, n)
    weak = replace(lattice, sensitivity=2 * lattice.sensitivity // 3)
    weak_law = law_of(LatticeLaplace(epsilon=mechanism.epsilon, lattice=weak))
    loss = exact_loss(weak_law, coarse_groups("MICrLap", n))
    assert not loss.at_most(1.4 * mechanism.epsilon)


def test_exact_loss_of_mice_for_given_ties_is_at_most_epsilon(key):
    mechanism = MICeLap(epsilon=0.7, statistic=MICe(B=4, c=2))
    records = [(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    lattice = coarse(mechanism, 5)
    groups = neighbouring_points(mechanism, lattice, replace_one_in_sequences(records, 5), key)
    assert len(set(itertools.chain.from_iterable(groups))) > 2
    law = LatticeLaplace(epsilon=0.7, lattice=lattice)
    assert exact_loss(law_of(law), groups).at_most(0.7)


def test_exact_delta_of_gaussian_noise_is_at_most_what_its_event_says():
    mechanism = MICrGauss(rho=0.3, statistic=SMALL)
    lattice = coarse(mechanism, 4)
    groups = neighbouring_points(mechanism, lattice, replace_one(NINE, 4))
    law = law_of(LatticeGauss.for_rho(0.3, lattice))
    for epsilon in (0.3, 0.8):
        found = exact_delta(law, groups, epsilon=epsilon)
        assert 0 < found.high <= delta_at([mechanism.event(4)], epsilon)


@pytest.mark.parametrize("n", [4, 23, 337, 5000, 10**6])
def test_the_event_tells_everything_before_data_is_seen(n):
    event = MICrLap(epsilon=0.5, relation=ReplaceOne(2)).event(n, count=3, label="first")
    one = MICrLap(epsilon=0.5).event(n)
    assert event.guarantee == PureDP(0.5)
    assert (event.epsilon, event.delta, event.count, event.label) == (1.5, 0.0, 3, "first")
    assert event.relation.records == 2
    assert event.sensitivity == min(1, 2 * one.sensitivity)
    delta = (n * np.log2(n) - (n - 1) * np.log2(n - 1)) / n
    assert float(one.sensitivity) == pytest.approx(delta, abs=1e-7 + 1e-9)
    gauss = MICrGauss(rho=0.2).event(n)
    assert gauss.rho == pytest.approx(0.2)
    assert gauss.delta < 1e-15


def test_scale_is_sensitivity_over_epsilon():
    for n in (337, 5000):
        mechanism = MICrLap(epsilon=0.5)
        law = mechanism.noise(n)
        assert law.scale == pytest.approx(float(mechanism.sensitivity(n)) / 0.5, rel=1e-3)
        gauss = MICrGauss(rho=0.125)
        assert gauss.noise(n).scale == pytest.approx(float(gauss.sensitivity(n)) * 2, rel=1e-3)


def test_published_noise_is_that_of_the_paper():
    law = PublishedMICrLap(epsilon=1.0).noise(337)
    assert law.scale == pytest.approx((4 * np.log2(337) + 6) / 337, rel=1e-3)
    law = PublishedMICeLap(epsilon=1.0, statistic=MICe(B=7)).noise(23)
    assert law.scale == pytest.approx(7 * (2 * np.log2(23) + 4.8) / 23, rel=1e-3)


def test_without_noise_to_speak_of_it_is_the_statistic(columns):
    x, y = columns[:, 0], columns[:, 1]
    range_value = micr(x, y, bounds=UNIT, B=20)
    for seed in range(3):
        key = jax.random.key(seed)
        for found, value in (
            (
                MICrLap(epsilon=30e3, statistic=MICr(B=20)).release(x, y, bounds=UNIT, key=key),
                range_value,
            ),
            (
                MICrGauss(rho=1e8, statistic=MICr(B=20)).release(x, y, bounds=UNIT, key=key),
                range_value,
            ),
            (
                MICeLap(epsilon=30e3, statistic=MICe(B=20)).release(x, y, key=key),
                mice(x, y, B=20),
            ),
        ):
            step = 1 / found.lattice.top
            assert found.value == pytest.approx(value - step / 2, abs=step / 2 + 2e-6)


BATCHES = {
    "MICrLap": (MICrLap(epsilon=1.0, statistic=MICr(B=12)), {"bounds": [(0, 1.2)] * 4}),
    "MICrGauss": (MICrGauss(rho=0.3, statistic=MICr(B=12)), {"bounds": [(0, 1.2)] * 4}),
    "MICeLap": (MICeLap(epsilon=1.0, statistic=MICe(B=12, c=4)), {}),
}
PAIRS = [(0, 1), (2, 3), (1, 2), (0, 3), (1, 3)]


@pytest.mark.parametrize(("mechanism", "bounds"), BATCHES.values(), ids=BATCHES)
def test_same_key_same_release_on_any_devices_and_in_any_batch(columns, mechanism, bounds):
    key = jax.random.key(3)
    found = mechanism.release_batch(columns, pairs=PAIRS, key=key, **bounds)
    again = mechanism.release_batch(
        columns, pairs=PAIRS, key=key, devices=jax.devices()[:4], **bounds
    )
    np.testing.assert_array_equal(again.value, found.value)
    for size in (1, 2, 3):
        parts = [
            mechanism.release_batch(columns, pairs=PAIRS[i : i + size], key=key, **bounds).value
            for i in range(0, len(PAIRS), size)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), found.value)
    limits = {name: value[:2] for name, value in bounds.items()}
    alone = mechanism.release(columns[:, 0], columns[:, 1], key=key, **limits)
    assert alone.value == found.value[0]
    assert found.event.count == len(PAIRS)
    assert len(set(found.value.tolist())) > 1


@pytest.mark.parametrize(("mechanism", "bounds"), BATCHES.values(), ids=BATCHES)
def test_values_are_points_of_the_lattice(columns, mechanism, bounds):
    found = mechanism.release_batch(columns, pairs=PAIRS, key=secret_key(), **bounds)
    points = found.value * found.lattice.top
    assert np.all(points == np.floor(points))
    assert np.all((found.value >= 0) & (found.value <= 1))
    assert found.key_is_secret


def test_a_seeded_release_says_so(columns):
    mechanism, bounds = BATCHES["MICrLap"]
    found = mechanism.release_batch(columns, pairs=PAIRS, key=jax.random.key(0), **bounds)
    assert not found.key_is_secret


def test_noise_differs_between_labels_settings_pairs_and_keys(columns):
    mechanism, bounds = BATCHES["MICrLap"]
    twice = np.stack([columns[:, 0], columns[:, 1], columns[:, 0], columns[:, 1]], axis=1)

    def noise(mechanism=mechanism, label="", seed=0, pairs=((0, 1),)):
        key = jax.random.key(seed)
        found = mechanism.release_batch(twice, pairs=pairs, key=key, label=label, **bounds)
        return tuple(found.value)

    seen = {
        noise(),
        noise(label="second"),
        noise(seed=1),
        noise(mechanism=replace(mechanism, epsilon=1.0000001)),
        noise(pairs=((2, 3),)),
        noise(pairs=((0, 3),)),
        noise(pairs=((2, 1),)),
    }
    assert len(seen) == 7
    assert noise() in seen


def test_ties_draw_nothing_that_a_pair_draws(columns):
    """The key that breaks ties is none that any pair of columns has."""
    mechanism = MICeLap(epsilon=1.0)
    noise = event_key(jax.random.key(0), mechanism.event(200))
    from dpmic_jax.dp.rng.keys import pair_key
    from dpmic_jax.mechanisms.additive_noise import _TIES

    ties = {jax.random.key_data(pair_key(noise, _TIES, j)).tolist().__repr__() for j in range(20)}
    pairs = {
        jax.random.key_data(pair_key(noise, i, j)).tolist().__repr__()
        for i in range(20)
        for j in range(20)
    }
    assert len(ties) == 20
    assert not ties & pairs


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf")])
def test_a_strange_epsilon_is_refused_when_the_mechanism_is_made(epsilon):
    for mechanism in (MICrLap, MICeLap, PublishedMICrLap):
        with pytest.raises(ValueError, match="epsilon"):
            mechanism(epsilon=epsilon)
    with pytest.raises(ValueError, match="rho"):
        MICrGauss(rho=epsilon)


def test_bad_calls_are_refused_without_showing_a_value(columns):
    mechanism, _ = BATCHES["MICrLap"]
    x, y = columns[:, 0], columns[:, 1]
    with pytest.raises(TypeError, match="secret_key"):
        mechanism.release(x, y, bounds=UNIT, key=0)
    with pytest.raises(ValueError, match="bounds"):
        mechanism.release(x, y, bounds=((0, 1),), key=jax.random.key(0))
    with pytest.raises(ValueError, match="same number of records"):
        mechanism.release(x, y[:-1], bounds=UNIT, key=jax.random.key(0))
    with pytest.raises(ValueError, match="rbg"):
        mechanism.release(x, y, bounds=UNIT, key=jax.random.key(0, impl="rbg"))
    with pytest.raises(TypeError, match="expected numbers in column 'x'") as refused:
        mechanism.release(x.astype("M8[s]"), y, bounds=UNIT, key=jax.random.key(0))
    assert not any(str(value)[:8] in str(refused.value) for value in x)


@pytest.mark.parametrize(
    ("odd", "as_if"),
    [(np.nan, 0.5), ("text", 0.5), (None, 0.5), (np.inf, 1.0), (-np.inf, 0.0), (10**400, 1.0)],
)
def test_no_value_is_refused_and_what_is_no_number_counts_as_the_middle(odd, as_if, columns):
    mechanism, _ = BATCHES["MICrLap"]
    x, y = columns[:, 0].tolist(), columns[:, 1].tolist()
    one, other = (
        mechanism.release([value] * 50 + x[50:], y, bounds=UNIT, key=jax.random.key(0)).value
        for value in (odd, as_if)
    )
    assert one == other


@pytest.mark.parametrize("kind", [MICrLap, PublishedMICrLap, PublishedMICrGeom])
def test_a_rule_is_asked_once_a_release(kind, columns):
    asked = []

    def rule(n, epsilon):
        asked.append((n, epsilon))
        return SMALL

    kind(epsilon=0.5, statistic=rule).release(
        columns[:, 0], columns[:, 1], bounds=UNIT, key=jax.random.key(1)
    )
    assert asked == [(200, 0.5)]
