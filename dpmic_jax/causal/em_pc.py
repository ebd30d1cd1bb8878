"""EM-PC: the best separating set of every edge, chosen privately; a noisy look at it decides.

A decision is a permute-and-flip among the edge's candidates and one noisy score, and a level's
decisions share its part of the budget (docs/causal.md, Theorem 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int64, Key

from dpmic_jax.causal.answers import Answers, computed
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.score_lattice import (
    TOP,
    LevelRefused,
    level_lattice,
    level_points,
    point_of,
    power_of_two,
    priced,
)
from dpmic_jax.causal.search import Make, Search
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.noise.bounded import ClippedLaplace
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import pair_key
from dpmic_jax.dp.selection import PermuteAndFlip

_CHOOSE, _EXAMINE, _EXAMINE_ONLY = range(3)  # what a key is for


@dataclass(frozen=True, kw_only=True)
class EMPC(Search):
    """Settings of EM-PC: levels 0 .. max_order have equal parts of the budget."""

    @property
    def mechanism(self) -> str:
        return "EM-PC"

    @property
    def levels(self) -> int:
        return self.max_order + 1

    def releases(self, columns: int) -> int:
        return self.levels * len(complete(columns))

    def check(self, data: Coded, make: Make) -> None:
        queries = queries_of_level(complete(data.columns), data.columns, 0)
        lattice = level_lattice(make(data).sensitivity(queries))
        self._examination(lattice, self.each(data.columns, self.levels * len(queries)))

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], answers: Answers = computed
    ) -> Skeleton:
        columns, test = data.columns, make(data)
        edges, separating = complete(columns), {}
        for order in range(self.levels):
            queries = queries_of_level(edges, columns, order)
            if not queries:
                return Skeleton(columns, edges, separating, True)
            try:
                gone = answers(
                    order, partial(self._decided, test, queries, pair_key(key, order, 0))
                )
            except LevelRefused:
                return Skeleton(columns, edges, separating, False)
            separating |= {(x, y): (tuple(given),) for x, y, given in gone}
            edges = edges - separating.keys()
        left = queries_of_level(edges, columns, self.levels)
        return Skeleton(columns, edges, separating, not left)

    def _examination(self, lattice: Lattice, epsilon: Fraction) -> ClippedLaplace:
        return ClippedLaplace(epsilon=epsilon, sensitivity=lattice.sensitivity, top=TOP)

    def _decided(
        self, test: DependenceTest, queries: Sequence[Query], key: Key[Array, ""]
    ) -> list[Query]:
        """The queries that remove their edges."""
        groups = [list(group) for _, group in groupby(queries, lambda query: query[:2])]
        releases = self.levels * len(groups)
        lattice = priced(lambda: level_lattice(test.sensitivity(queries)))
        alone = priced(lambda: self._examination(lattice, self.each(test.columns, releases)))
        half = self.each(test.columns, 2 * releases)
        chosen = priced(lambda: self._examination(lattice, half))
        choice = priced(lambda: PermuteAndFlip(epsilon=half, sensitivity=lattice.sensitivity))
        points = np.split(
            level_points(test, queries, lattice), np.cumsum([len(group) for group in groups])[:-1]
        )
        picked = _chosen(choice, points, pair_key(key, _CHOOSE, 0))
        best = np.array([each[place] for each, place in zip(points, picked, strict=True)])
        limit = point_of(self.level, lattice)
        several = np.array([len(group) > 1 for group in groups])
        passes = np.where(
            several,
            _examined(chosen, best, pair_key(key, _EXAMINE, 0)) <= limit,
            _examined(alone, best, pair_key(key, _EXAMINE_ONLY, 0)) <= limit,
        )
        told = zip(groups, picked, passes, strict=True)
        return [group[place] for group, place, holds in told if holds]


def _chosen(
    choice: PermuteAndFlip, points: Sequence[Int64[np.ndarray, " candidates"]], key: Key[Array, ""]
) -> Int[np.ndarray, " edges"]:
    """Of every edge the place of a candidate whose score is nearly its lowest."""
    if max(map(len, points)) == 1:
        return np.zeros(len(points), int)
    shape = power_of_two(len(points)), power_of_two(max(map(len, points)))
    scores, eligible = np.zeros(shape, np.int32), np.zeros(shape, bool)
    eligible[:, 0] = True  # rows that fill up the table have one, too
    for row, each in enumerate(points):
        scores[row, : len(each)] = -each
        eligible[row, : len(each)] = True
    keys = jax.vmap(lambda row: pair_key(key, row, 0))(jnp.arange(shape[0], dtype=jnp.int32))

    def one(scores: Array, eligible: Bool[Array, " candidates"], key: Key[Array, ""]) -> Array:
        return choice.select_among(scores, eligible, key=key)

    found = jax.vmap(one)(jnp.asarray(scores), jnp.asarray(eligible), keys)
    return np.asarray(found)[: len(points)]


def _examined(
    law: ClippedLaplace, points: Int64[np.ndarray, " edges"], key: Key[Array, ""]
) -> Int[np.ndarray, " edges"]:
    filled = np.zeros(power_of_two(len(points)), np.int32)
    filled[: len(points)] = points
    return np.asarray(law.release(jnp.asarray(filled), key=key))[: len(points)]
