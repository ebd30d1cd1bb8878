"""Conditional rank tests: a statistic within each block of the given columns, and one score.

A block is a combination of categories of the given columns. By Definitions 6 and 8 of the
supplement, with theta_i the statistic of block i and w_i its weight,

    score = sum_i w_i |theta_i| / sqrt(sum_i w_i),

where 1 / w_i is the variance of theta_i if x and y are independent and untied. The signed form,
|sum_i w_i theta_i| / sqrt(sum_i w_i), lets opposite signs cancel. Under independence it is
approximately the absolute value of a standard normal variable. The form with absolute values is
not: its mean grows with the square root of the number of blocks.

Without given columns there is one block, and the score is sqrt(w) |theta|, on the same scale. A
block of fewer than two records has weight 0, and the score is 0 if all blocks have weight 0. A
constant column has theta = 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.causal.queries import MOST_STEPS, CodedTest, Query
from dpmic_jax.causal.tables import blocks, check, tables
from dpmic_jax.dp.noise.lattice import Lattice


class _BlockSums(NamedTuple):
    """The integers from which a score is computed, for each block of some queries or of one."""

    numerators: Integer[np.ndarray, "*some blocks"]
    sizes: Int64[np.ndarray, "*some blocks"]


class BlockTest(CodedTest, ABC):
    """A conditional rank test of coded columns.

    A block of m records has w theta = factor numerator / bottom(m) and w = top(m) / bottom(m).

    Attributes:
      data: the columns.
    """

    factor: ClassVar[int]

    @staticmethod
    @abstractmethod
    def numerators(
        counts: Int64[np.ndarray, "*batch rows columns"],
    ) -> Integer[np.ndarray, "*batch"]:
        """The integer of each block that w theta is proportional to."""

    @staticmethod
    @abstractmethod
    def bottom(size: Any) -> Any:
        """Denominator of w theta and of w, for an integer or an array of floats."""

    @staticmethod
    @abstractmethod
    def top(size: Any) -> Any:
        """Numerator of w, for an integer or an array of floats."""

    @staticmethod
    @abstractmethod
    def joined(terms: Any) -> Any:
        """Combine the blocks' w theta, on the last axis, into the numerator of the score."""

    @staticmethod
    @abstractmethod
    def bound(n: int, blocks: int) -> Fraction:
        """The most that one replaced record can move a score of `blocks` blocks of n records."""

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """Scores of dependence, in standard deviations."""
        scores = np.empty(len(queries))
        for place, counts in tables(self.data, queries):
            scores[place] = self.of_counts(counts)
        return scores

    @classmethod
    def of_counts(
        cls, counts: Int64[np.ndarray, "some blocks rows columns"]
    ) -> Float64[np.ndarray, " some"]:
        """Scores of queries whose tables have been counted."""
        terms, weight = cls._floats(cls._sums(counts))
        return cls.joined(terms) / np.sqrt(np.where(weight > 0, weight, 1.0))

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move any of these scores (Theorem 3).

        docs/causal_sensitivity.md has the proof.
        """
        check(queries, self.data.categories)
        # The bound grows with the number of blocks.
        return self.bound(self.n, max(blocks(q, self.data.categories) for q in queries))

    @property
    def largest(self) -> float:
        """The score of two columns that are the same and even, with as many categories as any two.

        Without given columns no score is larger: tau and rho are at most those of the column with
        fewer categories and itself, which are largest if its categories are even.
        """
        kinds = sorted(self.data.categories)[-2]
        sizes = np.diff(np.arange(kinds + 1) * self.n // kinds)
        return float(self.of_counts(np.diag(sizes)[None, None])[0])

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits), exact: in floats where their error cannot matter, else in fractions.

        A float score may round across a lattice point, and then move further than the sensitivity.
        """
        points = np.empty(len(queries), np.int64)
        for place, counts in tables(self.data, queries):
            sums = self._sums(counts)
            terms, weight = self._floats(sums)
            unit = lattice.top / np.sqrt(np.where(weight > 0, weight, 1.0))
            near = self.joined(terms) * unit
            # Bound on the rounding error of `near`: each term has five roundings at most, and the
            # sum has one for each block. 2^-52 is twice the unit roundoff.
            error = np.abs(terms).sum(axis=-1) * unit * (counts.shape[1] + 16) * 2.0**-52
            low, high = np.floor(near - error), np.floor(near + error)
            points[place] = low
            for row in np.flatnonzero(low != high).tolist():
                points[place[row]] = self._exact_point(_row(sums, row), lattice.bits)
        return np.minimum(points, MOST_STEPS)

    @classmethod
    def _sums(cls, counts: Int64[np.ndarray, "some blocks rows columns"]) -> _BlockSums:
        return _BlockSums(cls.numerators(counts), counts.sum(axis=(-2, -1)))

    @classmethod
    def _floats(
        cls, sums: _BlockSums
    ) -> tuple[Float64[np.ndarray, "some blocks"], Float64[np.ndarray, " some"]]:
        """w theta of each block, and the sum of weights of each query."""
        size = sums.sizes.astype(np.float64)
        bottom = cls.bottom(size)
        terms = cls.factor * sums.numerators.astype(np.float64) / bottom
        return terms, (cls.top(size) / bottom).sum(axis=-1)

    def _exact_point(self, sums: _BlockSums, bits: int) -> int:
        """floor(score 2^bits) of one query: the integer root of the squared score, a fraction."""
        pairs = list(zip(sums.numerators.tolist(), sums.sizes.tolist(), strict=True))
        weight = sum((Fraction(self.top(m), self.bottom(m)) for _, m in pairs), Fraction(0))
        terms = np.array([Fraction(self.factor * h, self.bottom(m)) for h, m in pairs])
        return isqrt(int(self.joined(terms) ** 2 * 4**bits / weight)) if weight else 0


class Absolute(BlockTest):
    """The form with absolute values, as in the supplement."""

    @staticmethod
    def joined(terms: Any) -> Any:
        """Sum of the absolute values of the blocks."""
        return np.abs(terms).sum(axis=-1)


class Signed(BlockTest):
    """The form with signs."""

    @staticmethod
    def joined(terms: Any) -> Any:
        """Absolute value of the sum of the blocks."""
        return np.abs(terms.sum(axis=-1))


def _row(sums: _BlockSums, row: int) -> _BlockSums:
    return _BlockSums(sums.numerators[row], sums.sizes[row])
