"""The private searches as programs: noise of the stated scale, budget, order of queries, charge."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import exp, expm1, log1p

import numpy as np
import pytest
from bayes_nets import load
from scipy import integrate, stats
from toys import Given, asked, coded

from dpmic_jax.causal import priv_pc
from dpmic_jax.causal.budget_split import Allowance
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.kendall import Kendall
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.score_lattice import TOP, level_lattice, padded, point_of, power_of_two
from dpmic_jax.causal.search import discover
from dpmic_jax.causal.skeleton import complete, queries_of_level, score_at_most, stable_skeleton
from dpmic_jax.causal.svt_pc import SVTPC
from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, pure_to_zcdp
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.ledger.file import BudgetExceeded, LedgerFile
from dpmic_jax.dp.rng.keys import secret_key, seeded_key

ALARM = 1e-5
HUGE = 1e5


def searches(**changes):
    """One of each, about alike."""
    usual = {"epsilon": 1.0, "threshold": 2.0, "max_order": 1} | changes
    return [
        SVTPC(rounds=20, **usual),
        EMPC(**usual),
        PrivPC(rounds=20, subsample=4, tweak=0.0, **usual),
    ]


def names(columns):
    return tuple(f"c{i}" for i in range(columns))


def run(search, score, columns=5, key=None, n=8, **others):
    data = coded([0] * n, columns)
    make = partial(Given, score=score)
    key = seeded_key(3) if key is None else key
    return discover(data, make, search, names=names(columns), key=key, **others)


# --- the noise -----------------------------------------------------------------------------


def laplace(scale):
    return stats.laplace(scale=scale)


def stops(scale, above, ends):
    """P(the first query that passes is among the first `end`), all scores `above` T."""

    def at_least(rho, end):
        passes = laplace(2 * scale).cdf(rho - above)
        return (1 - passes) ** end * laplace(scale).pdf(rho)

    far = 30 * scale
    later = [
        integrate.quad(at_least, -far, far, args=(end,), points=[0.0], limit=200)[0] for end in ends
    ]
    return -np.diff([1.0, *later, 0.0])


def places(look, rounds, ends):
    found = [look(number, 0) for number in range(rounds)]
    at = [len(ends) if f is None else np.searchsorted(ends, f.place, side="right") for f in found]
    return np.bincount(at, minlength=len(ends) + 1), found


def p_value(counts, chances):
    return stats.chisquare(counts, counts.sum() * chances / chances.sum()).pvalue


def test_rounds_of_svt_pc_stop_as_noise_of_the_stated_scale_predicts():
    """e = 1: the threshold has noise of scale 2, scores of scale 4."""
    ends, above, rounds = (2, 10, 60), 10.0, 250
    search = SVTPC(epsilon=float(rounds), threshold=2.0, max_order=0, rounds=rounds)
    test = Given(coded([0] * 8, 12), lambda query: 2.0 + above)
    queries = queries_of_level(complete(12), 12, 0)[:60]
    counts, _ = places(search._open_level(test, seeded_key(1), 0, queries), rounds, ends)
    assert p_value(counts, stops(2.0, above, ends)) > ALARM
    assert p_value(counts, stops(2.0 * 2 / 3, above, ends)) < ALARM
    assert p_value(counts, stops(2.0 * 3 / 2, above, ends)) < ALARM


def test_rounds_of_priv_pc_stop_and_decide_as_noise_of_the_stated_scales_predicts():
    """e_s = e_e = 1, half the records: e' = ln(1 + 2 (e - 1)), scales 2/e' and 4/e', and 1."""
    ends, above, beyond, rounds = (2, 10, 60), 6.0, 1.5, 250
    search = PrivPC(
        epsilon=2.0 * rounds, threshold=2.0, max_order=0, rounds=rounds, subsample=4, tweak=1.0
    )
    queries = queries_of_level(complete(12), 12, 0)[:60]

    def make(data):
        return Given(data, lambda query: 2.0 + (above if data.n == 4 else beyond))

    look = search._open_level(coded([0] * 8, 12), make, seeded_key(1), 0, queries)
    counts, found = places(look, rounds, ends)
    scale = 2 / log1p(2 * expm1(1.0))
    assert p_value(counts, stops(scale, above - 1, ends)) > ALARM
    assert p_value(counts, stops(scale * 2 / 3, above - 1, ends)) < ALARM
    assert p_value(counts, stops(scale * 3 / 2, above - 1, ends)) < ALARM
    verdicts = [f.independent for f in found if f]
    for factor in (1 / 2, 1, 2):
        chance = exp(-beyond / factor) / 2
        test = stats.binomtest(sum(verdicts), len(verdicts), chance)
        assert (test.pvalue > ALARM) == (factor == 1)


