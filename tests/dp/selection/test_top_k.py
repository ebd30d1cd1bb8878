"""One-shot top-k: its distribution, its loss against epsilon, and what breaks it."""

import itertools
from dataclasses import replace
from fractions import Fraction
from math import comb

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from selecting import ALARM, DRAWS, boxes, drawn, int32, p_value

from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection import OneShotTopK, PermuteAndFlip, tail_atom
from dpmic_jax.dp.selection.exact_pmf import top_k_pmf
from dpmic_jax.dp.selection.top_k import noisy_scores, smallest
from dpmic_jax.mechanisms.release import add_noise

TWO = OneShotTopK(epsilon=2.0, sensitivity=1, k=2, top=12)


def tails(mechanism):
    """P(G >= d) for d = 0 .. reach + 1, from the tables that are compared with random words."""
    terms = geometric.digits(mechanism.rate).without_bit().terms()
    return [tail(terms, d) for d in range(geometric.ideal(mechanism.rate).reach + 2)]


# --- the distribution ----------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.sampled_from([0.5, 1.0, 5.0]))
def test_top_1_has_the_distribution_of_permute_and_flip(scores, epsilon):
    """Ding et al. 2021, for exponential noise; so for geometric noise with random ties."""
    one = OneShotTopK(epsilon=epsilon, sensitivity=1, k=1, top=9).pmf(scores)
    flips = PermuteAndFlip(epsilon=epsilon).pmf(scores)
    for mine, theirs in zip(one.values(), flips, strict=True):
        assert float(mine) == pytest.approx(float(theirs), rel=1e-9)


def test_top_k_has_the_distribution_of_exponential_noise():
    scores, mechanism = [0, 3, 4, 6], OneShotTopK(epsilon=2.0, sensitivity=1, k=2, top=6)
    rate = float(mechanism.rate)

    def density(chosen):
        """The density of the best one that is not chosen, times P(all chosen ones are above)."""
        out = [i for i in range(4) if i not in chosen]

        def at(y):
            above = [np.exp(-rate * max(y - s, 0.0)) for s in scores]
            inside = np.prod([above[i] for i in chosen])
            best = sum(
                (y >= scores[j]) * rate * above[j] * np.prod([1 - above[i] for i in out if i != j])
                for j in out
            )
            return inside * best

        return integrate.quad(at, 0, 120, points=[*scores, 20], limit=500)[0]

    for chosen, p in mechanism.pmf(scores).items():
        assert float(p) == pytest.approx(density(chosen), rel=1e-6)


@pytest.mark.parametrize("secret", [False, True])
def test_draws_follow_the_exact_distribution_and_no_other_scale(secret, key):
    scores = [0, 3, 7, 5, 12]
    counts = drawn(TWO.select, scores, secret_key().key if secret else key, DRAWS)
    assert p_value(counts, TWO.pmf(scores)) > ALARM
    for factor in (2 / 3, 3 / 2):
        assert p_value(counts, replace(TWO, epsilon=2.0 * factor).pmf(scores)) < ALARM


def test_equal_scores_are_chosen_equally_often(key):
    mechanism = replace(TWO, epsilon=60.0)
    counts = drawn(mechanism.select, [5, 5, 5, 5], key, DRAWS)
    assert p_value(counts, dict.fromkeys(itertools.combinations(range(4), 2), 1 / 6)) > ALARM


@pytest.mark.parametrize("beta", [Fraction(1, 2), Fraction(1, 100)])
def test_no_chosen_candidate_is_far_behind_one_that_is_not(beta):
    scores = [0, 2, 5, 9, 12]
    allowed = np.log(len(scores) / float(beta)) / float(TWO.rate)
    out = [set(range(5)) - set(chosen) for chosen in TWO.pmf(scores)]
    worse = sum(
        p
        for (chosen, p), rest in zip(TWO.pmf(scores).items(), out, strict=True)
        if max(scores[j] for j in rest) - min(scores[i] for i in chosen) > allowed
    )
    assert worse <= beta


# --- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "corners"),
    [
        (OneShotTopK(epsilon=1.0, sensitivity=1, k=1, top=40), [(0, 20, 39), (0, 0, 39)]),
        (OneShotTopK(epsilon=2.0, sensitivity=1, k=2, top=40), [(0, 0, 39), (0, 1, 39, 38)]),
        (OneShotTopK(epsilon=2.0, sensitivity=3, k=2, top=60), [(0, 0, 57), (0, 57, 57)]),
        (OneShotTopK(epsilon=3.0, sensitivity=1, k=3, top=30), [(0, 0, 0, 29)]),
    ],
)
def test_exact_loss_over_all_neighbours_is_epsilon_and_no_more(mechanism, corners):
    found = exact_loss(mechanism.pmf, boxes(corners, mechanism.sensitivity))
    assert found.at_most(mechanism.epsilon)
    assert not found.at_most(0.99 * mechanism.epsilon)


