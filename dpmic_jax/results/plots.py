"""Figures of a result: heat map, clustered heat map, network. Each carries its privacy line."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.results.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmic_jax.results.screen_result import ScreenResult

# Light to dark in every kind of colour vision, and unlike the grey of what was not released.
_COLOURS = "YlGnBu"
_NOT_RELEASED, _MUTED, _INK, _WARNING = "#e3e3e3", "#9a9a9a", "#333333", "#b30000"
_WITH_NUMBERS = 15  # columns up to which the cells have room for their values
_WITH_LINES = 120  # and for white lines between them
_LARGEST = 9.0  # points, of labels
_SMALLEST = 5.0  # points: below this labels are left out rather than shrunk


@dataclass(frozen=True)
class Plots:
    """The figures of one result.

    Each takes the Axes to draw on, or makes a figure with pyplot, and returns the Axes: save it
    with `ax.figure.savefig(...)`.
    """

    result: "ScreenResult"

    def heatmap(self, ax: "Axes | None" = None) -> "Axes":
        """Released values as a square of cells, in the order of the table's columns.

        Grey cells were not released. The line in the colour bar is the level of independence.
        """
        return _heatmap(self.result, np.arange(len(self.result.names)), ax)

    def clustermap(self, ax: "Axes | None" = None) -> "Axes":
        """The heat map with dependent columns side by side, and the tree that puts them there.

        Average linkage of the distances 1 - MIC, leaves in the order that makes the distances
        of neighbours add up to the least.
        """
        from scipy.cluster.hierarchy import dendrogram

        result = self.result
        columns = len(result.names)
        every = columns * (columns - 1) // 2
        if len(result.mic) < every:
            raise ValueError(
                f"clustermap needs a value of each of {every} pairs, this result has "
                f"{len(result.mic)}: use heatmap() or network(threshold), or ask for all pairs"
            )
        tree = _tree(result.matrix)
        drawn = dendrogram(tree, no_plot=True)
        ax = _heatmap(result, np.array(drawn["leaves"]), ax, above=1.16)
        above = ax.inset_axes((0, 1.01, 1, 0.14), sharex=ax)
        # scipy puts leaf i at 10 i + 5, the heat map at i.
        for across, up in zip(drawn["icoord"], drawn["dcoord"], strict=True):
            above.plot((np.array(across) - 5) / 10, up, color=_INK, linewidth=0.8)
        above.set_ylim(0, 1.02 * max(tree[:, 2].max(), 1e-9))
        above.set_axis_off()
        return ax

    def network(self, threshold: float, ax: "Axes | None" = None) -> "Axes":
        """Columns on a circle, joined where a released value is above `threshold`.

        The wider and darker, the stronger. Columns that depend on each other sit side by side;
        those without a line are pale. `result.dependence_threshold` is a sensible threshold.
        """
        if not 0 <= threshold < 1:
            raise ValueError(f"expected 0 <= threshold < 1, got {threshold}")
        result = self.result
        columns = len(result.names)
        edges = result.mic > threshold
        joined = np.isin(np.arange(columns), result.pairs[edges])
        leaves = _leaves(np.nan_to_num(result.matrix))
        angle = np.empty(columns)
        angle[leaves] = np.pi / 2 - 2 * np.pi * np.arange(columns) / columns
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        names = [short(name) for name in result.names]
        letters = max(map(len, names))
        ax = _canvas(ax, 3.5 + 0.06 * columns + 0.13 * letters)
        _draw_edges(ax, points[result.pairs[edges]], result.mic[edges], threshold)
        ax.scatter(*points.T, s=28, color=np.where(joined, _INK, _NOT_RELEASED), zorder=3)
        # Names take up to half of the width, the circle what they leave.
        width, name = _points(ax), 0.58 * letters
        font = min(_LARGEST, width / 4 / name)
        reach = 1.05 / (1 - 2 * font * name / width)
        font = min(font, _font(np.pi * width / reach / columns))
        # Where not all names have room, those that a line leads to are shown.
        for i in np.flatnonzero(joined) if font < _SMALLEST else range(columns):
            left = points[i, 0] < -1e-9
            x, y = 1.05 * points[i]
            ax.text(
                x,
                y,
                names[i],
                rotation=math.degrees(angle[i]) + 180 * left,
                rotation_mode="anchor",
                horizontalalignment="right" if left else "left",
                verticalalignment="center",
                fontsize=max(font, _SMALLEST),
                color=_INK if joined[i] else _MUTED,
                parse_math=False,
            )
        limits = (-reach, reach)
        ax.set(xlim=limits, ylim=limits, xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
        _caption(ax, result, f"{edges.sum()} pairs above {threshold:.3g}")
        return ax


def _heatmap(
    result: "ScreenResult",
    order: Int[np.ndarray, " names"],
    ax: "Axes | None",
    *,
    above: float = 1.0,
) -> "Axes":
    """The heat map in some order of the columns, with its caption `above` times its height up."""
    columns = len(order)
    ax = _canvas(ax, 4.7 + 0.17 * columns)
    from matplotlib import colormaps  # here: `_canvas` has said so if there is no matplotlib

    matrix = result.matrix[np.ix_(order, order)]
    np.fill_diagonal(matrix, np.nan)  # a convention, not a measurement
    colours = colormaps[_COLOURS].with_extremes(bad=_NOT_RELEASED)
    image = ax.imshow(matrix, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    pitch = 0.75 * _points(ax) / columns  # a quarter is for the labels
    font = _font(pitch)
    step = math.ceil(_SMALLEST / font)
    labels = [short(result.names[i]) for i in order[::step]]
    style: dict[str, Any] = {"fontsize": max(font, _SMALLEST), "parse_math": False}
    ax.set_xticks(range(0, columns, step), labels, rotation=90, **style)
    ax.set_yticks(range(0, columns, step), labels, **style)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if columns <= _WITH_LINES:
        ax.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(columns - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=min(1.0, 12 / columns))
        ax.tick_params(which="minor", length=0)
    if columns <= _WITH_NUMBERS:
        for i, j in np.argwhere(~np.isnan(matrix)):
            ink = "white" if matrix[i, j] > 0.5 else _INK
            number = f"{matrix[i, j]:.2f}".removeprefix("0")
            size = min(0.85 * font, 0.4 * pitch)
            ax.text(j, i, number, ha="center", va="center", fontsize=size, color=ink)
    label = "private MICr; dependent above the line"
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, label=label)
    bar.outline.set_visible(False)
    if result.dependence_threshold <= 1:
        bar.ax.axhline(result.dependence_threshold, color=_INK, linewidth=1.5)
    _caption(ax, result, f"{len(result.mic)} of {result.candidates} pairs", above=above)
    return ax


def _draw_edges(
    ax: "Axes",
    ends: Float[np.ndarray, "edges 2 2"],
    values: Float[np.ndarray, " edges"],
    threshold: float,
) -> None:
    """Arcs bent towards the middle: quadratic Bézier curves."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    start, end = ends[:, 0, None], ends[:, 1, None]
    # The further apart, the deeper: neighbours are joined close to the circle.
    apart = np.linalg.norm(end - start, axis=2, keepdims=True)
    middle = (1 - np.minimum(0.75, 0.12 + 0.7 * apart)) * (start + end) / 2
    t = np.linspace(0, 1, 33)[:, None]
    curves = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    # The palest third would not be seen as a line.
    colours = ListedColormap(colormaps[_COLOURS](np.linspace(0.35, 1, 256)))
    # The strongest come last, on top: values fall.
    lines = LineCollection(list(curves[::-1]), cmap=colours, capstyle="round")
    lines.set(array=values[::-1], linewidths=0.8 + 4 * values[::-1], clim=(threshold, 1))
    ax.add_collection(lines)
    bar = ax.figure.colorbar(lines, ax=ax, shrink=0.5, label="private MICr")
    bar.outline.set_visible(False)


