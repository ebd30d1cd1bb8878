"""What `preview` promises, against simulation from the definition of each ask."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpmic_jax import seeded_key
from dpmic_jax.dp.noise.lattice import LatticeGauss
from dpmic_jax.dp.selection import SparseVector, ZCDPTopK
from dpmic_jax.screening import (
    Above,
    Against,
    AllPairs,
    Resources,
    TopK,
    preview,
    screen,
    smallest_epsilon,
)
from dpmic_jax.screening.calibration import distance_of, mic_of, typical_value
from dpmic_jax.screening.execution import ScreenTask, released
from dpmic_jax.screening.independence import chance_level
from dpmic_jax.screening.power import LARGEST, expected_count, passed_chance
from dpmic_jax.screening.tiles import DEFAULT, TileScorer, Tiling

# Distances.
STRONG, WEAK = [0.15, 0.2, 0.3, 0.4], [0.004] * 39 + [0.05, 0.1]
RUNS = 40_000


def plan_of(ask, *, epsilon=1.0, delta=0.0, n=1000):
    return preview(columns=10, n=n, epsilon=epsilon, delta=delta, ask=ask)


def passing_noise(rng, choice, runs):
    """Noise on a score less that on one threshold, both exponential and centred."""
    query, threshold = (
        rng.exponential(scale, runs) for scale in (choice.scale, choice.threshold_scale)
    )
    return (query - choice.scale) - (threshold - choice.threshold_scale)


def close(found, expected):
    """Within four standard errors of a simulated share."""
    return abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / RUNS) + 1e-4


@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 0.0), (0.4, 0.01)])
def test_the_chance_of_a_right_ranking_is_that_of_a_simulation(rng, epsilon, delta):
    found = plan_of(AllPairs(), delta=delta, epsilon=epsilon)
    noise, draws = found.plan.distances, (RUNS, len(STRONG) + len(WEAK))
    assert isinstance(noise, LatticeGauss) == bool(delta)
    if delta:
        drawn = rng.normal(0, noise.scale, draws)
    else:  # one Gamma radius for all values of a run
        drawn = noise.scale * rng.gamma(46, size=(RUNS, 1)) * rng.uniform(-1, 1, draws)
    noisy = np.clip(np.array([*STRONG, *WEAK]) + drawn, 0, 1)
    strong, weak = noisy[:, : len(STRONG)], noisy[:, len(STRONG) :]
    expected = (strong.min(axis=1) > weak.max(axis=1)).mean()
    assert 0.05 < expected < 0.999
    assert close(found.chance(STRONG, WEAK), expected)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_chance_of_the_right_choice_is_that_of_a_simulation(rng, delta):
    """The exponential mechanism without replacement chooses as Gumbel noise does."""
    found = plan_of(TopK(4, selection_fraction=0.5), epsilon=0.8, delta=delta)
    draws = RUNS, len(STRONG) + len(WEAK)
    gumbel = isinstance(found.plan.choice.selector, ZCDPTopK)
    assert gumbel == bool(delta)
    noise = rng.gumbel(0, 1, draws) if gumbel else rng.exponential(1, draws)
    noisy = np.array([*STRONG, *WEAK]) + found.plan.choice.scale * noise
    expected = (noisy[:, :4].min(axis=1) > noisy[:, 4:].max(axis=1)).mean()
    assert 0.05 < expected < 0.999
    assert close(found.chance(STRONG, WEAK), expected)


@pytest.mark.parametrize("gap", [-0.1, 0.0, 0.03])
def test_the_chance_of_passing_the_threshold_is_that_of_a_simulation(rng, gap):
    plan = plan_of(Above(0.3, 5, selection_fraction=0.7)).plan
    passed = gap + passing_noise(rng, plan.choice, RUNS) >= 0
    assert close(passed_chance(plan.choice, gap), passed.mean())


@pytest.mark.parametrize("gap", [-0.02, 0.0, 0.01])
def test_the_chance_of_passing_by_algorithm_5_is_that_of_a_simulation(rng, gap):
    """With a delta it has less noise than one threshold, for many pairs."""
    ask = Above(0.3, 1000, selection_fraction=0.7)
    plan = preview(columns=60, n=10**6, epsilon=1.0, delta=1e-3, ask=ask).plan
    assert isinstance(plan.choice.selector, SparseVector)
    b = plan.choice.threshold_scale
    threshold, query = rng.laplace(0, b, RUNS), rng.laplace(0, 2 * b, RUNS)
    assert close(passed_chance(plan.choice, gap), (gap + query >= threshold).mean())


@pytest.mark.parametrize("ask", [AllPairs(), Against("column 3"), TopK(3), Above(0.3, 3)])
def test_the_smallest_found_is_selected_and_called_dependent_with_95_percent(rng, ask):
    """By simulation: a pair of that distance among pairs as strong as chance makes them."""
    found = plan_of(ask, n=100_000, epsilon=0.1)
    plan, value, runs = found.plan, found.smallest_distance, 200_000
    radius = plan.distances.scale * rng.gamma(plan.noised + 1, size=runs)
    noise = radius * rng.uniform(-1, 1, runs)
    right = value + noise > plan.dependence_level
    if isinstance(ask, TopK):
        score = value + rng.exponential(plan.choice.scale, runs)
        by_chance = chance_level(plan.n, len(plan.pairs))
        others = by_chance + rng.exponential(plan.choice.scale, (runs, len(plan.pairs) - 1))
        right &= (others > score[:, None]).sum(axis=1) < ask.k
    if isinstance(ask, Above):
        far = distance_of(ask.threshold)
        passed = passing_noise(rng, plan.choice, runs) if plan.choice else noise
        right &= value + passed >= far
    assert right.mean() == pytest.approx(0.95, abs=3e-3)
    assert found.smallest == mic_of(value)


class KnownDistances(TileScorer):
    """A scorer of pairs whose distances are known: all that comes after scoring is the screen's."""

    def __init__(self, plan, distances, key):
        self._plan, self._key = plan, key
        self._known = dict(zip(map(tuple, plan.pairs.tolist()), distances, strict=True))

    def _points(self, pairs, lattices):
        distances = np.array([self._known[tuple(pair)] for pair in pairs.tolist()])
        yield np.stack([np.int64(distances * lattice.top) for lattice in lattices], axis=1)

    def tiles(self, numbers, progress):
        found = super().tiles(numbers, len(self._known), self._key, progress)
        return zip(numbers, found, strict=True)

    def noised(self, chosen):
        return super().noised(chosen, self._key)


