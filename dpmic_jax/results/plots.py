"""Figures of a result: heat map, clustered heat map, network.

Those of a private result show its privacy cost.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.results.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmic_jax.results.power_curve import PowerCurve

# From light to dark in every kind of colour vision; the grey of missing values is not in it.
_COLOURS = "YlGnBu"
_NOT_RELEASED, _MUTED, _INK, _WARNING = "#e3e3e3", "#9a9a9a", "#333333", "#b30000"
_WITH_NUMBERS = 15  # most columns whose cells have room for their values
_WITH_LINES = 120  # most columns whose cells have room for lines between them
_LARGEST = 9.0  # points of the largest labels
_SMALLEST = 5.0  # points of the smallest labels; where they do not fit, some are left out


class Scores(NamedTuple):
    """What figures show of a result.

    Attributes:
      names: names of the columns of the table.
      pairs: positions of x and y of every pair that has a value.
      values: in [0, 1].
      candidates: number of pairs of the table that might have one.
      label: what the values are.
      title: line above the figure, such as the privacy cost.
      warning: text that is stamped across the figure; or an empty text.
    """

    names: tuple[str, ...]
    pairs: Int[np.ndarray, "rows 2"]
    values: Float[np.ndarray, " rows"]
    candidates: int
    label: str
    title: str
    warning: str = ""

    @property
    def matrix(self) -> Float[np.ndarray, "names names"]:
        """The values, symmetric; NaN for pairs without one, and 1 of a column with itself."""
        return square(self.pairs, self.values, len(self.names))


def square(
    pairs: Int[np.ndarray, "rows 2"], values: Float[np.ndarray, " rows"], columns: int
) -> Float[np.ndarray, "columns columns"]:
    """A symmetric matrix of the values of pairs: NaN for others, 1 on the diagonal."""
    matrix = np.full((columns, columns), np.nan)
    x, y = pairs.T
    matrix[x, y] = matrix[y, x] = values
    np.fill_diagonal(matrix, 1)
    return matrix


@dataclass(frozen=True)
class Plots:
    """The figures of one result.

    Each takes the Axes to draw on, or makes a figure with pyplot, and returns the Axes: save it
    with `ax.figure.savefig(...)`.
    """

    result: Scores

    def heatmap(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of the values, in the order of the table's columns; grey cells have none."""
        return _heatmap(self.result, np.arange(len(self.result.names)), ax)

    def clustermap(self, ax: "Axes | None" = None) -> "Axes":
        """The heat map with columns in the order of a hierarchical clustering, and its tree.

        The clustering is average linkage of the distances 1 - MIC. Its leaves are ordered so that
        the distances of neighbours have the least sum.
        """
        from scipy.cluster.hierarchy import dendrogram

        result = self.result
        columns = len(result.names)
        every = columns * (columns - 1) // 2
        if len(result.values) < every:
            raise ValueError(
                f"clustermap needs values of all {every} pairs, this result has "
                f"{len(result.values)}: use heatmap() or network(threshold), or ask for all pairs"
            )
        tree = _tree(result.matrix)
        drawn = dendrogram(tree, no_plot=True)
        ax = _heatmap(result, np.array(drawn["leaves"]), ax, above=1.16)
        above = ax.inset_axes((0, 1.01, 1, 0.14), sharex=ax)
        # scipy draws leaf i at 10 i + 5, the heat map at i.
        for across, up in zip(drawn["icoord"], drawn["dcoord"], strict=True):
            above.plot((np.array(across) - 5) / 10, up, color=_INK, linewidth=0.8)
        above.set_ylim(0, 1.02 * max(tree[:, 2].max(), 1e-9))
        above.set_axis_off()
        return ax

    def network(self, threshold: float, ax: "Axes | None" = None) -> "Axes":
        """Columns on a circle, joined where a value is above `threshold`.

        Wider and darker lines are stronger. Columns that depend on each other are placed side by
        side; those without a line are pale.
        """
        if not 0 <= threshold < 1:
            raise ValueError(f"expected 0 <= threshold < 1, got {threshold}")
        result = self.result
        columns = len(result.names)
        edges = result.values > threshold
        joined = np.isin(np.arange(columns), result.pairs[edges])
        order = leaves(np.nan_to_num(result.matrix))
        angle = np.empty(columns)
        angle[order] = np.pi / 2 - 2 * np.pi * np.arange(columns) / columns
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        names = [short(name) for name in result.names]
        letters = max(map(len, names))
        ax = canvas(ax, 3.5 + 0.06 * columns + 0.13 * letters)
        _draw_edges(ax, result.label, points[result.pairs[edges]], result.values[edges], threshold)
        ax.scatter(*points.T, s=28, color=np.where(joined, _INK, _NOT_RELEASED), zorder=3)
        # Names take up to half of the width, and the circle takes the rest.
        width, name = _points(ax), 0.58 * letters
        font = min(_LARGEST, width / 4 / name)
        reach = 1.05 / (1 - 2 * font * name / width)
        font = min(font, _font(np.pi * width / reach / columns))
        # If there is no room for all names, only those with a line are shown.
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


