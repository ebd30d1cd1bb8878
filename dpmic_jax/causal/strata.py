"""A rank statistic within each block of the given columns, joined into one score.

Definitions 6 and 8 of the supplement: with theta_i the statistic of block i and w_i its weight,

    score = sum_i w_i |theta_i| / sqrt(sum_i w_i),

where w_i is the inverse of the variance that theta_i has if x and y are independent and untied.
The statistics there are absolute values, so those of the blocks are; the signed form,
|sum_i w_i theta_i| / sqrt(sum_i w_i), lets opposite signs cancel and is nearly the absolute value
of a standard normal number under independence, which the other one is not: its mean grows with
the square root of the number of blocks.

No given columns make one block: the score is then sqrt(w) |theta|, on the same scale. A block of
less than two records has weight 0, and the score is 0 if all blocks have. A constant column has
theta = 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.causal.queries import MOST_STEPS, Coded, Query
from dpmic_jax.causal.tables import blocks, check, tables
from dpmic_jax.dp.noise.lattice import Lattice


class _Numbers(NamedTuple):
    """Of each block, of some queries or of one."""

    numerators: Integer[np.ndarray, "*some blocks"]
    sizes: Int64[np.ndarray, "*some blocks"]


@dataclass(frozen=True, eq=False)
class BlockTest(ABC):
    """A statistic w theta = factor numerator / bottom(size) with weight top(size) / bottom(size).

    Attributes:
      data: the columns.
    """

    data: Coded
    factor: ClassVar[int]

    @property
    def columns(self) -> int:
        return self.data.columns

    @property
    def n(self) -> int:
        return self.data.n

    @staticmethod
    @abstractmethod
    def numerators(
        counts: Int64[np.ndarray, "*batch rows columns"],
    ) -> Integer[np.ndarray, "*batch"]:
        """The integer that the statistic of a block is a multiple of."""

    @staticmethod
    @abstractmethod
    def bottom(size: Any) -> Any:
        """For integers or arrays of floats, as `top`."""

    @staticmethod
    @abstractmethod
    def top(size: Any) -> Any: ...

    @staticmethod
    @abstractmethod
    def joined(parts: Any) -> Any:
        """Sum over the last axis: of absolute values, or the absolute value of the sum."""

    @staticmethod
    @abstractmethod
    def bound(n: int, blocks: int) -> Fraction:
        """How far one replaced record moves a score of so many blocks at most."""

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """Of dependence, in standard deviations."""
        found = np.empty(len(queries))
        for place, counts in tables(self.data, queries):
            found[place] = self.of_counts(counts)
        return found

    @classmethod
    def of_counts(
        cls, counts: Int64[np.ndarray, "some blocks rows columns"]
    ) -> Float64[np.ndarray, " some"]:
        """Scores of tables that are counted already."""
        parts, weight = cls._floats(cls._numbers(counts))
        return cls.joined(parts) / np.sqrt(np.where(weight > 0, weight, 1.0))

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move any of these scores (docs, Theorem 3)."""
        check(queries, self.data.categories)
        # More blocks allow more.
        return self.bound(self.n, max(blocks(q, self.data.categories) for q in queries))

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits), exactly: floats decide where they can, fractions elsewhere."""
        points = np.empty(len(queries), np.int64)
        for place, counts in tables(self.data, queries):
            numbers = self._numbers(counts)
            parts, weight = self._floats(numbers)
            unit = lattice.top / np.sqrt(np.where(weight > 0, weight, 1.0))
            near = self.joined(parts) * unit
            # Each part has five roundings at most, and adding them up has one for each block.
            off = np.abs(parts).sum(axis=-1) * unit * (counts.shape[1] + 16) * 2.0**-52
            points[place] = np.floor(near - off)
            for row in np.flatnonzero(np.floor(near - off) != np.floor(near + off)).tolist():
                points[place[row]] = self._exactly(_row(numbers, row), lattice.bits)
        return np.minimum(points, MOST_STEPS)

    @classmethod
    def _numbers(cls, counts: Int64[np.ndarray, "some blocks rows columns"]) -> _Numbers:
        return _Numbers(cls.numerators(counts), counts.sum(axis=(-2, -1)))

    @classmethod
    def _floats(
        cls, numbers: _Numbers
    ) -> tuple[Float64[np.ndarray, "some blocks"], Float64[np.ndarray, " some"]]:
        size = numbers.sizes.astype(np.float64)
        bottom = cls.bottom(size)
        parts = cls.factor * numbers.numerators.astype(np.float64) / bottom
        return parts, (cls.top(size) / bottom).sum(axis=-1)

    def _exactly(self, numbers: _Numbers, bits: int) -> int:
        pairs = list(zip(numbers.numerators.tolist(), numbers.sizes.tolist(), strict=True))
        weight = sum((Fraction(self.top(m), self.bottom(m)) for _, m in pairs), Fraction(0))
        parts = np.array([Fraction(self.factor * h, self.bottom(m)) for h, m in pairs])
        return isqrt(int(self.joined(parts) ** 2 * 4**bits / weight)) if weight else 0


class Absolute(BlockTest):
    """Sum of the absolute values of the blocks, as in the supplement."""

    @staticmethod
    def joined(parts: Any) -> Any:
        return np.abs(parts).sum(axis=-1)


class Signed(BlockTest):
    """Absolute value of the sum of the blocks."""

    @staticmethod
    def joined(parts: Any) -> Any:
        return np.abs(parts.sum(axis=-1))


def _row(numbers: _Numbers, row: int) -> _Numbers:
    return _Numbers(numbers.numerators[row], numbers.sizes[row])
