"""PC's search for the edges: which queries, in which order, and what their answers remove.

The supplement's Algorithm 3: begin with all edges; for k = 0, 1, 2, ... remove the edge x - y when
x and y are independent given some k neighbours of x, or of y. Which queries come next depends on
the edges that are left, and on nothing else (docs/causal.md, section 1).
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
    """What a search found.

    Attributes:
      columns: how many there are, numbered from 0.
      edges: those that are left.
      separating_sets: of every removed edge, the sets that were found to separate its columns.
      finished: whether no query was left; otherwise edges are kept that were not tested fully.
    """

    columns: int
    edges: frozenset[Edge]
    separating_sets: Mapping[Edge, tuple[Given, ...]]
    finished: bool


def complete(columns: int) -> frozenset[Edge]:
    """All edges, where PC begins."""
    return frozenset(combinations(range(columns), 2))


def neighbours(edges: Collection[Edge], columns: int) -> list[list[int]]:
    """Of every column those that it shares an edge with, ascending."""
    found: list[list[int]] = [[] for _ in range(columns)]
    for x, y in sorted(edges):
        found[x].append(y)
        found[y].append(x)
    return [sorted(each) for each in found]


def queries_of_level(edges: Collection[Edge], columns: int, order: int) -> list[Query]:
    """All queries given `order` neighbours, edge by edge; those of x's neighbours, then of y's."""
    near = neighbours(edges, columns)
    return [
        Query(x, y, given)
        for x, y in sorted(edges)
        for given in dict.fromkeys((*_subsets(near[x], y, order), *_subsets(near[y], x, order)))
    ]


def stable_skeleton(columns: int, independent: Decide, *, max_order: int) -> Skeleton:
    """PC in the stable order: neighbours are those of the graph when the level began.

    It does not depend on the order of columns (Colombo and Maathuis 2014). All queries of a level
    are decided in one batch, and all separating sets that it finds are kept.

    Args:
      columns: how many there are.
      independent: queries -> which of them are answered "independent".
      max_order: the most columns to condition on.
    """
    edges, separating = complete(columns), {}
    for order in range(_checked(max_order) + 1):
        asked = queries_of_level(edges, columns, order)
        if not asked:
            return Skeleton(columns, edges, separating, True)
        for query, holds in zip(asked, independent(asked), strict=True):
            if holds:
                edge = query.x, query.y
                separating[edge] = (*separating.get(edge, ()), query.given)
        edges = edges - separating.keys()
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, edges, separating, not left)


def original_skeleton(columns: int, independent: Decide, *, max_order: int) -> Skeleton:
    """PC in the original order: one query at a time, an edge removed at once.

    For each column x in order and each y next to it, subsets of the neighbours that x has at that
    moment. The result may depend on the order of columns.
    """
    edges, separating = set(complete(columns)), {}
    for order in range(_checked(max_order) + 1):
        if not queries_of_level(edges, columns, order):
            break
        for x, y in ((x, y) for x in range(columns) for y in range(columns) if x != y):
            edge = min(x, y), max(x, y)
            if edge not in edges:
                continue
            for given in _subsets(neighbours(edges, columns)[x], y, order):
                if independent([Query(*edge, given)])[0]:
                    edges.remove(edge)
                    separating[edge] = (given,)
                    break
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, frozenset(edges), separating, not left)


def score_at_most(test: DependenceTest, threshold: float) -> Decide:
    """Independent where the score is at most `threshold`."""
    return lambda queries: test.scores(queries) <= threshold


def p_value_above(p_values: Callable[[Sequence[Query]], np.ndarray], level: float) -> Decide:
    """Independent where the p-value is above `level`.

    Args:
      p_values: queries -> the p-value of each, such as a G-test's method of that name.
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
