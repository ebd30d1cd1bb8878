"""Tests of any sensitivity on parts of the data."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dpmic_jax.causal.contingency import GTest
from dpmic_jax.causal.median import SmoothMedian
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.subsampled import SubsampledTest
from dpmic_jax.dp.accounting.events import ApproximateDP

QUERIES = [Query(0, 1), Query(0, 2), Query(0, 1, (2,))]


@pytest.fixture(scope="module")
def settings():
    return SubsampledTest(
        test=GTest,
        median=SmoothMedian(epsilon=2.0, delta=1e-4, top=4096),
        parts=151,
        low=0.0,
        high=4.0,
    )


@pytest.fixture
def data(rng):
    x, z = rng.integers(0, 2, (2, 8000))
    return Coded(np.stack([x, x ^ (rng.random(8000) < 0.1), z]), (2, 2, 2))


def test_one_record_moves_the_score_of_one_part_only(settings, data, rng):
    parts = np.array_split(rng.permutation(data.n), settings.parts)
    codes = data.codes.copy()
    codes[:, 77] = 1 - codes[:, 77]
    before, after = (
        settings.steps(of, QUERIES, parts) for of in (data, Coded(codes, data.categories))
    )
    moved = np.flatnonzero((before != after).any(axis=1))
    assert [77 in part for part in parts].index(True) == moved.item()


def test_dependent_and_independent_columns_are_distinguished(settings, data, key):
    values, event, secret, receipt = settings.release(data, QUERIES, key=key)
    assert values[0] > 3
    assert values[1] < 2
    assert values[2] > 3
    assert not secret
    assert receipt is None
    assert event.count == 3
    assert event.guarantee == ApproximateDP(2.0, 1e-4)
    assert (event.epsilon, event.sensitivity) == (6.0, 4)


def test_noise_depends_on_the_query_the_key_and_the_event_only(settings, data, key):
    first = settings.release(data, QUERIES, key=key).values
    np.testing.assert_array_equal(settings.release(data, QUERIES, key=key).values, first)
    (alone,) = settings.release(data, QUERIES[1:2], key=key).values
    assert alone == first[1]
    others = [
        settings.release(data, QUERIES, key=jax.random.key(8)),
        settings.release(data, QUERIES, key=key, label="again"),
        replace(settings, high=4.5).release(data, QUERIES, key=key),
    ]
    for other in others:
        assert other.values[1] != first[1]


def test_refuses_more_parts_than_records_and_repeated_queries(settings, data, key):
    with pytest.raises(ValueError, match="at least 151 records"):
        settings.release(data.take(np.arange(150)), QUERIES, key=key)
    with pytest.raises(ValueError, match="every query once"):
        settings.release(data, [QUERIES[0], QUERIES[0]], key=key)
    with pytest.raises(ValueError, match="low < high"):
        replace(settings, low=5.0)
