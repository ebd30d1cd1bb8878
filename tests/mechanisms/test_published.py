"""The published mechanisms: what MICr-Geom computes, and what it is charged."""

import itertools
import math

import jax
import numpy as np
import oracles
import pytest

from dpmic_jax import MICr, micr
from dpmic_jax.dp.accounting.events import PureDP, ReplaceOne
from dpmic_jax.mechanisms.published import PublishedMICrGeom, _mic, master_counts
from dpmic_jax.mic.batch import layout_for

UNIT = ((0, 1), (0, 1))


def best_merge(table, parts):
    """Normalised information of the best interval merge of the rows, from the definition."""
    return max(
        oracles.information(np.add.reduceat(table, [0, *cuts], axis=0)) / math.log2(k)
        for k in range(2, parts + 1)
        for cuts in itertools.combinations(range(1, len(table)), k - 1)
    )


@pytest.mark.parametrize(("B", "c"), [(6, 1), (9, 2), (12, 1.5)])
def test_noisy_tables_are_scored_as_the_paper_says(rng, B, c):
    """Each by its own noisy number of records, the largest entry of all."""
    grids = MICr(B=B, c=c).grids(30)
    for pairs in (1, 3):
        tables = [
            [rng.poisson(rng.choice([0.5, 3, 12]), (grid.master, grid.rows)) for _ in range(2)]
            for _ in range(pairs)
            for grid in grids
        ]
        tables = [tables[i : i + len(grids)] for i in range(0, len(tables), len(grids))]
        noisy = np.stack(
            [np.concatenate([t.ravel() for sides in pair for t in sides]) for pair in tables]
        )
        expected = [
            max(
                best_merge(t, grid.parts)
                for grid, sides in zip(grids, pair, strict=True)
                for t in sides
            )
            for pair in tables
        ]
        layout = layout_for(grids, pairs, "cpu")
        found = _mic(layout, noisy, jax.devices()[0])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_counts_are_those_of_every_master_grid_both_ways(rng):
    x, y = rng.random(50), rng.random(50)
    statistic = MICr(B=9, c=2)
    found = master_counts(statistic.cut([x, y], UNIT), np.array([[0, 1]]))[0]
    expected = [
        np.histogram2d(a, b, (grid.master, grid.rows), UNIT)[0].ravel()
        for grid in statistic.grids(50)
        for a, b in ((x, y), (y, x))
    ]
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_without_noise_to_speak_of_it_is_micr(rng):
    x = rng.random(300)
    y = np.abs(x - 0.5) + 0.05 * rng.random(300)
    mechanism = PublishedMICrGeom(epsilon=60.0, statistic=MICr(B=20, c=2))
    found = mechanism.release(x, y, bounds=UNIT, key=jax.random.key(0))
    assert found.value == pytest.approx(micr(x, y, bounds=UNIT, B=20, c=2), abs=1e-4)


@pytest.mark.parametrize(("B", "grids"), [(6, 4), (150, 148)])
def test_it_is_charged_for_every_grid_that_has_noise(B, grids):
    """Sizes 2 .. B/2, both orientations: 148 matrices at B = 150."""
    mechanism = PublishedMICrGeom(epsilon=0.5, statistic=MICr(B=B, c=1))
    assert mechanism.event(1000).guarantee == PureDP(0.5 * grids)
    assert mechanism.event(1000, count=3).epsilon == 1.5 * grids
    twice = PublishedMICrGeom(epsilon=0.5, statistic=MICr(B=B, c=1), relation=ReplaceOne(2)).event(
        1000
    )
    assert twice.guarantee == PureDP(1.0 * grids)


def test_a_batch_of_any_size_has_the_same_values(rng):
    X, key = rng.random((80, 4)), jax.random.key(1)
    mechanism = PublishedMICrGeom(epsilon=1.0, statistic=MICr(B=8, c=1))
    pairs, bounds = [(0, 1), (2, 3), (1, 3)], [(0, 1)] * 4
    found = mechanism.release_batch(X, pairs=pairs, bounds=bounds, key=key)
    for pair, value in zip(pairs, found.value, strict=True):
        alone = mechanism.release_batch(X, pairs=[pair], bounds=bounds, key=key)
        assert alone.value == pytest.approx([value], abs=1e-6)
    assert not found.key_is_secret
    assert np.all((found.value >= 0) & (found.value <= 1))
