"""Every implication on thousands of channels: none breaks it, the extremal ones attain it."""

import functools
import math

import numpy as np
import pytest
from channels import (
    SHAPES,
    capacities,
    delta,
    divergence,
    entropy,
    erasure,
    information,
    loss,
    random_channels,
    randomised_response,
    symmetric,
    variation,
    windows,
)
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.accounting.events import ZCDP, ApproximateDP, GaussianDP, PureDP
from dpmic_jax.dp.information import (
    KLDP,
    MIDP,
    VariationDP,
    approximate_to_mi,
    bit_to_mi,
    concentrated_to_kl,
    kl_to_mi,
    kl_to_variation,
    mi_to_variation,
    near_mi,
    published,
    pure_to_kl,
    pure_to_mi,
    to_mi,
    to_variation,
    trade,
    variation_to_mi,
)

EACH = 500
# Constants are computed in floating point, so a channel's true constant may be a little larger.
SLACK = 1 + 1e-9
epsilons = st.floats(1e-6, 30.0)


@functools.cache
def batch(shape):
    """Random channels of a shape, and the capacity's bounds."""
    rng = np.random.default_rng(shape)
    made = random_channels(rng, *shape, EACH)
    if shape == (2, 2):
        responses = [randomised_response(e) for e in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)]
        made = np.concatenate([made, responses])
    if shape[1] == 6 and shape[0] < 6:
        erased = np.zeros((8, *shape))
        for one, chance in zip(erased, (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999), strict=True):
            one[:, : shape[0] + 1] = erasure(chance, shape[0])
        made = np.concatenate([made, erased])
    # Equal rows are perfectly private, and have no positive constant to test.
    made = made[variation(made) > 1e-7]
    return made, *capacities(made)


def bounds(implication, constants):
    """A bound for each constant, at a coarse grid's next larger one: it grows with the constant."""
    grid = np.exp(np.ceil(np.log(constants) * 50) / 50)
    known = {float(value): implication(float(value)) for value in np.unique(grid)}
    return np.array([known[float(value)] for value in grid])


def count(shape):
    return {"values": shape[0], "outputs": shape[1]}


@functools.cache
def pure_kl(shape):
    made, _, _ = batch(shape)
    held = loss(made)
    fine = np.isfinite(held)
    bound = bounds(lambda e: pure_to_kl(PureDP(e)).nats, held[fine] * SLACK)
    return divergence(made)[fine], bound


@functools.cache
def pure_mi(shape):
    made, low, _ = batch(shape)
    held = loss(made)
    fine = np.isfinite(held)
    return low[fine], bounds(lambda e: pure_to_mi(PureDP(e)).nats, held[fine] * SLACK)


@functools.cache
def kl_mi(shape):
    made, low, _ = batch(shape)
    held = divergence(made)
    fine = np.isfinite(held)
    return low[fine], bounds(lambda d: kl_to_mi(KLDP(d)).nats, held[fine] * SLACK)


@functools.cache
def kl_variation(shape):
    made, _, _ = batch(shape)
    held = divergence(made)
    fine = np.isfinite(held)
    return variation(made)[fine], bounds(
        lambda d: kl_to_variation(KLDP(d)).delta, held[fine] * SLACK
    )


@functools.cache
def mi_variation(shape):
    made, _, high = batch(shape)
    return variation(made), bounds(lambda i: mi_to_variation(MIDP(i)).delta, high * SLACK)


@functools.cache
def pure_variation(shape):
    made, _, _ = batch(shape)
    held = loss(made)
    fine = np.isfinite(held)
    bound = bounds(lambda e: to_variation(PureDP(e)).delta, held[fine] * SLACK)
    return variation(made)[fine], bound


@functools.cache
def variation_mi(shape):
    made, low, _ = batch(shape)
    found = np.minimum(variation(made) * SLACK, 1)
    bound = [variation_to_mi(VariationDP(float(v)), **count(shape)).nats for v in found]
    return low, np.array(bound)


@functools.cache
def approximate_mi(shape):
    made, low, _ = batch(shape)
    held = np.random.default_rng(1).choice([0.01, 0.1, 0.5, 1.0, 2.0], len(made))
    off = delta(made, held) * SLACK
    fine = (off > 1e-14) & (off < 1)
    bound = [
        approximate_to_mi(ApproximateDP(float(e), float(d)), **count(shape)).nats
        for e, d in zip(held[fine], off[fine], strict=True)
    ]
    return low[fine], np.array(bound)


