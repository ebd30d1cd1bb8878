"""Sieve-and-examine: its exact distribution on tiny data, and its loss over all neighbours."""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb, expm1, log1p

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from selecting import ALARM, int32
from sieving import settings

from dpmic_jax.dp.audit import exact_loss, replace_one
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection.sieve_bounds import examine_pmf, sieve_pmf

# --- the algorithm, from its definition ----------------------------------------------------


def subsets(data, m):
    """Every way to choose m records, equally likely, as multisets."""
    ways = Counter(itertools.combinations(data, m))
    return {chosen: Fraction(k, comb(len(data), m)) for chosen, k in ways.items()}


@cache
def noise_distribution(mechanism):
    """P(rho) of all rho, and P(nu < x) as a function."""
    reach = mechanism.threshold_noise.certificate().reach + 1
    levels = {x: mechanism.threshold_noise.pmf(x) for x in range(-reach, reach + 1)}
    return levels, cache(lambda x: 1 - mechanism.query_noise.tail(x))


def stops(mechanism, scores, start=0):
    """Where a round stops, from `start` on; `scores` has a distribution for each query.

    A point mass each: scores on one subsample. A mixture each: a new subsample for every query.
    """
    levels, below = noise_distribution(mechanism)
    found = Counter()
    for rho, p in levels.items():
        for place in range(start, len(scores)):
            level = mechanism.threshold - mechanism.tweak + rho
            fails = sum(w * below(level - score) for score, w in scores[place].items())
            found[place] += p * (1 - fails)
            p *= fails
        found[len(scores)] += p
    return found


def one_subsample(mechanism, data, asked, unit):
    """The sound sieve: the records drawn once a round, then the noise."""
    known = cache(lambda scores, start: sieve_pmf(mechanism, scores, start))

    def sieved(start):
        mixed = Counter()
        for drawn, w in subsets(data, mechanism.subsample).items():
            scores = tuple(unit * drawn.count(value) for value in asked)
            for place, p in enumerate(known(scores, start)):
                mixed[place] += w * p
        return mixed

    return sieved


def outcome(mechanism, data, asked, sieved, done=0, start=0):
    """The distribution of all releases: where each round stops, and what the examination says."""
    if done == mechanism.rounds or start == len(asked):
        return {(): Fraction(1)}
    told = Counter()
    for place, p in sieved(start).items():
        if place == len(asked):
            told[(place,)] += p
            continue
        above = examine_pmf(mechanism, data.count(asked[place]))
        for rest, q in outcome(mechanism, data, asked, sieved, done + 1, place + 1).items():
            told[(place, True, *rest)] += p * q * above
            told[(place, False, *rest)] += p * q * (1 - above)
    return told


def sound(mechanism, asked, unit=1):
    return lambda data: outcome(mechanism, data, asked, one_subsample(mechanism, data, asked, unit))


LATE = (0,) * 8 + (1,)  # eight that should not pass, then one that should: the worst case


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "asked", "values", "unit"),
    [
        ({"n": 3, "subsample": 1}, (0, 0, 1), (0, 1, 2), 1),
        ({"n": 5, "subsample": 2, "tweak": 1, "queries": 4}, (0, 1, 0, 1), (0, 1), 1),
        ({"subsample": 2, "threshold": 2, "sieve_sensitivity": 2}, (2, 0, 1), (0, 1, 2), 2),
        ({"subsample": 4, "examine_epsilon": 0.25}, (1, 0, 1), (0, 1), 1),
        ({"n": 3, "subsample": 1, "rounds": 2}, (0, 1, 0), (0, 1), 1),
        ({"n": 4, "subsample": 1, "rounds": 3, "sieve_epsilon": 2.0}, (0, 1, 1), (0, 1), 1),
        ({"threshold": 40}, (0, 1, 0), (0, 1), 1),
        ({"threshold": -40}, (0, 1, 0), (0, 1), 1),
    ],
)
def test_exact_loss_over_all_neighbours_is_at_most_the_guarantee(changes, asked, values, unit):
    mechanism = settings(**changes)
    loss = exact_loss(sound(mechanism, asked, unit), replace_one(values, mechanism.n))
    assert loss.at_most(mechanism.guarantee.epsilon)


def test_the_guarantee_is_nearly_attained():
    mechanism = settings(queries=len(LATE))
    loss = exact_loss(sound(mechanism, LATE), replace_one((0, 1), mechanism.n))
    assert loss.at_most(mechanism.guarantee.epsilon)
    assert not loss.at_most(0.95 * mechanism.guarantee.epsilon)


@pytest.mark.parametrize("step", ["sieve_epsilon", "examine_epsilon"])
def test_noise_of_two_thirds_the_scale_is_caught(step):
    mechanism = settings(queries=len(LATE), **{step: 1.5})
    loss = exact_loss(sound(mechanism, LATE), replace_one((0, 1), mechanism.n))
    assert not loss.at_most(2.0)
    assert loss.at_most(2.5)


def test_an_examination_that_is_not_charged_is_caught():
    mechanism = settings(queries=len(LATE))
    loss = exact_loss(sound(mechanism, LATE), replace_one((0, 1), mechanism.n))
    assert not loss.at_most(mechanism.sieve_epsilon)


def test_a_last_round_that_is_not_charged_is_caught():
    """Charging a round only when it comes to an examination: nothing passed, nothing charged."""
    asked = (0,) * 8
    mechanism = settings(queries=8)

    def whether_any_passed(data):
        nothing = sound(mechanism, asked)(data)[(8,)]
        return {False: nothing, True: 1 - nothing}

    assert not exact_loss(whether_any_passed, replace_one((0, 1), mechanism.n)).at_most(0.4)


