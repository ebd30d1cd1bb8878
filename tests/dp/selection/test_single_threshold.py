"""Sparse vector with one threshold: its noise, its distribution, its loss, ends of the noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from math import prod

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selecting import ALARM, DRAWS, boxes, drawn, int32, p_value, pairs

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection import SingleThresholdSparseVector, SparseVector, tail_atom
from dpmic_jax.dp.selection.exact_pmf import single_threshold_pmf
from dpmic_jax.dp.selection.single_threshold import first_passing, limit
from dpmic_jax.dp.selection.threshold_noise import EndlessGeometric, draw
from dpmic_jax.mechanisms.release import add_noise

TWO = SingleThresholdSparseVector(epsilon=4.0, sensitivity=1, threshold=6, at_most=2, top=12)


def tails(rate):
    """P(G >= g) for g = 0, 1, ..., from the tables that are compared with random words."""
    terms = geometric.digits(rate).without_bit().terms()
    return [tail(terms, g) for g in range(geometric.ideal(rate).reach + 2)]


def raised(mechanism):
    """T plus the difference of the means."""
    gap = 1 / mechanism.queries.rate - 1 / mechanism.threshold_noise.rate
    return mechanism.threshold + math.floor(gap)


def ways(mechanism, points, noise, with_atom=tail_atom.with_atom):
    """Each threshold's probability, and that each candidate passes it; above all, sentinels do."""
    reached = tails(mechanism.queries.rate)
    return [
        (p, [with_atom(reached[min(max(z - s, 0), len(reached) - 1)]) for s in points])
        for z, p in noise
    ]


def sd(pmf):
    mean = sum(x * p for x, p in enumerate(pmf))
    return math.sqrt(sum((x - mean) ** 2 * p for x, p in enumerate(pmf)))


# --- the noise -----------------------------------------------------------------------------


@pytest.mark.parametrize("at_most", [1, 3, 10, 200])
@pytest.mark.parametrize("sensitivity", [1, 16])
def test_epsilon_is_split_one_to_the_power_two_thirds_of_twice_the_quota(at_most, sensitivity):
    mechanism = SingleThresholdSparseVector(
        epsilon=1.5, sensitivity=sensitivity, threshold=3, at_most=at_most, top=20
    )
    weight = (2 * at_most) ** (2 / 3)
    threshold, queries = 1.5 / (1 + weight), 1.5 * weight / (1 + weight)
    rates = float(mechanism.threshold_noise.rate), float(mechanism.queries.rate)
    assert rates[0] == pytest.approx(threshold / sensitivity, rel=1e-6)
    assert rates[1] == pytest.approx(queries / (2 * at_most * sensitivity), rel=1e-6)


@pytest.mark.parametrize("at_most", [1, 2, 10])
def test_no_other_split_has_a_smaller_variance(at_most):
    share = float(replace(TWO, at_most=at_most).threshold_share)

    def variance(share):
        return 1 / share**2 + (2 * at_most / (1 - share)) ** 2

    least = min(variance(x) for x in np.linspace(0.01, 0.99, 981))
    assert variance(share) <= least * (1 + 1e-6)


@pytest.mark.parametrize(("at_most", "before", "after"), [(10, 63, 24)])
def test_the_noise_is_far_smaller_than_that_of_algorithm_5(at_most, before, after):
    """At epsilon = 1, S = 1: exact standard deviations of what a comparison is disturbed by."""
    settings = {"epsilon": 1.0, "sensitivity": 1, "threshold": 0, "at_most": at_most, "top": 10**5}
    mechanism, printed = SingleThresholdSparseVector(**settings), SparseVector(**settings)

    def laplace(noise):
        reach = geometric.ideal(noise.rate).reach + 1
        return sd([float(noise.pmf(x)) for x in range(-reach, reach + 1)])

    reached = [float(a) for a in tails(mechanism.queries.rate)]
    query = sd([a - b for a, b in itertools.pairwise(reached)])
    threshold = sd([float(p) for p in mechanism.threshold_noise.pmf()])
    assert math.hypot(query, threshold) == pytest.approx(after, abs=0.5)
    theirs = laplace(printed.query_noise), laplace(printed.threshold_noise)
    assert math.hypot(*theirs) == pytest.approx(before, abs=0.5)
    assert query < theirs[0] / 2
    assert threshold < theirs[1] / 2


