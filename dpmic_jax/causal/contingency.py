"""G-test and chi-square test of contingency tables, block by block.

With O the counts of a block and E = row sum x column sum / size,

    G = 2 sum O ln(O / E),     X^2 = sum (O - E)^2 / E,

summed over blocks; under independence both are nearly chi-square with sum (r - 1)(c - 1) degrees
of freedom, where r and c are the categories of x and y that occur in the block. An empty block, or
one in which a column is constant, adds nothing; without degrees of freedom p = 1.

For the search without privacy: one record can move X^2 by n, and p from one end to the other. A
private answer comes from subsamples (`median`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.causal.queries import MOST_STEPS, Coded, Query
from dpmic_jax.causal.tables import check, tables
from dpmic_jax.dp.noise.lattice import Lattice

MOST = 300  # of a score; float64 has no p below 10^-308


class Statistics(NamedTuple):
    """A statistic of each query, and its degrees of freedom."""

    value: Float64[np.ndarray, " queries"]
    degrees: Int64[np.ndarray, " queries"]


@dataclass(frozen=True, eq=False)
class _Contingency(ABC):
    data: Coded

    @property
    def columns(self) -> int:
        return self.data.columns

    @property
    def n(self) -> int:
        return self.data.n

    @staticmethod
    @abstractmethod
    def distance(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        """What a cell adds, where something is expected in it."""

    def statistics(self, queries: Sequence[Query]) -> Statistics:
        """The statistic and the degrees of freedom."""
        value, degrees = np.empty(len(queries)), np.empty(len(queries), np.int64)
        for place, counts in tables(self.data, queries):
            x, y = counts.sum(axis=-1), counts.sum(axis=-2)
            size = np.maximum(x.sum(axis=-1), 1)[..., None, None]
            expected = x[..., :, None].astype(np.float64) * y[..., None, :] / size
            cells = self.distance(counts.astype(np.float64), np.where(expected > 0, expected, 1.0))
            value[place] = np.where(expected > 0, cells, 0.0).sum(axis=(-3, -2, -1))
            free = [np.maximum((margin > 0).sum(axis=-1) - 1, 0) for margin in (x, y)]
            degrees[place] = (free[0] * free[1]).sum(axis=-1)
        return Statistics(value, degrees)

    def p_values(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """How likely so large a statistic is under independence, for large counts."""
        from scipy.special import chdtrc

        value, degrees = self.statistics(queries)
        return np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), np.maximum(value, 0.0)), 1.0)

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """-log10 p, at most 300: the same threshold does for all degrees of freedom."""
        return -np.log10(np.maximum(self.p_values(queries), 10.0**-MOST))

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The whole range: nothing less can be said of p."""
        check(queries, self.data.categories)
        return Fraction(MOST)

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """Scores, rounded down. Floats will do, since any two points may be neighbours'."""
        steps = np.floor(np.clip(self.scores(queries), 0.0, MOST) * lattice.top)
        return np.minimum(steps, MOST_STEPS).astype(np.int64)


class GTest(_Contingency):
    """The G-test: likelihood ratio, or 2n times mutual information in nats."""

    @staticmethod
    def distance(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        return 2 * counts * np.log(np.where(counts > 0, counts, expected) / expected)


class ChiSquare(_Contingency):
    """Pearson's chi-square test, without a correction for continuity."""

    @staticmethod
    def distance(
        counts: Float64[np.ndarray, "*shape"], expected: Float64[np.ndarray, "*shape"]
    ) -> Float64[np.ndarray, "*shape"]:
        return (counts - expected) ** 2 / expected
