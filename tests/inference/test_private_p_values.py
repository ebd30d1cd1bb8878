"""P-values of noisy distances: above the exact tail, valid for any marginals, and not too large."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import jax
import numpy as np
import oracles
import pytest
from p_value_checks import too_small
from scipy import stats

from dpmic_jax.dp.noise.cube import random_bits
from dpmic_jax.dp.rng.keys import fold
from dpmic_jax.inference import FalseDiscovery, FamilyWise, PrivatePValues
from dpmic_jax.inference.private_noise import DistanceNoise
from dpmic_jax.inference.private_p_values import p_values
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening.independence import distance_tail

N = 200
ALPHA = 0.05


def noise_of(pairs, records=1, epsilon=1.0):
    return DistanceNoise(epsilon=epsilon, n=N, pairs=pairs, moved=records * PrivatePValues.moved)


@lru_cache
def radii(d, rate):
    """The radii and their probabilities, q^r (2r + 1)^d but for a factor; from the definition."""
    r = np.arange(math.ceil((d + 60) / rate))
    log = -float(rate) * r + d * np.log(2 * r + 1)
    mass = np.exp(log - log.max())
    return r, mass / mass.sum()


def exact_noise(d, rate):
    """z and P(Z = z) of one of d values with cube noise: uniform in -r .. r given the radius r."""
    r, mass = radii(d, rate)
    half = np.cumsum((mass / (2 * r + 1))[::-1])[::-1]
    return np.arange(-r[-1], r[-1] + 1), np.concatenate([half[:0:-1], half])


def continuous_tail(d, x):
    """P(G V >= x) for G ~ Gamma(d + 1) and V uniform on [-1, 1]; by Poisson sums."""
    # P(Gamma(d) > y) is the probability of fewer than d events of a Poisson process by time y.
    y = np.abs(x)
    above = (stats.poisson.cdf(d, y) - y / d * stats.poisson.cdf(d - 1, y)) / 2
    return np.where(x >= 0, above, 1 - above)


# --- the theorem ----------------------------------------------------------------------------------

COARSEST = Fraction(1, 1024)


@pytest.mark.parametrize("d", [1, 2, 30])
def test_the_continuous_noise_is_above_that_on_the_lattice_in_both_halves(d):
    """P(Z >= z) <= (1 + 6/5 a) P(C >= z - 3/2) at the largest a, with C = G V / a."""
    z, mass = exact_noise(d, COARSEST)
    a, inner = float(COARSEST), np.abs(z) < (d + 12) * 1024
    tail = np.cumsum(mass[::-1])[::-1][inner]
    z = z[inner]
    bound = (1 + 6 / 5 * a) * continuous_tail(d, (z - 1.5) * a)
    assert np.all(tail <= bound)
    # The bound is close: by 3 a, as 3/2 steps are 3/2 a at most.
    assert np.all(bound <= (1 + 3 * a) * tail)
    # Controls: without the factor and the shift neither half holds. With two thirds of the noise
    # the upper half does not, and with 3/2 of it the lower one does not.
    neither = tail > continuous_tail(d, z * a)
    assert neither[z > 0].any()
    assert neither[z <= 0].any()
    less, more = ((1 + 6 / 5 * a) * continuous_tail(d, f * (z - 1.5) * a) for f in (3 / 2, 2 / 3))
    assert np.any(tail[z > 0] > less[z > 0])
    assert np.any(tail[z <= 0] > more[z <= 0])


@lru_cache
def proven_tail(records):
    """F at the points 0, 1, ... of the lattice, until it is below 1e-14."""
    top, found = noise_of(1, records).top, []
    for part in np.array_split(np.arange(top + 1), 16):
        found.append(distance_tail(part / top, N, records))
        if found[-1][-1] < 1e-14:
            break
    return np.concatenate(found)


def exact_tail(points, noise):
    """P(T + Z >= point) for distances T whose tail is F exactly, by the exact law of the noise."""
    tail, (z, mass) = proven_tail(noise.moved), exact_noise(noise.pairs, noise.cube.rate)

    def of_distance(point):
        inside = np.clip(point, 0, len(tail) - 1)
        return np.where(point <= 0, 1.0, np.where(point < len(tail), tail[inside], 0.0))

    return np.array([of_distance(point - z) @ mass for point in points])


@pytest.mark.parametrize(("d", "records"), [(1, 1), (2, 1), (10, 2)])
def test_p_is_above_the_exact_tail_by_at_most_two_percent(d, records):
    noise = noise_of(d, records)
    assert noise.cube.rate == COARSEST
    points = np.unique(np.linspace(1, noise.top, 100).astype(int))
    p, exact = p_values(points / noise.top, noise), exact_tail(points, noise)
    assert np.all(p >= exact * (1 - 1e-12))
    some = (exact > 1e-9) & (p < 1)
    assert some.sum() > 10
    assert np.all(p[some] <= 1.02 * exact[some])
    # Controls: two thirds of the noise, and none.
    weak = p_values(points / noise.top, replace(noise, epsilon=1.5))
    assert np.any(weak < 0.9 * exact)
    chance = distance_tail(points / noise.top, N, records)
    assert np.any(chance < 0.9 * exact)


def test_p_falls_and_is_one_where_noise_was_clipped():
    noise = noise_of(3)
    p = p_values(np.linspace(0, 1, 400), noise)
    assert p[0] == 1
    assert np.all(np.diff(p) <= 0)
    assert 0 < p[-1] < 1e-9


# --- validity -------------------------------------------------------------------------------------

TABLES = 4000


def drawn(rng, noise, dependent=0):
    """Noisy distances of independent pairs, as large as they can be by the theorem, and others."""
    r, mass = radii(noise.pairs, noise.cube.rate)
    radius = r[np.searchsorted(np.cumsum(mass), rng.random((TABLES, 1)))]
    shape, tail = (TABLES, noise.pairs), proven_tail(noise.moved)
    # The largest point whose tail is at least a uniform number.
    chance = np.searchsorted(-tail, -rng.random(shape), side="right") - 1
    chance[:, :dependent] = 0.35 * noise.top
    points = chance + rng.integers(-radius, radius + 1, shape)
    return np.clip(points, 0, noise.top) / noise.top


def p_of(distances, noise):
    """P-values of many distances: of the next smaller ones on a fine grid, so hardly larger."""
    grid, p = on_grid(noise)
    return p[np.searchsorted(grid, distances, side="right") - 1]


@lru_cache
def on_grid(noise):
    grid = np.linspace(0, 0.6, 1601)
    return grid, p_values(grid, noise)


def test_p_values_are_valid_if_chance_is_as_large_as_proven(rng):
    noise = noise_of(5)
    distances = drawn(rng, noise)[:, 0]
    p = p_of(distances, noise)
    assert not too_small(p)
    assert (p <= ALPHA).mean() > 0.8 * ALPHA
    assert too_small(p_of(distances, replace(noise, epsilon=1.5)))


def test_pairs_that_share_their_radius_keep_the_family_wise_error(rng):
    noise = noise_of(10)
    p = p_of(drawn(rng, noise), noise)
    adjusted = np.array([FamilyWise().adjusted(row) for row in p])
    most = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / TABLES)
    assert 0 < (adjusted <= ALPHA).any(axis=1).mean() <= most
    # Control: p-values that are not adjusted.
    assert (p <= ALPHA).any(axis=1).mean() > 2 * most


def test_pairs_that_share_their_radius_keep_the_false_discovery_rate(rng):
    """One pair is dependent, so that there is something to discover."""
    noise = noise_of(10)
    p = p_of(drawn(rng, noise, dependent=1), noise)
    adjusted = np.array([FalseDiscovery().adjusted(row) for row in p])

    def share(found):
        return (found[:, 1:].sum(axis=1) / np.maximum(1, found.sum(axis=1))).mean()

    most = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / TABLES)
    assert (adjusted[:, 0] <= ALPHA).mean() > 0.9
    assert 0 < share(adjusted <= ALPHA) <= most
    assert share(p <= ALPHA) > 2 * most


KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "two values": lambda rng, n: rng.integers(0, 2, n) / 1.0,
    "rare": lambda rng, n: (rng.random(n) < 0.03) / 1.0,
    "outside of the bounds": lambda rng, n: rng.normal(size=n),
}


def cut_of(columns):
    return MICrAndDistance(micr=None).cut(list(columns), [(0.0, 1.0)] * len(columns))


@pytest.mark.parametrize("kind", KINDS)
def test_p_values_of_independent_columns_are_valid_for_any_marginals(rng, kind):
    """With little noise, so that all depends on the distances' own chance."""
    columns = [KINDS[kind](rng, N) for _ in range(40)]
    pairs = np.arange(40).reshape(20, 2)
    noise = noise_of(20, epsilon=2000.0)
    key = jax.random.key(1)
    found = PrivatePValues().found(cut_of(columns), pairs, noise, ALPHA, key)
    p = np.array(found.p_values)
    assert not too_small(p)
    assert not any(found.dependent)
    # Control: noise alone as the null distribution, as if independent columns had a distance of 0.
    alone = noise.tail(np.maximum(found.distances, 0))
    assert too_small(alone)


