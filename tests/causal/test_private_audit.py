"""The private searches: exact output distributions on tiny data, and the loss over all neighbours.

Outputs are released round by round and edge by edge, as docs/causal_algorithms.md defines them.
Scores are half the counts of records, so that they move by one step of a coarse lattice.
"""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from math import comb

import pytest
from toys import Halves, asked, coded

from dpmic_jax.causal import score_lattice
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.score_lattice import TOP, level_lattice, power_of_two
from dpmic_jax.causal.svt_pc import SVTPC
from dpmic_jax.dp.audit import exact_loss, replace_one
from dpmic_jax.dp.noise.bounded import ClippedLaplace
from dpmic_jax.dp.selection import PermuteAndFlip
from dpmic_jax.dp.selection.sieve_bounds import examine_pmf, sieve_pmf

FAR = Fraction(8)  # sixteen steps: what passes should not, what does not should
EPSILON = 1.0
ONE = frozenset({(2, 3)})  # the last edge of four columns
TWO = frozenset({(1, 2), (3, 4)})  # the fifth and the last edge of five columns


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """One step of sensitivity: exact distributions then have few values."""
    monkeypatch.setattr(score_lattice, "_STEPS", 2)
    assert level_lattice(Fraction(1, 2)).sensitivity == 1


def everything(columns):
    return frozenset(itertools.combinations(range(columns), 2))


def steps_of(test, queries):
    """Points of the lattice of half counts."""
    return tuple(int(2 * test.score(query)) for query in queries)


# --- searches by rounds, from their definition ---------------------------------------------


def stories(columns, search, one_round):
    """All that a search may tell, with its probability.

    one_round: queries that are left -> {(place, verdict) or None: probability}.
    """

    def play(edges, order, start, used, gone):
        queries = asked(edges, columns, order)
        if order > search.max_order or not queries or used == search.rounds:
            return {(): Fraction(1)}
        if start >= len(queries):
            return play(edges - gone, order + 1, 0, used, frozenset())
        told = Counter()
        for finding, p in one_round(tuple(queries[start:])).items():
            if finding is None:
                after, gone_too = len(queries), gone
            else:
                place, independent = finding
                after, edge = start + place + 1, queries[start + place][:2]
                gone_too = gone | {edge} if independent else gone
                while independent and after < len(queries) and queries[after][:2] == edge:
                    after += 1
            for rest, q in play(edges, order, after, used + 1, gone_too).items():
                told[(finding, *rest)] += p * q
        return told

    return play(everything(columns), 0, 0, 0, frozenset())


def sparse_vector(search, columns, epsilon, special=ONE):
    """SVT-PC whose rounds have this epsilon."""
    mechanism = search.round_mechanism(level_lattice(Fraction(1, 2)), epsilon)
    known = lru_cache(maxsize=None)(lambda scores: mechanism.pmf(scores))

    def told(values):
        test = Halves(coded(values, columns), FAR, special)

        def one_round(queries):
            turned = tuple(TOP - point for point in steps_of(test, queries))
            filled = turned + (0,) * (power_of_two(len(queries)) - len(queries))
            found = Counter()
            for outcome, p in known(filled).items():
                inside = outcome and outcome[0] < len(queries)
                found[(outcome[0], True) if inside else None] += p
            return found

        return stories(columns, search, one_round)

    return told


def svt(**changes):
    usual = {"epsilon": EPSILON, "threshold": FAR / 2, "max_order": 0, "rounds": 1}
    return SVTPC(**(usual | changes))


@pytest.mark.parametrize(
    ("columns", "changes"),
    [(3, {}), (4, {}), (3, {"max_order": 1, "rounds": 3}), (3, {"rounds": 2, "threshold": 0.5})],
)
def test_svt_pc_keeps_its_guarantee_over_all_neighbours(columns, changes):
    search = svt(**changes)
    epsilon = search.each(columns, search.rounds)
    loss = exact_loss(sparse_vector(search, columns, epsilon), replace_one((0, 1, 2), 2))
    assert loss.at_most(EPSILON)


def test_svt_pc_nearly_attains_epsilon_and_two_thirds_of_the_noise_are_caught():
    right = exact_loss(sparse_vector(svt(), 4, Fraction(1)), replace_one((0, 1), 2))
    assert right.at_most(EPSILON)
    assert not right.at_most(0.95 * EPSILON)
    less = exact_loss(sparse_vector(svt(), 4, Fraction(3, 2)), replace_one((0, 1), 2))
    assert not less.at_most(1.4 * EPSILON)


