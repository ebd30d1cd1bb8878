"""The curve of a plan is made of plans, and that of a finished run has the run's plan on it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import result_of, statement_of
from small import NAMES, STATISTIC, N, screened

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, Event, GaussianDP, PureDP
from dpmic_jax.results import ScreenResult
from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK, preview
from dpmic_jax.screening.curve import curve_of
from dpmic_jax.screening.queries import canonical, from_canonical

names = st.text(min_size=1, max_size=5)
fractions = st.floats(0, 1, exclude_min=True, exclude_max=True)
groups = st.one_of(
    st.just(AllPairs()),
    st.builds(Against, names),
    st.lists(names, min_size=2, unique=True).map(lambda each: Between(each[:1], each[1:])),
)
counts, chosen = st.integers(1, 10**6), st.one_of(st.none(), fractions)
queries = st.one_of(
    groups,
    st.builds(TopK, counts, selection_fraction=chosen, candidates=groups),
    st.builds(Above, fractions, counts, selection_fraction=chosen, candidates=groups),
)


@given(queries)
def test_the_text_of_a_query_in_an_event_gives_it_back(ask):
    assert from_canonical(canonical(ask)) == ask


@pytest.mark.parametrize(
    ("ask", "plain"),
    [
        (Against(np.str_("age")), Against("age")),
        (Between(list(np.array(["a", "b"])), ["c"]), Between(("a", "b"), ("c",))),
        (TopK(np.int64(3), np.float64(0.5)), TopK(3, 0.5)),
        (Above(np.float64(0.3), np.int64(3), np.float64(0.5)), Above(0.3, 3, 0.5)),
    ],
)
def test_numbers_and_names_of_numpy_are_stored_as_plain_ones(ask, plain):
    assert canonical(ask) == canonical(plain)
    assert from_canonical(canonical(ask)) == ask


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TopK(",
        "TopK(5)",
        "TopK(k=0, share=None, among=AllPairs())",
        "TopK(k=open('x'), share=None, among=AllPairs())",
        "screening.AllPairs()",
        "Path(column='a')",
        "Against(row='a')",
        "[AllPairs()]",
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="expected a query as it is stored in events"):
        from_canonical(text)


@pytest.mark.parametrize(
    "settings",
    [
        {"ask": AllPairs(), "delta": 1e-6, "columns": 30},
        {"ask": TopK(4, selection_fraction=0.3), "records_per_person": 3},
        {"ask": Above(0.2, 3), "columns": ("a", "b", "c", "d"), "relative": ("b",)},
        {"ask": AllPairs(), "statistic": STATISTIC},
    ],
    ids=lambda settings: str(settings["ask"]),
)
def test_every_point_is_a_plan_of_its_own(settings):
    given = {"columns": 8, "n": 20_000, **settings}
    found = preview(epsilon=0.7, **given).curve()
    assert (found.asked, found.n, found.epsilon) == (str(given["ask"]), 20_000, 0.7)
    assert found.delta == given.get("delta", 0.0)
    for point in found.points:
        alone = preview(epsilon=point.epsilon, **given)
        assert (point.distance, point.mic) == (alone.smallest_distance, alone.smallest)
    # What a plan spends on MICr makes what it finds larger by at most a quarter.
    distances = [point.distance for point in found.points]
    assert all(after <= 1.25 * before for before, after in pairwise(distances))
    assert distances[-1] < distances[0]


def test_an_epsilon_with_which_nothing_can_be_planned_finds_nothing():
    ask = TopK(3, selection_fraction=0.5)
    found = preview(columns=5, n=2_000_000, epsilon=1e-6, ask=ask).curve()
    with pytest.raises(ValueError, match="larger epsilon"):
        preview(columns=5, n=2_000_000, epsilon=found.points[0].epsilon, ask=ask)
    assert found.points[0][1:] == (math.inf, math.inf)
    assert math.isinf(found.own.mic)
    assert math.isfinite(found.own.distance)


def of_run(**settings):
    """The curve of a screen, after its result was written and read."""
    result = ScreenResult.from_json(screened(**settings).to_json())
    return curve_of(result), Event.from_json(result.statement.event).guarantee


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"ask": AllPairs(), "epsilon": 50.0}, PureDP),
        ({"ask": AllPairs(), "epsilon": 2.0, "delta": 0.01}, GaussianDP),
        ({"ask": TopK(3, selection_fraction=0.4), "epsilon": 5.0}, PureDP),
        ({"ask": TopK(5, selection_fraction=0.5), "epsilon": 1.0, "delta": 0.3}, ZCDP),
        ({"ask": TopK(2, candidates=Against("d")), "epsilon": 5.0}, PureDP),
        ({"ask": Above(0.4, 2, candidates=Between(("a", "b"), ("d", "f")))}, PureDP),
        ({"ask": AllPairs(), "epsilon": 5.0, "relative": ("c", "a")}, PureDP),
        ({"ask": TopK(2), "epsilon": 9.0, "relative": ("c",), "records_per_person": 2}, PureDP),
    ],
)
def test_a_finished_run_has_the_curve_of_its_plan(settings, kind):
    found, guarantee = of_run(**settings)
    assert isinstance(guarantee, kind)
    # With the MICr that the screen had, and not the default that the curve of a run has.
    given = {"epsilon": 20.0, **settings}
    planned = preview(columns=NAMES, n=N, statistic=STATISTIC, **given)
    assert found == planned.curve()
    assert found.own == (given["epsilon"], planned.smallest_distance, planned.smallest)


def test_a_search_that_spent_a_part_of_delta_is_planned_with_all_of_it():
    """Algorithm 5 of the sparse vector technique uses 1/64 of delta, which is all that is known."""
    ask = Above(0.3, 770, selection_fraction=0.25)
    planned = preview(columns=40, n=10**6, epsilon=2.0, delta=0.02, ask=ask)
    event = planned.plan.event
    assert isinstance(event.guarantee, ApproximateDP)
    assert event.delta == 0.02 / 64
    statement = statement_of(n=10**6, epsilon=2.0, delta=event.delta, event=event.to_json())
    found = curve_of(result_of(planned.plan.names, statement=statement))
    assert found.delta == 0.02
    assert found.own.distance == planned.smallest_distance
