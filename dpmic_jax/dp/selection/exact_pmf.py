"""Exact distributions of selections among a few candidates, from those of their noisy scores.

All work in integers over one common denominator: fractions would be reduced at every step.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, lcm

Outcomes = dict[tuple[int, ...], Fraction]


def top_k_pmf(levels: Sequence[Sequence[tuple[Fraction, Fraction]]], k: int) -> Outcomes:
    """The distribution of the set of the k largest noisy scores, with ties broken at random.

    Let y be the lowest level among the chosen candidates: b >= 1 chosen candidates are at y and
    the other chosen ones above, c candidates that are not chosen are at y and the others below.
    All choices of b among the b + c candidates at y are equally likely.

    Args:
      levels: for each level, the probabilities that each candidate is at it or above, and above.
      k: the number of candidates to choose.
    """
    everyone = range(len(levels[0]))
    whole = lcm(*(f.denominator for level in levels for pair in level for f in pair))
    ways = lcm(*(comb(m, b) for m in range(len(everyone) + 1) for b in range(m + 1)))
    totals = dict.fromkeys(combinations(everyone, k), 0)
    for level in levels:
        reached = [(int(f * whole), int(g * whole)) for f, g in level]
        here = [f - g for f, g in reached]
        for chosen in totals:
            inside = _product([(reached[i][1], here[i]) for i in chosen])
            rest = [j for j in everyone if j not in chosen]
            outside = _product([(whole - reached[j][0], here[j]) for j in rest])
            totals[chosen] += sum(
                inside[b] * outside[c] * (ways // comb(b + c, b))
                for b in range(1, len(inside))
                for c in range(len(outside))
            )
    return {o: Fraction(total, ways * whole ** len(everyone)) for o, total in totals.items()}


def _product(factors: Sequence[tuple[int, int]]) -> list[int]:
    """The coefficients of prod (a + b x): entry j is the weight of j candidates at the level."""
    found = [1]
    for a, b in factors:
        found = [a * low + b * high for low, high in zip([*found, 0], [0, *found], strict=True)]
    return found


def sparse_vector_pmf(
    limits: Sequence[tuple[Fraction, Sequence[Fraction]]], at_most: int
) -> Outcomes:
    """The distribution of the candidates that pass, in a sparse vector of `at_most` rounds.

    The first round ends at the first candidate that passes its limit. Each further round draws a
    new limit and starts at the next candidate.

    Args:
      limits: for each value of the limit, its probability, and that of each candidate to pass it.
      at_most: the number of rounds.
    """
    end = len(limits[0][1])
    one = lcm(*(weight.denominator for weight, _ in limits))
    whole = lcm(*(p.denominator for _, passes in limits for p in passes))
    # From each start, the weight of every first candidate to pass, and of none at index `end`; in
    # units of 1 / one, and of 1 / whole for each candidate that is looked at.
    first = [[0] * (end + 1) for _ in range(end + 1)]
    for weight, passes in limits:
        ways = [int(p * whole) for p in passes]
        for start in range(end + 1):
            left = int(weight * one)
            for i in range(start, end):
                first[start][i] += left * ways[i]
                left *= whole - ways[i]
            first[start][end] += left

    def probability(start: int, i: int) -> Fraction:
        return Fraction(first[start][i], one * whole ** (min(i + 1, end) - start))

    def after(start: int, rounds: int) -> Outcomes:
        if not rounds:
            return {(): Fraction(1)}
        found: Outcomes = {(): probability(start, end)}
        for i in range(start, end):
            for rest, p in after(i + 1, rounds - 1).items():
                found[i, *rest] = probability(start, i) * p
        return found

    return after(0, at_most)


def single_threshold_pmf(
    limits: Sequence[tuple[Fraction, Sequence[Fraction]]], at_most: int
) -> Outcomes:
    """The distribution of the first `at_most` candidates that pass one limit for all of them.

    Args:
      limits: for each value of the limit, its probability, and that of each candidate to pass it.
      at_most: the most candidates to find.
    """
    one = lcm(*(weight.denominator for weight, _ in limits))
    whole = lcm(*(p.denominator for _, passes in limits for p in passes))
    totals: dict[tuple[int, ...], int] = {}
    for weight, passes in limits:
        left = {(): int(weight * one)}
        for i, p in enumerate(passes):
            hit, after = int(p * whole), {}
            for found, ways in left.items():
                if len(found) == at_most:
                    after[found] = ways * whole
                else:
                    after[found], after[*found, i] = ways * (whole - hit), ways * hit
            left = after
        for found, ways in left.items():
            totals[found] = totals.get(found, 0) + ways
    everything = one * whole ** len(limits[0][1])
    return {found: Fraction(ways, everything) for found, ways in totals.items()}
