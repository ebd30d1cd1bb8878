"""Noise of each question by the formulas, and a cost that fits the budget exactly once."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

from dpmic_jax import Budget, BudgetExceeded, MICr, ReplaceOne
from dpmic_jax.dp.accounting.events import ZCDP, PureDP
from dpmic_jax.dp.ledger.budget import Ledger
from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import OneShotTopK, SingleThresholdSparseVector, SparseVector
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import ladder
from dpmic_jax.paper import tuning
from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK
from dpmic_jax.screening.planning import default_screen_statistic, plan

COLUMNS = tuple(f"c{i}" for i in range(12))
PAIRS = 66
# Rounding a sensitivity up to whole steps of a lattice costs a thousandth at most.
FINE = 1 + 1 / 1000


def planned(ask=None, *, epsilon=1.0, delta=0.0, n=20_000, records=1, names=COLUMNS, **changes):
    settings = {
        "names": names,
        "n": n,
        "ask": ask or AllPairs(),
        "epsilon": epsilon,
        "delta": delta,
        "statistic": MICr(B=40, c=3, sizes=ladder(1.25)),
        "relation": ReplaceOne(records),
        "label": "a test",
        **changes,
    }
    return plan(**settings)


def sensitivity(n, records=1):
    """What one person's records do to a MICr: delta(n) / n each, and 6 units of 2^-26."""
    one = (math.log2(n) + (n - 1) * math.log2(n / (n - 1))) / n
    return min(1.0, records * (one + 6 * 2**-26))


def rho_of(epsilon, delta):
    """The rho that is (epsilon, delta)-DP, from the definition of the tight conversion.

    delta = min over alpha of e^((alpha-1)(alpha rho - epsilon)) / (alpha-1) (1 - 1/alpha)^alpha
    """

    def log_delta(rho):
        def at(log_above_one):
            above = math.exp(log_above_one)
            alpha = 1 + above
            shrinks = math.log(above) + alpha * math.log(alpha / above)
            return above * (alpha * rho - epsilon) - shrinks

        return minimize_scalar(at, bounds=(-10, 14), method="bounded", options={"xatol": 1e-10}).fun

    return brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-9, 2 * epsilon, xtol=1e-14)


def cube_sd(values, n, epsilon):
    return math.sqrt((values + 1) * (values + 2) / 3) * sensitivity(n) / epsilon


def close(value, expected):
    """Never less noise than the formula says, and hardly more."""
    assert expected * (1 - 1e-9) <= value <= expected * FINE
    return True


@pytest.mark.parametrize(
    ("ask", "pairs"),
    [
        (AllPairs(), PAIRS),
        (Against("c3"), 11),
        (Between(("c0", "c1"), ("c2", "c3", "c4")), 6),
    ],
)
@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 20_000), (3.0, 1000)])
def test_values_without_delta_have_one_cube_of_noise_for_epsilon(ask, pairs, epsilon, n):
    found = planned(ask, epsilon=epsilon, n=n)
    assert isinstance(found.values, LatticeCube)
    assert close(found.values.scale, sensitivity(n) / epsilon)
    assert close(found.values.sd, cube_sd(pairs, n, epsilon))
    assert found.values.points == pairs
    assert (found.released, len(found.pairs), found.choice) == (pairs, pairs, None)
    assert found.event.guarantee == PureDP(epsilon)
    assert found.event.count == 1
    assert ("values", str(pairs)) in found.event.settings


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 1e-8), (3.0, 1e-6)])
def test_many_values_with_delta_have_gaussian_noise_of_the_tight_conversion(epsilon, delta):
    names = tuple(f"c{i}" for i in range(30))
    found = planned(epsilon=epsilon, delta=delta, names=names)
    # 2/64 of delta are kept for events' own deltas and for noise that is off its law.
    rho = rho_of(epsilon, delta * (1 - 2 / 64))
    assert isinstance(found.values, LatticeGauss)
    assert close(found.values.sd, sensitivity(20_000) * math.sqrt(435 / (2 * rho)))
    assert isinstance(found.event.guarantee, ZCDP)
    assert found.event.rho == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize("columns", [2, 3, 5, 8, 12, 20, 40])
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_the_noise_from_which_smaller_values_stand_out_is_taken(columns, epsilon):
    names = tuple(f"c{i}" for i in range(columns))
    d, delta = columns * (columns - 1) // 2, 1e-6
    # A cube's largest noise is its radius but for a factor of d / (d + 1), and the radius is a
    # Gamma number; so much is exact enough to tell which one wins.
    radius = sensitivity(20_000) / epsilon * stats.gamma.ppf(0.975, d + 1)
    one = sensitivity(20_000) / epsilon * 0.9 * (d + 1)
    sd = sensitivity(20_000) * math.sqrt(d / (2 * rho_of(epsilon, delta * (1 - 2 / 64))))
    gauss = sd * (stats.norm.isf(0.025 / d) + stats.norm.isf(0.05))
    found = planned(epsilon=epsilon, delta=delta, names=names)
    if abs((radius + one) / gauss - 1) > 0.15:
        assert isinstance(found.values, LatticeGauss) == (gauss < radius + one)
    # Delta that is not used is not claimed to be.
    assert found.spent_delta == (delta if isinstance(found.values, LatticeGauss) else 0.0)


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_of_top_k_grows_with_k_and_not_with_the_candidates(share, delta):
    k, epsilon = 5, 2.0
    found = planned(TopK(k, selection_fraction=share), epsilon=epsilon, delta=delta)
    assert isinstance(found.choice.selector, OneShotTopK)
    # Exponential noise of rate share epsilon / (2 k Delta) on scores, a cube for k values.
    assert close(found.choice.scale, 2 * k * sensitivity(20_000) / (share * epsilon))
    assert close(found.values.sd, cube_sd(k, 20_000, (1 - share) * epsilon))
    assert (found.released, len(found.pairs)) == (k, PAIRS)
    assert (found.spent_delta, found.event.delta) == (0.0, 0.0)
    assert found.event.epsilon == epsilon


