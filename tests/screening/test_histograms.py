"""Histograms for a report: one run for one table, its bounds and its pairs."""

import shutil

import numpy as np
import pytest
from small import BOUNDS, STATISTIC, columns, screened

from dpmic_jax import Budget, secret_key
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
