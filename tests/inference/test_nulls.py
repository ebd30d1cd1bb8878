import functools

import jax
import numpy as np
import pytest
from p_value_checks import all_orders, mic, not_uniform, tic, too_small
from scipy import stats

from dpmic_jax import MICe, MICr, pairwise
from dpmic_jax.inference import NullLaw, NullTable, null_law, shuffling
from dpmic_jax.mic.characteristic import mcn
from dpmic_jax.mic.characteristic import mic as read_mic
from dpmic_jax.mic.characteristic import tic as read_tic
from dpmic_jax.mic.grids import power
from dpmic_jax.mic.ties import RandomTies
from dpmic_jax.mic.xlogx import exact_gains

SMALL = MICe(B=6, c=2)
ORACLES = {"mic": (read_mic, mic), "tic": (read_tic, tic)}


@pytest.fixture
def every_order(monkeypatch):
    """Draw d is order d - 1 of all, in place of a random one."""

    def patched(key, draws, n, mesh):
        return np.where(draws[:, None] > 0, all_orders(n)[draws - 1], np.arange(n)).astype(np.int32)

    monkeypatch.setattr(shuffling, "shuffles", patched)


@functools.cache
def brute_force(n, name):
    return np.array([ORACLES[name][1](np.arange(n), order, SMALL) for order in all_orders(n)])