@pytest.mark.parametrize("at_most", [1, 5, 40])
def test_a_candidate_at_the_threshold_meets_noise_of_mean_zero(at_most):
    mechanism = replace(TWO, epsilon=3.0, at_most=at_most, top=10**4)
    query = sum(tails(mechanism.queries.rate)[1:])
    threshold = sum(z * p for z, p in enumerate(mechanism.threshold_noise.pmf()))
    assert -0.1 < query - threshold - (raised(mechanism) - mechanism.threshold) < 1.1


@pytest.mark.parametrize("rate", [Fraction(1, 30), Fraction(1, 2), Fraction(5), Fraction(32)])
def test_the_threshold_noise_satisfies_the_lemma_over_several_blocks(rate):
    """P(z) <= e^(rate d + rounding) P(z + d), and P(Z >= z) is e^(-rate z), nearly."""
    one_block = EndlessGeometric(rate=rate, most=0).length
    noise = EndlessGeometric(rate=rate, most=3 * one_block + 2)
    pmf = noise.pmf()
    assert sum(pmf) == 1
    assert len(pmf) == noise.most + 2
    assert 0 <= noise.rounding < Fraction(1, 2**40)
    for d in (1, 2, one_block - 1, one_block, one_block + 1):
        factor = exp_between(rate * d + noise.rounding, 60)[1]
        assert all(p <= factor * q for p, q in zip(pmf[:-1], pmf[d:-1], strict=False))
    # The last value collects what lies beyond: the same for the tails.
    reached = list(itertools.accumulate(reversed(pmf)))[::-1]
    for z, p in enumerate(reached):
        low, high = exp_between(-rate * z, 40)
        assert low * (1 - Fraction(1, 2**30)) <= p <= high * (1 + Fraction(1, 2**30))


def test_the_threshold_noise_is_drawn_from_its_words():
    noise = EndlessGeometric(rate=Fraction(1, 2), most=300)
    tables, length = noise.tables, noise.length
    assert length * (len(tables.coins.shifts) - 1) <= 300 < length * len(tables.coins.shifts)
    heads = int(noise.heads * 2**128)
    last, first = ([(n >> 32 * i) & 0xFFFFFFFF for i in (3, 2, 1, 0)] for n in (heads - 1, heads))
    words = np.full((tables.words, 4), 0xFFFFFFFF, np.uint32)  # no digit, and tails
    coins = words[tables.digits.words :].reshape(4, -1, 4)
    coins[:, 0, 1] = last  # one block, by the last word that is heads
    coins[:, 0, 2] = first  # the first word that is tails
    coins[:, 1, 2] = last  # heads after tails do not count
    words[:, 3] = 0  # all digits the highest, and only heads
    assert draw(jnp.asarray(words), tables, np.uint32(300)).tolist() == [0, length, 0, 301]


def test_draws_of_the_threshold_noise_follow_its_distribution(key):
    noise = EndlessGeometric(rate=Fraction(1, 5), most=25)
    words = jax.random.bits(key, (noise.tables.words, DRAWS), jnp.uint32)
    found = np.bincount(np.asarray(draw(words, noise.tables, np.uint32(25))))
    counts = dict(enumerate(found.tolist()))
    assert p_value(counts, dict(enumerate(noise.pmf()))) > ALARM
    other = EndlessGeometric(rate=Fraction(2, 15), most=25)
    assert p_value(counts, dict(enumerate(other.pmf()))) < ALARM


# --- the distribution ----------------------------------------------------------------------


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    st.integers(-5, 5),
    st.integers(1, 5),
)
def test_the_program_is_a_loop_that_ends_at_the_quota(noisy, limit, at_most):
    found = []
    for i, value in enumerate(noisy):
        if value >= limit:
            found.append(i)
            if len(found) == at_most:
                break
    padded = found + [-1] * (at_most - len(found))
    assert first_passing(int32(noisy), np.int32(limit), at_most).tolist() == padded