@pytest.mark.parametrize(("at_most", "delta"), [(3, 0.0), (3, 1e-6), (400, 1e-6), (770, 0.02)])
def test_above_has_the_noise_of_the_better_sparse_vector_technique(at_most, delta):
    epsilon, share, names = 2.0, 0.25, tuple(f"c{i}" for i in range(40))
    found = planned(
        Above(0.3, at_most, selection_fraction=share),
        epsilon=epsilon,
        delta=delta,
        names=names,
        n=10**6,
    )
    part = share * epsilon
    # One threshold: epsilon is split 1 : (2c)^(2/3), and a score has 2c times its sensitivity.
    weight = (2 * at_most) ** (2 / 3)
    threshold, query = (1 + weight) / part, 2 * at_most * (1 + weight) / (weight * part)
    # Algorithm 5 with a delta: sigma = sqrt(32 c ln(1/delta)) / epsilon, Laplace, twice on scores.
    advanced = math.sqrt(32 * at_most * math.log(64 / delta)) / part if delta else math.inf
    one = 10 * advanced**2 > threshold**2 + query**2
    assert one == (delta < 0.01)
    assert isinstance(found.choice.selector, SingleThresholdSparseVector if one else SparseVector)
    assert close(found.choice.scale, (query if one else 2 * advanced) * sensitivity(10**6))
    expected = (threshold if one else advanced) * sensitivity(10**6)
    assert close(found.choice.threshold_scale, expected)
    assert found.spent_delta == pytest.approx(0.0 if one else delta / 64, rel=1e-12)
    assert close(found.values.sd, cube_sd(at_most, 10**6, (1 - share) * epsilon))
    asked = found.choice.selector.threshold / found.choice.lattice.top
    assert 0.3 - 1 / found.choice.lattice.top < asked <= 0.3


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3), Above(0.3, 3)])
def test_noise_grows_with_the_records_of_a_person(ask):
    one, five = (planned(ask, records=records) for records in (1, 5))
    assert five.values.scale == pytest.approx(5 * one.values.scale, rel=2e-3)
    assert five.event.sensitivity == 5 * one.event.sensitivity
    assert five.event.relation == ReplaceOne(5)
    if one.choice:
        assert five.choice.scale == pytest.approx(5 * one.choice.scale, rel=2e-3)


def test_the_sensitivity_is_at_most_one():
    assert planned(records=10**6).event.sensitivity == 1


def parts(found):
    """What each mechanism of a plan costs, exactly, as often as it is used."""
    if isinstance(found.values, LatticeGauss):
        return [found.values.certificate().rho] * found.released
    costs = [Fraction(found.values.epsilon)]  # exactly, of all values together
    if found.choice:
        costs.append(found.choice.selector.certificate().epsilon_realised)
    return costs


@given(
    st.sampled_from(
        [AllPairs(), Against("c1"), TopK(3), TopK(7, selection_fraction=0.1), Above(0.2, 3)]
    ),
    st.floats(0.05, 8).map(lambda epsilon: float(f"{epsilon:.3g}")),
    st.sampled_from([0.0, 1e-9, 1e-6]),
    st.sampled_from([1, 3]),
)
def test_the_costs_of_a_plan_add_up_to_at_most_epsilon(ask, epsilon, delta, records):
    found = planned(ask, epsilon=epsilon, delta=delta, records=records, n=10**6)
    budget, event = Budget(epsilon, delta, ReplaceOne(records)), found.event
    if isinstance(event.guarantee, ZCDP):
        assert sum(parts(found)) <= event.count * Fraction(repr(event.guarantee.rho))
        assert event.count * Fraction(repr(event.guarantee.rho)) <= Fraction(repr(budget.rho))
    else:
        written = Fraction(repr(epsilon))
        assert sum(parts(found)) <= written
        assert event.count * Fraction(repr(event.guarantee.epsilon)) <= written
        # Hardly anything is wasted.
        assert sum(parts(found)) > written * Fraction(999, 1000)