@pytest.mark.parametrize("epsilon", [4.0, 40.0, 70.0, 200.0])
def test_exact_loss_holds_where_scores_are_beyond_the_reach(epsilon):
    mechanism = OneShotTopK(epsilon=epsilon, sensitivity=1, k=2, top=10**6)
    reach = geometric.ideal(mechanism.rate).reach
    near = [0, reach // 2, reach - 2, reach - 1, reach, reach + 1, 2 * reach]
    corners = [(0, 0, a) for a in near] + [(0, a, b) for a in near[2:] for b in near[2:]]
    assert exact_loss(mechanism.pmf, boxes(corners, 1)).at_most(epsilon)


def test_without_sentinels_the_end_of_the_noise_reveals_scores():
    mechanism = OneShotTopK(epsilon=40.0, sensitivity=1, k=2, top=10**6)
    reached = tails(mechanism)

    def bare(points):
        def at(point, y):
            return reached[min(max(y - point, 0), len(reached) - 1)]

        levels = range(min(points), max(points) + len(reached) - 1)
        return top_k_pmf([[(at(s, y), at(s, y + 1)) for s in points] for y in levels], 2)

    reach = geometric.ideal(mechanism.rate).reach
    found = exact_loss(bare, boxes([(0, reach, reach)], 1))
    assert found.less == 0
    assert found.more > 0


def test_noise_of_two_thirds_the_scale_is_caught():
    mechanism = replace(TWO, epsilon=3.0, top=40)
    assert not exact_loss(mechanism.pmf, boxes([(0, 0, 39)], 1)).at_most(2.0)


def test_noise_that_forgets_k_is_caught():
    """Each of k winners costs as much as one winner of report-noisy-max."""
    mechanism = replace(TWO, epsilon=2.0 * 2)
    found = exact_loss(mechanism.pmf, boxes([(0, 0, 8)], 1))
    assert not found.at_most(3.9)


def test_a_sensitivity_of_one_claimed_for_two_is_caught():
    assert not exact_loss(replace(TWO, top=40).pmf, boxes([(0, 0, 38)], 2)).at_most(2.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.5, 20.0, 39.0, 100.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_noise_satisfies_the_lemma(epsilon, sensitivity):
    """F_s(y) <= e^a F_s'(min(y + S, SENTINEL)), with the a of the certificate."""
    mechanism = OneShotTopK(epsilon=epsilon, sensitivity=sensitivity, k=1, top=9)
    reached = [tail_atom.with_atom(a) for a in tails(mechanism)]
    factor = exp_between(mechanism.certificate().epsilon_realised, 60)[0]
    for d, f in enumerate(reached):
        assert f <= factor * reached[min(d + 2 * sensitivity, len(reached) - 1)]


@pytest.mark.parametrize("k", [1, 20, 1000])
@pytest.mark.parametrize("each", [0.001, 0.05, 1.0, 30.0])
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 5), (16, 2**20), (2048, 2**30)])
def test_the_certificate_keeps_epsilon_and_wastes_none(k, each, sensitivity, top):
    mechanism = OneShotTopK(epsilon=k * each, sensitivity=sensitivity, k=k, top=top)
    certificate = mechanism.certificate()
    assert Fraction(k * each) * (1 - Fraction(1, 2**29)) <= certificate.epsilon_realised
    assert certificate.epsilon_realised <= Fraction(k * each)
    assert certificate.delta_numerical == 0
    assert certificate.edge_mass <= certificate.edge_allowed
    assert mechanism.guarantee.epsilon == k * each


# --- the program ---------------------------------------------------------------------------


def test_the_sentinel_has_its_probability_and_ordinary_noise_never_reaches_it():
    tables = geometric.digits(TWO.rate).without_bit()
    most = int(tail_atom.PROBABILITY * 2**64)
    coins = [(0, 0), (0, most - 1), (0, most), (1, 0), (2**32 - 1, 0)]
    words = np.zeros((tables.words + 2, len(coins)), np.uint32)  # the largest noise
    words[-2:] = np.array(coins, np.uint32).T
    out = noisy_scores(jnp.asarray(words), int32([12] * 5), tables, np.int32(12)).tolist()
    largest_noise = geometric.ideal(TWO.rate).reach
    assert out[:2] == [tail_atom.SENTINEL] * 2
    assert out[2:] == [12 + largest_noise] * 3
    assert 12 + largest_noise < tail_atom.SENTINEL


