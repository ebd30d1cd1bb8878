import jax
import numpy as np
import pytest
from scipy import stats

from dpmic_jax import MICe, MICr
from dpmic_jax.data.limits import WithMissing
from dpmic_jax.inference import CustomTest, NullTable, Permutation, require_level
from dpmic_jax.mic.binning import Order
from dpmic_jax.mic.ties import RandomTies, grouped_ties

SMALL = MICe(B=6, c=2)
ONE = np.array([[0, 1]])


@pytest.fixture
def columns(rng):
    return list(rng.random((3, 20)))


TESTS = {
    "NullTable": NullTable(statistic=SMALL, draws=19),
    "Permutation MICe": Permutation(statistic=SMALL, draws=19),
    "Permutation MICr": Permutation(statistic=MICr(B=6, c=2), draws=19),
    "CustomTest": CustomTest(lambda x, y, *, key: stats.spearmanr(x, y).pvalue),
}


@pytest.mark.parametrize("name", TESTS)
def test_every_test_gives_a_p_value_for_each_pair(columns, key, name):
    pairs = np.array([[0, 1], [2, 1]])
    p = TESTS[name].p_values(columns, pairs, [(0.0, 1.0)] * 3, key=key)
    assert p.shape == (2,)
    assert (TESTS[name].smallest_p <= p).all()
    assert (p <= 1).all()
    assert TESTS[name].p_values(columns, pairs, [(0.0, 1.0)] * 3, key=key).tolist() == p.tolist()


BAD = {
    "one row for each pair": {"pairs": np.array([0, 1])},
    "an array of positions": {"pairs": np.empty((0, 2), int)},
    "positions from 0 to 2": {"pairs": np.array([[0, 3]])},
    "two different columns": {"pairs": np.array([[0, 1], [2, 2]])},
    "of one length": {"columns": [np.zeros(20), np.zeros(20), np.zeros(19)]},
    "4 records or more": {"columns": list(np.zeros((3, 3)))},
    "column 1 has NaN": {"columns": [np.zeros(20), np.full(20, np.nan), np.zeros(20)]},
}


@pytest.mark.parametrize("message", BAD)
@pytest.mark.parametrize("name", TESTS)
def test_bad_data_are_refused(columns, key, name, message):
    given = {"columns": columns, "pairs": ONE, **BAD[message]}
    with pytest.raises(ValueError, match=message):
        TESTS[name].p_values(given["columns"], given["pairs"], [(0, 1)] * 3, key=key)


def test_columns_of_strings_are_refused(key):
    with pytest.raises(TypeError, match="numbers in column 1"):
        TESTS["CustomTest"].p_values([np.zeros(9), np.full(9, "a")], ONE, key=key)


def test_null_table_refuses_ties_before_any_work(key, monkeypatch):
    tied = [np.arange(20.0), np.append(np.arange(19.0), 7.0)]
    with monkeypatch.context() as patch:
        patch.setattr("dpmic_jax.inference.null_table.null_law", None)
        with pytest.raises(ValueError, match=r"column 1 has tied values.*Permutation") as refusal:
            TESTS["NullTable"].p_values(tied, ONE, key=key)
    assert "7" not in str(refusal.value)
    broken = NullTable(statistic=MICe(B=6, c=2, ties=RandomTies(key)), draws=19)
    assert broken.p_values(tied, ONE, key=key) == 1 / 20


def test_only_columns_that_are_tested_have_to_be_untied(columns, key):
    p = TESTS["NullTable"].p_values([*columns, np.zeros(20)], ONE, key=key)
    assert p == TESTS["NullTable"].p_values(columns, ONE, key=key)


def by_position(values, column):
    """Ties in the order of the records: two constant columns are a perfect line."""
    return Order(np.argsort(values, kind="stable"), np.arange(1, len(values) + 1))


def test_settings_are_checked_when_made():
    with pytest.raises(TypeError, match="use Permutation"):
        NullTable(statistic=MICr(B=6))
    with pytest.raises(ValueError, match="use Permutation"):
        NullTable(statistic=MICe(ties=by_position))
    with pytest.raises(TypeError, match="MICe"):
        Permutation(statistic="mic")
    for test in (NullTable, Permutation):
        with pytest.raises(TypeError, match="measure"):
            test(statistic=MICe(), measure="mic")
        with pytest.raises(ValueError, match="1 <= draws"):
            test(statistic=MICe(), draws=0)
        with pytest.raises(TypeError, match="integer"):
            test(statistic=MICe(), draws=True)
    with pytest.raises(TypeError, match=r"\(x, y, \*, key\) -> p"):
        CustomTest(0.05)
    assert NullTable().statistic.ties is grouped_ties


def test_micr_needs_bounds(columns, key):
    with pytest.raises(ValueError, match="public bounds"):
        TESTS["Permutation MICr"].p_values(columns, ONE, [], key=key)


def test_missing_values_can_show_dependence(columns, key):
    columns[1] = np.where(columns[0] < 0.5, -np.inf, columns[1])
    p = TESTS["Permutation MICr"].p_values(
        columns[:2], ONE, [(0.0, 1.0), WithMissing(0.0, 1.0)], key=key
    )
    assert p == 1 / 20
    assert TESTS["Permutation MICe"].p_values(columns, ONE, [], key=key) == 1 / 20


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), None, "0.5"])
def test_a_custom_test_must_give_a_p_value(columns, key, p):
    with pytest.raises(ValueError, match="from 0 to 1"):
        CustomTest(lambda x, y, *, key: p).p_values(columns, ONE, key=key)


def test_a_custom_test_gets_another_key_for_each_pair(columns, key):
    p = CustomTest(lambda x, y, *, key: jax.random.uniform(key)).p_values(
        columns, np.array([[0, 1], [0, 1], [1, 2]]), key=key
    )
    assert len(set(p.tolist())) == 3


def test_a_level_out_of_reach_says_how_many_draws_reach_it():
    require_level(NullTable(draws=999), 0.001)
    require_level(TESTS["CustomTest"], 1e-12)
    with pytest.raises(ValueError, match="draws=1999 or more"):
        require_level(NullTable(draws=999), 0.0005)
    with pytest.raises(ValueError, match="0 < level < 1"):
        require_level(NullTable(draws=999), 1.5)