def test_svt_pc_that_forgets_its_rounds_is_caught():
    """Each round as if it were the only one: two findings cost twice."""
    search = svt(rounds=2)
    forgotten = sparse_vector(search, 5, Fraction(1), TWO)
    right = sparse_vector(search, 5, search.each(5, search.rounds), TWO)
    pair = [((0, 1), (1, 1))]
    assert not exact_loss(forgotten, pair).at_most(1.8 * EPSILON)
    loss = exact_loss(right, pair)
    assert loss.at_most(EPSILON)
    assert not loss.at_most(0.85 * EPSILON)


def sieved(search, columns, sieve, examine, special=ONE, *, subsample_once=False):
    """Priv-PC whose rounds have these epsilons."""
    lattice = level_lattice(Fraction(1, 2))

    @cache
    def mechanism(size, n):
        made = search.round_mechanism(lattice, 1, epsilon=sieve, n=n, size=size)
        return replace(made, examine_epsilon=examine)

    stops = lru_cache(maxsize=None)(lambda made, scores: sieve_pmf(made, scores))

    def told(values):
        n, whole = len(values), Halves(coded(values, columns), FAR, special)
        ways = Counter(itertools.combinations(values, search.subsample))

        def one_round(drawn, queries):
            made, found = mechanism(power_of_two(len(queries)), n), Counter()
            for part, way in drawn.items():
                scores = steps_of(Halves(coded(part, columns), FAR, special), queries)
                filled = tuple(-s for s in scores) + (-TOP,) * (made.queries - len(queries))
                for place, p in enumerate(stops(made, filled)):
                    p *= Fraction(way, sum(drawn.values()))
                    if place >= len(queries):
                        found[None] += p
                        continue
                    (point,) = steps_of(whole, [queries[place]])
                    above = examine_pmf(made, -point)
                    found[place, True] += p * above
                    found[place, False] += p * (1 - above)
            return found

        if not subsample_once:
            return stories(columns, search, lambda queries: one_round(ways, queries))
        mixed = Counter()
        for part, way in ways.items():
            one = {part: 1}
            given_part = stories(columns, search, lambda queries, one=one: one_round(one, queries))
            for story, p in given_part.items():
                mixed[story] += p * Fraction(way, comb(n, search.subsample))
        return mixed

    return told


def priv(**changes):
    usual = {
        "epsilon": EPSILON,
        "threshold": FAR / 2,
        "max_order": 0,
        "rounds": 1,
        "subsample": 1,
        "tweak": 0.0,
    }
    return PrivPC(**(usual | changes))


@pytest.mark.parametrize(
    ("columns", "n", "changes"),
    [
        (3, 2, {}),
        (4, 3, {"subsample": 2, "tweak": 0.5}),
        (3, 2, {"rounds": 2, "epsilon": 2.0}),
        (3, 2, {"rounds": 2, "max_order": 1, "subsample": 2, "threshold": 0.5, "epsilon": 2.0}),
    ],
)
def test_priv_pc_keeps_its_guarantee_over_all_neighbours(columns, n, changes):
    search = priv(**changes)
    each = search.each(columns, 2 * search.rounds)
    loss = exact_loss(sieved(search, columns, each, each), replace_one((0, 1), n))
    assert loss.at_most(search.epsilon)


def test_priv_pc_nearly_attains_epsilon_and_two_thirds_of_either_noise_are_caught():
    search, each, more = priv(), Fraction(1, 2), Fraction(3, 4)
    right = exact_loss(sieved(search, 4, each, each), replace_one((0, 1), 2))
    assert right.at_most(EPSILON)
    assert not right.at_most(0.95 * EPSILON)
    for sieve, examine in ((more, each), (each, more)):
        less = exact_loss(sieved(search, 4, sieve, examine), replace_one((0, 1), 2))
        assert not less.at_most(1.2 * EPSILON)


def test_priv_pc_that_forgets_its_rounds_is_caught():
    search, once = priv(rounds=2), Fraction(1, 2)
    forgotten = sieved(search, 5, once, once, TWO)
    each = search.each(5, 2 * search.rounds)
    right = sieved(search, 5, each, each, TWO)
    assert not exact_loss(forgotten, replace_one((0, 1), 2)).at_most(1.8 * EPSILON)
    assert exact_loss(right, replace_one((0, 1), 2)).at_most(EPSILON)


def test_priv_pc_with_one_subsample_for_all_rounds_is_caught():
    """Amplification holds for a new subsample in each round."""
    search, examine = priv(rounds=2, epsilon=4.0), Fraction(1, 4)
    charged, pair = 2 * (1 + 0.25), [((0, 1, 1), (1, 1, 1))]
    once = sieved(search, 5, Fraction(1), examine, TWO, subsample_once=True)
    anew = sieved(search, 5, Fraction(1), examine, TWO)
    assert exact_loss(anew, pair).at_most(charged)
    assert not exact_loss(once, pair).at_most(charged)