@functools.cache
def traded(shape):
    made, _, _ = batch(shape)
    rng = np.random.default_rng(2)
    held = rng.choice([0.1, 0.5, 1.0, 2.0], len(made))
    off = np.minimum(delta(made, held) * SLACK, 1 - 1e-9)
    less = held * rng.choice([0.1, 0.5, 0.9], len(made))
    bound = []
    for e, d, smaller in zip(held, off, less, strict=True):
        guarantee = ApproximateDP(float(e), float(d)) if d > 0 else PureDP(float(e))
        bound.append(trade(guarantee, epsilon=float(smaller)).delta)
    return delta(made, less), np.array(bound)


IMPLICATIONS = [
    pure_kl,
    pure_mi,
    kl_variation,
    mi_variation,
    pure_variation,
    variation_mi,
    approximate_mi,
    traded,
]


@pytest.mark.parametrize("implication", [*IMPLICATIONS, kl_mi])
def test_no_channel_violates_an_implication(implication):
    for shape in SHAPES:
        found, bound = implication(shape)
        assert len(found) > EACH // 3
        assert (found <= bound + 1e-13).all()


@pytest.mark.parametrize("implication", IMPLICATIONS)
def test_some_channel_violates_two_thirds_of_the_bound(implication):
    broken = 0
    for shape in SHAPES:
        found, bound = implication(shape)
        broken += np.sum(found > bound / 1.5)
    assert broken


@pytest.mark.parametrize("guarantee", [PureDP, VariationDP])
def test_the_bound_for_records_of_two_values_holds_and_two_thirds_of_it_do_not(guarantee):
    """No channel exceeds the bound, and some exceed two thirds of it."""
    broken = 0
    for shape in [(2, 2), (2, 5)]:
        made, low, _ = batch(shape)
        held = (loss if guarantee is PureDP else variation)(made)
        fine = np.isfinite(held)
        bound = bounds(
            lambda v: bit_to_mi(guarantee(min(v, 1.0) if guarantee is VariationDP else v)).nats,
            held[fine] * SLACK,
        )
        assert (low[fine] <= bound + 1e-13).all()
        broken += np.sum(low[fine] > bound / 1.5)
    assert broken


def test_a_mechanism_near_another_has_little_more_information():
    """Rows mixed with others by v are within total variation v, so `near_mi` bounds them."""
    rng = np.random.default_rng(4)
    for shape in SHAPES:
        made, _, high = batch(shape)
        off = rng.uniform(0, 0.3, len(made))
        told = np.eye(*shape) + np.where(np.arange(shape[0]) >= shape[1], 1, 0)[:, None] / shape[1]
        near = (1 - off[:, None, None]) * made + off[:, None, None] * told
        found, _ = capacities(near)
        bound = [
            near_mi(MIDP(float(i)), variation=float(v), **count(shape)).nats
            for i, v in zip(high * SLACK, off, strict=True)
        ]
        assert (found <= np.array(bound) + 1e-13).all()


# --- attained ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 8.0])
def test_randomised_response_attains_what_epsilon_allows(epsilon):
    """Property 1, Property 3, the bound for bits; and Lemma 2, its channel being symmetric."""
    channel = randomised_response(epsilon)[None]
    low, high = capacities(channel)
    assert high[0] - low[0] < 1e-12
    assert pure_to_kl(PureDP(epsilon)).nats == pytest.approx(divergence(channel)[0], abs=1e-9)
    assert bit_to_mi(PureDP(epsilon)).nats == pytest.approx(low[0], abs=1e-9)
    apart = variation(channel)[0]
    assert to_variation(PureDP(epsilon)).delta == pytest.approx(apart, abs=1e-9)
    assert mi_to_variation(MIDP(float(low[0]))).delta == pytest.approx(apart, abs=1e-9)
    assert kl_to_variation(pure_to_kl(PureDP(epsilon))).delta == pytest.approx(apart, abs=1e-9)
    for smaller in (0.1 * epsilon, 0.7 * epsilon):
        found = delta(channel, smaller)[0]
        assert trade(PureDP(epsilon), epsilon=smaller).delta == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "off"), [(0.5, 0.1), (1.0, 1e-3), (3.0, 0.4)])
