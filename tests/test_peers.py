"""The peers of the power benchmark: statistics, sensitivities, costs and levels."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, gumbel_r, laplace

from benchmarks.peers import APPROXIMATE, MONOTONE, PURE, Setting, independent_pairs, noise
from benchmarks.peers.additive import FirstScreen, first_screen_statistic
from benchmarks.peers.kernel_test import (
    PermutationTest,
    PermutedHSIC,
    basic,
    critical_values,
    optimal,
)
from benchmarks.peers.noise import Laplace
from benchmarks.peers.statistics import HSIC, AbsoluteTau
from dpmic_jax.dp.noise.cube import CubeNoise
from dpmic_jax.paper.functions import FUNCTIONS

CENTRES = (np.arange(64) + 0.5) / 64
SETTING = Setting(1000, 11, 1.0, 1e-6)


def centred(points, bandwidth):
    """H K H of the kernel matrix of some numbers."""
    kernel = np.exp(-(((points[:, None] - points) / bandwidth) ** 2))
    middle = np.eye(len(points)) - 1 / len(points)
    return middle @ kernel @ middle


def hsic(x, y, bandwidth):
    """sqrt(tr(K H L H)) / n, by n x n matrices."""
    squared = (centred(x, bandwidth) * centred(y, bandwidth)).sum()
    return math.sqrt(max(squared, 0)) / len(x)  # not below 0 but for rounding


def tau(x, y):
    pairs = itertools.combinations(range(len(x)), 2)
    signs = [np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in pairs]
    return abs(np.sum(signs)) / len(signs)


def moved(statistic, n, rng, tries):
    """The most that a record's replacement was seen to move a statistic of n records."""
    support = CENTRES[[0, 20, 40, 63]].astype(np.float32)
    x, y = support[rng.integers(0, 4, (2, tries, n))]
    before = statistic.values(x, y)
    x[:, 0], y[:, 0] = support[rng.integers(0, 4, (2, tries))]
    return np.abs(statistic.values(x, y) - before).max()


# --- statistics --------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.05, 0.25])
def test_hsic_is_its_definition_on_the_centres_of_cells(rng, bandwidth):
    x = rng.random((3, 80), np.float32)
    y = np.clip(x + rng.normal(0, 0.1, x.shape), 0, 1).astype(np.float32)
    at = [CENTRES[np.minimum((each * 64).astype(int), 63)] for each in (x, y)]
    wanted = [hsic(a, b, bandwidth) for a, b in zip(*at, strict=True)]
    assert HSIC(bandwidth).values(x, y) == pytest.approx(wanted, rel=1e-9)


def test_cells_hardly_change_hsic(rng):
    x = rng.random((1, 500), np.float32)
    y = x**2
    assert HSIC(1 / 4).values(x, y)[0] == pytest.approx(hsic(x[0], y[0], 1 / 4), rel=0.01)


def test_tau_counts_every_pair_of_records_with_ties_as_0(rng):
    x, y = (rng.integers(0, 9, (2, 4, 30)) / 8).astype(np.float32)
    wanted = [tau(a, b) for a, b in zip(x, y, strict=True)]
    assert AbsoluteTau().values(x, y) == pytest.approx(wanted)


def test_hsic_moves_by_root_6_and_hardly_less():
    # Few records at (x', y'), more at (x, y_0) and (x_0, y): C is along u' v' - u v, and so is the
    # replacement of (x, y) by (x', y').
    n, share, one = 10**8, 0.01, HSIC(0.05)
    counts = np.zeros((1, 64, 64), np.int64)
    counts[0, 63, 63] = n * share**2
    counts[0, 32, 0] = counts[0, 0, 32] = n * share
    counts[0, 0, 0] = n - 1 - counts.sum()
    before, after = counts.copy(), counts
    before[0, 32, 32] += 1
    after[0, 63, 63] += 1
    attained = one.of_counts(after)[0] - one.of_counts(before)[0]
    assert 0.97 * one.sensitivity(n) < attained <= one.sensitivity(n)


@pytest.mark.parametrize("n", [3, 5, 8])
@pytest.mark.parametrize("statistic", [HSIC(0.05), AbsoluteTau()], ids=["HSIC", "tau"])
def test_no_replaced_record_moves_more_than_the_sensitivity(rng, statistic, n):
    seen = moved(statistic, n, rng, tries=1000)
    assert statistic.sensitivity(n) / 2 < seen <= statistic.sensitivity(n) * (1 + 1e-6)


