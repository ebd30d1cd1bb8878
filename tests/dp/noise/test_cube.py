"""Cube noise: its law by exact sums, its sampler against its law, and broken variants caught."""

import itertools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from dpmic_jax.dp.noise.cube import (
    CubeNoise,
    RandomBits,
    _proposal,
    random_bits,
    uniform,
    uniforms,
)

HALF = Fraction(1, 2)


# --- an exact oracle, for rational q: a sum over all radii in closed form -----------------------


def power_sum(power, ratio):
    """sum_{r >= 0} r^power ratio^r, by Eulerian recursion on the derivative."""
    # S_k = ratio/(1 - ratio) * sum_{j < k} C(k, j) S_j, S_0 = 1/(1 - ratio).
    sums = [1 / (1 - ratio)]
    for k in range(1, power + 1):
        sums.append(ratio / (1 - ratio) * sum(math.comb(k, j) * sums[j] for j in range(k)))
    return sums[power]


def times(one, other):
    product = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] += a * b
    return product


def outcomes(radius, point, out, top):
    """How many z of -radius .. radius are released as `out`, clipped to 0 .. top."""
    low = -math.inf if out == 0 else out - point
    high = math.inf if out == top else out - point
    return max(0, min(high, radius) - max(low, -radius) + 1)


def clipped_law(points, top, q, weight=lambda r, d: Fraction(1), dimension=None):
    """P(out) of clipped points, up to one factor that is the same for all points.

    Up to radius `top` term by term. From there on each coordinate has a number of outcomes that
    is linear in the radius, and sum q^r times a polynomial has a closed form.

    Args:
      points: the exact lattice points.
      top: the largest lattice point.
      q: ratio of the radius' law.
      weight: a factor on the radius' probability beside q^r (2r + 1)^d, for broken variants;
        constant from radius `top` on.
      dimension: what the radius is drawn for, in place of the number of points.
    """
    d = len(points)
    extra = d if dimension is None else dimension
    law = {}
    for outs in itertools.product(range(top + 1), repeat=d):
        total = Fraction(0)
        for r in range(top):
            ways = math.prod(outcomes(r, p, o, top) for p, o in zip(points, outs, strict=True))
            total += weight(r, d) * q**r * ways * Fraction(2 * r + 1) ** (extra - d)
        assert extra >= d or all(weight(r, d) for r in range(top))
        if extra == d:
            polynomial = [weight(top, d)]
            for p, o in zip(points, outs, strict=True):
                at = [outcomes(top + i, p, o, top) for i in (0, 1)]
                polynomial = times(polynomial, [Fraction(at[0]), Fraction(at[1] - at[0])])
            tail = sum(c * power_sum(k, q) for k, c in enumerate(polynomial))
            total += q**top * tail
        else:  # terms far below what decides anything
            for r in range(top, top + 200):
                ways = math.prod(outcomes(r, p, o, top) for p, o in zip(points, outs, strict=True))
                total += weight(r, d) * q**r * ways * Fraction(2 * r + 1) ** (extra - d)
        law[outs] = total
    return law


def worst_ratio(law, d, top, step):
    """The largest ratio of probabilities over all neighbouring points and outcomes."""
    grid = list(itertools.product(range(top + 1), repeat=d))
    laws = {points: law(points) for points in grid}
    near = [
        (a, b)
        for a in grid
        for b in grid
        if a != b and max(abs(x - y) for x, y in zip(a, b, strict=True)) <= step
    ]
    worst = Fraction(0)
    for a, b in near:
        for out, p in laws[a].items():
            other = laws[b][out]
            if p and not other:
                return math.inf
            worst = max(worst, p / other) if other else worst
    return worst


@pytest.mark.parametrize(
    ("d", "top", "step"), [(1, 5, 1), (1, 5, 3), (2, 3, 1), (2, 3, 2), (3, 2, 1)]
)
@pytest.mark.parametrize("q", [HALF, Fraction(4, 5)])
def test_the_exact_loss_of_all_values_together_is_epsilon(d, top, step, q):
    worst = worst_ratio(lambda points: clipped_law(points, top, q), d, top, step)
    assert worst == q**-step