def _tree(similarity: Float[np.ndarray, "names names"]) -> Float[np.ndarray, "merges 4"]:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distances = squareform(1 - similarity, checks=False)
    return linkage(distances, "average", optimal_ordering=True)


def _leaves(similarity: Float[np.ndarray, "names names"]) -> Int[np.ndarray, " names"]:
    from scipy.cluster.hierarchy import leaves_list

    return leaves_list(_tree(similarity))


def _canvas(ax: "Axes | None", inches: float) -> "Axes":
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'dpmic_jax[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(1.1 * inches, inches), layout="compressed")
    return ax


def _points(ax: "Axes") -> float:
    """The shorter side of the axes, in points, as long as no labels take room from it."""
    return min(ax.bbox.width, ax.bbox.height) * 72 / ax.figure.dpi


def _font(pitch: float) -> float:
    """Font size for lines of text that are `pitch` points apart."""
    return min(_LARGEST, 0.8 * pitch)


def _caption(ax: "Axes", result: "ScreenResult", what: str, *, above: float = 1.0) -> None:
    """The privacy line, as a title: below a figure it is the first thing to be cut off.

    A seeded result is stamped across the picture too, where nothing can cut it off.
    """
    statement = result.statement
    line = f"{statement.cost}, n = {statement.n}\n{what}"
    colour = _INK
    if not statement.key_is_secret:
        line, colour = f"{statement.key}\n{line}", _WARNING
        stamp: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 30, "alpha": 0.3}
        size = _points(ax) / len(statement.key)
        ax.text(0.5, 0.5, statement.key, transform=ax.transAxes, size=size, color=colour, **stamp)
    ax.set_title(line, loc="left", y=above, fontsize=8, color=colour)
