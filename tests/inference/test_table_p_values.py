"""Tests by random tables: their distribution, and that p-values are valid."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmic_jax import TableTest
from dpmic_jax.inference import tables
from dpmic_jax.inference.tables import random_tables, sequential_p_values

FEW = TableTest(draws=199, stop=10)


def test_random_tables_are_those_of_all_orders_of_the_records(rng):
    """3 + 2 + 1 records by 4 + 2: every order of y, counted."""
    x, y = np.repeat([0, 1, 2], [3, 2, 1]), np.repeat([0, 1], [4, 2])
    exact = {}
    for order in itertools.permutations(range(6)):
        key = tuple(np.bincount(2 * x + y[list(order)], minlength=6))
        exact[key] = exact.get(key, 0) + 1 / math.factorial(6)
    drawn = random_tables((3, 2, 1), (4, 2), 20_000, rng).reshape(-1, 6)
    found = dict.fromkeys(exact, 0)
    for key in map(tuple, drawn.tolist()):
        found[key] += 1
    assert (
        stats.chisquare(list(found.values()), 20_000 * np.array(list(exact.values()))).pvalue > 1e-4
    )
    wrong = {key: share * (1.5 if key[0] == 3 else 1) for key, share in exact.items()}
    scale = sum(wrong.values())
    expected = [20_000 * share / scale for share in wrong.values()]
    assert stats.chisquare(list(found.values()), expected).pvalue < 1e-4


def statistic(x, y, x_levels, y_levels):
    """T from the definition, up to what the margins say: sums of n I / sqrt(d)."""
    total = 0.0
    for rows, columns in itertools.product(x_levels, y_levels):
        table = np.zeros((max(rows) + 1, max(columns) + 1))
        np.add.at(table, (np.array(rows)[x], np.array(columns)[y]), 1)
        p = table / table.sum()
        outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
        seen = p > 0
        bits = (p[seen] * np.log2(p[seen] / outer[seen])).sum()
        total += len(x) * bits / math.sqrt(max(rows) * max(columns))
    return total


def test_the_statistic_is_the_sum_over_merged_grids(rng):
    """16 records are cut in 2 and 4 parts; differences between tables are those of T."""
    x = np.arange(16)
    levels = [np.repeat([0, 1], 2), np.arange(4)]
    codes, axis = tables._coded(x.astype(float), 0)
    assert codes.tolist() == (x // 4).tolist()
    group = np.repeat([0, 1, 2], [8, 5, 3])
    groups = tables._coded(group, 3)[1]
    expected, found = [], []
    for _ in range(5):
        y = rng.permutation(group)
        expected.append(statistic(codes, y, levels, [np.arange(3)]))
        counts = tables._table(codes, y, (4, 3))
        found.append(tables._Statistic(axis, groups)(counts[None])[0] / 2**24)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize(("draws", "stop"), [(9, 2), (12, 3), (5, 9), (7, 1)])
def test_sequential_p_values_are_valid_for_every_level_by_rationals(draws, stop):
    """Untied T_0 is as large as a share u of the draws, u uniform: the integral of the laws.

    A polynomial of degree `draws` in u is integrated exactly by Beta functions.
    """
    mass = {}
    for drawn in range(1, draws + 1):  # the stop-th as large draw is the drawn-th one
        if drawn >= stop:
            ways = math.comb(drawn - 1, stop - 1)
            beta = Fraction(
                math.factorial(stop) * math.factorial(drawn - stop), math.factorial(drawn + 1)
            )
            mass[Fraction(stop, drawn)] = ways * beta
    for count in range(min(stop, draws + 1)):
        ways = math.comb(draws, count)
        beta = Fraction(
            math.factorial(count) * math.factorial(draws - count), math.factorial(draws + 1)
        )
        value = Fraction(1 + count, draws + 1)
        mass[value] = mass.get(value, 0) + ways * beta
    assert sum(mass.values()) == 1
    for level in mass:
        assert sum(p for value, p in mass.items() if value <= level) <= level
    # A control: dividing by one draw more is not valid.
    wrong = {value / (1 + Fraction(1, 2 * draws)): p for value, p in mass.items()}
    assert any(sum(p for v, p in wrong.items() if v <= level) > level for level in wrong)


def test_sequential_p_values_are_those_of_their_definition(rng):
    draws, stop = 60, 7
    observed = np.array([0, 40, 55, 58, 60, 100])
    drawn = rng.integers(0, 60, draws)
    found = sequential_p_values(observed, iter(np.split(drawn, [8, 9, 30])), draws, stop)
    for value, p in zip(observed, found, strict=True):
        places = np.flatnonzero(drawn >= value)
        if len(places) >= stop:
            assert p == stop / (places[stop - 1] + 1)
        else:
            assert p == (1 + len(places)) / (draws + 1)


def test_draws_end_where_no_pair_needs_more():
    def draws():
        yield np.ones(10, np.int64)
        raise AssertionError("more draws than needed")

    found = sequential_p_values(np.array([0, 1]), draws(), 1000, 5)
    np.testing.assert_array_equal(found, 1)


def independent(rng, n):
    """Columns of every kind: untied, tied, flags, rare flags, few and many categories."""
    columns = [
        rng.normal(size=n),
        rng.normal(size=n),
        rng.integers(0, 6, n),
        rng.poisson(0.4, n),
        rng.random(n) < 0.5,
        rng.random(n) < 0.05,
        np.unique(rng.integers(0, 3, n), return_inverse=True)[1],
        np.unique(rng.integers(0, 20, n), return_inverse=True)[1],
    ]
    bins = np.array([0, 0, 0, 0, 0, 0, *(each.max() + 1 for each in columns[6:])])
    return [
        np.asarray(each, np.float64 if each.dtype == bool else each.dtype) for each in columns
    ], bins


EIGHT = np.array(list(itertools.combinations(range(8), 2)))
# A rare flag has few tables, so that its p-values are large.
NOT_RARE = (EIGHT != 5).all(axis=1)


def false_alarms(reps, n, seed, test=FEW):
    """P-values of all pairs of independent columns, of `reps` tables."""
    rng = np.random.default_rng(seed)
    found = []
    for rep in range(reps):
        columns, bins = independent(rng, n)
        found.append(test.p_values(columns, bins, EIGHT, rng=rep))
    return np.array(found)


def too_many(found, level):
    """Whether more p-values than a share `level` are at most this, beyond 4.5 standard errors.

    Those of one table depend on each other; tables are independent.
    """
    shares = (found[:, NOT_RARE] <= level).mean(axis=1)
    return shares.mean() > level + 4.5 * shares.std() / np.sqrt(len(shares))


def check_levels(found):
    for level in (0.01, 0.05, 0.1):
        assert not too_many(found, level)
        for pair in found.T:  # each kind of pair by itself
            assert (pair <= level).sum() <= stats.binom.isf(1e-6, len(found), level)


def test_p_values_are_valid_for_columns_of_every_kind():
    found = false_alarms(200, 40, seed=0)
    check_levels(found)
    assert too_many(found / 1.5, 0.1)  # two thirds of a p-value are not valid
    assert (found <= 0.1).mean() > 0.05  # and they are not hopelessly large


@pytest.mark.slow
def test_p_values_are_valid_over_10_000_tables():
    found = false_alarms(10_000, 40, seed=1)
    check_levels(found)
    for level in (0.01, 0.05, 0.1):
        assert too_many(found / 1.5, level)


@pytest.mark.slow
def test_p_values_of_untied_columns_are_uniform_without_early_stopping():
    rng, test = np.random.default_rng(3), TableTest(draws=99, stop=100)
    found = [
        test.p_values(list(rng.random((2, 300))), np.zeros(2, int), np.array([[0, 1]]), rng=rng)[0]
        for _ in range(2000)
    ]
    # Multiples of 1/100, each with the same chance: spread over what is below them.
    spread = np.array(found) - rng.random(2000) / 100
    assert stats.kstest(spread, "uniform").pvalue > 1e-4
    assert stats.kstest(spread / 1.1, "uniform").pvalue < 1e-4


@pytest.mark.slow
def test_false_discoveries_are_held_with_dependent_pairs_mixed_in():
    from dpmic_jax.inference import BenjaminiHochberg, FalseDiscovery

    rng, shares = np.random.default_rng(2), []
    pairs = np.array(list(itertools.combinations(range(11), 2)))
    for rep in range(1000):
        columns, bins = independent(rng, 60)
        x = columns[0]
        columns += [x + rng.normal(size=60), x**2 + 0.5 * rng.normal(size=60), np.sign(x)]
        bins = np.append(bins, [0, 0, 0])
        true = np.isin(pairs, [0, 8, 9, 10]).all(axis=1)
        p = TableTest(draws=1999).p_values(columns, bins, pairs, rng=rep)
        for control, level in itertools.product(
            (FalseDiscovery(), BenjaminiHochberg()), (0.05, 0.1)
        ):
            found = control.adjusted(p) <= level
            shares.append((found & ~true).sum() / max(found.sum(), 1) / level)
    shares = np.array(shares).reshape(1000, 4)
    error = shares.std(axis=0) / np.sqrt(1000)
    assert (shares.mean(axis=0) <= 1 + 4 * error).all()


def test_dependent_columns_of_every_kind_are_found(rng):
    x = rng.random(200)
    group = np.digitize(x, [0.3, 0.6])
    columns = [x, np.cos(9 * x), x > 0.5, group, (group + 1) % 3]
    columns = [
        np.asarray(each, np.float64 if each.dtype == bool else each.dtype) for each in columns
    ]
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    found = FEW.p_values(columns, np.array([0, 0, 0, 3, 3]), pairs, rng=0)
    assert (found == 1 / 200).all()


def test_the_same_seed_gives_the_same_values_and_pairs_may_be_turned_round(rng):
    columns, bins = independent(rng, 50)
    found = FEW.p_values(columns, bins, EIGHT, rng=3)
    np.testing.assert_array_equal(found, FEW.p_values(columns, bins, EIGHT, rng=3))
    np.testing.assert_array_equal(found, FEW.p_values(columns, bins, EIGHT[:, ::-1], rng=3))


def test_constant_columns_have_a_p_value_of_1(rng):
    columns = [np.ones(30), rng.random(30)]
    assert FEW.p_values(columns, np.zeros(2, int), np.array([[0, 1]]), rng=0) == 1


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="stop"):
        TableTest(stop=0)
    with pytest.raises(ValueError, match="draws"):
        TableTest(draws=0)
    assert TableTest(draws=99).smallest_p == 0.01
