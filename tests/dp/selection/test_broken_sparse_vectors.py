"""Sparse vectors that were published and are not private (Lyu, Su and Li 2017): all are caught.

Every one is written with discrete Laplace noise whose ends are covered as in the package, so that
nothing but its mistake can give it away; the right ones pass the same audit.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import NamedTuple

import pytest

from dpmic_jax.dp.audit import exact_loss

EPSILON = 1.0
SENTINEL, CLOSED = Fraction(1, 2**44), Fraction(1, 2**24)
MISS, HIT = False, True


class Variant(NamedTuple):
    """Scales of the noise for epsilon = 1, whether each hit has a new threshold, what is seen."""

    threshold: float
    query: float
    fresh: bool
    seen: tuple[bool, ...]


ONE, TWO = (MISS, MISS, MISS, HIT), (MISS, MISS, MISS, HIT) * 2
RIGHT = {
    "one found": Variant(2, 4, True, ONE),
    "two found": Variant(4, 8, True, TWO),
}
BROKEN = {
    "noise of two thirds the scale": Variant(4 / 3, 8 / 3, True, ONE),
    "query noise without its factor 2": Variant(2, 2, True, ONE),
    "scales that forget the quota": Variant(2, 4, True, TWO),
    "query noise that forgets the quota (Lee and Clifton 2014)": Variant(4, 4 / 3, False, TWO),
    "no quota at all (Chen et al. 2015)": Variant(2, 2, False, (*ONE, HIT)),
}


@lru_cache
def laplace(scale):
    """P(X = x) for |x| <= 60 scales, as fractions of one denominator."""
    reach = int(60 * scale)
    weights = [round(2**160 * Fraction(math.exp(-k / scale))) for k in range(reach + 1)]
    total = 2 * sum(weights) - weights[0]
    return {x: Fraction(weights[abs(x)], total) for x in range(-reach, reach + 1)}


@lru_cache
def tails(scale):
    pmf = laplace(scale)
    return dict(zip(reversed(pmf), accumulate(reversed(pmf.values())), strict=True))


def passes(scale, least):
    """P(X >= least), or the sentinel; without noise if the scale is 0."""
    if scale == 0:
        return Fraction(least <= 0)
    reach = int(60 * scale)
    ordinary = Fraction(0) if least > reach else tails(scale)[max(least, -reach)]
    return SENTINEL + (1 - SENTINEL) * ordinary


def limits(scale):
    """Each noisy threshold, about 0, with its probability; the last one only sentinels pass."""
    ordinary = [(z, (1 - CLOSED) * p) for z, p in laplace(scale).items()]
    return [*ordinary, (10**6, CLOSED)]


def cut(seen):
    """The queries that each threshold is compared with, if each hit is followed by a new one."""
    parts = [[]]
    for i, hit in enumerate(seen):
        parts[-1].append(i)
        if hit:
            parts.append([])
    return [part for part in parts if part]


def seen_pmf(variant):
    """From scores to the probability that exactly `variant.seen` is released."""
    everyone = [list(range(len(variant.seen)))]

    def chance(scores, part):
        def each(z):
            for i in part:
                p = passes(variant.query, z - scores[i])
                yield p if variant.seen[i] else 1 - p

        return sum(p * prod(each(z)) for z, p in limits(variant.threshold))

    def seen(scores):
        parts = cut(variant.seen) if variant.fresh else everyone
        p = prod(chance(scores, part) for part in parts)
        return {True: p, False: 1 - p}

    return seen


def loss(variant):
    """High ones miss and low ones hit; on the neighbour they are higher and lower by 1."""
    far = int(10 * variant.query)
    one = tuple(-far if hit else far for hit in variant.seen)
    other = tuple(-far - 1 if hit else far + 1 for hit in variant.seen)
    return exact_loss(seen_pmf(variant), [[one, other]])


@pytest.mark.parametrize("name", RIGHT)
def test_correct_variants_keep_epsilon_and_come_close_to_it(name):
    found = loss(RIGHT[name])
    assert found.at_most(EPSILON + 1e-9)
    assert not found.at_most(0.9 * EPSILON)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_variants_are_caught(name):
    assert not loss(BROKEN[name]).at_most(1.2 * EPSILON)


def test_queries_without_noise_are_caught():
    """Stoddard et al. 2014: a hit above a miss is impossible once the miss is above the hit."""
    found = exact_loss(seen_pmf(Variant(2, 0, False, (MISS, HIT))), [[(0, 1), (1, 0)]])
    assert found.less == 0
    assert found.more > Fraction(1, 10)


def test_noisy_values_released_beside_the_hits_are_caught():
    """Roth's lecture notes of 2011: a low value says that the threshold was lower still."""

    def low_value(scores):
        *others, last = scores
        value = -10
        below = [(z, p) for z, p in limits(2) if z <= value]
        p = laplace(2)[value - last] * sum(
            p * prod(1 - passes(2, z - s) for s in others) for z, p in below
        )
        return {True: p, False: 1 - p}

    assert not exact_loss(low_value, [[(0,) * 6, (1,) * 6]]).at_most(2 * EPSILON)