def test_revealing_all_with_probability_delta_attains_what_epsilon_and_delta_allow(epsilon, off):
    channel = np.hstack([(1 - off) * randomised_response(epsilon), off * np.eye(2)])[None]
    low, _ = capacities(channel)
    assert delta(channel, epsilon)[0] == pytest.approx(off, abs=1e-12)
    guarantee = ApproximateDP(epsilon, off)
    assert bit_to_mi(guarantee).nats == pytest.approx(low[0], abs=1e-9)
    assert to_variation(guarantee).delta == pytest.approx(variation(channel)[0], abs=1e-9)
    for smaller in (0.1 * epsilon, 0.7 * epsilon):
        found = delta(channel, smaller)[0]
        assert trade(guarantee, epsilon=smaller).delta == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_many_inputs_attain_the_information_that_epsilon_allows(epsilon):
    """A circle of inputs is symmetric: the uniform distribution attains the capacity."""
    odds = math.exp(epsilon)
    best = (epsilon / (1 - 1 / odds) - 1) / (odds - 1)
    inputs = min(range(100, 500), key=lambda m: abs(round(best * m) / m - best))
    channel = windows(epsilon, round(best * inputs), inputs)[None]
    # By symmetry the first input and each of the others stand for all pairs.
    apart = max(loss(channel[:, [0, other]])[0] for other in range(1, inputs))
    assert apart == pytest.approx(epsilon)
    told = information(channel, np.full((1, inputs), 1 / inputs))[0]
    assert pure_to_mi(PureDP(epsilon)).nats == pytest.approx(told, abs=1e-9)


def test_lemma_1_is_approached_by_many_inputs():
    ratios = []
    for inputs in (30, 1000):
        channel = symmetric(0.5, inputs)[None]
        told = information(channel, np.full((1, inputs), 1 / inputs))[0]
        apart = (channel[0, 0] * np.log(channel[0, 0] / channel[0, 1])).sum()
        assert told <= kl_to_mi(KLDP(float(apart))).nats
        ratios.append(told / apart)
    assert ratios[0] < ratios[1]
    # Above 2/3, so two thirds of the bound do not hold.
    assert ratios[1] > 0.8


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.9])
def test_the_bound_of_lemma_3_has_the_scale_of_erasure(chance):
    assert bit_to_mi(VariationDP(chance)).nats == pytest.approx(chance * math.log(2), abs=1e-12)
    for inputs in (2, 3, 10, 10**4, 10**12):
        told = chance * math.log(inputs)
        sizes = {"values": inputs, "outputs": inputs + 1}
        bound = variation_to_mi(VariationDP(chance), **sizes).nats
        assert told <= bound * (1 + 1e-12)
        assert bound <= told + entropy(np.array(chance)) + 1e-12
        # The statement of Lemma 3 is twice that: "within a factor of two of the right scale".
        stated = published.equation_35(VariationDP(chance), **sizes).nats
        assert bound < stated
        assert stated > 2 * told


def test_full_disclosure_is_ln_of_the_lesser_count():
    for sizes, most in [((5, 9), 5), ((9, 5), 5), ((math.inf, 4), 4), ((4, math.inf), 4)]:
        values, outputs = sizes
        found = variation_to_mi(VariationDP(1.0), values=values, outputs=outputs)
        assert found.nats == pytest.approx(math.log(most), rel=1e-12)


# --- formulas, by other means --------------------------------------------------------------------


@given(epsilons)
def test_the_formulas_are_as_written(epsilon):
    u = epsilon / -math.expm1(-epsilon)
    if epsilon > 1e-3:
        assert pure_to_mi(PureDP(epsilon)).nats == pytest.approx(u - 1 - math.log(u), rel=1e-8)
    kl = pure_to_kl(PureDP(epsilon)).nats
    assert kl == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-12)
    assert to_variation(PureDP(epsilon)).delta == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)


@given(st.floats(1e-12, 0.999), st.floats(1e-3, 5.0))
def test_inverses_are_inverse_and_rounded_up(apart, more):
    told = 0.5 * ((1 + apart) * math.log1p(apart) + (1 - apart) * math.log1p(-apart))
    if apart > 1e-4:
        assert mi_to_variation(MIDP(told)).delta == pytest.approx(apart, rel=1e-7)
        entropic = math.log(2) - entropy(np.array((1 - mi_to_variation(MIDP(told)).delta) / 2))
        assert entropic == pytest.approx(told, rel=1e-6, abs=1e-14)
    diverges = 2 * apart * math.atanh(apart)
    assert kl_to_variation(KLDP(diverges)).delta == pytest.approx(apart, rel=1e-9)


