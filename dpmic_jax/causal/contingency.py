"""G-test and chi-square test of conditional independence, block by block.

With O the counts of a block and E = row sum x column sum / size,

    G = 2 sum O ln(O / E),     X^2 = sum (O - E)^2 / E,

summed over blocks. Under independence both are approximately chi-square with sum (r - 1)(c - 1)
degrees of freedom, where r and c are the numbers of categories of x and y that occur in the block.
An empty block, or one in which x or y is constant, adds nothing; without degrees of freedom p = 1.

These tests are for searches without noise: one record can move X^2 by n, and p from one end of its
range to the other. `subsampled` makes private answers of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.causal.queries import MOST_STEPS, CodedTest, Query
from dpmic_jax.causal.tables import check, tables
from dpmic_jax.dp.noise.lattice import Lattice

# Scores -log10 p are clipped here: the smallest normal float64 is about 10^-308.
LARGEST_SCORE = 300


class Statistics(NamedTuple):
    """The statistic and the degrees of freedom of each query."""

    value: Float64[np.ndarray, " queries"]
    degrees: Int64[np.ndarray, " queries"]


class _Contingency(CodedTest, ABC):
    @staticmethod
    @abstractmethod
    def cell_terms(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        """The term of each cell in the statistic, for expected counts above 0."""

    def statistics(self, queries: Sequence[Query]) -> Statistics:
        """The statistic and the degrees of freedom of each query."""
        value, degrees = np.empty(len(queries)), np.empty(len(queries), np.int64)
        for place, counts in tables(self.data, queries):
            x, y = counts.sum(axis=-1), counts.sum(axis=-2)
            size = np.maximum(x.sum(axis=-1), 1)[..., None, None]
            expected = x[..., :, None].astype(np.float64) * y[..., None, :] / size
            # A cell of an empty row or column expects 0 records and holds none: it adds nothing.
            safe = np.where(expected > 0, expected, 1.0)
            terms = self.cell_terms(counts.astype(np.float64), safe)
            value[place] = np.where(expected > 0, terms, 0.0).sum(axis=(-3, -2, -1))
            free = [np.maximum((margin > 0).sum(axis=-1) - 1, 0) for margin in (x, y)]
            degrees[place] = (free[0] * free[1]).sum(axis=-1)
        return Statistics(value, degrees)

    def p_values(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """p-values of independence by the chi-square approximation, valid for large counts."""
        from scipy.special import chdtrc

        value, degrees = self.statistics(queries)
        return np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), np.maximum(value, 0.0)), 1.0)

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """-log10 p, at most 300, so that one threshold suits all degrees of freedom."""
        return -np.log10(np.maximum(self.p_values(queries), 10.0**-LARGEST_SCORE))

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The whole range of scores: one record may move p from one end to the other."""
        check(queries, self.data.categories)
        return Fraction(LARGEST_SCORE)

    @property
    def largest(self) -> float:
        """Where scores are clipped."""
        return float(LARGEST_SCORE)

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """Scores in lattice steps, rounded down.

        Floats suffice: the sensitivity is the whole range, so no rounding moves a point further.
        """
        steps = np.floor(np.clip(self.scores(queries), 0.0, LARGEST_SCORE) * lattice.top)
        return np.minimum(steps, MOST_STEPS).astype(np.int64)


class GTest(_Contingency):
    """The G-test: the likelihood ratio statistic, 2n times the mutual information in nats."""

    @staticmethod
    def cell_terms(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        """2 O ln(O / E), and 0 where O = 0."""
        return 2 * counts * np.log(np.where(counts > 0, counts, expected) / expected)


class ChiSquare(_Contingency):
    """Pearson's chi-square test, without continuity correction."""

    @staticmethod
    def cell_terms(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        """(O - E)^2 / E."""
        return (counts - expected) ** 2 / expected