@pytest.mark.parametrize("order", [0, 1])
def test_decisions_of_em_pc_have_noise_of_the_stated_scale(order):
    """Of a level with N edges every decision has e = 1, or 1/2 for each of its two steps."""
    columns, above = 24, 2.0
    queries = queries_of_level(complete(columns), columns, order)
    edges = len(complete(columns))
    search = EMPC(epsilon=2.0 * edges, threshold=2.0, max_order=1)
    test = Given(coded([0] * 8, columns), lambda query: 2.0 + above)
    removed = sum(len(search._removals(test, queries, seeded_key(number))) for number in range(6))
    epsilon = 1.0 if order == 0 else 0.5
    for factor in (2 / 3, 1, 3 / 2):
        chance = exp(-above * epsilon / factor) / 2
        assert (stats.binomtest(removed, 6 * edges, chance).pvalue > ALARM) == (factor == 1)


def test_em_pc_chooses_by_permute_and_flip():
    """Two candidates, one by d above the other: it is chosen with e^(-e d/(2 Delta))/2."""
    columns, behind = 4, 3.0
    edges = complete(columns)
    search = EMPC(epsilon=4.0 * len(edges), threshold=1000.0, max_order=1)  # e = 2, all removed
    queries = queries_of_level(edges, columns, 1)
    worse = {}
    for query in queries:
        worse.setdefault(query[:2], query.given)  # the first candidate of each edge
    test = Given(coded([0] * 8, columns), lambda query: behind * (worse[query[:2]] == query.given))
    chosen = [
        query.given == worse[query[:2]]
        for number in range(100)
        for query in search._removals(test, queries, seeded_key(number))
    ]
    assert len(chosen) == 100 * len(edges)
    for factor in (2 / 3, 1, 3 / 2):
        chance = exp(-behind / 2 / factor) / 2
        found = stats.binomtest(sum(chosen), len(chosen), chance)
        assert (found.pvalue > ALARM) == (factor == 1)


# --- the budget ----------------------------------------------------------------------------


def test_rounds_share_the_budget():
    search = SVTPC(epsilon=1.0, threshold=1.0, max_order=0, rounds=40)
    lattice = level_lattice(Fraction(1))
    mechanism = search.round_mechanism(lattice, search.each(5, search.rounds))
    assert mechanism.round_guarantee.epsilon * 40 <= 1
    assert float(mechanism.query_noise.rate) == pytest.approx(1 / 40 / 4 / lattice.sensitivity)
    assert float(mechanism.threshold_noise.rate) == pytest.approx(1 / 40 / 2 / lattice.sensitivity)


def test_three_records_per_person_take_three_times_the_noise():
    for one in searches(epsilon=3.0):
        many = replace(one, records_per_person=3)
        assert many.each(5, 7) == one.each(5, 7) / 3


