"""Tests of the pairs that a screen selected, at a level that their selection leaves."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpmic_jax import AllPairs, Categories, MICe, MICr, TopK, screen, seeded_key
from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.max_information import corrected_level
from dpmic_jax.inference import (
    NOT_PRIVATE,
    Bonferroni,
    CustomTest,
    FalseDiscovery,
    NullTable,
    Permutation,
    post_selection,
)

N, EPSILON = 2000, 0.01
BOUNDS = {"a": (0, 1), "b": (0, 1), "c": (0, 1), "d": (0, 1)}
STATISTIC = MICr(B=6, c=1)
MARKER = 0.123456789


@pytest.fixture(scope="module")
def table():
    made = dict(zip("abcd", np.random.default_rng(5).random((4, N)), strict=True))
    made["b"] = (made["a"] + made["b"] / 10) % 1
    return made


@pytest.fixture(scope="module")
def result(table):
    return screened(table, TopK(2))


def screened(table, ask, epsilon=EPSILON):
    return screen(
        table,
        bounds=BOUNDS,
        epsilon=epsilon,
        ask=ask,
        key=seeded_key(1),
        statistic=STATISTIC,
        force=True,
    )


def after(result, table, test, **changes):
    return post_selection(result, table, bounds=BOUNDS, test=test, key=seeded_key(2), **changes)


def distance(x, y, *, key):
    """No p-value: something that tells columns and their order apart."""
    return float(np.mean((x - y) ** 2 * np.linspace(0, 1, len(x))) + x[0] / 1e6)


def giving(*p):
    """A test that gives these p-values, in the order of the pairs."""
    left = iter(p)
    return CustomTest(lambda x, y, *, key: next(left))


def spent(epsilon, label=""):
    return Event(
        mechanism="before",
        guarantee=PureDP(epsilon),
        relation=ReplaceOne(),
        n=N,
        sensitivity=Fraction(1),
        label=label,
    )


def test_each_released_pair_is_tested_on_its_own_columns(result, table):
    found = after(result, table, CustomTest(distance))
    assert found.names == tuple((x, y) for x, y, _ in result.ranked())
    wanted = [distance(table[x], table[y], key=None) for x, y in found.names]
    np.testing.assert_array_equal(found.p_values, wanted)


def test_the_level_is_that_of_the_screens_epsilon(result, table):
    found = after(result, table, giving(0.5, 0.5))
    assert found.correction.level == corrected_level(0.05, PureDP(EPSILON), n=N).level
    assert 0 < found.correction.level < 0.05


def test_adjusted_p_values_at_most_the_level_are_rejected(result, table):
    level = after(result, table, giving(0.5, 0.5)).correction.level
    found = after(result, table, giving(level / 2, level))
    np.testing.assert_allclose(found.adjusted, [level, level])
    assert found.rejected.tolist() == [True, True]
    found = after(result, table, giving(level / 2 * 1.01, level / 10))
    assert found.rejected.tolist() == [True, True]
    found = after(result, table, giving(level * 1.01, level / 2 * 1.01))
    assert found.rejected.tolist() == [False, False]


def test_false_discovery_has_its_own_adjustment(result, table):
    found = after(result, table, giving(0.001, 0.01), control=FalseDiscovery())
    # 2 (1 + 1/2) / k times the k-th smallest.
    np.testing.assert_allclose(found.adjusted, [0.003, 0.015])
    assert "share" in found.error


def test_prior_events_lower_the_level_and_the_screen_counts_once(result, table):
    own = Event.from_json(result.statement.event)
    alone, more, again = (
        after(result, table, giving(1, 1), prior_events=seen).correction.level
        for seen in ((), (own, spent(0.02)), (own,))
    )
    assert again == alone
    assert more < alone
    assert more >= corrected_level(0.05, PureDP(0.03), n=N).level


def test_bonferroni_counts_every_candidate_as_tested(result, table):
    found = after(result, table, giving(0.001, 0.02), guard=Bonferroni())
    assert result.candidates == 6
    np.testing.assert_allclose(found.adjusted, [0.006, 0.1])
    assert found.correction.level == 0.05
    assert found.rejected.tolist() == [True, False]


def test_the_strongest_of_all_pairs_are_a_selection_too(table):
    all_pairs = screened(table, AllPairs())
    found = after(all_pairs.top(1), table, giving(0.001))
    assert len(found.names) == 1
    assert found.correction.hypotheses == 1


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_without_power_the_advice_names_an_epsilon_that_leaves_some(table, epsilon):
    result = screened(table, TopK(2), epsilon)
    test = Permutation(statistic=STATISTIC, draws=999)
    found = after(result, table, test, force=True)
    assert not found.rejected.any()
    assert "No data can be called dependent" in found.advice
    assert found.advice in repr(found)
    assert "one half of the records" in found.advice
    named = float(re.search(r"epsilon of ([\d.e-]+) in all", found.advice)[1])
    # The smallest p-value, 1/1000, twice.
    assert corrected_level(0.05, PureDP(named * 0.95), n=N).level >= 0.002
    assert corrected_level(0.05, PureDP(named * 1.06), n=N).level < 0.002


@pytest.mark.parametrize(("epsilon", "draws"), [(0.2, 999), (EPSILON, 9)])
def test_a_test_that_no_data_could_pass_is_refused_before_any_is_read(table, epsilon, draws):
    """The screen leaves too small a level, or the test has too few draws for it."""
    result, test = screened(table, TopK(2), epsilon), Permutation(statistic=STATISTIC, draws=draws)
    with pytest.raises(ValueError, match=r"No data can be called dependent.*--force") as refused:
        after(result, Unread(), test)
    enough = re.search(r"(\d+) draws or more", str(refused.value))
    assert bool(enough) == (epsilon == EPSILON)
    if enough:
        assert after(result, table, replace(test, draws=int(enough[1]))).advice == ""


class Unread:
    """A table that fails whoever looks at it."""

    def __getattribute__(self, name):
        pytest.fail(f"the table was looked at: {name}")


def test_a_dependent_pair_is_found_where_power_is_left(table):
    result = screened(table, TopK(1), 0.03)
    result = replace(result, pairs=np.array([[0, 1]]), mic=result.mic[:1])
    found = after(result, table, Permutation(statistic=STATISTIC, draws=4999))
    assert found.advice == ""
    assert found.p_values[0] == 1 / 5000
    assert found.rejected.all()


def test_a_level_below_all_floats_rejects_nothing(table):
    """Also not a p-value that is 0.0 because it is below all floats, too."""
    found = after(screened(table, TopK(2), 5.0), table, giving(0.0, 0.0), force=True)
    assert found.correction.level == 0.0
    assert not found.rejected.any()
    assert "No data" in found.advice


def test_every_output_is_marked_as_not_private(result, table):
    found = after(result, table, giving(0.1, 0.2))
    assert repr(found).startswith(NOT_PRIVATE)
    content = json.loads(found.to_json())
    assert content["privacy"] == NOT_PRIVATE
    assert [row["p"] for row in content["pairs"]] == [0.1, 0.2]


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, float("nan")])
def test_alpha_outside_its_range_names_the_theorem(result, table, alpha):
    with pytest.raises(ValueError, match=r"0 < alpha < 1 \(Theorem 1.3\)"):
        after(result, table, giving(), alpha=alpha)


def test_another_table_is_refused_without_quoting_it(result, table):
    shorter = {name: np.append(column[:-2], MARKER) for name, column in table.items()}
    renamed = {name.replace("a", "z"): column for name, column in shorter.items()}
    bounds = {name.replace("a", "z"): limits for name, limits in BOUNDS.items()}
    for other, public in ((shorter, BOUNDS), (renamed, bounds)):
        with pytest.raises(ValueError, match=r"screened") as error:
            post_selection(result, other, bounds=public, test=giving(), key=seeded_key(2))
        assert str(MARKER) not in str(error.value)


def test_a_screen_that_released_nothing_leaves_nothing_to_test(result, table):
    rows = dict.fromkeys(("mic", "lower", "upper", "distance"), np.zeros(0))
    nothing = replace(result, pairs=np.zeros((0, 2), int), **rows)
    with pytest.raises(ValueError, match="released no pair"):
        after(nothing, table, giving())


@pytest.fixture(scope="module")
def with_kinds(table):
    kinds = np.array(["x", "y", "z"])[np.floor(3 * table["a"]).astype(int)]
    sites = np.where(kinds == "y", "north", np.where(table["c"] < 0.5, "south", "west"))
    return {"a": table["a"], "kind": kinds, "site": sites, "c": table["c"]}


def of_kinds(values, data, test=None):
    """The p-values, or the refusal, of a screen whose nominal column is declared so."""
    bounds = {"a": (0, 1), "kind": Categories(values), "c": (0, 1)}
    bounds["site"] = Categories(["north", "south", "west"])
    settings = {"bounds": bounds, "epsilon": EPSILON, "key": seeded_key(1)}
    found = screen(data, ask=AllPairs(), statistic=STATISTIC, force=True, **settings)
    test = Permutation(statistic=STATISTIC, draws=19) if test is None else test
    tested = post_selection(found, data, bounds=bounds, test=test, key=seeded_key(2), force=True)
    return dict(zip(map(frozenset, tested.names), tested.p_values, strict=True))


def test_nominal_columns_are_tested_without_their_order(with_kinds):
    p = of_kinds(["x", "y", "z"], with_kinds)
    assert p[frozenset({"a", "kind"})] == p[frozenset({"site", "kind"})] == 1 / 20
    assert p == of_kinds(["z", "x", "y"], with_kinds)


@pytest.mark.parametrize("test", [NullTable(draws=19), Permutation(statistic=MICe(), draws=19)])
def test_exact_mic_of_a_nominal_column_is_refused(test, with_kinds):
    with pytest.raises(ValueError, match="'kind' is nominal, and MICe compares values"):
        of_kinds(["x", "y", "z"], with_kinds, test)