def starred(plan, distances, seed):
    """The positions of the pairs that a screen with this seed releases and calls dependent."""
    key = seeded_key(seed)
    task = ScreenTask(None, plan, DEFAULT, len(plan.pairs))
    found = released(task, key, None, KnownDistances(plan, distances, key))
    above = found.pairs[found.distances > plan.dependence_level].tolist()
    return [plan.pairs.tolist().index(pair) for pair in above]


@pytest.mark.parametrize(
    ("columns", "ask", "epsilon", "delta"),
    [
        (10, AllPairs(), 0.5, 0.0),
        (10, AllPairs(), 0.5, 0.01),
        (10, TopK(3), 0.1, 0.0),
        (12, TopK(8), 0.1, 0.1),
        (4, TopK(2), 0.1, 0.0),
        (10, Above(0.1, 3), 0.2, 0.0),
        (10, Above(0.2, 30), 0.2, 0.0),
    ],
)
def test_a_pair_of_the_smallest_found_is_chosen_and_starred_by_screens_of_95_percent_of_keys(
    rng, columns, ask, epsilon, delta
):
    """By the noise of screens; the others are as far as chance takes independent columns.

    A pair whose distance is a fifth smaller is missed far more often: there is little to spare.
    """
    n, keys, near, at = 6000, 240, 1, 4
    found = preview(columns=columns, n=n, epsilon=epsilon, delta=delta, ask=ask)
    pairs = len(found.plan.pairs)
    # Between 0.8 and 1.1 times the mean, as those of 21 pairs of uniform columns are.
    distances = typical_value(np.zeros(pairs), n) * rng.uniform(0.8, 1.1, pairs)
    distances[[at, near]] = found.smallest_distance * np.array([1.0, 0.8])
    seen = [starred(found.plan, distances, seed) for seed in range(keys)]
    right, fewer = (sum(place in each for each in seen) for place in (at, near))
    # An interval that 1 of 1000 counts of a share of 0.95 is below, and as many above.
    low, high = binom.ppf([1e-3, 1 - 1e-3], keys, 0.95)
    assert low <= right
    if isinstance(ask, AllPairs):
        assert right <= high
    assert fewer < 0.75 * keys


