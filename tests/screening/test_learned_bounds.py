"""Learned bounds and breakpoints: near the quantiles, inside the wide bounds, for one charge."""

import itertools
from datetime import UTC, date, datetime, timedelta
from math import inf

import numpy as np
import pytest

from dpmic_jax import Budget, ReplaceOne, secret_key, seeded_key
from dpmic_jax.data.schema import Categories, FixedValue, MissingBin, Number, Schema, Times
from dpmic_jax.data.source import open_source
from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.screening import learn_bounds
from dpmic_jax.screening.breakpoints import (
    INTERVALS,
    Cells,
    intervals_for,
    with_missing_bin,
)
from dpmic_jax.screening.private_bounds import _tallies, buying, plan_bounds

N = 4000
MASS = np.array([0.0, *[1000.0] * 15])


def learned(values, rule, *, epsilon=20.0, **settings):
    """Of one column, with little noise."""
    found = learn_bounds(
        {"x": values}, within={"x": rule}, epsilon=epsilon, key=seeded_key(1), **settings
    )
    return found.schema["x"]


def shares(values, rule):
    points = (rule.low, *rule.breakpoints, rule.high)
    return [np.mean(np.asarray(values) < point) for point in points]


SKEWED = {
    "log-normal": (lambda z: np.exp(2 * z + 5), Number(0, 1e9)),
    "negative": (lambda z: -np.exp(z), Number(-1e6, 10)),
    "both signs": (lambda z: np.sinh(4 * z), Number(-1e8, 1e8)),
    "a small part far from 0": (lambda z: 5e5 + 500 * z, Number(0, 1e6)),
    "on a log scale": (lambda z: np.exp(2 * z), Number(1e-6, 1e6, scale="log")),
    "on a square root scale": (lambda z: z**2, Number(0, 100, scale="sqrt")),
    "between breakpoints": (lambda z: np.exp(z), Number(0, 1e9, breakpoints=(0.1, 1, 10))),
}


@pytest.mark.parametrize("kind", SKEWED)
def test_breakpoints_are_near_the_quantiles_of_skewed_columns(kind, rng):
    of, rule = SKEWED[kind]
    values = of(rng.normal(size=N))
    found = learned(values, rule)
    expected = [1 / 64, *np.arange(1, 16) / 16, 63 / 64]
    np.testing.assert_allclose(shares(values, found), expected, atol=0.02)
    assert rule.low <= found.low < found.high <= rule.high


def test_equal_bins_on_wide_bounds_do_not_see_a_skewed_column(rng):
    """What the tolerance above tells apart."""
    values, equal = np.exp(2 * rng.normal(size=N) + 5), np.linspace(0, 1e9, 17)[1:-1]
    assert shares(values, Number(0, 1e9, breakpoints=equal))[1] == 1


def test_dates_timestamps_and_durations_have_breakpoints_of_their_kind(rng):
    days = rng.integers(0, 1000, N)
    kinds = [
        (date(2000, 1, 1), date(2050, 1, 1), timedelta(days=1)),
        (datetime(2000, 1, 1), datetime(2050, 1, 1), timedelta(hours=1)),
        (datetime(2000, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC), timedelta(hours=1)),
        (timedelta(0), timedelta(days=10**6), timedelta(seconds=1)),
    ]
    for low, high, step in kinds:
        rule = Times(low, high)
        ticks = [Times(low + int(day) * step, high).number.low for day in days]
        mass = Cells(rule, 4096).tally(np.array(ticks))
        found = Cells(rule, 4096).learned(mass.astype(float), 16)
        assert type(found.low) is type(low)
        below = [
            sum(low + int(day) * step < point for day in days) / N for point in found.breakpoints
        ]
        np.testing.assert_allclose(below, np.arange(1, 16) / 16, atol=0.08)
        assert max(found.breakpoints) < low + 1100 * step


def test_whole_numbers_have_whole_breakpoints(rng):
    values = rng.poisson(30, N)
    found = learned(values, Number(0, 10**6, whole=True))
    assert found.whole
    assert all(float(point).is_integer() for point in found.breakpoints)
    assert len(found.breakpoints) > 8
    np.testing.assert_allclose(np.diff(shares(values, found))[1:-1], 1 / 16, atol=0.08)


def test_an_atom_leaves_the_bins_that_it_does_not_need_to_the_others(rng):
    values = np.where(rng.random(N) < 0.5, 0.0, np.exp(rng.normal(size=N)))
    found = learned(values, Number(0, 1e6))
    assert sum(point > 0.01 for point in found.breakpoints) >= 7