def test_mixing_cubes_gives_the_law_of_the_maximum_norm():
    q, top = Fraction(2, 3), 2
    whole = clipped_law((1, 1), top, q)
    # C q^max|z| added up over all z that are clipped to the same outcome, term by term.
    direct = dict.fromkeys(whole, Fraction(0))
    for z in itertools.product(range(-60, 61), repeat=2):
        out = tuple(min(max(1 + x, 0), top) for x in z)
        direct[out] += q ** max(map(abs, z)) / (1 - q)
    for out, mass in whole.items():
        assert float(direct[out] / mass) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"dimension": 1}, id="radius drawn for d - 1 values"),
        pytest.param({"weight": lambda r, d: Fraction(r < 3)}, id="radius truncated"),
        pytest.param({"weight": lambda r, d: Fraction(r == 2)}, id="radius known"),
    ],
)
def test_broken_radii_are_caught(broken):
    q, top, step = HALF, 3, 1
    worst = worst_ratio(lambda points: clipped_law(points, top, q, **broken), 2, top, step)
    assert worst > q**-step


def test_noise_of_two_thirds_of_its_scale_is_caught():
    q, step = Fraction(8, 27), 1  # (4/9)^(3/2): a rate that is 3/2 of what it should be
    worst = worst_ratio(lambda points: clipped_law(points, 3, q), 2, 3, step)
    assert worst == Fraction(9, 4) ** step * Fraction(3, 2)
    assert worst > Fraction(9, 4) ** step


def test_a_radius_that_serves_one_value_more_is_caught():
    """Three values with the radius of two: the same as a radius for d - 1 of d."""
    q, top, step = HALF, 1, 1
    worst = worst_ratio(lambda points: clipped_law(points, top, q, dimension=2), 3, top, step)
    assert worst > q**-step


def test_a_word_that_is_too_narrow_for_the_radius_is_caught():
    """Multiplying a word of 3 bits into -2 .. 2 gives some outcomes twice the mass of others."""
    q, top = HALF, 3

    def narrow(point):
        law = dict.fromkeys(range(top + 1), Fraction(0))
        for r in range(60):
            for word in range(8):
                z = word * (2 * r + 1) // 8 - r
                law[min(max(point + z, 0), top)] += q**r * (2 * r + 1) * Fraction(1, 8)
        return {(out,): mass for out, mass in law.items()}

    assert worst_ratio(lambda points: narrow(points[0]), 1, top, 1) > 1 / q


# --- the sampler ---------------------------------------------------------------------------------

SETTINGS = [(1, 4, 1.0), (2, 4, 1.0), (5, 8, 0.5), (66, 64, 1.0), (435, 1500, 1.0)]


def log_weight(noise, radius):
    """ln f(radius), in floats: q^r (2r + 1)^d."""
    return -float(noise.rate) * radius + noise.values * math.log(2 * radius + 1)


@pytest.mark.parametrize("epsilon", [1e-9, 1e4, 1e13])
@pytest.mark.parametrize(("d", "steps"), [(1, 1), (66, 1024), (10**6, 2**60)])
def test_extreme_noise_is_drawn_at_once(d, steps, epsilon):
    """A proposal far out has a probability of e^-10^13, which is never written out."""
    noise = CubeNoise(epsilon=epsilon, sensitivity=steps, values=d)
    drawn = [noise.radius(jax.random.key(seed)) for seed in range(5)]
    wanted = (d + 1) * steps / epsilon
    assert min(drawn) >= 0
    assert max(drawn) <= 40 * wanted + 1
    assert d * steps < 1000 * epsilon or max(drawn) > 0


