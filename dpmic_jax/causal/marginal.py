"""MICr as a test of dependence without conditioning: order 0 of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from dpmic_jax.causal.queries import Coded, Query
from dpmic_jax.causal.tables import check
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.mic.xlogx import exact_gains


@dataclass(frozen=True, eq=False)
class MarginalMICr:
    """MICr of pairs of columns, k categories being cut on (-1/2, k - 1/2).

    Attributes:
      data: the columns.
      statistic: which grids to score.
    """

    data: Coded
    statistic: MICr

    @property
    def columns(self) -> int:
        return self.data.columns

    @property
    def n(self) -> int:
        return self.data.n

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """MICr, in [0, 1]; 0 for a constant column."""
        return self._values(queries) * 2.0**-VALUE_BITS

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move MICr on the integer path."""
        self._check(queries)
        return min(Fraction(1), sensitivity.integer_path(self.statistic, self.n))

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits): all is integer arithmetic."""
        values, bits = self._values(queries), lattice.bits - VALUE_BITS
        return values << bits if bits >= 0 else values >> -bits

    def _values(self, queries: Sequence[Query]) -> Int64[np.ndarray, " queries"]:
        """In units of 2^-VALUE_BITS."""
        self._check(queries)
        bounds = [(-0.5, count - 0.5) for count in self.data.categories]
        cut = self.statistic.cut(list(self.data.codes), bounds)
        pairs = np.array([query[:2] for query in queries])
        tiles = batch.score_pairs(cut, pairs, exact_gains(self.n))
        found = np.concatenate([integer_mic(cut.grids, tile) for tile in tiles])
        return np.clip(found.astype(np.int64), 0, 2**VALUE_BITS)

    def _check(self, queries: Sequence[Query]) -> None:
        check(queries, self.data.categories)
        asked = next((query for query in queries if query.given), None)
        if asked is not None:
            raise ValueError(
                f"MICr has no conditional form, got {asked}; pass queries with given=(), or use "
                "Kendall or Spearman"
            )