def test_missing_values_have_no_part_in_quantiles_unless_they_count_as_a_value(rng):
    values = np.exp(rng.normal(size=N))
    holes = np.where(rng.random(N) < 0.4, np.nan, values)
    for missing in ({}, {"missing": MissingBin()}):
        found = learned(holes, Number(0, 1e6, **missing))
        np.testing.assert_allclose(shares(values, found)[1:-1], np.arange(1, 16) / 16, atol=0.03)
        assert found.missing == Number(0, 1e6, **missing).missing
    found = learned(holes, Number(0, 1e6, missing=FixedValue(5000)))
    assert found.high >= 5000  # or it would be no value of the column
    assert shares(values, found)[8] > 0.75
    low = learned(np.where(np.isnan(holes), -inf, holes), Number(0, 1e6, missing=FixedValue(5000)))
    assert low.high >= 5000
    assert shares(values, low)[8] < 0.25


@pytest.mark.parametrize("value", [None, "?"])
def test_a_column_without_values_keeps_its_bounds(value):
    rule = Number(0, 1e6)
    assert learned([value] * 10_000, rule, epsilon=1e4) == rule


def test_a_column_of_one_value_gets_a_narrow_range_around_it():
    found = learned(np.full(N, 123.25), Number(-1e6, 1e6))
    assert found.low <= 123.25 <= found.high
    assert found.high - found.low < 30


@pytest.mark.parametrize(("low", "high"), [(-1e308, 1e308), (0, 5e-324), (1, np.nextafter(1, 2))])
@pytest.mark.parametrize("intervals", INTERVALS)
def test_breakpoints_are_in_order_however_wide_or_narrow_the_bounds(low, high, intervals):
    found = Cells(Number(low, float(high)), 16).learned(MASS, intervals)
    points = (found.low, *found.breakpoints, found.high)
    assert low <= points[0] < points[-1] <= high
    assert (np.diff([*points]) > 0).all() if high < 1e300 else sorted(points) == [*points]


def test_breakpoints_are_written_with_few_digits():
    found = Cells(Number(0, 1e6), 16).learned(MASS, 8)
    assert max(len(repr(point)) for point in found.breakpoints) <= 12


# --- the cells -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        Number(0, 1e9),
        Number(-3, 1e4),
        Number(0, 120, whole=True),
        Number(1, 1e6, scale="log"),
        Times(date(1900, 1, 1), date(2050, 1, 1)),
    ],
)
def test_every_record_is_in_the_cell_between_the_edges_around_it(rule, rng):
    cells = Cells(rule, 64)
    edges = cells.edges
    assert len(edges) == 64
    low, high = rule.number.cut_between
    assert (edges[0], edges[-1]) == (low, high)
    values = np.concatenate([rng.uniform(low, high, 300), np.exp(rng.uniform(0, 9, 300)), edges])
    expected = [sum(edge <= value for edge in edges[1:-1]) for value in values]
    tally = np.bincount(expected, minlength=63)
    assert cells.tally(np.append(values, -inf)).tolist() == [1, *tally]


def test_small_parts_of_a_wide_range_have_cells():
    edges = Cells(Number(0, 1e9), 256).edges
    inside = np.sum((edges > 100) & (edges < 1600))
    assert inside >= 12


# --- planning and charging -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "intervals"), [(0.03, 16), (0.06, 8), (0.1, 4), (0.2, 2), (9, 2)]
)
def test_more_noise_makes_fewer_intervals(error, intervals):
    assert intervals_for(error) == intervals


TABLE = {"x": np.arange(N) / N, "y": np.arange(N) % 7, "z": ["a"] * N}
WITHIN = Schema((("x", Number(0, 100)), ("y", Number(0, 100)), ("z", Categories(("a", "b")))))


@pytest.mark.parametrize(
    ("delta", "guarantee"), [(0.0, PureDP(2.0)), (1e-6, ApproximateDP(2.0, 1e-6))]
)
def test_all_columns_are_one_event_of_what_was_asked(delta, guarantee):
    settings = {"within": WITHIN, "epsilon": 2.0, "delta": delta, "key": secret_key()}
    found = learn_bounds(TABLE, **settings, records_per_person=2)
    assert found.event.guarantee == guarantee
    assert (found.event.count, found.event.n, found.event.relation) == (1, N, ReplaceOne(2))
    assert found.key_is_secret
    assert found.schema["z"] == WITHIN["z"]
    assert 0 < found.error < 0.1
    assert "bounds" in found.event.label
    assert Budget(3.0, 64e-6, ReplaceOne(2)).admits([found.event])


