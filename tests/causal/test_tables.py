"""Counts of many queries."""

import itertools

import numpy as np
import pytest

from dpmic_jax.causal import tables as counting
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.tables import tables


def coded(rng, n, categories):
    return Coded(np.stack([rng.integers(0, k, n) for k in categories]), tuple(categories))


def all_queries(columns, order):
    for x, y in itertools.combinations(range(columns), 2):
        rest = [c for c in range(columns) if c not in (x, y)]
        yield from (Query(x, y, given) for given in itertools.combinations(rest, order))


def counted(data, query):
    shape = [data.categories[c] for c in (*query.given, query.x, query.y)]
    found = np.zeros(shape, int)
    for record in data.codes.T:
        found[tuple(record[[*query.given, query.x, query.y]])] += 1
    return found.reshape(-1, *shape[-2:])


@pytest.mark.parametrize("way", ["_by_products", "_one_by_one"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_counts_every_record_in_its_cell(rng, monkeypatch, way, order):
    monkeypatch.setattr(counting, "_FEWEST_PAIRS", 0 if way == "_by_products" else 2**30)
    monkeypatch.setattr(counting, "_PRODUCT_SPEEDUP", 2**20)
    monkeypatch.setattr(counting, "_CELLS_HELD", 2**10)  # several parts
    other = {"_by_products", "_one_by_one"} - {way}
    monkeypatch.delattr(counting, other.pop())
    data = coded(rng, 300, [2, 3, 1, 4, 2])
    queries = list(all_queries(5, order))
    seen = np.zeros(len(queries), int)
    for place, counts in tables(data, queries):
        seen[place] += 1
        for at, found in zip(place, counts, strict=True):
            np.testing.assert_array_equal(found, counted(data, queries[at]))
    assert (seen == 1).all()


def test_products_are_exact_in_blocks_of_more_records_than_float32_has_bits_for(rng):
    """One block of 10^5 records and an almost empty one."""
    n = 100_000
    codes = np.zeros((18, n), np.uint8)
    codes[0, 0] = codes[1, 1] = 1
    (found,) = [
        counts
        for _, counts in tables(Coded(codes, (2,) * 18), [Query(1, y, (0,)) for y in range(2, 18)])
    ]
    assert found[:, 0, 0, 0].tolist() == [n - 2] * 16
    assert found[:, 0, 1, 0].tolist() == found[:, 1, 0, 0].tolist() == [1] * 16


def test_a_table_of_other_length_is_counted_by_the_same_programs(rng, monkeypatch):
    """Up to the next rung, beyond which there is another one."""
    monkeypatch.setattr(counting, "_FEWEST_PAIRS", 0)
    monkeypatch.setattr(counting, "_PRODUCT_SPEEDUP", 2**20)
    made = []
    monkeypatch.setattr(counting, "compiled", lambda *given: made.append(_shapes(given)) or _sum)
    for n in (1900, 1600, 2100):
        list(tables(coded(rng, n, [2, 3, 4, 2]), list(all_queries(4, 0))))
    assert made[0] == made[1] != made[2]


def _shapes(given):
    program, mesh, *arguments = given
    return program, mesh, [(np.shape(one), one.dtype) for one in arguments]


def _sum(indicators, rows, owner, number):
    """Stands for a compiled program; what it counts is not looked at."""
    return np.zeros((1, indicators.shape[1], indicators.shape[1]), np.int32)


def test_refuses_a_table_that_is_too_large():
    data = Coded(np.zeros((5, 3), int), (40,) * 5)
    with pytest.raises(ValueError, match="at most 1048576 are counted: join categories"):
        list(tables(data, [Query(0, 1, (2, 3))]))


@pytest.mark.parametrize(
    "query", [Query(0, 0), Query(0, 1, (1,)), Query(0, 1, (3, 2)), Query(0, 1, (2, 2))]
)
def test_refuses_queries_that_name_a_column_twice(query):
    with pytest.raises(ValueError, match="to be different"):
        list(tables(Coded(np.zeros((4, 3), int), (2,) * 4), [query]))


def test_refuses_unknown_columns():
    with pytest.raises(ValueError, match=r"expected columns 0 \.\. 1"):
        list(tables(Coded(np.zeros((2, 3), int), (2, 2)), [Query(0, 2)]))


def test_refuses_a_wrong_number_of_categories():
    with pytest.raises(ValueError, match="a number for each of 1 columns, got 2"):
        Coded(np.zeros((1, 3), int), (2, 2))


def test_a_subsample_has_the_same_columns(rng):
    data = coded(rng, 20, [2, 3])
    part = data.take(np.array([3, 5, 8]))
    assert part.n == 3
    np.testing.assert_array_equal(part.codes, data.codes[:, [3, 5, 8]])