@pytest.mark.parametrize("releases", [1, 3, 100, 5000])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_releases_never_cost_more_than_the_budget(releases, delta):
    allowance = Allowance.better(1.0, delta, releases)
    each = allowance.each(releases)
    assert each >= Fraction(1, releases)
    if isinstance(allowance.guarantee, PureDP):
        assert releases * each <= 1
    else:
        assert releases * as_fraction(pure_to_zcdp(float(each))) <= as_fraction(
            allowance.guarantee.rho
        )
        assert allowance.guarantee.rho <= Budget(1.0, delta).rho
    assert isinstance(allowance.guarantee, ZCDP) == (delta > 0 and releases >= 100)


@pytest.mark.parametrize("search", searches(), ids=lambda search: search.mechanism)
def test_one_event_is_charged_before_anything_is_scored(search, tmp_path):
    ledger = LedgerFile.create(tmp_path / "book", Budget(1.0), data_set="toy")
    charged = []

    def score(query):
        charged.append(len(ledger.events))
        return 2.0

    result = run(search, score, ledger=ledger)
    assert set(charged) == {1}
    assert ledger.spent.epsilon == 1.0
    assert result.privacy.ledger == f"{ledger.identity}#1"
    assert result.privacy.event == ledger.events[0]
    assert Event.from_json(result.privacy.event.to_json()) == result.privacy.event

    with pytest.raises(BudgetExceeded):
        run(search, lambda query: pytest.fail("scored without a charge"), ledger=ledger)
    assert len(ledger.events) == 1


def test_a_budget_with_delta_is_charged_in_rho_when_there_are_many_releases(tmp_path):
    ledger = LedgerFile.create(tmp_path / "book", Budget(1.0, 1e-6), data_set="toy")
    search = SVTPC(epsilon=1.0, delta=1e-6, threshold=2.0, max_order=0, rounds=500)
    result = run(search, lambda query: 100.0, ledger=ledger)
    assert isinstance(ledger.events[0].guarantee, ZCDP)
    assert (result.privacy.epsilon, result.privacy.delta) == (1.0, 1e-6)
    assert search.each(5, 500) > 3 * Fraction(1, 500)


def test_settings_whose_noise_cannot_be_drawn_are_not_charged(tmp_path):
    ledger = LedgerFile.create(tmp_path / "book", Budget(1.0), data_set="toy")
    for search in (
        SVTPC(epsilon=1e-7, threshold=2.0, max_order=0, rounds=1000),
        EMPC(epsilon=1e-7, threshold=2.0, max_order=0),
        PrivPC(epsilon=1e-7, threshold=2.0, max_order=0, rounds=9, subsample=4, tweak=0.0),
        PrivPC(epsilon=1.0, threshold=2.0, max_order=0, rounds=9, subsample=9, tweak=0.0),
    ):
        with pytest.raises(ValueError, match=r"epsilon|noise|scale|subsample"):
            run(search, lambda query: 2.0, ledger=ledger)
    assert not ledger.events


# --- the search ----------------------------------------------------------------------------


def test_when_rounds_run_out_the_remaining_edges_are_kept():
    for search in (
        SVTPC(epsilon=HUGE, threshold=2.0, max_order=1, rounds=3),
        PrivPC(epsilon=HUGE, threshold=2.0, max_order=1, rounds=3, subsample=4, tweak=0.0),
    ):
        result = run(search, lambda query: 0.0)
        assert set(result.found.separating_sets) == {(0, 1), (0, 2), (0, 3)}
        assert result.found.edges == complete(5) - {(0, 1), (0, 2), (0, 3)}
        assert not result.finished
        assert "stopped early" in str(result)


def test_an_examination_that_fails_uses_up_a_round():
    """On all data nothing is independent, on every subsample all is."""

    def make(data):
        return Given(data, lambda query: 100.0 if data.n == 8 else 0.0)

    search = PrivPC(epsilon=HUGE, threshold=2.0, max_order=0, rounds=4, subsample=4, tweak=0.0)
    result = discover(coded([0] * 8, 4), make, search, names=names(4), key=seeded_key(0))
    assert result.found.edges == complete(4)
    assert not result.finished
    enough = replace(search, rounds=6)
    found = discover(coded([0] * 8, 4), make, enough, names=names(4), key=seeded_key(0)).found
    # Level 0 is through; that level 1 has queries is why it is not finished.
    assert found.edges == complete(4)


