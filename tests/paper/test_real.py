import jax
import numpy as np
import pytest

import dpmic_jax as dm
from dpmic_jax.mechanisms import PublishedMICrGeom, PublishedMICrLap
from dpmic_jax.paper import real
from dpmic_jax.paper.collections import Collection
from dpmic_jax.paper.store import Store


@pytest.fixture
def collection(rng):
    """12 columns of 120 records, some of whole numbers; 66 pairs."""
    x = rng.normal(size=(12, 120))
    x[1] = x[0] ** 2 + 0.1 * x[1]
    x[2:5] = np.round(4 * x[2:5])
    bounds = tuple((float(c.min()) - 0.1, float(c.max()) + 0.1) for c in x)
    pairs = np.stack(np.triu_indices(12, 1), axis=1)
    return Collection("made up", tuple(x), bounds, pairs, (0.0, 0.5, 1.0))


def test_the_truth_is_mice_of_every_pair(collection):
    found = real.truth(collection)
    for index in (0, 13, 40, 65):
        x, y = (collection.columns[place] for place in collection.pairs[index])
        assert found[index] == pytest.approx(dm.mice(x, y), abs=2e-6)


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [("MICr-Lap", PublishedMICrLap(epsilon=1.0)), ("ours", dm.MICrLap(epsilon=1.0))],
)
def test_draws_are_releases_of_the_mechanism_itself(collection, name, mechanism):
    key = jax.random.key(3)
    found = dict(real.MECHANISMS[name](collection, 1.0, np.zeros(66), 3, key))
    for draw in range(3):
        release = mechanism.release_batch(
            np.stack(collection.columns, axis=1),
            pairs=collection.pairs.tolist(),
            bounds=collection.bounds,
            key=key,
            label=str(draw),
        )
        np.testing.assert_array_equal(found[name][draw], release.value)


@pytest.mark.slow
def test_tiny_geometric_noise_leaves_micr_unchanged(collection):
    """At epsilon = 80 a count changes with probability e^-40."""
    statistic = PublishedMICrGeom(epsilon=80.0).resolve(120)
    (found,) = dict(
        real.MECHANISMS["MICr-Geom"](collection, 80.0, None, 2, jax.random.key(0))
    ).values()
    for index in (0, 5, 20, 65):
        i, j = collection.pairs[index]
        exact = dm.characteristic(
            collection.columns[i],
            collection.columns[j],
            statistic=statistic,
            bounds=(collection.bounds[i], collection.bounds[j]),
        ).mic
        np.testing.assert_allclose(found[:, index], exact, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_fast_geometric_noise_has_the_distribution_of_the_mechanism(collection):
    """Means of many releases agree within five standard errors; 3/2 of epsilon is detected."""
    draws, pair = 300, collection.pairs[:1]
    one = Collection("one", collection.columns, collection.bounds, pair, ())
    x, y = (collection.columns[place] for place in pair[0])
    bounds = [collection.bounds[place] for place in pair[0]]
    mechanism = PublishedMICrGeom(epsilon=0.5)
    wanted = np.array(
        [
            mechanism.release(x, y, bounds=bounds, key=jax.random.key(draw)).value
            for draw in range(draws)
        ]
    )
    error = wanted.std() * np.sqrt(2 / draws)
    for epsilon, near in ((0.5, True), (0.75, False)):
        # Statistics of Table 2 depend on epsilon: the same one, with other noise.
        found = _geom(one, mechanism.resolve(120), epsilon, draws)
        assert (abs(found.mean() - wanted.mean()) < 5 * error) == near


def _geom(collection, statistic, epsilon, draws):
    cut = statistic.cut(collection.columns, collection.bounds)
    keys = jax.random.split(jax.random.key(9), draws)
    best = np.zeros((draws, 1))
    counts = real.master_counts(cut, collection.pairs)
    for number, (grid, table) in enumerate(real._tables(cut.grids, counts)):
        own = jax.vmap(lambda key, number=number: jax.random.fold_in(key, number))(keys)
        found = real._noisy_scores(grid, table, own, epsilon, collection.n)
        best = np.maximum(best, found)
    return best


@pytest.mark.slow
def test_errors_are_those_of_the_draws(collection, tmp_path):
    store = Store(tmp_path, {})
    found = real.measured(collection, 1.0, store, draws=4, seed=5)
    mice = real.truth(collection)
    released = dict(real.MECHANISMS["ours"](collection, 1.0, mice, 4, jax.random.key(5)))
    gap = released["ours"] - mice
    np.testing.assert_allclose(found["ours"].bias, gap.mean(axis=0))
    np.testing.assert_allclose(found["ours"].unsigned, np.abs(gap).mean(axis=0))
    np.testing.assert_allclose(found["ours"].variance, released["ours"].var(axis=0))
    assert set(found) >= {"MICe-Lap", "MICr-Lap", "MICr-Geom", "ours", "ours, debiased", real.WIDE}