@pytest.mark.parametrize("at_most", [1, 2, 4])
def test_the_enumeration_is_the_sum_over_every_pattern(at_most):
    limits = [
        (Fraction(1, 3), [Fraction(1, 2), Fraction(1, 5), Fraction(1)]),
        (Fraction(2, 3), [Fraction(0), Fraction(3, 7), Fraction(1, 4)]),
    ]
    expected = {}
    for weight, passes in limits:
        for pattern in itertools.product((False, True), repeat=3):
            found = tuple(i for i in range(3) if pattern[i])[:at_most]
            p = prod(p if hit else 1 - p for p, hit in zip(passes, pattern, strict=True))
            expected[found] = expected.get(found, 0) + weight * p
    assert single_threshold_pmf(limits, at_most) == expected


def test_the_pmf_is_that_of_the_tables():
    points = [0, 5, 7]
    noise = TWO.threshold_noise
    limits = [(raised(TWO) + z, p) for z, p in enumerate(noise.pmf())]
    assert TWO.pmf(points) == single_threshold_pmf(ways(TWO, points, limits), 2)
    assert sum(TWO.pmf(points).values()) == 1
    assert TWO.pmf([-3, 5, 99]) == TWO.pmf([0, 5, 12])


@pytest.mark.parametrize("secret", [False, True])
def test_draws_follow_the_exact_distribution_and_no_other_scale(secret, key):
    scores = [0, 5, 12, 8]

    def select(scores, *, key):
        noise, limits = jax.random.split(key)
        return TWO.choose_padded(TWO.noisy(scores, key=noise), key=limits)

    counts = drawn(select, scores, secret_key().key if secret else key, DRAWS)
    assert p_value(counts, TWO.pmf(scores)) > ALARM
    for factor in (2 / 3, 3 / 2):
        assert p_value(counts, replace(TWO, epsilon=4.0 * factor).pmf(scores)) < ALARM
    # A new threshold after each hit is another distribution.
    assert p_value(counts, replaced_thresholds(scores)) < ALARM


def replaced_thresholds(scores):
    """The rounds of `SparseVector`, with the noise of `TWO`."""
    limits = [(raised(TWO) + z, p) for z, p in enumerate(TWO.threshold_noise.pmf())]
    found = {}
    for i, p in single_threshold_pmf(ways(TWO, scores, limits), 1).items():
        rest = scores[i[0] + 1 :] if i else []
        after = single_threshold_pmf(ways(TWO, rest, limits), 1) if rest else {(): Fraction(1)}
        for j, q in after.items():
            found[i + tuple(i[0] + 1 + m for m in j)] = p * q
    return found


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_most", "sensitivity", "values"),
    [(1, 1, (0, 6, 11)), (2, 1, (0, 6, 11)), (3, 1, (0, 6, 11)), (2, 2, (2, 9))],
)
def test_exact_loss_over_neighbours_is_within_epsilon(at_most, sensitivity, values):
    mechanism = replace(TWO, epsilon=4.0 * sensitivity, at_most=at_most, sensitivity=sensitivity)
    corners = list(itertools.product(values, repeat=3))
    assert exact_loss(mechanism.pmf, boxes(corners, sensitivity)).at_most(mechanism.epsilon)


@pytest.mark.parametrize(
    ("epsilon", "at_most", "sensitivity"),
    [(1.0, 1, 1), (1.0, 2, 1), (3.0, 3, 1), (2.0, 1, 3), (6.0, 5, 2)],
)
def test_exact_loss_is_epsilon_and_no_less(epsilon, at_most, sensitivity):
    """One that should pass and does not, then as many as the quota that should not and do."""
    mechanism = SingleThresholdSparseVector(
        epsilon=epsilon, sensitivity=sensitivity, threshold=30, at_most=at_most, top=90
    )
    level = raised(mechanism)
    one = (level + 2, *(level - 3,) * at_most)
    other = (level + 2 + sensitivity, *(level - 3 - sensitivity,) * at_most)
    found = exact_loss(mechanism.pmf, [[one, other]])
    assert found.at_most(epsilon)
    assert not found.at_most(0.9999 * epsilon)


