"""Noise of each question by the formulas, and a cost that fits the budget exactly once."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

from dpmic_jax import Budget, BudgetExceeded, MICr, ReplaceOne
from dpmic_jax.dp.accounting.events import GaussianDP, PureDP
from dpmic_jax.dp.ledger.budget import Ledger
from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import (
    OneShotTopK,
    SingleThresholdSparseVector,
    SparseVector,
    ZCDPTopK,
)
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import ladder
from dpmic_jax.paper import tuning
from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK
from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.planning import (
    WIDEST,
    check_not_lost,
    default_screen_statistic,
    plan,
)
from dpmic_jax.screening.power import LARGEST

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


def cube_sd(values, moved, epsilon):
    return math.sqrt((values + 1) * (values + 2) / 3) * moved / epsilon


def mu_of(epsilon, delta):
    """mu of Gaussian DP, from the curve of Balle and Wang."""

    def delta_of(mu):
        ahead = stats.norm.cdf(mu / 2 - epsilon / mu)
        return ahead - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)

    return brentq(lambda mu: delta_of(mu) - delta, 1e-6, 10, xtol=1e-14)


def close(value, expected, fine=FINE):
    """Never less noise than the formula says, and hardly more."""
    assert expected * (1 - 1e-9) <= value <= expected * fine
    return True


@pytest.mark.parametrize(
    ("ask", "pairs"),
    [
        (AllPairs(), PAIRS),
        (Against("c3"), 11),
        (Between(("c0", "c1"), ("c2", "c3", "c4")), 6),
    ],
)
@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 20_000), (3.0, 1000), (9.0, 20_000)])
def test_values_without_delta_have_cubes_of_noise_that_add_up_to_epsilon(ask, pairs, epsilon, n):
    found = planned(ask, epsilon=epsilon, n=n)
    distances, micr = found.distances, found.values
    assert isinstance(distances, LatticeCube)
    assert close(distances.sd, cube_sd(pairs, 1 / n, float(distances.epsilon)))
    assert distances.points == pairs
    spent = Fraction(distances.epsilon)
    if micr is not None:
        assert close(micr.sd, cube_sd(pairs, sensitivity(n), float(micr.epsilon)))
        assert micr.quantile(0.025) <= WIDEST
        spent += micr.epsilon
    assert spent == Fraction(repr(epsilon))
    assert (found.released, len(found.pairs), found.choice) == (pairs, pairs, None)
    assert found.event.guarantee == PureDP(epsilon)
    assert found.event.count == 1
    assert ("values", str(pairs)) in found.event.settings


def test_micr_is_released_where_it_can_be_read_and_costs_little_of_what_is_found():
    rich, poor = planned(epsilon=4.0), planned(epsilon=0.1)
    assert rich.values is not None
    assert poor.values is poor.statistic is None
    # At most a quarter more than if all of epsilon were for distances, and as little as that takes.
    alone = rich.workload.smallest(rich.noises._replace(distances=all_of(rich, 4.0)))
    assert alone < rich.smallest <= 1.25 * alone
    assert rich.distances.epsilon in (Fraction(1, 2), Fraction(1), Fraction(2))


def all_of(found, epsilon):
    lattice = found.distances.lattice
    return LatticeCube(epsilon=Fraction(epsilon), lattice=lattice, points=PAIRS)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 1e-8), (3.0, 1e-6)])
def test_many_values_with_delta_have_gaussian_noise_of_the_exact_curve(epsilon, delta):
    names = tuple(f"c{i}" for i in range(60))
    found = planned(epsilon=epsilon, delta=delta, names=names)
    # 2/64 of delta are kept for events' own deltas and for noise that is off its law.
    mu = mu_of(epsilon, delta * (1 - 2 / 64))
    moved = [(found.distances, 1 / 20_000)]
    if found.values:
        moved.append((found.values, sensitivity(20_000)))
    squared = sum(1770 * (each / noise.sd) ** 2 for noise, each in moved)
    assert all(isinstance(noise, LatticeGauss) for noise, _ in moved)
    # As large as the curve allows: each step of a lattice is rounded against it.
    assert mu**2 / FINE**2 <= squared <= mu**2
    assert isinstance(found.event.guarantee, GaussianDP)
    assert found.event.guarantee.mu == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize("columns", [2, 5, 12, 40])
@pytest.mark.parametrize("ask", [AllPairs(), TopK(1)], ids=str)
def test_the_way_that_finds_the_smallest_distance_is_taken(columns, ask):
    names = tuple(f"c{i}" for i in range(max(3, columns)))
    found = planned(ask, epsilon=0.5, delta=1e-6, names=names)
    assert len(found.others) >= 1
    assert all(found.smallest <= 1.25 * other for _, other in found.others)
    # Delta that is not used is not claimed to be.
    pure = isinstance(found.event.guarantee, PureDP)
    assert found.spent_delta == (0.0 if pure else 1e-6)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_noise_of_top_k_grows_with_k_and_not_with_the_candidates(share):
    k, epsilon = 5, 2.0
    found = planned(TopK(k, selection_fraction=share), epsilon=epsilon)
    assert isinstance(found.choice.selector, OneShotTopK)
    # Exponential noise of rate share epsilon / (2 k Delta) on scores, cubes for k values.
    assert close(found.choice.scale, 2 * k / 20_000 / (share * epsilon))
    assert close(found.distances.sd, cube_sd(k, 1 / 20_000, float(found.distances.epsilon)))
    values = Fraction(found.distances.epsilon) + (found.values.epsilon if found.values else 0)
    assert values == Fraction(repr(epsilon)) * (1 - Fraction(repr(share)))
    assert (found.released, len(found.pairs)) == (k, PAIRS)
    assert (found.spent_delta, found.event.delta) == (0.0, 0.0)
    assert found.event.epsilon == epsilon


def test_top_k_with_a_delta_is_by_the_exponential_mechanism_where_that_is_better():
    k, epsilon, delta = 40, 1.0, 1e-6
    names = tuple(f"c{i}" for i in range(60))
    found = planned(TopK(k, selection_fraction=0.5), epsilon=epsilon, delta=delta, names=names)
    assert isinstance(found.choice.selector, ZCDPTopK)
    rho = rho_of(epsilon, delta * (1 - 2 / 64))
    # k rounds of epsilon_0^2 / 8 each, with scores of twice the sensitivity.
    assert close(found.choice.scale, 2 / 20_000 / math.sqrt(8 * 0.5 * rho / k))
    assert found.event.guarantee.rho == pytest.approx(rho, rel=1e-6)


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
    # Scores have 28 bits: a sensitivity of 10^-6 is rounded up from 268.4 steps to 269.
    assert close(found.choice.scale, (query if one else 2 * advanced) / 10**6, 1.003)
    assert close(found.choice.threshold_scale, (threshold if one else advanced) / 10**6, 1.003)
    assert found.spent_delta == pytest.approx(0.0 if one else delta / 64, rel=1e-12)
    # At the distance that relationships of this MIC have.
    asked = found.choice.selector.threshold / found.choice.lattice.top
    assert distance_of(0.3) - 1 / found.choice.lattice.top < asked <= distance_of(0.3)


@pytest.mark.parametrize("ask", [AllPairs(), TopK(3), Above(0.3, 3)])
def test_noise_grows_with_the_records_of_a_person(ask):
    one, five = (planned(ask, epsilon=0.1, records=records) for records in (1, 5))
    assert five.distances.scale == pytest.approx(5 * one.distances.scale, rel=2e-3)
    assert five.event.sensitivity == 5 * one.event.sensitivity
    assert five.event.relation == ReplaceOne(5)
    if one.choice:
        assert five.choice.scale == pytest.approx(5 * one.choice.scale, rel=2e-3)
    # Records of one person may depend on each other: chance is larger, too.
    assert five.dependence_level > 2 * one.dependence_level


def test_the_sensitivity_is_at_most_one():
    assert planned(records=10**6).event.sensitivity == 1


def parts(found):
    """What each mechanism of a pure plan costs, exactly."""
    costs = [Fraction(noise.epsilon) for noise in (found.distances, found.values) if noise]
    if found.choice:
        costs.append(found.choice.selector.certificate().epsilon_realised)
    return costs


@given(
    st.sampled_from(
        [AllPairs(), Against("c1"), TopK(3), TopK(7, selection_fraction=0.1), Above(0.2, 3)]
    ),
    st.floats(0.05, 8).map(lambda epsilon: float(f"{epsilon:.3g}")),
    st.sampled_from([1, 3]),
)
def test_the_costs_of_a_plan_add_up_to_epsilon(ask, epsilon, records):
    found = planned(ask, epsilon=epsilon, records=records, n=10**6)
    written = Fraction(repr(epsilon))
    # Hardly anything is wasted.
    assert written * Fraction(999, 1000) < sum(parts(found)) <= written
    assert found.event.guarantee == PureDP(epsilon)
    assert found.event.count == 1


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
    settings = {"names": tuple(f"c{i}" for i in range(60)), "n": 337, "epsilon": 10.0}
    assert isinstance(planned(delta=1e-6, **settings).distances, LatticeGauss)
    found = planned(delta=1e-13, **settings)
    assert isinstance(found.distances, LatticeCube)
    assert Budget(10.0, 1e-13).admits([found.event])


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
    assert len({planned(epsilon=4.0, statistic=way).event.digest for way in ways}) == 1


def test_a_rule_is_given_the_epsilon_of_laplace_noise_that_is_as_large():
    given = []

    def rule(n, epsilon):
        given.append((n, epsilon))
        return MICr(B=20, c=2)

    first = planned(epsilon=3.0, statistic=rule)
    second = planned(TopK(4, selection_fraction=0.25), epsilon=3.0, statistic=rule)
    # The epsilon of Laplace noise that is as large: sqrt(6 / (d+1)(d+2)) of that of all d values.
    assert given[-2:] == [
        (20_000, pytest.approx(float(first.values.epsilon) * math.sqrt(6 / (67 * 68)))),
        (20_000, pytest.approx(float(second.values.epsilon) * math.sqrt(6 / (5 * 6)))),
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
    for n, columns in ((20_000, 12), (34_321, 13)):
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
        (
            {"statistic": lambda n, epsilon: None, "epsilon": 4.0},
            TypeError,
            "expected statistic to be a MICr",
        ),
        ({"epsilon": 1e-9, "ask": TopK(3, 0.5)}, ValueError, "spend more|larger epsilon"),
        ({"epsilon": 1e-9, "ask": Above(0.3, 3, 0.5)}, ValueError, "spend more|larger epsilon"),
    ],
)
def test_impossible_plans_are_refused_by_the_name_of_the_argument(changes, error, said):
    with pytest.raises(error, match=said):
        planned(**changes)


def test_a_way_whose_noise_cannot_be_drawn_leaves_the_others():
    """Scores of a selection have a coarser limit than values; Gaussian noise has one below too."""
    assert planned(epsilon=1e-9, ask=TopK(3)).choice is None
    found = planned(epsilon=10.0, delta=1e-6, n=10**9, ask=TopK(1))
    assert found.smallest < math.inf


@pytest.mark.parametrize(
    ("n", "epsilon", "advice"), [(40, 5.0, "more records"), (10**9, 1e-5, "a sample of a few")]
)
def test_screens_in_which_independent_pairs_may_be_as_far_as_any_are_refused(n, epsilon, advice):
    found = planned(n=n, epsilon=epsilon)
    assert found.dependence_level > LARGEST
    with pytest.raises(ValueError, match=rf"{n} records may be as far .* Use {advice}"):
        check_not_lost(found)
    # Selections, and values of MICr that can be read, tell something all the same.
    for other in (planned(n=n, epsilon=1e4), planned(n=n, epsilon=1e4, ask=TopK(3))):
        assert other.dependence_level > LARGEST
        check_not_lost(other)


def test_a_plan_is_refused_if_and_only_if_it_finds_nothing():
    for epsilon in (0.01, 0.03, 0.1, 0.2, 0.3, 1.0):
        found = planned(epsilon=epsilon, n=2000)
        if found.smallest <= LARGEST:
            check_not_lost(found)
        else:
            with pytest.raises(ValueError, match="times the epsilon") as refused:
                check_not_lost(found)
            times = float(re.search(r"about (\S+) times", str(refused.value))[1])
            assert planned(epsilon=1.1 * times * epsilon, n=2000).smallest <= LARGEST


def test_too_few_persons_are_refused_as_such_however_many_records_they_have():
    found = planned(n=46 * 187, records=187, epsilon=1.0)
    with pytest.raises(ValueError, match=r"46 persons with 187 records .* Use more persons"):
        check_not_lost(found)
