"""Tests of independence that give p-values for many pairs of columns. None of them is private.

Each test has the least p-value that it can give and a method that tests pairs. Settings are
checked when a test is made, data before any work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Protocol

import jax
import numpy as np
from jaxtyping import Float, Int, Key

from dpmic_jax.data.limits import Column, Limits
from dpmic_jax.data.table import FEWEST_RECORDS
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.inference import monte_carlo
from dpmic_jax.mic.characteristic import Measure
from dpmic_jax.mic.statistics import BinnedTable, MICr, Statistic

PairPositions = Int[np.ndarray, "pairs 2"]
PValues = Float[np.ndarray, " pairs"]


class IndependenceTest(Protocol):
    """What tests of many pairs have in common."""

    @property
    def smallest_p(self) -> float:
        """The least p-value that the test can give."""
        ...

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits],
        *,
        key: AnyKey,
    ) -> PValues:
        """Test pairs: each p-value, by itself, is at most a with a chance of at most a.

        Args:
          columns: the values of each column; -inf may stand for a missing one.
          pairs: the positions of x and y among the columns.
          bounds: of each column, public, for tests that need them; others ignore them.
          key: of all that is random in the test.
        """
        ...


class PairTest(Protocol):
    """A test of one pair: any function of this form."""

    def __call__(self, x: Column, y: Column, *, key: Key[jax.Array, ""]) -> float: ...


@dataclass(frozen=True)
class CustomTest:
    """A test of your own, called for one pair after the other with a key for each. Not private.

    Attributes:
      test: (x, y, *, key) -> p. That p is valid is up to it.
    """

    test: PairTest

    def __post_init__(self):
        if not callable(self.test):
            raise TypeError(
                f"expected test to be a function (x, y, *, key) -> p, got {self.test!r}"
            )

    @property
    def smallest_p(self) -> float:
        return 0.0

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits] = (),
        *,
        key: AnyKey,
    ) -> PValues:
        check_columns(columns, pairs)
        key = noise_key(key)
        return np.array(
            [
                _probability(self.test(columns[x], columns[y], key=jax.random.fold_in(key, index)))
                for index, (x, y) in enumerate(pairs.tolist())
            ]
        )


def require_level(test: IndependenceTest, level: float) -> None:
    """Refuse a test whose least p-value is above a level, and say how many draws reach it."""
    needed = monte_carlo.draws_needed(level)
    if test.smallest_p > level:
        raise ValueError(
            f"the least p-value of this test is {test.smallest_p:.3g}, above the level "
            f"{level:.3g}: pass draws={needed} or more"
        )


def cut_used(
    columns: Sequence[Column],
    statistic: Statistic,
    bounds: Sequence[Limits],
    used: Int[np.ndarray, " used"],
) -> BinnedTable:
    """Cut the columns that are used. Their ties are broken as those of the whole table are."""
    values = [columns[column] for column in used]
    if isinstance(statistic, MICr):
        return statistic.cut(values, [bounds[column] for column in used])
    ties = statistic.ties
    return replace(statistic, ties=lambda column, at: ties(column, int(used[at]))).cut(values)


def renumbered(pairs: PairPositions) -> tuple[Int[np.ndarray, " used"], PairPositions]:
    used, places = np.unique(pairs, return_inverse=True)
    return used, places.reshape(pairs.shape)


def check_columns(columns: Sequence[Column], pairs: PairPositions) -> None:
    """Error texts show no value."""
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise ValueError("expected pairs to be an array of positions (x, y), one row a pair")
    if pairs.min() < 0 or pairs.max() >= len(columns):
        raise ValueError(f"expected pairs of positions from 0 to {len(columns) - 1}")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError("expected pairs of two different columns: none is independent of itself")
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or min(lengths) < FEWEST_RECORDS:
        raise ValueError(
            f"expected columns of one length, {FEWEST_RECORDS} records or more, got {lengths}"
        )
    for index, column in enumerate(columns):
        if column.ndim != 1 or column.dtype.kind not in "iuf":
            raise TypeError(f"expected numbers in column {index}, got dtype {column.dtype}")
        if column.dtype.kind == "f" and np.isnan(column).any():
            raise ValueError(f"column {index} has NaN values; fill them in or leave it out")


def check_measure(measure: Measure) -> None:
    if not callable(measure):
        raise TypeError(f"expected measure to be a function such as mic or tic, got {measure!r}")


def _probability(p: float) -> float:
    if not isinstance(p, Real | np.generic | np.ndarray | jax.Array) or not 0 <= float(p) <= 1:
        raise ValueError("expected test to give a p-value from 0 to 1")
    return float(p)