@given(epsilons)
def test_the_tight_bound_is_below_the_others_and_about_an_eighth_of_the_square(epsilon):
    """epsilon^2/8 is Hoeffding's lemma; the KL bound is four times that."""
    tight = pure_to_mi(PureDP(epsilon)).nats
    assert bit_to_mi(PureDP(epsilon)).nats <= tight
    assert tight <= min(epsilon**2 / 8, epsilon) * (1 + 1e-12)
    kl = pure_to_kl(PureDP(epsilon))
    assert tight < kl.nats <= published.equation_21(PureDP(epsilon)).nats
    if epsilon < 1e-3:
        assert tight == pytest.approx(epsilon**2 / 8, rel=1e-6)


@given(st.floats(1e-9, 3.0))
def test_tight_forms_are_below_the_printed_ones(nats):
    assert kl_to_variation(KLDP(nats)).delta <= published.pinsker(KLDP(nats)).delta
    assert mi_to_variation(MIDP(nats)).delta <= published.equation_27(MIDP(nats)).delta
    if nats < 1e-6:
        assert mi_to_variation(MIDP(nats)).delta == pytest.approx(math.sqrt(2 * nats), rel=1e-6)


@given(st.floats(1e-9, 1.0), st.integers(2, 10**6), st.integers(2, 10**6))  # values, outputs
def test_the_tight_form_of_lemma_3_is_below_all_printed_forms(apart, values, outputs):
    held = VariationDP(apart)
    tight = variation_to_mi(held, values=values, outputs=outputs).nats
    stated = published.equation_35(held, values=values, outputs=outputs).nats
    by_outputs = published.equation_105(held, outputs=outputs).nats
    by_values = published.equation_126(held, values=values).nats
    assert tight <= min(by_outputs, by_values) * (1 + 1e-12)
    assert by_outputs <= published.equation_35(held, values=math.inf, outputs=outputs).nats
    assert by_values <= published.equation_35(held, values=values, outputs=math.inf).nats
    assert min(by_outputs, by_values) <= stated


@given(epsilons)
def test_a_chain_of_implications_is_never_better_than_the_direct_one(epsilon):
    """epsilon-DP to (0, delta)-DP: directly by Property 3, by KL-DP (no loss), by MI-DP."""
    pure = PureDP(epsilon)
    direct = to_variation(pure).delta
    by_divergence = kl_to_variation(pure_to_kl(pure)).delta
    assert direct <= by_divergence * (1 + 1e-15)
    assert by_divergence == pytest.approx(direct, rel=1e-9)
    assert direct <= mi_to_variation(bit_to_mi(pure)).delta * (1 + 1e-15)
    assert direct <= mi_to_variation(pure_to_mi(pure)).delta
    assert mi_to_variation(pure_to_mi(pure)).delta <= mi_to_variation(
        kl_to_mi(pure_to_kl(pure))
    ).delta * (1 + 1e-15)


@given(st.floats(0.01, 5.0), st.floats(1e-9, 0.3), st.integers(3, 2**64))
def test_information_of_approximate_dp_is_the_lesser_of_two_bounds(epsilon, off, values):
    held = ApproximateDP(epsilon, off)
    found = approximate_to_mi(held, values=values, outputs=math.inf).nats
    printed = variation_to_mi(to_variation(held), values=values, outputs=math.inf).nats
    truncated = epsilon * math.tanh(epsilon / 2) + off * math.log(values) + entropy(np.array(off))
    assert found == pytest.approx(min(printed, truncated, math.log(values)), rel=1e-9)
    assert bit_to_mi(held).nats <= found
    # Less privacy allows more information.
    assert (
        found
        <= approximate_to_mi(
            ApproximateDP(epsilon, 1.5 * off), values=values, outputs=math.inf
        ).nats
    )