def test_the_largest_possible_sum_fits_int32():
    mechanism = OneShotTopK(epsilon=0.001, sensitivity=2048, k=1, top=2**30)
    tables = geometric.digits(mechanism.rate).without_bit()
    words = np.zeros((tables.words + 2, 1), np.uint32)
    words[-1] = 2**32 - 1
    out = noisy_scores(jnp.asarray(words), int32([2**30]), tables, np.int32(2**30))
    assert int(out[0]) == 2**30 + geometric.ideal(mechanism.rate).reach


@given(
    st.lists(st.integers(-3, 3), min_size=12, max_size=12),
    st.lists(st.integers(0, 2), min_size=12, max_size=12),
    st.sampled_from([1, 5, 12]),
)
def test_the_smallest_are_those_of_a_sort(first, second, k):
    second = np.uint32(2**32 - 1) - np.array(second, np.uint32)
    order = np.lexsort((np.arange(len(first)), second, np.array(first)))
    found = smallest([int32(first), jnp.asarray(second)], k)
    assert found.tolist() == sorted(order[:k].tolist())


def test_candidates_in_tiles_get_the_noise_of_their_own_keys(key):
    pairs = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
    points = np.arange(len(pairs)) % 13
    whole = add_noise(TWO, points, pairs, key)
    parts = [add_noise(TWO, points[s], pairs[s], key) for s in (slice(0, 4), slice(4, None))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    found = TWO.choose(int32(whole), key=key).tolist()
    assert found == sorted(np.argsort(-whole, kind="stable")[:2].tolist())


def test_noise_uses_32_bit_integers_and_a_fixed_sequence_of_steps(key):
    found = goodness.dtypes(lambda key, s: TWO.noisy(s, key=key), key, int32(range(5)))
    assert found <= {"key<fry>", "uint32", "int32", "bool"}
    found = goodness.dtypes(lambda key, s: TWO.choose(s, key=key), key, int32(range(5)))
    assert found <= {"key<fry>", "uint32", "int32", "bool"}
    tables = geometric.digits(TWO.rate).without_bit()
    words = jnp.zeros((tables.words + 2, 5), jnp.uint32)
    top = np.int32(9)
    steps = goodness.primitives(
        lambda w, s: noisy_scores(w, s, tables, top), words, int32(range(5))
    )
    assert not steps & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}


def test_all_candidates_can_be_chosen(key):
    mechanism = replace(TWO, k=3)
    assert mechanism.select(int32([4, 1, 2]), key=key).tolist() == [0, 1, 2]
    assert mechanism.pmf([4, 1, 2]) == {(0, 1, 2): 1}
    assert len(TWO.pmf([1] * 6)) == comb(6, 2)


def test_the_pmf_clips_scores_as_the_noise_does():
    assert TWO.pmf([-5, 3, 99]) == TWO.pmf([0, 3, 12])


# --- mistakes ------------------------------------------------------------------------------


def test_sums_beyond_int32_are_refused():
    with pytest.raises(ValueError, match="coarser scores"):
        OneShotTopK(epsilon=0.0001, sensitivity=2048, k=1, top=2**30)


def test_noise_beyond_the_tables_is_refused():
    with pytest.raises(ValueError, match="smaller k"):
        OneShotTopK(epsilon=0.0001, sensitivity=2**20, k=100, top=2**20)


@pytest.mark.parametrize("change", [{"k": 0}, {"k": 2.0}, {"top": 0}, {"sensitivity": 0}])
def test_invalid_settings_are_refused(change):
    with pytest.raises((ValueError, TypeError), match=next(iter(change))):
        replace(TWO, **change)


def test_fewer_candidates_than_winners_are_refused(key):
    with pytest.raises(ValueError, match="at least 2 candidates"):
        TWO.select(int32([3]), key=key)
    with pytest.raises(ValueError, match="at least 2 candidates"):
        TWO.choose(int32([3]), key=key)


def test_noisy_scores_of_another_type_are_refused(key):
    with pytest.raises(TypeError, match="int32"):
        TWO.choose(np.array([1.0, 2.0, 3.0]), key=key)
    with pytest.raises(TypeError, match="int32"):
        TWO.noisy(np.array([2**40]), key=key)
    with pytest.raises(ValueError, match="rbg"):
        TWO.noisy(int32([1]), key=jax.random.key(0, impl="rbg"))
