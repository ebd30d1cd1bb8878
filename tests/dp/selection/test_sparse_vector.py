"""Sparse vector: Algorithm 5 as printed, its distribution, its loss, the ends of its noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selecting import ALARM, DRAWS, boxes, drawn, int32, p_value, pairs

from dpmic_jax.dp.accounting.composition import optimal
from dpmic_jax.dp.accounting.events import ApproximateDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.audit import exact_delta, exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection import SparseVector, tail_atom
from dpmic_jax.dp.selection.exact_pmf import sparse_vector_pmf
from dpmic_jax.dp.selection.sparse_vector import first_passes, noisy_scores, thresholds
from dpmic_jax.mechanisms.release import add_noise

TWO = SparseVector(epsilon=4.0, sensitivity=1, threshold=6, at_most=2, top=12)
CLOSED = Fraction(1, 2**24)


def ways(mechanism, points, closed=CLOSED, with_atom=tail_atom.with_atom):
    """The probability of each threshold, and that each candidate passes it, from the tables."""
    query, noise = mechanism.query_noise, mechanism.threshold_noise
    far = geometric.ideal(noise.rate).reach + 1
    found = [
        (
            (1 - closed) * noise.pmf(z),
            [with_atom(query.tail(mechanism.threshold + z - point)) for point in points],
        )
        for z in range(-far, far + 1)
    ]
    return [*found, (closed, [with_atom(Fraction(0)) for _ in points])] if closed else found


# --- as printed ----------------------------------------------------------------------------


@pytest.mark.parametrize("at_most", [1, 3, 200])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("sensitivity", [1, 16])
def test_the_scales_are_those_of_algorithm_5(at_most, delta, sensitivity):
    epsilon = 1.5
    mechanism = SparseVector(
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        threshold=3,
        at_most=at_most,
        top=20,
    )
    root = math.sqrt(32 * at_most * math.log(1 / delta)) if delta else 2 * at_most
    sigma = root / epsilon
    scale = float(1 / mechanism.threshold_noise.rate)
    assert scale == pytest.approx(sigma * sensitivity, rel=1e-9)
    assert float(1 / mechanism.query_noise.rate) == pytest.approx(2 * scale, rel=1e-9)


@given(
    st.lists(st.integers(-4, 4), min_size=12, max_size=12),
    st.lists(st.integers(-5, 5), min_size=4, max_size=4),
)
def test_the_program_is_the_loop_of_algorithm_5(noisy, limits):
    count, found = 0, []
    for i, value in enumerate(noisy):
        if value >= limits[count]:
            found.append(i)
            count += 1
            if count >= len(limits):
                break
    padded = found + [-1] * (len(limits) - len(found))
    assert first_passes(int32(noisy), int32(limits)).tolist() == padded


def test_the_pmf_is_that_of_the_tables():
    points = [0, 5, 7]
    assert TWO.pmf(points) == sparse_vector_pmf(ways(TWO, points), 2)
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


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize("at_most", [1, 2])
@pytest.mark.parametrize(("sensitivity", "values"), [(1, (0, 6, 11)), (2, (2, 9))])
def test_exact_loss_over_neighbours_is_within_epsilon(at_most, sensitivity, values):
    mechanism = replace(TWO, at_most=at_most, sensitivity=sensitivity)
    corners = list(itertools.product(values, repeat=3))
    assert exact_loss(mechanism.pmf, boxes(corners, sensitivity)).at_most(mechanism.epsilon)


def test_exact_loss_comes_close_to_epsilon():
    """Many that should pass and do not, then one that should not and does."""
    mechanism = SparseVector(epsilon=1.0, sensitivity=1, threshold=30, at_most=1, top=60)
    found = exact_loss(mechanism.pmf, [[(50, 50, 50, 50, 10), (51, 51, 51, 51, 9)]])
    assert found.at_most(1.0)
    assert not found.at_most(0.95)
    twice = replace(mechanism, epsilon=2.0, at_most=2)
    one, other = (50, 50, 50, 10), (51, 51, 51, 9)
    found = exact_loss(twice.pmf, [[one * 2, other * 2]])
    assert found.at_most(2.0)
    assert not found.at_most(1.85)


@pytest.mark.parametrize("epsilon", [8.0, 60.0, 150.0, 400.0])
def test_exact_loss_holds_at_the_ends_of_the_noise(epsilon):
    mechanism = SparseVector(epsilon=epsilon, sensitivity=1, threshold=500, at_most=2, top=1000)
    query, limit = (
        geometric.ideal(noise.rate).reach + 1
        for noise in (mechanism.query_noise, mechanism.threshold_noise)
    )
    ends = {500 + a * query + b * limit + c for a in (-1, 1) for b in (-1, 1) for c in (-1, 0, 1)}
    near = sorted({*ends, 500} & set(range(1, 1000)))
    vectors = list(itertools.product(near, repeat=2))
    assert exact_loss(mechanism.pmf, pairs(vectors, 1)).at_most(epsilon)


def test_without_closed_thresholds_the_end_of_the_noise_reveals_scores():
    mechanism = SparseVector(epsilon=40.0, sensitivity=1, threshold=0, at_most=1, top=1000)
    reach = sum(
        geometric.ideal(noise.rate).reach + 1
        for noise in (mechanism.query_noise, mechanism.threshold_noise)
    )
    bare = exact_loss(
        lambda s: sparse_vector_pmf(ways(mechanism, s, closed=0), 1), [[(reach - 1,), (reach,)]]
    )
    assert bare.less == 0
    assert bare.more > 0
    assert exact_loss(mechanism.pmf, [[(reach - 1,), (reach,)]]).at_most(40.0)


def test_without_sentinels_the_end_of_the_noise_reveals_scores():
    mechanism = SparseVector(epsilon=40.0, sensitivity=1, threshold=500, at_most=1, top=1000)
    reach = sum(
        geometric.ideal(noise.rate).reach + 1
        for noise in (mechanism.query_noise, mechanism.threshold_noise)
    )
    vectors = [[(500 - reach,), (500 - reach - 1,)]]
    bare = exact_loss(
        lambda s: sparse_vector_pmf(ways(mechanism, s, with_atom=lambda a: a), 1), vectors
    )
    assert bare.less == 0
    assert bare.more > 0
    assert exact_loss(mechanism.pmf, vectors).at_most(40.0)


@pytest.mark.parametrize("epsilon", [0.5, 7.0, 60.0, 200.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_noise_satisfies_the_assumptions_of_the_proof(epsilon, sensitivity):
    """Both halves of a round, and the probability left at the end of the threshold's noise."""
    mechanism = SparseVector(
        epsilon=epsilon, sensitivity=sensitivity, threshold=4, at_most=1, top=9
    )
    query, noise = mechanism.query_noise, mechanism.threshold_noise
    half = exp_between(Fraction(min(epsilon, 80)) / 2, 60)[0]
    far = geometric.ideal(query.rate).reach + 2
    reached = [tail_atom.with_atom(query.tail(d)) for d in range(-far, far + 1)]
    for d, f in enumerate(reached):
        assert f <= half * reached[min(d + 2 * sensitivity, 2 * far)]
    reach = geometric.ideal(noise.rate).reach
    mass = {z: noise.pmf(z) for z in range(-reach - 1, reach + 2)}
    kept = [z for z in mass if z + sensitivity <= reach]
    assert all(mass[z] <= half * mass[z + sensitivity] for z in kept)
    assert (
        sum(p for z, p in mass.items() if z not in kept) == mechanism.certificate().threshold_edge
    )


