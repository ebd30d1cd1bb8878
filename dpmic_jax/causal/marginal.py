"""MICr as a test of marginal dependence, for searches of order 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.causal.queries import CodedTest, Query
from dpmic_jax.causal.tables import check
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.mic.xlogx import exact_gains


@dataclass(frozen=True, eq=False)
class MarginalMICr(CodedTest):
    """MICr of pairs of columns; a column of k categories is binned on (-1/2, k - 1/2).

    Attributes:
      data: the columns.
      statistic: which grids to score.
    """

    statistic: MICr

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """MICr, in [0, 1]; it is 0 if a column is constant."""
        return self._values(queries) * 2.0**-VALUE_BITS

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move MICr on the integer path."""
        self._check(queries)
        return min(Fraction(1), sensitivity.integer_path(self.statistic, self.n))

    @property
    def largest(self) -> float:
        """1, the largest MICr."""
        return 1.0

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits), computed in integers."""
        values, bits = self._values(queries), lattice.bits - VALUE_BITS
        return values << bits if bits >= 0 else values >> -bits

    def _values(self, queries: Sequence[Query]) -> Int64[np.ndarray, " queries"]:
        """MICr in units of 2^-VALUE_BITS."""
        self._check(queries)
        bounds = [(-0.5, count - 0.5) for count in self.data.categories]
        table = self.statistic.cut(list(self.data.codes), bounds)
        pairs = np.array([query[:2] for query in queries])
        tiles = batch.score_pairs(table, pairs, exact_gains(self.n))
        values = np.concatenate([integer_mic(table.grids, tile) for tile in tiles])
        return np.clip(values.astype(np.int64), 0, 2**VALUE_BITS)

    def _check(self, queries: Sequence[Query]) -> None:
        check(queries, self.data.categories)
        conditional = next((query for query in queries if query.given), None)
        if conditional is not None:
            raise ValueError(
                f"MICr has no conditional form, got {conditional}; pass queries with given=(), or "
                "use Kendall or Spearman"
            )
