import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.arithmetic.intervals import (
    SCALE,
    bells,
    exact,
    exponential,
    growth,
    integer,
    powers,
    rounded_up,
)


def series(x, terms):
    """Partial sums of e^-x: for 0 <= x <= 1 they lie above and below it in turn."""
    total, term = Fraction(0), Fraction(1)
    for i in range(terms):
        total += term
        term *= -x / (i + 1)
    return total


@given(st.fractions(0, 1, max_denominator=10**9))
def test_exponential_is_enclosed_by_its_series(x):
    found = exponential(x)
    above, below = series(x, 81) * 2**SCALE, series(x, 80) * 2**SCALE
    assert found.low <= above
    assert below <= found.high
    assert found.high - found.low <= 4


@given(st.fractions(0, 60, max_denominator=10**9))
def test_exponential_of_a_half_is_the_root(x):
    half, whole = exponential(x / 2), exponential(x)
    assert half.times(half).low <= whole.high
    assert whole.low <= half.times(half).high


def test_exponential_is_enclosed_for_large_x():
    assert exponential(Fraction(10**12)) == (0, 1)
    found = exponential(Fraction(200))
    assert found.low / 2**SCALE == pytest.approx(math.exp(-200), rel=1e-12)


def test_powers_and_bells_are_powers():
    ratio = exponential(Fraction(1, 7))
    for j, found in enumerate(powers(ratio, 30)):
        truth = exponential(Fraction(j, 7))
        assert found.low <= truth.high
        assert truth.low <= found.high
    for j, found in enumerate(bells(ratio, 15)):
        truth = exponential(Fraction(j * j, 7))
        assert found.low <= truth.high
        assert truth.low <= found.high
        assert found.high - found.low < 2**20


@given(st.fractions(0, 60, max_denominator=10**6))
def test_growth_is_a_tight_lower_bound_on_expm1(x):
    assert growth(x) <= Fraction(2**SCALE, exponential(x).low) - 1
    assert float(growth(x)) == pytest.approx(math.expm1(x), rel=1e-12)


def test_rounding_up_adds_less_than_one_unit():
    third = Fraction(1, 3)
    assert 0 < rounded_up(third) - third < Fraction(1, 2**127)
    assert rounded_up(Fraction(3, 4)) == Fraction(3, 4)


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf])
def test_only_finite_positive_numbers_are_accepted(value):
    with pytest.raises(ValueError, match="0 < epsilon < inf"):
        exact("epsilon", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j])
def test_only_numbers_are_accepted(value):
    with pytest.raises(TypeError, match="epsilon"):
        exact("epsilon", value)
    with pytest.raises(TypeError, match="n"):
        integer("n", value, 0, 1)


def test_a_float_is_taken_as_its_binary_fraction():
    assert exact("epsilon", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert exact("epsilon", Fraction(1, 10)) == Fraction(1, 10)
