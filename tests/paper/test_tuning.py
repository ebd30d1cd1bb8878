import numpy as np
import oracles
import pytest

from dpmic_jax.paper import family, tuning
from dpmic_jax.paper.store import Store
from dpmic_jax.paper.tuning import FULL, QUICK, Search, Setting, geom_values, values

# Table 2 as printed: (c, B) of MICr-Geom at epsilon 1 and 0.1, then of MICr-Lap.
TABLE_2 = {
    25: [(2, 12), (2, 6), (5, 8), (5, 6)],
    250: [(1, 40), (2, 10), (5, 40), (5, 40)],
    500: [(1, 40), (2, 20), (5, 60), (5, 80)],
    1000: [(1, 60), (2, 40), (5, 80), (5, 100)],
    5000: [(1, 150), (1, 40), (5, 150), (5, 125)],
    10_000: [(1, 150), (1, 80), (5, 150), (5, 150)],
}
UNIT = ((0.0, 1.0), (0.0, 1.0))
N, SETS = 25, 2
TINY = Search(
    records=(N,), sets=(SETS,), geom_sets=2, cells=(4, 6), fineness=(1, 2), ratios=(1.5,), seed=3
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tuning")


def store(folder):
    return Store(folder, TINY.description())


@pytest.fixture
def counted(monkeypatch):
    """Counts how often data sets are scored."""
    calls, scored = [], tuning.scoring.best_entries

    def counting(*arguments, **keywords):
        calls.append(1)
        return scored(*arguments, **keywords)

    monkeypatch.setattr(tuning.scoring, "best_entries", counting)
    return calls


@pytest.mark.parametrize("n", TABLE_2)
def test_what_the_paper_chose_is_among_what_is_tried(n):
    geom, lap = TABLE_2[n][:2], TABLE_2[n][2:]
    assert {Setting(B, c, 1.0) for c, B in lap} <= set(FULL.candidates(n))
    assert {Setting(B, c, 1.0) for c, B in lap} <= set(FULL.published(n))
    assert {Setting(B, c, 1.0) for c, B in geom} <= set(FULL.published_geom(n))


def test_only_what_the_paper_considered_is_called_published():
    """Section 5.1: B from 4 to 150; c = 5 for MICr-Lap, 1 and 2 for MICr-Geom; six n."""
    for n in FULL.records:
        published, geom = FULL.published(n), FULL.published_geom(n)
        assert bool(published) == bool(geom) == (n in TABLE_2)
        assert all(4 <= s.B <= 150 and s.c == 5 and s.ratio == 1 for s in published)
        assert all(4 <= s.B <= 150 and s.c in (1, 2) and s.ratio == 1 for s in geom)


@pytest.mark.parametrize("search", [FULL, QUICK])
def test_no_setting_is_tried_twice(search):
    for n in search.records:
        assert search.candidates(n)
        assert len(set(search.candidates(n))) == len(search.candidates(n))
    assert len(search.sets) == len(search.records)


def test_a_setting_has_the_grids_of_its_statistic():
    """B = 10, c = 2: l parts of one axis against k = 2 .. min(l, B / l), 2 k of the master."""
    expected = {(rows, master, parts) for rows, master, parts in oracles.plan(10, 2)}
    assert {grid[:3] for grid in Setting(10, 2, 1.0).grids} == expected
    few = Setting(40, 2, 1.5).grids
    assert {grid.rows for grid in few} < {rows for rows, _, _ in oracles.plan(40, 2)}
    assert max(grid.rows for grid in few) == 20


def test_values_are_the_statistics_of_the_data_sets(folder, counted):
    found = values(TINY, N, store(folder))
    settings = TINY.candidates(N)
    assert found.shape == (len(settings), 189, SETS)
    assert counted
    for distribution in (0, 77, 188):
        which = range(distribution, distribution + 1)
        x, y = family.data_sets(family.family(), which, N, range(SETS), seed=TINY.seed)
        for index, setting in enumerate(settings):
            sizes = [grid.rows for grid in setting.grids]
            for repeat in range(SETS):
                expected = oracles.micr(
                    x[repeat], y[repeat], UNIT, setting.B, setting.c, sizes=sizes
                )
                assert found[index, distribution, repeat] == pytest.approx(expected, abs=2e-6)
    # And a second time they come from the store.
    calls = len(counted)
    np.testing.assert_array_equal(values(TINY, N, store(folder)), found)
    assert len(counted) == calls


def test_an_interrupted_search_computes_only_what_is_missing(tmp_path, monkeypatch, counted):
    """The search has parts of 100 distributions, and the second part is lost."""
    monkeypatch.setattr(tuning, "_SETS_TOGETHER", 100 * SETS)
    found = values(TINY, N, store(tmp_path))
    assert len(counted) == 2
    (lost,) = tmp_path.glob("micr-*-100.npz")
    lost.unlink()
    np.testing.assert_array_equal(values(TINY, N, store(tmp_path)), found)
    assert len(counted) == 3


def test_releases_of_micr_geom_are_repeatable_and_share_no_noise(tmp_path, folder):
    """Repeated draws are equal; another epsilon, however close, has other noise."""
    once = geom_values(TINY, N, 1.0, store(folder))
    settings = TINY.published_geom(N)
    assert once.shape == (len(settings), 189, TINY.geom_sets)
    assert ((once >= 0) & (once <= 1)).all()
    again = geom_values(TINY, N, 1.0, Store(tmp_path / "again", TINY.description()))
    np.testing.assert_array_equal(once, again)
    assert (geom_values(TINY, N, 1.001, store(folder)) != once).mean() > 0.9


def test_with_huge_epsilon_micr_geom_is_micr(folder, tmp_path):
    """A cell's draw differs with probability exp(-25)."""
    found = geom_values(TINY, N, 50.0, Store(tmp_path, TINY.description()))
    for distribution in (5, 130):
        which = range(distribution, distribution + 1)
        x, y = family.data_sets(family.family(), which, N, range(TINY.geom_sets), seed=TINY.seed)
        for index, (B, c, _) in enumerate(TINY.published_geom(N)):
            for repeat in range(TINY.geom_sets):
                expected = oracles.micr(x[repeat], y[repeat], UNIT, B, c)
                assert found[index, distribution, repeat] == pytest.approx(expected, abs=2e-6)
