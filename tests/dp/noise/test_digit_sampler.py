import itertools
from fractions import Fraction
from math import inf

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.arithmetic.intervals import SCALE, Enclosure, exponential, powers
from dpmic_jax.dp.noise import digit_sampler
from dpmic_jax.dp.noise.digit_sampler import Term


def limbs_of(number, limbs):
    return [(number >> 32 * (limbs - 1 - i)) & 0xFFFFFFFF for i in range(limbs)]


def spell(numbers, limbs):
    """Words, limbs x draws, of numbers for a block of one digit."""
    return jnp.asarray(np.array([limbs_of(n, limbs) for n in numbers], np.uint32).T)


@pytest.mark.parametrize("limbs", [2, 3, 4])
def test_digits_change_exactly_at_the_thresholds(limbs):
    ideal = powers(exponential(Fraction(1, 3)), 21)
    block = digit_sampler.block([digit_sampler.rounded(ideal, limbs)], [0], limbs)
    cumulative = np.cumsum(np.array(block.weights(0)[:0:-1], dtype=object))
    tried = [0, 2 ** (32 * limbs) - 1]
    for threshold in {*cumulative.tolist(), 2**32, 2**63} - {0}:
        tried += [threshold - 1, threshold, threshold + 1]
    expected = [sum(u < t for t in cumulative) for u in tried]
    np.testing.assert_array_equal(digit_sampler.draw(spell(tried, limbs), block)[0], expected)
    assert set(expected) == set(range(21))


@given(st.lists(st.integers(0, 7), min_size=2, max_size=20))
def test_counting_every_number_recovers_the_weights(row):
    row[0] += 256 - sum(row)
    unit = 2**56
    block = digit_sampler.block([[w * unit for w in row]], [0], 2)
    words = spell([u * unit for u in range(256)], 2)
    counts = np.bincount(digit_sampler.draw(words, block)[0], minlength=len(row))
    np.testing.assert_array_equal(counts, row)
    assert block.weights(0)[: len(row)] == [w * unit for w in row]


def test_weights_that_are_no_distribution_are_refused():
    for row in ([2**64, 1], [2**64 - 1], [2**64 + 1, -1]):
        with pytest.raises(ArithmeticError, match="distribution"):
            digit_sampler.block([row], [0], 2)


def test_distortion_bounds_every_ratio_of_probabilities():
    ideal = powers(exponential(Fraction(1, 2)), 12)
    weights = digit_sampler.rounded(ideal, 2)
    factor = digit_sampler.distortion(weights, ideal)
    ratios = [w / Fraction(q.low, 2**SCALE) for w, q in zip(weights, ideal, strict=True)]
    assert max(ratios) / min(ratios) <= factor <= 1 + Fraction(1, 2**55)
    weights[3] += 2**40
    weights[4] -= 2**40
    assert digit_sampler.distortion(weights, ideal) > 1 + Fraction(1, 2**24)


def test_a_value_of_probability_zero_has_infinite_distortion():
    ideal = powers(exponential(Fraction(4)), 16)
    assert digit_sampler.distortion(digit_sampler.rounded(ideal, 2), ideal) == inf
    assert digit_sampler.distortion(digit_sampler.rounded(ideal, 4), ideal) < 1 + Fraction(1, 2**40)


def test_variation_is_the_total_variation_distance():
    half = Enclosure(2 ** (SCALE - 1), 2 ** (SCALE - 1))
    quarter, rest = 2**62, 2 ** (SCALE - 3)
    # (1/2, 1/2) after 3/4, 1/4; then with an eighth of the ideal mass further out.
    found = digit_sampler.variation([3 * quarter, quarter], [half, half], 0)
    assert found == pytest.approx(Fraction(1, 4))
    found = digit_sampler.variation([2 * quarter, 2 * quarter], [half, half], rest)
    truth = Fraction(1, 2) * (2 * (Fraction(1, 2) - Fraction(4, 9)) + Fraction(1, 9))
    assert truth <= found <= 3 * truth


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any),
            st.integers(0, 2),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(-40, 40),
)
def test_tail_counts_every_combination(drawn, least):
    drawn.sort(key=lambda d: d[1])
    terms = tuple(Term(tuple(weights), 2**shift, signed) for weights, shift, signed in drawn)
    counted = everything = 0
    choices = [
        [
            (sign * value * term.step, weight)
            for value, weight in enumerate(term.weights)
            for sign in ((1, -1) if term.signed else (1,))
        ]
        for term in terms
    ]
    for combination in itertools.product(*choices):
        ways = np.prod([weight for _, weight in combination])
        everything += ways
        counted += ways * (sum(value for value, _ in combination) >= least)
    assert digit_sampler.tail(terms, least) == Fraction(int(counted), int(everything))