def test_no_permuted_copy_moves_more_than_the_published_sensitivity(rng):
    n, most = 6, 0.0
    support = CENTRES[[0, 20, 40, 63]]
    for _ in range(1500):
        x, y = support[rng.integers(0, 4, (2, n))]
        order = rng.permutation(n)
        before = hsic(x, y[order], 0.05)
        x[0], y[0] = support[rng.integers(0, 4, 2)]
        most = max(most, abs(hsic(x, y[order], 0.05) - before))
    assert 4 * (n - 1) / n**2 / 2 < most <= 4 * (n - 1) / n**2


def test_the_monotone_functions_are_all_that_are():
    def monotone(function):
        x = np.linspace(0, 1, 10_001)
        y = function(x)
        steps = np.diff(y[(y >= 0) & (y <= 1)])
        return (steps >= -1e-12).all() or (steps <= 1e-12).all()

    assert {name for name, each in FUNCTIONS.items() if monotone(each)} == set(MONOTONE)


def test_the_first_version_chose_the_same_statistic_for_all_small_epsilons():
    rest = (Setting(1000, 435, 0.1), Setting(1000, 66, 1.0))
    assert {first_screen_statistic(each) for each in rest} == {first_screen_statistic(SETTING)}


# --- noise and its cost ------------------------------------------------------------------------


def test_laplace_noise_has_the_scale_of_epsilon_by_d():
    one = noise.laplace(SETTING, 0.02)
    points = np.array([-0.3, 0.0, 0.1, 0.5])
    # P(Z > t) / P(Z > t + Delta) is at most e^(epsilon / d), and attained.
    ratio = np.log(one.tail(points) / one.tail(points + 0.02))
    assert ratio.max() == pytest.approx(1 / 11, rel=1e-9)


def test_cube_noise_is_that_of_the_package():
    package = CubeNoise(epsilon=1.0, sensitivity=1000, values=11)
    one = noise.cube(SETTING, 0.02)
    points = np.array([0.0, 0.05, 0.2])
    assert one.tail(points) == pytest.approx(package.tail(points / 0.02 * 1000), rel=1e-9)
    assert one.tail(-points) == pytest.approx(1 - one.tail(points))
    largest = package.largest_tail(0.3 / 0.02 * 1000, 11)
    assert one.largest_tail(0.3, np.zeros(1), 11) == pytest.approx(largest, rel=0.01)


def test_gaussian_noise_costs_what_it_is_allowed():
    mu = noise.gaussian_ratio(1.0, 1e-6)
    t = np.linspace(-2, 12, 200_001)
    near, far = (np.exp(-((t - shift) ** 2) / 2) / math.sqrt(2 * math.pi) for shift in (mu, 0))
    excess = np.maximum(near - math.e * far, 0).sum() * (t[1] - t[0])
    assert excess == pytest.approx(1e-6, rel=1e-3)
    with pytest.raises(ValueError, match="delta"):
        noise.gaussian(SETTING._replace(delta=0.0), 0.02)


def randomised_responses(count, each, epsilon):
    """The delta of so many randomised responses, summed over all outcomes."""
    yes = 1 / (1 + math.exp(-each))
    likely = np.arange(count + 1)
    near, far = binom.pmf(likely, count, yes), binom.pmf(likely, count, 1 - yes)
    return np.maximum(near - math.exp(epsilon) * far, 0).sum()


@pytest.mark.parametrize("pairs", [11, 435])
def test_optimal_composition_spends_all_of_delta(pairs):
    setting = Setting(1000, pairs, 1.0, 1e-6)
    each = optimal(setting)
    assert each >= basic(setting)
    assert randomised_responses(pairs, each, 1.0) == pytest.approx(1e-6, rel=1e-6)
    assert randomised_responses(pairs, 1.5 * each, 1.0) > 1e-6


def test_without_a_delta_optimal_composition_is_basic():
    setting = Setting(1000, 66, 1.0)
    assert optimal(setting) == pytest.approx(basic(setting), rel=1e-9)


# --- levels and power --------------------------------------------------------------------------


def additive(name):
    return next(peer for peer in (*PURE, *APPROXIMATE) if peer.name == name)


@pytest.mark.parametrize(
    "name", ["tau, Laplace", "tau, cube", "tau, Gaussian", "HSIC, Laplace", "HSIC, cube"]
)
def test_five_percent_of_tables_have_a_false_alarm(name):
    peer = additive(name)
    values = peer.statistic(SETTING).values(*independent_pairs(1500, 1000, seed=3))
    # The largest of 11 values of 1500: about 0.005 of sampling error under cube noise.
    assert peer.false_alarms(values, SETTING) == pytest.approx(0.05, abs=0.012)


