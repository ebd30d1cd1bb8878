"""Mistakes in a sparse vector with one threshold: the exact audit catches every one.

The noise is geometric with rational ratios, exact and without an end, and shares no code with the
package. So nothing but its mistake can give a variant away; the right ones pass the same audit.
"""

import math
from fractions import Fraction
from math import prod
from typing import NamedTuple

import pytest

from dpmic_jax.dp.audit import exact_loss

EPSILON = 1.0
SENTINEL = Fraction(1, 2**44)
MISS, HIT = False, True
FURTHEST = 200  # thresholds above it let only sentinels pass


class Variant(NamedTuple):
    """Rates of the noise for epsilon = 1 and S = 1 (None: no noise), and what is seen."""

    threshold: float | None
    query: float
    seen: tuple[bool, ...]


def rates(quota, times=2):
    """The split 1 : (times quota)^(2/3), and a candidate's rate for a change by `times` S."""
    weight = (times * quota) ** (2 / 3)
    return EPSILON / (1 + weight), EPSILON * weight / (1 + weight) / (times * quota)


(B1, A1), (B2, A2), (ONE_B, ONE_A) = rates(1), rates(2), rates(1, times=1)
ONE, TWO = (MISS, HIT), (MISS, HIT, HIT)
RIGHT = {
    "one found": Variant(B1, A1, ONE),
    "two found": Variant(B2, A2, TWO),
    "two found, many missed": Variant(B2, A2, (MISS, HIT, MISS, MISS, HIT)),
}
BROKEN = {
    "all noise of two thirds the scale": Variant(1.5 * B1, 1.5 * A1, ONE),
    "query noise of two thirds the scale": Variant(B1, 1.5 * A1, ONE),
    "threshold noise of two thirds the scale": Variant(1.5 * B1, A1, ONE),
    "as many answers again as the quota": Variant(B1, A1, TWO),
    "query noise that forgets the quota": Variant(B2, 2 * A2, TWO),
    "a split without the factor 2, as for monotone scores": Variant(ONE_B, ONE_A, ONE),
    "no quota": Variant(B2, A2, (MISS, *[HIT] * 6)),
}


def ratio(rate):
    """e^-rate as a fraction, rounded up: a little more noise than the rate has."""
    return Fraction(math.ceil(math.exp(-rate) * 2**24), 2**24)


def passes(rate, least):
    """P(G >= least), or the sentinel."""
    return SENTINEL + (1 - SENTINEL) * ratio(rate) ** max(least, 0)


def limits(rate):
    """Each noisy threshold, about 0, with its probability; the last one only sentinels pass."""
    r = ratio(rate)
    return [*((z, (1 - r) * r**z) for z in range(FURTHEST)), (10**4, r**FURTHEST)]


def chance(variant, scores, noise):
    """The probability that exactly `variant.seen` is released, if Z is drawn from `noise`."""

    def each(z):
        for score, hit in zip(scores, variant.seen, strict=True):
            p = SENTINEL if z == 10**4 else passes(variant.query, z - score)
            yield p if hit else 1 - p

    return sum(p * prod(each(z)) for z, p in noise)


def outcome(p):
    return {True: p, False: 1 - p}


def neighbours(seen):
    """Scores above the threshold miss and those below it pass; they move by 1, away from that."""
    return [tuple(-3 if hit else 2 for hit in seen), tuple(-4 if hit else 3 for hit in seen)]


def loss(variant):
    noise = limits(variant.threshold)
    return exact_loss(lambda s: outcome(chance(variant, s, noise)), [neighbours(variant.seen)])


@pytest.mark.parametrize("name", RIGHT)
def test_correct_variants_keep_epsilon_and_attain_it(name):
    found = loss(RIGHT[name])
    assert found.at_most(EPSILON)
    assert not found.at_most(0.999 * EPSILON)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_variants_are_caught(name):
    assert not loss(BROKEN[name]).at_most(1.15 * EPSILON)


def test_a_threshold_without_noise_is_caught():
    """A score at the threshold cannot miss; and below it, every miss adds to the loss."""
    at, many = (MISS,), (MISS,) * 12

    def seen(variant):
        return lambda s: outcome(chance(variant, s, [(0, Fraction(1))]))

    found = exact_loss(seen(Variant(None, A2, at)), [[(-1,), (0,)]])
    assert found.less == 0
    assert found.more > Fraction(1, 10)
    found = exact_loss(seen(Variant(None, A2, many)), [[(-3,) * 12, (-2,) * 12]])
    assert not found.at_most(3 * EPSILON)


def test_a_threshold_drawn_from_the_key_of_a_candidate_is_caught():
    """G = floor(E / a) and Z = floor(E / b) of the same exponential E: noise that cancels."""

    def passing(score):
        ends = sorted({k * rate for rate in (A1, B1) for k in range(int(60 / rate))})
        found = 0.0
        for low, high in zip(ends, [*ends[1:], math.inf], strict=True):
            middle = low + 1e-9
            if score + math.floor(middle / A1) >= math.floor(middle / B1):
                found += math.exp(-low) - math.exp(-high)
        return outcome(Fraction(min(found, 1.0)))

    group = [[(-k,), (-k - 1,)] for k in range(10)]
    found = exact_loss(lambda s: passing(*s), group)
    assert not found.at_most(1.15 * EPSILON)


def test_candidates_that_share_a_key_are_caught():
    """The same noise: a candidate never passes where a better one does not."""

    def only_the_first(scores):
        first, second = scores
        noise, r = limits(B1), ratio(A1)
        p = Fraction(0)
        for z, weight in noise:
            # G >= z - first and G < z - second
            low, high = r ** max(z - first, 0), r ** max(z - second, 0)
            p += weight * max(low - high, 0)
        return outcome(p)

    found = exact_loss(only_the_first, [[(1, 0), (0, 1)]])
    assert found.less == 0
    assert found.more > Fraction(1, 10)


def test_a_threshold_kept_for_a_second_run_is_not_covered_by_the_first():
    """Two runs with one Z, each with its quota: caught at the price of one run.

    At the price of two they would be covered, as one threshold for twice the quota costs less:
    the second run needs new noise for its candidates, and may not need a new threshold.
    """
    both = Variant(B2, A2, TWO + TWO)
    found = loss(both)
    assert not found.at_most(1.15 * EPSILON)
    assert found.at_most(2 * EPSILON)
