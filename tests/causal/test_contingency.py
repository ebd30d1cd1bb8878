"""G-test and chi-square against scipy and causal-learn; MICr as a marginal test."""

import itertools

import numpy as np
import pytest
import scipy.stats

from dpmic_jax import MICr, micr
from dpmic_jax.causal.contingency import LARGEST_SCORE, ChiSquare, GTest
from dpmic_jax.causal.marginal import MarginalMICr
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.mechanisms import sensitivity as mic_sensitivity

SCIPY = {GTest: "log-likelihood", ChiSquare: "pearson"}


@pytest.fixture
def data(rng):
    base = rng.integers(0, 3, 300)
    codes = [base, (base + rng.integers(0, 2, 300)) % 4, rng.integers(0, 2, 300), base * 0]
    return Coded(np.stack(codes), (3, 4, 2, 5))


@pytest.mark.parametrize("test", SCIPY)
def test_equals_scipy_block_by_block(data, test):
    queries = [Query(0, 1), Query(0, 2), Query(1, 2, (0,)), Query(0, 1, (2,)), Query(0, 1, (2, 3))]
    value, degrees = test(data).statistics(queries)
    for at, (x, y, given) in enumerate(queries):
        blocks = [tuple(record) for record in data.codes[list(given)].T.tolist()]
        statistic, free = 0.0, 0
        for block in set(blocks):
            inside = np.array([b == block for b in blocks])
            counts = scipy.stats.contingency.crosstab(data.codes[x][inside], data.codes[y][inside])
            if min(counts.count.shape) < 2:
                continue  # a constant column: nothing to test
            found = scipy.stats.chi2_contingency(
                counts.count, correction=False, lambda_=SCIPY[test]
            )
            statistic, free = statistic + found.statistic, free + found.dof
        assert value[at] == pytest.approx(statistic, rel=1e-10)
        assert degrees[at] == free
        expected = scipy.stats.chi2.sf(statistic, free)
        assert test(data).p_values(queries)[at] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("test", "name"), [(GTest, "gsq"), (ChiSquare, "chisq")])
def test_equals_causal_learn(rng, test, name):
    cit = pytest.importorskip("causallearn.utils.cit")
    codes = rng.integers(0, 3, (5, 150))
    other = cit.CIT(codes.T, name)
    for x, y in itertools.combinations(range(5), 2):
        for given in [(), tuple({0, 1, 2, 3, 4} - {x, y})[:2]]:
            (p,) = test(Coded(codes, (3,) * 5)).p_values([Query(x, y, tuple(sorted(given)))])
            assert p == pytest.approx(other(x, y, given), abs=1e-12)


@pytest.mark.parametrize("test", SCIPY)
def test_scores_are_clipped_at_300(test):
    x = np.arange(4000) % 2
    data = Coded(np.stack([x, x, np.roll(x, 1) * 0, (np.arange(4000) // 2) % 2]), (2,) * 4)
    scores = test(data).scores([Query(0, 1), Query(0, 2), Query(0, 3)])
    assert scores.tolist() == [LARGEST_SCORE, 0, 0]
    points = test(data).points([Query(0, 1)], Lattice(bits=10, sensitivity=1))
    assert points.tolist() == [LARGEST_SCORE * 1024]
    assert test(data).sensitivity([Query(0, 1)]) == LARGEST_SCORE


@pytest.mark.parametrize("test", SCIPY)
def test_blocks_of_one_record_and_constant_columns_have_p_1(test):
    data = Coded(np.array([[0, 1, 1], [1, 0, 1], [0, 1, 2], [0, 0, 0]]), (2, 2, 4, 2))
    queries = [Query(0, 1, (2,)), Query(0, 3)]
    assert test(data).p_values(queries).tolist() == [1, 1]
    assert test(data).scores(queries).tolist() == [0, 0]


def test_marginal_micr_equals_the_top_level_micr(data):
    test = MarginalMICr(data, MICr(B=12))
    queries = [Query(0, 1), Query(0, 2), Query(1, 2), Query(0, 3)]
    bounds = [(-0.5, k - 0.5) for k in data.categories]
    expected = [
        micr(data.codes[x], data.codes[y], bounds=[bounds[x], bounds[y]], B=12)
        for x, y, _ in queries
    ]
    np.testing.assert_allclose(test.scores(queries), expected, atol=2e-6)
    assert test.scores(queries)[3] == 0
    for bits in (10, 30):
        points = test.points(queries, Lattice(bits=bits, sensitivity=1))
        assert points.tolist() == np.floor(test.scores(queries) * 2**bits).tolist()
    assert test.sensitivity(queries) == mic_sensitivity.integer_path(MICr(B=12), 300)


def test_micr_refuses_to_condition(data):
    with pytest.raises(ValueError, match="no conditional form"):
        MarginalMICr(data, MICr(B=12)).scores([Query(0, 1, (2,))])
