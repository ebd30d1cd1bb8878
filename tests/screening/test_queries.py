"""Which pairs a question is about, and what it refuses."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK
from dpmic_jax.screening.queries import canonical

NAMES = ("age", "sex", "dose", "response", "site")


def as_set(positions):
    """Pairs of names, after checking that each is there once and in the table's order."""
    pairs = [tuple(pair) for pair in positions.tolist()]
    assert positions.shape == (len(pairs), 2)
    assert all(i < j for i, j in pairs)
    assert len(set(pairs)) == len(pairs)
    return {frozenset((NAMES[i], NAMES[j])) for i, j in pairs}


def by_definition(belongs):
    """Every two different columns that `belongs` says yes to, in one order or the other."""
    return {
        frozenset(pair)
        for pair in itertools.product(NAMES, NAMES)
        if pair[0] != pair[1] and belongs(*pair)
    }


def test_all_pairs_are_every_two_columns_in_the_order_of_the_table():
    found = AllPairs().pairs(NAMES)
    assert as_set(found) == by_definition(lambda x, y: True)
    assert found.tolist() == sorted(found.tolist())


@pytest.mark.parametrize("column", NAMES)
def test_against_is_every_pair_with_the_column(column):
    assert as_set(Against(column).pairs(NAMES)) == by_definition(lambda x, y: x == column)


@given(st.lists(st.sampled_from("abn"), min_size=5, max_size=5))
def test_between_is_every_pair_of_one_from_each_group(groups):
    a, b = ([name for name, at in zip(NAMES, groups, strict=True) if at == g] for g in "ab")
    if not a or not b:
        with pytest.raises(TypeError, match=r"columns_[ab] of Between"):
            Between(a, b)
        return
    expected = by_definition(lambda x, y: x in a and y in b)
    assert as_set(Between(a, b).pairs(NAMES)) == expected
    assert as_set(Between(b, a).pairs(NAMES)) == expected
    # A name that is given twice is one column.
    assert as_set(Between((*a, a[0]), b).pairs(NAMES)) == expected


@pytest.mark.parametrize("among", [AllPairs(), Against("sex"), Between(("age", "site"), ("dose",))])
def test_selecting_asks_look_at_the_pairs_of_their_group(among):
    expected = among.pairs(NAMES)
    for ask in (TopK(1, candidates=among), Above(0.3, 2, candidates=among)):
        np.testing.assert_array_equal(ask.pairs(NAMES), expected)
    assert TopK(1, candidates=among).most == 1
    assert Above(0.3, 2, candidates=among).most == 2


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (Against("weight"), "Against names an unknown column 'weight'"),
        (Between(("age",), ("weight",)), "Between names an unknown column 'weight'"),
        (TopK(1, candidates=Against("weight")), "unknown column 'weight'"),
        (
            Above(0.5, 1, candidates=Between(("weight",), ("age",))),
            "unknown column 'weight'",
        ),
        (TopK(10), "expected k below 10, the number of candidate pairs, got 10"),
        (
            TopK(4, candidates=Against("age")),
            "expected k below 4, the number of candidate pairs, got 4",
        ),
    ],
)
def test_a_query_that_the_table_cannot_answer_is_refused(ask, said):
    with pytest.raises(ValueError, match=said):
        ask.pairs(NAMES)


@pytest.mark.parametrize("ask", [AllPairs(), Against("age"), TopK(1), Above(0.5, 1)])
def test_one_column_makes_no_pair(ask):
    with pytest.raises(ValueError, match="at least 2 columns, got 1"):
        ask.pairs(("age",))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: TopK(0), ValueError, "k >= 1"),
        (lambda: TopK(2.5), TypeError, "k to be a whole number"),
        (lambda: TopK(True), TypeError, "k to be a whole number"),
        (lambda: TopK(2, selection_fraction=0.0), ValueError, "0 < selection_fraction < 1"),
        (lambda: TopK(2, selection_fraction=1), ValueError, "0 < selection_fraction < 1"),
        (
            lambda: TopK(2, selection_fraction=float("nan")),
            ValueError,
            "0 < selection_fraction < 1",
        ),
        (
            lambda: TopK(2, selection_fraction="half"),
            TypeError,
            "selection_fraction to be a Python float",
        ),
        (lambda: TopK(2, candidates=TopK(1)), TypeError, "candidates to be AllPairs"),
        (lambda: Above(0, 1), ValueError, "0 < threshold < 1"),
        (lambda: Above(1.0, 1), ValueError, "0 < threshold < 1"),
        (lambda: Above("0.5", 1), TypeError, "threshold to be a Python float"),
        (lambda: Above(0.5, 0), ValueError, "at_most >= 1"),
        (lambda: Above(0.5, 1, selection_fraction=2), ValueError, "0 < selection_fraction < 1"),
        (lambda: Above(0.5, 1, candidates="age"), TypeError, "candidates to be AllPairs"),
        (lambda: Against(3), TypeError, "column of Against"),
        (lambda: Between("age", ("sex",)), TypeError, "columns_a of Between"),
        (lambda: Between(("age",), ()), TypeError, "columns_b of Between"),
        (lambda: Between(("age",), (3,)), TypeError, "columns_b of Between"),
        (lambda: Between(("age", "sex"), ("sex",)), ValueError, "column 'sex' is in both groups"),
    ],
)
def test_an_invalid_query_is_refused_by_the_name_of_its_argument(make, error, said):
    with pytest.raises(error, match=said):
        make()


def test_a_query_is_described_in_one_line():
    for ask in (Against("a\nb\x1b"), TopK(3, candidates=Against("a\tb"))):
        assert str(ask).isprintable()


def test_asks_that_differ_are_written_differently():
    """An event keeps how its ask is written, and a run's folder goes by that."""
    asks = [
        AllPairs(),
        Against("a"),
        Against("b"),
        Between(("a",), ("b",)),
        Between(("a",), ("c",)),
        TopK(3),
        TopK(3, selection_fraction=0.4),
        TopK(3, candidates=Against("a")),
        Above(0.3, 3),
        Above(0.30000000000000004, 3),
        Above(0.3, 3, selection_fraction=0.4),
    ]
    assert len({repr(ask) for ask in asks}) == len(asks)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (AllPairs(), "AllPairs()"),
        (Against("age"), "Against(column='age')"),
        (TopK(5), "TopK(k=5, share=None, among=AllPairs())"),
        (
            Above(0.3, 4, selection_fraction=0.2, candidates=Against("age")),
            "Above(threshold=0.3, at_most=4, share=0.2, among=Against(column='age'))",
        ),
    ],
)
def test_events_keep_the_field_names_of_version_0_1_0(ask, text):
    """Noise depends on them, so that a seeded run gives what it gave."""
    assert canonical(ask) == text
