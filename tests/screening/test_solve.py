"""The smallest budget that finds a MIC, against all budgets of a list tried in turn."""

import itertools
import math
from decimal import Context, Decimal
from functools import cache

import pytest

from dpmic_jax.screening import (
    Above,
    Against,
    AllPairs,
    Between,
    TopK,
    fewest_records,
    largest_k,
    preview,
    smallest_epsilon,
    solve,
)
from dpmic_jax.screening.calibration import mic_of

FIND = 0.2


def brute_force(values, plan_of, find):
    """The first of all values with which a plan finds the MIC."""
    return next(value for value in values if plan_of(value).smallest <= find)


@pytest.fixture
def planned(monkeypatch):
    """`preview`, which makes every plan once, here and in what is under test."""

    @cache
    def of_items(items):
        return preview(**dict(items))

    def remembered(**settings):
        return of_items(tuple(sorted(settings.items())))

    monkeypatch.setattr(solve, "preview", remembered)
    return remembered


def before(number):
    """The number before, of three digits."""
    return Context(prec=3).next_minus(Decimal(repr(number)))


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": 10, "n": 2000, "ask": AllPairs()},
        {"columns": 30, "n": 5000, "ask": AllPairs(), "delta": 1e-6},
        {"columns": 10, "n": 5000, "ask": TopK(3)},
        {"columns": 10, "n": 20_000, "ask": Above(0.05, 3)},
        {"columns": ("a", "b", "c", "d"), "n": 1000, "ask": Against("b"), "relative": ("a", "b")},
    ],
    ids=lambda settings: str(settings["ask"]),
)
def test_the_smallest_epsilon_is_the_first_of_all(settings, planned, monkeypatch):
    values = tuple(
        float(f"{digits}e{power}") for power in (-3, -2, -1, 0) for digits in (10, 25, 60)
    )
    monkeypatch.setattr(solve, "_EPSILONS", values)

    def plan_of(epsilon):
        return planned(**settings, epsilon=epsilon)

    for find in (0.1, 0.15, 0.4, 0.9):
        assert smallest_epsilon(find, **settings) == brute_force(values, plan_of, find)


@pytest.mark.parametrize(
    ("columns", "ask", "delta", "values"),
    [
        (10, AllPairs(), 1e-6, (0.3, 0.6, 0.7, 1.0, 1.8, 2.2, 4.0, 5.0, 8.0, 20.0)),
        (10, TopK(3), 0.0, (0.1, 0.2, 0.25, 0.6, 0.8, 1.3, 1.6, 2.4, 3.0, 4.0, 8.0)),
        (40, TopK(20), 1e-6, (0.3, 0.5, 0.6, 0.64, 0.7, 0.78, 0.9)),
    ],
    ids=str,
)
def test_what_jumps_up_with_epsilon_is_not_passed_over(
    columns, ask, delta, values, planned, monkeypatch
):
    """A plan that spends more on MICr may find less than one of a smaller epsilon."""
    monkeypatch.setattr(solve, "_EPSILONS", values)
    settings = {"columns": columns, "n": 20_000, "ask": ask, "delta": delta}
    finds = [planned(**settings, epsilon=value).smallest for value in values]
    peaks = [low for low, after in itertools.pairwise(finds) if low < after]
    assert peaks
    for low in peaks:
        find = low * (1 + 1e-9)
        first = next(value for value, each in zip(values, finds, strict=True) if each <= find)
        assert smallest_epsilon(find, **settings) == first


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3)], ids=str)
def test_the_fewest_records_are_the_first_of_all(ask, planned, monkeypatch):
    values = (4, 30, 100, 300, 700, 1000, 1500, 2500, 6000, 20_000, 100_000, 10**6)
    monkeypatch.setattr(solve, "_RECORDS", values)
    settings = {"columns": 10, "epsilon": 0.7, "ask": ask}

    def plan_of(n):
        return planned(**settings, n=n)

    for find in (0.01, 0.1, 0.5):
        assert fewest_records(find, **settings) == brute_force(values, plan_of, find)


@pytest.mark.parametrize(
    ("settings", "finds"),
    [
        ({"columns": 6, "n": 1000, "epsilon": 0.5}, (0.2, 0.3, 0.5)),
        ({"columns": 6, "n": 20_000, "epsilon": 4.0, "delta": 1e-6}, (0.0055, 0.006, 0.0065)),
        (
            {
                "columns": tuple("abcdefg"),
                "n": 5000,
                "epsilon": 0.05,
                "candidates": Between(("a", "b"), ("c", "d", "e")),
            },
            (0.2, 0.3, 0.5),
        ),
    ],
)
def test_the_largest_k_is_the_first_of_all_from_above(settings, finds, planned):
    given = dict(settings)
    candidates = given.pop("candidates", AllPairs())

    def plan_of(k):
        return planned(**given, ask=TopK(k, candidates=candidates))

    every = range(len(plan_of(1).plan.pairs) - 1, 0, -1)
    found = [largest_k(find, **settings) for find in finds]
    assert found == [brute_force(every, plan_of, find) for find in finds]
    assert found == sorted(found)


