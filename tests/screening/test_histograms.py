"""Histograms for a report: one run for one table, its bounds and its pairs."""

import shutil
from datetime import date

import numpy as np
import pytest
from small import BOUNDS, STATISTIC, columns, screened

from dpmic_jax import AllPairs, Budget, Categories, Number, screen, secret_key, seeded_key
from dpmic_jax.data.schema import schema_of
from dpmic_jax.screening import create_ledger, release_histograms

WIDER = {**BOUNDS, "a": (0.0, 2.0)}


@pytest.fixture(scope="module")
def result():
    return screened(statistic=STATISTIC)


@pytest.fixture
def ledger(tmp_path):
    return create_ledger(tmp_path / "ledger", Budget(99.0), name="t", schema=schema_of(BOUNDS))


def histograms_of(result, **changes):
    settings = {"pairs": [("a", "b")], "bounds": BOUNDS, "epsilon": 1.0, "key": secret_key()}
    table = changes.pop("table", columns())
    return release_histograms(result, table, **{**settings, **changes})


def test_a_finished_run_is_refused_with_other_bounds(result, ledger, tmp_path):
    """Or the counts of one range would be shown with the axes of another."""
    first = histograms_of(result, ledger=ledger, out=tmp_path / "run")
    again = histograms_of(result, ledger=ledger, out=tmp_path / "run")
    np.testing.assert_array_equal(first.release.counts, again.release.counts)
    assert again.axes == first.axes
    assert again.release.event == first.release.event
    with pytest.raises(ValueError, match="holds a run with other"):
        histograms_of(result, ledger=ledger, out=tmp_path / "run", bounds=WIDER)
    assert len(ledger.events) == 1


def test_a_finished_run_is_refused_with_nominal_categories_in_another_order(tmp_path):
    """Or the counts of one category would be shown with the name of another."""
    names, rng = ("a", "b", "c"), np.random.default_rng(0)
    table = {"g": rng.choice(names, 100, p=[0.8, 0.15, 0.05]), "x": rng.random(100)}

    def bounds(names):
        return {"g": Categories(names), "x": Number(0, 1)}

    own = {"pairs": [("g", "x")], "table": table, "out": tmp_path / "run", "epsilon": 9.0}
    found = screen(table, bounds=bounds(names), epsilon=9.0, ask=AllPairs(), key=seeded_key(0))
    histograms_of(found, bounds=bounds(names), **own)
    with pytest.raises(ValueError, match="nominal categories in another order"):
        histograms_of(found, bounds=bounds(names[::-1]), **own)


def test_a_copied_run_is_not_resumed_with_other_bounds(result, ledger, tmp_path, monkeypatch):
    """Two histograms of one noise would tell their exact difference."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dpmic_jax.mechanisms.histogram.cell_counts", stop)
        with pytest.raises(KeyboardInterrupt):
            histograms_of(result, ledger=ledger, out=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with pytest.raises(ValueError, match="holds a run with other"):
        histograms_of(result, ledger=ledger, out=tmp_path / "copy", bounds=WIDER)
    with pytest.raises(ValueError, match="other records than these"):
        histograms_of(result, ledger=ledger, out=tmp_path / "copy", table=columns(seed=8))
    histograms_of(result, ledger=ledger, out=tmp_path / "run")
    assert len(ledger.events) == 1


def test_bad_pairs_are_refused_before_anything_is_charged(result, ledger):
    for pairs, said in (([], "at least one"), ([("a", "z")], "no column 'z'")):
        with pytest.raises(ValueError, match=said):
            histograms_of(result, ledger=ledger, pairs=pairs)
    assert ledger.events == ()


def test_histograms_of_all_kinds_hold_what_their_cells_are_called():
    """Noise is far below one record, so counts are those of the labels."""
    n = 600
    kinds = np.array(["x", "y", "other", ""], object)[np.arange(n) % 4]
    kinds[kinds == ""] = None
    days = np.datetime64("2020-01-01") + np.arange(n) % 3
    table = {"kind": kinds, "day": days, "stage": np.arange(n) % 2}
    bounds = {
        "kind": Categories(["x", "y", "z"], other="rest"),
        "day": (date(2020, 1, 1), date(2020, 1, 3)),
        "stage": Number(0, 1, whole=True),
    }
    settings = {"bounds": bounds, "key": seeded_key(1)}
    found = screen(table, epsilon=1.0, ask=AllPairs(), force=True, **settings)
    pairs = [("kind", "day"), ("stage", "kind")]
    released = release_histograms(found, table, pairs=pairs, epsilon=1000.0, **settings)
    (kind, day, one, _), (stage, _, two, _) = released.pairs()
    assert kind.labels == ("missing", "x", "y", "z", "rest")
    assert one.sum(axis=1).tolist() == [150, 150, 150, 0, 150]
    held = dict(zip(day.labels, one.sum(axis=0).tolist(), strict=True))
    assert {label: count for label, count in held.items() if count} == {
        "2020-01-01": 200,
        "2020-01-02": 200,
        "2020-01-03": 200,
    }
    held = dict(zip(stage.labels, two.sum(axis=1).tolist(), strict=True))
    assert {label: count for label, count in held.items() if count} == {"0": 300, "1": 300}