def test_the_sensitivity_of_all_data_used_on_the_subsample_is_caught():
    """n/m times the count of the subsample is moved by n/m, not by 1."""
    mechanism = settings(queries=len(LATE), threshold=2)
    loss = exact_loss(sound(mechanism, LATE, unit=2), replace_one((0, 1), mechanism.n))
    assert not loss.at_most(mechanism.guarantee.epsilon)


def test_one_subsample_for_all_rounds_is_caught():
    """It looks fresh in each round; amplification holds for all rounds together only."""
    asked = (0, 0, 0, 0, 1) * 2
    mechanism = settings(n=3, subsample=1, rounds=2, queries=len(asked), examine_epsilon=0.25)

    def reused(data):
        told = Counter()
        for drawn, w in subsets(data, mechanism.subsample).items():
            scores = tuple(drawn.count(value) for value in asked)
            known = cache(lambda start, scores=scores: sieve_pmf(mechanism, scores, start))
            for output, p in outcome(
                mechanism, data, asked, lambda start, known=known: dict(enumerate(known(start)))
            ).items():
                told[output] += w * p
        return told

    pair = [((0, 0, 0), (0, 0, 1))]
    assert not exact_loss(reused, pair).at_most(mechanism.guarantee.epsilon)
    assert exact_loss(sound(mechanism, asked), pair).at_most(mechanism.guarantee.epsilon)


def drawn_anew(mechanism, data, asked):
    """The distribution of each query's score when every query has a subsample of its own."""
    scores = [Counter() for _ in asked]
    for place, value in enumerate(asked):
        for drawn, w in subsets(data, mechanism.subsample).items():
            scores[place][drawn.count(value)] += w
    return scores


def test_a_new_sieve_for_every_query_charged_as_one_is_caught():
    """A subsample and a threshold of its own for each query: every answer costs."""
    mechanism, asked = settings(n=3, subsample=1, queries=1), (0,) * 40

    def anew(data):
        (scores,) = {tuple(s.items()): s for s in drawn_anew(mechanism, data, asked)}.values()
        fails = stops(mechanism, [scores])[1]
        return {k: fails**k * (1 - fails) for k in range(40)} | {40: fails**40}

    assert not exact_loss(anew, replace_one((0, 1), mechanism.n)).at_most(mechanism.sieve_epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_new_subsample_for_every_query_under_one_threshold_costs_no_more(epsilon):
    """4 ln(1 + (m/n)(e^(epsilon'/4) - 1)) at most here, less than sieve_epsilon."""
    asked = (0,) * 12 + (1,)
    mechanism = settings(n=3, subsample=1, queries=len(asked), sieve_epsilon=epsilon)
    loss = exact_loss(
        lambda data: stops(mechanism, drawn_anew(mechanism, data, asked)), [((0, 0, 0), (0, 0, 1))]
    )
    direct = 4 * log1p(expm1(float(mechanism.inner_epsilon) / 4) / 3)
    assert loss.at_most(direct)
    assert not loss.at_most(0.7 * direct)
    assert direct < mechanism.sieve_epsilon


# --- the program follows the distribution --------------------------------------------------


@pytest.mark.parametrize("start", [0, 2])
def test_the_exact_pmf_is_that_of_the_definition_up_to_the_floor(start):
    mechanism, scores = settings(tweak=1, threshold=3), (0, 3, 2)
    floor = mechanism.certificate().floor
    defined = stops(mechanism, [{score: 1} for score in scores], start)
    for place, p in enumerate(sieve_pmf(mechanism, scores, start)):
        assert abs(p - defined[place]) <= floor
    assert sum(sieve_pmf(mechanism, scores, start)) == 1


@pytest.mark.parametrize("secret", [False, True])
def test_draws_follow_the_exact_distribution_and_no_other_scale(secret, key):
    """Of the whole algorithm, on four records, two rounds."""
    mechanism = settings(rounds=2, queries=2, sieve_epsilon=2.0)
    data, asked, draws = (0, 0, 1, 1), (0, 1), 10_000
    table = int32([[value == one for one in asked] for value in data])

    def told(key):
        drawn = mechanism.subsamples(key=key)
        answers = mechanism.answer(drawn, table[drawn.indices].sum(1), table.sum(0), key=key)
        return jnp.stack([answers.examined, answers.above])

    key = secret_key().key if secret else key
    found = np.asarray(jax.jit(jax.vmap(told))(jax.random.split(key, draws)))
    counts = Counter((tuple(e.tolist()), tuple(a.tolist())) for e, a in found)

    def p_value(factor):
        other = replace(mechanism, sieve_epsilon=2.0 * factor, examine_epsilon=1.0 * factor)
        expected = Counter()
        for output, p in sound(other, asked)(data).items():
            examined = [False, False]
            above = [False, False]
            for place, verdict in zip(output[::2], output[1::2], strict=False):
                examined[place], above[place] = True, verdict
            expected[tuple(examined), tuple(above)] += p
        assert set(counts) <= set(expected)
        cells = list(expected)
        return stats.chisquare(
            [counts[c] for c in cells], draws * np.array([float(expected[c]) for c in cells])
        ).pvalue

    assert p_value(1) > ALARM
    assert max(p_value(2 / 3), p_value(3 / 2)) < ALARM