# --- from records to p-values ---------------------------------------------------------------------


def test_distances_are_those_of_the_definition_with_the_noise_of_the_key(rng, key):
    """Clipped to 0 .. 1; of whole points, so that one record moves each by the sensitivity."""
    x = rng.random((4, N))
    x[1] = np.round(x[0], 1)
    pairs, noise = np.array([[0, 1], [3, 2]]), noise_of(2, epsilon=0.4)
    method = PrivatePValues(control=FalseDiscovery())
    found = method.found(cut_of(x), pairs, noise, 0.3, key)
    bits = random_bits(fold(key, jax.numpy.asarray([1], jax.numpy.uint32)))
    for at, (pair, z) in enumerate(zip(pairs, noise.draw(bits), strict=True)):
        codes = np.minimum((16 * x[pair]).astype(int), 15)
        table = np.zeros((16, 16), int)
        np.add.at(table, tuple(codes), 1)
        far = max(map(oracles.split_distance, (table, table.T)))
        point = far * noise.top + z
        assert point.denominator == 1
        assert found.distances[at] == float(min(max(point / noise.top, 0), 1))
    np.testing.assert_array_equal(found.p_values, p_values(np.array(found.distances), noise))
    np.testing.assert_array_equal(found.adjusted, FalseDiscovery().adjusted(found.p_values))
    assert found.dependent == (True, False)
    # At a level between the p-value and the adjusted one the first pair is not dependent either.
    between = (found.p_values[0] + found.adjusted[0]) / 2
    again = method.found(cut_of(x), pairs, noise, between, key)
    assert again == found._replace(dependent=(False, False))


def test_what_one_record_moves_is_what_the_noise_is_made_for():
    """2 G units of D, in points; another r records move r times as much."""
    for records in (1, 3):
        noise = noise_of(4, records)
        assert noise.cube.sensitivity == records * 2 * steps_of(N) * noise.multiplier
        assert Fraction(noise.cube.sensitivity, noise.top) == Fraction(records, N)


@pytest.mark.parametrize("control", [None, "fdr", FamilyWise, 0.05])
def test_a_control_is_checked_when_the_method_is_made(control):
    with pytest.raises(TypeError, match="control to be FamilyWise"):
        PrivatePValues(control=control)


@pytest.mark.parametrize("pairs", [1, 10])
def test_a_distance_that_is_said_to_be_found_is_found_with_95_percent(rng, pairs):
    noise = noise_of(pairs)
    far = PrivatePValues().smallest_found(noise, ALPHA, 0.95)
    r, mass = radii(pairs, noise.cube.rate)
    radius = r[np.searchsorted(np.cumsum(mass), rng.random(TABLES))]
    p = p_of(far + rng.integers(-radius, radius + 1) / noise.top, noise)
    assert (p <= ALPHA / pairs).mean() == pytest.approx(0.95, abs=0.015)