def test_computed_alarms_and_power_are_those_of_simulated_cubes(rng):
    one, t = noise.cube(SETTING, 0.02), 0.25
    values = np.abs(rng.normal(0, 0.02, 50))
    tables = 40_000
    # e^(-epsilon max|z| / Delta): Gamma(d + 1) radii, and uniform coordinates.
    radius = rng.gamma(12, 0.02, (tables, 1))
    drawn = radius * rng.uniform(-1, 1, (tables, 11))
    alarms = (rng.choice(values, (tables, 11)) + drawn > t).any(axis=1).mean()
    assert one.largest_tail(t, values, 11) == pytest.approx(alarms, abs=0.01)
    assert one.tail(np.array(0.1)) == pytest.approx((drawn > 0.1).mean(), abs=0.003)


class Known:
    """A statistic whose values for independent pairs are given."""

    def null(self, n):
        return np.linspace(0.02, 0.04, 101)

    def sensitivity(self, n):
        return 0.0114


def test_the_first_version_spends_half_of_5_percent_on_chance_and_half_on_noise():
    first = FirstScreen(name="", statistic=lambda _: Known(), noise=noise.laplace)
    null = Known().null(1000)
    scale = null.std(ddof=1) * math.sqrt(6) / math.pi
    chance = gumbel_r(null.mean() - np.euler_gamma * scale, scale).ppf(0.975 ** (1 / 11))
    assert first.level(SETTING) == pytest.approx(chance + laplace(0, 0.1254).isf(0.025 / 11))
    assert first.false_alarms(null, SETTING) < 0.05
    # Released values are clipped: none exceeds a level above 1.
    assert first.power(np.ones(1), Setting(1000, 435, 1.0)) == 0


@pytest.fixture(scope="module")
def independent():
    return PermutedHSIC(HSIC(1 / 4), copies=100).values(*independent_pairs(200, 300, seed=4))


@pytest.mark.parametrize("epsilon", [0.1, 100.0])
def test_the_permutation_test_has_its_level(independent, epsilon):
    test = PermutationTest(name="", permuted=PermutedHSIC(HSIC(1 / 4)), composition=basic)
    alarms = test.false_alarms(independent, Setting(300, 1, epsilon))
    assert alarms == pytest.approx(0.05, abs=3.5 * math.sqrt(0.05 * 0.95 / 200))
    # At a small epsilon noise decides alone, on all data sets alike.
    assert epsilon > 1 or alarms == pytest.approx(0.05, abs=0.002)


def test_critical_values_are_the_ranks_of_simulated_noisy_copies(rng, independent):
    copies, noisy, permutations = independent[:2, 1:], Laplace(0.02), 199
    found = critical_values(copies, noisy, 10, permutations)
    for row, quantiles in zip(copies, found, strict=True):
        drawn = rng.choice(row, (4000, permutations)) + rng.laplace(0, 0.02, (4000, permutations))
        tenth = np.sort(drawn, axis=1)[:, -10]
        assert quantiles.mean() == pytest.approx(tenth.mean(), abs=5e-4)
        assert quantiles.std() == pytest.approx(tenth.std(), rel=0.1)


def perturbed(sets, n, amplitude, rng):
    """Records of the density 1 + amplitude e^2 G(x) G(y) of the dpHSIC paper, by rejection."""

    def bump(x):
        inside = np.minimum((4 * x - np.where(x < 0.5, 1, 3)) ** 2, 1 - 1e-9)
        return np.where(x < 0.5, 1, -1) * np.exp(-1 / (1 - inside))

    x, y = rng.random((2, 2 * sets * n))
    density = 1 + amplitude * math.e**2 * bump(x) * bump(y)
    kept = rng.random(len(x)) * (1 + amplitude) < density
    return (each[kept][: sets * n].reshape(sets, n).astype(np.float32) for each in (x, y))


def test_dphsic_has_the_power_of_its_published_experiment(rng):
    # n = 3000, amplitude 0.2: "uniform_hsic_power_vary_privacy_mid" of the authors, 200 data sets.
    test = PermutationTest(name="", permuted=PermutedHSIC(HSIC(1 / 4), 150), composition=basic)
    values = test.permuted.values(*perturbed(100, 3000, 0.2, rng))
    for epsilon, published in ((0.1826, 0.19), (0.5095, 0.655), (1.0, 0.935)):
        found = test.power(values, Setting(3000, 1, epsilon)).mean()
        sampling = math.sqrt(published * (1 - published) * (1 / 200 + 1 / 100))
        assert found == pytest.approx(published, abs=2.5 * sampling)
