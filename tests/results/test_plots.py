import io
import itertools
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from made_results import result_of
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from dpmic_jax.results import SEEDED

GROUPS = (0, 1, 2, 0, 1, 2, 0, 1, 3, 3)
NAMES = tuple(f"group{group}_{i}" for i, group in enumerate(GROUPS))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def grouped(**changes):
    """Columns of one group depend on each other, others hardly."""
    rng = np.random.default_rng(1)
    mic = [
        rng.uniform(0.6, 1) if a == b else rng.uniform(0, 0.2)
        for a, b in itertools.combinations(GROUPS, 2)
    ]
    return result_of(NAMES, mic=np.array(mic), **changes)


def wide(columns):
    return result_of(tuple(f"a_long_column_name_{i:03d}" for i in range(columns)))


def labels(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def drawn(ax):
    """The picture's cells; NaN where they are grey."""
    return np.ma.filled(ax.images[0].get_array().astype(float), np.nan)


def off_diagonal(matrix):
    return np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)


def caption(ax):
    (text,) = [text for text in ax.findobj(Text) if text.get_text().count("epsilon")]
    return text


def edges(ax):
    (lines,) = [thing for thing in ax.collections if isinstance(thing, LineCollection)]
    return lines


def picture(ax):
    file = io.BytesIO()
    ax.figure.savefig(file, format="png", dpi=50)
    return file.getvalue()


def overlaps(texts, ax):
    """Pairs of upright or sideways texts whose boxes intersect."""
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.parametrize("secret", [True, False])
@pytest.mark.parametrize(
    "draw",
    [
        lambda plot, ax: plot.heatmap(ax),
        lambda plot, ax: plot.clustermap(ax),
        lambda plot, ax: plot.network(0.3, ax),
    ],
    ids=["heatmap", "clustermap", "network"],
)
def test_every_figure_is_drawn_where_asked_and_says_what_it_cost(draw, secret):
    found = grouped(key_is_secret=secret)
    _, mine = plt.subplots()
    assert draw(found.plot, mine) is mine
    made = draw(found.plot, None)
    assert made.figure is not mine.figure
    for ax in (mine, made):
        assert "epsilon = 1.25, delta = 3e-07, n = 20000" in ax.get_title(loc="left")
        ax.figure.draw_without_rendering()
        box = caption(ax).get_window_extent()
        assert ax.figure.bbox.containsx(box.x0)
        assert ax.figure.bbox.containsx(box.x1)
        # Only a tree takes the caption's room in axes that make no room for what is drawn.
        assert ax.figure.bbox.containsy(box.y1) or (ax is mine and ax.child_axes)
        assert (SEEDED in ax.get_title(loc="left")) is not secret
        stamps = [text for text in ax.texts if text.get_text() == SEEDED]
        assert len(stamps) == (not secret)
        for stamp in stamps:
            inside = stamp.get_window_extent()
            assert ax.bbox.containsx(inside.x0)
            assert ax.bbox.containsx(inside.x1)
        assert picture(ax).startswith(b"\x89PNG")


def test_heatmap_is_the_matrix_in_the_tables_order():
    found = grouped()
    ax = found.plot.heatmap()
    np.testing.assert_array_equal(drawn(ax), off_diagonal(found.matrix))
    assert labels(ax) == list(NAMES)
    assert ax.images[0].get_clim() == (0, 1)
    numbers = {text.get_text() for text in ax.texts}
    assert numbers == {f"{mic:.2f}".removeprefix("0") for mic in found.mic}


def test_heatmap_leaves_out_what_was_not_released():
    found = grouped().top(5)
    cells = drawn(found.plot.heatmap())
    assert np.count_nonzero(~np.isnan(cells)) == 10
    np.testing.assert_array_equal(cells, off_diagonal(found.matrix))


def test_clustermap_is_the_matrix_with_groups_side_by_side():
    found = grouped()
    ax = found.plot.clustermap()
    order = [NAMES.index(name) for name in labels(ax)]
    assert sorted(order) == list(range(10))
    np.testing.assert_array_equal(drawn(ax), off_diagonal(found.matrix[np.ix_(order, order)]))
    runs = [group for group, _ in itertools.groupby(GROUPS[i] for i in order)]
    assert len(runs) == len(set(GROUPS))


def test_clustermaps_tree_joins_at_average_distances():
    names = ("a", "b", "c")
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    found = result_of(names, pairs=pairs, mic=np.array([0.25, 0.5, 0.125]), candidates=3)
    ax = found.plot.clustermap()
    (tree,) = ax.child_axes
    # First a and c at 1/2, then b at the mean of 3/4 and 7/8.
    heights = sorted(line.get_ydata().max() for line in tree.lines)
    assert heights == pytest.approx([1 / 2, 13 / 16])
    assert labels(ax) in (["b", "a", "c"], ["c", "a", "b"])


def test_clustermap_needs_every_pair():
    with pytest.raises(ValueError, match="all 45 pairs, this result has 9: use heatmap"):
        grouped().top(9).plot.clustermap()


