"""Cuts on scales are the numbers nearest to the exact values, as decided in fractions."""

import decimal
from fractions import Fraction

import numpy as np
import oracles
import pytest

from dpmic_jax import MICr, MICrLap, micr, pairwise, seeded_key
from dpmic_jax.data.limits import ScaledBounds, WithMissing
from dpmic_jax.data.scales import middle, on_scale
from dpmic_jax.data.schema import MissingBin, Number
from dpmic_jax.data.source import open_source
from dpmic_jax.data.table import bounds_of
from dpmic_jax.mic.binning import by_range, codes

SIZES = [2, 3, 5, 6, 7, 12, 35]
FRACTIONS = sorted({Fraction(p, q) for q in SIZES for p in range(1, q)})
FLOATS = [np.float16, np.float32, np.float64]
TINY, LARGEST = 5e-324, float(np.finfo(np.float64).max)


def cuts(limits, dtype, sizes=SIZES):
    (found,) = by_range([np.zeros(4, dtype)], [limits], sizes).cuts
    return found


def side_of_log(value, low, high, share):
    """The sign of value - low (high / low)^share: both to the power of the denominator."""
    p, q = share.numerator, share.denominator
    there = Fraction(low) ** (q - p) * Fraction(high) ** p
    return 0 if value <= 0 else (value**q > there) - (value**q < there)


def side_of_sqrt(value, low, high, share):
    """The sign of value - (a sqrt(low) + b sqrt(high))^2, a + b = 1: the roots are squared away."""
    low, high, a = Fraction(low), Fraction(high), 1 - share
    rest = value - a**2 * low - share**2 * high
    there = 4 * (a * share) ** 2 * low * high
    square = rest * abs(rest)
    return (square > there) - (square < there)


SIDES = {"log": side_of_log, "sqrt": side_of_sqrt}
ENDS = {
    "log": [(1, 10**6), (0.1, 0.7), (18, 90), (1000.0, 1000.5)],
    "sqrt": [(0, 100), (0.1, 0.7), (3, 60_000), (0, 0.007)],
}
SCALED = [(scale, ends) for scale, every in ENDS.items() for ends in every]


def is_nearest(found, side, share, ends):
    """Whether no other float of the dtype is nearer to the exact value."""
    up, down = (np.nextafter(found, found.dtype.type(end)) for end in (np.inf, -np.inf))
    here, above, below = (Fraction(float(x)) for x in (found, up, down))
    return side((here + above) / 2, *ends, share) >= 0 >= side((below + here) / 2, *ends, share)


@pytest.mark.parametrize(("scale", "ends"), SCALED)
@pytest.mark.parametrize("dtype", FLOATS)
def test_cuts_are_the_nearest_floats(scale, ends, dtype):
    found = cuts(ScaledBounds(*ends, scale), dtype)
    assert len(found) == len(FRACTIONS)
    fits = [x for x in zip(found, FRACTIONS, strict=True) if np.isfinite(x[0])]
    assert all(is_nearest(cut, SIDES[scale], share, ends) for cut, share in fits)
    # The next float is told from the nearest one, and so is a root of a bit less.
    other = [np.nextafter(cut, dtype(np.inf)) for cut, _ in fits]
    assert not any(
        is_nearest(cut, SIDES[scale], share, ends)
        for cut, (_, share) in zip(other, fits, strict=True)
    )


@pytest.mark.parametrize(("scale", "ends"), SCALED)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_an_integer_reaches_a_cut_iff_it_is_at_or_above_the_exact_value(scale, ends, dtype):
    """The part of an integer is how many of the exact cuts it is at or above."""
    values = np.unique([*range(40), 81, 90, 100, 127, 200, 255]).astype(dtype)
    for size, code in zip(
        SIZES, codes(by_range([values], [ScaledBounds(*ends, scale)], SIZES)), strict=True
    ):
        shares = [Fraction(p, size) for p in range(1, size)]
        expected = [
            sum(v > 0 and SIDES[scale](Fraction(int(v)), *ends, share) >= 0 for share in shares)
            for v in values
        ]
        np.testing.assert_array_equal(code[0], expected)


