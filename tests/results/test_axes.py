"""Axes of histograms: cells are called what they hold, found by placing values in them."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from dpmic_jax.data.limits import NominalLimits, in_declared_order
from dpmic_jax.data.schema import Categories, MissingBin, Number, Schema, Times
from dpmic_jax.data.source.coding import limits
from dpmic_jax.data.source.memory import MemorySource
from dpmic_jax.mic.binning import by_range
from dpmic_jax.results.axes import SpareAxis, TimeAxis, WholeAxis
from dpmic_jax.screening.histograms import axis_of

DAY, HOUR = timedelta(1), timedelta(hours=1)


def placed(rule, cells, side):
    """The axis of a column, and the cell of each value."""
    source = MemorySource(Schema((("x", rule),)), {"x": np.array(cells, object)}, "data")
    ((column,),) = source.batches(len(cells))
    found = by_range([column], [in_declared_order(limits(rule))], [side]).fine[0]
    return axis_of("x", rule), found.tolist()


DAYS = [date(2020, 1, 1) + DAY * i for i in range(31)]


@pytest.mark.parametrize("side", [3, 5, 31, 40])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("breakpoints", [(), (DAYS[3], DAYS[4])])
def test_a_cell_of_dates_is_called_by_its_first_and_last_day(side, own, breakpoints):
    missing = {"missing": MissingBin()} if own else {}
    rule = Times(DAYS[0], DAYS[-1], breakpoints=breakpoints, **missing)
    axis, places = placed(rule, DAYS, side)
    cells = axis.cells(side)
    assert isinstance(axis, TimeAxis)
    assert cells.places == tuple(range(side))
    held = {}
    for day, place in zip(DAYS, places, strict=True):
        held.setdefault(place, []).append(day.isoformat())
    for place, (first, *_, last) in {at: [*days, days[-1]] for at, days in held.items()}.items():
        assert cells.labels[place] == (first if first == last else f"{first} to {last}")
    assert {cells.labels[place] for place in range(own, side) if place not in held} <= {"nothing"}
    assert (cells.labels[0] == "missing") == own
    assert cells.ticks[-1] == (side, DAYS[-1].isoformat())


@pytest.mark.parametrize("side", [2, 4, 10, 13])
def test_a_cell_of_whole_numbers_is_called_by_what_it_holds(side):
    axis, places = placed(Number(-2, 7, whole=True), list(range(-2, 8)), side)
    assert isinstance(axis, WholeAxis)
    labels = dict(zip(axis.cells(side).places, axis.cells(side).labels, strict=True))
    for place in range(side):
        held = [number for number, at in zip(range(-2, 8), places, strict=True) if at == place]
        name = f"{held[0]} to {held[-1]}" if len(held) > 1 else "".join(map(str, held))
        assert labels[place] == (name or "nothing")


@pytest.mark.parametrize("missing", [{}, {"missing": MissingBin()}])
@pytest.mark.parametrize("side", [3, 4, 7])
def test_nominal_categories_have_cells_or_share_them(missing, side):
    values = ("a", "b", "c", "d")
    rule = Categories(values, **missing)
    assert isinstance(limits(rule), NominalLimits)
    axis, places = placed(rule, [None, *values], side)
    assert isinstance(axis, SpareAxis)
    cells = axis.cells(side)
    named = dict(zip(cells.places, cells.labels, strict=True))
    for name, place in zip(("missing", *values), places, strict=True):
        assert name in named[place].split(", ")


def test_times_are_shown_in_their_zone_to_the_unit_that_tells_cells_apart():
    east = timezone(5 * HOUR)
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    for step, first, second in (
        (DAY * 2, "2020-01-01", "2020-01-03"),
        (HOUR, "2020-01-01 17:00", "2020-01-01 18:00"),
        (timedelta(seconds=2), "2020-01-01 17:00:00", "2020-01-01 17:00:02"),
        (timedelta(microseconds=5), "2020-01-01 17:00:00.000000", "2020-01-01 17:00:00.000005"),
    ):
        rule = Times(noon.astimezone(east), (noon + 4 * step).astimezone(east))
        cells = TimeAxis("seen", rule).cells(4)
        assert cells.labels[0] == f"{first} to {second}"
        assert cells.ticks[1] == (1, second)


def test_durations_are_shown_in_units_of_their_size():
    rule = Times(HOUR, HOUR * 10_000, scale="log")
    expected = ("1.0 h to 10.0 h", "10.0 h to 4.2 d", "4.2 d to 42 d", "42 d to 417 d")
    assert TimeAxis("stay", rule).cells(4).labels == expected
    late = TimeAxis("late", Times(-DAY, DAY)).cells(4)
    assert [text for _, text in late.ticks] == ["-24 h", "-12 h", "0 h", "12 h", "24 h"]