@pytest.mark.parametrize("threshold", [0, 0.1, 0.5, 0.8, 0.999])
def test_network_has_an_edge_for_each_value_above_the_threshold(threshold):
    # The strongest are on top, though rows are not in the order of their values.
    found = grouped(distance=np.random.default_rng(2).random(45) / 8)
    assert np.any(np.diff(found.mic) > 0)
    ax = found.plot.network(threshold)
    above = found.mic[found.mic > threshold]
    lines = edges(ax)
    assert len(lines.get_segments()) == len(above)
    np.testing.assert_array_equal(np.sort(lines.get_array()), np.sort(above))
    widths = np.broadcast_to(lines.get_linewidths(), len(above)) if len(above) else np.empty(0)
    assert np.all(np.diff(widths) >= 0)
    assert f"{len(above)} pairs above" in ax.get_title(loc="left")
    picture(ax)


def test_networks_edges_end_at_their_columns():
    found = grouped().top(4)
    ax = found.plot.network(0.3)
    (dots,) = [thing for thing in ax.collections if not isinstance(thing, LineCollection)]
    places = np.asarray(dots.get_offsets())
    ends = {
        frozenset(np.linalg.norm(places - end, axis=1).argmin() for end in (line[0], line[-1]))
        for line in edges(ax).get_segments()
    }
    assert ends == {frozenset(pair) for pair in found.pairs.tolist()}
    assert len(np.unique(places.round(6), axis=0)) == len(NAMES)


def test_network_pales_columns_without_an_edge():
    found = grouped().top(1)
    ax = found.plot.network(0.3)
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    assert set(colours) == set(NAMES)
    joined = {NAMES[i] for i in found.pairs[0]}
    assert {colours[name] for name in joined}.isdisjoint(
        {colours[name] for name in set(NAMES) - joined}
    )


@pytest.mark.parametrize("threshold", [-0.1, 1, float("nan")])
def test_network_refuses_a_threshold_that_no_value_or_every_value_passes(threshold):
    with pytest.raises(ValueError, match="0 <= threshold < 1"):
        grouped().plot.network(threshold)


@pytest.mark.parametrize("columns", [3, 12, 60])
def test_labels_of_maps_do_not_overlap(columns):
    for draw in ("heatmap", "clustermap"):
        ax = getattr(wide(columns).plot, draw)()
        assert labels(ax)[-1] == f"a_long_column_name_{columns - 1:03d}" or draw == "clustermap"
        assert len(labels(ax)) == columns
        assert not overlaps([*ax.get_xticklabels(), *ax.get_yticklabels(), caption(ax)], ax)
        trees = [tree.get_window_extent() for tree in ax.child_axes]
        assert not any(caption(ax).get_window_extent().overlaps(tree) for tree in trees)


@pytest.mark.parametrize("columns", [3, 12, 60])
def test_labels_of_networks_do_not_overlap(columns):
    ax = wide(columns).plot.network(0.9)
    assert len(ax.texts) == columns
    ax.figure.draw_without_rendering()
    box = caption(ax).get_window_extent()
    assert not any(box.overlaps(text.get_window_extent()) for text in ax.texts)
    # Turned texts have wide boxes. Two neighbours keep clear of each other if they have room
    # where they are closest, on the circle.
    (dots,) = [thing for thing in ax.collections if not isinstance(thing, LineCollection)]
    places = ax.transData.transform(np.asarray(dots.get_offsets()))
    apart = np.linalg.norm(places[:, None] - places, axis=2) + 1e9 * np.eye(columns)
    height = ax.texts[0].get_fontsize() * ax.figure.dpi / 72
    assert apart.min() > height


def test_too_many_labels_are_left_out_rather_than_piled_up():
    _, ax = plt.subplots(figsize=(3, 3))
    wide(90).plot.heatmap(ax)
    assert 5 < len(labels(ax)) < 90
    assert not overlaps(ax.get_yticklabels(), ax)
    _, ax = plt.subplots(figsize=(3, 3))
    found = wide(90).top(4)
    found.plot.network(0.1, ax)
    assert {text.get_text() for text in ax.texts} == {found.names[i] for i in found.pairs.ravel()}


def test_names_are_not_taken_for_formulas_or_lines():
    names = ("cost in $", "gain in $", "two\nlines", "x" * 80)
    ax = result_of(names).plot.heatmap()
    assert labels(ax) == ["cost in $", "gain in $", "two?lines", "x" * 27 + "…"]
    assert not any(label.get_parse_math() for label in ax.get_xticklabels())
    assert not any(text.get_parse_math() for text in result_of(names).plot.network(0.5).texts)


def test_colours_grow_darker_with_the_value():
    """So they are told apart in grey, and in every kind of colour vision."""
    ax = grouped().plot.heatmap()
    red, green, blue, _ = ax.images[0].cmap(np.linspace(0, 1, 64)).T
    grey = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    assert np.all(np.diff(grey) < 0)


def test_a_result_without_pairs_can_be_drawn():
    none = result_of(pairs=np.empty((0, 2), int), mic=np.empty(0))
    assert np.all(np.isnan(drawn(none.plot.heatmap())))
    ax = none.plot.network(0.5)
    assert len(edges(ax).get_segments()) == 0
    picture(ax)


def test_matplotlib_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (grouped().plot.heatmap, lambda: grouped().plot.network(0.5)):
        with pytest.raises(ImportError, match=r"dpmic_jax\[plot\]"):
            draw()
