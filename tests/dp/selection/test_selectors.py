"""One contract for every selector."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import pytest
from selecting import ALARM, int32, p_value

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
from dpmic_jax.dp.rng.keys import secret_key
from dpmic_jax.dp.selection import (
    ExponentialMechanism,
    NoisyMax,
    OneShotTopK,
    PeeledTopK,
    PermuteAndFlip,
    SingleThresholdSparseVector,
    SparseVector,
)

TOP = 60
SELECTORS = {
    "permute and flip": PermuteAndFlip(epsilon=2.0),
    "exponential": ExponentialMechanism(epsilon=2.0),
    "noisy max": NoisyMax(epsilon=2.0, sensitivity=1, top=TOP),
    "one-shot top-k": OneShotTopK(epsilon=4.0, sensitivity=1, k=2, top=TOP),
    "peeled flips": PeeledTopK(one=PermuteAndFlip(epsilon=2.0), k=2),
    "peeled exponential": PeeledTopK(one=ExponentialMechanism(epsilon=2.0), k=2),
    "sparse vector": SparseVector(epsilon=8.0, sensitivity=1, threshold=30, at_most=2, top=TOP),
    "sparse vector, delta": SparseVector(
        epsilon=8.0, delta=0.3, sensitivity=1, threshold=30, at_most=2, top=TOP
    ),
    "sparse vector, one threshold": SingleThresholdSparseVector(
        epsilon=8.0, sensitivity=1, threshold=30, at_most=2, top=TOP
    ),
}
TRACED = ["permute and flip", "noisy max", "one-shot top-k"]
PLAIN = {
    name: selector for name, selector in SELECTORS.items() if not isinstance(selector, PeeledTopK)
}


def outcome(selector, scores, key):
    return tuple(np.atleast_1d(np.asarray(selector.select(int32(scores), key=key))).tolist())


def exact_pmf(selector, scores):
    found = selector.pmf(scores)
    return found if isinstance(found, dict) else {(i,): p for i, p in enumerate(found)}


@pytest.fixture(params=SELECTORS)
def selector(request):
    return SELECTORS[request.param]


def test_the_same_key_gives_the_same_choice_and_other_keys_give_others(selector, key):
    scores = [30, 31, 29, 30, 31]
    keys = jax.random.split(key, 30)
    found = [outcome(selector, scores, each) for each in keys]
    assert found == [outcome(selector, scores, each) for each in keys]
    assert len(set(found)) > 1


def test_secret_keys_are_accepted(selector):
    key = secret_key()
    assert outcome(selector, [30, 31, 29], key) == outcome(selector, [30, 31, 29], key)


def test_candidates_far_ahead_are_chosen(selector, key):
    scores = [0, TOP, 0, TOP, 0]
    for each in jax.random.split(key, 20):
        assert set(outcome(selector, scores, each)) <= {1, 3}
    away = 1 - sum(p for o, p in exact_pmf(selector, scores).items() if set(o) <= {1, 3})
    assert away < Fraction(1, 100)


@pytest.mark.parametrize("name", ["noisy max", "sparse vector, delta"])
def test_draws_follow_the_exact_pmf(name, key):
    """Of those whose own tests do not draw."""
    selector, scores = SELECTORS[name], [29, 31, 32]
    expected = exact_pmf(selector, scores)
    assert sum(expected.values()) == 1
    assert all(isinstance(p, Fraction) for p in expected.values())
    counts = {}
    for each in jax.random.split(key, 600):
        found = outcome(selector, scores, each)
        counts[found] = counts.get(found, 0) + 1
    assert p_value(counts, expected) > ALARM


@pytest.mark.parametrize("name", [name for name in SELECTORS if "sparse" not in name])
def test_the_order_of_candidates_does_not_matter(name):
    """Except for the sparse vector, which asks in order."""
    selector, scores = SELECTORS[name], [29, 31, 32]
    expected = exact_pmf(selector, scores)
    for order in itertools.permutations(range(3)):
        found = exact_pmf(selector, [scores[i] for i in order])
        for o, p in found.items():
            there = tuple(order[i] for i in o)
            there = tuple(sorted(there)) if isinstance(selector, OneShotTopK) else there
            assert abs(p - expected[there]) < Fraction(1, 2**100)


def test_the_certificate_is_within_the_guarantee(selector):
    certificate, guarantee = selector.certificate(), selector.guarantee
    assert 0 < certificate.epsilon_realised <= Fraction(guarantee.epsilon)
    assert certificate.delta_numerical == 0
    assert isinstance(guarantee, ApproximateDP if getattr(selector, "delta", 0) else PureDP)


@pytest.mark.parametrize("name", TRACED)
def test_it_runs_under_jit_and_vmap_where_that_is_claimed(name, key):
    selector, keys = SELECTORS[name], jax.random.split(key, 8)
    scores = jax.random.randint(key, (8, 5), 27, 33, np.int32)
    single = [outcome(selector, s, k) for s, k in zip(scores, keys, strict=True)]
    batched = jax.jit(jax.vmap(lambda s, k: selector.select(s, key=k)))(scores, keys)
    assert [tuple(np.atleast_1d(row).tolist()) for row in np.asarray(batched)] == single


@pytest.mark.parametrize(
    "scores",
    [[1, 2, 3], np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0], np.float32), np.zeros((3, 3), "i4")],
)
def test_scores_that_are_not_an_int32_array_are_refused(selector, scores, key):
    with pytest.raises(TypeError, match="int32"):
        selector.select(scores, key=key)


def test_unsuitable_keys_are_refused(selector):
    with pytest.raises(ValueError, match="rbg"):
        selector.select(int32([1, 2, 3]), key=jax.random.key(0, impl="rbg"))
    with pytest.raises(TypeError, match="key"):
        selector.select(int32([1, 2, 3]), key=jax.random.PRNGKey(0))


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), "1"])
def test_an_invalid_epsilon_is_refused(name, epsilon):
    settings = {**vars(PLAIN[name]), "epsilon": epsilon}
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        type(PLAIN[name])(**settings)
