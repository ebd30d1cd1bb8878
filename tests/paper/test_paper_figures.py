import io
import itertools
import sys

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_hex

from dpmic_jax.paper import figures
from dpmic_jax.paper.family import Family
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mixtures import Mixture, generating_points
from dpmic_jax.paper.real import WIDE, Errors

BOXED = ("MICe-Lap", "MICr-Lap", "MICr-Geom", "ours", "ours, MIC*", "variation, MIC*")
MEASURED = ("MICe-Lap", "MICr-Lap", "MICr-Geom", "ours", "ours, debiased", WIDE)
STARS = np.linspace(0.05, 0.95, 30)
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def released(rng, n):
    return {
        name: rng.uniform(0, 1, (len(STARS), 6)) / np.sqrt(n) + STARS[:, None]
        for name in (*BOXED, "ours, noiseless")
    }


def errors(rng, pairs):
    return {
        name: Errors(rng.normal(0, 0.1, pairs), rng.uniform(1e-4, 0.1, pairs), rng.random(pairs))
        for name in MEASURED
    }


def a_family():
    """A distribution of every function at R^2 = 0.3 and 0.8, with made-up numbers."""
    places = [(name, r_squared) for name in FUNCTIONS for r_squared in (0.3, 0.8)]
    return Family(
        names=tuple(name for name, _ in places),
        r_squared=tuple(r_squared for _, r_squared in places),
        mixtures=tuple(Mixture(generating_points(FUNCTIONS[name]), 0.02) for name, _ in places),
        stars=np.linspace(0.1, 0.9, len(places)),
    )


def medians(ax):
    """Where each box's black line is: by position from left to right."""
    drawn = [line for line in ax.lines if line.get_linestyle() == "-"]
    lines = [line for line in drawn if line.get_color() == "black"]
    lines.sort(key=lambda line: line.get_xdata().mean())
    return [line.get_ydata()[0] for line in lines]


def colours(ax):
    boxes = sorted(ax.patches, key=lambda box: box.get_window_extent().x0)
    boxes = [to_hex(box.get_facecolor()) for box in boxes]
    return [colour for colour in boxes if colour != figures._BAND]


def legend(figure):
    (box,) = figure.legends
    return [text.get_text() for text in box.get_texts()]


