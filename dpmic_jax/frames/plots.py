"""Figures of exact values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmic_jax.results.plots import Plots, Scores, canvas
from dpmic_jax.results.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmic_jax.frames.result import Pairwise

_FOUND, _OTHERS = "#225ea8", "#c7c7c7"


def scores_of(result: "Pairwise") -> Scores:
    """What figures and the report show: values of pairs, and none of a column with itself."""
    pairs = result.pairs
    values = result.matrix[tuple(pairs.T)]
    known = ~np.isnan(values)
    if np.any((values[known] < 0) | (values[known] > 1)):
        raise ValueError(f"figures show values in [0, 1], such as mic; {result.measure} has others")
    names = result.x_names
    if result.x_columns is not result.y_columns:
        pairs, names = pairs + np.array([0, len(names)]), names + result.y_names
    return Scores(
        names=names,
        pairs=pairs[known],
        values=values[known],
        candidates=len(pairs),
        label=result.measure,
        title=f"exact {result.statistic}, not private, n = {result.records.max()}",
    )


@dataclass(frozen=True)
class PairPlots(Plots):
    """The figures of exact values: those of a screen, and p-values against values."""

    found: "Pairwise"

    def volcano(self, ax: "Axes | None" = None, *, level: float = 0.05, named: int = 8) -> "Axes":
        """P-values against the values; dark where the adjusted p-value is at most `level`.

        Args:
          ax: the Axes to draw on; by default those of a new figure.
          level: the level of `control`.
          named: how many of the strongest dark pairs have their names.
        """
        found = self.found
        significant = found.adjusted <= level  # says if there are no p-values
        pairs, columns = found.pairs, found.columns()
        ax = canvas(ax, 4.0)
        value, p = columns[found.measure], -np.log10(columns["p"])
        ax.scatter(value, p, s=14, c=np.where(significant, _FOUND, _OTHERS), linewidths=0)
        for at in np.flatnonzero(significant)[:named]:
            names = f"{short(columns['x'][at], 14)}, {short(columns['y'][at], 14)}"
            ax.annotate(
                names,
                (value[at], p[at]),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7,
                parse_math=False,
            )
        ax.set(xlabel=found.measure, ylabel="-log10 p")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(
            f"{self.result.title}\n{significant.sum()} of {len(pairs)} pairs at {level:g}",
            loc="left",
            fontsize=8,
        )
        return ax