class OrderZeroOnly(Given):
    def sensitivity(self, queries):
        if any(query.given for query in queries):
            raise ValueError("too many blocks")
        return super().sensitivity(queries)


@pytest.mark.parametrize("search", searches(), ids=lambda search: search.mechanism)
def test_a_refused_level_ends_the_search_and_keeps_the_edges(search):
    data, make = coded([0] * 8, 5), partial(OrderZeroOnly, score=lambda query: 2.0)
    key = seeded_key(0)
    found = discover(data, make, search, names=names(5), key=key).found
    assert not found.finished
    assert all(sets == ((),) for sets in found.separating_sets.values())
    assert found.edges == complete(5) - found.separating_sets.keys()


@pytest.mark.parametrize("search", searches(), ids=lambda search: search.mechanism)
def test_queries_depend_on_released_answers_only(search):
    """All queries of a level, those that the removals of earlier levels leave."""
    seen = {}

    def score(query):
        seen.setdefault(len(query.given), set()).add(tuple(query))
        return (query.x + query.y + sum(query.given)) % 4

    result = run(search, score)
    edges = complete(5)
    for order in sorted(seen):
        assert seen[order] <= set(asked(edges, 5, order))
        if search.mechanism != "Priv-PC":  # which also asks about single queries
            assert seen[order] == set(asked(edges, 5, order))
        gone = result.found.separating_sets.items()
        edges = edges - {edge for edge, sets in gone if len(sets[0]) == order}
    assert edges == result.found.edges


@pytest.mark.parametrize("search", searches(), ids=lambda search: search.mechanism)
def test_a_seed_repeats_its_search(search):
    results = [run(search, lambda query: 2.0, key=seeded_key(s)) for s in (0, 0, 1)]
    stories = [r.found.separating_sets for r in results]
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]
    assert not results[0].privacy.key_is_secret
    assert "seed" in results[0].privacy.line.lower()


def test_two_runs_with_one_secret_key_have_different_events_and_noise():
    key, search = secret_key(), SVTPC(epsilon=1.0, threshold=2.0, max_order=0, rounds=20)
    one, other = (run(search, lambda query: 2.0, columns=12, key=key) for _ in range(2))
    assert one.privacy.key_is_secret
    assert one.privacy.event.digest != other.privacy.event.digest
    assert one.found.separating_sets != other.found.separating_sets  # by chance: below 1e-9


def test_with_negligible_noise_all_searches_find_what_pc_finds():
    asia = load("asia")
    data = Coded(asia.sample(4000, np.random.default_rng(0)).T, asia.states)
    everything = [q for order in range(2) for q in queries_of_level(complete(8), 8, order)]
    near = np.unique(Kendall(data).scores(everything))
    near = near[(near > 0.5) & (near < 2)]
    widest = int(np.argmax(np.diff(near)))
    threshold = float(near[widest : widest + 2].mean())  # no score is close to it
    usual = {"epsilon": HUGE, "threshold": threshold, "max_order": 1}
    right = stable_skeleton(8, score_at_most(Kendall(data), threshold), max_order=1)
    assert len(right.edges) in range(3, 12)
    for search in (
        SVTPC(rounds=40, **usual),
        EMPC(**usual),
        PrivPC(rounds=40, subsample=data.n, tweak=0.0, **usual),
    ):
        found = discover(data, Kendall, search, names=asia.names, key=seeded_key(0)).found
        assert found.edges == right.edges
        assert found.finished == right.finished
        for edge, (given,) in found.separating_sets.items():
            assert given in right.separating_sets[edge]


