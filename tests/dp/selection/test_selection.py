"""Permute-and-flip: its distribution by every order and every draw, its loss against epsilon."""

import itertools
from fractions import Fraction
from math import factorial, prod

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpmic_jax.dp.audit import exact_loss
from dpmic_jax.dp.audit.exact import exp_between
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection import PermuteAndFlip, chosen, first, selected

ALARM, DRAWS = 1e-6, 20_000
EPSILONS = [2.0**-16, 0.01, 0.5, 1.0, 2.5, 7.0, 20.0, 40.0, 58.0, 64.0, 100.0]


def coins(mechanism):
    """P(G >= d) for d = 0 .. furthest, from the tables that are compared with random words."""
    terms = geometric.digits(mechanism.rate).without_bit().terms()
    return [tail(terms, d) for d in range(mechanism.certificate().furthest + 1)]


def int32(values):
    return jnp.asarray(np.asarray(values, np.int32))


# --- the distribution ----------------------------------------------------------------------


def in_every_order(accepted):
    """The definition: the first accepted one of a random order."""
    pmf = [Fraction(0)] * len(accepted)
    for order in itertools.permutations(range(len(accepted))):
        for place, i in enumerate(order):
            pmf[i] += accepted[i] * prod(1 - accepted[j] for j in order[:place])
    return [p / factorial(len(accepted)) for p in pmf]


def for_every_draw(accepted, levels):
    """The sampler: every set of accepted candidates with every priority, one by one."""
    pmf = [Fraction(0)] * len(accepted)
    each = range(len(accepted))
    # The best one is always accepted.
    for yes in filter(any, itertools.product((False, True), repeat=len(accepted))):
        weight = prod(a if y else 1 - a for a, y in zip(accepted, yes, strict=True))
        for priority in itertools.product(range(levels), repeat=len(accepted)):
            winner = min((i for i in each if yes[i]), key=lambda i: (priority[i], i))
            pmf[winner] += weight / levels ** len(accepted)
    return pmf


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_the_pmf_is_the_count_over_every_draw(levels):
    accepted = [Fraction(1, 3), Fraction(1), Fraction(5, 8), Fraction(1)]
    for k in (2, 3, 4):
        assert chosen(accepted[:k], levels) == for_every_draw(accepted[:k], levels)
    assert chosen([Fraction(1)], levels) == [1]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5), st.sampled_from([0.1, 1.0, 5.0]))
def test_the_pmf_is_that_of_a_random_order_up_to_ties_of_priorities(scores, epsilon):
    mechanism = PermuteAndFlip(epsilon=epsilon)
    bias = coins(mechanism)
    behind = [min(max(scores) - s, len(bias) - 1) for s in scores]
    pairs = zip(mechanism.pmf(scores), in_every_order([bias[d] for d in behind]), strict=True)
    for realised, ordered in pairs:
        assert abs(realised - ordered) <= Fraction(len(scores), 2**128) * ordered
    assert sum(mechanism.pmf(scores)) == 1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 7.0, 20.0, 64.0])
def test_a_candidate_behind_by_d_is_accepted_with_probability_exp_minus_rate_d(epsilon):
    mechanism = PermuteAndFlip(epsilon=epsilon)
    for d, bias in enumerate(coins(mechanism)):
        low, high = exp_between(-mechanism.rate * d, 40)
        assert low * (1 - Fraction(1, 2**40)) <= bias <= high * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize("secret", [False, True])
def test_draws_follow_the_exact_distribution_and_no_other_scale(secret, key):
    scores, draws = [0, -1, -3, 0, -7, -12, -2], DRAWS
    keys = jax.random.split(secret_key().key if secret else key, draws)
    mechanism = PermuteAndFlip(epsilon=1.5, sensitivity=2)
    found = jax.vmap(lambda key: mechanism.select(int32(scores), key=key))(keys)
    counts = np.bincount(found, minlength=len(scores))

    def p_value(factor):
        other = PermuteAndFlip(epsilon=1.5 * factor, sensitivity=2)
        expected = draws * np.array([float(p) for p in other.pmf(scores)])
        return stats.chisquare(counts, expected * draws / expected.sum()).pvalue

    assert p_value(1) > ALARM
    assert max(p_value(2 / 3), p_value(3 / 2)) < ALARM