@pytest.mark.parametrize(("epsilon", "at_most"), [(30.0, 1), (60.0, 3), (400.0, 2)])
def test_exact_loss_holds_at_the_ends_of_the_noise(epsilon, at_most):
    """Around every place where a noise, a block or the range of the scores ends."""
    mechanism = SingleThresholdSparseVector(
        epsilon=epsilon, sensitivity=1, threshold=200, at_most=at_most, top=400
    )
    noise, level = mechanism.threshold_noise, raised(mechanism)
    reach = geometric.ideal(mechanism.queries.rate).reach
    ends = {level + a * noise.length - b * reach for a in (0, 1, 2) for b in (0, 1)}
    near = {e + c for e in ends for c in (-2, -1, 0, 1)} & set(range(1, 399)) | {1, 398}
    vectors = list(itertools.product(sorted(near), repeat=2))
    assert exact_loss(mechanism.pmf, pairs(vectors, 1)).at_most(epsilon)


def test_scores_far_above_the_threshold_are_treated_alike():
    mechanism = SingleThresholdSparseVector(
        epsilon=4.0, sensitivity=1, threshold=6, at_most=2, top=10**6
    )
    end = raised(mechanism) + mechanism.threshold_noise.length - 1
    assert mechanism.pmf([end, 3]) == mechanism.pmf([10**6, 3])
    assert mechanism.pmf([end - 1, 3]) != mechanism.pmf([end, 3])
    missed = sum(p for found, p in mechanism.pmf([end]).items() if not found)
    assert missed < exp_between(-60, 20)[1]
    group = [[(end - 1, 5), (end, 4)], [(end - 1, 5), (end, 6)]]
    assert exact_loss(mechanism.pmf, group).at_most(4.0)


def ended(mechanism, closed):
    """Thresholds whose noise ends after one block, and that are closed with that probability."""
    within = tails(mechanism.threshold_noise.rate)
    pmf = [(1 - closed) * (a - b) for a, b in itertools.pairwise(within)]
    level = raised(mechanism)
    return [*((level + z, p) for z, p in enumerate(pmf)), (10**6, closed)]


@pytest.mark.parametrize("closed", [Fraction(0), Fraction(1, 2**24)])
def test_a_threshold_of_finite_noise_reveals_scores(closed):
    """With closed thresholds too: two hits below a closed one have the probability gamma^2."""
    mechanism = SingleThresholdSparseVector(
        epsilon=4.0, sensitivity=1, threshold=0, at_most=2, top=1000
    )
    last = raised(mechanism) + mechanism.threshold_noise.length - 1
    # A miss that takes the last value of the noise, then two hits.
    group = [[(last - 1, 500, 500), (last, 500, 500)]]

    def finite(points):
        return single_threshold_pmf(ways(mechanism, points, ended(mechanism, closed)), 2)

    found = exact_loss(finite, group)
    assert found.output == (1, 2)
    assert not found.at_most(12.0)
    assert exact_loss(mechanism.pmf, group).at_most(4.0)


def test_without_sentinels_the_end_of_the_noise_reveals_scores():
    mechanism = SingleThresholdSparseVector(
        epsilon=40.0, sensitivity=1, threshold=500, at_most=1, top=1000
    )
    noise, level = mechanism.threshold_noise, raised(mechanism)
    low = level - geometric.ideal(mechanism.queries.rate).reach
    limits = [(level + z, p) for z, p in enumerate(noise.pmf())]
    vectors = [[(low,), (low - 1,)]]
    bare = exact_loss(
        lambda s: single_threshold_pmf(ways(mechanism, s, limits, lambda a: a), 1), vectors
    )
    assert bare.less == 0
    assert bare.more > 0
    assert exact_loss(mechanism.pmf, vectors).at_most(40.0)


