"""Noisy counts of the records of many columns in public cells, and in unions of them: trees.

Each column has b^L cells, the leaves of a tree in which every inner node has b children. Released
is the number of records in every node but the root, whose number is n, for all columns together.

Relation: one person's r records are replaced by others; n, columns and cells are public. A record
is in one cell of each column, and so in one node of each of the L levels of C trees. Replaced, it
leaves one node and enters another: in each level and column one count falls by one and another
grows by one, or none moves. So the counts move by at most 2 C L in sum for each record,

    L1 = 2 C L r,   and   L2 <= r sqrt(2 C L),

as r records, one after the other, add up their moves.

`LaplaceTrees`: every count gets noise of its own, which is (epsilon / L1)-DP for a move by one
(`dp.noise.bounded`). Counts that move by d_1, d_2, ... cost (d_1 + d_2 + ...) epsilon / L1 in all,
at most epsilon.

`GaussianTrees`: every count gets discrete Gaussian noise of variance sigma^2. That is a rounded
Gaussian of variance sigma^2 - 3 on every count, up to a total variation (`dp.noise.gaussian`), and
Gaussian noise on counts that move by L2 is mu-GDP with mu^2 = L2^2 / (sigma^2 - 3).

What follows sees noisy counts and public numbers only, so it is free (`estimated`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, expm1, sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float64, Int, Int32, PRNGKeyArray

from dpmic_jax.dp.accounting.composition import numerical
from dpmic_jax.dp.accounting.events import GaussianDP, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise import DiscreteGaussian, TruncatedGeometric
from dpmic_jax.dp.noise.bounded import LARGEST
from dpmic_jax.dp.noise.gaussian import ROUNDING_VARIANCE, rounding_error
from dpmic_jax.dp.noise.lattice import root
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.mechanisms.release import PointNoise, add_noise

# Counts are clipped to this many scales of the noise beyond 0 and n: hardly ever.
_ROOM = 30
_MOST_LEVELS, _MOST_LEAVES = 3, 2**12
_TOGETHER = 64  # columns that get their noise in one call: memory stays flat
# Trees are compared for a column whose records fill this share of its cells evenly.
_FILLED = 1 / 16


class Tree(NamedTuple):
    """A tree of which every inner node has `branching` children, and `levels` below the root."""

    branching: int
    levels: int

    @property
    def leaves(self) -> int:
        """How many cells a column has."""
        return self.branching**self.levels

    @property
    def sizes(self) -> list[int]:
        """How many nodes each level has, from the children of the root to the leaves."""
        return [self.branching**level for level in range(1, self.levels + 1)]

    def counts(self, cells: Int[np.ndarray, "columns leaves"]) -> Int[np.ndarray, "columns nodes"]:
        """The records in every node, level by level."""
        return np.concatenate(
            [cells.reshape(len(cells), size, -1).sum(axis=2) for size in self.sizes], axis=1
        )


@dataclass(frozen=True, kw_only=True)
class CellTrees(ABC):
    """Release the counts of trees of cells.

    Attributes:
      tree: the same for every column.
      columns: how many columns there are.
      relation: how many records one person may own.
    """

    tree: Tree
    columns: int
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        integer("branching", self.tree.branching, 2, _MOST_LEAVES)
        integer("levels", self.tree.levels, 1, _MOST_LEVELS)
        integer("columns", self.columns, 1, 2**20)

    @property
    def sensitivity(self) -> Fraction:
        """The most that one person's records move the counts, added up: 2 C L r."""
        return Fraction(2 * self.columns * self.tree.levels * self.relation.records)

    @property
    @abstractmethod
    def guarantee(self) -> PureDP | GaussianDP:
        """Of all counts of all columns together."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Of the noise on a count."""

    @abstractmethod
    def noise(self, n: int) -> PointNoise:
        """The noise on every count of n records, moved up by `room`; refused if too large."""

    def room(self, n: int) -> int:
        """How much is added to a count before noise, and taken off afterwards."""
        return 0

    def error(self, n: int) -> float:
        """The predicted error of the share of records below a value, by public numbers only.

        In one level the error of the sum of the first j of b children, adjusted to the known sum of
        all of them, has variance v j (b - j) / b: v (b - 1/b) / 6 on average over j = 1 .. b. The
        levels add up. A cell that holds the share s of the records adds s^2 / 12.
        """
        branching, levels = self.tree
        noise = self.variance * levels * (branching - 1 / branching) / 6
        grain = min(1.0, 1 / (_FILLED * self.tree.leaves))
        return sqrt(noise / n**2 + grain**2 / 12)

    def release(
        self, cells: Int[np.ndarray, "columns leaves"], key: PRNGKeyArray
    ) -> Int[np.ndarray, "columns nodes"]:
        """Noisy counts of every node. The noise of a column is drawn from a key of its own."""
        n, place = int(cells[0].sum()), np.arange(self.columns)
        noise, room, own = self.noise(n), self.room(n), np.stack([place, place], axis=1)
        counts = self.tree.counts(cells) + room
        noisy = [
            add_noise(noise, counts[start:stop], own[start:stop], key)
            for start, stop in pairwise([*range(0, self.columns, _TOGETHER), self.columns])
        ]
        return np.concatenate(noisy) - room

    def estimated(
        self, counts: Int[np.ndarray, "columns nodes"], n: int
    ) -> Float64[np.ndarray, "columns leaves"]:
        """Estimated records in every cell: none is negative, and they add up to n.

        From the root down, the children of a node get the nearest numbers to their noisy counts
        that are not negative and add up to what the node has.
        """
        found = np.full((len(counts), 1), float(n))
        for level in np.split(counts, np.cumsum(self.tree.sizes)[:-1], axis=1):
            children = level.reshape(-1, self.tree.branching).astype(np.float64)
            found = _nearest(children, found.reshape(-1)).reshape(len(counts), -1)
        return found