SIZES = [5, 6, pytest.param(7, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("n", SIZES)
def test_all_permutations_agree_with_brute_force(every_order, n, name):
    orders, expected = all_orders(n), brute_force(n, name)
    # A key that no other test has, since tables are kept.
    null = null_law(
        SMALL, n, measure=ORACLES[name][0], draws=len(orders), key=jax.random.key(2**20 + n)
    )
    np.testing.assert_allclose(null.values, np.sort(expected), atol=1e-6)
    # p of every possible table of ranks, on columns of another distribution than 1..n.
    x = np.exp(np.arange(n) / 1.0)
    test = NullTable(statistic=SMALL, measure=ORACLES[name][0], draws=len(orders))
    columns = [x, *(np.sqrt(order) for order in orders.astype(float))]
    pairs = np.array([[0, i] for i in range(1, len(columns))])
    p = test.p_values(columns, pairs, key=jax.random.key(2**20 + n))
    as_large = (expected[None] >= expected[:, None] - 1e-6).sum(axis=1)
    np.testing.assert_allclose(p, (1 + as_large) / (len(orders) + 1), rtol=1e-12)
    # Valid at every level, and as tight as n! + 1 allows; without ties counted, it is not.
    for level in np.unique(p):
        assert level - 1 / len(orders) < (p <= level).mean() <= level
    wrong = (expected[None] > expected[:, None] + 1e-6).sum(axis=1) / len(orders)
    assert any((wrong <= level).mean() > level + 1e-9 for level in np.unique(wrong))


def test_few_draws_keep_the_level_exactly(key):
    """1 observed and 9 drawn: P(p <= k/10) = k/10, but for ties."""
    cut = MICe(B=8, c=3).cut([np.arange(60)])
    found = shuffling.measured(cut, np.array([[0, 0]]), read_tic, range(1, 10_001), key=key)
    values = np.concatenate(list(found)).reshape(-1, 10)
    p = np.array(
        [
            NullLaw(n=60, grids=cut.grids, measure="", values=np.sort(row[1:])).p_values(row[:1])[0]
            for row in values
        ]
    )
    counts = np.bincount(np.rint(10 * p).astype(int), minlength=11)[1:]
    assert stats.chisquare(counts).pvalue > 1e-3
    without_one = (10 * p - 1) / 9
    assert not too_small(p)
    assert too_small(without_one)


@pytest.mark.parametrize("measure", [read_mic, read_tic])
def test_p_values_are_uniform_for_independent_columns_of_any_distribution(rng, key, measure):
    n, tests, draws = 60, 500, 4999
    columns = [*rng.normal(size=(tests, n)), *rng.pareto(1.5, (tests, n))]
    pairs = np.array([[i, tests + i] for i in range(tests)])
    p = NullTable(statistic=MICe(B=8, c=3), measure=measure, draws=draws).p_values(
        columns, pairs, key=key
    )
    assert not too_small(p, sharing=tests / draws)
    assert not not_uniform(p, sharing=tests / draws)
    assert too_small(p**1.25)  # what the test above can see


def test_p_values_are_uniform_for_ties_broken_at_random(rng, key):
    n, tests, draws = 60, 500, 4999
    columns = [*rng.integers(0, 3, (tests, n)), *rng.integers(0, 2, (tests, n))]
    pairs = np.array([[i, tests + i] for i in range(tests)])
    test = NullTable(
        statistic=MICe(B=8, c=3, ties=RandomTies(jax.random.key(5))), measure=read_tic, draws=draws
    )
    p = test.p_values(columns, pairs, key=key)
    assert not too_small(p, sharing=tests / draws)
    assert not not_uniform(p, sharing=tests / draws)


def test_null_distribution_is_that_of_mice_on_random_columns(rng, key):
    """Against `pairwise`, whose values other tests compare with brute force."""
    null = null_law(MICe(), 30, draws=2000, key=key)
    pairs = pairwise(
        rng.random((30, 40)), statistic=MICe(), Y=rng.random((30, 40)), gains=exact_gains
    )
    assert stats.ks_2samp(null.values, pairs.matrix.ravel()).pvalue > 1e-3


def test_monotone_transformations_change_no_p_value(rng, key):
    x, y = rng.random((2, 40))
    test, pairs = NullTable(statistic=SMALL, draws=199), np.array([[0, 1]])
    p = test.p_values([x, y], pairs, key=key)
    assert test.p_values([np.exp(9 * x), np.log(y)], pairs, key=key) == p


def test_the_cache_distinguishes_the_settings_that_matter(key):
    null = null_law(SMALL, 20, draws=50, key=key)
    assert null_law(MICe(B=6, c=2, ties=RandomTies(key)), 20, draws=50, key=key) is null
    for other in (
        null_law(MICe(B=7, c=3), 20, draws=50, key=key),
        null_law(SMALL, 21, draws=50, key=key),
        null_law(SMALL, 20, draws=50, key=key, measure=read_tic),
        null_law(SMALL, 20, draws=50, key=jax.random.key(8)),
    ):
        assert not np.array_equal(other.values, null.values)
    longer = null_law(SMALL, 20, draws=60, key=key)
    assert set(null.values) <= set(longer.values)


def test_a_saved_table_loads_only_for_its_settings(tmp_path, key):
    path = tmp_path / "law"
    null = null_law(SMALL, 20, draws=50, key=key)
    null.save(path)
    back = NullLaw.load(path, statistic=SMALL, n=20)
    np.testing.assert_array_equal(back.values, null.values)
    assert (back.n, back.grids, back.measure) == (null.n, null.grids, null.measure)
    with pytest.raises(ValueError, match="n=20, not n=21"):
        NullLaw.load(path, statistic=SMALL, n=21)
    with pytest.raises(ValueError, match=r"mic, not measure=.*tic"):
        NullLaw.load(path, statistic=SMALL, n=20, measure=read_tic)
    with pytest.raises(ValueError, match="other values of B, c"):
        NullLaw.load(path, statistic=MICe(B=6, c=3), n=20)
    np.savez(tmp_path / "other.npz", n=20)
    with pytest.raises(ValueError, match="was not written by NullLaw"):
        NullLaw.load(tmp_path / "other.npz", statistic=SMALL, n=20)


def test_a_measure_without_a_name_is_not_saved(tmp_path, key):
    for measure in (lambda matrix: read_mic(matrix), functools.partial(mcn, eps=0.1)):
        null = null_law(SMALL, 20, measure=measure, draws=5, key=key)
        with pytest.raises(ValueError, match="define it with def"):
            null.save(tmp_path / "law")


def test_an_observed_zero_ties_with_drawn_zeros():
    """A value of exactly 0 has no slack, and still ties with its equals."""
    grids = SMALL.grids(20)
    null = NullLaw(n=20, grids=grids, measure="", values=np.array([0.0, 0.0, 0.1]))
    assert null.p_values(np.array([0.0, 0.1, 0.2])).tolist() == [1, 0.5, 0.25]


def test_nan_is_no_evidence(key):
    null = null_law(SMALL, 20, draws=50, key=key)
    assert null.p_values(np.array([np.nan])) == 1
    broken = NullLaw(
        n=20, grids=null.grids, measure="", values=np.sort([0.1, np.nan, np.nan, np.nan])
    )
    assert broken.p_values(np.array([0.5])) == 4 / 5


def test_invalid_settings_are_refused(key):
    with pytest.raises(TypeError, match="use Permutation"):
        null_law(MICr(B=6), 20, key=key)
    with pytest.raises(ValueError, match="at least 2 records"):
        null_law(MICe(B=power(0.6)), 1, key=key)
    with pytest.raises(ValueError, match="1 <= draws"):
        null_law(SMALL, 20, draws=0, key=key)
    with pytest.raises(TypeError, match="integer"):
        null_law(SMALL, 20, draws=1e4, key=key)
    with pytest.raises(TypeError, match="typed key"):
        null_law(SMALL, 20, key=jax.random.PRNGKey(0))
    with pytest.raises(ValueError, match="rbg"):
        null_law(SMALL, 20, key=jax.random.key(0, impl="rbg"))
