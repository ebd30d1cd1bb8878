import itertools
import math
import sys
from collections import Counter
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpmic_jax.dp.accounting import composition, zcdp
from dpmic_jax.dp.accounting.composition import (
    basic,
    best,
    delta_at,
    epsilon_at,
    numerical,
    optimal,
    pld,
    smallest_epsilon,
)
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.ledger.budget import Budget

THEOREMS = {"basic": basic, "zcdp": composition.zcdp, "optimal": optimal, "best": best}


def event(guarantee, count=1):
    return Event(
        mechanism="test",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=100,
        sensitivity=Fraction(1),
        count=count,
    )


def exp(value, rounding):
    """e^value between rationals: a lower bound by ROUND_FLOOR, an upper one by ROUND_CEILING."""
    with localcontext(prec=60):
        exact = Decimal(repr(value)).exp()
        return Fraction(exact.quantize(Decimal("1e-45"), rounding=rounding))


def exact_delta(guarantees, epsilon):
    """A rational lower bound, by 1e-40, of the delta of the worst mechanisms together.

    Each guarantee is met by one with four outputs: a failure under the one or the other
    neighbour, and the two answers of randomised response. All products are enumerated.
    """
    outputs = []
    for guarantee in guarantees:
        odds, delta = exp(guarantee.epsilon, ROUND_FLOOR), Fraction(repr(guarantee.delta))
        yes, no = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
        failures = [(delta, Fraction()), (Fraction(), delta)] if delta else []
        outputs.append([*failures, (yes, no), (no, yes)])
    factor = exp(epsilon, ROUND_CEILING)
    total = Fraction()
    for chosen in itertools.product(*outputs):
        p, q = (math.prod(side) for side in zip(*chosen, strict=True))
        total += max(p - factor * q, Fraction())
    return total


CASES = {
    "one": [PureDP(0.7)],
    "equal": [PureDP(0.3)] * 6,
    "decimals": [PureDP(0.1), PureDP(0.25), PureDP(0.25), PureDP(0.9), PureDP(0.05)],
    "no common step": [
        PureDP(0.1),
        PureDP(0.2718281828),
        PureDP(0.31415926535),
        PureDP(0.6180339887),
    ],
    "approximate": [ApproximateDP(0.2, 1e-3)] * 4,
    "mixed": [ApproximateDP(0.2, 1e-3), PureDP(0.5), PureDP(0.5), ApproximateDP(0.4, 1e-5)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("share", [0, 0.2, 0.5, 0.8, 0.99, 1])
def test_no_theorem_goes_below_the_worst_mechanisms_and_the_optimal_one_attains_them(case, share):
    events = [event(each) for each in CASES[case]]
    together = math.fsum(each.epsilon for each in events)
    least = exact_delta(CASES[case], share * together)
    for theorem in THEOREMS.values():
        assert theorem(events)(share * together) >= least
    step = 0 if case != "no common step" else 2 * together / 2**14
    assert optimal(events)(share * together) - float(least) <= 1e-9 + step


@pytest.mark.parametrize("case", CASES)
def test_pld_agrees_with_the_worst_mechanisms(case):
    events = [event(each) for each in CASES[case]]
    profile = pld(events)
    for epsilon in (0.1, 0.4):
        least = float(exact_delta(CASES[case], epsilon))
        assert least <= profile(epsilon) <= least + 1e-4


@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=6), st.floats(0, 1))
def test_optimal_is_never_undercut(epsilons, share):
    epsilon = share * math.fsum(epsilons)
    least = exact_delta([PureDP(each) for each in epsilons], epsilon)
    found = optimal([event(PureDP(each)) for each in epsilons])(epsilon)
    assert least <= found <= float(least) + 1e-6


@pytest.mark.parametrize("points", [16, 256, 2**12])
def test_a_coarse_lattice_stays_an_upper_bound(monkeypatch, points):
    case = [PureDP(0.1), PureDP(0.2718281828), PureDP(0.31415926535), PureDP(0.6180339887)]
    monkeypatch.setattr(composition, "_POINTS", points)
    for epsilon in (0.1, 0.5, 0.9):
        least = exact_delta(case, epsilon)
        found = optimal([event(each) for each in case])(epsilon)
        # Splitting a loss over both neighbouring points errs in second order.
        assert least <= found <= float(least) + 4 / points**2