@dataclass(frozen=True, kw_only=True)
class LaplaceTrees(CellTrees):
    """With discrete Laplace noise: epsilon-DP for all columns together."""

    epsilon: float

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)
        super().__post_init__()

    @property
    def guarantee(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def each(self) -> Fraction:
        """Epsilon of one count for a move by one."""
        return as_fraction(self.epsilon) / self.sensitivity

    @property
    def variance(self) -> float:
        ratio = exp(-self.each)
        return 2 * ratio / expm1(-self.each) ** 2

    def room(self, n: int) -> int:
        return round(_ROOM / self.each) + 1

    def noise(self, n: int) -> TruncatedGeometric:
        return TruncatedGeometric(epsilon=self.each, n=n + 2 * self.room(n))


@dataclass(frozen=True, kw_only=True)
class GaussianTrees(CellTrees):
    """With discrete Gaussian noise: mu-GDP for all columns together, up to a total variation."""

    mu: float

    def __post_init__(self):
        check_positive("mu", self.mu)
        super().__post_init__()

    @property
    def moved_squared(self) -> int:
        """L2^2: r^2 for each of 2 C L counts."""
        return 2 * self.columns * self.tree.levels * self.relation.records**2

    @property
    def sigma(self) -> Fraction:
        """Rounded up."""
        return root(self.moved_squared / as_fraction(self.mu) ** 2 + ROUNDING_VARIANCE)

    @property
    def guarantee(self) -> GaussianDP:
        one = DiscreteGaussian(sigma=self.sigma).certificate().total_variation
        one += rounding_error(ROUNDING_VARIANCE)
        return GaussianDP(self.mu, ceil_to_float(one * self.columns * sum(self.tree.sizes)))

    @property
    def variance(self) -> float:
        return float(self.sigma**2)

    def noise(self, n: int) -> "GaussianCounts":
        integer("n", n, 1, LARGEST)
        return GaussianCounts(DiscreteGaussian(sigma=self.sigma))


class GaussianCounts(NamedTuple):
    """Counts plus discrete Gaussian noise."""

    noise: DiscreteGaussian

    def release(self, values: Int32[Array, "*shape"], /, *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy counts; noise is below 2^30 in magnitude, so no sum leaves 32 bits."""
        return values + self.noise.sample(key, values.shape)


def best_trees(*, columns: int, n: int, budget: Budget) -> CellTrees:
    """The trees of the smallest predicted error among those that a budget allows.

    Raises:
      ValueError: the budget allows none.
    """
    for trees in sorted(_of_budget(columns, budget), key=lambda trees: trees.error(n)):
        if _allowed(trees, n, budget):
            return trees
    raise ValueError(
        f"epsilon={budget.epsilon:g} is too small to learn bounds of {columns} columns; use a "
        "larger epsilon, fewer columns, or public bounds"
    )


def _of_budget(columns: int, budget: Budget) -> Iterator[CellTrees]:
    mu = budget.mu
    for tree in _trees():
        shared = {"tree": tree, "columns": columns, "relation": budget.relation}
        yield LaplaceTrees(epsilon=budget.epsilon, **shared)
        if mu:
            yield GaussianTrees(mu=mu, **shared)


def _allowed(trees: CellTrees, n: int, budget: Budget) -> bool:
    """Whether the noise can be drawn, and is near enough to its ideal distribution."""
    try:
        trees.noise(n)
        off = as_fraction(trees.guarantee.delta)
    except ValueError:
        return False
    return numerical(off, budget.epsilon) <= budget.inexact


def _trees() -> Iterator[Tree]:
    for levels in range(1, _MOST_LEVELS + 1):
        branching = 2
        while branching**levels <= _MOST_LEAVES:
            if branching**levels >= 1 / _FILLED:
                yield Tree(branching, levels)
            branching += 1 if levels > 1 else branching


def _nearest(
    rows: Float64[np.ndarray, "rows some"], sums: Float64[np.ndarray, " rows"]
) -> Float64[np.ndarray, "rows some"]:
    """The nearest points to rows, by squares, with no negative number and the sums asked for.

    They are max(x - t, 0) for a t of each row: with k numbers above it, t = (their sum - s) / k.
    """
    downwards = -np.sort(-rows, axis=1)
    excess = np.cumsum(downwards, axis=1) - sums[:, None]
    shares = excess / np.arange(1, rows.shape[1] + 1)
    above = np.maximum((downwards > shares).sum(axis=1), 1)
    taken = shares[np.arange(len(rows)), above - 1]
    return np.maximum(rows - taken[:, None], 0)