@pytest.mark.slow
@pytest.mark.parametrize("ask", [AllPairs(), TopK(2), Above(0.1, 3)], ids=str)
def test_the_smallest_epsilon_for_a_pair_of_a_table_finds_it(rng, ask):
    """By whole screens of a table, with the epsilon that is solved for, and with two thirds."""
    n, keys = 2000, 40
    table = {f"c{number}": rng.random(n) for number in range(6)}
    table["c4"] = np.where(rng.random(n) < 0.45, table["c1"], table["c4"])
    limits = dict.fromkeys(table, (0.0, 1.0))

    def screened(ask, epsilon, seed):
        found = screen(table, bounds=limits, epsilon=epsilon, ask=ask, key=seeded_key(seed))
        above = found.dependent
        pairs = map(tuple, found.pairs[above].tolist())
        return dict(zip(pairs, found.distance[above].tolist(), strict=True))

    distance = screened(AllPairs(), 1e5, 0)[1, 4]
    epsilon = smallest_epsilon(mic_of(distance), columns=6, n=n, ask=ask)
    right, fewer = (
        sum((1, 4) in screened(ask, share * epsilon, seed) for seed in range(keys))
        for share in (1, 2 / 3)
    )
    assert right >= binom.ppf(1e-3, keys, 0.95)
    assert fewer < 0.9 * keys


def test_what_no_dependence_reaches_has_no_mic():
    found = preview(columns=30, n=100, epsilon=0.1, ask=AllPairs())
    assert found.smallest_distance > LARGEST
    assert found.smallest == math.inf
    assert "lost in noise" in str(found)


def test_more_records_find_smaller_values_and_more_columns_larger_ones():
    smallest = [plan_of(AllPairs(), n=n).smallest for n in (2000, 20_000, 200_000)]
    assert smallest == sorted(smallest, reverse=True)
    few, many = (preview(columns=m, n=10**5, epsilon=1.0, ask=AllPairs()).smallest for m in (5, 50))
    assert few < many


def test_a_table_that_does_not_fit_is_read_once_a_group_of_pairs():
    small = Resources(memory=2**21)
    found = preview(columns=30, n=10**6, epsilon=1.0, ask=AllPairs(), resources=small)
    assert found.tiling.streams
    assert found.tiling.passes == found.tiling.tiles == -(-435 // found.tiling.size)
    assert found.tiling.memory <= small.memory
    roomy = preview(columns=30, n=10**6, epsilon=1.0, ask=AllPairs())
    assert roomy.tiling == Tiling(256, 2, False, roomy.tiling.memory)


def test_the_interval_of_a_count_holds_99_percent(rng):
    low, high = expected_count(0.9, 100)
    counts = rng.binomial(100, 0.9, 20_000)
    assert ((counts >= low) & (counts <= high)).mean() >= 0.985


def test_it_reads_as_a_table():
    text = str(plan_of(TopK(4, selection_fraction=0.7)))
    for words in (
        "top 4 of all pairs",
        "noise scale of the choice",
        "time, roughly",
        "sensitivity",
    ):
        assert words in text


@pytest.mark.parametrize(("n", "error"), [(3, ValueError), (0, ValueError), (2.5, TypeError)])
def test_fewer_records_than_a_screen_takes_are_refused(n, error):
    with pytest.raises(error, match=r"expected n (>= |to be a whole number)"):
        preview(columns=5, n=n, epsilon=1.0, ask=AllPairs())


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (AllPairs(), "45"),
        (TopK(4, selection_fraction=0.7), "4"),
        (TopK(40), "40"),
        (Above(0.3, 5, selection_fraction=0.7), "at most 5"),
        (Above(0.3, 40), "at most 40"),
    ],
    ids=str,
)
def test_only_a_search_above_a_threshold_may_release_fewer_pairs(ask, said):
    assert dict(plan_of(ask).lines())["pairs released"] == said


def test_it_says_what_was_chosen_and_what_other_ways_would_have_found():
    lines = dict(preview(columns=40, n=20_000, epsilon=0.4, delta=1e-6, ask=TopK(20)).lines())
    assert "exponential mechanism" in lines["mechanism"]
    others = dict(
        reversed(other.split(" by ", 1)) for other in lines["other ways would find"].split("; ")
    )
    assert {how.split(" ")[0] for how in others} == {"pairs", "discrete"}
    assert any("one-shot noisy top-k" in how for how in others)
    chosen = float(lines["smallest MIC found, 95 %"].split(",")[0])
    # A quarter of the distance may be spent on MICr, which is up to about half of a MIC.
    assert all(mic == "none" or float(mic) > chosen / 2 for mic in others.values())
