"""Sieve-and-examine: its budget, its subsamples, its rounds, its refusals."""

from collections import Counter
from fractions import Fraction
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from selecting import ALARM, int32
from sieving import settings

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.audit import exp_between
from dpmic_jax.dp.noise.bounded import blind_pmf
from dpmic_jax.dp.selection import sieve
from dpmic_jax.dp.selection.sieve import Subsamples
from dpmic_jax.dp.selection.subsampling import before_subsampling, subsample_on_host


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/10", "1", "5", "60"])
@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(1, 10**6)])
def test_inner_epsilon_is_the_largest_that_is_amplified_to_epsilon(epsilon, share):
    epsilon = Fraction(epsilon)
    inner, bit = before_subsampling(epsilon, share), Fraction(1, 2**62)

    def after(inner, side):
        return 1 + share * (exp_between(inner, 60)[side] - 1)

    assert after(inner, 1) <= exp_between(epsilon, 60)[1]
    assert after(inner + bit, 0) > exp_between(epsilon, 60)[0]


def test_the_guarantee_counts_every_round_and_both_steps():
    mechanism = settings(sieve_epsilon=0.1, examine_epsilon=0.2, rounds=10)
    assert mechanism.guarantee == PureDP(3.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("sensitivity", [1, 1000])
def test_the_certificate_keeps_both_budgets_and_wastes_none(epsilon, sensitivity):
    mechanism = settings(
        sieve_epsilon=epsilon, examine_epsilon=epsilon, sieve_sensitivity=sensitivity, queries=10**6
    )
    found = mechanism.certificate()
    assert (
        mechanism.inner_epsilon - Fraction(1, 2**38)
        < found.inner_realised
        <= mechanism.inner_epsilon
    )
    assert epsilon - Fraction(1, 2**38) < found.examine_realised <= Fraction(epsilon)
    assert max(found.floor, found.examine_floor) <= 2**-33


def test_all_subsets_are_equally_likely_and_records_occur_once(key):
    mechanism = settings(n=6, subsample=3, rounds=40_000)
    found = np.asarray(mechanism.subsamples(key=key).indices)
    assert np.all(np.diff(found, axis=1) > 0)
    counts = Counter(map(tuple, found.tolist()))
    assert len(counts) == comb(6, 3)
    assert stats.chisquare(list(counts.values())).pvalue > ALARM


@pytest.mark.parametrize("subsample", [1, 10, 29, 30])
def test_host_and_device_draw_the_same_records(subsample, key):
    mechanism = settings(n=30, subsample=subsample, rounds=20)
    found = mechanism.subsamples(key=key)
    for number in range(20):
        here = sieve._round(mechanism, key, jnp.int32(number), subsample_on_host)
        assert here.indices.tolist() == found.indices[number].tolist()
        assert bool(here.blind) == bool(found.blind[number])


def test_functions_and_arrays_give_the_same_answers():
    mechanism = settings(
        n=30, subsample=10, sieve_sensitivity=3, threshold=15, queries=12, rounds=4
    )
    table = int32(np.random.default_rng(3).integers(0, 2, (30, 12)))

    def on_subsample(indices):
        return 3 * table[indices].sum(0)

    for key in jax.random.split(jax.random.key(1), 20):
        drawn = mechanism.subsamples(key=key)
        scores = jnp.stack([on_subsample(indices) for indices in drawn.indices])
        arrays = mechanism.answer(drawn, scores, table.sum(0), key=key)
        lazily = mechanism.run(on_subsample, lambda query: int(table[:, query].sum()), key=key)
        for one, other in zip(arrays, lazily, strict=True):
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()


def test_answers_end_when_the_rounds_run_out(key):
    mechanism = settings(queries=6, rounds=2, threshold=0)
    drawn = mechanism.subsamples(key=key)
    answers = mechanism.answer(
        drawn, int32(np.full((2, 6), 1000)), int32(np.full(6, 1000)), key=key
    )
    assert answers.above.tolist() == [True, True, False, False, False, False]
    assert int(answers.asked) == 2
    answers = mechanism.answer(
        drawn, int32(np.full((2, 6), -1000)), int32(np.full(6, 1000)), key=key
    )
    assert not answers.examined.any()
    assert int(answers.asked) == 6


def test_scores_may_be_as_large_as_int32_allows(key):
    mechanism, ends = settings(queries=2, threshold=2**28, tweak=2**28), [-(2**31), 2**31 - 1]
    answers = mechanism.answer(mechanism.subsamples(key=key), int32([ends]), int32(ends), key=key)
    assert answers.above.tolist() == [False, True]


def test_a_blind_round_ignores_the_scores(key):
    mechanism = settings(queries=5, rounds=3)

    @jax.jit
    @jax.vmap
    def stopped(key, score):
        blind = Subsamples(jnp.zeros((3, 2), jnp.int32), jnp.ones(3, bool))
        scores = jnp.full((3, 5), score)
        return mechanism.answer(blind, scores, scores[0], key=key).examined

    keys = jax.random.split(key, 300)
    low, high = (stopped(keys, jnp.full(300, score, jnp.int32)) for score in (-1000, 1000))
    assert low.tolist() == high.tolist()
    assert low.any(axis=0).all()


def test_a_tie_that_would_decide_on_a_record_makes_a_round_blind(monkeypatch):
    def words(step):
        def bits(key, shape, dtype):
            return (
                np.uint32(7) + np.uint32(step) * jnp.arange(np.prod(shape), dtype=dtype)
            ).reshape(shape)

        return bits

    for step, n, blind in ((0, 7, True), (1, 8, False)):
        with monkeypatch.context() as patched:
            patched.setattr(jax.random, "bits", words(step))
            mechanism, key = settings(n=n), jax.random.key(0)
            assert bool(mechanism.subsamples(key=key).blind.all()) == blind
            assert (
                bool(sieve._round(mechanism, key, jnp.int32(0), subsample_on_host).blind) == blind
            )


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_a_blind_stop_has_the_distribution_that_the_certificate_assumes(most):
    bits = most.bit_length()
    stops = [int(sieve._blind_stop(jnp.uint32(w << (32 - bits)), most)) for w in range(2**bits)]
    for stop in range(most + 1):
        assert Fraction(stops.count(stop), 2**bits) == blind_pmf(stop, most) >= Fraction(1, 2**bits)


# --- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sieve_epsilon": 0.0}, "sieve_epsilon"),
        ({"examine_epsilon": float("nan")}, "examine_epsilon"),
        ({"subsample": 5}, "subsample"),
        ({"tweak": -1}, "tweak"),
        ({"rounds": 0}, "rounds"),
        ({"sieve_sensitivity": 2**28}, "coarser"),
        ({"sieve_epsilon": 2000.0}, "smaller"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        settings(**changes)


def test_scores_of_another_shape_or_type_are_refused(key):
    mechanism = settings()
    drawn = mechanism.subsamples(key=key)
    for sieve_scores in (np.zeros((1, 3)), np.zeros((3,), np.int32), [[1, 2, 3]]):
        with pytest.raises(TypeError, match="int32"):
            mechanism.answer(drawn, sieve_scores, int32([1, 2, 3]), key=key)
    with pytest.raises(ValueError, match="rbg"):
        mechanism.subsamples(key=jax.random.key(0, impl="rbg"))
