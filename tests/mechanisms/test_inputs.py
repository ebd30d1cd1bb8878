"""What mechanisms are given: public structure first, and then values, none of which is refused."""

from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpmic_jax import MICr, MICrLap, VariationLap
from dpmic_jax.data.schema import Categories
from dpmic_jax.data.source import open_source
from dpmic_jax.data.table import Table, bounds_of, one_pair, positions
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mechanisms.histogram import cell_counts
from dpmic_jax.mechanisms.inputs import held_column, held_pair, held_table
from dpmic_jax.mic import batch
from dpmic_jax.mic.binning import by_range, codes
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.variation import variation
from dpmic_jax.mic.xlogx import exact_gains

PAIR = np.array([[0, 1]])
GRADES = Categories((0, 1, 3), ordered=True)


class NeverLookedAt:
    """A cell whose value no one may ask for."""

    def __float__(self):
        raise AssertionError

    __eq__ = __hash__ = __str__ = __repr__ = __int__ = __float__


def test_one_float_does_not_cut_the_integers_of_others_elsewhere():
    """0.5 of (0.2, 1.8) is 1 + 2^-55: the float 1 is at it, and the integer 1 was not."""
    x = [i % 2 for i in range(200)]
    limits, statistic = [(0.2, 1.8), (-0.5, 1.5)], MICr(B=4, c=1)
    found = []
    for one in (x, [0.0, *x[1:]], [False, *x[1:]], ["0", *x[1:]], [2**64, *x[1:]]):
        table = held_pair(one, x).coded(limits)
        cut = statistic.cut(table.columns, limits)
        (score,) = batch.score_pairs(cut, PAIR, exact_gains(200))
        found.append(int(integer_mic(cut.grids, score)[0]))
    assert found[0] > 0.99 * 2**VALUE_BITS
    assert found[:3] == [found[0]] * 3
    most = sensitivity.integer_path(statistic, 200)
    assert all(Fraction(abs(value - found[0]), 2**VALUE_BITS) <= most for value in found)


def test_one_float_does_not_move_total_variation_either():
    x = [i % 2 for i in range(200)]
    limits = [(0.2, 1.8), (-0.5, 1.5)]
    scores = [
        int(variation(cell_counts(held_pair(one, x).coded(limits), limits, PAIR, 4))[0])
        for one in (x, [0.0, *x[1:]], [2**64, *x[1:]])
    ]
    assert scores[0] == scores[1]
    assert abs(scores[2] - scores[0]) <= sensitivity.variation(200) * 200**2


@pytest.mark.parametrize(
    "mechanism",
    [MICrLap(epsilon=1e3, statistic=MICr(B=4, c=1)), VariationLap(epsilon=1e3, parts=4)],
)
def test_a_release_is_the_same_whatever_type_a_number_has(mechanism):
    """It was 0.0 for integers and 1.0 with one float among them, where 0.045 is declared."""
    x, bounds = [i % 2 for i in range(200)], [(0.2, 1.8), (-0.5, 1.5)]
    values = {
        mechanism.release([one, *x[1:]], x, bounds=bounds, key=jax.random.key(0)).value
        for one in (0, 0.0, False, "0", Decimal(0), np.int8(0), np.float32(0))
    }
    assert len(values) == 1


def test_structure_is_all_that_is_looked_at_before_coding():
    cells = [NeverLookedAt() for _ in range(5)]
    assert (held_pair(cells, tuple(cells)).n, held_column(cells).n) == (5, 5)
    table = held_table([[one, one] for one in cells])
    assert (table.names, table.n) == (("x0", "x1"), 5)
    assert bounds_of(table.names, {"x1": (0, 1), "x0": (0, 2)}, "bounds") == ((0, 2), (0, 1))
    np.testing.assert_array_equal(positions(table.names, [("x1", 0)]), [[1, 0]])
    np.testing.assert_array_equal(table.coded([(0, 1), (2, 4)]).columns, [[0.5] * 5, [3.0] * 5])


@pytest.mark.parametrize("limits", [(0, 3), (Fraction(0), Fraction(3)), (False, 3)])
def test_what_is_no_number_counts_as_the_middle_of_the_bounds(limits):
    cells = [None, "abc", "2", True, float("nan"), float("-inf"), 10**400, Decimal(1), b"1"]
    (column,) = held_column(cells).coded([limits]).columns
    np.testing.assert_array_equal(column, [1.5, 1.5, 2, 1, 1.5, -np.inf, np.inf, 1, 1.5])
    assert column.dtype == np.float64


