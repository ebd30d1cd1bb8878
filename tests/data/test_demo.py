import itertools

import numpy as np

from dpmic_jax import MICr, pairwise
from dpmic_jax.data.demo import RECORDS, demo
from dpmic_jax.data.table import Table
from dpmic_jax.mic.grids import ladder


def test_the_table_is_always_the_same():
    one, other = demo(), demo()
    assert list(one.columns) == list(other.columns) == list(one.bounds)
    assert len(one.columns) == 12
    for name, values in one.columns.items():
        assert len(values) == RECORDS
        np.testing.assert_array_equal(values, other.columns[name])


def test_dependent_pairs_span_0_3_to_1_and_the_others_are_independent():
    data = demo()
    table = Table(tuple(data.columns), tuple(data.columns.values()))
    statistic = MICr(B=150, sizes=ladder(1.25))
    found = pairwise(table, statistic=statistic, bounds=data.bounds)
    scores = {frozenset((x, y)): mic for x, y, mic in found.ranked()}
    assert data.dependent < set(scores)
    assert all(0.3 < scores[pair] <= 1 for pair in data.dependent)
    assert max(scores[pair] for pair in data.dependent) > 0.95
    assert all(mic < 0.02 for pair, mic in scores.items() if pair not in data.dependent)


def test_few_values_lie_outside_the_public_bounds():
    data = demo()
    for name, values in data.columns.items():
        low, high = data.bounds[name]
        assert np.mean((values < low) | (values > high)) < 0.02


def test_independent_pairs_are_independent_by_construction():
    data = demo()
    names = list(data.columns)
    for x, y in itertools.combinations(names, 2):
        if frozenset((x, y)) not in data.dependent:
            # |correlation of ranks| of 20 000 independent records stays below 5 / sqrt(n).
            ranks = [np.argsort(np.argsort(data.columns[name])) for name in (x, y)]
            assert abs(np.corrcoef(ranks)[0, 1]) < 5 / RECORDS**0.5
