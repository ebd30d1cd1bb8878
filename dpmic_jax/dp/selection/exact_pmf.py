"""Exact laws of selections among a few candidates, from the laws of their noisy scores."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, lcm

Outcomes = dict[tuple[int, ...], Fraction]


def largest(levels: Sequence[Sequence[tuple[Fraction, Fraction]]], k: int) -> Outcomes:
    """The law of the set of the k largest, equal ones in a random order.

    Let y be the level of the lowest chosen one: b >= 1 of those chosen are there, the others
    above; c of those not chosen are there, the others below. Of b + c equal ones any b are as
    likely.

    Args:
      levels: for each level, the probabilities that each candidate is there or above, and above.
      k: how many are chosen.
    """
    everyone = range(len(levels[0]))
    whole = lcm(*(f.denominator for level in levels for pair in level for f in pair))
    ways = lcm(*(comb(m, b) for m in range(len(everyone) + 1) for b in range(m + 1)))
    found = dict.fromkeys(combinations(everyone, k), 0)
    for level in levels:
        reached = [(int(f * whole), int(g * whole)) for f, g in level]
        here = [f - g for f, g in reached]
        for chosen in found:
            inside = _product([(reached[i][1], here[i]) for i in chosen])
            rest = [j for j in everyone if j not in chosen]
            outside = _product([(whole - reached[j][0], here[j]) for j in rest])
            found[chosen] += sum(
                inside[b] * outside[c] * (ways // comb(b + c, b))
                for b in range(1, len(inside))
                for c in range(len(outside))
            )
    return {o: Fraction(total, ways * whole ** len(everyone)) for o, total in found.items()}


def _product(factors: Sequence[tuple[int, int]]) -> list[int]:
    """The coefficients of prod (a + b x)."""
    found = [1]
    for a, b in factors:
        found = [a * low + b * high for low, high in zip([*found, 0], [0, *found], strict=True)]
    return found


def passing(limits: Sequence[tuple[Fraction, Sequence[Fraction]]], at_most: int) -> Outcomes:
    """The law of who passes: the first of all, then with a new limit the first after it, ...

    Args:
      limits: the probability of each limit, and that each candidate passes it.
      at_most: how many may pass before it ends.
    """
    end = len(limits[0][1])
    one = lcm(*(weight.denominator for weight, _ in limits))
    whole = lcm(*(p.denominator for _, passes in limits for p in passes))
    first = [[0] * (end + 1) for _ in range(end + 1)]  # from each start, in units of 1 / one ...
    for weight, passes in limits:
        ways = [int(p * whole) for p in passes]
        for start in range(end + 1):
            left = int(weight * one)
            for i in range(start, end):
                first[start][i] += left * ways[i]
                left *= whole - ways[i]
            first[start][end] += left  # nobody

    def chance(start: int, i: int) -> Fraction:  # ... and of 1 / whole for each candidate seen
        return Fraction(first[start][i], one * whole ** (min(i + 1, end) - start))

    def after(start: int, rounds: int) -> Outcomes:
        if not rounds:
            return {(): Fraction(1)}
        found: Outcomes = {(): chance(start, end)}
        for i in range(start, end):
            for rest, p in after(i + 1, rounds - 1).items():
                found[i, *rest] = chance(start, i) * p
        return found

    return after(0, at_most)