def test_without_bounds_what_is_missing_has_the_lowest_rank():
    (column,) = held_column([3, None, "x", -(10**300), 2]).coded(None).columns
    np.testing.assert_array_equal(np.argsort(column, kind="stable"), [1, 2, 3, 4, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_stay_as_they_are(dtype):
    values = np.array([0.1, 0.2, np.nan, 0.4], dtype)
    for given in (values, jnp.asarray(values), pd.Series(values)):
        (column,) = held_column(given).coded([(0, 1)]).columns
        assert column.dtype == dtype
        np.testing.assert_array_equal(column, np.where(np.isnan(values), dtype(0.5), values))


@pytest.mark.parametrize(
    ("dtype", "limits", "wide"),
    [
        (np.float16, (0, 65504), False),
        (np.float16, (0, 65505), True),
        (np.float16, (-200_000, 0), True),
        (np.float16, (0, 200_000), True),
        (np.float32, (0, 200_000), False),
        (np.float32, (-1e39, 1), True),
    ],
)
def test_the_middle_is_in_its_part_whatever_a_short_float_holds(dtype, limits, wide):
    """100000 is inf as a float16, and so were the cut there and all that is missing."""
    low, high = limits
    values = np.array([np.nan, -np.inf, 0, np.inf, 1], dtype)
    for given in (values, pd.Series(values), np.zeros(5, dtype)):
        mechanism = held_column(given).coded([limits]).columns[0]
        (screened,) = next(open_source({"x": given}, {"x": limits}).batches(5))
        assert mechanism.dtype == screened.dtype == (np.float64 if wide else dtype)
        np.testing.assert_array_equal(mechanism, screened)
    exact = [(low + high) / 2, low, min(max(0, low), high), high, min(max(1, low), high)]
    expected = [min(int(Fraction(x - low) * 3 / Fraction(high - low)), 2) for x in exact]
    (column,) = held_column(values).coded([limits]).columns
    np.testing.assert_array_equal(codes(by_range([column], [limits], [3]))[0, 0], expected)


def test_masked_values_are_missing():
    hidden = [False, True, False, False]
    for dtype in ("f4", "f8", "i8", "u1", "U4", "S4", object):
        values = np.ma.array(np.array([1, 3, 1, 0]).astype(dtype), mask=hidden)
        (column,) = held_column(values).coded([(0, 4)]).columns
        np.testing.assert_array_equal(column, [1, 2, 1, 0])
        assert column.dtype == (np.float32 if dtype == "f4" else np.float64)
        table = held_table(np.ma.stack([values, values], axis=1)).coded([(0, 4)] * 2)
        np.testing.assert_array_equal(table.columns, [[1, 2, 1, 0]] * 2)
        (coded,) = next(open_source({"x": values}, {"x": GRADES}).batches(4))
        np.testing.assert_array_equal(coded, [1, -1, 1, 0])
    with pytest.raises(ValueError, match="NaN"):
        one_pair(np.ma.array([1.0, 2, 3, 4], mask=hidden), [1, 2, 3, 4])


def test_tables_have_the_names_that_they_had(rng):
    array = rng.random((6, 2))
    for given, names in (
        (array, ("x0", "x1")),
        (jnp.asarray(array, jnp.float32), ("x0", "x1")),
        (array.tolist(), ("x0", "x1")),
        (pd.DataFrame(array), (0, 1)),
        (pd.DataFrame(array, columns=["a", "b"]), ("a", "b")),
        (pl.DataFrame({"a": array[:, 0], "b": array[:, 1]}), ("a", "b")),
        ({"a": array[:, 0].tolist(), "b": array[:, 1]}, ("a", "b")),
        (Table(("a", "b"), tuple(array.T)), ("a", "b")),
    ):
        found = held_table(given)
        assert found.names == names
        np.testing.assert_allclose(np.stack(found.coded([(0, 1)] * 2).columns, 1), array, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: held_pair([1, 2, 3], [1, 2, 3]), "x to have at least 4 records, got 3"),
        (lambda: held_pair([1] * 5, [1] * 4), "same number of records, got 5 and 4"),
        (lambda: held_pair(np.zeros((5, 2)), [1] * 5), "expected x to have one dimension"),
        (lambda: held_pair(np.zeros(5) * 1j, [1] * 5), "column 'x', got complex numbers"),
        (lambda: held_pair(np.zeros(5, "M8[D]"), [1] * 5), "column 'x', got dates"),
        (lambda: held_table([[1, 2], [3]] * 3), "records of one length"),
        (lambda: held_table(np.zeros(5)), "expected X to be a data frame or an array"),
        (lambda: held_table(np.zeros((5, 0))), "expected X to have columns, got none"),
        (lambda: held_table({"a": [1] * 4, "b": [1] * 5}), "same number of records"),
        (lambda: held_table(two_of_one_name()), "expected X to have distinct column names"),
    ],
)
def test_structure_that_is_none_is_refused(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make()


def two_of_one_name():
    return pd.DataFrame(np.zeros((5, 2)), columns=["a", "a"])
