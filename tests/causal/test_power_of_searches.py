"""What a search is predicted to tell from noise: against the real search, and before the charge."""

import itertools
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from toys import Given, coded

from dpmic_jax.causal.decisions import Comparison, Decision
from dpmic_jax.causal.em_pc import EMPC
from dpmic_jax.causal.kendall import Kendall, SignedKendall
from dpmic_jax.causal.marginal import MarginalMICr
from dpmic_jax.causal.preview import preview_search
from dpmic_jax.causal.priv_pc import PrivPC
from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.search import discover, empty_codes
from dpmic_jax.causal.spearman import SignedSpearman, Spearman
from dpmic_jax.causal.svt_pc import SVTPC
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.ledger.file import LedgerFile
from dpmic_jax.dp.rng.keys import seeded_key
from dpmic_jax.mic.statistics import MICr

ALARM, N, RUNS = 1e-5, 400, 60
USUAL = {"epsilon": 1.0, "threshold": 2.0, "max_order": 0}
SEARCHES = [
    SVTPC(rounds=1, **USUAL),
    EMPC(**USUAL),
    PrivPC(rounds=1, subsample=N // 2, tweak=0.0, **USUAL),
]
of_each = pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.mechanism)


def equal_columns(columns=2):
    return Coded(np.tile(np.arange(N) % 2, (columns, 1)), (2,) * columns)


def found(data, search, seed=0, **others):
    names = [f"c{i}" for i in range(data.columns)]
    return discover(data, Kendall, search, names=names, key=seeded_key(seed), **others)


def at(search, chance):
    """The search with the epsilon at which the largest score is predicted to be removed so."""
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = (low * high) ** 0.5
        ((_, first),) = replace(search, epsilon=middle).decisions(equal_columns(), Kendall)
        removed = first.removed(Kendall(equal_columns()).largest)
        low, high = (middle, high) if removed > chance else (low, middle)
    return replace(search, epsilon=high)


@of_each
def test_edges_are_removed_as_often_as_predicted(search):
    """Two equal columns, which have the largest score."""
    weak = at(search, 0.2)
    kept = sum(len(found(equal_columns(), weak, s, force=True).found.edges) for s in range(RUNS))
    assert stats.binomtest(RUNS - kept, RUNS, 0.2).pvalue > ALARM
    strong = at(search, 0.01)
    assert sum(len(found(equal_columns(), strong, s).found.edges) for s in range(10)) >= 9


@pytest.mark.parametrize("score", [0.0, 2.0, 12.0])
@of_each
def test_a_score_removes_its_edge_as_often_as_predicted(search, score):
    """Whatever the data: the scores are made up."""
    runs, data, query = 200, coded([0] * 8, 2), Query(0, 1)

    def make(part):
        return Given(part, lambda _: score * (part.n / data.n) ** 0.5)

    many = replace(search, epsilon=0.5)
    if isinstance(many, EMPC):
        removed = sum(
            len(many._removals(make(data), [query], seeded_key(number))) for number in range(runs)
        )
        shared = many
    else:
        changes = {"rounds": runs, "epsilon": 0.5 * runs}
        changes |= {"subsample": 4} if isinstance(many, PrivPC) else {}
        shared = replace(many, **changes)
        place = (data, make) if isinstance(many, PrivPC) else (make(data),)
        look = shared._open_level(*place, seeded_key(1), 0, [query])
        answers = [look(number, 0) for number in range(runs)]
        removed = sum(bool(each and each.independent) for each in answers)
    decision = shared.decision(data, make, query)
    assert stats.binomtest(removed, runs, decision.removed(score)).pvalue > ALARM


def test_noise_of_another_scale_would_not_be_predicted():
    """A negative control: the noise of SVT-PC, as drawn, against predictions from other scales."""
    runs, score, data, query = 1000, 14.0, coded([0] * 8, 2), Query(0, 1)
    search = SVTPC(**(USUAL | {"epsilon": 0.5 * runs}), rounds=runs)
    look = search._open_level(Given(data, lambda _: score), seeded_key(1), 0, [query])
    removed = sum(look(number, 0) is not None for number in range(runs))
    for factor in (2 / 3, 1, 3 / 2):
        told = Decision((Comparison(2.0, 8 * factor, 4 * factor),)).removed(score)
        assert (stats.binomtest(removed, runs, told).pvalue > ALARM) == (factor == 1)


@pytest.mark.parametrize("comparison", [Comparison(2.0, 3.0), Comparison(1.0, 4.0, 2.0, 0.5)])
def test_the_chance_to_pass_is_that_of_drawn_noise(comparison, rng):
    noise = rng.laplace(scale=comparison.noise, size=20_000)
    limit = comparison.limit + rng.laplace(size=20_000) * comparison.limit_noise
    for score in (0.0, 2.0, 7.0):
        passed = int((comparison.share * score + noise <= limit).sum())
        assert stats.binomtest(passed, 20_000, comparison.passed(score)).pvalue > ALARM