@pytest.mark.parametrize(("k", "epsilon"), [(30, 0.1), (101, 0.05), (400, 0.02)])
def test_equal_epsilons_are_theorem_3_3_of_kairouz_oh_and_viswanath(k, epsilon):
    profile = optimal([event(PureDP(epsilon), count=k)])
    with localcontext(prec=80):
        e = Decimal(repr(epsilon)).exp()
        for i in (1, k // 6, k // 3, k // 2):
            terms = [math.comb(k, m) * (e ** (k - m) - e ** (k - 2 * i + m)) for m in range(i)]
            delta = sum(terms) / (1 + e) ** k
            found = profile(float((k - 2 * i) * Decimal(repr(epsilon))))
            assert float(delta) * (1 - 1e-12) <= found <= float(delta) * (1 + 1e-9) + 1e-50


def test_a_count_of_k_equals_k_events():
    for other in (ZCDP(0.01, 1e-12), GaussianDP(0.1, 1e-12)):
        many = [event(PureDP(0.1))] * 7 + [event(other)] * 3
        counted = [event(PureDP(0.1), 7), event(other, 3)]
        for theorem in THEOREMS.values():
            for epsilon in (0.1, 0.5, 1.0):
                assert theorem(many)(epsilon) == pytest.approx(theorem(counted)(epsilon), rel=1e-12)


def gaussian_delta(mu, epsilon):
    """The exact delta of a Gaussian mechanism of rho = mu^2/2 (Balle and Wang 2018)."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@given(st.floats(0.001, 2), st.floats(-3, 6))
def test_the_conversion_of_zcdp_lies_between_the_gaussian_and_the_first_bound(rho, epsilon):
    found = zcdp.deltas(rho, np.array([epsilon])).item()
    assert gaussian_delta(math.sqrt(2 * rho), epsilon) <= found + 1e-15
    if epsilon > rho:  # Bun and Steinke 2016, Lemma 3.5
        assert found <= math.exp(-((epsilon - rho) ** 2) / (4 * rho)) * (1 + 1e-9) + 1e-290


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_the_conversion_is_the_least_over_all_orders(epsilon):
    rho = 0.03
    orders = 1 + np.geomspace(1e-3, 100, 200_001)
    logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders)
    least = np.exp(logs - np.log(orders - 1)).min()
    assert zcdp.deltas(rho, np.array([epsilon])).item() == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_mixing_zcdp_and_pure_events_is_never_below_gaussians_and_randomised_response(epsilon):
    rho, pure = 0.05, [0.1, 0.3, 0.3]
    exact = 0.0
    for signs in itertools.product([1, -1], repeat=3):
        chance = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, pure, strict=True))
        loss = math.fsum(s * e for s, e in zip(signs, pure, strict=True))
        exact += chance * gaussian_delta(math.sqrt(2 * rho), epsilon - loss)
    events = [event(ZCDP(rho)), *(event(PureDP(each)) for each in pure)]
    for theorem in THEOREMS.values():
        assert theorem(events)(epsilon) >= exact
    assert optimal(events)(epsilon) < composition.zcdp(events)(epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_gaussian_and_pure_events_together_are_gaussians_and_randomised_response(epsilon):
    mus, pure = [0.2, 0.2, 0.1], [0.1, 0.3, 0.3]
    mu, exact = math.sqrt(math.fsum(each**2 for each in mus)), 0.0
    for signs in itertools.product([1, -1], repeat=3):
        chance = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, pure, strict=True))
        loss = math.fsum(s * e for s, e in zip(signs, pure, strict=True))
        exact += chance * gaussian_delta(mu, epsilon - loss)
    events = [event(GaussianDP(0.2), 2), event(GaussianDP(0.1)), *(event(PureDP(e)) for e in pure)]
    for theorem in (*THEOREMS.values(), pld):
        assert theorem(events)(epsilon) >= exact * (1 - 1e-10)
    assert exact <= optimal(events)(epsilon) <= exact * (1 + 1e-8)
    # Two thirds of a mu would be too little.
    assert optimal([event(GaussianDP(2 / 3 * mu)), *events[2:]])(epsilon) < exact


def test_the_mu_of_gaussian_events_adds_up_in_squares():
    for epsilon in (0.1, 1.0):
        one = optimal([event(GaussianDP(0.5))])(epsilon)
        assert optimal([event(GaussianDP(0.25), 4)])(epsilon) == pytest.approx(one, rel=1e-10)
        assert optimal([event(GaussianDP(0.3)), event(GaussianDP(0.4))])(epsilon) == pytest.approx(
            one, rel=1e-10
        )
        assert one == pytest.approx(gaussian_delta(0.5, epsilon), rel=1e-9)


def test_gaussian_events_beside_zcdp_ones_cost_half_their_squares():
    mixed = [event(GaussianDP(0.2)), event(ZCDP(0.03)), event(PureDP(0.1))]
    as_zcdp = [event(ZCDP(0.02)), event(ZCDP(0.03)), event(PureDP(0.1))]
    for theorem in THEOREMS.values():
        assert theorem(mixed)(1.0) == pytest.approx(theorem(as_zcdp)(1.0), rel=1e-12)


@pytest.mark.parametrize(("mu", "delta"), [(0.2363, 1e-6), (0.0275, 1e-6), (1.0, 1e-9)])
def test_a_gaussian_event_alone_has_the_epsilon_of_its_curve(mu, delta):
    found = epsilon_at([event(GaussianDP(mu))], delta)
    assert gaussian_delta(mu, found) == pytest.approx(delta, rel=1e-7)
    through_rho = epsilon_at([event(ZCDP(GaussianDP(mu).rho))], delta)
    assert 1.04 < through_rho / found < 1.1


COLLECTIONS = {
    "nothing": [],
    "pure": [event(PureDP(0.1), 10)],
    "many": [event(PureDP(0.05), 60), event(PureDP(0.3), 3)],
    "approximate": [event(ApproximateDP(0.1, 1e-8), 30), event(PureDP(0.0123457), 5)],
    "zcdp": [event(ZCDP(0.01, 1e-15), 2)],
    "mixed": [event(ZCDP(0.01, 1e-15)), event(PureDP(0.2), 4), event(ApproximateDP(0.3, 1e-9))],
    "gaussian": [event(GaussianDP(0.1, 1e-15), 2), event(GaussianDP(0.2))],
    "gaussian, pure": [event(GaussianDP(0.1, 1e-15)), event(PureDP(0.2), 4)],
    "gaussian, zcdp": [event(GaussianDP(0.1, 1e-15)), event(ZCDP(0.01))],
}


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_best_is_at_most_each_theorem(name, delta):
    events = COLLECTIONS[name]
    found = epsilon_at(events, delta)
    assert delta_at(events, found) <= delta
    for theorem in THEOREMS.values():
        assert found <= smallest_epsilon(theorem(events), delta)
        assert delta_at(events, 0.7) <= theorem(events)(0.7)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_best_is_at_most_the_privacy_loss_distributions(name):
    profile = pld(COLLECTIONS[name])
    for epsilon in (0.1, 0.7, 1.5):
        # Up to the 1e-10 by which sums are rounded up.
        assert delta_at(COLLECTIONS[name], epsilon) <= profile(epsilon) * (1 + 1e-10)


def test_basic_composition_is_exact_in_decimals():
    assert epsilon_at([event(PureDP(0.1), 10)], 0.0) == 1.0
    assert basic([event(PureDP(0.1), 10)])(1.0) == 0.0
    assert basic([event(PureDP(0.1), 10)])(math.nextafter(1.0, 0)) == 1.0
    assert epsilon_at([event(ApproximateDP(0.5, 1e-7))], 1e-7) == 0.5


def test_zcdp_and_gaussian_dp_have_no_epsilon_without_delta():
    assert epsilon_at([event(ZCDP(0.01))], 0.0) == math.inf
    assert epsilon_at([event(ZCDP(0.01, 1e-6))], 1e-6) == math.inf
    assert epsilon_at([event(GaussianDP(0.01))], 0.0) == math.inf
    assert epsilon_at([event(GaussianDP(0.01, 1e-6))], 1e-6) == math.inf
    assert epsilon_at([], 0.0) == 0.0


def test_millions_of_releases_are_composed_without_losing_digits():
    """Against the binomial tail in 60 digits, by its recurrence from a Stirling series."""
    k, epsilon = 10**6, 96.7
    found = optimal([event(PureDP(0.01), k)])(epsilon)
    with localcontext(prec=60):
        e, at = Decimal("0.01"), Decimal(repr(epsilon))
        odds = e.exp()
        ups = int((at / e + k) / 2) + 1
        chance = (_stirling(k) - _stirling(ups) - _stirling(k - ups) + ups * e).exp()
        chance /= (1 + odds) ** k
        exact = Decimal(0)
        for up in range(ups, ups + 3000):
            exact += chance * (1 - (at - e * (2 * up - k)).exp())
            chance *= (k - up) * odds / (up + 1)
    assert float(exact) <= found <= float(exact) * (1 + 1e-6)


def _stirling(n):
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    series = 1 / (12 * Decimal(n)) - 1 / (360 * Decimal(n) ** 3) + 1 / (1260 * Decimal(n) ** 5)
    return n * Decimal(n).ln() - n + (2 * pi * n).ln() / 2 + series


def test_rho_for_a_budget_is_the_inverse_of_the_conversion():
    for epsilon, delta in [(0.1, 1e-12), (1.0, 1e-6), (1.0, 0.1), (5.0, 1e-9)]:
        rho = zcdp.rho_for(epsilon, delta)
        assert zcdp.deltas(rho, np.array([epsilon])).item() == pytest.approx(delta, rel=1e-9)
        assert zcdp.deltas(rho * 1.001, np.array([epsilon])).item() > delta
        assert zcdp.epsilon_for(rho, delta) == pytest.approx(epsilon, rel=1e-12)
    assert zcdp.rho_for(1.0, 1e-6) == pytest.approx(0.0244, abs=5e-5)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf])
def test_conversions_refuse_invalid_parameters(bad):
    for convert in (zcdp.rho_for, zcdp.epsilon_for):
        with pytest.raises(ValueError, match="expected 0 <"):
            convert(bad, 1e-6)
    with pytest.raises(ValueError, match="delta"):
        zcdp.rho_for(1.0, 0.0)
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            epsilon_at([], delta)
    for epsilon in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            delta_at([], epsilon)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match=r'pip install "dpmic_jax\[accounting\]"'):
        pld([])


def adaptive_delta(admits, epsilon, choices):
    """The delta of an adversary that picks each next epsilon by the losses so far."""

    @cache
    def admitted(counts):
        signs = [event(PureDP(c), k) for c, k in zip(choices, counts, strict=True) if k]
        return admits(signs)

    @cache
    def reach(counts, loss):
        found = max(0.0, -math.expm1(epsilon - float(loss)))
        for i, choice in enumerate(choices):
            after = tuple(count + (i == j) for j, count in enumerate(counts))
            if admitted(after):
                yes = 1 / (1 + math.exp(-choice))
                step = Fraction(repr(choice))
                up, down = reach(after, loss + step), reach(after, loss - step)
                found = max(found, yes * up + (1 - yes) * down)
        return found

    return reach((0,) * len(choices), Fraction())


ADVERSARY = {"epsilon": 1.0, "choices": (0.1, 0.45)}


def test_optimal_composition_is_not_a_sound_stopping_rule():
    """Why budgets do not use it: picking epsilons by earlier outputs overspends by half."""
    delta = 0.01
    spent = adaptive_delta(lambda events: delta_at(events, 1.0) <= delta, **ADVERSARY)
    assert spent > 1.5 * delta


@pytest.mark.parametrize("delta", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("choices", [(0.1, 0.45), (0.2, 0.3, 0.7), (0.07, 0.9)])
def test_a_budget_holds_against_epsilons_chosen_by_earlier_outputs(delta, choices):
    budget = Budget(1.0, delta)
    assert adaptive_delta(budget.admits, 1.0, choices) <= delta


def test_totals_add_up_by_hand():
    events = [event(PureDP(0.1), 3), event(ApproximateDP(0.2, 1e-6), 2)]
    sums = composition.totals(events)
    assert sums.epsilon == Fraction(7, 10)
    assert sums.delta == Fraction(2, 10**6)
    rhos = Counter({PureDP(0.1).rho: 3, ApproximateDP(0.2, 1e-6).rho: 2})
    assert float(sums.rho) == pytest.approx(sum(k * rho for rho, k in rhos.items()), rel=1e-12)


def test_inexact_noise_costs_its_variation_on_both_sides():
    """Brute force: an ideal pair of loss epsilon, and distributions within variation v of it."""
    v, epsilon = Fraction(1, 1000), math.log(3)
    ideal = {"P": [Fraction(3, 4), Fraction(1, 4)], "Q": [Fraction(1, 4), Fraction(3, 4)]}
    # The worst case: mass v is added to the output that distinguishes P from Q in P, and removed
    # from it in Q.
    real = {"P": ideal["P"][0] + v, "Q": ideal["Q"][0] - v}
    delta = real["P"] - 3 * real["Q"]
    assert delta == (1 + 3) * v
    assert delta <= numerical(v, epsilon) <= delta * (1 + Fraction(1, 10**6))
    assert numerical(Fraction(), epsilon) == 0
    assert numerical(v, 1e4) == 1


def test_variation_is_charged_by_every_theorem_that_knows_the_event():
    for kind, theorems in (
        (ZCDP, (composition.zcdp, optimal)),
        (GaussianDP, (composition.zcdp, optimal, pld)),
    ):
        exact, off = event(kind(0.1), count=5), event(kind(0.1, 1e-9), count=5)
        for theorem in theorems:
            gap = theorem([off])(1.0) - theorem([exact])(1.0)
            assert gap == pytest.approx(5e-9 * (1 + math.e), rel=1e-3)


def test_only_one_gaussian_release_is_the_sole_one():
    one, other = event(GaussianDP(0.1)), event(PureDP(0.1))
    assert composition.totals([one]).sole_mu == Fraction(1, 10)
    for events in ([], [other], [one, one], [one, other], [event(GaussianDP(0.1), 2)]):
        assert composition.totals(events).sole_mu is None
        parts = [composition.totals([each]) for each in events]
        assert composition.combined(*parts) == composition.totals(events)
    nothing = composition.totals([])
    assert composition.combined(nothing, composition.totals([one])) == composition.totals([one])
