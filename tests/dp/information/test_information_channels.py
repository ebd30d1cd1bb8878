"""Capacities: the known ones, of random channels, and of the package's own mechanisms."""

import itertools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from channels import (
    SHAPES,
    capacities,
    entropy,
    erasure,
    information,
    random_channels,
    randomised_response,
    symmetric,
)
from hypothesis import given
from hypothesis import strategies as st
from selecting import boxes

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.audit import exact_loss, replace_one_in_sequences
from dpmic_jax.dp.information import (
    MIDP,
    bit_to_mi,
    capacity,
    composed,
    mi_to_variation,
    pure_to_kl,
    pure_to_mi,
    radius,
    tabulate,
    worst_capacity,
)
from dpmic_jax.dp.noise.bounded import TruncatedGeometric
from dpmic_jax.dp.noise.lattice import Lattice, LatticeLaplace
from dpmic_jax.dp.selection import (
    ExponentialMechanism,
    NoisyMax,
    OneShotTopK,
    PermuteAndFlip,
    SparseVector,
)

# --- known capacities ----------------------------------------------------------------------------


@pytest.mark.parametrize("crossing", [1e-6, 0.01, 0.1, 0.3, 0.45, 0.499, 0.49999])
def test_binary_symmetric_channel(crossing):
    known = math.log(2) - float(entropy(np.array(crossing)))
    found = capacity([[1 - crossing, crossing], [crossing, 1 - crossing]])
    assert found.nats == pytest.approx(known, abs=1e-12)
    assert known - 1e-15 <= found.at_most <= found.nats + 1e-11


@pytest.mark.parametrize("inputs", [2, 3, 17])
@pytest.mark.parametrize("told", [1e-4, 0.2, 0.99, 1.0])
def test_erasure_channel(told, inputs):
    found = capacity(erasure(told, inputs))
    assert found.nats == pytest.approx(told * math.log(inputs), abs=1e-12)
    np.testing.assert_allclose(found.inputs, 1 / inputs, atol=1e-6)