def draw_curve(curve: "PowerCurve", ax: "Axes | None") -> "Axes":
    """The smallest MIC that is found against epsilon, with a dot at the screen's own epsilon."""
    ax = canvas(ax, 3.6)
    ax.plot(
        [point.epsilon for point in curve.found],
        [point.mic for point in curve.found],
        color="#225ea8",
        marker=".",
    )
    if math.isfinite(curve.own.mic):
        ax.plot(curve.epsilon, curve.own.mic, color=_WARNING, marker="o", linestyle="none")
    ends = curve.points[0].epsilon, curve.points[-1].epsilon
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=(curve.lowest, 1))
    ax.set(xlabel="epsilon", ylabel="smallest MIC found")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.grid(color=_NOT_RELEASED, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    title = f"{curve.asked}, n = {curve.n}, delta = {curve.delta:g}"
    ax.set_title(title, loc="left", fontsize=8, parse_math=False)
    return ax


def _heatmap(
    result: Scores,
    order: Int[np.ndarray, " names"],
    ax: "Axes | None",
    *,
    above: float = 1.0,
) -> "Axes":
    """The heat map with columns in `order`, and its caption at `above` times its height."""
    columns = len(order)
    ax = canvas(ax, 4.7 + 0.17 * columns)
    from matplotlib import colormaps  # after `canvas`, whose error says how to install it

    matrix = result.matrix[np.ix_(order, order)]
    np.fill_diagonal(matrix, np.nan)  # a convention, not a measurement
    colours = colormaps[_COLOURS].with_extremes(bad=_NOT_RELEASED)
    image = ax.imshow(matrix, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    pitch = 0.75 * _points(ax) / columns  # a quarter of the side is for the labels
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
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, label=result.label)
    bar.outline.set_visible(False)
    _caption(ax, result, f"{len(result.values)} of {result.candidates} pairs", above=above)
    return ax


def _draw_edges(
    ax: "Axes",
    label: str,
    ends: Float[np.ndarray, "edges 2 2"],
    values: Float[np.ndarray, " edges"],
    threshold: float,
) -> None:
    """Draw edges as quadratic Bézier curves that bend towards the centre."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    start, end = ends[:, 0, None], ends[:, 1, None]
    # Curves of distant columns bend more; those of neighbours stay close to the circle.
    apart = np.linalg.norm(end - start, axis=2, keepdims=True)
    middle = (1 - np.minimum(0.75, 0.12 + 0.7 * apart)) * (start + end) / 2
    t = np.linspace(0, 1, 33)[:, None]
    curves = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    # The palest third of the colours is hard to see as a line.
    colours = ListedColormap(colormaps[_COLOURS](np.linspace(0.35, 1, 256)))
    # The strongest are drawn last, on top.
    order = np.argsort(values)
    lines = LineCollection(list(curves[order]), cmap=colours, capstyle="round")
    lines.set(array=values[order], linewidths=0.8 + 4 * values[order], clim=(threshold, 1))
    ax.add_collection(lines)
    bar = ax.figure.colorbar(lines, ax=ax, shrink=0.5, label=label)
    bar.outline.set_visible(False)


def _tree(similarity: Float[np.ndarray, "names names"]) -> Float[np.ndarray, "merges 4"]:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distances = squareform(1 - similarity, checks=False)
    return linkage(distances, "average", optimal_ordering=True)


def leaves(similarity: Float[np.ndarray, "names names"]) -> Int[np.ndarray, " names"]:
    """The order of columns in which a hierarchical clustering puts those that are alike."""
    from scipy.cluster.hierarchy import leaves_list

    return leaves_list(_tree(similarity))


def canvas(ax: "Axes | None", inches: float) -> "Axes":
    """The Axes to draw on: those given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'dpmic_jax[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(1.1 * inches, inches), layout="compressed")
    return ax


def _points(ax: "Axes") -> float:
    """The shorter side of the axes in points, before labels take room from it."""
    return min(ax.bbox.width, ax.bbox.height) * 72 / ax.figure.dpi


def _font(pitch: float) -> float:
    """Font size for lines of text `pitch` points apart."""
    return min(_LARGEST, 0.8 * pitch)


def _caption(ax: "Axes", result: Scores, what: str, *, above: float = 1.0) -> None:
    """Show the privacy cost as a title, where it is cut off less easily than below a figure.

    A seeded result is also stamped across the picture, where it cannot be cut off.
    """
    line, colour = f"{result.title}\n{what}", _INK
    if result.warning:
        line, colour = f"{result.warning}\n{line}", _WARNING
        stamp: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 30, "alpha": 0.3}
        size = _points(ax) / len(result.warning)
        ax.text(0.5, 0.5, result.warning, transform=ax.transAxes, size=size, color=colour, **stamp)
    ax.set_title(line, loc="left", y=above, fontsize=8, color=colour)
