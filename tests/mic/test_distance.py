"""The distance from independence is that of the definition, and no record moves it further."""

import itertools

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpmic_jax.mic import distance
from dpmic_jax.mic.distance import split_distance, split_distance_numpy, splits, steps, steps_of


def tables(rng, n, count, parts=16):
    """Tables of n records, from independent to dependent, on even and skewed columns."""
    found = np.zeros((count, parts, parts), np.int32)
    for number, table in enumerate(found):
        x = rng.random(n) ** (1 + number % 3)
        y = np.where(rng.random(n) < number / count, x, rng.random(n))
        np.add.at(table, ((parts * x).astype(int), (parts * y).astype(int)), 1)
    return found


@pytest.mark.parametrize("n", [5, 300, 3000])
def test_both_programs_give_the_integers_of_the_definition(rng, n):
    made = tables(rng, n, 6)
    lanes = jnp.asarray(np.moveaxis(made, 0, 2))
    found = np.asarray(split_distance(lanes, distance.Steps(*map(jnp.asarray, steps(n)))))
    for table, value in zip(made, found.tolist(), strict=True):
        assert split_distance_numpy(table) == value
        assert oracles.split_distance(table) * 2 * steps_of(n) * n == value


def test_the_distance_for_one_t_is_that_to_the_nearest_table_whose_sides_are_alike(rng):
    """By linear programming: the least total variation to any table (t s_j, (1 - t) s_j)."""
    for _ in range(20):
        a, b = rng.integers(0, 9, (2, 4))
        n, t = a.sum() + b.sum(), rng.choice([0.5, 0.6, 0.75, 0.9])
        # Variables: s_j, then what is above and below in each of the 8 cells.
        alike = np.concatenate([t * np.eye(4), (1 - t) * np.eye(4)])
        equal = np.block([[alike, np.eye(8), -np.eye(8)], [np.ones(4), np.zeros(16)]])
        cost = np.concatenate([np.zeros(4), np.ones(16) / (2 * n)])
        nearest = linprog(cost, A_eq=equal, b_eq=[*a, *b, n]).fun
        c, near = a + b, a.sum()
        formula = np.abs(a - t * c).sum() + (2 * t - 1) * abs(t * n - near)
        assert nearest == pytest.approx(formula / (2 * t * n), abs=1e-9)


def test_no_record_moves_it_by_more_than_one_over_n(rng):
    """All neighbours of tables on the way from independence to dependence."""
    n, reached = 40, 0
    for table in tables(rng, n, 8):
        value = split_distance_numpy(table)
        for _ in range(60):
            neighbour = table.copy()
            cells = np.flatnonzero(neighbour)
            neighbour.flat[rng.choice(cells)] -= 1
            neighbour.flat[rng.integers(neighbour.size)] += 1
            moved = abs(split_distance_numpy(neighbour) - value)
            assert moved <= 2 * steps_of(n)
            reached = max(reached, moved)
    # Two thirds of it would not do.
    assert reached > 4 / 3 * steps_of(n)


def test_no_record_of_any_small_table_moves_it_further():
    """All tables of 4 records on 2 x 2 of the parts, with every neighbour."""
    values = {}
    for counts in itertools.product(range(5), repeat=4):
        if sum(counts) == 4:
            table = np.zeros((16, 16), np.int64)
            table[np.ix_([0, 9], [3, 12])] = np.reshape(counts, (2, 2))
            values[counts] = max(split_distance_numpy(table), split_distance_numpy(table.T))
    moves = [
        abs(values[one] - values[other])
        for one, other in itertools.product(values, repeat=2)
        if sum(abs(x - y) for x, y in zip(one, other, strict=True)) == 2
    ]
    assert 4 / 3 * steps_of(4) < max(moves) <= 2 * steps_of(4)


@given(st.integers(1, distance.MOST_RECORDS))
def test_all_terms_fit_32_bits(n):
    number = steps_of(n)
    assert 2 * number * n < 2**31
    assert number & (number - 1) == 0
    assert 1 <= number <= 256
    weights = steps(n).weights
    # w_k / 2^8 is at most 2 / u - 1, which the sensitivity needs.
    k = np.arange(1, number + 1)
    assert np.all(weights[:number] * (number + k) <= 256 * (number - k))
    assert 0 <= steps(n).price <= number * n


def test_splits_are_cuts_and_unions_of_eighths_each_once():
    sides = splits()
    assert len(sides) == 15 + 120
    assert len({tuple(side) for side in sides}) == len(sides)
    assert not sides[:, -1].any()
    np.testing.assert_array_equal(sides[: distance.CUTS].sum(axis=1), np.arange(1, 16))
    assert np.all(sides[distance.CUTS :, ::2] == sides[distance.CUTS :, 1::2])


def test_what_decides_a_side_is_furthest():
    table = np.zeros((16, 16), np.int64)
    table[0, 0] = table[15, 15] = 5000
    n = 10_000
    assert split_distance_numpy(table) / (2 * steps_of(n) * n) == pytest.approx(
        2**0.5 - 1, abs=2e-3
    )
