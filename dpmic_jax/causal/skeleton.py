"""Skeleton search of the PC algorithm: the queries, their order, and the edges they remove.

Algorithm 3 of the supplement begins with all edges. For k = 0, 1, 2, ... it removes the edge x - y
if x and y are independent given some k neighbours of x, or of y. The next queries depend on the
remaining edges and on nothing else (docs/causal_algorithms.md, section 1).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from dpmic_jax.causal.queries import DependenceTest, Query

Edge = tuple[int, int]  # x < y
Given = tuple[int, ...]  # ascending
Decide = Callable[[Sequence[Query]], Bool[np.ndarray, " queries"]]


class Skeleton(NamedTuple):
    """The skeleton that a search found.

    Attributes:
      columns: number of columns; they are numbered from 0.
      edges: the edges that are left.
      separating_sets: for every removed edge, the sets that were found to separate its columns.
      finished: whether no query was left. If not, some edges are kept that were not fully tested.
    """

    columns: int
    edges: frozenset[Edge]
    separating_sets: Mapping[Edge, tuple[Given, ...]]
    finished: bool


def complete(columns: int) -> frozenset[Edge]:
    """All edges, with which PC begins."""
    return frozenset(combinations(range(columns), 2))


def neighbours(edges: Collection[Edge], columns: int) -> list[list[int]]:
    """The neighbours of every column, ascending."""
    found: list[list[int]] = [[] for _ in range(columns)]
    for x, y in sorted(edges):
        found[x].append(y)
        found[y].append(x)
    return [sorted(each) for each in found]


def queries_of_level(edges: Collection[Edge], columns: int, order: int) -> list[Query]:
    """All queries given `order` neighbours, edge by edge: neighbours of x first, then of y."""
    near = neighbours(edges, columns)
    # A dict drops the sets that x and y share, and keeps the order, which answers may depend on.
    return [
        Query(x, y, given)
        for x, y in sorted(edges)
        for given in dict.fromkeys((*_subsets(near[x], y, order), *_subsets(near[y], x, order)))
    ]


def stable_skeleton(columns: int, independent: Decide, *, max_order: int) -> Skeleton:
    """PC in the stable order: neighbours are those of the graph at the beginning of the level.

    The result does not depend on the order of columns (Colombo and Maathuis 2014). All queries of a
    level are decided in one batch, and all separating sets that it finds are kept.

    Args:
      columns: number of columns.
      independent: queries -> which of them are answered "independent".
      max_order: the most columns to condition on.
    """
    edges, separating = complete(columns), {}
    for order in range(_checked(max_order) + 1):
        queries = queries_of_level(edges, columns, order)
        if not queries:
            return Skeleton(columns, edges, separating, True)
        for query, holds in zip(queries, independent(queries), strict=True):
            if holds:
                edge = query.x, query.y
                separating[edge] = (*separating.get(edge, ()), query.given)
        edges = edges - separating.keys()
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, edges, separating, not left)


def original_skeleton(columns: int, independent: Decide, *, max_order: int) -> Skeleton:
    """PC in the original order: one query at a time, and an edge is removed at once.

    For each column x and each neighbour y it conditions on subsets of the neighbours that x has at
    that moment. The result may depend on the order of columns.
    """
    edges, separating = set(complete(columns)), {}
    for order in range(_checked(max_order) + 1):
        if not queries_of_level(edges, columns, order):
            break
        for x, y in ((x, y) for x in range(columns) for y in range(columns) if x != y):
            edge = min(x, y), max(x, y)
            if edge not in edges:
                continue
            # Only the neighbours of x: those of y are used when the loop comes to (y, x).
            for given in _subsets(neighbours(edges, columns)[x], y, order):
                if independent([Query(*edge, given)])[0]:
                    edges.remove(edge)
                    separating[edge] = (given,)
                    break
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, frozenset(edges), separating, not left)


def score_at_most(test: DependenceTest, threshold: float) -> Decide:
    """Answer "independent" where the score is at most `threshold`."""
    return lambda queries: test.scores(queries) <= threshold


def p_value_above(p_values: Callable[[Sequence[Query]], np.ndarray], level: float) -> Decide:
    """Answer "independent" where the p-value is above `level`.

    Args:
      p_values: queries -> the p-value of each, such as `GTest(data).p_values`.
      level: in (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"expected 0 < level < 1, got {level}")
    return lambda queries: p_values(queries) > level


def _subsets(near: Sequence[int], other: int, order: int) -> Iterator[Given]:
    return combinations([column for column in near if column != other], order)


def _checked(max_order: int) -> int:
    if isinstance(max_order, bool) or not isinstance(max_order, int) or max_order < 0:
        raise ValueError(f"expected max_order to be an integer of at least 0, got {max_order!r}")
    return max_order
