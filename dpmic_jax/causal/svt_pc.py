"""SVT-PC: sparse vector over the stream of queries; only removed edges cost.

A round is one `SparseVector` that looks for a score of at most T in what is left of the level,
e-DP; rounds compose (docs/causal.md, Theorem 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int64, Key

from dpmic_jax.causal.answers import Answers, computed
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.round_search import Finding, Round, by_rounds
from dpmic_jax.causal.score_lattice import (
    TOP,
    level_lattice,
    level_points,
    padded,
    point_of,
    power_of_two,
    priced,
)
from dpmic_jax.causal.search import Make, Search
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import pair_key
from dpmic_jax.dp.selection import SparseVector


@dataclass(frozen=True, kw_only=True)
class SVTPC(Search):
    """Settings of SVT-PC.

    Attributes:
      rounds: R; each removes one edge, or finds that the level has none left to remove.
    """

    rounds: int

    def __post_init__(self):
        super().__post_init__()
        integer("rounds", self.rounds, 1, 2**20)

    @property
    def mechanism(self) -> str:
        return "SVT-PC"

    def releases(self, columns: int) -> int:
        return self.rounds

    def public(self) -> dict[str, str]:
        return super().public() | {"rounds": str(self.rounds)}

    def law(self, lattice: Lattice, epsilon: Fraction) -> SparseVector:
        """Of one round, on points turned around: TOP - point is large for independence."""
        return SparseVector(
            epsilon=epsilon,
            sensitivity=lattice.sensitivity,
            threshold=TOP - point_of(self.level, lattice),
            at_most=1,
            top=TOP,
        )

    def check(self, data: Coded, make: Make) -> None:
        first = queries_of_level(complete(data.columns), data.columns, 0)
        lattice = level_lattice(make(data).sensitivity(first))
        self.law(lattice, self.each(data.columns, self.rounds))

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], answers: Answers = computed
    ) -> Skeleton:
        test = make(data)
        return by_rounds(
            data.columns,
            max_order=self.max_order,
            rounds=self.rounds,
            opened=lambda order, queries: self._opened(test, key, order, queries),
            answers=answers,
        )

    def _opened(
        self, test: DependenceTest, key: Key[Array, ""], order: int, queries: Sequence[Query]
    ) -> Round:
        lattice = priced(lambda: level_lattice(test.sensitivity(queries)))
        law = priced(lambda: self.law(lattice, self.each(test.columns, self.rounds)))
        size = power_of_two(len(queries))

        @cache
        def turned() -> Int64[np.ndarray, " queries"]:
            """Scored when they are first looked at: answers that are kept need none of them."""
            return TOP - level_points(test, queries, lattice)

        def look(number: int, start: int) -> Finding | None:
            scores = jnp.asarray(padded(turned()[start:], size, 0).astype(np.int32))
            found = law.select(scores, key=pair_key(key, order, number))
            if len(found) == 0 or start + found[0] >= len(queries):
                return None
            return Finding(start + int(found[0]), True)

        return look
