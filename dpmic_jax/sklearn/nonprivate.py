"""Feature selection by exact MICe. Not private."""

import warnings
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float

from dpmic_jax.data.limits import Column
from dpmic_jax.data.source.memory import Held
from dpmic_jax.data.table import Table, table
from dpmic_jax.mic.grids import Cells, power
from dpmic_jax.mic.pairwise import pairwise
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.sklearn.base import Selector
from dpmic_jax.sklearn.inputs import inputs, set_feature_names


class NominalOrderWarning(UserWarning):
    """Exact MIC uses an order of classes that have none."""


class MICSelector(Selector):
    """Keep the features whose MICe with the target is largest. Not private.

    Args:
      k_features: number of features to keep; or
      threshold: keep the features whose MICe is at least this.
      B: largest number of cells in a grid, or a rule of n such as `power(0.6)`.
      c: number of master bins for each bin of a grid.

    Attributes:
      scores_: MICe of every feature with the target.
      support_: mask of the features that are kept.
      n_features_in_, feature_names_in_: as in all estimators of scikit-learn.
    """

    def __init__(
        self,
        *,
        k_features: int | None = None,
        threshold: float | None = None,
        B: Cells = power(0.6),
        c: float = 15,
    ):
        self.k_features = k_features
        self.threshold = threshold
        self.B = B
        self.c = c

    def fit(self, X: Any, y: Any) -> "MICSelector":
        """Score every feature.

        Args:
          X: records by features, numbers; an array or a data frame.
          y: the target: numbers, or texts, which are taken in alphabetical order.
        """
        given = inputs(self, X, y)
        k, least = self._wanted(len(given.columns))
        columns = tuple(map(_floats, given.columns.values()))
        scores = _scores(Table(tuple(given.columns), columns), given.target, self.B, self.c)
        strongest = np.argsort(-scores, kind="stable")[:k]  # ties keep the order of the features
        set_feature_names(self, X, y)
        self.scores_ = scores
        self.support_ = np.isin(np.arange(len(scores)), strongest) & (scores >= least)
        return self


def mic_score(
    X: Any, y: Any, *, B: Cells = power(0.6), c: float = 15
) -> Float[np.ndarray, " features"]:
    """MICe of each feature with the target, for `SelectKBest(mic_score, k=...)`. Not private.

    Args:
      X: records by features, numbers; an array or a data frame.
      y: the target: numbers, or texts, which are taken in alphabetical order.
      B, c: as for `mice`.
    """
    return _scores(table(X, "X"), y, B, c)


def _scores(X: Table, y: Any, B: Cells, c: float) -> Float[np.ndarray, " features"]:
    target = Table(("y",), (_codes(y),))
    return pairwise(X, Y=target, statistic=MICe(B=B, c=c)).matrix[:, 0]


def _floats(values: Held) -> Column:
    """A column as an array; objects that are all numbers become floats."""
    array = values if isinstance(values, np.ndarray) else values.to_numpy()
    if array.dtype.kind == "O" and all(isinstance(value, Real) for value in array):
        return array.astype(np.float64)
    return array


def _codes(values: Any) -> Column:
    """The target as numbers; texts become their positions in alphabetical order."""
    array = _floats(np.asarray(values))
    if array.dtype.kind not in "OUT":
        return array
    if not all(isinstance(value, str) for value in array):
        raise TypeError("expected y to be numbers, or texts, with none missing")
    classes, codes = np.unique(array.astype(str), return_inverse=True)
    if len(classes) > 2:
        warnings.warn(
            "MIC uses the order of classes, and texts are taken in alphabetical order; pass y as "
            "numbers in a meaningful order, or one class against the rest",
            UserWarning,
            stacklevel=4,
        )
    return codes