@pytest.mark.parametrize("lost", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_z_channel(lost):
    """ln(1 + (1 - p) p^(p / (1 - p))): an uneven input distribution is the best."""
    known = math.log1p((1 - lost) * lost ** (lost / (1 - lost)))
    found = capacity([[1, 0], [lost, 1 - lost]])
    assert found.nats == pytest.approx(known, abs=1e-11)
    assert found.at_most >= known - 1e-15
    best = 1 / ((1 - lost) * (1 + math.exp(float(entropy(np.array(lost))) / (1 - lost))))
    assert found.inputs[1] == pytest.approx(best, abs=1e-4)


def test_symmetric_channel_of_many_inputs():
    known = information(symmetric(0.3, 40)[None], np.full((1, 40), 1 / 40))[0]
    assert capacity(symmetric(0.3, 40)).nats == pytest.approx(known, abs=1e-12)


def test_equal_rows_have_no_information_and_a_repeated_row_adds_none():
    assert capacity([[0.2, 0.8]] * 3).nats <= 1e-15
    assert capacity([[0.2, 0.8]] * 3).at_most < 1e-13
    assert capacity([[1.0]]).nats == 0
    rows = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    assert capacity(rows[[0, 1, 1, 0]]).nats == pytest.approx(capacity(rows).nats, abs=1e-11)


def test_an_input_that_is_a_mixture_of_others_is_not_used():
    rows = np.array([[0.8, 0.2], [0.3, 0.7]])
    found = capacity([*rows, rows.mean(0)])
    assert found.nats == pytest.approx(capacity(rows).nats, abs=1e-11)
    assert found.inputs[2] < 1e-5


@pytest.mark.parametrize("shape", [*SHAPES, (9, 20)])
def test_bounds_meet_and_agree_with_an_independent_slow_search(shape):
    rng = np.random.default_rng(shape)
    made = random_channels(rng, *shape, 60)
    low, high = capacities(made)
    for channel, below, above in zip(made, low, high, strict=True):
        found = capacity(channel)
        assert found.at_most - found.nats < 1e-11
        assert below <= found.at_most
        assert found.nats <= above + 1e-13
        assert found.inputs.sum() == pytest.approx(1)
        assert information(channel[None], found.inputs[None])[0] == pytest.approx(
            found.nats, abs=1e-13
        )


@given(st.integers(0, 10**6))
def test_output_distributions_bound_the_capacity_above_and_input_distributions_below(
    seed,
):
    rng = np.random.default_rng(seed)
    channel = random_channels(rng, 4, 5, 5)[rng.integers(5)]
    found = capacity(channel)
    for _ in range(20):
        assert radius(channel, rng.dirichlet(np.ones(5))) >= found.nats
        inputs = rng.dirichlet(np.ones(4))
        assert information(channel[None], inputs[None])[0] <= found.at_most
    best = radius(channel, found.inputs @ channel)
    assert best == pytest.approx(found.at_most, abs=1e-14)
    assert found.at_most / 1.5 < found.nats or found.nats < 1e-9
    with np.errstate(all="raise"):
        assert radius(erasure(0.5, 2), [0.5, 0.5, 0.0]) == math.inf


def test_64_bit_floats_are_enabled_inside_the_search_only():
    assert capacity(randomised_response(0.01)).nats == pytest.approx(
        bit_to_mi(PureDP(0.01)).nats, rel=1e-9
    )
    assert not jax.config.read("jax_enable_x64")
    assert jax.numpy.asarray(np.float64(1)).dtype == np.float32


@pytest.mark.parametrize(
    "channel",
    [[0.5, 0.5], [[]], [[0.5, 0.4]], [[1.2, -0.2]], [[math.nan, 1.0]], [[[1.0]]]],
)
def test_an_invalid_channel_is_refused(channel):
    with pytest.raises(ValueError, match="expected"):
        capacity(channel)


def test_invalid_settings_are_refused():
    with pytest.raises(ValueError, match="0 < tolerance < 1"):
        capacity([[1.0]], tolerance=0.0)
    with pytest.raises(ValueError, match="2 probabilities of outputs that sum to 1"):
        radius([[0.5, 0.5]], [1.0])
    with pytest.raises(ValueError, match=r"rows 0 \.\. 1"):
        worst_capacity(np.eye(2), [[0, 2]])
    with pytest.raises(ValueError, match="at least one data set"):
        worst_capacity(np.eye(2), [])


# --- whole mechanisms ----------------------------------------------------------------------------


def test_the_worst_neighbourhood_is_found():
    """Two independent randomised responses, with odds 3 and odds 2."""

    def responses(data):
        return {
            said: math.prod(
                Fraction(odds if bit == answer else 1, odds + 1)
                for bit, answer, odds in zip(data, said, (3, 2), strict=True)
            )
            for said in itertools.product((0, 1), repeat=2)
        }

    found = worst_capacity(*tabulate(responses, replace_one_in_sequences([0, 1], 2)))
    assert found.nats == pytest.approx(bit_to_mi(PureDP(math.log(3))).nats, abs=1e-12)
    assert found.at_most >= found.nats
    np.testing.assert_allclose(found.inputs, 0.5, atol=1e-6)


def test_groups_of_different_sizes_keep_their_input_distributions():
    rows = np.vstack([erasure(0.5, 3), [0.1, 0.1, 0.1, 0.7], [0.3, 0.3, 0.3, 0.1]])
    found = worst_capacity(rows, [[3, 4], [3], [0, 1, 2], [0, 1]])
    assert found.group == 2
    np.testing.assert_allclose(found.inputs, 1 / 3, atol=1e-6)
    alone = worst_capacity(rows, [[3], [0, 1], [3, 4, 3]])
    assert alone.group == 1
    assert alone.inputs.shape == (2,)
    assert alone.nats == pytest.approx(capacity(rows[:2]).nats, abs=1e-11)


def lattice_laplace(epsilon):
    noise = LatticeLaplace(epsilon=epsilon, lattice=Lattice(bits=4, sensitivity=5))
    points = range(17)
    reach = [list(range(start, start + 6)) for start in range(12)]
    return lambda point: {out: noise.pmf(point, out) for out in points}, reach


def truncated_geometric(epsilon):
    noise = TruncatedGeometric(epsilon=epsilon, n=5)
    counts = range(6)
    return lambda count: {out: noise.pmf(count, out) for out in counts}, [
        [c, c + 1] for c in range(5)
    ]


def selecting(selector):
    def outcomes(scores):
        found = selector.pmf(scores)
        return found if isinstance(found, dict) else dict(enumerate(found))

    return outcomes, boxes([(0, 0), (2, 1), (3, 0, 1), (1, 1, 1)], 1)


MECHANISMS = {
    "LatticeLaplace": lattice_laplace,
    "TruncatedGeometric": truncated_geometric,
    "Exponential": lambda epsilon: selecting(ExponentialMechanism(epsilon=epsilon)),
    "PermuteAndFlip": lambda epsilon: selecting(PermuteAndFlip(epsilon=epsilon)),
    "NoisyMax": lambda epsilon: selecting(NoisyMax(epsilon=epsilon, sensitivity=1, top=4)),
    "OneShotTopK": lambda epsilon: selecting(
        OneShotTopK(epsilon=epsilon, sensitivity=1, k=1, top=4)
    ),
    "SparseVector": lambda epsilon: selecting(
        SparseVector(epsilon=epsilon, sensitivity=1, threshold=2, at_most=1, top=4)
    ),
}


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_has_more_information_than_its_epsilon_allows(name, epsilon):
    mechanism, neighbourhoods = MECHANISMS[name](epsilon)
    table = tabulate(mechanism, neighbourhoods)
    found = worst_capacity(*table)
    assert found.at_most <= pure_to_mi(PureDP(epsilon)).nats
    assert found.at_most - found.nats < 1e-11
    # The information bounds the total variation, by Lemma 2.
    apart = max(
        np.abs(table.distributions[one] - table.distributions[other]).sum() / 2
        for group in table.neighbourhoods
        for one, other in itertools.combinations(group, 2)
    )
    assert apart <= mi_to_variation(MIDP(found.at_most)).delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_noise_on_a_lattice_is_close_to_the_most_that_epsilon_allows(epsilon):
    """So a bound, or a scale of noise, of two thirds would be noticed here."""
    mechanism, reach = lattice_laplace(epsilon)
    found = worst_capacity(*tabulate(mechanism, reach))
    bound = pure_to_mi(PureDP(epsilon)).nats
    assert bound / 1.5 < found.nats < found.at_most < bound
    weak, _ = lattice_laplace(1.5 * epsilon)
    assert worst_capacity(*tabulate(weak, reach)).nats > bound


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_truncated_noise_on_one_bit_attains_what_epsilon_allows(epsilon):
    """On 0 .. 1 it is randomised response, up to the slack in its epsilon."""
    noise = TruncatedGeometric(epsilon=epsilon, n=1)
    found = capacity([[float(noise.pmf(bit, out)) for out in (0, 1)] for bit in (0, 1)])
    bound = bit_to_mi(PureDP(epsilon)).nats
    assert found.nats == pytest.approx(bound, abs=1e-9)
    assert found.at_most <= bound + 1e-13


def test_the_audited_loss_bounds_the_capacity():
    """The exact audit gives epsilon, which bounds the capacity: two measurements agree."""
    mechanism, reach = truncated_geometric(1.0)
    measured = exact_loss(mechanism, reach).epsilon
    found = worst_capacity(*tabulate(mechanism, reach))
    assert found.at_most <= bit_to_mi(PureDP(measured + 1e-12)).nats
    assert found.at_most <= pure_to_kl(PureDP(measured)).nats


@pytest.mark.parametrize("times", [2, 3])
def test_the_information_of_repeated_responses_is_below_the_sum(times):
    """Corollary 2 on the real channel: k responses, and the sum of their nats."""
    one = randomised_response(0.7)
    channel = one
    for _ in range(times - 1):
        channel = np.einsum("xa,xb->xab", channel, one).reshape(2, -1)
    total = composed([bit_to_mi(PureDP(0.7))] * times).nats
    found = capacity(channel)
    assert total / 1.5 < found.nats <= found.at_most <= total
