import itertools
import math
from fractions import Fraction

import goodness
import jax
import jax.numpy as jnp
import numpy as np
import optimised
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpmic_jax.dp.arithmetic.intervals import SCALE, bells, exponential
from dpmic_jax.dp.noise import digit_sampler, gaussian, geometric
from dpmic_jax.dp.noise.distributions import (
    SLACK,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    signed_magnitude,
)
from dpmic_jax.dp.noise.geometric import LARGEST, Digits

DRAWS = 20_000  # of 5000, a scale that is off by 3/2 has a p-value below 1e-60
ALARM = 1e-6


def below(ratio, epsilon):
    """Is a ratio certainly at most e^epsilon?"""
    return ratio * exponential(epsilon).high <= 2**SCALE


def ideal_laplace(noise, x):
    r = math.exp(-float(noise.rate))
    return (1 - r) / (1 + r) * math.exp(-float(noise.rate) * abs(x))


# --- the sampler has the stated distribution -------------------------------------------------


def coarse_digits():
    """A bit, a digit of 4 and a highest digit of 3 values whose weights are multiples of 2^-5."""
    unit = 2**59
    low = [[20, 12], [11, 9, 7, 5]]
    high = [[25, 6, 1]]
    scaled = [[w * unit for w in row] for row in low], [[w * unit for w in row] for row in high]
    return Digits(digit_sampler.block(scaled[0], [0, 0], 2), digit_sampler.block(scaled[1], [2], 2))


def test_counting_every_random_word_gives_the_exact_distribution():
    tables = coarse_digits()
    numbers = np.array(list(itertools.product(range(32), repeat=3)), np.uint32).T << 27
    first, second, top = numbers
    zero = np.zeros_like(first)
    for sign in (0, 1):
        # Limbs come first, then digits: the low limbs of all of them are zero.
        words = jnp.asarray(np.array([first, second, zero, zero, top, zero, zero + sign]))
        negative, size = jax.jit(signed_magnitude)(words, tables)
        assert np.all(np.asarray(negative) == bool(sign))
        counts = np.bincount(size)
        tails = [digit_sampler.tail(tables.terms(), x) for x in range(len(counts) + 1)]
        exact = [(a - b) * 32**3 for a, b in itertools.pairwise(tails)]
        assert counts.tolist() == exact
        assert len(counts) == 1 + 3 + 2 * 4 + 1


@pytest.mark.parametrize("epsilon", [Fraction(2), 0.7, 3.9, 20.0])
def test_laplace_pmf_sums_to_one_and_is_the_distribution_asked_for(epsilon):
    noise = DiscreteLaplace(epsilon=epsilon)
    reach = noise.certificate().reach
    pmf = {x: noise.pmf(x) for x in range(-reach - 2, reach + 3)}
    assert sum(pmf.values()) == 1
    assert all(pmf[x] == pmf[-x] for x in pmf)
    assert pmf[reach + 2] == 0 < pmf[reach + 1]
    for x in range(reach + 1):
        assert float(pmf[x]) == pytest.approx(ideal_laplace(noise, x), rel=1e-11)


@pytest.mark.parametrize("scale", [10**5, 10**8, Fraction(1, 20), 1234])
def test_laplace_pmf_holds_at_every_scale(scale):
    epsilon = Fraction(1, scale) if scale > 1 else 1 / scale
    noise = DiscreteLaplace(epsilon=epsilon)
    for multiple in (0, 1, 2.5, 11, 20):
        x = int(multiple * scale)
        assert float(noise.pmf(x)) == pytest.approx(ideal_laplace(noise, x), rel=1e-8)
    assert noise.tail(1) * 2 + noise.pmf(0) == 1


def test_geometric_pmf_sums_to_one_and_is_the_distribution_asked_for():
    noise = Geometric(epsilon=0.5)
    reach = noise.certificate().reach
    pmf = [noise.pmf(x) for x in range(reach + 2)]
    assert sum(pmf) == 1
    assert pmf[-1] == 0 == noise.pmf(-1)
    rate = float(Fraction(0.5) - SLACK)
    expected = -math.expm1(-rate) * np.exp(-rate * np.arange(reach + 1))
    np.testing.assert_allclose([float(p) for p in pmf[:-1]], expected, rtol=1e-10)