def test_if_all_values_can_be_released_k_is_all_pairs_but_one():
    settings = {"columns": 6, "n": 20_000, "epsilon": 2.0}
    assert preview(**settings, ask=AllPairs()).smallest < FIND
    assert largest_k(FIND, **settings) == 14


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_answer_finds_it_and_the_number_before_does_not(delta):
    shared = {"columns": 30, "delta": delta, "ask": AllPairs()}
    epsilon = smallest_epsilon(FIND, n=20_000, **shared)
    assert preview(**shared, n=20_000, epsilon=epsilon).smallest <= FIND
    assert preview(**shared, n=20_000, epsilon=float(before(epsilon))).smallest > FIND
    n = fewest_records(FIND, epsilon=1.0, **shared)
    assert preview(**shared, n=n, epsilon=1.0).smallest <= FIND
    assert preview(**shared, n=int(before(n)), epsilon=1.0).smallest > FIND
    # Both answers are of one curve: with these records, at most this epsilon is enough.
    assert smallest_epsilon(FIND, n=n, **shared) <= 1.0


def test_numbers_have_three_digits_and_none_is_left_out():
    for values in (solve._EPSILONS, solve._RECORDS):
        assert list(values) == sorted(set(values))
        assert all(
            Decimal(repr(value)) == Context(prec=3).plus(Decimal(repr(value))) for value in values
        )
    context = Context(prec=3)
    steps = [context.next_plus(Decimal(repr(value))) for value in solve._EPSILONS[:-1]]
    assert steps == [Decimal(repr(value)) for value in solve._EPSILONS[1:]]
    steps = [math.ceil(context.next_plus(value)) for value in solve._RECORDS[:-1]]
    assert steps == list(solve._RECORDS[1:])


def test_weaker_dependences_need_more():
    finds = (0.1, 0.3, 0.8)
    shared = {"columns": 10, "ask": AllPairs()}
    epsilons = [smallest_epsilon(find, n=3000, **shared) for find in finds]
    records = [fewest_records(find, epsilon=1.0, **shared) for find in finds]
    assert epsilons == sorted(set(epsilons), reverse=True)
    assert records == sorted(set(records), reverse=True)


def by_epsilon(find=FIND, **settings):
    return smallest_epsilon(find, **{"columns": 10, "n": 1000, "ask": AllPairs(), **settings})


def by_records(find=FIND, **settings):
    return fewest_records(find, **{"columns": 10, "epsilon": 1.0, "ask": AllPairs(), **settings})


def by_k(find=FIND, **settings):
    return largest_k(find, **{"columns": 10, "n": 1000, "epsilon": 1.0, **settings})


@pytest.mark.parametrize(
    ("solved", "settings", "said"),
    [
        # Chance, which no epsilon removes.
        (by_epsilon, {"n": 40}, "no epsilon up to 100 .* by chance, .*; use more records or fewer"),
        (by_epsilon, {"ask": Above(0.3, 2)}, "the threshold is a MIC of 0.3; use a lower one"),
        (by_records, {"ask": Above(FIND, 2)}, "the threshold is a MIC of 0.2; use a lower one"),
        # Noise.
        (
            by_epsilon,
            {"columns": 200, "find": 0.31, "n": 400},
            r"is found, .*; use more records, or fewer pairs, such as TopK\(k\) of them",
        ),
        (
            by_records,
            {"epsilon": 1e-5},
            r"no number of records up to 4 million .*; use a larger epsilon, or fewer pairs",
        ),
        (by_records, {"epsilon": 1e-5, "ask": TopK(9)}, "use a larger epsilon, or a smaller k"),
        (by_records, {"epsilon": 1e-5, "ask": TopK(1)}, "a larger epsilon, or fewer candidates"),
        (by_records, {"epsilon": 1e-5, "ask": Above(0.1, 3)}, "epsilon, or a smaller at_most"),
        (by_k, {"epsilon": 0.1}, "no k finds .*; use a larger epsilon, more records, or fewer"),
    ],
)
def test_what_is_infeasible_is_refused_with_what_would_help(solved, settings, said):
    with pytest.raises(ValueError, match=said):
        solved(**settings)


def test_what_would_help_does():
    """Each refusal above, after its advice was taken."""
    assert by_epsilon(n=1000) < 100
    assert by_epsilon(ask=Above(0.1, 2)) < 100
    assert by_epsilon(columns=200, find=0.31, n=4000) < 100
    assert by_epsilon(columns=200, find=0.31, n=400, ask=TopK(1)) < 100
    assert by_records(epsilon=0.01) < 4_000_000
    assert by_k(epsilon=0.4) >= 1


@pytest.mark.parametrize("find", [0, 1, -0.2, 1.5, math.nan])
def test_only_a_mic_between_0_and_1_can_be_asked_for(find):
    for solved in (by_epsilon, by_records, by_k):
        with pytest.raises(ValueError, match="expected 0 < find < 1, a MIC, got"):
            solved(find)


def test_other_settings_are_checked_by_preview():
    with pytest.raises(ValueError, match="delta"):
        by_epsilon(delta=1.5)
    with pytest.raises(ValueError, match="unknown column 'age'"):
        by_records(ask=Against("age"))
    with pytest.raises(ValueError, match="expected k below 1"):
        by_k(columns=2)
    with pytest.raises(TypeError, match="expected ask to be"):
        by_epsilon(ask="all")


def test_the_largest_distance_is_a_mic_of_one():
    """So that whatever has a MIC below 1 is found where preview says so."""
    assert mic_of(2**0.5 - 1) == 1
