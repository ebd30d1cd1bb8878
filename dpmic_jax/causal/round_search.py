"""Searches by rounds: one pass over the queries of each level, at most one finding a round."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tqdm import tqdm

from dpmic_jax.causal.answers import AnswerStore
from dpmic_jax.causal.queries import Query
from dpmic_jax.causal.score_lattice import LevelRefused
from dpmic_jax.causal.skeleton import Edge, Given, Skeleton, complete, queries_of_level


class Finding(NamedTuple):
    """What a round releases: the place of a query, and whether it removes its edge."""

    place: int
    independent: bool


# (number of the round, place of its first query) -> what the round finds
Round = Callable[[int, int], Finding | None]


def by_rounds(
    columns: int,
    *,
    max_order: int,
    rounds: int,
    open_level: Callable[[int, Sequence[Query]], Round],
    store: AnswerStore,
) -> Skeleton:
    """The skeleton that at most `rounds` rounds find.

    A round begins after the query that the previous round found, or after all queries of its edge
    if the edge is removed. It ends with a finding, or with None at the end of the level.

    Args:
      columns: number of columns.
      max_order: the last level.
      rounds: number of rounds; when they are used up, the remaining edges are kept.
      open_level: (order, queries of the level) -> its rounds; may raise `LevelRefused`.
      store: computes each round's finding, or returns the stored one.
    """
    with tqdm(total=rounds, unit=" rounds", disable=None) as bar:

        def ask(look: Round, number: int, start: int) -> Finding | None:
            found = store(number, partial(look, number, start))
            bar.update()
            # A stored finding comes back from JSON as a list.
            return None if found is None else Finding(*found)

        return _search(columns, max_order, rounds, open_level, ask)


def _search(
    columns: int,
    max_order: int,
    rounds: int,
    open_level: Callable[[int, Sequence[Query]], Round],
    ask: Callable[[Round, int, int], Finding | None],
) -> Skeleton:
    edges, separating, used = complete(columns), {}, 0
    for order in range(max_order + 1):
        queries = queries_of_level(edges, columns, order)
        if not queries:
            return Skeleton(columns, edges, separating, True)
        if used == rounds:
            return Skeleton(columns, edges, separating, False)
        try:
            look = open_level(order, queries)
        except LevelRefused:
            return Skeleton(columns, edges, separating, False)
        # Edges are removed at the end of the level, as in the stable order of PC.
        start, removed = 0, dict[Edge, tuple[Given, ...]]()
        while start < len(queries) and used < rounds:
            found = ask(look, used, start)
            used += 1
            if found is None:
                start = len(queries)
            else:
                start = found.place + 1
                x, y, given = queries[found.place]
                if found.independent:
                    removed[x, y] = (given,)
                    while start < len(queries) and queries[start][:2] == (x, y):
                        start += 1
        separating |= removed
        edges = edges - removed.keys()
        if start < len(queries):
            return Skeleton(columns, edges, separating, False)
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, edges, separating, not left)
