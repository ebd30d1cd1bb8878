"""Tests that may be published, of pairs with nominal columns."""

import numpy as np
import pytest

from dpmic_jax import Categories, Number, Schema, seeded_key
from dpmic_jax.inference import PrivateDecisions, PrivatePValues, independence_test
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.inference.private_p_values import p_values
from dpmic_jax.screening.independence import distance_tail

WARDS = [f"ward {i}" for i in range(6)]
LISTS = {"ward": WARDS, "blood": list("abc"), "state": [f"state {i}" for i in range(30)]}
PAIRS = [("age", "ward"), ("ward", "blood"), ("state", "age")]


def result_of(method, seed=0, n=600):
    rng = np.random.default_rng(1)
    age = rng.uniform(0, 100, n)
    table = {
        "age": age,
        "ward": np.array(WARDS)[np.array([3, 0, 5, 1, 4, 2])[(age * 0.06).astype(int)]],
        "blood": rng.choice(list("abc "), n),
        "state": rng.choice(LISTS["state"], n),
    }
    order = np.random.default_rng(seed).permutation
    rules = {name: Categories(tuple(order(values).tolist())) for name, values in LISTS.items()}
    schema = Schema((("age", Number(0, 100)), *rules.items()))
    return independence_test(
        table, bounds=schema, pairs=PAIRS, epsilon=20.0, key=seeded_key(2), method=method
    )


@pytest.mark.parametrize("method", [PrivateDecisions(draws=119), PrivatePValues()])
def test_what_depends_is_found_and_no_order_of_categories_is_used(method):
    found = result_of(method)
    assert found.found.dependent == (True, False, False)
    assert found.found == result_of(method, seed=3).found


def test_p_values_are_from_the_tail_of_the_pairs_that_are_tested():
    noise = DistanceNoise(epsilon=1e4, n=2000, pairs=1, moved=1)
    x = np.array([0.06, 0.08])
    for bins in (((0, 0),), ((3, 3),), ((0, 64),)):
        p, tail = p_values(x, noise, bins), distance_tail(x, 2000, bins=bins)
        np.testing.assert_allclose(p, tail, rtol=0.2)
    assert np.all(p_values(x, noise, ((3, 3),)) < p_values(x, noise) / 10)
