"""Interface and shared parts of the tests of independence of many pairs. None of them is private.

A test has a method that gives the p-values of pairs, and the smallest p-value that it can give.
Settings are checked when a test is made, and data before they are used.
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
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Measure, mic
from dpmic_jax.mic.statistics import BinnedTable, MICr, Statistic

PairPositions = Int[np.ndarray, "pairs 2"]
PValues = Float[np.ndarray, " pairs"]


class IndependenceTest(Protocol):
    """Interface of tests of many pairs."""

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that the test can give."""
        ...

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits],
        *,
        key: AnyKey,
    ) -> PValues:
        """P-values of pairs. Each is valid by itself: P(p <= a) <= a for independent columns.

        Args:
          columns: the values of each column; -inf may stand for a missing value.
          pairs: the positions of x and y among the columns.
          bounds: public bounds of each column, for tests that need them; others ignore them.
          key: key of all random draws of the test.
        """
        ...


class PairTest(Protocol):
    """Interface of a test of one pair: any function of this form."""

    def __call__(self, x: Column, y: Column, *, key: Key[jax.Array, ""]) -> float: ...


@dataclass(frozen=True, kw_only=True)
class MonteCarloTest:
    """Base of the tests that compare a measure with random draws of it.

    Attributes:
      statistic: the statistic whose characteristic matrices are computed.
      measure: what to read off each characteristic matrix; large if dependent.
      draws: number of draws; p-values are multiples of 1 / (draws + 1).
      devices: devices to run on; by default the first device of JAX's default backend.
    """

    statistic: Statistic
    measure: Measure = mic
    draws: int = 10_000
    devices: tuple[Device, ...] = ()

    def __post_init__(self):
        if not callable(self.measure):
            raise TypeError(
                f"expected measure to be a function such as mic or tic, got {self.measure!r}"
            )
        monte_carlo.checked_draws(self.draws)

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that the test can give, 1 / (draws + 1)."""
        return monte_carlo.smallest_p(self.draws)


@dataclass(frozen=True)
class CustomTest:
    """A test of your own, called for each pair with a key of its own. Not private.

    Attributes:
      test: (x, y, *, key) -> p. The function is responsible for the validity of p.
    """

    test: PairTest

    def __post_init__(self):
        if not callable(self.test):
            raise TypeError(
                f"expected test to be a function (x, y, *, key) -> p, got {self.test!r}"
            )

    @property
    def smallest_p(self) -> float:
        """0, since nothing is known about the function."""
        return 0.0

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits] = (),
        *,
        key: AnyKey,
    ) -> PValues:
        """P-values of pairs; the i-th pair gets the key folded with i."""
        check_columns(columns, pairs)
        key = noise_key(key)
        return np.array(
            [
                _probability(self.test(columns[x], columns[y], key=jax.random.fold_in(key, index)))
                for index, (x, y) in enumerate(pairs.tolist())
            ]
        )


def require_level(test: IndependenceTest, level: float) -> None:
    """Raise ValueError if a test can give no p-value at or below `level`.

    The error says how many draws reach the level.
    """
    needed = monte_carlo.draws_needed(level)
    if test.smallest_p > level:
        raise ValueError(
            f"the smallest p-value of this test is {test.smallest_p:.3g}, above the level "
            f"{level:.3g}: pass draws={needed} or more"
        )


def bin_used(
    columns: Sequence[Column],
    statistic: Statistic,
    bounds: Sequence[Limits],
    used: Int[np.ndarray, " used"],
) -> BinnedTable:
    """Bin the columns at the positions `used`, with ties broken as in the whole table."""
    values = [columns[column] for column in used]
    if isinstance(statistic, MICr):
        return statistic.cut(values, [bounds[column] for column in used])
    # `RandomTies` draws by the position of a column, so it has to see that in the whole table.
    ties = statistic.ties
    return replace(statistic, ties=lambda column, at: ties(column, int(used[at]))).cut(values)


def renumbered(pairs: PairPositions) -> tuple[Int[np.ndarray, " used"], PairPositions]:
    """The positions of the columns that are in a pair, and the pairs as positions among these."""
    used, places = np.unique(pairs, return_inverse=True)
    return used, places.reshape(pairs.shape)


def check_columns(columns: Sequence[Column], pairs: PairPositions) -> None:
    """Raise an error, which shows no value, if columns or pairs cannot be tested."""
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise ValueError("expected pairs to be an array of positions (x, y), one row for each pair")
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


def _probability(p: float) -> float:
    if not isinstance(p, Real | np.generic | np.ndarray | jax.Array) or not 0 <= float(p) <= 1:
        raise ValueError("expected test to give a p-value from 0 to 1")
    return float(p)
