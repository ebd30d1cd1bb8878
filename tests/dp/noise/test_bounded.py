import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import optimised
import pytest
from scipy import stats

from dpmic_jax.dp.arithmetic.intervals import SCALE, exponential
from dpmic_jax.dp.noise import DiscreteLaplace, geometric
from dpmic_jax.dp.noise.bounded import (
    ClippedLaplace,
    TruncatedGeometric,
    blind_pmf,
    clipped_pmf,
    released,
)

# Short ranges, ranges beyond the reach of the noise, sensitivities beyond the range.
SMALL = [
    ClippedLaplace(epsilon=1.0, sensitivity=1, top=10),
    ClippedLaplace(epsilon=Fraction(1, 3), sensitivity=4, top=17),
    ClippedLaplace(epsilon=0.01, sensitivity=7, top=5),
    ClippedLaplace(epsilon=2.5, sensitivity=3, top=40),
    ClippedLaplace(epsilon=20.0, sensitivity=1, top=12),
    ClippedLaplace(epsilon=25.0, sensitivity=2, top=30),
    ClippedLaplace(epsilon=80.0, sensitivity=1, top=9),
    ClippedLaplace(epsilon=100.0, sensitivity=5, top=20),
]


def rows(mechanism, pmf=None):
    points = range(mechanism.top + 1)
    return [[(pmf or mechanism.pmf)(v, out) for out in points] for v in points]


def exceeds(rows, sensitivity, epsilon):
    """Does some point tell two values apart by more than e^epsilon?"""
    at_most = Fraction(2**SCALE, exponential(epsilon).high)
    return any(
        p > at_most * q
        for v, w in itertools.permutations(range(len(rows)), 2)
        if abs(v - w) <= sensitivity
        for p, q in zip(rows[v], rows[w], strict=True)
    )


@pytest.mark.parametrize("mechanism", SMALL)
def test_every_pair_of_values_and_every_output_is_within_epsilon(mechanism):
    found = rows(mechanism)
    assert all(sum(row) == 1 for row in found)
    certificate = mechanism.certificate()
    assert certificate.epsilon_realised <= Fraction(mechanism.epsilon)
    assert certificate.delta_numerical == 0
    assert certificate.edge_mass <= certificate.edge_allowed
    assert not exceeds(found, mechanism.sensitivity, certificate.epsilon_realised)


@pytest.mark.parametrize("mechanism", SMALL[:6])
def test_noise_of_two_thirds_the_scale_is_detected(mechanism):
    noise = DiscreteLaplace(
        epsilon=Fraction(mechanism.epsilon) * 3 / 2, sensitivity=mechanism.sensitivity
    )
    less = rows(mechanism, lambda v, out: clipped_pmf(noise, v, out, mechanism.top))
    # In a range shorter than the sensitivity the noise has less to hide.
    sensitivity = min(mechanism.sensitivity, mechanism.top)
    asked = Fraction(mechanism.epsilon) * sensitivity / mechanism.sensitivity
    assert exceeds(less, sensitivity, asked)


def test_a_missing_floor_is_detected():
    for mechanism in SMALL:
        noise, top = mechanism.noise, mechanism.top
        bare = rows(mechanism, partial(clipped_pmf, noise, top=top))
        broken = exceeds(bare, mechanism.sensitivity, Fraction(mechanism.epsilon))
        assert broken == (mechanism.certificate().floor > 0)
    assert sum(mechanism.certificate().floor > 0 for mechanism in SMALL) >= 3


@pytest.mark.parametrize("n", [1, 4, 30])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_truncated_geometric_is_definition_4_5(epsilon, n):
    mechanism, rho = TruncatedGeometric(epsilon=epsilon, n=n), math.exp(-epsilon)
    assert mechanism.certificate().floor == 0
    for f, i in itertools.product(range(n + 1), repeat=2):
        if i == 0:
            expected = rho**f / (1 + rho)
        elif i == n:
            expected = rho ** (n - f) / (1 + rho)
        else:
            expected = (1 - rho) / (1 + rho) * rho ** abs(f - i)
        assert float(mechanism.pmf(f, i)) == pytest.approx(expected, rel=1e-10)