@pytest.mark.parametrize("at_most", [1, 20, 500])
@pytest.mark.parametrize("each", [0.001, 0.05, 1.0, 60.0])
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 5), (16, 2**20), (2048, 2**30)])
def test_the_certificate_keeps_epsilon_and_wastes_none(at_most, each, sensitivity, top):
    mechanism = SparseVector(
        epsilon=at_most * each,
        sensitivity=sensitivity,
        threshold=top // 2,
        at_most=at_most,
        top=top,
    )
    found = mechanism.certificate()
    asked = Fraction(at_most * each)
    assert asked * (1 - Fraction(1, 2**28)) <= found.epsilon_realised <= asked
    assert found.delta_numerical == 0
    assert found.query_edge <= found.query_allowed
    assert found.threshold_edge <= found.threshold_allowed
    assert mechanism.guarantee == PureDP(at_most * each)


# --- delta above zero ----------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta", "at_most"), [(1.0, 1e-6, 50), (4.0, 1e-3, 300)])
def test_rounds_compose_to_no_more_than_what_is_claimed(epsilon, delta, at_most):
    mechanism = SparseVector(
        epsilon=epsilon, delta=delta, sensitivity=1, threshold=3, at_most=at_most, top=6
    )
    event = Event(
        mechanism="sparse vector",
        guarantee=mechanism.round_guarantee,
        relation=ReplaceOne(),
        n=10,
        sensitivity=Fraction(1),
        count=at_most,
    )
    profile = optimal([event])
    assert profile(float(mechanism.certificate().epsilon_realised) + 1e-9) <= delta
    assert mechanism.guarantee == ApproximateDP(epsilon, delta)
    # The printed sigma is about twice as large as delta needs.
    assert mechanism.certificate().epsilon_realised <= Fraction(epsilon) * 3 / 5


