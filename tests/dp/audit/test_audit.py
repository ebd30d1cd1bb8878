"""The exact audit and the neighbour search, on mechanisms whose loss is known."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ladder import micr
from dpmic_jax import MICr
from dpmic_jax.dp.audit import (
    Loss,
    exact_delta,
    exact_loss,
    exp_between,
    largest_change,
    mutate,
    replace_one,
    replace_one_in_sequences,
)

TINY = Fraction(1, 10**12)
BITS = [0, 1]
PAIRS_OF_BITS = list(itertools.product(BITS, BITS))


# Exact output distributions, without code of the package.


def noise_ratio(epsilon):
    """Hardly above e^-epsilon, so that the loss is hardly below epsilon."""
    return Fraction(math.exp(-epsilon)) + Fraction(1, 2**50)


def discrete_laplace(ratio, reach):
    """P[X = x] = (1 - r) / (1 + r) r^|x|, with what lies beyond +-reach put there."""
    pmf = {x: (1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in range(1 - reach, reach)}
    return pmf | dict.fromkeys((-reach, reach), ratio**reach / (1 + ratio))


def pushed(pmf, function):
    """The distribution of a function of a random variable with distribution `pmf`."""
    out = Counter()
    for output, p in pmf.items():
        out[function(output)] += p
    return out


def clipped(value, low, high):
    return min(max(value, low), high)


def noisy_sum(epsilon):
    """The number of ones in n bits, with noise, on the public range 0 .. n."""
    ratio = noise_ratio(epsilon)

    def distribution(bits):
        noise = discrete_laplace(ratio, 2 * len(bits))
        return pushed(noise, lambda x: clipped(sum(bits) + x, 0, len(bits)))

    return distribution


def noisy_sum_on_its_own_range(epsilon):
    """The same for numbers, truncated to what sums between n min and n max are."""
    ratio = noise_ratio(epsilon)

    def distribution(data):
        low, high = len(data) * min(data), len(data) * max(data)
        return pushed(discrete_laplace(ratio, 9), lambda x: clipped(sum(data) + x, low, high))

    return distribution


def two_noisy_sums(epsilon, pair_noise):
    """The number of ones in each of two columns of bits."""
    ratio = noise_ratio(epsilon)

    def distribution(data):
        n, (a, b) = len(data), map(sum, zip(*data, strict=True))
        noise = pair_noise(discrete_laplace(ratio, 2 * n))
        return pushed(noise, lambda x: (clipped(a + x[0], 0, n), clipped(b + x[1], 0, n)))

    return distribution


def two_keys(noise):
    return {(x, y): p * q for (x, p), (y, q) in itertools.product(noise.items(), repeat=2)}


def one_key(noise):
    return {(x, x): p for x, p in noise.items()}


def randomised_responses(epsilon_ratio, times):
    """Tell the same bit several times, each time a lie with odds `epsilon_ratio`."""

    def distribution(data):
        (bit,) = data
        truth, lie = 1 / (1 + epsilon_ratio), epsilon_ratio / (1 + epsilon_ratio)
        return {
            told: math.prod(truth if answer == bit else lie for answer in told)
            for told in itertools.product(BITS, repeat=times)
        }

    return distribution


# The exact loss.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_correct_noise_has_a_loss_of_exactly_epsilon(epsilon):
    loss = exact_loss(noisy_sum(epsilon), replace_one(BITS, 4))
    assert loss.at_most(epsilon)
    assert not loss.at_most(epsilon - TINY)


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(3, 2)])
def test_noise_of_another_scale_has_another_loss(scale):
    loss = exact_loss(noisy_sum(float(1 / scale)), replace_one(BITS, 4))
    assert loss.epsilon == pytest.approx(float(1 / scale), abs=1e-12)
    assert loss.at_most(1.0) == (scale > 1)


def test_noise_from_two_keys_loses_2_epsilon_and_reused_noise_everything():
    neighbourhoods = list(replace_one(PAIRS_OF_BITS, 2))
    sound = exact_loss(two_noisy_sums(1.0, two_keys), neighbourhoods)
    assert sound.at_most(2.0)
    assert not sound.at_most(2 - TINY)
    assert exact_loss(two_noisy_sums(1.0, one_key), neighbourhoods).epsilon == math.inf


def test_truncation_to_the_range_of_the_data_is_detected():
    loss = exact_loss(noisy_sum_on_its_own_range(1.0), replace_one([0, 1, 2], 3))
    assert loss.less == 0
    assert not loss.at_most(1000.0)
    # Of all outputs that give everything away, the likeliest is the witness.
    distribution = noisy_sum_on_its_own_range(1.0)
    assert loss.more == distribution(loss.dataset)[loss.output]
    assert loss.output not in distribution(loss.neighbour)


@given(
    weights=st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any), min_size=3, max_size=3
    )
)
def test_loss_is_the_largest_ratio_of_any_event(weights):
    distributions = [{v: Fraction(w, sum(row)) for v, w in enumerate(row)} for row in weights]
    loss = exact_loss(distributions.__getitem__, [range(3)])
    events = [event for size in (1, 2, 3) for event in itertools.combinations(range(3), size)]
    ratios = [
        Fraction(more, less) if less else math.inf
        for p, q in itertools.permutations(distributions, 2)
        for more, less in ((sum(p[v] for v in e), sum(q[v] for v in e)) for e in events)
        if more or less
    ]
    assert (loss.more / loss.less if loss.less else math.inf) == max(ratios)


@given(exponent=st.fractions(-30, 30, max_denominator=1000), digits=st.integers(5, 60))
def test_exp_between_encloses_the_series(exponent, digits):
    low, high = exp_between(exponent, digits)
    # e^|x| = sum of |x|^k / k!, the rest below twice its first term once k > 2 |x|.
    size, term, total = abs(exponent), Fraction(1), Fraction(0)
    for k in range(1, 400):
        total, term = total + term, term * size / k
    ends = (total, total + 2 * term) if exponent >= 0 else (1 / (total + 2 * term), 1 / total)
    assert low <= ends[0] <= ends[1] <= high
    assert high - low < Fraction(1, 10**digits) * high


@pytest.mark.parametrize("epsilon", [0.1, 1, Fraction(22, 7)])
def test_comparison_with_epsilon_is_exact(epsilon):
    below, above = exp_between(epsilon, 100)
    for ratio, expected in ((below, True), (above, False)):
        loss = Loss(dataset=0, neighbour=1, output=0, more=ratio / 99, less=Fraction(1, 99))
        assert loss.at_most(epsilon) is expected
        assert loss.epsilon == pytest.approx(float(epsilon), rel=1e-15)


def test_equal_distributions_have_no_loss():
    loss = exact_loss(lambda data: {0: Fraction(1, 3), 1: Fraction(2, 3)}, replace_one(BITS, 3))
    assert loss.epsilon == 0
    assert loss.at_most(0)


# Delta.


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_delta_of_randomised_responses_is_that_of_optimal_composition(times):
    """Theorem 3.3 of Kairouz, Oh and Viswanath (2015), for k mechanisms of epsilon = log 3."""
    odds = Fraction(1, 3)
    for i in range(times // 2 + 1):
        expected = (
            sum(
                math.comb(times, j) * (odds ** (j - times) - odds ** (2 * i - times - j))
                for j in range(i)
            )
            / (1 + 1 / odds) ** times
        )
        # Rounded: (k - 2i) log 3 is no float.
        epsilon = (times - 2 * i) * math.log(3)
        found = exact_delta(
            randomised_responses(odds, times), replace_one(BITS, 1), epsilon=epsilon
        )
        assert float(found.low) == pytest.approx(float(expected), abs=1e-14)
        assert found.low <= found.high < found.low + Fraction(1, 10**25)


def test_a_mechanism_that_reveals_all_with_probability_delta_has_that_delta():
    told = Fraction(1, 7)

    def distribution(data):
        return {data: told, "nothing": 1 - told}

    for epsilon in (0, 1.0, 20.0):
        found = exact_delta(distribution, replace_one([0, 1, 2], 2), epsilon=epsilon)
        assert found.low == found.high == told
        assert found.event == {found.dataset}


def test_delta_is_zero_at_the_exact_loss():
    assert exact_delta(noisy_sum(1.0), replace_one(BITS, 3), epsilon=1.0).high == 0
    assert exact_delta(noisy_sum(1.5), replace_one(BITS, 3), epsilon=1.0).low > 0.01


# Neighbours.


def test_neighbourhoods_contain_exactly_all_neighbours():
    data = list(itertools.combinations_with_replacement("abc", 3))
    expected = {
        frozenset(pair)
        for pair in itertools.combinations(data, 2)
        if (Counter(pair[0]) - Counter(pair[1])).total() == 1
    }
    groups = list(replace_one("abc", 3))
    found = {frozenset(pair) for group in groups for pair in itertools.combinations(group, 2)}
    assert found == expected


def test_neighbourhoods_of_sequences_contain_exactly_all_neighbours():
    data = list(itertools.product("abc", repeat=3))
    expected = {
        frozenset(pair)
        for pair in itertools.combinations(data, 2)
        if sum(a != b for a, b in zip(*pair, strict=True)) == 1
    }
    groups = list(replace_one_in_sequences("abc", 3))
    found = {frozenset(pair) for group in groups for pair in itertools.combinations(group, 2)}
    assert found == expected


@pytest.mark.parametrize(
    ("distribution", "error", "text"),
    [
        (lambda data: {0: 0.5, 1: 0.5}, TypeError, "Fraction"),
        (lambda data: {0: Fraction(1, 2)}, ValueError, "sum to exactly 1"),
        (lambda data: {0: Fraction(3, 2), 1: Fraction(-1, 2)}, ValueError, ">= 0"),
    ],
)
def test_values_that_are_no_exact_distribution_are_refused(distribution, error, text):
    with pytest.raises(error, match=text):
        exact_loss(distribution, replace_one(BITS, 2))


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_an_invalid_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        exact_delta(noisy_sum(1.0), replace_one(BITS, 2), epsilon=epsilon)
    with pytest.raises(ValueError, match="epsilon"):
        exact_loss(noisy_sum(1.0), replace_one(BITS, 2)).at_most(epsilon)


# The search.


def quarters(count, generator):
    return generator.integers(0, 5, count) / 4


def points(count, generator):
    return (generator.integers(0, 12, (count, 2)) + 0.5) / 12


def search(statistic, draw, generator, **settings):
    chosen = {"n": 9, "propose": mutate(draw), "chains": 32, "steps": 100, "restarts": 1}
    return largest_change(statistic, draw, generator=generator, **(chosen | settings))


@pytest.mark.parametrize(
    ("statistic", "sensitivity"),
    [
        (lambda data: data.mean(axis=1), 1 / 9),
        (lambda data: data.var(axis=1), 8 / 81),  # all equal but one
        (lambda data: np.median(data, axis=1), 1),  # half at each end
        (lambda data: data[:, 4], 1),  # which record it is matters
        (lambda data: np.stack([data.mean(axis=1), data.max(axis=1)], axis=1), 1 / 9 + 1),
    ],
    ids=["mean", "variance", "median", "a record", "two"],
)
def test_search_finds_the_sensitivity(statistic, sensitivity, rng):
    assert search(statistic, quarters, rng).size == pytest.approx(sensitivity, abs=1e-12)


def test_search_of_micr_finds_its_sensitivity_on_the_real_code_path(rng):
    """delta(n) / n of all records in a corner, one moved to the opposite one; and not more."""
    statistic = MICr(B=9, c=2)
    found = search(lambda data: micr(data, statistic, jax.devices()[0]), points, rng, steps=60)
    assert found.size == pytest.approx((9 * math.log2(9) - 8 * math.log2(8)) / 9, abs=2e-6)


@given(n=st.integers(1, 6), fields=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_search_returns_neighbours_with_the_stated_change(n, fields, seed):
    def draw(count, generator):
        return generator.normal(size=(count, fields))

    def statistic(data):
        return np.sin(7 * data).sum(axis=(1, 2))

    found = search(statistic, draw, np.random.default_rng(seed), n=n, chains=4, steps=5, restarts=2)
    assert np.any(found.dataset != found.neighbour, axis=1).sum() <= 1
    values = statistic(np.stack([found.dataset, found.neighbour]))
    assert found.size == pytest.approx(abs(values[0] - values[1]))


def test_the_search_is_reproducible():
    found = [search(lambda d: d.var(axis=1), quarters, np.random.default_rng(3)) for _ in "ab"]
    np.testing.assert_array_equal(found[0].dataset, found[1].dataset)
    assert found[0].size == found[1].size


def test_search_refuses_a_statistic_that_is_nan(rng):
    with pytest.raises(ValueError, match="NaN"):
        search(lambda data: np.full(len(data), np.nan), quarters, rng)
