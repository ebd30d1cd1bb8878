"""Exact distributions of selections, against every outcome of the noise counted one by one."""

import itertools
from fractions import Fraction
from math import prod

import pytest

from dpmic_jax.dp.selection.exact_pmf import sparse_vector_pmf, top_k_pmf

# Distributions of noisy scores on 0 .. 3, with ties and with probabilities of 0 and 1.
NOISY = [
    [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(0)],
    [Fraction(1, 8), Fraction(3, 8), Fraction(1, 4), Fraction(1, 4)],
    [Fraction(0), Fraction(0), Fraction(1), Fraction(0)],
    [Fraction(1, 3), Fraction(1, 3), Fraction(0), Fraction(1, 3)],
]


def at_least(pmf, y):
    return sum(pmf[y:], Fraction(0))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_top_k_pmf_is_the_count_over_every_draw_and_every_order(k):
    expected = dict.fromkeys(itertools.combinations(range(4), k), Fraction(0))
    orders = list(itertools.permutations(range(4)))
    for values in itertools.product(range(4), repeat=4):
        weight = prod(pmf[value] for pmf, value in zip(NOISY, values, strict=True))
        for order in orders:
            ranked = sorted(range(4), key=lambda i: (-values[i], order[i]))
            expected[tuple(sorted(ranked[:k]))] += weight / len(orders)
    levels = [[(at_least(pmf, y), at_least(pmf, y + 1)) for pmf in NOISY] for y in range(4)]
    assert top_k_pmf(levels, k) == expected


@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_sparse_vector_pmf_is_the_count_over_every_draw_of_scores_and_limits(at_most):
    limits = {0: Fraction(1, 8), 1: Fraction(1, 2), 3: Fraction(1, 4), 9: Fraction(1, 8)}
    scores, expected = NOISY[:3], {}
    for values in itertools.product(range(4), repeat=3):
        for drawn in itertools.product(limits, repeat=at_most):
            weight = prod(pmf[value] for pmf, value in zip(scores, values, strict=True))
            weight *= prod(limits[limit] for limit in drawn)
            found = []
            for i, value in enumerate(values):
                if len(found) < at_most and value >= drawn[len(found)]:
                    found.append(i)
            expected[tuple(found)] = expected.get(tuple(found), 0) + weight
    found = sparse_vector_pmf(
        [(p, [at_least(s, limit) for s in scores]) for limit, p in limits.items()], at_most
    )
    assert {o: p for o, p in found.items() if p} == {o: p for o, p in expected.items() if p}