def test_truncated_geometric_gets_a_floor_where_its_tails_end():
    """The ends' least probability, about e^(-epsilon n), has to stay far above the edge mass."""
    floors = [TruncatedGeometric(epsilon=1.0, n=n).certificate().floor > 0 for n in range(20, 90)]
    first = floors.index(True)
    assert all(floors[first:])
    assert 28 <= 20 + first <= 36
    mechanism = TruncatedGeometric(epsilon=1.0, n=500)
    assert mechanism.certificate().floor == Fraction(1, 2**40)
    assert mechanism.pmf(0, 500) == Fraction(1, 2**40) * blind_pmf(500, 500) > 0
    assert float(mechanism.pmf(250, 251) / mechanism.pmf(250, 250)) == pytest.approx(
        math.exp(-1), rel=1e-10
    )


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 40.0])
@pytest.mark.parametrize("top", [1, 1000, 2**20, 2**30])
def test_every_size_of_range_has_a_certificate(epsilon, top):
    mechanism = ClippedLaplace(epsilon=epsilon, sensitivity=16, top=top)
    certificate = mechanism.certificate()
    assert certificate.epsilon_realised <= Fraction(epsilon)
    assert certificate.edge_mass <= certificate.edge_allowed
    assert Fraction(1, 2**33) >= certificate.floor


# --- the program ----------------------------------------------------------------------------


def inputs(mechanism, floor):
    return geometric.digits(mechanism.noise.rate), np.uint32(mechanism.top), np.uint32(floor)


@pytest.mark.parametrize(
    "top", [1, 7, 8, 2**10, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 100))]
)
def test_the_floor_draws_points_with_the_probabilities_of_blind_pmf(top):
    mechanism = ClippedLaplace(epsilon=30.0, sensitivity=1, top=top)
    tables, top_, _ = inputs(mechanism, 0)
    bits = top.bit_length()
    every = np.arange(2**bits, dtype=np.uint32) << np.uint32(32 - bits)
    words = np.full((tables.words + 2, len(every)), 0xFFFFFFFF, np.uint32)
    words[0], words[-2], words[-1] = every, 2**24 - 1, 0
    out = released(jnp.asarray(words), jnp.full(len(every), top, jnp.int32), tables, top_, 2**24)
    counts = np.bincount(out, minlength=top + 1)
    assert [Fraction(int(c), 2**bits) for c in counts] == [
        blind_pmf(o, top) for o in range(top + 1)
    ]
    assert min(counts) >= 1
    assert blind_pmf(-1, top) == blind_pmf(top + 1, top) == 0


def test_the_floor_is_taken_exactly_below_its_threshold():
    mechanism = ClippedLaplace(epsilon=20.0, sensitivity=1, top=12)
    floor = int(mechanism.certificate().floor * 2**64)
    assert floor == 2**24
    tables, top, floor = inputs(mechanism, floor)
    coins = [(0, floor - 1), (0, floor), (1, 0), (0, 0), (0xFFFFFFFF, 0), (0, 0xFFFFFFFF)]
    # All other words at their largest: the noise is 0, and the floor's point 15 - 13 = 2.
    words = np.full((tables.words + 2, len(coins)), 0xFFFFFFFF, np.uint32)
    words[-1], words[-2] = np.array(coins, np.uint32).T
    out = released(jnp.asarray(words), jnp.full(len(coins), 7, jnp.int32), tables, top, floor)
    assert out.tolist() == [2, 7, 7, 2, 7, 7]
    never = released(
        jnp.asarray(words), jnp.full(len(coins), 7, jnp.int32), tables, top, np.uint32(0)
    )
    assert never.tolist() == [7] * len(coins)


