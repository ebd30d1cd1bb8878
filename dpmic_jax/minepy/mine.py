"""MINE: the statistics of one pair of columns, with minepy's methods."""

from typing import Any

import numpy as np
from jaxtyping import Float

from dpmic_jax.mic import characteristic as read
from dpmic_jax.mic.characteristic import Characteristic
from dpmic_jax.minepy import one_pair
from dpmic_jax.minepy.partitions import cut_columns
from dpmic_jax.minepy.settings import Settings

# How far below its threshold an entry may be and still count for the minimum cell number.
SLACK = 1e-7


class MINE:
    """Maximal information-based nonparametric exploration of a pair of columns.

    Compute the scores of a pair, then read any statistic off them; the next pair replaces them.
    A statistic that is asked for before there are scores is an error.

    Args:
      alpha: in (0, 1] for grids of at most B = max(n^alpha, 4) cells, or from 4 on the number
        of cells itself, B = min(alpha, n).
      c: how many times more clumps than parts an axis is cut into before they are merged.
      est: "mic_approx", the procedure of 2011, or "mic_e", the equicharacteristic matrix.
    """

    def __init__(self, alpha: float = 0.6, c: float = 15, est: str = "mic_approx"):
        self._settings = Settings(alpha, c, est)
        self._found: Characteristic | None = None

    @property
    def alpha(self) -> float:
        """The exponent of B(n) = n^alpha, or B itself where alpha >= 4."""
        return self._settings.alpha

    @property
    def c(self) -> float:
        """How many times more clumps than parts are considered."""
        return self._settings.c

    @property
    def est(self) -> str:
        """The estimator: "mic_approx" or "mic_e"."""
        return self._settings.est

    def compute_score(self, x: Any, y: Any) -> None:
        """Score two columns of numbers, record by record."""
        values = np.stack(same_length(column(x, "x"), column(y, "y")))
        plan = self._settings.plan(values.shape[1])
        self._found = one_pair.score(cut_columns(values, plan.grids), 0, 1, plan)

    def computed(self) -> bool:
        """Whether there are scores."""
        return self._found is not None

    def get_score(self) -> list[Float[np.ndarray, "_"]]:
        """The characteristic matrix: entry `[i][j]` has i + 2 parts on y and j + 2 on x."""
        found = self._scores()
        sizes = np.unique(found.entries.y_parts)
        rows = [found.values[found.entries.y_parts == size] for size in sizes]
        return rows or [np.zeros(0)]

    def mic(self) -> float:
        """The maximal information coefficient: the largest entry."""
        return self._read(read.mic)

    def mas(self) -> float:
        """The maximum asymmetry score: the largest difference of an entry and its mirror."""
        return self._read(read.mas)

    def mev(self) -> float:
        """The maximum edge value: the largest entry with two parts on an axis."""
        return self._read(read.mev)

    def mcn(self, eps: float = 0) -> float:
        """The minimum cell number: log2 of the fewest cells that reach (1 - eps) MIC."""
        if not eps >= 0:
            raise ValueError(f"expected eps >= 0, got {eps}")

        def fewest(found: Characteristic) -> read.Values:
            cells = np.log2(found.entries.x_parts * found.entries.y_parts)
            return cells[found.values + SLACK >= (1 - eps) * found.mic].min()

        return self._read(fewest)

    def mcn_general(self) -> float:
        """The minimum cell number with eps = 1 - MIC."""
        return self.mcn(1 - min(self.mic(), 1.0))

    def gmic(self, p: float = -1) -> float:
        """The generalised mean information coefficient, the power mean of exponent p."""
        return self._read(lambda found: read.gmic(found, p))

    def tic(self, norm: bool = False) -> float:
        """The total information coefficient: the sum of all entries, or their mean."""
        return self._read(read.tic_normalised if norm else read.tic)

    def _scores(self) -> Characteristic:
        if self._found is None:
            raise ValueError("there are no scores yet: call compute_score(x, y) first")
        return self._found

    def _read(self, statistic: read.Measure) -> float:
        found = self._scores()
        # With fewer than 4 cells there is no grid, and nothing to read off.
        return float(statistic(found)) if found.values.size else 0.0


def column(values: Any, argument: str) -> Float[np.ndarray, " n"]:
    """A column of numbers in float64, as minepy has it."""
    found = numbers(values, argument)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"expected {argument} to be one column, got shape {found.shape}")
    return found


def numbers(values: Any, argument: str) -> Float[np.ndarray, "..."]:
    """Any array of numbers in float64; NaN has no rank, so it is refused."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"expected {argument} to hold numbers only") from None
    if np.isnan(found).any():
        raise ValueError(f"{argument} has NaN values; drop or fill these records first")
    return found


def same_length(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Check that two arrays have as many records."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"expected as many records on both sides, got {x.shape[-1]} and {y.shape[-1]}"
        )
    return x, y