def ticks(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def curve(ax, label):
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return line.get_xdata(), line.get_ydata()


def overlaps_a_panel(figure):
    figure.draw_without_rendering()
    (box,) = figure.legends
    return any(box.get_window_extent().overlaps(ax.get_window_extent()) for ax in figure.axes)


def test_synthetic_boxes_are_bias_above_variance_of_each_mechanism_at_each_n(rng):
    results = {n: released(rng, n) for n in (25, 100, 1000)}
    figure = figures.synthetic_boxes(results, STARS, 0.1)
    top, bottom = figure.axes
    wanted = [values[name] for values in results.values() for name in BOXED]
    assert medians(top) == pytest.approx([np.median(v.mean(axis=1) - STARS) for v in wanted])
    assert medians(bottom) == pytest.approx([np.median(v.var(axis=1)) for v in wanted])
    assert "bias" in top.get_ylabel()
    assert "variance" in bottom.get_ylabel()
    assert bottom.get_yscale() == "log"
    assert (ticks(bottom), bottom.get_xlabel()) == (["25", "100", "1000"], "n, records")
    assert "30 distributions, epsilon = 0.1" in figure.get_suptitle()
    assert not overlaps_a_panel(figure)


def test_boxes_have_the_colour_of_their_mechanism_in_the_legend(rng):
    figure = figures.synthetic_boxes({n: released(rng, n) for n in (25, 100)}, STARS, 1.0)
    figure.draw_without_rendering()
    (box,) = figure.legends
    shown = [to_hex(patch.get_facecolor()) for patch in box.get_patches()]
    assert len(set(shown)) == len(BOXED)
    for ax in figure.axes:
        assert colours(ax) == shown * 2
    assert legend(figure)[:2] == ["MICe-Lap", "MICr-Lap"]


def test_the_title_has_the_ratio_of_median_variances(rng):
    values = released(rng, 100)
    wide = STARS[:, None] + 4 * (values["ours"] - STARS[:, None])
    title = figures.synthetic_boxes({100: {**values, "MICr-Lap": wide}}, STARS, 1.0).get_suptitle()
    assert "ours varies 16 times less than MICr-Lap" in title


def test_a_variance_of_zero_stays_in_the_picture(rng):
    values = released(rng, 25)
    values["MICe-Lap"] = np.ones((len(STARS), 6))
    bottom = figures.synthetic_boxes({25: values}, STARS, 1.0).axes[1]
    low, _ = bottom.get_ylim()
    assert low < medians(bottom)[0] == pytest.approx(1e-6)


def test_real_boxes_are_of_the_pairs_in_each_bin(rng):
    mice = np.concatenate([rng.random(200), BINS])  # edges too: each opens a bin, 1 closes the last
    found = errors(rng, len(mice))
    figure = figures.real_boxes("Baseball", BINS, mice, found, 1.0)
    top, bottom = figure.axes
    inside = [(mice >= low) & (mice < high) for low, high in itertools.pairwise(BINS)]
    inside[-1] |= mice == 1
    assert medians(top) == pytest.approx(
        [np.median(found[name].bias[here]) for here in inside for name in MEASURED]
    )
    assert medians(bottom) == pytest.approx(
        [np.median(found[name].variance[here]) for here in inside for name in MEASURED]
    )
    assert ticks(bottom)[0] == f"0 to 0.2\n{inside[0].sum()} pairs"
    assert bottom.get_xlabel() == "MICe of the pair"
    assert "Baseball, epsilon = 1" in figure.get_suptitle()
    assert len(legend(figure)) == len(MEASURED)
    assert not overlaps_a_panel(figure)


def test_an_empty_bin_has_no_boxes(rng):
    mice = rng.uniform(0, 0.4, 50)
    top, bottom = figures.real_boxes("Spellman4381", BINS, mice, errors(rng, 50), 0.1).axes
    assert len(medians(top)) == len(medians(bottom)) == 2 * len(MEASURED)
    assert ticks(bottom)[-1] == "0.8 to 1\n0 pairs"
    assert bottom.get_xlim() == (-0.5, 4.5)


def test_error_curves_are_mean_absolute_errors(rng):
    results = {e: {n: released(rng, n) for n in (25, 400)} for e in (1.0, 0.1)}
    figure = figures.error_curves(results, STARS)
    labels = dict(zip((*BOXED, "ours, noiseless"), legend(figure), strict=True))
    assert labels["ours, noiseless"] == "MICr without noise"
    for ax, (epsilon, of) in zip(figure.axes, results.items(), strict=True):
        assert ax.get_title() == f"epsilon = {epsilon:g}"
        assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("n, records", "log", "log")
        for name, label in labels.items():
            records, drawn = curve(ax, label)
            assert list(records) == [25, 400]
            wanted = [np.abs(values[name] - STARS[:, None]).mean() for values in of.values()]
            assert list(drawn) == pytest.approx(wanted)
    assert "mean absolute error" in figure.axes[0].get_ylabel()
    assert "less than MICr-Lap" in figure.get_suptitle()
    assert not overlaps_a_panel(figure)


def test_relationships_have_a_panel_of_records_for_every_function():
    of = a_family()
    figure = figures.relationships(of, 0.8, 40, seed=3)
    at = [i for i, value in enumerate(of.r_squared) if value == 0.8]
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [f"{of.names[i]}, MIC* = {of.stars[i]:.2f}" for i in at]
    for ax in figure.axes:
        points, graph = ax.lines
        assert len(points.get_xdata()) == 40
        # A deviation of 0.02: all records are near the graph that is drawn.
        inside = np.isfinite(graph.get_ydata())
        line = np.stack([graph.get_xdata()[inside], graph.get_ydata()[inside]], axis=1)
        records = np.stack(points.get_data(), axis=1)
        apart = np.linalg.norm(records[:, None] - line, axis=2).min(axis=1)
        assert apart.max() < 0.1
    low, high = of.stars[at].min(), of.stars[at].max()
    assert f"between {low:.2f} and {high:.2f}; 40 records" in figure.get_suptitle()


def test_relationships_name_the_r_squared_there_are():
    with pytest.raises(ValueError, match=r"r_squared in \[0.3, 0.8\], got 0.5"):
        figures.relationships(a_family(), 0.5, 10, seed=0)


def test_consistency_has_a_line_for_every_function_and_their_mean(rng):
    found = {n: rng.uniform(0.5, 1, 21) / np.sqrt(n) for n in (100, 1000, 10_000)}
    figure = figures.consistency(found)
    (ax,) = figure.axes
    table = np.array(list(found.values()))
    drawn = np.array([line.get_ydata() for line in ax.lines])
    for line in table.T:
        assert np.isclose(drawn, line).all(axis=1).any()
    records, mean = curve(ax, "mean of all")
    assert list(records) == list(found)
    assert list(mean) == pytest.approx(table.mean(axis=1))
    ends = np.argsort(table[-1])[[0, -1]]
    assert [text.get_text() for text in ax.texts] == [list(FUNCTIONS)[i] for i in ends]
    assert f"{table[0].mean():.3f} at n = 100" in ax.get_title()
    assert ax.get_ylabel()
    assert ax.get_xlabel() == "n, records"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert not overlaps_a_panel(figure)


def test_png_is_the_figure_in_few_colours():
    figure = figures.consistency({n: np.full(21, 1 / n) for n in (10, 100)})
    full = io.BytesIO()
    figure.savefig(full, format="png", dpi=100)
    small = figures.png(figure)
    assert len(small) < len(full.getvalue()) / 2
    wanted, given = (image.imread(io.BytesIO(data)) for data in (full.getvalue(), small))
    assert given.shape[:2] == wanted.shape[:2]
    assert np.abs(given[..., :3] - wanted[..., :3]).mean() < 0.01


def test_matplotlib_is_named_when_it_is_missing(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (
        lambda: figures.synthetic_boxes({25: released(rng, 25)}, STARS, 1.0),
        lambda: figures.real_boxes("Baseball", BINS, rng.random(9), errors(rng, 9), 1.0),
        lambda: figures.error_curves({1.0: {25: released(rng, 25)}}, STARS),
        lambda: figures.relationships(a_family(), 0.8, 10, seed=0),
        lambda: figures.consistency({25: np.ones(21), 100: np.ones(21)}),
    ):
        with pytest.raises(ImportError, match=r"dpmic_jax\[plot\]"):
            draw()