def test_the_largest_noise_is_clipped_to_the_ends_of_the_range():
    mechanism = ClippedLaplace(epsilon=1e-5, sensitivity=1000, top=2**30)
    tables, top, floor = inputs(mechanism, 0)
    words = np.zeros((tables.words + 2, 2), np.uint32)
    words[-2, 1] = 1
    for value in (0, 5, 2**29, 2**30):
        out = released(jnp.asarray(words), jnp.full(2, value, jnp.int32), tables, top, floor)
        assert out.tolist() == [2**30, 0]


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (TruncatedGeometric(epsilon=0.5, n=20), 3),
        (TruncatedGeometric(epsilon=0.5, n=2000), 1),
        (ClippedLaplace(epsilon=0.7, sensitivity=3, top=25), 25),
    ],
)
def test_releases_follow_the_exact_distribution_and_no_other_scale(mechanism, value, key):
    draws = 20_000
    out = mechanism.release(jnp.full(draws, value, jnp.int32), key=key)
    counts = np.bincount(out, minlength=30)[:30]

    def p_value(mechanism):
        top = mechanism.n if isinstance(mechanism, TruncatedGeometric) else mechanism.top
        points = range(min(30, top + 1))
        expected = np.array([float(mechanism.pmf(value, o)) for o in points]) * draws
        expected = np.append(expected, draws - expected.sum()).clip(0)
        found = np.append(counts[: len(expected) - 1], draws - counts[: len(expected) - 1].sum())
        kept = expected >= 20
        gaps = (found[kept] - expected[kept]) ** 2 / expected[kept]
        return stats.chi2.sf(gaps.sum(), kept.sum() - 1)

    assert p_value(mechanism) > 1e-6
    for factor in (2 / 3, 3 / 2):
        assert p_value(replace(mechanism, epsilon=mechanism.epsilon * factor)) < 1e-6


@pytest.mark.parametrize("mechanism", [SMALL[1], TruncatedGeometric(epsilon=1, n=1000)])
def test_batched_releases_equal_single_ones(mechanism, key):
    keys, values = jax.random.split(key, 4), jnp.arange(4, dtype=jnp.int32)
    batched = jax.vmap(lambda key, v: mechanism.release(v, key=key))(keys, values)
    single = [int(mechanism.release(v, key=k)) for k, v in zip(keys, values, strict=True)]
    assert batched.tolist() == single
    compiled = optimised.jit(lambda key, v: mechanism.release(v, key=key))(key, values)
    np.testing.assert_array_equal(compiled, mechanism.release(values, key=key))


def test_a_release_uses_32_bit_integers_and_no_data_dependent_steps(key):
    mechanism = ClippedLaplace(epsilon=1.0, sensitivity=1024, top=2**15)
    values = jnp.zeros(5, jnp.int32)
    found = goodness.dtypes(lambda key, v: mechanism.release(v, key=key), key, values)
    assert found <= {"key<fry>", "uint32", "int32", "bool"}
    tables, top, floor = inputs(mechanism, 2**24)
    words = jnp.zeros((tables.words + 2, 5), jnp.uint32)
    steps = goodness.primitives(lambda w, v: released(w, v, tables, top, floor), words, values)
    assert not steps & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}


def test_values_outside_the_range_are_clipped(key):
    mechanism = TruncatedGeometric(epsilon=32.0, n=9)
    out = mechanism.release(jnp.array([-5, 0, 9, 100, -(2**31), 2**31 - 1], jnp.int32), key=key)
    assert out.tolist() == [0, 0, 9, 9, 0, 9]


def test_dtypes_that_jax_would_cut_to_32_bits_are_refused(key):
    mechanism = TruncatedGeometric(epsilon=1.0, n=9)
    for values in (np.array([2**40]), np.array([0.5], np.float32)):
        with pytest.raises(TypeError, match="int32"):
            mechanism.release(values, key=key)


def test_invalid_settings_are_refused():
    for n in (0, -1, 2**30 + 1):
        with pytest.raises(ValueError, match="n"):
            TruncatedGeometric(epsilon=1.0, n=n)
    for epsilon in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            TruncatedGeometric(epsilon=epsilon, n=5)
    with pytest.raises(ValueError, match="top"):
        ClippedLaplace(epsilon=1.0, sensitivity=1, top=0)
    with pytest.raises(ValueError, match="value"):
        TruncatedGeometric(epsilon=1.0, n=9).pmf(10, 3)
