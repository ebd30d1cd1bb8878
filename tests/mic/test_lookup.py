"""Codes by look-up are those of counting the cuts, whatever a value is and wherever cuts lie."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpmic_jax import MICr
from dpmic_jax.data.limits import CategoryLimits, WithMissing
from dpmic_jax.mic.binning import by_range, by_ranges
from dpmic_jax.mic.lookup import FEW, Lookup, Partition, Search, coder

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.int64, np.uint64]
EVERY = [[2, 3, 5, 8, 13, 21], [4, 9, 30, 75]]
PLAIN = [(0.0, 1.0), (-2.0, 2.0), (0.1, 0.7), (-3.0, 9.0), (0.0, 254.0), (1e9, 1e9 + 1)]
# Where a difference overflows, a cell has no width, or integers are no floats any more.
ODD = [(-1.7e308, 1.7e308), (1e308, 1.7e308), (0.0, 5e-324), (-1e-308, 1e-308), (5.0, 5.0)]
ODD += [(2.0**53, 2.0**53 + 40), (2.0**63, 2.0**63 + 2.0**13), (-(2.0**63), 2.0**64), (-1e-5, 6e4)]


def neighbours(value, dtype):
    """A cut, and what comes before and after it in its dtype."""
    if np.dtype(dtype).kind == "f":
        ends = dtype(-np.inf), dtype(np.inf)
        return [value, *(np.nextafter(value, end) for end in ends)]
    limits = np.iinfo(dtype)
    near = (int(value) + step for step in (-1, 0, 1))
    return [dtype(one) for one in near if limits.min <= one <= limits.max]


def extremes(dtype):
    limits = (np.finfo if np.dtype(dtype).kind == "f" else np.iinfo)(dtype)
    if isinstance(limits, np.iinfo):
        return [dtype(limits.min), dtype(limits.max), dtype(0), dtype(1)]
    small = [limits.smallest_subnormal, limits.tiny, limits.min, limits.max]
    return [dtype(one) for one in (*small, 0.0, -0.0, np.inf, -np.inf, np.nan)]


def trying(cuts, dtype, more=()):
    """Every cut, its neighbours, what is special, and more; enough for a look-up."""
    with np.errstate(all="ignore"):
        near = [one for cut in cuts for one in neighbours(cut, dtype)]
    values = np.array([*near, *extremes(dtype), *more], dtype)
    return np.resize(values, max(FEW, len(values)))


def counted(cuts, values):
    """The definition: how many cuts are at or below a value; NaN is above all."""
    reached = np.zeros(len(values), int)
    for cut in cuts:
        reached += (cut <= values) | (values != values)
    return reached


def fractions(sizes, low, high):
    parts = sorted({Fraction(p, q) for q in sizes for p in range(1, q)})
    return [Fraction(low) + (Fraction(high) - Fraction(low)) * part for part in parts]


def check_floats(limits, dtype, more=()):
    empty = np.zeros(0, dtype)
    with np.errstate(all="ignore"):
        alone = [by_range([empty], [limits], sizes).cuts[0] for sizes in EVERY]
        values = trying(np.concatenate(alone), dtype, more)
        found = by_ranges([values], [limits], EVERY)
    for cuts, partitions in zip(alone, found, strict=True):
        np.testing.assert_array_equal(partitions.cuts[0], cuts)
        np.testing.assert_array_equal(partitions.fine[0], counted(cuts, values))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", [tuple, WithMissing])
@pytest.mark.parametrize("bounds", PLAIN + ODD)
def test_floats_at_and_around_every_cut_are_counted(dtype, kind, bounds):
    check_floats(bounds if kind is tuple else kind(*bounds), dtype)


finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", [tuple, WithMissing])
@given(bounds=st.tuples(finite, finite), more=st.lists(st.floats(), max_size=40))
def test_floats_are_counted_on_any_bounds(dtype, kind, bounds, more):
    low, high = sorted(bounds)
    with np.errstate(all="ignore"):
        more = np.array(more).astype(dtype)
    check_floats((low, high) if kind is tuple else kind(low, high), dtype, more)


def check_integers(kind, low, high, dtype):
    """Against exact cuts, some of which no integer of the dtype may reach."""
    every = [[size - 1 for size in sizes] for sizes in EVERY] if kind is WithMissing else EVERY
    limits = np.iinfo(dtype)
    cuts = [fractions(sizes, low, high) for sizes in every]
    up = {min(max(math.ceil(cut), limits.min), limits.max) for cut in itertools.chain(*cuts)}
    values = trying(up, dtype)
    bounds = (low, high) if kind is tuple else kind(low, high)
    for exact, partitions in zip(cuts, by_ranges([values], [bounds], EVERY), strict=True):
        distinct = {int(value) for value in values}
        code = {value: sum(cut <= value for cut in exact) for value in distinct}
        expected = np.array([code[int(value)] for value in values])
        np.testing.assert_array_equal(partitions.fine[0], expected + (kind is WithMissing))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", [tuple, WithMissing])
@pytest.mark.parametrize("bounds", [*PLAIN, *ODD[-5:-1], (2.0**60, 2.0**60 + 2048)])
def test_integers_at_and_around_every_cut_are_counted(dtype, kind, bounds):
    check_integers(kind, *bounds, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(low=st.floats(-(2.0**65), 2.0**65), width=st.floats(0, 2.0**65))
def test_integers_are_counted_on_any_bounds(dtype, low, width):
    check_integers(tuple, low, low + width, dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.float64])
@pytest.mark.parametrize("categories", [1, 2, 3, 7, 40, 100])
def test_categories_are_counted(dtype, categories):
    limits = CategoryLimits(categories)
    values = np.resize(np.arange(-1, categories).astype(dtype), FEW)
    for partitions in by_ranges([values], [limits], EVERY):
        fine = counted(partitions.cuts[0], values)
        np.testing.assert_array_equal(partitions.fine[0], fine)
    assert partitions.fine.max() == min(categories, len(partitions.cuts[0]))


cuts_anywhere = st.lists(st.floats(allow_nan=False), max_size=30)


@given(cuts_anywhere, cuts_anywhere, st.integers(0, 40), st.lists(st.floats(), max_size=30))
@example([], [], 0, [0.0, np.nan])
@example([1.0], [1.0], 3, [1.0])
@example([-np.inf, np.inf], [0.0], 3, [np.inf])
@example([-1.7e308, 1.7e308], [], 3, [-np.inf, 0.0])
@example([2.0**53, 2.0**53 + 2], [2.0**53 + 28], 9, [np.nan])  # beside the last cut
@example([0.0, 1.0, 1.0 + 2**-52], [-5e-324, 5e-324], 9, [1.0 - 2**-53])
def test_a_coder_counts_cuts_anywhere(one, other, highest, more):
    """Cuts need not be those of a rule, and may be the same or infinite."""
    partitions = tuple(Partition(np.sort(np.array(cuts)), highest) for cuts in (one, other))
    with np.errstate(all="ignore"):
        values = trying(np.array([*one, *other]), np.float64, more)
    out = [np.full(len(values), 99) for _ in partitions]
    coder(partitions)(values, out)
    for (cuts, _), codes in zip(partitions, out, strict=True):
        np.testing.assert_array_equal(codes, np.minimum(counted(cuts, values), highest))


def halves(cuts):
    return (Partition(np.array(cuts), len(cuts)),)


def test_usual_cuts_are_looked_up_with_few_comparisons():
    statistic = MICr(B=150, c=5)
    for dtype, limits in itertools.product(FLOATS, [(0.0, 1.0), WithMissing(-1.0, 2.0)]):
        cut = statistic.cut([np.zeros(0, dtype)], [limits])
        partitions = tuple(
            Partition(part.cuts[0], len(part.cuts[0])) for part in (cut.masters, cut.rows)
        )
        found = coder(partitions)
        assert isinstance(found, Lookup)
        assert found.rounds == 1


@pytest.mark.parametrize(
    "cuts",
    [[], [-1.7e308, 0.0, 1.7e308], [0.0, 5e-324, 1e-323], [0, *np.geomspace(1e-9, 1, 200)]],
)
def test_cuts_that_no_table_has_room_for_are_searched(cuts):
    assert isinstance(coder(halves(cuts)), Search)


def test_without_comparisons_the_cells_would_decide():
    """The negative control: values of one cell lie on both sides of a cut."""
    cuts = np.arange(1, 150) / 150
    found, values = coder(halves(cuts)), trying(cuts, np.float64)
    assert isinstance(found, Lookup)
    codes = np.empty(len(values), np.uint16)
    found(values, [codes])
    np.testing.assert_array_equal(codes, counted(cuts, values))
    found._replace(rounds=0)(values, [codes])
    assert np.mean(codes != counted(cuts, values)) > 0.3


def test_cuts_on_the_borders_of_cells_have_to_be_rounded_as_values_are():
    """The negative control: a table by which values are rounded in another way than cuts were."""
    wrong = 0
    for count in range(3, 120):
        cuts = np.arange(float(count))
        found, values = coder(halves(cuts)), trying(cuts, np.float64)
        assert isinstance(found, Lookup)
        up = found.cells._replace(scale=np.nextafter(found.cells.scale, np.inf))
        right, other = (np.empty(len(values), np.uint16) for _ in range(2))
        found(values, [right])
        found._replace(cells=up)(values, [other])
        np.testing.assert_array_equal(right, counted(cuts, values))
        wrong += np.any(other != right)
    assert wrong > 5


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 6e4, -6e4, 0.5])
@pytest.mark.parametrize("limits", [(0.0, 1.0), WithMissing(0.0, 1.0)])
def test_no_code_depends_on_another_record(rng, dtype, value, limits):
    before = rng.normal(size=FEW + 7).astype(dtype)
    after = before.copy()
    after[5] = value
    one, two = (by_range([column], [limits], [2, 7, 30]) for column in (before, after))
    others = np.arange(len(before)) != 5
    np.testing.assert_array_equal(one.fine[:, others], two.fine[:, others])


def test_records_have_the_same_codes_in_batches_of_any_size(rng):
    """Of which short ones are searched, and long ones take several blocks."""
    n, limits = 5 * FEW + 123, [(-1.0, 1.0), WithMissing(-1.0, 1.0), (-2.0, 2.0)]
    columns = [rng.normal(size=n), rng.normal(size=n).astype(np.float32), rng.integers(-3, 3, n)]
    statistic = MICr(B=40, c=5)
    whole = statistic.cut(columns, limits)
    for rows in (100, FEW, FEW + 1, 4 * FEW):
        parts = [
            statistic.cut([column[start : start + rows] for column in columns], limits)
            for start in range(0, n, rows)
        ]
        for name in ("masters", "rows"):
            fine = np.concatenate([getattr(part, name).fine for part in parts], axis=1)
            np.testing.assert_array_equal(fine, getattr(whole, name).fine)


def test_columns_of_a_table_need_not_lie_together(rng):
    table = rng.random((FEW, 3))
    table.flags.writeable = False
    spread = by_range(list(table.T), [(0.0, 1.0)] * 3, [7, 30])
    together = by_range([column.copy() for column in table.T], [(0.0, 1.0)] * 3, [7, 30])
    np.testing.assert_array_equal(spread.fine, together.fine)


def test_bounds_of_two_kinds_are_not_taken_for_each_other():
    """They are equal tuples; looked up in one table, missing values would join the first part."""
    values = np.resize([-np.inf, 0.1, 0.6, 1.0], FEW)
    plain, missing = (
        by_range([values], [limits], [3]).fine[0, :4] for limits in ((0, 1), WithMissing(0, 1))
    )
    np.testing.assert_array_equal(plain, [0, 0, 1, 2])
    np.testing.assert_array_equal(missing, [0, 1, 2, 2])


def test_no_value_is_an_error_where_the_caller_wants_numpy_to_raise():
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    values = np.resize([np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, -5e-324], FEW)
    values[:1] = signalling
    for limits in [(0.0, 1.0), (-1e308, 1e300), (1e-300, 2e-300)]:
        by_range([values], [limits], [2, 7])  # the cuts are the caller's, and not of the values
        with np.errstate(all="raise"):
            found = by_range([values], [limits], [2, 7])
        np.testing.assert_array_equal(found.fine[0], counted(found.cuts[0], values))