@pytest.mark.parametrize(("d", "steps", "epsilon"), SETTINGS)
def test_no_radius_outweighs_what_is_proposed(d, steps, epsilon):
    noise = CubeNoise(epsilon=epsilon, sensitivity=steps, values=d)
    mode, width = _proposal(noise.rate, d)
    assert log_weight(noise, mode) >= max(log_weight(noise, mode + 1), log_weight(noise, mode - 1))
    for t in itertools.chain(range(200), range(0, 12 * width, max(1, width // 50))):
        block = t // width
        for radius in (mode + t, mode - 1 - t):
            if radius >= 0:
                low, high = noise._acceptance(radius, block, 40, least=-600)
                assert low <= high <= 1 + Fraction(1, 10**30)
                share = math.exp(log_weight(noise, radius) - log_weight(noise, mode)) * 2**block
                assert float(low) == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize("d", [1, 66, 435, 4950, 499_500])
@pytest.mark.parametrize("steps", [16, 2047])
def test_at_least_four_in_ten_proposals_are_accepted(d, steps):
    noise = CubeNoise(epsilon=1.0, sensitivity=steps, values=d)
    mode, width = _proposal(noise.rate, d)
    # Sum of f over f(mode), by the integral of the Gamma density that f is but for O(1/mode^2).
    a = float(noise.rate)
    log_sum = math.lgamma(d + 1) - (d + 1) * math.log(a) + d * math.log(2) + a / 2
    acceptance = math.exp(log_sum - log_weight(noise, mode)) / (4 * width)
    assert 0.38 < acceptance < 0.6


def words_from(rng):
    while True:
        yield from rng.integers(0, 2**32, 4096, dtype=np.uint64).tolist()


def radii(monkeypatch, noise, draws, seed):
    bits = RandomBits(words_from(np.random.default_rng(seed)))
    monkeypatch.setattr("dpmic_jax.dp.noise.cube.random_bits", lambda key: bits)
    return np.array([noise.radius(None) for _ in range(draws)], np.int64)


def exact_law(noise, most):
    weights = np.array([log_weight(noise, r) for r in range(most)])
    mass = np.exp(weights - weights.max())
    return mass / mass.sum()


def chi_square(found, mass, draws):
    """p-value over cells that are expected to hold 20 draws at least, the rest together."""
    counts = np.bincount(found, minlength=len(mass))[: len(mass)]
    edges = [0]
    expected = np.cumsum(mass) * draws
    for i in range(len(mass)):
        start = expected[edges[-1] - 1] if edges[-1] else 0
        if expected[i] - start >= 20 and draws - expected[i] >= 20:
            edges.append(i + 1)
    seen = np.add.reduceat(counts, edges).astype(float)
    wanted = np.add.reduceat(mass, edges) * draws
    seen[-1] += draws - seen.sum()
    wanted *= draws / wanted.sum()
    return stats.chisquare(seen, wanted).pvalue


@pytest.mark.parametrize(("d", "steps", "epsilon"), SETTINGS[:4])
def test_radii_have_their_law(monkeypatch, d, steps, epsilon):
    noise = CubeNoise(epsilon=epsilon, sensitivity=steps, values=d)
    draws = 4000
    found = radii(monkeypatch, noise, draws, 3)
    mass = exact_law(noise, int(found.max()) + 20 * steps)
    assert chi_square(found, mass, draws) > 1e-4
    # Controls: a rate that is off by 3/2, and a radius for 3/2 as many values.
    for other in (
        CubeNoise(epsilon=1.5 * epsilon, sensitivity=steps, values=d),
        CubeNoise(epsilon=epsilon, sensitivity=steps, values=math.ceil(1.5 * d)),
    ):
        assert chi_square(found, exact_law(other, len(mass)), draws) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("d", "steps", "epsilon"), [SETTINGS[1], SETTINGS[3]])
def test_a_million_radii_have_their_law(monkeypatch, d, steps, epsilon):
    noise = CubeNoise(epsilon=epsilon, sensitivity=steps, values=d)
    found = radii(monkeypatch, noise, 10**6, 5)
    mass = exact_law(noise, int(found.max()) + 20 * steps)
    assert chi_square(found, mass, 10**6) > 1e-4


def test_radii_come_from_the_key_alone():
    noise = CubeNoise(epsilon=1.0, sensitivity=1500, values=66)
    first = [noise.radius(jax.random.key(seed)) for seed in range(5)]
    assert first == [noise.radius(jax.random.key(seed)) for seed in range(5)]
    assert len(set(first)) == 5


def test_random_bits_are_those_of_the_words():
    words = [0b1011 << 28, 7]
    bits = RandomBits(iter(words))
    assert [bits.take(1) for _ in range(4)] == [1, 0, 1, 1]
    assert bits.take(60) == 7
    assert random_bits(jax.random.key(0)).take(64) == random_bits(jax.random.key(0)).take(64)


@pytest.mark.parametrize("radius", [0, 1, 10**6, 2**31 - 1, 2**31, 2**62 - 1, 2**70])
def test_many_uniform_numbers_at_once_are_those_one_by_one(rng, radius):
    """Also of the highest blocks, which are drawn again."""
    words = rng.integers(0, 2**32, (300, 16), np.uint32)
    words[:100, 1:4] = 2**32 - 1
    words[:50, 0] = rng.integers(2**32 - 5, 2**32, 50)
    ints = [
        [sum(int(w) << (32 * i) for i, w in enumerate(row[k : k + 4])) for k in range(0, 16, 4)]
        for row in words
    ]
    found = uniforms(radius, words, lambda place: iter(ints[place]))
    assert found.tolist() == [uniform(radius, iter(each)) for each in ints]
    if 0 < radius < 2**31 - 1:  # else no block is drawn again
        assert any(each[0] >= 2**128 // (2 * radius + 1) * (2 * radius + 1) for each in ints)


@pytest.mark.parametrize("radius", [0, 1, 6, 2**40, 2**200])
def test_uniform_numbers_stay_in_their_cube_and_reach_its_ends(radius):
    assert uniform(radius, itertools.repeat(0)) == -radius
    size = 2 * radius + 1
    count = -(-(size.bit_length() + 64) // 128)
    last = 2 ** (128 * count) // size * size - 1  # the last number that is not drawn again
    blocks = [(last >> (128 * i)) & (2**128 - 1) for i in reversed(range(count))]
    assert uniform(radius, iter(blocks)) == radius


def test_a_number_in_the_incomplete_run_is_drawn_again():
    assert uniform(1, iter([2**128 - 1, 1])) == 0


@pytest.mark.parametrize("draws", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_coordinates_have_their_law(draws):
    rng, radius = np.random.default_rng(1), 6
    words = rng.integers(0, 2**64, (draws, 2), dtype=np.uint64).tolist()
    found = [uniform(radius, iter([(high << 64) | low])) for high, low in words]
    counts = np.bincount(np.array(found) + radius, minlength=13)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("d", [1, 2, 11, 66])
def test_tails_are_those_of_the_mixture(d):
    noise = CubeNoise(epsilon=1.0, sensitivity=400, values=d)
    mass = exact_law(noise, 400 * (d + 60))
    r = np.arange(len(mass))
    for t in (0, 100, 400 * d, 1000 * d):
        above = np.maximum(r - t, 0) / (2 * r + 1)
        assert noise.tail(t + 0.5) == pytest.approx((mass * above).sum(), rel=2e-3, abs=1e-12)
        inside = np.minimum(1, (r + t + 1) / (2 * r + 1)) ** d
        largest = (mass * (1 - inside)).sum()
        assert noise.largest_tail(t + 0.5, d) == pytest.approx(largest, rel=5e-3, abs=1e-4)
    assert noise.sd == pytest.approx(math.sqrt((mass * r * (r + 1)).sum() / 3), rel=2e-3)


@pytest.mark.parametrize("d", [1, 66, 499_500])
@pytest.mark.parametrize("above", [0.4, 0.025, 1e-4, 1e-9])
def test_quantiles_invert_the_tails(d, above):
    noise = CubeNoise(epsilon=0.5, sensitivity=1500, values=d)
    assert noise.tail(noise.quantile(above)) == pytest.approx(above, rel=1e-6)
    largest = noise.largest_quantile(above, d)
    # From the density of the radius, by adaptive integration.
    radius, rate = stats.gamma(d + 1), float(noise.rate)
    kink = rate * largest  # a smaller radius does not reach it
    ends = [kink, *(end for end in radius.isf([0.5, above, above / 1e6, 1e-300]) if end > kink)]
    exceeded = sum(
        integrate.quad(
            lambda x: radius.pdf(x) * -np.expm1(d * np.log(min(1, (1 + rate * largest / x) / 2))),
            low,
            high,
            epsabs=0,
            epsrel=1e-6,
            limit=500,
        )[0]
        for low, high in itertools.pairwise(ends)
    )
    assert exceeded == pytest.approx(above, rel=0.02)


def test_one_value_has_laplace_noise():
    noise = CubeNoise(epsilon=1.0, sensitivity=1000, values=1)
    assert noise.sd == pytest.approx(math.sqrt(2) * 1000)
    assert noise.tail(3000) == pytest.approx(math.exp(-3) / 2)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"epsilon": 0.0, "sensitivity": 1, "values": 1}, "epsilon"),
        ({"epsilon": 1.0, "sensitivity": 0, "values": 1}, "sensitivity"),
        ({"epsilon": 1.0, "sensitivity": 1, "values": 0}, "values"),
    ],
)
def test_settings_are_checked(settings, named):
    with pytest.raises(ValueError, match=named):
        CubeNoise(**settings)
