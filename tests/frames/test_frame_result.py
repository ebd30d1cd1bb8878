import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import false_discovery_control

from dpmic_jax import MICe, TableTest, pairwise
from dpmic_jax.inference import BenjaminiHochberg, FamilyWise
from dpmic_jax.mic.characteristic import tic

STATISTIC = MICe(B=12, c=2)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    x = rng.random(60)
    holes = np.where(rng.random(60) < 0.2, np.nan, rng.random(60))
    return pd.DataFrame({"x": x, "<y>": x**2, "kind": list("abc") * 20, "holes": holes})


@pytest.fixture(scope="module")
def found(frame):
    return pairwise(frame, statistic=STATISTIC, p_values=TableTest(draws=999))


@pytest.fixture
def no_window():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def test_rows_hold_what_the_matrices_hold(found):
    tidy = found.to_frame()
    assert list(tidy.columns) == ["x", "y", "mic", "records", "p", "p_adjusted"]
    place = {name: i for i, name in enumerate(found.x_names)}
    for row in tidy.itertuples():
        at = place[row.x], place[row.y]
        assert (row.mic, row.records, row.p) == (
            found.matrix[at],
            found.records[at],
            found.p_values[at],
        )
    assert tidy["mic"].is_monotonic_decreasing
    assert found.top(2).equals(tidy[:2])
    assert found.ranked()[0][:2] == ("x", "<y>")
    assert np.isnan(np.diag(found.p_values)).all()
    with pytest.raises(ValueError, match="k >= 1"):
        found.top(0)


@pytest.mark.parametrize(("control", "method"), [(BenjaminiHochberg(), "bh"), (FamilyWise(), None)])
def test_p_values_are_adjusted_by_the_control(frame, control, method):
    found = pairwise(frame, statistic=STATISTIC, p_values=TableTest(draws=999), control=control)
    p = found.to_frame()["p"].to_numpy()
    if method is None:  # Holm
        order = np.argsort(p, kind="stable")
        steps = p[order] * np.arange(len(p), 0, -1)
        expected = np.empty(len(p))
        expected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    else:
        expected = false_discovery_control(p, method=method)
    np.testing.assert_allclose(found.adjusted, expected)


def test_wide_frames_are_of_the_callers_library(frame, found):
    wide = found.wide()
    assert wide.loc["x", "kind"] == found.matrix[0, 2]
    other = pairwise(pl.from_pandas(frame), statistic=STATISTIC)
    wide = other.wide()
    assert isinstance(wide, pl.DataFrame)
    assert wide.columns == ["column", "x", "<y>", "kind", "holes"]
    assert wide["column"].to_list() == wide.columns[1:]
    assert isinstance(other.top(1), pl.DataFrame)
    assert isinstance(other.describe(), pl.DataFrame)


def test_short_texts_show_neither_matrix_nor_records(frame, found):
    for text in (repr(found), found._repr_html_()):
        assert "Not private: exact values of MICe" in text
        assert "array(" not in text
        assert f"{frame['x'][0]:.6f}"[:8] not in text
    assert len(repr(pairwise(np.random.default_rng(0).random((20, 9)))).splitlines()) == 17
    assert "&lt;y&gt;" in found._repr_html_()


def test_there_are_no_adjusted_values_without_p_values(frame):
    with pytest.raises(ValueError, match="p_values=True"):
        _ = pairwise(frame, statistic=STATISTIC).adjusted


@pytest.mark.usefixtures("no_window")
def test_figures_show_the_exact_values(found):
    ax = found.plot.heatmap()
    shown = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(shown[off], found.matrix[off])
    assert "not private" in ax.get_title(loc="left")
    found.plot.clustermap()
    found.plot.network(0.3)
    ax = found.plot.volcano(named=1)
    points = ax.collections[0].get_offsets()
    tidy = found.to_frame()
    np.testing.assert_allclose(points, np.stack([tidy["mic"], -np.log10(tidy["p"])], axis=1))
    assert [text.get_text() for text in ax.texts] == ["x, <y>"]


@pytest.mark.usefixtures("no_window")
def test_figures_of_other_measures_than_shares_are_refused(frame):
    found = pairwise(frame, statistic=STATISTIC, measure=tic)
    with pytest.raises(ValueError, match="tic has others"):
        _ = found.plot


@pytest.mark.usefixtures("no_window")
def test_cross_pairs_are_drawn_and_written(frame):
    found = pairwise(frame[["x"]], Y=frame[["kind", "holes"]], statistic=STATISTIC)
    assert found.matrix.shape == (1, 2)
    found.plot.heatmap()
    assert "2 pairs of 3 columns" in found.to_html()
    assert found.wide().shape == (1, 2)


def test_the_page_has_every_pair_and_how_columns_were_taken(found, tmp_path):
    path = tmp_path / "page.html"
    page = found.to_html(path)
    assert path.read_text() == page
    values = [float(text) for text in re.findall(r'<data value="([^"]+)">', page)]
    tidy = found.to_frame()
    expected = tidy[["mic", "records", "p", "p_adjusted"]].to_numpy().ravel()
    np.testing.assert_array_equal(values, expected)
    assert page.count("★</td>") == (tidy["p_adjusted"] <= 0.05).sum()
    assert "nominal: 3 categories, no order is used" in page
    assert 'id="privacy"' not in page
    assert "<y>" not in page
    content = json.loads(page.split('id="content">')[1].split("</script>")[0])
    assert content["names"] == ["x", "<y>", "kind", "holes"]
    assert "://" not in page


def test_a_page_without_p_values_has_no_stars(frame):
    page = pairwise(frame, statistic=STATISTIC).to_html()
    assert '<label hidden="hidden"><input id="starred"' in page
    assert "★</td>" not in page