def test_seeds_repeat_and_batches_change_nothing(monkeypatch):
    settings = {"within": WITHIN, "epsilon": 1.0, "key": seeded_key(5)}
    first = learn_bounds(TABLE, **settings)
    monkeypatch.setattr("dpmic_jax.screening.private_bounds._ROWS", 99)
    assert learn_bounds(TABLE, **settings) == first
    assert learn_bounds(TABLE, **{**settings, "key": seeded_key(6)}).schema != first.schema


def test_two_equal_columns_get_different_breakpoints():
    twice = {"x": TABLE["x"], "y": TABLE["x"]}
    within = {"x": Number(0, 100), "y": Number(0, 100)}
    found = learn_bounds(twice, within=within, epsilon=1.0, key=seeded_key(1)).schema
    assert found["x"] != found["y"]


def test_too_few_records_are_refused_with_what_helps():
    with pytest.raises(ValueError, match=r"too few .* a larger epsilon, a delta, fewer columns"):
        plan_bounds(columns=12, n=100, budget=Budget(0.1))
    with pytest.raises(ValueError, match="at least one column of numbers"):
        learn_bounds(
            {"z": ["a"] * 9}, within={"z": Categories(("a", "b"))}, epsilon=1, key=seeded_key(1)
        )


def test_buying_is_advised_where_the_predicted_error_is_small_and_bounds_are_linear():
    many = Schema(tuple((f"x{i}", Number(0, 1e6)) for i in range(12)))
    on = {"n": 10_000, "budget": Budget(1.0, 1e-6)}
    assert "pays" in buying(many, **on)
    assert "does not pay" in buying(many, n=300, budget=Budget(0.1))
    scaled = Schema((("x", Number(1, 9, scale="log")), ("z", Categories(("a", "b", "c")))))
    assert buying(scaled, **on) is None


def test_columns_of_which_every_value_has_its_bins_are_not_bought():
    long, short = (Number(0, high, whole=True) for high in (16, 15))
    within = Schema((("long", long), ("short", short)))
    table = {"long": np.arange(4000) % 5, "short": np.arange(4000) % 5}
    found = learn_bounds(table, within=within, epsilon=1.0, key=seeded_key(1))
    assert found.schema["short"] == short
    assert found.schema["long"] != long
    assert dict(found.event.settings)["columns"] == "1"


def test_a_scale_is_advised_for_columns_that_may_have_one():
    dates = Times(date(2020, 1, 1), date(2020, 12, 31))
    whole = Number(0, 999, whole=True)
    on = {"n": 10_000, "budget": Budget(1.0)}
    assert buying(Schema((("d", dates), ("w", whole))), **on) is None
    assert "the 1 on" in buying(Schema((("d", dates), ("w", whole), ("x", Number(0, 9)))), **on)


ODD = [None, np.nan, inf, -inf, "?", "", 1e308, -1e308, 0, -0.0, 5, 10**30, True, 5e-324, "7"]
KINDS = {
    "number": Number(-3, 1e6),
    "log": Number(1, 1e6, scale="log"),
    "root": Number(0, 9, scale="sqrt", missing=MissingBin()),
    "whole": Number(0, 50, whole=True),
    "fixed": Number(0, 9, missing=FixedValue(4)),
    "points": Number(0, 9, breakpoints=(1, 2)),
    "spans": Times(timedelta(0), timedelta(days=9)),
}


def test_whatever_a_record_holds_it_is_in_one_cell_of_each_column():
    """Through the path of a release: the sensitivity counts two cells of every column."""
    trees = plan_bounds(columns=len(KINDS), n=10**6, budget=Budget(1.0))

    def tallied(last):
        rows = [*ODD, last]
        told = {name: with_missing_bin(rule) for name, rule in KINDS.items()}
        source = open_source(dict.fromkeys(KINDS, rows), told)
        source.validate()
        cells = {name: Cells(rule, trees.tree.leaves) for name, rule in KINDS.items()}
        return trees.tree.counts(_tallies(source, cells))

    found = [tallied(odd) for odd in ODD]
    for counts in found:
        assert (counts[:, : trees.tree.branching].sum(axis=1) == len(ODD) + 1).all()
    moved = [np.abs(a - b).sum() for a, b in itertools.combinations(found, 2)]
    assert max(moved) <= trees.sensitivity
    assert max(moved) > trees.sensitivity * 2 / 3