def convolved(terms):
    """The distribution of a sum of signed digits on -reach .. reach, by convolution."""
    counts = np.array([1], dtype=object)
    for term in terms:
        reach = term.most // term.step
        weights = np.zeros(2 * term.most + 1, dtype=object)
        weights[:: term.step] = [term.weights[abs(v)] for v in range(-reach, reach + 1)]
        weights[term.most] *= 2  # a zero of either sign
        counts = np.convolve(counts, weights)
    return counts


@pytest.mark.parametrize("sigma", [0.3, 2.0, 24.8, Fraction(201, 2)])
def test_gaussian_pmf_is_within_the_certified_distance(sigma):
    """0, 0, 1 and 2 low parts: the smoothing error is in it."""
    noise = DiscreteGaussian(sigma=sigma)
    tables = gaussian.parts(noise.variance)
    counts = convolved(tables.terms())
    reach, everything = tables.reach, sum(counts)
    assert math.log2(everything) == 65 * len(tables.terms())
    pmf = [Fraction(int(c), everything) for c in counts[reach:]]
    for x in {0, 1, 2, reach // 2, reach}:
        assert noise.pmf(x) == noise.pmf(-x) == pmf[x]
    ratio = exponential(1 / (2 * noise.variance))
    ideal = [Fraction(q.low, 2**SCALE) for q in bells(ratio, 2 * reach + 9)]
    total = ideal[0] + 2 * sum(ideal[1:])

    def distance(pmf):
        gaps = [abs(p - q / total) for p, q in itertools.zip_longest(pmf, ideal, fillvalue=0)]
        return (gaps[0] + 2 * sum(gaps[1:])) / 2

    allowed = noise.certificate().total_variation
    assert distance(pmf) <= allowed <= 1e-15
    # Mass of twice that much moved from 0 to its neighbours is noticed.
    assert distance([pmf[0] - 4 * allowed, pmf[1] + 2 * allowed, *pmf[2:]]) > allowed


DISTRIBUTIONS = [
    (DiscreteLaplace, {"epsilon": Fraction(1)}, range(-14, 15)),
    (DiscreteLaplace, {"epsilon": 5.0, "sensitivity": 2}, range(-6, 7)),
    (DiscreteLaplace, {"epsilon": 1.0, "sensitivity": 10**5}, range(-12 * 10**5, 12 * 10**5, 9999)),
    (DiscreteLaplace, {"epsilon": 0.5, "sensitivity": 100}, range(-1500, 1500, 7)),
    (Geometric, {"epsilon": 0.25}, range(50)),
    (DiscreteGaussian, {"sigma": 1.5}, range(-8, 9)),
    (DiscreteGaussian, {"sigma": 40.0}, range(-200, 200, 10)),
    (DiscreteGaussian, {"sigma": 65536.0}, range(-(2**18), 2**18, 2**15)),
]


def scaled(distribution, settings, factor):
    name = "sigma" if distribution is DiscreteGaussian else "epsilon"
    factor = factor if distribution is DiscreteGaussian else 1 / factor
    return distribution(**{**settings, name: settings[name] * factor})


@pytest.mark.parametrize(("distribution", "settings", "edges"), DISTRIBUTIONS)
def test_draws_follow_the_exact_distribution_and_no_other_scale(distribution, settings, edges, key):
    draws = np.asarray(distribution(**settings).sample(key, (DRAWS,)))
    assert draws.dtype == np.int32
    edges = np.array(edges)
    assert goodness.p_value(draws, distribution(**settings), edges) > ALARM
    for factor in (Fraction(2, 3), Fraction(3, 2)):
        assert goodness.p_value(draws, scaled(distribution, settings, factor), edges) < ALARM


@pytest.mark.parametrize("scale", [0.7, 5.0])
def test_draws_follow_the_distribution_of_opendp(scale, key):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.l1_distance(T=dp.i32)
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * DRAWS))

    def p_value(factor):
        ours = DiscreteLaplace(epsilon=1 / (scale * factor)).sample(key, (DRAWS,))
        edges = np.arange(-int(5 * scale) - 1, int(5 * scale) + 2)
        cells = [np.searchsorted(edges, x, "right") for x in (ours, theirs)]
        table = [np.bincount(x, minlength=len(edges) + 1) for x in cells]
        return stats.chi2_contingency(table).pvalue

    assert p_value(1) > ALARM
    assert p_value(2 / 3) < ALARM
    assert p_value(3 / 2) < ALARM