def test_every_guarantee_of_an_event_has_nats():
    any_value = {"values": math.inf, "outputs": math.inf}
    assert to_mi(PureDP(1.0), **any_value) == pure_to_mi(PureDP(1.0))
    assert to_mi(PureDP(1.0), values=2, outputs=math.inf) == bit_to_mi(PureDP(1.0))
    assert to_mi(ZCDP(0.1), **any_value) == MIDP(0.1)
    assert to_mi(GaussianDP(0.4), **any_value) == MIDP(0.08)
    assert concentrated_to_kl(ZCDP(0.1)) == KLDP(0.1)
    extra = 1e-9 * 40 * math.log(2) + entropy(np.array(1e-9))
    for inexact, ideal in ((ZCDP(0.1, 1e-9), 0.1), (GaussianDP(0.4, 1e-9), 0.08)):
        near = to_mi(inexact, values=2**40, outputs=math.inf).nats
        assert near - ideal == pytest.approx(extra, rel=1e-6)
    assert to_mi(PureDP(50.0), values=10, outputs=math.inf).nats == pytest.approx(math.log(10))
    with pytest.raises(TypeError, match="PureDP, ApproximateDP, ZCDP or GaussianDP"):
        to_mi(1.0, **any_value)


def test_zcdp_of_gaussian_noise_keeps_its_divergence():
    """Gaussian noise of rho has divergence rho exactly, so the implication is tight."""
    sigma, steps = 1.3, np.linspace(-30, 30, 60001)
    rows = np.exp(-((steps[None] - np.array([[0.0], [1.0]])) ** 2) / (2 * sigma**2))
    rows /= rows.sum(1, keepdims=True)
    rho = 1 / (2 * sigma**2)
    assert divergence(rows[None])[0] == pytest.approx(concentrated_to_kl(ZCDP(rho)).nats, rel=1e-6)


# --- extremes and invalid arguments --------------------------------------------------------------


def test_extreme_budgets_have_finite_results():
    assert pure_to_mi(PureDP(1e-300)).nats == 5e-324
    assert pure_to_mi(PureDP(1e300)).nats >= 1e300 - 1e285
    assert to_variation(PureDP(1e4)).delta == 1
    assert bit_to_mi(PureDP(1e4)).nats == pytest.approx(math.log(2))
    assert mi_to_variation(MIDP(1e-200)).delta == pytest.approx(math.sqrt(2) * 1e-100)
    # Above ln 2 nats Lemma 2 gives delta = 1, which guarantees nothing.
    assert mi_to_variation(MIDP(math.log(2) - 1e-6)).delta < 1
    assert mi_to_variation(MIDP(0.7)).delta == 1
    assert published.equation_27(MIDP(0.7)).delta == 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_invalid_budget_is_refused(epsilon):
    for kind in (KLDP, MIDP, VariationDP, PureDP):
        with pytest.raises(ValueError, match="expected 0 <"):
            kind(epsilon)
    with pytest.raises(ValueError, match="expected 0 < epsilon"):
        trade(PureDP(1.0), epsilon=epsilon)


def test_errors_name_the_theorem_and_its_range():
    with pytest.raises(ValueError, match=r"Property 3.*0 < epsilon < 1, got 2"):
        trade(PureDP(1.0), epsilon=2.0)
    with pytest.raises(ValueError, match="Property 3 gives delta = 1"):
        trade(PureDP(100.0), epsilon=1.0)
    with pytest.raises(ValueError, match=r"Lemma 3 needs a finite number.*math.inf"):
        variation_to_mi(VariationDP(0.1), values=math.inf, outputs=math.inf)
    with pytest.raises(ValueError, match="Lemma 3 needs"):
        published.equation_35(VariationDP(0.1), values=math.inf, outputs=math.inf)
    with pytest.raises(ValueError, match="values >= 2"):
        variation_to_mi(VariationDP(0.1), values=1, outputs=3)
    with pytest.raises(TypeError, match=r"outputs as a whole number or math\.inf"):
        variation_to_mi(VariationDP(0.1), values=3, outputs=2.5)
    with pytest.raises(ValueError, match="0 < delta <= 1"):
        VariationDP(1.5)
    with pytest.raises(ValueError, match="bounds no divergence"):
        concentrated_to_kl(ZCDP(0.1, 1e-9))
    with pytest.raises(TypeError, match=r"Lemma 2 starts from MIDP, got 0.1"):
        mi_to_variation(0.1)
    with pytest.raises(TypeError, match="Property 3 starts from PureDP or ApproximateDP"):
        to_variation(MIDP(1.0))
