"""Kendall's tau and Spearman's rho against scipy and against their definitions."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
import ranks_by_hand as hand
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.causal.kendall import Kendall, SignedKendall, concordance
from dpmic_jax.causal.queries import MOST_STEPS, Coded, Query
from dpmic_jax.causal.spearman import SignedSpearman, Spearman, by_distance, rank_products
from dpmic_jax.dp.noise.lattice import Lattice

FORMS = {
    Kendall: (hand.tau, hand.tau_weight, False),
    SignedKendall: (hand.tau, hand.tau_weight, True),
    Spearman: (hand.rho, hand.rho_weight, False),
    SignedSpearman: (hand.rho, hand.rho_weight, True),
}


def table(x, y):
    counts = np.zeros((max(x) + 1, max(y) + 1), np.int64)
    np.add.at(counts, (np.asarray(x), np.asarray(y)), 1)
    return counts


def by_hand(test, data, query):
    statistic, weight, signed = FORMS[test]
    x, y = data.codes[query.x].tolist(), data.codes[query.y].tolist()
    z = [tuple(record) for record in data.codes[list(query.given)].T.tolist()]
    return hand.conditional(x, y, z, statistic, weight, signed)


@pytest.fixture
def data(rng):
    """Dependent columns of few categories, one of them constant, one of rare blocks."""
    n, base = 60, rng.integers(0, 4, 60)
    codes = [
        base,
        (base + (rng.random(n) < 0.3)) % 4,
        rng.integers(0, 2, n),
        np.zeros(n, int),
        rng.integers(0, 30, n),
    ]
    return Coded(np.stack(codes), (4, 4, 2, 3, 30))


QUERIES = [
    Query(0, 1),
    Query(1, 0),
    Query(0, 2),
    Query(0, 3),
    Query(0, 1, (2,)),
    Query(0, 1, (3,)),
    Query(0, 1, (4,)),
    Query(0, 1, (2, 4)),
    Query(0, 4, (1, 2)),
    Query(1, 3, (2,)),
]


@pytest.mark.parametrize("n", [2, 3, 50, 400])
def test_equals_scipy_on_untied_data(rng, n):
    x, y = rng.permutation(n), rng.permutation(n)
    counts = table(x, y)
    tau = concordance(counts) / (n * (n - 1) / 2)
    rho = 3 * rank_products(counts) / (n**3 - n)
    assert tau == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-6)
    assert rho == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-6)
    assert by_distance(counts) == pytest.approx(abs(rho), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=25))
def test_equals_the_definitions_with_ties(records):
    x, y = zip(*records, strict=True)
    n, counts = len(x), table(x, y)
    assert concordance(counts) == hand.pairs(x, y)
    assert Fraction(3 * int(rank_products(counts)), n**3 - n) == hand.rho(x, y)
    assert by_distance(counts) == pytest.approx(float(hand.by_distance(x, y)), abs=1e-12)


def test_definition_7_differs_from_the_covariance_of_ranks_by_half_the_ties(rng):
    x, y = rng.integers(0, 3, 40).tolist(), rng.integers(0, 2, 40).tolist()
    n = len(x)
    ties = [
        Fraction(sum(c**3 - c for c in map(column.count, set(column))), n**3 - n)
        for column in (x, y)
    ]
    assert hand.by_distance(x, y) == abs(hand.rho(x, y) + sum(ties) / 2)


@pytest.mark.parametrize("test", FORMS)
def test_conditional_forms_equal_the_definition(data, test):
    expected = [by_hand(test, data, query) for query in QUERIES]
    scores = [float(top) / float(whole) ** 0.5 if whole else 0.0 for top, whole in expected]
    np.testing.assert_allclose(test(data).scores(QUERIES), scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bits", [4, 20, 30])
@pytest.mark.parametrize("test", FORMS)
def test_points_are_scores_rounded_down_exactly(data, test, bits):
    def floor(top, whole):
        return isqrt(int(top**2 * 4**bits / whole)) if whole else 0

    expected = [min(floor(*by_hand(test, data, query)), MOST_STEPS) for query in QUERIES]
    found = test(data).points(QUERIES, Lattice(bits=bits, sensitivity=1))
    assert found.tolist() == expected


@pytest.mark.parametrize("test", [Kendall, Spearman])
def test_a_score_on_a_lattice_point_stays_there(test):
    """One block of n records in order has the score sqrt(w), a whole number for these n."""
    n = {Kendall: 2, Spearman: 10}[test]  # w = 1 and 9
    data = Coded(np.stack([np.arange(n)] * 2), (n, n))
    root = {Kendall: 1, Spearman: 3}[test]
    (point,) = test(data).points([Query(0, 1)], Lattice(bits=20, sensitivity=1))
    assert point == root * 2**20
    assert test(data).scores([Query(0, 1)]) == pytest.approx(root)


@pytest.mark.parametrize("test", FORMS)
def test_many_queries_at_once_equal_single_queries(rng, test):
    """The product way of counting, which few queries do not take."""
    codes = rng.integers(0, 2, (9, 500))
    codes[1] = codes[0] ^ (rng.random(500) < 0.2)
    data = Coded(codes, (2,) * 9)
    queries = [Query(x, y, (8,)) for x in range(8) for y in range(x + 1, 8)]
    alone = [float(test(data).scores([query])[0]) for query in queries]
    np.testing.assert_array_equal(test(data).scores(queries), alone)


@pytest.mark.parametrize("test", FORMS)
def test_constant_columns_and_blocks_of_one_record_score_nothing(test):
    codes = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [0, 0, 0, 0], [0, 1, 2, 3]])
    data = Coded(codes, (4, 4, 2, 4))
    queries = [Query(0, 2), Query(0, 2, (3,)), Query(0, 1, (3,))]
    assert test(data).scores(queries).tolist() == [0, 0, 0]
    assert test(data).points(queries, Lattice(bits=20, sensitivity=1)).tolist() == [0, 0, 0]


def test_signs_cancel_in_the_signed_forms_only():
    codes = np.array([[0, 1, 2, 0, 1, 2], [0, 1, 2, 2, 1, 0], [0, 0, 0, 1, 1, 1]])
    data, query = Coded(codes, (3, 3, 2)), [Query(0, 1, (2,))]
    assert SignedKendall(data).scores(query) == SignedSpearman(data).scores(query) == 0
    assert Kendall(data).scores(query) == pytest.approx(np.sqrt(2 * 27 / 11))
    assert Spearman(data).scores(query) == pytest.approx(2)


def test_pairs_of_many_records_do_not_overflow():
    """10^5 records have 5 10^9 pairs; 3 10^6 have ranks whose products pass int64."""
    half = 1_500_000
    counts = np.array([[half, 0], [0, half]])
    assert concordance(counts) == half**2
    assert rank_products(counts) == 2 * half**3


def test_signed_scores_of_independent_columns_are_nearly_standard_normal(rng):
    """The weights are inverse variances: untied blocks of two sizes."""
    sets, sizes = 400, (12, 30)
    found = {SignedKendall: [], SignedSpearman: []}
    for _ in range(sets):
        blocks = np.repeat([0, 1], sizes)
        n = len(blocks)
        data = Coded(np.stack([np.arange(n), rng.permutation(n), blocks]), (n, n, 2))
        for test, scores in found.items():
            scores.append(test(data).scores([Query(0, 1, (2,))])[0])
    for scores in found.values():
        # The mean square is 1, with a standard error of sqrt(2 / sets) = 0.07.
        assert np.mean(np.square(scores)) == pytest.approx(1, abs=0.28)
