"""The corrected level of tests on data that private results were computed from."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.max_information import (
    DescriptionLength,
    InformationTheorem,
    Laws,
    MaxInformation,
    approximate,
    concentrated,
    corrected_level,
    corrected_level_after,
    largest_epsilon,
    largest_rho,
    max_information,
    max_information_after,
    pure,
    pure_any,
)


def event(guarantee, n=1000, count=1, records=1):
    return Event(
        mechanism="M",
        guarantee=guarantee,
        relation=ReplaceOne(records),
        n=n,
        sensitivity=Fraction(1),
        count=count,
    )


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 0.03), (1000, 0.1), (10**4, 0.03)])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_agreement_with_randomised_responses_keeps_alpha_at_the_corrected_level(n, epsilon, alpha):
    """The worst test of an analyst is whether the bits agree with the released responses.

    For bits that are independent of the responses the number that agree is binomial(n, 1/2),
    so its p-value is valid for each fixed test; the true number is binomial(n, truth).
    """
    truth = 1 / (1 + math.exp(-epsilon))
    level = corrected_level(alpha, PureDP(epsilon), n=n).level
    agree = np.arange(n + 2)
    p_values, errs = stats.binom.sf(agree - 1, n, 0.5), stats.binom.sf(agree - 1, n, truth)

    def error(at):
        return errs[p_values <= at].max(initial=0)

    assert error(level) <= alpha
    assert error(alpha) > alpha
    assert error(level * 4) > alpha


@pytest.mark.parametrize("spent", [PureDP(0.05), ApproximateDP(0.02, 1e-12), ZCDP(1e-4)])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_the_level_is_the_best_over_beta(spent, alpha):
    found = corrected_level(alpha, spent, n=1000)
    assert 0 < found.beta < alpha
    assert found.level == pytest.approx((alpha - found.beta) / 2**found.bits, rel=1e-9)
    levels = [
        max_information(spent, n=1000, beta=float(beta)).level(alpha)
        for beta in alpha * np.linspace(0.04, 0.96, 24)
    ]
    assert max(levels) <= found.level * (1 + 1e-6)
    assert max(levels) >= found.level * 0.99


def test_the_level_of_pure_privacy_has_a_closed_lower_bound():
    """With s (1+s) epsilon^2/8 for the moment: e^-(sqrt(ln 1/alpha) + epsilon sqrt(n/8))^2."""
    for n in (10, 1000, 10**6):
        for epsilon in (0.001, 0.03, 0.5):
            root = math.sqrt(math.log(20)) + epsilon * math.sqrt(n / 8)
            level = corrected_level(0.05, PureDP(epsilon), n=n).level
            assert level >= math.exp(-(root**2)) * (1 - 1e-6)
            if epsilon < 0.01 and n > 100:
                assert level == pytest.approx(math.exp(-(root**2)), rel=1e-3)


def test_a_level_without_power_is_reported_as_zero():
    found = corrected_level(0.05, PureDP(1.0), n=10**6)
    assert found.level == 0
    assert 170_000 < found.bits < 190_000
    tiny = corrected_level(0.05, PureDP(1e-9), n=10)
    assert 0.049999 < tiny.level <= 0.05


@pytest.mark.parametrize("n", [100, 10**4, 10**6])
@pytest.mark.parametrize("level", [1e-6, 0.005, 0.04])
def test_the_largest_epsilon_is_the_inverse(n, level):
    epsilon = largest_epsilon(level, alpha=0.05, n=n)
    assert corrected_level(0.05, PureDP(epsilon), n=n).level >= level
    assert corrected_level(0.05, PureDP(epsilon * 1.00001), n=n).level < level


def test_the_largest_rho_is_the_inverse():
    rho = largest_rho(0.001, alpha=0.05, n=1000)
    assert corrected_level(0.05, ZCDP(rho), n=1000).level >= 0.001
    assert corrected_level(0.05, ZCDP(rho * 1.00001), n=1000).level < 0.001


def test_zcdp_takes_the_better_of_two_theorems():
    """Few nats: mutual information. A small alpha and many nats: truncation."""
    assert "Theorem D" in corrected_level(0.05, ZCDP(1e-4), n=1000).theorem
    assert "Theorem C" in corrected_level(0.001, ZCDP(1e-3), n=1000).theorem
    for rho, alpha in ((1e-4, 0.05), (1e-3, 0.001)):
        found = corrected_level(alpha, ZCDP(rho), n=1000).level
        nats = InformationTheorem(nats=1000 * rho, laws=Laws.PRODUCT)
        both = (nats.corrected(alpha).level, concentrated(rho, 1000).corrected(alpha).level)
        assert found == pytest.approx(max(both), rel=1e-9)


def test_noise_off_its_ideal_distribution_costs_its_total_variation():
    """(1 + 2^k) v more in beta."""
    v = 1e-6
    exact, off = (corrected_level(0.05, ZCDP(1e-4, delta), n=1000) for delta in (0.0, v))
    assert off.level < exact.level
    again = corrected_level(0.05 - v, ZCDP(1e-4), n=1000)
    assert off.level == pytest.approx(again.level - v, rel=1e-6)
    bits = max_information(ZCDP(1e-4, v), n=1000, beta=0.025).bits
    assert bits > max_information(ZCDP(1e-4), n=1000, beta=0.025).bits
    assert bits >= max_information(ZCDP(1e-4), n=1000, beta=0.025 - 3 * v).bits
    assert corrected_level(0.05, ZCDP(1e-4, 0.06), n=1000).level == 0


def test_one_event_costs_what_its_guarantee_costs():
    for guarantee in (PureDP(0.03), ZCDP(1e-4), GaussianDP(0.01)):
        one = corrected_level_after(0.05, [event(guarantee)])
        assert one == corrected_level(0.05, guarantee, n=1000)
    one = corrected_level_after(0.05, [event(ApproximateDP(0.01, 1e-12))])
    assert one.level >= corrected_level(0.05, ApproximateDP(0.01, 1e-12), n=1000).level * (1 - 1e-6)


def test_a_person_with_many_records_changes_nothing():
    events = [event(PureDP(0.03), records=r) for r in (1, 5)]
    assert corrected_level_after(0.05, events[:1]) == corrected_level_after(0.05, events[1:])


def test_pure_events_add_up_to_one_pure_computation():
    events = [event(PureDP(0.01), count=2), event(PureDP(0.02))]
    assert corrected_level_after(0.05, events) == corrected_level(0.05, PureDP(0.04), n=1000)
    bits = max_information_after(events, beta=0.01).bits
    assert bits == pure(0.04, 1000).at(0.01).bits


def test_many_small_pure_events_do_better_as_zcdp():
    many = corrected_level_after(0.05, [event(PureDP(1e-4), count=10**4)])
    assert many.level > corrected_level(0.05, PureDP(1.0), n=1000).level
    assert "Theorem D" in many.theorem


def test_mixed_events_are_composed_as_approximate_privacy():
    events = [event(PureDP(0.01)), event(ApproximateDP(0.01, 1e-12)), event(ZCDP(1e-6))]
    found = corrected_level_after(0.05, events)
    assert "Theorem C" in found.theorem
    assert 0 < found.level < corrected_level_after(0.05, events[:2]).level
    # Two of them are (0.02, 1e-12)-DP by plain addition.
    plain = approximate(0.02, 1e-12, 1000).corrected(0.05).level
    assert corrected_level_after(0.05, events[:2]).level >= plain * (1 - 1e-6)


@pytest.mark.parametrize(
    "events",
    [
        [event(ApproximateDP(0.1, 0.6), count=2)],
        [event(ZCDP(0.01, 0.6))],
        [event(ApproximateDP(0.1, 0.01))],
        [event(ApproximateDP(300.0, 1e-3), n=10)],
    ],
)
def test_events_that_often_fail_leave_no_level(events):
    found = corrected_level_after(0.05, events)
    assert found.level < 1e-300
    assert max_information_after(events, beta=0.025).bits > 1000


def test_a_choice_among_ten_divides_alpha_by_ten_in_any_order():
    steps = [event(PureDP(0.03)), DescriptionLength(2), DescriptionLength(5)]
    found = corrected_level_after(0.05, steps)
    assert found == corrected_level_after(0.05, steps[::-1])
    inner = corrected_level(0.005, PureDP(0.03), n=1000)
    assert found.level == pytest.approx(inner.level, rel=1e-9)
    assert found.level == pytest.approx((0.05 - found.beta) / 2**found.bits, rel=1e-6)
    assert corrected_level_after(0.05, steps[1:]).level == pytest.approx(0.005)
    assert corrected_level(0.05, DescriptionLength(10), n=1).level == pytest.approx(0.005)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5])
def test_alpha_out_of_range_is_an_error(alpha):
    for ask in (
        lambda: corrected_level(alpha, PureDP(0.1), n=10),
        lambda: corrected_level_after(alpha, [event(PureDP(0.1))]),
        lambda: largest_epsilon(0.001, alpha=alpha, n=10),
        lambda: MaxInformation(1.0, 0.0, Laws.ANY).level(alpha),
    ):
        with pytest.raises(ValueError, match="alpha"):
            ask()


def test_beta_not_below_alpha_names_the_theorem():
    with pytest.raises(ValueError, match=r"Theorem 1\.3 needs beta < alpha: got beta = 0\.1"):
        pure(0.1, 10).at(0.1).level(0.05)
    assert pure(0.1, 10).at(0.01).level(0.05) > 0


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="different n"):
        corrected_level_after(0.05, [event(PureDP(0.1)), event(PureDP(0.1), n=10)])
    with pytest.raises(ValueError, match="at least one"):
        corrected_level_after(0.05, [])
    with pytest.raises(TypeError, match="corrected_level_after"):
        corrected_level(0.05, event(PureDP(0.1)), n=1000)
    with pytest.raises(TypeError, match="Event or a DescriptionLength"):
        corrected_level_after(0.05, [PureDP(0.1)])
    with pytest.raises(ValueError, match="0 < level < alpha"):
        largest_epsilon(0.05, alpha=0.05, n=10)
    with pytest.raises(ValueError, match="events only"):
        max_information_after([event(PureDP(0.1)), DescriptionLength(2)], beta=0.01)
    with pytest.raises(ValueError, match="events only"):
        max_information_after([DescriptionLength(1)], beta=0.01)
    with pytest.raises(ValueError, match="bits >= 0"):
        MaxInformation(-1.0, 0.1, Laws.ANY)
    with pytest.raises(TypeError, match=r"Laws\.ANY"):
        MaxInformation(1.0, 0.1, "any")  # pyright: ignore


def test_every_bound_is_below_epsilon_n():
    for n in (1, 7, 1000):
        for epsilon in (1e-4, 0.3, 3.0):
            bound = max_information(PureDP(epsilon), n=n, beta=1e-12)
            assert bound.bits <= pure_any(epsilon, n).bits
