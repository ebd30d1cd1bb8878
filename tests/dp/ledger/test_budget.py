import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.dp.accounting.composition import delta_at
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.ledger.budget import Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss

TENTH = PureDP(0.1)


def event(guarantee=TENTH, **changes):
    plain = Event(
        mechanism="MICr-Lap",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
    )
    return replace(plain, **changes)


def test_a_ledger_refuses_an_event_beyond_its_budget():
    ledger = Ledger(Budget(1.0)).charge(event(PureDP(0.75)))
    with pytest.raises(BudgetExceeded, match=r"0.5 asked, 0.75 spent, 0.25 of 1 is left"):
        ledger.charge(event(PureDP(0.5)))
    assert ledger.charge(event(PureDP(0.25))).left.epsilon == 0.0


def test_ten_events_of_a_tenth_use_up_a_budget_of_one():
    ledger = Ledger(Budget(1.0))
    for _ in range(10):
        ledger = ledger.charge(event(PureDP(0.1)))
    assert ledger.spent.epsilon == 1.0
    assert ledger.left.epsilon == 0.0
    with pytest.raises(BudgetExceeded):
        ledger.charge(event(PureDP(5e-324)))
    with pytest.raises(BudgetExceeded):
        Ledger(Budget(1.0)).charge(event(PureDP(0.1), count=11))


def test_a_charge_leaves_the_old_ledger_unchanged():
    before = Ledger(Budget(1.0))
    before.charge(event())
    assert before.events == ()


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, -math.inf])
def test_a_budget_needs_a_finite_positive_epsilon(bad):
    with pytest.raises(ValueError, match="epsilon"):
        Budget(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, math.nan, math.inf])
def test_delta_and_failure_share_have_to_be_probabilities(bad):
    with pytest.raises(ValueError, match="delta"):
        Budget(1.0, bad)
    if bad != 1:
        with pytest.raises(ValueError, match="failure_share"):
            Budget(1.0, 1e-6, failure_share=bad)


def test_a_budget_without_delta_admits_pure_events_only():
    for guarantee in (ZCDP(1e-9), ApproximateDP(1e-9, 1e-300), ZCDP(1e-9, 1e-15), GaussianDP(1e-9)):
        with pytest.raises(BudgetExceeded, match="delta = 0"):
            Ledger(Budget(1.0)).charge(event(guarantee))


def test_events_have_to_protect_as_many_records_as_the_budget():
    ledger = Ledger(Budget(1.0, relation=ReplaceOne(3)))
    with pytest.raises(ValueError, match="3 records"):
        ledger.charge(event(relation=ReplaceOne(2)))
    ledger.charge(event(relation=ReplaceOne(3))).charge(event(relation=ReplaceOne(4)))


guarantees = st.one_of(
    st.builds(PureDP, st.floats(1e-3, 0.5)),
    st.builds(ApproximateDP, st.floats(1e-3, 0.5), st.floats(1e-12, 1e-8)),
    st.builds(ZCDP, st.floats(1e-5, 1e-2), st.floats(0, 1e-12)),
    st.builds(GaussianDP, st.floats(1e-2, 0.5), st.floats(0, 1e-12)),
)


@given(st.lists(guarantees, max_size=12), st.sampled_from([0.0, 1e-6, 1e-3]))
def test_admitted_events_stay_within_the_budget(found, delta):
    budget = Budget(1.0, delta)
    ledger = Ledger(budget)
    for guarantee in found:
        try:
            ledger = ledger.charge(event(guarantee))
        except BudgetExceeded:
            continue
    assert delta_at(ledger.events, budget.epsilon) <= budget.delta
    assert ledger.spent.epsilon <= budget.epsilon * (1 + 1e-12)


@given(st.lists(guarantees, max_size=6), st.sampled_from([0.0, 1e-6]))
def test_what_is_left_can_be_charged_and_half_as_much_again_cannot(found, delta):
    ledger = Ledger(Budget(1.0, delta))
    for guarantee in found:
        if ledger.budget.admits((*ledger.events, event(guarantee))):
            ledger = ledger.charge(event(guarantee))
    left = ledger.left
    for kind, amount in ((PureDP, left.epsilon), (ZCDP, left.rho)):
        if amount:
            ledger.charge(event(kind(amount)))
            with pytest.raises(BudgetExceeded):
                ledger.charge(event(kind(1.5 * amount)))


def test_many_small_pure_events_are_cheaper_by_zcdp_than_by_their_sum():
    ledger = Ledger(Budget(1.0, 1e-6)).charge(event(PureDP(0.01), count=400))
    assert ledger.spent.epsilon < 1 < ledger.events[0].epsilon