@pytest.mark.parametrize("epsilon", [100.0, 2000.0])
def test_queries_after_the_one_found_need_no_score(monkeypatch, epsilon):
    """A search that scores every query in every round finds the same."""
    search = PrivPC(epsilon=epsilon, threshold=2.0, max_order=1, rounds=60, subsample=4, tweak=0.0)
    asked = []

    def score(query):  # the first 38 pairs seem to depend on each other
        asked.append(query)
        return 4.0 if query.x < 4 else 0.5

    few, scored = run(search, score, columns=12).found, len(asked)
    monkeypatch.setattr(priv_pc, "_ends", lambda start, last: iter((last,)))
    assert run(search, score, columns=12).found == few
    assert len(asked) - scored != scored  # another way to the same
    assert len(few.separating_sets) >= 10


# --- points --------------------------------------------------------------------------------


def test_points_move_by_no_more_steps_than_the_lattice_says(rng):
    for _ in range(200):
        sensitivity = Fraction(int(rng.integers(1, 10**6)), int(rng.integers(1, 10**6)))
        lattice = level_lattice(sensitivity)
        assert lattice.sensitivity >= sensitivity * 2**lattice.bits
        assert lattice.sensitivity < 256 or lattice.bits == 1
        assert lattice.bits == 30 or 2 * sensitivity * 2**lattice.bits > 255


def test_points_above_the_top_are_clipped_and_lists_are_padded():
    lattice = level_lattice(Fraction(1))
    assert point_of(Fraction(10**9), lattice) == TOP
    assert padded(np.array([5, 6]), 4, TOP).tolist() == [5, 6, TOP, TOP]
    assert [power_of_two(k) for k in (1, 2, 3, 4, 5)] == [1, 2, 4, 4, 8]


def test_invalid_settings_of_a_search_are_refused():
    with pytest.raises(ValueError, match="threshold"):
        EMPC(epsilon=1.0, threshold=-1.0, max_order=0)
    with pytest.raises(ValueError, match="tweak"):
        PrivPC(epsilon=1.0, threshold=1.0, max_order=0, rounds=1, subsample=1, tweak=-1.0)
    with pytest.raises((ValueError, TypeError), match="rounds"):
        SVTPC(epsilon=1.0, threshold=1.0, max_order=0, rounds=0)
    with pytest.raises(ValueError, match="at least 2 columns"):
        run(EMPC(epsilon=1.0, threshold=1.0, max_order=0), lambda query: 0.0, columns=1)
    with pytest.raises(ValueError, match="different names"):
        discover(
            coded([0] * 4, 3),
            Kendall,
            EMPC(epsilon=1.0, threshold=1.0, max_order=0),
            names=("a", "b"),
            key=seeded_key(0),
        )


def test_a_level_of_three_columns_has_its_conditional_query():
    assert Query(0, 1, (2,)) in queries_of_level(complete(3), 3, 1)


def test_the_sieve_has_the_sensitivity_of_its_subsample():
    """Both are replacement sensitivities of the level's queries, in steps of one lattice."""
    data = Coded(np.tile(np.arange(400) % 2, (3, 1)), (2, 2, 2))
    search = PrivPC(epsilon=1.0, threshold=1.0, max_order=1, rounds=5, subsample=100, tweak=0.5)
    queries = queries_of_level(complete(3), 3, 1)
    lattice, mechanism = search._level(data, Kendall, queries)
    part = Coded(data.codes[:, :100], data.categories)
    unit = 2**lattice.bits
    for steps, test in ((mechanism.examine_sensitivity, data), (mechanism.sieve_sensitivity, part)):
        assert steps - 1 < Kendall(test).sensitivity(queries) * unit <= steps
    assert mechanism.sieve_sensitivity > 1.5 * mechanism.examine_sensitivity
    assert (mechanism.threshold, mechanism.tweak) == (-unit, unit // 2)
    assert mechanism.guarantee.epsilon * 5 == pytest.approx(1.0)
    assert (mechanism.n, mechanism.subsample) == (400, 100)