def test_exact_delta_is_within_delta_where_epsilon_alone_does_not_hold():
    """Three rounds of 0.5 each; so few are covered by a delta this large only."""
    mechanism = SparseVector(epsilon=0.8, delta=0.9, sensitivity=1, threshold=40, at_most=3, top=80)
    group = [[(65, 65, 15) * 3, (66, 66, 14) * 3]]
    assert not exact_loss(mechanism.pmf, group).at_most(1.1)
    assert exact_delta(mechanism.pmf, group, epsilon=0.8).high <= Fraction(mechanism.delta)


def test_up_to_eight_log_one_over_delta_rounds_the_printed_delta_only_adds_noise():
    few, many = (
        [
            SparseVector(
                epsilon=1.0, delta=delta, sensitivity=1, threshold=3, at_most=at_most, top=6
            ).round_epsilon
            for delta in (0.0, 1e-6)
        ]
        for at_most in (110, 111)
    )
    assert few[1] < few[0]
    assert many[1] > many[0]


def test_an_epsilon_beyond_the_formula_for_delta_is_refused():
    with pytest.raises(ValueError, match="use delta=0"):
        SparseVector(epsilon=60.0, delta=0.1, sensitivity=1, threshold=3, at_most=500, top=6)


# --- the program ---------------------------------------------------------------------------


def test_sentinels_and_closed_thresholds_have_their_probabilities():
    tables = geometric.digits(TWO.query_noise.rate)
    most = int(tail_atom.PROBABILITY * 2**64)
    coins = [(0, most - 1), (0, most), (1, 0)]
    words = np.zeros((tables.words + 3, 3), np.uint32)  # the largest noise, upwards
    words[-2:] = np.array(coins, np.uint32).T
    out = noisy_scores(jnp.asarray(words), int32([12] * 3), tables, np.int32(12)).tolist()
    largest = geometric.ideal(TWO.query_noise.rate).reach + 1
    assert out == [tail_atom.SENTINEL, 12 + largest, 12 + largest]

    tables = geometric.digits(TWO.threshold_noise.rate)
    words = np.zeros((tables.words + 2, 3), np.uint32)
    words[-1] = [0, int(CLOSED * 2**32) - 1, int(CLOSED * 2**32)]
    out = thresholds(jnp.asarray(words), tables, np.int32(6)).tolist()
    largest = geometric.ideal(TWO.threshold_noise.rate).reach + 1
    assert out == [tail_atom.SENTINEL, tail_atom.SENTINEL, 6 + largest]


def test_only_sentinels_pass_a_closed_threshold():
    sentinel = tail_atom.SENTINEL
    noisy, limits = int32([sentinel - 1, sentinel, 0, sentinel]), int32([sentinel, sentinel, -5])
    assert first_passes(noisy, limits).tolist() == [1, 3, -1]


def test_select_returns_as_many_indices_as_candidates_pass(key):
    mechanism = replace(TWO, epsilon=70.0, at_most=3)
    found = mechanism.select(int32([0, 12, 0, 12, 0]), key=key)
    assert found.tolist() == [1, 3]
    assert mechanism.select(int32([0, 0]), key=key).tolist() == []
    assert mechanism.select(int32([12] * 5), key=key).tolist() == [0, 1, 2]


def test_candidates_in_tiles_get_the_noise_of_their_own_keys(key):
    every = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
    points = np.arange(len(every)) % 13
    whole = add_noise(TWO, points, every, key)
    parts = [add_noise(TWO, points[s], every[s], key) for s in (slice(0, 4), slice(4, None))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_noise_uses_32_bit_integers_and_a_fixed_sequence_of_steps(key):
    for step in (TWO.noisy, TWO.choose_padded):
        found = goodness.dtypes(lambda key, s, f=step: f(s, key=key), key, int32(range(5)))
        assert found <= {"key<fry>", "uint32", "int32", "bool"}
    tables = geometric.digits(TWO.query_noise.rate)
    words, top = jnp.zeros((tables.words + 3, 5), jnp.uint32), np.int32(9)
    steps = goodness.primitives(
        lambda w, s: noisy_scores(w, s, tables, top), words, int32(range(5))
    )
    assert not steps & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"at_most": 0}, {"threshold": 13}, {"top": 0}, {"sensitivity": 0}, {"delta": 1.0}]
)
def test_invalid_settings_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(TWO, **change)


def test_sums_beyond_int32_and_noise_beyond_the_tables_are_refused():
    with pytest.raises(ValueError, match="coarser scores"):
        SparseVector(epsilon=0.0001, sensitivity=2048, threshold=3, at_most=1, top=2**30)
    with pytest.raises(ValueError, match="larger epsilon"):
        SparseVector(epsilon=0.0001, sensitivity=2**20, threshold=3, at_most=100, top=6)


def test_noisy_scores_of_another_type_are_refused(key):
    with pytest.raises(TypeError, match="int32"):
        TWO.choose(np.array([1.0, 2.0]), key=key)
    with pytest.raises(TypeError, match="int32"):
        TWO.noisy(np.array([2**40]), key=key)
