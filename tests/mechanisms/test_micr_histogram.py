"""The private histogram: what a record moves, the exact loss, and what it estimates."""

import jax
import numpy as np
import pytest

from dpmic_jax.data.table import Table
from dpmic_jax.dp.accounting.events import PureDP, ReplaceOne
from dpmic_jax.dp.audit import exact_loss, replace_one
from dpmic_jax.dp.noise import TruncatedGeometric
from dpmic_jax.mechanisms.deconvolution import Design
from dpmic_jax.mechanisms.histogram import MICrHistogram, cell_counts

UNIT = ((0, 1), (0, 1))
SMALL = Design(side=12, calibration=(0.0, 0.0, 0.0, 1.0))
CORNERS = [(x, y) for x in (0.0, 0.5, 1.0) for y in (0.0, 0.5, 1.0)]


def counts_of(data):
    x, y = np.array(data).T
    return cell_counts(Table(("x", "y"), (x, y)), UNIT, np.array([[0, 1]]), 12)[0]


@pytest.fixture
def pair(rng):
    x = rng.random(2000)
    return x, np.abs(2 * x - 1)


def test_counts_are_those_of_equal_cells(pair):
    found = counts_of(np.stack(pair, axis=1))
    np.testing.assert_array_equal(found, np.histogram2d(*pair, (12, 12), UNIT)[0])


def test_a_record_moves_two_counts_by_one():
    for group in replace_one(CORNERS, 4):
        tables = [counts_of(data) for data in group]
        for one in tables:
            for other in tables:
                assert np.abs(one - other).sum() <= 2
                assert np.abs(one - other).max() <= 1


def loss_of_a_count(law, room, n):
    return exact_loss(
        lambda count: {out: law.pmf(count + room, out) for out in range(law.n + 1)},
        [(count, count + 1) for count in range(n)],
    )


@pytest.mark.parametrize(("epsilon", "records"), [(1.0, 1), (3.0, 1), (1.0, 2)])
def test_exact_loss_of_a_count_is_at_most_half_of_epsilon(epsilon, records):
    """Counts have noise of their own, so losses of the two that move add up to epsilon."""
    mechanism = MICrHistogram(epsilon=epsilon, relation=ReplaceOne(records))
    loss = loss_of_a_count(mechanism.noise(5), mechanism.room(5), 5)
    assert loss.at_most(epsilon / 2 / records)
    assert not loss.at_most(epsilon / 2 / records - 1e-6)


def test_noise_of_two_thirds_the_scale_is_caught():
    mechanism = MICrHistogram(epsilon=1.0)
    law = mechanism.noise(5)
    weak = TruncatedGeometric(epsilon=law.epsilon * 3 / 2, n=law.n)
    assert not loss_of_a_count(weak, mechanism.room(5), 5).at_most(0.7)


def test_noise_has_the_variance_that_the_estimator_assumes(pair):
    from dpmic_jax.mechanisms.deconvolution import laplace_variance

    mechanism = MICrHistogram(epsilon=1.0, design=SMALL)
    exact = counts_of(np.stack(pair, axis=1))
    noise = np.concatenate(
        [
            (mechanism.release(*pair, bounds=UNIT, key=jax.random.key(s)).counts - exact).ravel()
            for s in range(40)
        ]
    )
    assert abs(noise.mean()) < 5 * np.sqrt(laplace_variance(1.0) / len(noise))
    # The fourth moment of Laplace noise is 6 variance^2: that of the variance is 5.
    spread = 5 * np.sqrt(5 / len(noise))
    assert noise.var() == pytest.approx(laplace_variance(1.0), rel=spread)
    assert spread < 1 / 3  # so that 2/3 and 3/2 of the scale would not pass


def test_the_event_is_known_before_data(pair):
    mechanism = MICrHistogram(epsilon=0.5, relation=ReplaceOne(3))
    event = mechanism.event(2000, count=4)
    assert event.guarantee == PureDP(0.5)
    assert event.epsilon == 2.0
    assert event.sensitivity == 6


def test_everything_is_a_function_of_the_noisy_counts(pair, rng):
    """Same counts, same estimates: nothing else of the data comes out."""
    from dpmic_jax.mechanisms import deconvolution

    mechanism = MICrHistogram(epsilon=1.0, design=SMALL)
    found = mechanism.release(*pair, bounds=UNIT, key=jax.random.key(0))
    again = deconvolution.estimate(
        found.counts, n=2000, variance=deconvolution.laplace_variance(1.0), design=SMALL
    )
    assert found.value == again.mic
    np.testing.assert_array_equal(found.mass, again.mass)
    np.testing.assert_array_equal(found.matrix.values, again.matrix.values)
    assert found.mass.sum() == pytest.approx(1)
    for statistic in (found.matrix.mic, found.matrix.tic, found.matrix.mas, found.matrix.mev):
        assert np.isfinite(statistic)


def test_a_dependence_is_seen_and_independence_is_not(rng):
    x = rng.random(20_000)
    mechanism = MICrHistogram(epsilon=2.0)
    strong = mechanism.release(x, np.abs(2 * x - 1), bounds=UNIT, key=jax.random.key(0))
    none = mechanism.release(x, rng.random(20_000), bounds=UNIT, key=jax.random.key(1))
    assert strong.value > 0.7
    assert none.value < 0.2


def test_same_key_same_release_in_any_batch(rng):
    X, key = rng.random((300, 3)), jax.random.key(5)
    mechanism = MICrHistogram(epsilon=1.0, design=SMALL)
    bounds, pairs = [(0, 1)] * 3, [(0, 1), (1, 2), (0, 2)]
    found = mechanism.release_batch(X, pairs=pairs, bounds=bounds, key=key)
    for index, pair in enumerate(pairs):
        alone = mechanism.release_batch(X, pairs=[pair], bounds=bounds, key=key)
        np.testing.assert_array_equal(alone.counts[0], found.counts[index])
    single = mechanism.release(X[:, 0], X[:, 1], bounds=UNIT, key=key)
    np.testing.assert_array_equal(single.counts, found.counts[0])
    assert not single.key_is_secret


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf")])
def test_a_strange_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        MICrHistogram(epsilon=epsilon)