@pytest.mark.parametrize("at_most", [1, 20, 500])
@pytest.mark.parametrize("each", [0.001, 0.05, 1.0, 20.0])
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 5), (16, 2**20), (2048, 2**30)])
def test_the_certificate_keeps_epsilon_and_wastes_none(at_most, each, sensitivity, top):
    mechanism = SingleThresholdSparseVector(
        epsilon=at_most * each,
        sensitivity=sensitivity,
        threshold=top // 2,
        at_most=at_most,
        top=top,
    )
    found, asked = mechanism.certificate(), Fraction(at_most * each)
    assert found.epsilon_realised <= asked
    if mechanism.threshold_noise.rate < 32:
        assert found.epsilon_realised >= asked * (1 - Fraction(1, 2**28))
    parts = found.threshold_epsilon + at_most * found.query_epsilon
    assert found.epsilon_realised == parts
    assert found.delta_numerical == 0
    assert found.query_edge <= found.query_allowed
    assert mechanism.guarantee == PureDP(at_most * each)


# --- the program ---------------------------------------------------------------------------


def test_a_threshold_above_all_ordinary_scores_is_the_sentinel():
    noise, level = TWO.threshold_noise, raised(TWO)
    assert level + noise.most == 12 + geometric.ideal(TWO.queries.rate).reach
    words = np.zeros((noise.tables.words, 2), np.uint32)
    words[:, 1] = 0xFFFFFFFF
    settings = noise.tables, np.uint32(noise.most), np.int32(level)
    found = [int(limit(jnp.asarray(column), *settings)) for column in words.T]
    assert found == [tail_atom.SENTINEL, level]
    noisy = int32([tail_atom.SENTINEL - 1, tail_atom.SENTINEL, 0])
    assert first_passing(noisy, np.int32(tail_atom.SENTINEL), 2).tolist() == [1, -1]


def test_select_returns_as_many_indices_as_candidates_pass(key):
    mechanism = replace(TWO, epsilon=100.0, at_most=3)
    assert mechanism.select(int32([0, 12, 0, 12, 0]), key=key).tolist() == [1, 3]
    assert mechanism.select(int32([0, 0]), key=key).tolist() == []
    assert mechanism.select(int32([12] * 5), key=key).tolist() == [0, 1, 2]


def test_a_run_draws_one_threshold_from_its_own_key(key):
    """All equal noisy scores pass or none does; other keys draw other thresholds."""
    mechanism = replace(TWO, at_most=8)
    noisy, found = int32([9] * 8), set()
    for each in jax.random.split(key, 40):
        found.add(tuple(mechanism.choose(noisy, key=each).tolist()))
    assert found == {(), tuple(range(8))}


def test_candidates_in_tiles_get_the_noise_of_their_own_keys(key):
    every = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
    points = np.arange(len(every)) % 13
    whole = add_noise(TWO, points, every, key)
    parts = [add_noise(TWO, points[s], every[s], key) for s in (slice(0, 4), slice(4, None))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(
        TWO.release(int32([3, 4]), key=key), TWO.noisy(int32([3, 4]), key=key)
    )


def test_noise_uses_32_bit_integers_and_a_fixed_sequence_of_steps(key):
    for step in (TWO.noisy, TWO.choose_padded):
        found = goodness.dtypes(lambda key, s, f=step: f(s, key=key), key, int32(range(5)))
        assert found <= {"key<fry>", "uint32", "int32", "bool"}
    noise = TWO.threshold_noise
    words = jnp.zeros((noise.tables.words,), jnp.uint32)
    steps = goodness.primitives(lambda w: draw(w, noise.tables, np.uint32(noise.most)), words)
    assert not steps & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"at_most": 0}, {"threshold": 13}, {"top": 0}, {"sensitivity": 0}]
)
def test_invalid_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(TWO, **change)


def test_sums_beyond_int32_and_noise_beyond_the_tables_are_refused():
    with pytest.raises(ValueError, match="coarser scores"):
        SingleThresholdSparseVector(
            epsilon=0.0001, sensitivity=2048, threshold=3, at_most=1, top=2**30
        )
    with pytest.raises(ValueError, match="larger epsilon"):
        SingleThresholdSparseVector(
            epsilon=0.0001, sensitivity=2**20, threshold=3, at_most=100, top=6
        )


def test_noisy_scores_of_another_type_are_refused(key):
    with pytest.raises(TypeError, match="int32"):
        TWO.choose(np.array([1.0, 2.0]), key=key)
    with pytest.raises(TypeError, match="int32"):
        TWO.noisy(np.array([2**40]), key=key)