def test_draws_saturate_at_the_largest_int32():
    noise = DiscreteLaplace(epsilon=1, sensitivity=10**8)
    tables = geometric.digits(noise.rate)
    words = jnp.zeros((noise.words, 2), jnp.uint32).at[-1, 1].set(1)
    negative, size = signed_magnitude(words, tables)
    assert negative.tolist() == [False, True]
    assert size.tolist() == [LARGEST, LARGEST]
    assert noise.pmf(LARGEST) == noise.tail(LARGEST) > 1e3 * noise.pmf(LARGEST - 1)
    assert noise.pmf(LARGEST + 1) == 0
    # 21.5 scales away: all that is beyond belongs to the edge.
    assert float(noise.certificate().edge_mass) == pytest.approx(
        math.exp(-LARGEST / 1e8 + 1), rel=1e-6
    )


# --- the certificate ------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.5, 1), (Fraction(7, 2), 3), (30.0, 2)])
def test_laplace_certificate_bounds_every_ratio(epsilon, sensitivity):
    noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    loss, reach, edge = noise.certificate()
    assert loss <= Fraction(epsilon)
    pmf = {x: noise.pmf(x) for x in range(-reach, reach + 1)}
    for x, d in itertools.product(pmf, range(-sensitivity, sensitivity + 1)):
        if x + d in pmf:
            assert below(pmf[x] / pmf[x + d], loss)
    worst = max(pmf[x] / pmf[x + sensitivity] for x in range(reach - sensitivity))
    assert not below(worst, loss * Fraction(999, 1000))
    assert edge == 2 * sum(noise.pmf(x) for x in range(reach - sensitivity + 1, reach + 2))


def test_geometric_certificate_bounds_every_ratio():
    noise = Geometric(epsilon=1.5)
    loss, reach, edge = noise.certificate()
    assert loss <= Fraction(1.5)
    pmf = [noise.pmf(x) for x in range(reach + 1)]
    for a, b in itertools.pairwise(pmf):
        assert below(a / b, loss)
        assert b < a
    assert edge == pmf[-1]


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.1, 1, 7.5, 25.0, 300.0])
@pytest.mark.parametrize("sensitivity", [1, 16, 1500])
def test_realised_epsilon_is_just_below_the_one_asked_for(epsilon, sensitivity):
    noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    loss, _, edge = noise.certificate()
    assert loss <= Fraction(epsilon)
    # Thresholds hold no rate above 32.
    assert loss >= min(Fraction(epsilon), 32 * sensitivity) - SLACK
    assert edge <= min(1, 1e-25 * math.exp(min(epsilon, 300)))


@given(st.floats(-27.9, 5))
def test_128_bits_hold_the_digits_of_every_rate(exponent):
    rate = Fraction(2.0**exponent)
    assert 1 <= geometric.distortion(geometric.digits(rate), rate) <= 1 + SLACK


@given(st.floats(-5, 26))
def test_64_bits_hold_the_parts_of_every_sigma(exponent):
    sigma = 2.0**exponent
    noise = DiscreteGaussian(sigma=sigma)
    assert noise.certificate().rho == Fraction(1, 2) / Fraction(sigma) ** 2
    assert 0 < noise.certificate().total_variation <= Fraction(1, 10**16)
    assert gaussian.parts(noise.variance).reach < 2**30


def test_too_few_bits_for_the_highest_digit_are_detected():
    rate = DiscreteLaplace(epsilon=1, sensitivity=1000).rate
    ideal = geometric.ideal(rate)
    right = geometric.digits(rate)
    assert geometric.distortion(right, rate) <= 1 + SLACK
    for limbs in (2, 3):
        wrong = right._replace(high=geometric.rounded(ideal.weights[-1:], ideal.shifts[-1:], limbs))
        assert geometric.distortion(wrong, rate) > 1 + SLACK


