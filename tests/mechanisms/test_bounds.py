"""Private ranges: exact loss on tiny data, exact counting, and how good they are."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from dpmic_jax.dp.accounting.events import PureDP, ReplaceOne
from dpmic_jax.dp.audit import exact_loss, replace_one
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.mechanisms.bounds import (
    EqualCells,
    OctaveCells,
    QuantileBounds,
    counts_below,
    private_bounds,
)

UNIT = (0.0, 1.0)


def tiny(epsilon, cells=4, **settings):
    """A rule that takes few records: it may fail."""
    return QuantileBounds(
        epsilon=epsilon, within=UNIT, cells=EqualCells(count=cells), failure=0.99, **settings
    )


def law_of(rule):
    return lambda data: rule.pmf(np.array(data))


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "records", "n"),
    [
        (tiny(1.0, cells=2), (0.2, 0.7), 6),
        (tiny(1.0), (0.1, 0.3, 0.6, 0.9), 12),
        (tiny(3.0), (0.1, 0.3, 0.6, 0.9), 6),
        (tiny(3.0, cells=7), (-5.0, 0.3, 0.5, 8.0), 6),
        (tiny(3.0, quantiles=(0.25, 0.5)), (0.1, 0.3, 0.6, 0.9), 8),
    ],
)
def test_exact_loss_over_all_neighbours_is_within_epsilon(rule, records, n):
    assert exact_loss(law_of(rule), replace_one(records, n)).at_most(rule.epsilon)


def test_a_range_for_three_halves_of_epsilon_is_caught():
    rule = tiny(1.5)
    assert rule.ranks(12) == (4, 4)
    found = exact_loss(law_of(rule), replace_one((0.1, 0.3, 0.6, 0.9), 12))
    assert found.at_most(1.5)
    assert not found.at_most(1.0)


def replace_two(records, n):
    for rest in itertools.combinations_with_replacement(records, n - 2):
        pairs = itertools.combinations_with_replacement(records, 2)
        yield [tuple(sorted((*rest, *pair))) for pair in pairs]


def test_two_records_of_a_person_are_protected_where_that_is_asked_for():
    records, n = (0.1, 0.3, 0.6), 8
    one, two = (tiny(3.0, cells=3, relation=ReplaceOne(r)) for r in (1, 2))
    assert exact_loss(law_of(two), replace_two(records, n)).at_most(3.0)
    assert not exact_loss(law_of(one), replace_two(records, n)).at_most(3.0)
    assert two.event(n).relation == ReplaceOne(2)
    assert two.event(n).sensitivity == 2


@given(arrays(np.int64, 12, elements=st.integers(-3, 25)), st.integers(0, 11), st.integers(-3, 25))
def test_one_record_moves_no_score_by_more_than_one(values, place, other):
    rule = QuantileBounds(epsilon=12.0, within=(0, 20), cells=EqualCells(count=20), failure=0.9)
    neighbour = values.copy()
    neighbour[place] = other
    for here, there in zip(rule.scores(values), rule.scores(neighbour), strict=True):
        assert np.abs(here - there).max() <= 1


def test_releases_follow_the_exact_law():
    rule, x = tiny(2.0), np.array([0.1, 0.1, 0.3, 0.3, 0.3, 0.6, 0.9, 0.9])
    draws = 600
    found = Counter(rule.release(x, key=jax.random.key(seed)).bounds for seed in range(draws))

    def p_value(law):
        ranges = sorted(law)
        expected = draws * np.array([float(law[ends]) for ends in ranges])
        counts = np.array([found[ends] for ends in ranges])
        assert counts.sum() == draws
        return stats.chisquare(counts, expected * draws / expected.sum()).pvalue

    assert p_value(rule.pmf(x)) > 1e-6
    assert p_value(rule.pmf(1 - x)) < 1e-6


# --- scores --------------------------------------------------------------------------------


@given(arrays(np.float64, 15, elements=st.integers(-2, 34).map(lambda i: i / 32)))
def test_exactly_the_cell_of_the_record_sought_has_score_zero(values):
    rule = tiny(4.0, cells=5, quantiles=(0.2, 0.9))
    edges = np.array(rule.cells.edges(rule.within))
    from_low, from_high = rule.ranks(15)
    sought = np.sort(values)[[from_low - 1, -from_high]]
    for score, record in zip(rule.scores(values), sought, strict=True):
        (best,) = np.flatnonzero(score == 0)
        clipped = min(max(record, 0.0), 1.0)
        assert edges[best] <= clipped
        assert clipped < edges[best + 1] or (best == 4 and clipped == 1)


@pytest.mark.parametrize(
    ("dtype", "within"),
    [
        (np.int64, (-(2.0**62), 2.0**62)),
        (np.int64, (2.0**60, 2.0**60 + 2**12)),
        (np.uint64, (0.0, 2.0**64)),
        (np.uint8, (-1000.0, 1000.5)),
        (np.int8, (0.0, 1.0)),
        (np.float16, (-3.0, 3.1)),
        (np.float32, (0.1, 0.1000001)),
        (np.float64, (0.1, 0.10000000000001)),
    ],
)
def test_records_are_counted_as_the_floats_nearest_to_them(dtype, within, rng):
    """Integers too: which of them a container holds exactly may depend on another record."""
    edges = EqualCells(count=37).edges(within)
    centre = np.array([edge for edge in edges for _ in range(6)])
    if np.dtype(dtype).kind == "f":
        values = centre.astype(dtype)
        values = np.nextafter(values, rng.choice([-np.inf, np.inf], len(values)).astype(dtype))
    else:
        limits, steps = np.iinfo(dtype), rng.integers(-1, 2, len(centre))
        near = [math.ceil(c) + int(step) for c, step in zip(centre, steps, strict=True)]
        values = np.array([min(max(v, limits.min), limits.max) for v in near], dtype)
    exact = [Fraction(float(v.item())) for v in values]
    expected = [sum(v < Fraction(edge) for v in exact) for edge in edges[1:-1]]
    assert counts_below(values, edges).tolist() == [0, *expected, len(values)]


@pytest.mark.parametrize("within", [(0.0, 1.0), (-0.1, 0.7), (-1e308, 1e308), (1e-310, 1e-300)])
def test_equal_cells_are_cut_exactly_and_rounded_once(within):
    low, high = map(Fraction, within)
    assert EqualCells(count=30).edges(within) == tuple(
        float(low + (high - low) * i / 30) for i in range(31)
    )


def test_cells_that_floats_cannot_tell_apart_are_one():
    edges = EqualCells(count=4096).edges((2.0**53, 2.0**53 + 8))
    assert edges == tuple(2.0**53 + i for i in (0, 2, 4, 6, 8))


def test_octave_cells_double_with_every_octave_on_both_sides_of_zero():
    edges = OctaveCells(smallest=0.5, steps=2).edges((-1.2, 5.0))
    assert edges == (-1.2, -1.0, -0.75, -0.5, 0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
    positive = OctaveCells(smallest=1.0, steps=64).edges((10.0, 1e9))
    ratios = np.divide(positive[1:], positive[:-1])
    assert positive[0] == 10
    assert positive[-1] == 1e9
    assert ratios.max() <= 1 + 1 / 64


# --- accuracy ------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [EqualCells(), OctaveCells(smallest=0.001)])
def test_many_records_leave_the_shares_outside_that_were_asked_for(cells, rng):
    x = rng.normal(size=100_000)
    rule = QuantileBounds(epsilon=1.0, within=(-50, 50), cells=cells, quantiles=(0.01, 0.98))
    found = rule.release(x, key=jax.random.key(3))
    assert np.mean(x < found.low) == pytest.approx(0.01, abs=0.001)
    assert np.mean(x > found.high) == pytest.approx(0.02, abs=0.001)


def test_ends_stay_among_the_records_as_often_as_promised(rng):
    """The promise is a bound: 1 % of ranges may have an end further off than `margin`."""
    rule = QuantileBounds(epsilon=1.0, within=(-1000, 1000))
    x = np.sort(rng.normal(size=1000))
    (from_low, from_high), margin, missed = rule.ranks(1000), rule.margin, 0
    assert from_low == from_high == margin
    for seed in range(200):
        found = rule.release(x, key=jax.random.key(seed))
        cell = 2000 / 2**14
        inside = x[0] - cell <= found.low <= x[2 * margin] and x[-2 * margin] <= found.high
        missed += not (inside and found.high <= x[-1] + cell)
    assert stats.binomtest(missed, 200, 0.01, alternative="greater").pvalue > 1e-6


def test_the_margin_is_what_the_law_needs_to_miss_no_more_often_than_promised():
    rule = QuantileBounds(
        epsilon=2.0, within=UNIT, cells=EqualCells(count=30), failure=0.05, quantiles=(0, 1)
    )
    n = 2 * rule.margin + 10
    law = rule.pmf(np.full(n, 0.999))  # all cells but the last are empty: the worst case
    assert sum(p for (low, _), p in law.items() if low < 29 / 30) <= 0.05
    assert rule.margin == math.ceil(math.log(30 / 0.05) / float(rule.selector().rate))


@pytest.mark.parametrize("value", [-7.25, 0.0, 3.3])
def test_a_column_of_one_value_gets_a_cell_around_it(value, key):
    found = private_bounds(np.full(1000, value), epsilon=1.0, within=(-10, 10), key=key)
    assert found.low <= value < found.high
    assert found.high - found.low == pytest.approx(20 / 2**14)


@pytest.mark.parametrize(("value", "low", "high"), [(-99, -8, -7.5), (99, 7.5, 8)])
def test_values_all_outside_get_the_cell_at_that_end(value, low, high, key):
    rule = QuantileBounds(epsilon=1.0, within=(-8, 8), cells=EqualCells(count=32))
    assert rule.release(np.full(1000, value), key=key).bounds == (low, high)


@given(st.integers(0, 2**32 - 1))
def test_low_is_below_high_even_where_noise_turns_them_round(seed):
    rule = tiny(0.5, cells=3)
    found = rule.release(np.linspace(0, 1, 20), key=jax.random.key(seed))
    assert 0 <= found.low < found.high <= 1


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float32, np.float64])
def test_the_range_depends_on_values_and_not_on_their_type(dtype, rng, key):
    x = rng.integers(-300, 300, 2000)
    found = private_bounds(x.astype(dtype), epsilon=1.0, within=(-1000, 1000), key=key)
    assert found == private_bounds(x, epsilon=1.0, within=(-1000, 1000), key=key)
    assert isinstance(found.low, float)


# --- events and keys -----------------------------------------------------------------------


def test_the_event_is_known_before_the_data(rng, key):
    rule = QuantileBounds(epsilon=0.7, within=(0, 10))
    event = rule.event(1000, label="age")
    assert event.guarantee == PureDP(0.7)
    assert event.mechanism == "private_bounds"
    assert event.sensitivity == 1
    assert dict(event.settings)["within"] == "(0.0, 10.0)"
    found = rule.release(rng.uniform(0, 10, 1000), key=key, label="age")
    assert found.event == event
    assert not found.key_is_secret
    assert rule.release(rng.uniform(0, 10, 1000), key=secret_key()).key_is_secret


def test_seeds_reproduce_and_labels_and_settings_make_other_noise(rng):
    x = rng.normal(size=1000)
    rule = QuantileBounds(epsilon=0.5, within=(-9, 9))

    def ends(rule=rule, seed=1, label=""):
        return rule.release(x, key=jax.random.key(seed), label=label).bounds

    assert ends() == ends()
    others = [ends(seed=2), ends(label="x"), ends(QuantileBounds(epsilon=0.5, within=(-9, 9.5)))]
    assert len({ends(), *others}) == 4


def test_the_two_ends_have_noise_of_their_own():
    rule, n = QuantileBounds(epsilon=1.0, within=UNIT), 401
    x = np.linspace(0, 1, n)
    found = [rule.release(x, key=jax.random.key(seed)).bounds for seed in range(60)]
    low, high = np.array(found).T
    # The scores mirror each other, so shared noise would show as correlation or its opposite.
    assert abs(np.corrcoef(low, high)[0, 1]) < 0.6
    assert abs(np.corrcoef(low, 1 - high)[0, 1]) < 0.6


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        QuantileBounds(epsilon=epsilon, within=UNIT)


@pytest.mark.parametrize(
    "within", [(1, 0), (1, 1), (0, math.inf), (math.nan, 1), (0, 1, 2), 5, (2**60, 2**60 + 1)]
)
def test_an_interval_that_is_none_is_refused(within):
    with pytest.raises(ValueError, match="within"):
        QuantileBounds(epsilon=1.0, within=within)


@pytest.mark.parametrize("quantiles", [(0.5, 0.5), (0.9, 0.1), (-0.1, 1), (0, 1.1), (math.nan, 1)])
def test_quantiles_that_are_none_are_refused(quantiles):
    with pytest.raises(ValueError, match="quantiles"):
        QuantileBounds(epsilon=1.0, within=UNIT, quantiles=quantiles)


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, math.nan])
def test_a_failure_that_is_no_chance_is_refused(failure):
    with pytest.raises(ValueError, match="failure"):
        QuantileBounds(epsilon=1.0, within=UNIT, failure=failure)


def test_cells_that_are_none_are_refused():
    with pytest.raises(ValueError, match="count"):
        EqualCells(count=1)
    with pytest.raises(ValueError, match="smallest"):
        OctaveCells(smallest=0.0)
    with pytest.raises(ValueError, match="smallest"):
        QuantileBounds(epsilon=1.0, within=UNIT, cells=OctaveCells(smallest=2.0))
    with pytest.raises(ValueError, match="fewer steps"):
        OctaveCells(smallest=1e-300, steps=10_000).edges(UNIT)
    with pytest.raises(TypeError, match="EqualCells"):
        QuantileBounds(epsilon=1.0, within=UNIT, cells=4096)


def test_too_few_records_are_refused_before_any_is_looked_at():
    rule = QuantileBounds(epsilon=1.0, within=UNIT)
    assert rule.ranks(2 * rule.margin) == (rule.margin, rule.margin)
    with pytest.raises(ValueError, match="too few"):
        rule.event(2 * rule.margin - 1)


@pytest.mark.parametrize(
    ("odd", "as_if"), [(math.nan, 0.5), ("text", 0.5), (None, 0.5), (math.inf, 1), (-math.inf, 0)]
)
def test_no_value_is_refused_and_what_is_no_number_counts_as_the_middle(odd, as_if, key):
    rule, x = QuantileBounds(epsilon=1.0, within=UNIT), np.linspace(0, 1, 200).tolist()
    ends = [rule.release([value] * 150 + x, key=key).bounds for value in (odd, as_if)]
    assert ends[0] == ends[1]


def test_columns_that_are_none_are_refused(key):
    with pytest.raises(TypeError, match="numbers"):
        private_bounds(np.zeros(500, "M8[D]"), epsilon=1.0, within=UNIT, key=key)
    with pytest.raises(ValueError, match="one dimension"):
        private_bounds(np.zeros((500, 2)), epsilon=1.0, within=UNIT, key=key)


def test_keys_not_fit_for_noise_are_refused():
    x = np.zeros(500)
    with pytest.raises(ValueError, match="rbg"):
        private_bounds(x, epsilon=1.0, within=UNIT, key=jax.random.key(0, impl="rbg"))
    with pytest.raises(TypeError, match="key"):
        private_bounds(x, epsilon=1.0, within=UNIT, key=0)