def test_deltas_of_events_have_their_own_share():
    one = event(ApproximateDP(0.1, 1e-7))
    with pytest.raises(BudgetExceeded, match=r"delta=1e-07 asked, 0 spent, 1.5625e-08 of"):
        Ledger(Budget(1.0, 1e-6)).charge(one)
    whole = Ledger(Budget(1.0, 1e-6, failure_share=1)).charge(replace(one, count=10))
    assert (whole.spent.delta, whole.left.delta, whole.left.rho) == (1e-6, 0.0, 0.0)


def test_failures_on_one_path_and_inexact_noise_on_another_fit_delta_together():
    """Outputs may steer to failures where one neighbour is likely, to noise where the other is."""
    for budget in (Budget(1.0, 1e-6), Budget(3.0, 1e-9, failure_share=0.5)):
        failing = Ledger(budget).charge(event(ApproximateDP(0.1, float(budget.failures))))
        variation = float(budget.inexact) / (1 + math.exp(budget.epsilon)) * (1 - 1e-9)
        off = Ledger(budget).charge(event(ZCDP(budget.rho, variation)))
        together = failing.spent.delta + off.spent.delta + budget.rest
        assert together <= budget.delta * (1 + 1e-12)
        with pytest.raises(BudgetExceeded, match="inexact noise"):
            Ledger(budget).charge(event(ZCDP(budget.rho / 2, 1.5 * variation)))
        with pytest.raises(BudgetExceeded, match="delta="):
            Ledger(budget).charge(event(ApproximateDP(0.1, 1.5 * float(budget.failures))))
    with pytest.raises(BudgetExceeded, match="rho="):
        Ledger(Budget(1.0, 1e-6, failure_share=1)).charge(event(ZCDP(1e-9)))


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget(3.0, 1e-4)])
def test_one_gaussian_release_may_use_the_budget_up_by_its_exact_curve(budget):
    whole = event(GaussianDP(budget.mu))
    assert whole.rho > 1.08 * budget.rho
    ledger = Ledger(budget).charge(whole)
    assert ledger.spent.epsilon == pytest.approx(budget.epsilon, rel=1e-9)
    assert delta_at(ledger.events, budget.epsilon) <= budget.delta
    assert ledger.left.rho == ledger.left.epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="rho="):
        Ledger(budget).charge(event(GaussianDP(1.5 * budget.mu)))
    assert delta_at([event(GaussianDP(1.5 * budget.mu))], budget.epsilon) > 1.5 * budget.delta


@pytest.mark.parametrize("small", [PureDP(1e-9), ZCDP(1e-9), GaussianDP(1e-9)])
def test_the_exact_curve_is_for_a_release_that_is_the_only_one(small):
    """Otherwise outputs could steer between the curve and zCDP, and use the delta of both."""
    budget = Budget(1.0, 1e-6)
    whole = event(GaussianDP(budget.mu))
    with pytest.raises(BudgetExceeded):
        Ledger(budget).charge(whole).charge(event(small))
    with pytest.raises(BudgetExceeded, match="only as the first release"):
        Ledger(budget).charge(event(small)).charge(whole)
    with pytest.raises(BudgetExceeded):
        Ledger(budget).charge(event(GaussianDP(budget.mu / math.sqrt(2)), count=2))
    # By its rho it goes with others.
    half = event(GaussianDP(math.sqrt(budget.rho) * (1 - 1e-9)))
    Ledger(budget).charge(half).charge(half)


@pytest.mark.parametrize("values", [1, 435])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_noise_for_the_mu_of_a_budget_is_admitted(epsilon, values):
    budget = Budget(epsilon, 1e-6)
    lattice = Lattice.for_gauss(Fraction(1, 100), math.sqrt(values) / budget.mu)
    noise = LatticeGauss.for_mu_squared(as_fraction(budget.mu) ** 2, lattice, draws=values)
    found = noise.joint_certificate(values)
    assert found.mu_squared <= as_fraction(budget.mu) ** 2
    guarantee = GaussianDP(budget.mu, ceil_to_float(found.total_variation))
    ledger = Ledger(budget).charge(event(guarantee))
    assert delta_at(ledger.events, epsilon) <= 1e-6
    through_rho = LatticeGauss.for_rho(as_fraction(budget.rho), lattice, draws=values)
    assert 0.91 < noise.scale / through_rho.scale < 0.94


def test_invalid_arguments_of_a_ledger_are_refused():
    with pytest.raises(TypeError, match="Event"):
        Ledger(Budget(1.0)).charge(0.1)
    with pytest.raises(TypeError, match="budget"):
        Ledger(1.0)
    with pytest.raises(BudgetExceeded):
        Ledger(Budget(1.0), (event(PureDP(2.0)),))