def test_a_candidate_far_behind_is_rarely_chosen(key):
    """(k / 2) e^(-rate e): the candidate has to come before the best one, and be accepted."""
    mechanism = PermuteAndFlip(epsilon=1.0)
    scores = [0, *range(-15, -5)]
    for e in range(6, 16):
        worse = sum(p for p, s in zip(mechanism.pmf(scores), scores, strict=True) if s <= -e)
        assert worse <= Fraction(len(scores), 2) * exp_between(-mechanism.rate * e, 30)[1]


# --- privacy -------------------------------------------------------------------------------


def boxes(corners, sensitivity):
    """Groups of score vectors in which any two differ by at most the sensitivity everywhere."""
    for corner in corners:
        yield list(itertools.product(*(range(c, c + sensitivity + 1) for c in corner)))


def loss(mechanism, corners):
    return exact_loss(
        lambda scores: dict(enumerate(mechanism.pmf(scores))), boxes(corners, mechanism.sensitivity)
    )


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "corners"),
    [
        (1.0, 1, list(itertools.product([0], range(8), range(8)))),
        (0.1, 1, list(itertools.product([0], range(6), range(6), range(3)))),
        (1.0, 3, list(itertools.product([0], range(5), range(5)))),
        (40.0, 1, list(itertools.product([0], range(8), range(8)))),
    ],
)
def test_exact_loss_over_all_neighbours_is_epsilon_and_no_more(epsilon, sensitivity, corners):
    found = loss(PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity), corners)
    assert found.at_most(epsilon)
    assert not found.at_most(0.99 * epsilon)


@pytest.mark.parametrize("epsilon", [2.0, 64.0, 100.0])
def test_exact_loss_holds_for_candidates_beyond_the_furthest_distance(epsilon):
    mechanism = PermuteAndFlip(epsilon=epsilon)
    furthest = mechanism.certificate().furthest
    near = [-furthest - 1, -furthest, -furthest + 1, -furthest // 2, -2]
    assert loss(mechanism, list(itertools.product([0], near, near))).at_most(epsilon)


def test_noise_for_three_halves_of_epsilon_is_caught():
    corners = list(itertools.product([0], range(3), range(3)))
    assert not loss(PermuteAndFlip(epsilon=1.5), corners).at_most(1.0)
    # A sensitivity of 1 claimed for scores that move by 2.
    mechanism = PermuteAndFlip(epsilon=1.0)
    found = exact_loss(lambda s: dict(enumerate(mechanism.pmf(s))), boxes(corners, 2))
    assert not found.at_most(1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 5, 1000])
def test_the_certificate_keeps_epsilon_and_wastes_none(epsilon, sensitivity):
    mechanism = PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity)
    realised, delta, furthest = mechanism.certificate()
    assert realised <= epsilon
    assert delta == 0
    assert furthest * mechanism.rate > 28 or furthest == geometric.LARGEST
    if mechanism.rate < 32:
        assert realised > Fraction(epsilon) - Fraction(1, 2**38)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 20.0, 58.0])
def test_the_coins_satisfy_the_assumption_of_the_proof(epsilon):
    """A(d) <= kappa e^(rate s) A(d + s), with the kappa of the certificate."""
    mechanism = PermuteAndFlip(epsilon=epsilon)
    bias = coins(mechanism)
    kappa = 1 + (mechanism.certificate().epsilon_realised - 2 * mechanism.rate) / 2
    for s in range(len(bias)):
        allowed = kappa * exp_between(mechanism.rate * s, 40)[0]
        assert all(a <= allowed * b for a, b in zip(bias, bias[s:], strict=False))


def test_the_coins_violate_the_assumption_at_the_end_of_their_tables():
    mechanism = PermuteAndFlip(epsilon=1.0)
    terms = geometric.digits(mechanism.rate).without_bit().terms()
    reach = geometric.ideal(mechanism.rate).reach
    assert tail(terms, reach - 2) > exp_between(mechanism.rate * 2, 30)[1] * tail(terms, reach)