def test_tables_of_another_scale_are_detected():
    rate = Fraction(1, 1000)
    for factor in (Fraction(2, 3), Fraction(3, 2)):
        tables = geometric.digits(rate)
        # The same number of digits, so that only their weights are wrong.
        assert geometric.distortion(tables, rate * factor) > 1.1


# --- the program ----------------------------------------------------------------------------

PROGRAMS = [
    DiscreteLaplace(epsilon=1, sensitivity=10**5),
    DiscreteLaplace(epsilon=25.0),
    Geometric(epsilon=0.1),
    DiscreteGaussian(sigma=2),
    DiscreteGaussian(sigma=1000),
]


@pytest.mark.parametrize("noise", PROGRAMS)
def test_samplers_use_32_bit_integers_only(noise, key):
    found = goodness.dtypes(lambda key: noise.sample(key, (5,)), key)
    assert found <= {"key<fry>", "uint32", "int32", "bool"}
    assert not jax.config.read("jax_enable_x64")


def test_the_check_finds_a_float_in_a_program(key):
    assert "float32" in goodness.dtypes(lambda key: jax.random.laplace(key, (5,)), key)


def from_words(noise):
    """The program of a sampler from its random words to its integers."""
    if isinstance(noise, DiscreteLaplace):
        return lambda words: signed_magnitude(words, geometric.digits(noise.rate))
    return lambda words: gaussian.total(words, gaussian.parts(noise.variance))


@pytest.mark.parametrize("noise", [PROGRAMS[0], PROGRAMS[-1]])
def test_samplers_have_no_data_dependent_steps(noise):
    words = jnp.zeros((noise.words, 5), jnp.uint32)
    found = goodness.primitives(from_words(noise), words)
    assert not found & {"gather", "while", "cond", "scan", "sort", "dynamic_slice", "div", "rem"}
    assert found >= {"lt", "reduce_sum"}


@pytest.mark.parametrize("noise", [PROGRAMS[0], PROGRAMS[-1]])
def test_compiled_draws_equal_uncompiled_draws(noise, key):
    words = jax.random.bits(key, (noise.words, 40), jnp.uint32)
    for one, other in zip(
        jax.tree.leaves(from_words(noise)(words)),
        jax.tree.leaves(optimised.jit(from_words(noise))(words)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        optimised.jit(lambda key: noise.sample(key, (3, 4)))(key), noise.sample(key, (3, 4))
    )


@pytest.mark.parametrize("noise", PROGRAMS)
def test_batched_draws_equal_draws_of_single_keys(noise, key):
    keys = jax.random.split(key, 6)
    batched = jax.vmap(lambda key: noise.sample(key, (2,)))(keys)
    np.testing.assert_array_equal(batched, np.stack([noise.sample(k, (2,)) for k in keys]))


def test_another_epsilon_needs_no_new_program():
    """Compiled programs take tables as arguments, so only their shapes matter."""
    shapes = {
        str(jax.tree.map(np.shape, geometric.digits(Fraction(1, scale))))
        for scale in range(18_000, 130_000, 7001)
    }
    assert len(shapes) == 1


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 0.0, 2.0**-31])
def test_an_invalid_epsilon_is_refused(epsilon):
    for distribution in (DiscreteLaplace, Geometric):
        with pytest.raises(ValueError, match="epsilon"):
            distribution(epsilon=epsilon)


def test_invalid_settings_are_refused():
    for sensitivity in (0, -3, 2**31):
        with pytest.raises(ValueError, match="sensitivity"):
            DiscreteLaplace(epsilon=1, sensitivity=sensitivity)
    with pytest.raises(TypeError, match="sensitivity"):
        DiscreteLaplace(epsilon=1, sensitivity=1.5)
    for sigma in (0, -1.0, math.nan, math.inf, 2**27):
        with pytest.raises(ValueError, match="sigma"):
            DiscreteGaussian(sigma=sigma)
    with pytest.raises(ValueError, match="coarser"):
        DiscreteLaplace(epsilon=1, sensitivity=2**29)