def test_the_smallest_score_that_is_kept_is_kept_with_95_percent():
    decision = Decision((Comparison(1.0, 4.0, 2.0, 0.7), Comparison(1.0, 3.0)))
    assert decision.removed(decision.smallest_kept) == pytest.approx(0.05)
    assert Decision((Comparison(0.0, 1e-3), Comparison(0.0, 1e-3))).smallest_kept < 0.01


@pytest.mark.parametrize("test", [Kendall, SignedKendall, Spearman, SignedSpearman])
@pytest.mark.parametrize(("n", "shape"), [(4, (2, 2)), (7, (2, 3)), (5, (3, 3))])
def test_no_table_has_a_larger_score_than_the_largest(test, n, shape):
    """Of all tables of n records."""
    cells = shape[0] * shape[1]
    cuts = itertools.combinations(range(n + cells - 1), cells - 1)
    all_tables = np.array([np.diff([-1, *cut, n + cells - 1]) - 1 for cut in cuts])
    scores = test.of_counts(all_tables.reshape(-1, 1, *shape))
    assert scores.max() == pytest.approx(test(empty_codes(n, shape)).largest)


def hopeless(search):
    """Six columns with an epsilon that would do for a seventh of their pairs, about."""
    changes = {"rounds": 16} if hasattr(search, "rounds") else {}
    return replace(at(search, 0.05), **changes)


@of_each
def test_a_search_in_which_noise_hides_everything_is_not_charged(search, tmp_path):
    ledger = LedgerFile.create(tmp_path / "book", Budget(100.0), data_set="toy")
    data, weak = equal_columns(6), hopeless(search)
    with pytest.raises(ValueError, match="noise would hide every dependence") as refused:
        found(data, weak, ledger=ledger)
    assert not ledger.events
    assert "--force" in str(refused.value)
    assert search.fewer in str(refused.value)
    # What the message says would do does, and 2/3 of it does not.
    times = float(re.search(r"about ([\d.e+]+) times", str(refused.value))[1])
    assert 8 < times < 25
    for factor, enough in ((1.02 * times, True), (times * 2 / 3, False)):
        more = replace(weak, epsilon=weak.epsilon * factor)
        _, first = more.decisions(data, Kendall)[0]
        assert (first.removed(Kendall(data).largest) <= 0.05) == enough
        records = empty_codes(round(N * factor), data.categories)
        part = {"subsample": records.n // 2} if isinstance(weak, PrivPC) else {}
        _, first = replace(weak, **part).decisions(records, Kendall)[0]
        assert (first.removed(Kendall(records).largest) <= 0.05) == enough
    forced = found(data, weak, ledger=ledger, force=True)
    assert len(ledger.events) == 1
    assert "Caution: noise decides" in str(forced)
    assert forced.to_dict()["caution"] in str(forced)


def test_a_threshold_above_every_score_is_refused():
    with pytest.raises(ValueError, match="not below the largest score"):
        found(equal_columns(), EMPC(epsilon=50.0, threshold=100.0, max_order=0))


@of_each
def test_a_search_with_little_noise_has_no_caution(search):
    result = found(equal_columns(), replace(search, epsilon=30.0))
    assert result.caution == ""
    assert "Caution" not in str(result)


def test_a_preview_says_what_is_kept():
    told = preview_search(Kendall, hopeless(SEARCHES[0]), categories=(2,) * 6, n=N)
    (level,) = told.levels
    assert level.smallest > told.largest
    assert "which no pair of columns has" in dict(told.lines())["kept at order 0"]
    strong = preview_search(Kendall, at(SEARCHES[0], 0.04), categories=(2, 2), n=N)
    assert strong.levels[0].smallest < strong.largest
    assert "of the largest; a score of 0" in dict(strong.lines())["kept at order 0"]


def test_a_preview_ends_where_the_search_would():
    """MICr has no conditional form: the search asks order 0 and keeps the remaining edges."""
    make = partial(MarginalMICr, statistic=MICr(B=6, c=1))
    search = EMPC(epsilon=500.0, threshold=0.2, max_order=1)
    told = preview_search(make, search, categories=(2, 2, 2), n=N)
    assert len(told.levels) == 1
    assert "cannot be asked" in dict(told.lines())["order 1"]
    data, names = equal_columns(3), ("a", "b", "c")
    result = discover(data, make, search, names=names, key=seeded_key(0))
    assert len(result.found.edges) == 3
    assert not result.finished
