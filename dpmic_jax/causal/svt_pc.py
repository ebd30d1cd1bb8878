"""SVT-PC: the sparse vector technique over the stream of queries; only removed edges cost privacy.

A round is one e-DP `SparseVector`, which looks for a score of at most T among the remaining queries
of the level; rounds compose (docs/causal_algorithms.md, Theorem 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int64, Key

from dpmic_jax.causal.answers import AnswerStore
from dpmic_jax.causal.decisions import Comparison, Decision
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.round_search import Finding, Round, by_rounds
from dpmic_jax.causal.score_lattice import (
    TOP,
    build_or_refuse,
    level_lattice,
    level_points,
    padded,
    point_of,
    power_of_two,
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
      rounds: R; each removes one edge, or finds no further edge to remove in the level.
    """

    rounds: int

    def __post_init__(self):
        super().__post_init__()
        integer("rounds", self.rounds, 1, 2**20)

    @property
    def mechanism(self) -> str:
        """Name of the mechanism in the event."""
        return "SVT-PC"

    def releases(self, columns: int) -> int:
        """One release a round."""
        return self.rounds

    def event_settings(self) -> dict[str, str]:
        """Settings of the search in its event."""
        return super().event_settings() | {"rounds": str(self.rounds)}

    def round_mechanism(self, lattice: Lattice, epsilon: Fraction) -> SparseVector:
        """The mechanism of one round, on scores TOP - point, which are large for independence."""
        return SparseVector(
            epsilon=epsilon,
            sensitivity=lattice.sensitivity,
            threshold=TOP - point_of(self.exact_threshold, lattice),
            at_most=1,
            top=TOP,
        )

    def check(self, data: Coded, make: Make) -> None:
        """Raise ValueError if the noise of the first level cannot be drawn."""
        first = queries_of_level(complete(data.columns), data.columns, 0)
        lattice = level_lattice(make(data).sensitivity(first))
        self.round_mechanism(lattice, self.each(data.columns, self.rounds))

    @property
    def fewer(self) -> str:
        """What leaves more epsilon to each release, in words."""
        return "fewer columns or rounds"

    def decision(self, data: Coded, make: Make, query: Query) -> Decision:
        """The noise of a round on one query, and on the threshold.

        A round that has passed over other queries has more likely a low threshold than a high one,
        which removes less.
        """
        unit = float(make(data).sensitivity([query]) / self.each(data.columns, self.rounds))
        return Decision((Comparison(float(self.threshold), 4 * unit, 2 * unit),))

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], store: AnswerStore
    ) -> Skeleton:
        test = make(data)
        return by_rounds(
            data.columns,
            max_order=self.max_order,
            rounds=self.rounds,
            open_level=lambda order, queries: self._open_level(test, key, order, queries),
            store=store,
        )

    def _open_level(
        self, test: DependenceTest, key: Key[Array, ""], order: int, queries: Sequence[Query]
    ) -> Round:
        epsilon = self.each(test.columns, self.rounds)
        lattice = build_or_refuse(lambda: level_lattice(test.sensitivity(queries)))
        mechanism = build_or_refuse(lambda: self.round_mechanism(lattice, epsilon))
        size = power_of_two(len(queries))

        @cache
        def independence() -> Int64[np.ndarray, " queries"]:
            """Computed on first use: a resumed search needs no scores for stored answers."""
            return TOP - level_points(test, queries, lattice)

        def look(number: int, start: int) -> Finding | None:
            # Padding has the lowest score on any data; if it is selected, nothing was found.
            scores = jnp.asarray(padded(independence()[start:], size, 0).astype(np.int32))
            found = mechanism.select(scores, key=pair_key(key, order, number))
            if len(found) == 0 or start + found[0] >= len(queries):
                return None
            return Finding(start + int(found[0]), True)

        return look