POINTS = (0.0, 1.0, 1.5, 40.0, 1000.0, 6e4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cuts_between_breakpoints_are_exact_and_rounded_once(dtype):
    low, *inner, high = POINTS
    found = cuts(ScaledBounds(low, high, tuple(inner)), dtype)
    exact = []
    for share in FRACTIONS:
        steps = share * 5
        first = int(steps)
        start, stop = map(Fraction, POINTS[first : first + 2])
        exact.append(start + (stop - start) * (steps - first))
    expected = [oracles.nearest(value, np.dtype(dtype)) for value in exact]
    np.testing.assert_array_equal(found, np.array(expected, dtype))


def test_every_interval_between_breakpoints_has_an_equal_share_of_the_bins():
    low, *inner, high = POINTS
    values = np.array([0, 0.49, 0.5, 1, 1.24, 1.25, 1.5, 20, 21, 500, 999, 1000, 3e4, 5e4, 2e6])
    (code,) = codes(by_range([values], [ScaledBounds(low, high, tuple(inner))], [10]))
    np.testing.assert_array_equal(code[0], [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 9])


def test_the_cuts_of_a_million_by_six_are_the_powers_of_ten():
    found = cuts(ScaledBounds(1, 10**6, "log"), np.float64, [6])
    assert found.tolist() == [10.0, 100.0, 1e3, 1e4, 1e5]
    assert cuts(ScaledBounds(0, 100, "sqrt"), np.float64, [4]).tolist() == [6.25, 25.0, 56.25]


@pytest.mark.parametrize("scale", ["log", "sqrt", (3.0, 4.5, 100.0)])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_a_grid_and_its_refinement_agree_on_any_scale(scale, dtype, rng):
    values = np.exp(rng.uniform(0, 7, 500)).astype(dtype)
    sizes = [3, 6, 12, 60]
    for limits in (ScaledBounds(1.1, 870.3, scale), WithMissing(1.1, 870.3, scale)):
        missing = isinstance(limits, WithMissing)
        found = codes(by_range([values], [limits], [size + missing for size in sizes]))
        for size, code in zip(sizes[:-1], found[:-1, 0], strict=True):
            finest = found[-1, 0].astype(int) - missing
            np.testing.assert_array_equal(code, finest // (60 // size) + missing)


@pytest.mark.parametrize(
    ("low", "high"), [(TINY, LARGEST), (1.0, np.nextafter(1.0, 2.0)), (LARGEST / 2, LARGEST)]
)
@pytest.mark.parametrize("scale", ["log", "sqrt"])
def test_cuts_never_decrease_and_stay_between_the_bounds(low, high, scale):
    found = cuts(ScaledBounds(low, float(high), scale), np.float64)
    assert (np.diff(found) >= 0).all()
    assert (low <= found).all()
    assert (found <= high).all()


@pytest.mark.parametrize("scale", ["log", "sqrt"])
def test_what_the_process_has_set_for_decimals_changes_nothing(scale):
    share = Fraction(2, 7)
    expected = on_scale(0.3, 1e6, scale)(share)
    with decimal.localcontext() as context:
        context.prec, context.rounding, context.Emax, context.Emin = 3, decimal.ROUND_UP, 2, -2
        context.traps[decimal.Inexact] = True
        assert on_scale(0.3, 1e6, scale)(share) == expected


# --- the middle ----------------------------------------------------------------------------

MIDDLES = [
    (Number(1, 10**6, scale="log"), 1000),
    (Number(0, 100, scale="sqrt"), 25),
    (Number(0, 100), 50),
    (Number(0, 100, breakpoints=(7,)), 7),
    (Number(0, 100, breakpoints=(7, 9)), 8),
    (Number(0, 9, whole=True), 4.5),
    (Number(0, 9, whole=True, breakpoints=(1, 2, 3)), 2),
]


@pytest.mark.parametrize(("rule", "value"), MIDDLES)
def test_a_missing_value_is_in_the_middle_bin_of_the_scale(rule, value):
    source = open_source({"x": [None, rule.low, rule.high, "?"]}, {"x": rule})
    ((column,),) = source.batches(4)
    assert column.tolist() == [value, rule.low, rule.high, value]
    for bins in (3, 5, 9):
        (code,) = codes(by_range([column], source.bounds, [bins]))
        np.testing.assert_array_equal(code[0], [bins // 2, 0, bins - 1, bins // 2])


def test_missing_values_with_a_bin_leave_the_others_on_the_scale():
    rule = Number(1, 10**6, scale="log", missing=MissingBin())
    source = open_source({"x": [None, 0, 1, 9, 11, 101, 10**5, 10**7]}, {"x": rule})
    ((column,),) = source.batches(8)
    (code,) = codes(by_range([column], source.bounds, [7]))
    np.testing.assert_array_equal(code[0], [0, 1, 1, 1, 2, 3, 6, 6])


# --- bounds in Python ----------------------------------------------------------------------


def test_micr_on_a_scale_is_that_of_the_column_taken_to_it(rng):
    x = (rng.integers(0, 96, 60) + 0.5) / 96  # far from the cuts, which rounding may move
    y, rest = (x + rng.random(60)) / 2, {"statistic": MICr(B=12, c=2)}
    points = [0, 1, 3, 100]
    there = [
        (10 ** (6 * x), ScaledBounds(1, 10**6, "log")),
        ((10 * x) ** 2, ScaledBounds(0, 100, "sqrt")),
        (np.interp(3 * x, range(4), points), ScaledBounds(0, 100, (1.0, 3.0))),
    ]
    flat = pairwise(np.stack([x, x, x, y], axis=1), bounds=[(0, 1)] * 4, **rest)
    scaled = [*there, (y, (0, 1))]
    columns, limits = zip(*scaled, strict=True)
    found = pairwise(np.stack(columns, axis=1), bounds=limits, **rest)
    np.testing.assert_array_equal(found.matrix, flat.matrix)
    one = micr(columns[0], y, bounds=[limits[0], (0, 1)], B=12, c=2)
    assert one == micr(x, y, bounds=[(0, 1)] * 2, B=12, c=2)


def test_a_mechanism_on_a_scale_releases_what_it_does_of_the_column_taken_to_it(rng):
    x, y = rng.random((2, 200))
    mechanism, key = MICrLap(epsilon=1.0, statistic=MICr(B=12, c=2)), seeded_key(3)
    scaled = ScaledBounds(1, 10**6, "log")
    plain = mechanism.release([None, *x], [0.5, *y], bounds=[(0, 1), (0, 1)], key=key)
    there = mechanism.release([None, *10 ** (6 * x)], [0.5, *y], bounds=[scaled, (0, 1)], key=key)
    assert there.value == plain.value


def test_a_linear_scale_is_no_scale():
    assert bounds_of("x", [ScaledBounds(0, 1, "linear")], "bounds") == ((0.0, 1.0),)
    assert middle((0, 1)) == middle(ScaledBounds(0, 1, "linear")) == 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (ScaledBounds(0, 1, "log"), "bounds of 'x': expected low > 0 on a log scale"),
        (ScaledBounds(-1, 1, "sqrt"), "low >= 0"),
        (ScaledBounds(0, 1, "cubic"), "linear, log, sqrt"),
        (ScaledBounds(0, 1, (0.5, 0.5)), "increasing order"),
        (ScaledBounds(0, 1, (2.0,)), "increasing order"),
        (ScaledBounds(1, 0, "sqrt"), "low < high"),
        (ScaledBounds(0, np.nan, "sqrt"), "finite"),
        ((0, 1, "log"), "low, high"),
    ],
)
def test_scales_that_are_none_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        bounds_of("x", [given], "bounds")