# --- the program ---------------------------------------------------------------------------


def test_the_least_priority_of_the_accepted_wins_and_ties_go_to_the_first():
    top = 2**32 - 1
    words = np.array([[0, 7, 7, 7, top], [0, 2, 1, 1, top]], np.uint32)

    def winner(*accepted):
        return int(first(jnp.asarray(words), jnp.asarray(accepted)))

    assert winner(True, True, True, True, True) == 0
    assert winner(False, True, True, True, True) == 2
    assert winner(False, True, False, True, True) == 3
    assert winner(False, True, False, False, True) == 1
    assert winner(False, False, False, False, True) == 4


@pytest.mark.parametrize("scores", [[2**31 - 1, -(2**31)], [-(2**31), 2**31 - 1, -1, 0]])
def test_scores_may_be_as_far_apart_as_int32_allows(scores, key):
    mechanism = PermuteAndFlip(epsilon=1.0)
    found = jax.vmap(lambda key: mechanism.select(int32(scores), key=key))(
        jax.random.split(key, 200)
    )
    assert set(found.tolist()) == {int(np.argmax(scores))}


def test_a_single_candidate_is_chosen(key):
    assert int(PermuteAndFlip(epsilon=1.0).select(int32([5]), key=key)) == 0
    assert PermuteAndFlip(epsilon=1.0).pmf([5]) == [1]


@pytest.mark.parametrize("epsilon", [0.01, 100.0])
def test_select_works_under_vmap_and_jit(epsilon, key):
    mechanism = PermuteAndFlip(epsilon=epsilon)
    keys = jax.random.split(key, 8)
    scores = jax.random.randint(key, (8, 30), -3, 1, jnp.int32)
    batched = jax.vmap(lambda s, key: mechanism.select(s, key=key))(scores, keys)
    single = [int(mechanism.select(s, key=k)) for s, k in zip(scores, keys, strict=True)]
    assert batched.dtype == jnp.int32
    assert batched.tolist() == single
    assert int(jax.jit(lambda s, k: mechanism.select(s, key=k))(scores[0], keys[0])) == single[0]


def test_selection_uses_32_bit_integers_and_a_fixed_sequence_of_steps(key):
    mechanism = PermuteAndFlip(epsilon=0.01)
    found = goodness.dtypes(lambda key, s: mechanism.select(s, key=key), key, int32(range(5)))
    assert found <= {"key<fry>", "uint32", "int32", "bool"}
    tables = geometric.digits(mechanism.rate).without_bit()
    words = jnp.zeros((tables.words + 4, 5), jnp.uint32)
    furthest = np.uint32(mechanism.certificate().furthest)
    steps = goodness.primitives(
        lambda w, s: selected(w, s, s >= 0, tables, furthest), words, int32(range(5))
    )
    assert not steps & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_invalid_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        PermuteAndFlip(epsilon=epsilon)


@pytest.mark.parametrize("sensitivity", [0, -1, 2**31])
def test_an_invalid_sensitivity_is_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity"):
        PermuteAndFlip(epsilon=1.0, sensitivity=sensitivity)


def test_noise_beyond_the_tables_is_refused():
    with pytest.raises(ValueError, match="larger epsilon"):
        PermuteAndFlip(epsilon=2.0**-28)


@pytest.mark.parametrize(
    "scores",
    [
        [1, 2],
        np.array([1, 2]),
        np.array([1.0, 2.0], np.float32),
        np.zeros((2, 2), np.int32),
        np.zeros(0, np.int32),
    ],
)
def test_scores_that_are_not_an_int32_array_are_refused(scores, key):
    with pytest.raises(TypeError, match="int32"):
        PermuteAndFlip(epsilon=1.0).select(scores, key=key)


def test_unsuitable_keys_are_refused():
    with pytest.raises(ValueError, match="rbg"):
        PermuteAndFlip(epsilon=1.0).select(int32([1, 2]), key=jax.random.key(0, impl="rbg"))