@given(
    st.sampled_from([AllPairs(), Against("c1"), TopK(3), Above(0.2, 3), Above(0.2, 40)]),
    st.sampled_from([0.1, 0.7, 1.0, 10.0]),
    st.sampled_from([0.0, 1e-15, 1e-9, 1e-6]),
    st.sampled_from([1, 3]),
)
def test_a_budget_of_the_requested_epsilon_covers_exactly_one_screen(ask, epsilon, delta, records):
    found = planned(ask, epsilon=epsilon, delta=delta, records=records, n=10**6)
    ledger = Ledger(Budget(epsilon, delta, ReplaceOne(records))).charge(found.event)
    with pytest.raises(BudgetExceeded):
        ledger.charge(found.event)


def test_gaussian_noise_is_not_used_if_delta_does_not_cover_its_errors():
    """Every draw is off its law by a little, and e^epsilon times that has to fit in delta / 64."""
    settings = {"names": tuple(f"c{i}" for i in range(30)), "n": 337, "epsilon": 10.0}
    assert isinstance(planned(delta=1e-6, **settings).values, LatticeGauss)
    found = planned(delta=1e-12, **settings)
    assert isinstance(found.values, LatticeCube)
    assert Budget(10.0, 1e-12).admits([found.event])


def test_an_event_tells_runs_apart():
    asks = [
        AllPairs(),
        Between(("c0",), ("c1",)),
        Between(("c0",), ("c2",)),
        TopK(3),
        TopK(3, selection_fraction=0.4),
        Above(0.3, 3),
        Above(0.3, 3, selection_fraction=0.4),
    ]
    events = [planned(ask).event for ask in asks]
    events += [planned(epsilon=2.0).event, planned(n=20_001).event, planned(label="b").event]
    assert len({event.digest for event in events}) == len(events)
    ways = [MICr(B=B, c=c, sizes=ladder(1.25)) for B in (40, 40.9) for c in (3, 3.0)]
    assert len({planned(statistic=way).event.digest for way in ways}) == 1


def test_a_rule_is_given_the_epsilon_of_laplace_noise_that_is_as_large():
    given = []

    def rule(n, epsilon):
        given.append((n, epsilon))
        return MICr(B=20, c=2)

    planned(epsilon=3.0, statistic=rule)
    planned(TopK(4, selection_fraction=0.25), epsilon=3.0, statistic=rule)
    # The epsilon of Laplace noise that is as large: sqrt(6 / (d+1)(d+2)) of that of all d values.
    assert given == [
        (20_000, pytest.approx(3 * math.sqrt(6 / (67 * 68)))),
        (20_000, pytest.approx(3 * 0.75 * math.sqrt(6 / (5 * 6)))),
    ]
    assert planned(statistic=default_screen_statistic).statistic.sizes == ladder(1.25)


@given(st.floats(math.log(4), math.log(1e7)), st.floats(-9, 5))
def test_the_default_is_the_next_rung_of_the_cheap_setting(log_n, log_epsilon):
    n, epsilon = round(math.exp(log_n)), math.exp(log_epsilon)
    cheap, found = cheap_defaults(n, epsilon), default_screen_statistic(n, epsilon)
    rungs = [B for B in tuning.CELLS if B <= 150]
    assert found.B in rungs
    assert found.c in range(1, 6)
    assert (found.sizes, found.master) == (cheap.sizes, cheap.master)
    # No coarser than the table says, but for what would take too long, and no finer than needed.
    assert found.B == 150 or found.B >= cheap.B
    assert found.c == 5 or found.c >= cheap.c
    assert found.B == 4 or rungs[rungs.index(found.B) - 1] < cheap.B
    assert found.c - 1 < cheap.c


def test_tables_of_other_lengths_and_widths_have_the_same_default():
    wanted = MICr(B=150, c=5, sizes=ladder(1.25))
    for n, columns in ((20_000, 12), (14_321, 17)):
        names = tuple(f"c{i}" for i in range(columns))
        assert planned(n=n, names=names, statistic=default_screen_statistic).statistic == wanted


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"ask": "all"}, TypeError, "expected ask to be AllPairs"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": float("nan")}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": -1e-6}, ValueError, "delta"),
        ({"statistic": lambda n, epsilon: None}, TypeError, "expected statistic to be a MICr"),
        ({"epsilon": 1e-9, "ask": TopK(3)}, ValueError, "spend more|larger epsilon"),
        ({"epsilon": 1e-9, "ask": Above(0.3, 3)}, ValueError, "spend more|larger epsilon"),
    ],
)
def test_impossible_plans_are_refused_by_the_name_of_the_argument(changes, error, said):
    with pytest.raises(error, match=said):
        planned(**changes)
