from fractions import Fraction

import jax
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax import MICr
from dpmic_jax.data.limits import CategoryLimits, WithMissing
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mic import batch, characteristic, coding
from dpmic_jax.mic.binning import _round, by_range, by_rank, codes
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.mic.ties import RandomTies, grouped_ties
from dpmic_jax.mic.xlogx import exact_gains

COLUMNS = {
    "float64": lambda rng: rng.random(200),
    "float32": lambda rng: rng.random(200, dtype=np.float32),
    "float16": lambda rng: rng.random(200).astype(np.float16),
    "int64": lambda rng: rng.integers(0, 12, 200),
    "uint8": lambda rng: rng.integers(0, 255, 200).astype(np.uint8),
}


@given(
    values=arrays(np.int64, st.integers(4, 40), elements=st.integers(0, 12)),
    sizes=st.lists(st.integers(2, 15), min_size=1, max_size=4, unique=True),
)
def test_grouped_ranks_follow_the_walk_over_tied_groups(values, sizes):
    columns = [values, np.arange(len(values))[::-1].copy(), values // 3]
    found = codes(by_rank(columns, sizes, grouped_ties))
    for size, parts in zip(sizes, found, strict=True):
        for column, code in zip(columns, parts, strict=True):
            np.testing.assert_array_equal(code, oracles.mass_codes(column, size))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("bounds", [(0, 1), (0.1, 0.7), (-3, 9), (0, 254)])
def test_widths_follow_the_exact_cuts(rng, kind, bounds):
    values = COLUMNS[kind](rng)
    sizes = [2, 3, 5, 6, 7, 12, 35]
    found = codes(by_range([values], [bounds], sizes))
    for size, code in zip(sizes, found, strict=True):
        np.testing.assert_array_equal(code[0], oracles.width_codes(values, size, *bounds))


def test_identifiers_beyond_float64_keep_their_last_bit():
    start = 2**60
    values = start + np.arange(8)
    (code,) = codes(by_range([values], [(start, start + 8)], [8]))
    np.testing.assert_array_equal(code[0], np.arange(8))
    (rank,) = codes(by_rank([values], [8], grouped_ties))
    np.testing.assert_array_equal(rank[0], np.arange(8))


def test_a_large_offset_does_not_merge_values():
    values = 1e9 + np.arange(16) / 16
    (code,) = codes(by_range([values], [(1e9, 1e9 + 1)], [16]))
    np.testing.assert_array_equal(code[0], np.arange(16))


def test_a_value_on_a_cut_opens_the_next_part_and_the_last_part_is_closed():
    (code,) = codes(by_range([np.array([0.0, 0.25, 0.5, 0.75, 1.0])], [(0, 1)], [4]))
    np.testing.assert_array_equal(code[0], [0, 1, 2, 3, 3])


def test_values_outside_go_to_the_outer_parts():
    (code,) = codes(by_range([np.array([-1e300, -0.1, 1.1, 1e300])], [(0, 1)], [3]))
    np.testing.assert_array_equal(code[0], [0, 0, 2, 2])


def test_a_two_valued_integer_column_is_split():
    (code,) = codes(by_range([np.array([0, 1, 1, 0], np.int8)], [(0, 1)], [2]))
    np.testing.assert_array_equal(code[0], [0, 1, 1, 0])


def test_integer_bounds_may_lie_outside_the_dtype():
    (code,) = codes(by_range([np.array([0, 100, 255], np.uint8)], [(-1000, 1000)], [4]))
    np.testing.assert_array_equal(code[0], [2, 2, 2])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(low=st.fractions(-5, 5, max_denominator=97), width=st.fractions("0.001", 5))
def test_a_grid_and_its_refinement_agree(dtype, low, width):
    values = np.linspace(float(low), float(low + width), 500).astype(dtype)
    sizes = [3, 6, 12, 60]
    found = codes(by_range([values], [(float(low), float(low + width))], sizes))
    for size, code in zip(sizes[:-1], found[:-1, 0], strict=True):
        np.testing.assert_array_equal(code, found[-1, 0] // (60 // size))


def test_float32_cuts_are_rounded_once():
    # Just above the midpoint of two float32: the nearest double is that midpoint, and
    # rounding it again would go down to the even one.
    value = 1 + Fraction(1, 2**24) + Fraction(1, 2**70)
    above = np.nextafter(np.float32(1), np.float32(2))
    assert np.float32(float(value)) != above
    assert _round(value, np.dtype(np.float32)) == above


def test_cuts_are_where_fine_bins_begin(rng):
    columns = [rng.integers(0, 9, 50), rng.random(50)]
    for partitions in (
        by_rank(columns, [2, 5, 7], grouped_ties),
        by_range(columns, [(0, 8), (0, 1)], [2, 5, 7]),
    ):
        for fine, cuts, values in zip(partitions.fine, partitions.cuts, columns, strict=True):
            np.testing.assert_array_equal(fine, np.searchsorted(cuts, values, side="right"))


def test_random_ties_split_equal_values_evenly(key):
    (code,) = codes(by_rank([np.zeros(1000), np.zeros(1000)], [4], RandomTies(key)))
    np.testing.assert_array_equal(np.bincount(code[0]), [250] * 4)
    # Columns are shuffled independently of each other and of the position of a record.
    for a, b in ((code[0], code[1]), (code[0], np.arange(1000) // 250)):
        assert oracles.information(oracles.table_of(a, b)) < 0.05


def test_random_ties_keep_the_order_of_values(key, rng):
    values = rng.integers(0, 5, 300)
    (code,) = codes(by_rank([values], [50], RandomTies(key)))
    for part in range(49):
        assert values[code[0] == part].max() <= values[code[0] == part + 1].min()


def test_random_ties_repeat_with_the_key_only():
    def draw(seed):
        return codes(by_rank([np.zeros(64)], [8], RandomTies(jax.random.key(seed))))

    np.testing.assert_array_equal(draw(1), draw(1))
    assert np.any(draw(1) != draw(2))


def missing_codes(values, parts, low, high):
    """From the words of the rule: missing | parts - 1 of equal width."""
    present = np.isfinite(values)
    code = np.zeros(len(values), int)
    code[present] = 1 + oracles.width_codes(values[present], parts - 1, low, high)
    return code


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("bounds", [(0, 1), (0.1, 0.7), (-3, 9), (0, 254)])
def test_missing_values_have_a_part_and_the_rest_is_of_equal_width(rng, kind, bounds):
    values = COLUMNS[kind](rng)
    if values.dtype.kind == "f":
        values[::3] = -np.inf
    sizes = [2, 3, 4, 7, 12, 35, 2]
    found = codes(by_range([values], [WithMissing(*bounds)], sizes))
    for size, code in zip(sizes, found, strict=True):
        np.testing.assert_array_equal(code[0], missing_codes(values, size, *bounds))


@given(
    values=arrays(np.float64, st.integers(4, 30), elements=st.floats(allow_nan=False, width=32)),
    sizes=st.lists(st.integers(2, 15), min_size=1, max_size=4),
)
def test_columns_with_and_without_missing_values_do_not_touch_each_other(values, sizes):
    values[values == np.inf] = 0
    other = np.linspace(0, 1, len(values))
    limits = [(0, 1), WithMissing(-5, 4), (-2.0, 2.0)]
    together = by_range([other, values, other], limits, sizes)
    found = codes(together)
    for index, (column, limit) in enumerate(zip([other, values, other], limits, strict=True)):
        np.testing.assert_array_equal(found[:, [index]], codes(by_range([column], [limit], sizes)))
        fine = np.searchsorted(together.cuts[index], column, side="right")
        np.testing.assert_array_equal(together.fine[index], fine)
    for size, code in zip(sizes, found[:, 1], strict=True):
        np.testing.assert_array_equal(code, missing_codes(values, size, -5, 4))


def test_missing_values_alone_decide_a_partition_of_two():
    values = np.array([-np.inf, -1e308, 0.2, 1e308, -np.inf])
    (code,) = codes(by_range([values], [WithMissing(0, 1)], [2]))
    np.testing.assert_array_equal(code[0], [0, 1, 1, 1, 0])


SMALL = MICr(B=12, c=2)


def scored(cut, pairs, count):
    """Information of pairs by the compiled programs, counted in one way."""
    score = batch.Scorer(
        count(cut.masters, cut.rows),
        cut.grids,
        exact_gains(cut.n),
        n=cut.n,
        devices=jax.devices()[:1],
        tile=len(pairs),
        pairs=len(pairs),
    )
    return np.concatenate(list(score(pairs)), axis=2)


def scores(x, y, count):
    """Information of the pair (x, y) with missing values in x, and the plan."""
    cut = SMALL.cut([x, y], [WithMissing(0, 1), (0, 1)])
    return scored(cut, np.array([[0, 1]]), count), cut.grids


@pytest.mark.parametrize("count", [coding.direct_codes, coding.refined_codes])
def test_both_ways_of_counting_score_missing_values_by_the_definition(rng, count):
    x, y = rng.random(40), rng.random(40)
    x[y > 0.6] = -np.inf
    expected = oracles.characteristic(
        x,
        y,
        SMALL.B,
        SMALL.c,
        lambda values, parts, axis: (missing_codes, oracles.width_codes)[axis](values, parts, 0, 1),
        oracles.merge_by_recursion,
    )
    found, grids = scores(x, y, count)
    (mic,) = characteristic.characteristic(grids, found).mic
    assert mic == pytest.approx(max(expected.values()), abs=1e-6)


def test_a_missing_part_moves_micr_by_the_bound_and_no_more(rng):
    """Theorem 3 of docs/sensitivity.md asks for cuts fixed in advance, not for equal widths."""
    n = 12

    def moved(x, y, new_x, new_y):
        mics = [
            characteristic.integer_mic(*reversed(scores(*columns, coding.direct_codes)))[0].item()
            for columns in ((x, y), (np.append(x[:-1], new_x), np.append(y[:-1], new_y)))
        ]
        return Fraction(abs(mics[1] - mics[0]), 2**characteristic.VALUE_BITS)

    corner = moved(np.full(n, -np.inf), np.zeros(n), 1.0, 1.0)
    assert float(corner) == pytest.approx(float(sensitivity.exact(SMALL, n)), abs=1e-7)
    for _ in range(40):
        x, y = rng.integers(-1, 3, (2, n)) / 2
        x, new_x = (np.where(values < 0, -np.inf, values) for values in (x, rng.choice([-1, 1.0])))
        assert moved(x, y, float(new_x), rng.choice([0.0, 1.0])) <= sensitivity.integer_path(
            SMALL, n
        )


def category_codes(values, parts, categories):
    """From the words of the rule: a spare part is for -1, else it shares the first."""
    if parts > categories:
        return values + 1
    width = oracles.width_codes(np.maximum(values, 0), parts, -0.5, categories - 0.5)
    return np.where(values < 0, 0, width)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float64])
@pytest.mark.parametrize("categories", [1, 2, 3, 5, 12, 40, 120])
def test_what_is_no_category_has_a_spare_part_or_shares_the_first(rng, categories, dtype):
    values = rng.integers(-1, categories, 300)
    sizes = [2, 3, 4, 7, 12, 35, 2]
    found = codes(by_range([values.astype(dtype)], [CategoryLimits(categories)], sizes))
    for size, code in zip(sizes, found, strict=True):
        np.testing.assert_array_equal(code[0], category_codes(values, size, categories))
        # Histograms take the finest partition of one size for its parts.
        alone = by_range([values.astype(dtype)], [CategoryLimits(categories)], [size])
        np.testing.assert_array_equal(alone.fine[0], code[0])


@pytest.mark.parametrize("categories", [300, 70_000])
def test_many_categories_do_not_wrap_around(categories):
    values = np.arange(-1, categories)
    (halves,) = codes(by_range([values], [CategoryLimits(categories)], [2]))
    np.testing.assert_array_equal(halves[0], category_codes(values, 2, categories))


def integers(columns, limits, statistic, count):
    """What the integer path makes of every pair of columns, before noise."""
    cut = statistic.cut(columns, limits)
    pairs = np.argwhere(~np.eye(len(columns), dtype=bool))
    return characteristic.integer_mic(cut.grids, scored(cut, pairs, count))


@pytest.mark.parametrize("count", [coding.direct_codes, coding.refined_codes])
@pytest.mark.parametrize("statistic", [SMALL, MICr(B=30, c=1.5)])
def test_categories_without_holes_have_the_integers_of_their_plain_bounds(rng, statistic, count):
    """So that a part for missing values costs nothing where none is missing."""
    ks = [1, 2, 3, 4, 5, 7, 11, 16, 40]
    base = rng.random(60)
    columns = [
        np.minimum((base + rng.normal(0, 0.1, 60)) % 1 * k, k - 1).astype(np.int8) for k in ks
    ]
    plain = integers(columns, [(-0.5, k - 0.5) for k in ks], statistic, count)
    assert plain.max() > 0
    np.testing.assert_array_equal(
        integers(columns, [CategoryLimits(k) for k in ks], statistic, count), plain
    )


def test_that_a_value_is_missing_may_be_what_depends(rng):
    """With two categories the part for -1 tells them from the rest."""
    y = rng.random(60)
    x = np.where(y < 0.5, -1, 0)
    limits = [CategoryLimits(1), (0.0, 1.0)]
    assert (
        integers([x, y], limits, SMALL, coding.direct_codes).max()
        > 0.9 * 2**characteristic.VALUE_BITS
    )


@given(
    table=arrays(np.int64, (3, 40), elements=st.integers(0, 30)),
    missing=st.booleans(),
)
def test_some_grids_of_a_table_are_the_table_cut_for_these_grids(table, missing):
    limits = [WithMissing(2, 25) if missing else (2, 25), (0, 7), (-4, 50)]
    both = MICrAndDistance(micr=SMALL).cut(list(table), limits)
    count = len(both.grids) - 1
    for places, alone in (
        (range(count), SMALL.cut(list(table), limits)),
        ([count], MICrAndDistance(micr=None).cut(list(table), limits)),
    ):
        some = both.of_grids(places)
        assert some.grids == alone.grids
        for found, expected in ((some.masters, alone.masters), (some.rows, alone.rows)):
            assert found.fine.dtype == expected.fine.dtype
            np.testing.assert_array_equal(found.fine, expected.fine)
            np.testing.assert_array_equal(found.edges, expected.edges)
            for one, other in zip(found.cuts, expected.cuts, strict=True):
                np.testing.assert_array_equal(one, other)
