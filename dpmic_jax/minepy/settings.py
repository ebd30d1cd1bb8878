"""Which grids minepy scores: alpha, c and the estimator, checked, and the plan they make."""

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.mic.characteristic import Characteristic, Entries
from dpmic_jax.mic.grids import Grid

ESTIMATORS = ("mic_approx", "mic_e")


@dataclass(frozen=True)
class Settings:
    """What `MINE`, `pstats` and `cstats` take.

    Attributes:
      alpha: the exponent of the cell budget B = max(n^alpha, 4) if in (0, 1], or, from 4 on,
        the budget itself, B = min(alpha, n).
      c: how many times more clumps than parts an axis is cut into before they are merged.
      est: "mic_approx", the procedure of 2011, or "mic_e", the equicharacteristic matrix.
    """

    alpha: float
    c: float
    est: str

    def __post_init__(self):
        for name in ("alpha", "c"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"expected {name} to be a number, got {value!r}")
        if not (0 < self.alpha <= 1 or 4 <= self.alpha < math.inf):
            raise ValueError(
                f"expected alpha in (0, 1], for n^alpha cells, or the number of cells itself, "
                f"at least 4; got {self.alpha}"
            )
        if not 0 < self.c < math.inf:
            raise ValueError(f"expected c > 0, got {self.c}; 15 and 5 are usual")
        if self.est not in ESTIMATORS:
            raise ValueError(f"expected est to be one of {ESTIMATORS}, got {self.est!r}")

    def cells(self, n: int) -> int:
        """The most cells of a grid on n records; below 4 there is none."""
        return math.floor(max(n**self.alpha, 4) if self.alpha <= 1 else min(self.alpha, n))

    def plan(self, n: int) -> "Plan":
        """Every grid to score on n records, and the matrix that they make."""
        return _plan(self.cells(n), float(self.c), self.est, n)


class Plan(NamedTuple):
    """Grids to score, and where their scores go.

    Attributes:
      grids: `rows` fixed parts of one axis and 2 .. `parts` parts of the other, merged from at
        most `master` superclumps; scored for y fixed and for x fixed.
      entries: those of the matrix, in minepy's order: by parts of y, then by parts of x.
      upright: for each entry, the score with y fixed that it takes, if it takes one, else one
        past the last.
      flipped: the same with x fixed.
    """

    grids: tuple[Grid, ...]
    entries: Entries
    upright: Int[np.ndarray, " entries"]
    flipped: Int[np.ndarray, " entries"]

    @property
    def parts(self) -> Int[np.ndarray, " scored"]:
        """How many parts were merged, for each score of an orientation."""
        return np.array([k for grid in self.grids for k in range(2, grid.parts + 1)], np.int64)

    @property
    def place(self) -> Int[np.ndarray, " scored"]:
        """Which grid each score belongs to."""
        sizes = [grid.parts - 1 for grid in self.grids]
        return np.repeat(np.arange(len(self.grids)), sizes)


@lru_cache(maxsize=64)
def _plan(B: int, c: float, est: str, n: int) -> Plan:
    grids = []
    for rows in range(2, B // 2 + 1):
        most = B // rows
        # The paper's k-hat: at most c times as many superclumps as parts; n clumps at most.
        master = min(max(int(c * most), 1), n)
        grids.append(Grid(rows, master, most if est == "mic_approx" else min(most, rows)))
    scored = [(k, grid.rows) for grid in grids for k in range(2, grid.parts + 1)]
    place = {entry: index for index, entry in enumerate(scored)}
    matrix = [(y, x) for y in range(2, B // 2 + 1) for x in range(2, B // y + 1)]
    # Of the equicharacteristic matrix a square entry has x fixed; the others fix the finer axis.
    upright = [
        len(scored) if est == "mic_e" and x == y else place.get((x, y), len(scored))
        for y, x in matrix
    ]
    flipped = [place.get((y, x), len(scored)) for y, x in matrix]
    mirror = {entry: index for index, entry in enumerate(matrix)}
    y_parts, x_parts = np.array(matrix, np.int64).reshape(-1, 2).T
    transposed = np.array([mirror[x, y] for y, x in matrix], np.int64)
    return Plan(
        tuple(grids),
        Entries(x_parts, y_parts, transposed),
        np.array(upright, np.int64),
        np.array(flipped, np.int64),
    )


def characteristic(
    plan: Plan,
    bits: Float[np.ndarray, "scored 2 pairs"],
    obtained: Int[np.ndarray, "grids 2 pairs"],
) -> Characteristic:
    """The characteristic matrices of pairs: scores normalised, and the better orientation.

    A score is divided by the logarithm of the parts merged or of the fixed parts, whichever are
    fewer; and of the latter not those asked for count, but those that the ties let be made.

    Args:
      plan: which scores there are.
      bits: information of each score, with y fixed and with x fixed.
      obtained: how many fixed parts each grid has.
    """
    fewer = np.minimum(plan.parts[:, None, None], obtained[plan.place])
    # One row says nothing, and log2(1) is 0.
    scores = np.maximum(bits, 0) / np.log2(np.maximum(fewer, 2)) * (fewer > 1)
    scores = np.concatenate([scores, np.zeros((1, *scores.shape[1:]))])
    values = np.maximum(scores[plan.upright, 0], scores[plan.flipped, 1])
    return Characteristic(values.T, plan.entries)