# --- EM-PC, from its definition ------------------------------------------------------------


def decisions(test, queries, limit, choose, alone, several):
    """The distribution of one level: for every edge kept (None), or what it is removed by.

    choose, alone, several: epsilons of the choice, and of examinations without and with one.
    """
    level = {(): Fraction(1)}
    for _, group in itertools.groupby(queries, lambda query: query[:2]):
        group = list(group)
        scores, each = steps_of(test, group), Counter()
        if len(group) == 1:
            chosen, examine = [Fraction(1)], alone
        else:
            chosen = _chosen(choose, tuple(-score for score in scores))
            examine = several
        for query, score, p in zip(group, scores, chosen, strict=True):
            gone = _removed(examine, score, limit)
            each[query] += p * gone
            each[None] += p * (1 - gone)
        level = {(*told, one): p * q for told, p in level.items() for one, q in each.items()}
    return level


@cache
def _chosen(epsilon, scores):
    return tuple(PermuteAndFlip(epsilon=epsilon, sensitivity=1).pmf(scores))


@cache
def _removed(epsilon, point, limit):
    noise = ClippedLaplace(epsilon=epsilon, sensitivity=1, top=TOP)
    return sum((noise.pmf(point, out) for out in range(limit + 1)), Fraction(0))


def exponential(search, columns, factor=Fraction(1)):
    """EM-PC, all epsilons times the factor."""

    def told(values):
        test = Halves(coded(values, columns))

        def play(edges, order):
            queries = asked(edges, columns, order)
            if order > search.max_order or not queries:
                return {(): Fraction(1)}
            found, decided = Counter(), len({query[:2] for query in queries})
            one = factor * search.each(columns, search.levels * decided)
            two = factor * search.each(columns, 2 * search.levels * decided)
            limit = int(2 * search.exact_threshold)
            for level, p in decisions(test, queries, limit, two, one, two).items():
                gone = {query[:2] for query in level if query}
                for rest, q in play(edges - gone, order + 1).items():
                    found[(level, *rest)] += p * q
            return found

        return play(everything(columns), 0)

    return told


def em(**changes):
    return EMPC(**({"epsilon": EPSILON, "threshold": 0.5, "max_order": 1} | changes))


@pytest.mark.parametrize(
    ("columns", "changes"), [(3, {}), (3, {"max_order": 0}), (3, {"threshold": 0.0})]
)
def test_em_pc_keeps_its_guarantee_over_all_neighbours(columns, changes):
    search = em(**changes)
    loss = exact_loss(exponential(search, columns), replace_one((0, 1), 2))
    assert loss.at_most(EPSILON)


def test_em_pc_with_two_thirds_of_the_noise_is_caught():
    """All edges kept, of scores below the threshold, which all rise."""
    search, pair = em(threshold=12.0, max_order=0), [((0, 1, 1), (0, 0, 1))]
    right = exact_loss(exponential(search, 3), pair)
    assert right.at_most(EPSILON)
    # Of three decisions two rise and one falls; each loses a third.
    assert not right.at_most(0.6 * EPSILON)
    assert not exact_loss(exponential(search, 3, Fraction(3, 2)), pair).at_most(0.99 * EPSILON)


class Rivals:
    """Candidates given column 0 have the ones' count and an offset, others the zeros'."""

    def __init__(self, values):
        self.values = values

    def score(self, query):
        first = 0 in query[2]
        return Fraction(self.values.count(int(first)), 2) + first * 5


@pytest.mark.parametrize(
    ("choose", "examine", "kept"),
    [(1, 1, True), (Fraction(3, 2), 1, False), (1, Fraction(3, 2), False), (2, 2, False)],
)
def test_a_decision_among_candidates_costs_what_is_charged(choose, examine, kept):
    """(2, 2) is a choice that is not charged: both steps have the whole epsilon."""
    queries = [(1, 2, (0,)), (1, 2, (3,)), (1, 2, (4,))]
    half = Fraction(1, 2)

    def distribution(values):
        return decisions(Rivals(values), queries, 2, choose * half, half, examine * half)

    loss = exact_loss(distribution, replace_one((0, 1, 2), 2))
    assert loss.at_most(EPSILON) == kept
    assert not loss.at_most(0.9 * EPSILON)


def test_em_pc_level_with_several_candidates_keeps_its_share_of_epsilon():
    """Four columns, all edges left, order 1: two candidates an edge."""
    search, queries = em(), asked(everything(4), 4, 1)
    two = search.each(4, 2 * search.levels * 6)

    def distribution(values):
        return decisions(Halves(coded(values, 4)), queries, 1, two, two, two)

    loss = exact_loss(distribution, replace_one((0, 1), 2))
    assert loss.at_most(EPSILON / search.levels)
