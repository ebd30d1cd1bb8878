"""Estimates of MIC* from released distances, on dependences that their table has not seen."""

from fractions import Fraction

import numpy as np
import other_kinds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube, LatticeGauss
from dpmic_jax.paper.distances import distances
from dpmic_jax.screening.calibration import (
    LARGEST,
    distance_of,
    estimates,
    mic_of,
    shipped,
    typical_value,
)
from dpmic_jax.screening.noises import Share, value_noise

N, SETS, PAIRS = 2000, 30, 66


def gauss(sd):
    return LatticeGauss(sigma=sd * 2**24, lattice=Lattice(bits=24, sensitivity=1))


@pytest.fixture(scope="module")
def known():
    """Distances of data sets of every kind, with MIC* and weights by which kinds count alike."""
    rng, kinds = np.random.default_rng(11), other_kinds.kinds()
    stars, weights, counts = [], [], []
    for of in kinds.values():
        for masses in of:
            stars += [other_kinds.mic_star(masses)] * SETS
            weights += [1 / (len(kinds) * len(of) * SETS)] * SETS
            counts.append(rng.multinomial(N, other_kinds.in_parts(masses).ravel(), size=SETS))
    return distances(np.concatenate(counts)), np.array(stars), np.array(weights)


def released(exact, noise, rng):
    if isinstance(noise, LatticeCube):
        radius = noise.scale * rng.gamma(noise.points + 1, size=len(exact))
        drawn = radius * rng.uniform(-1, 1, len(exact))
    else:
        drawn = rng.normal(0, noise.scale, len(exact))
    return np.clip(exact + drawn, 0, 1)


@pytest.mark.parametrize(
    "share", [Share(epsilon=Fraction(1)), Share(mu_squared=Fraction(1, 16))], ids=["cube", "gauss"]
)
def test_limits_hold_the_mic_of_kinds_that_are_not_in_the_table(known, rng, share):
    exact, stars, weights = known
    noise = value_noise(share, Fraction(1, N), PAIRS)
    found = estimates(released(exact, noise, rng), noise, N)
    held = (found.lower <= stars) & (stars <= found.upper)
    assert held @ weights >= 0.95
    assert np.abs(found.mic - stars) @ weights < 0.1
    # Two thirds of the width, of the square root of MIC*, would not do.
    mic, lower, upper = (np.sqrt(each) for each in found)
    narrow = (np.sqrt(stars) >= mic - 2 / 3 * (mic - lower)) & (
        np.sqrt(stars) <= mic + 2 / 3 * (upper - mic)
    )
    assert narrow @ weights < 0.93


def test_independent_pairs_keep_0_in_their_limits_and_are_estimated_low(known, rng):
    cells, sets = other_kinds.PARTS**2, len(known[0])
    exact = distances(rng.multinomial(N, np.full(cells, 1 / cells), size=sets))
    values = released(exact, gauss(0.03), rng)
    found = estimates(values, gauss(0.03), N)
    assert (found.lower == 0).mean() >= 0.975
    assert np.median(found.mic) == 0
    # If noise were taken to be two thirds of what it is, it would show.
    assert (estimates(values, gauss(0.02), N).lower == 0).mean() < 0.96


@pytest.mark.parametrize(("n", "sd"), [(200, 0.03), (1000, 0.01), (10_000, 0.05), (10**6, 0.01)])
def test_estimates_and_limits_grow_with_the_released_distance(n, sd):
    # Up to values that noise reaches from no distance.
    for each in estimates(np.linspace(0, 1, 2000), gauss(sd), n):
        assert np.all(np.diff(each) >= -1e-12)
        assert each[-1] - each[0] > 0.3


@settings(max_examples=8)
@given(st.integers(50, 10**7), st.floats(1e-4, 0.5))
def test_estimates_are_within_their_limits(n, sd):
    mic, lower, upper = estimates(np.linspace(0, 1, 333), gauss(sd), n)
    assert np.all((lower >= 0) & (lower <= mic) & (mic <= upper) & (upper <= 1))


@pytest.mark.parametrize("n", [500, 100_000])
def test_limits_are_wider_the_more_noise_there_is(n):
    values = np.linspace(0, LARGEST, 200)
    found = [estimates(values, gauss(sd), n) for sd in (0.01, 0.03, 0.1, 0.3)]
    assert np.all(np.diff([(each.upper - each.lower).mean() for each in found]) > 0.02)


def test_without_noise_and_sampling_estimates_are_typical_values():
    values = np.linspace(0.02, 0.36, 30)
    found = estimates(values, gauss(2.0**-24), 10**8)
    np.testing.assert_allclose(found.mic, [mic_of(value) for value in values], atol=0.03)
    assert np.all(found.lower > 0)


def test_noise_that_hides_everything_leaves_the_limits_that_were_known_before():
    mic, lower, upper = estimates(np.linspace(0, 1, 11), gauss(3.9), 1000)
    assert mic.max() < 0.01
    assert not lower.any()
    assert upper.min() > 0.99


def test_the_strongest_dependences_are_estimated_low_and_their_limits_reach_1():
    mic, lower, upper = estimates(np.array([LARGEST]), gauss(2.0**-24), 10**6)
    assert mic == pytest.approx(0.8, abs=0.05)
    assert (lower, upper) == (pytest.approx(0.43, abs=0.05), 1)


def test_mic_of_and_distance_of_are_inverse_to_each_other():
    mics = np.linspace(0.005, 0.995, 100)
    far = np.array([distance_of(mic) for mic in mics])
    assert np.all(np.diff(far) > 0)
    np.testing.assert_allclose([mic_of(distance) for distance in far], mics, atol=1e-9)
    assert (mic_of(0.0), mic_of(LARGEST)) == (0, 1)


@pytest.mark.parametrize("mic", [0.0, 1.0, -0.1, 1.1, float("nan")])
def test_a_distance_is_refused_for_what_no_mic_is(mic):
    with pytest.raises(ValueError, match="0 < mic < 1"):
        distance_of(mic)


def test_the_table_increases_with_the_distance_from_0_to_1():
    typical, quantiles, margin = shipped()
    assert (typical[0], typical[-1]) == (0, 1)
    assert np.all(np.diff(typical) > 0)
    assert np.all(np.diff(quantiles, axis=0) >= 0)
    assert np.all((quantiles >= 0) & (quantiles <= 1))
    assert 0 < margin < 0.1


def test_typical_distances_are_those_of_data_sets(known):
    """m(d) and the standard deviation, at which distances of n records are taken to be."""
    exact, _, _ = known
    masses = np.stack([other_kinds.in_parts(m) for of in other_kinds.kinds().values() for m in of])
    sums = np.cumsum(masses.reshape(len(masses), -1), axis=1) / masses.sum(axis=(1, 2))[:, None]
    population = distances(np.diff(np.rint(sums * 2**20), axis=1, prepend=0))
    sets = exact.reshape(-1, SETS)
    gap = sets.mean(axis=1) - typical_value(population, N)
    assert np.abs(gap).max() < 0.45 / np.sqrt(N)
    assert sets.std(axis=1, ddof=1).max() < 1.3 * 0.45 / np.sqrt(N)  # of 30 data sets
    # Without what chance adds, weak dependences would be off.
    assert (sets.mean(axis=1) - population).max() > 2 * np.abs(gap).max()
