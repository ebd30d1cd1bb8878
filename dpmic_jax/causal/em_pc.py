"""EM-PC: the best separating set of every edge is chosen privately, and its noisy score decides.

A decision is a permute-and-flip selection among the candidates of an edge and one noisy score. The
decisions of a level share the level's part of the budget (docs/causal_algorithms.md, Theorem 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int64, Key

from dpmic_jax.causal.answers import AnswerStore
from dpmic_jax.causal.decisions import Comparison, Decision
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.score_lattice import (
    TOP,
    LevelRefused,
    build_or_refuse,
    level_lattice,
    level_points,
    point_of,
    power_of_two,
)
from dpmic_jax.causal.search import Make, Search
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.noise.bounded import ClippedLaplace
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.dp.rng.keys import pair_key
from dpmic_jax.dp.selection import PermuteAndFlip

# Folded into the key, so that the draws of the three steps are independent.
_CHOOSE, _EXAMINE, _EXAMINE_ONLY = range(3)


@dataclass(frozen=True, kw_only=True)
class EMPC(Search):
    """Settings of EM-PC: the levels 0 .. max_order have equal parts of the budget."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism in the event."""
        return "EM-PC"

    @property
    def levels(self) -> int:
        """The number of levels that share the budget, max_order + 1."""
        return self.max_order + 1

    def releases(self, columns: int) -> int:
        """One release for every pair of columns in every level, the most that there can be."""
        return self.levels * len(complete(columns))

    def check(self, data: Coded, make: Make) -> None:
        """Raise ValueError if the noise of the first level cannot be drawn."""
        queries = queries_of_level(complete(data.columns), data.columns, 0)
        lattice = level_lattice(make(data).sensitivity(queries))
        self._examination(lattice, self.each(data.columns, self.levels * len(queries)))

    @property
    def fewer(self) -> str:
        """What leaves more epsilon to each release, in words."""
        return "fewer columns or a smaller max_order"

    def decision(self, data: Coded, make: Make, query: Query) -> Decision:
        """The noise on the score of a candidate: one of several has half of the share."""
        several = comb(data.columns - 2, len(query.given)) > 1
        epsilon = self.each(data.columns, (1 + several) * self.releases(data.columns))
        noise = float(make(data).sensitivity([query]) / epsilon)
        return Decision((Comparison(float(self.threshold), noise),))

    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], store: AnswerStore
    ) -> Skeleton:
        columns, test = data.columns, make(data)
        edges, separating = complete(columns), {}
        for order in range(self.levels):
            queries = queries_of_level(edges, columns, order)
            if not queries:
                return Skeleton(columns, edges, separating, True)
            try:
                level_key = pair_key(key, order, 0)
                removed = store(order, partial(self._removals, test, queries, level_key))
            except LevelRefused:
                return Skeleton(columns, edges, separating, False)
            separating |= {(x, y): (tuple(given),) for x, y, given in removed}
            edges = edges - separating.keys()
        left = queries_of_level(edges, columns, self.levels)
        return Skeleton(columns, edges, separating, not left)

    def _examination(self, lattice: Lattice, epsilon: Fraction) -> ClippedLaplace:
        return ClippedLaplace(epsilon=epsilon, sensitivity=lattice.sensitivity, top=TOP)

    def _removals(
        self, test: DependenceTest, queries: Sequence[Query], key: Key[Array, ""]
    ) -> list[Query]:
        """The queries that remove their edges, at most one for each edge."""
        groups = [list(group) for _, group in groupby(queries, lambda query: query[:2])]
        releases = self.levels * len(groups)
        lattice = build_or_refuse(lambda: level_lattice(test.sensitivity(queries)))
        # An edge with one candidate needs no selection, and its score has the whole share.
        whole, half = (self.each(test.columns, count) for count in (releases, 2 * releases))
        alone = build_or_refuse(lambda: self._examination(lattice, whole))
        chosen = build_or_refuse(lambda: self._examination(lattice, half))
        choice = build_or_refuse(
            lambda: PermuteAndFlip(epsilon=half, sensitivity=lattice.sensitivity)
        )
        points = np.split(
            level_points(test, queries, lattice), np.cumsum([len(group) for group in groups])[:-1]
        )
        picked = _chosen(choice, points, pair_key(key, _CHOOSE, 0))
        best = np.array([each[place] for each, place in zip(points, picked, strict=True)])
        limit = point_of(self.exact_threshold, lattice)
        several = np.array([len(group) > 1 for group in groups])
        # Both kinds of noise are drawn for every edge, from keys of their own; one is used.
        independent = np.where(
            several,
            _examined(chosen, best, pair_key(key, _EXAMINE, 0)) <= limit,
            _examined(alone, best, pair_key(key, _EXAMINE_ONLY, 0)) <= limit,
        )
        decisions = zip(groups, picked, independent, strict=True)
        return [group[place] for group, place, removed in decisions if removed]


def _chosen(
    choice: PermuteAndFlip, points: Sequence[Int64[np.ndarray, " candidates"]], key: Key[Array, ""]
) -> Int[np.ndarray, " edges"]:
    """For every edge the place of a candidate, chosen privately to have a low score."""
    if max(map(len, points)) == 1:  # no edge has a choice, so nothing is drawn
        return np.zeros(len(points), int)
    shape = power_of_two(len(points)), power_of_two(max(map(len, points)))
    scores, eligible = np.zeros(shape, np.int32), np.zeros(shape, bool)
    eligible[:, 0] = True  # rows of padding need a candidate, too
    for row, each in enumerate(points):
        # Permute-and-flip selects high scores, and a low point means independence.
        scores[row, : len(each)] = -each
        eligible[row, : len(each)] = True
    # A key for each edge: selections of different edges are independent.
    keys = jax.vmap(lambda row: pair_key(key, row, 0))(jnp.arange(shape[0], dtype=jnp.int32))

    def one(scores: Array, eligible: Bool[Array, " candidates"], key: Key[Array, ""]) -> Array:
        return choice.select_among(scores, eligible, key=key)

    places = jax.vmap(one)(jnp.asarray(scores), jnp.asarray(eligible), keys)
    return np.asarray(places)[: len(points)]


def _examined(
    mechanism: ClippedLaplace, points: Int64[np.ndarray, " edges"], key: Key[Array, ""]
) -> Int[np.ndarray, " edges"]:
    """Noisy points, drawn in a shape that is a power of two: few programs are compiled."""
    filled = np.zeros(power_of_two(len(points)), np.int32)
    filled[: len(points)] = points
    return np.asarray(mechanism.release(jnp.asarray(filled), key=key))[: len(points)]
