"""The search by rounds: one pass over each level's queries, one finding a round."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tqdm import tqdm

from dpmic_jax.causal.answers import Answers
from dpmic_jax.causal.queries import Query
from dpmic_jax.causal.score_lattice import LevelRefused
from dpmic_jax.causal.skeleton import Edge, Given, Skeleton, complete, queries_of_level


class Finding(NamedTuple):
    """What a round tells: a query's place in the level's list, and whether its edge goes."""

    place: int
    independent: bool


Round = Callable[[int, int], Finding | None]  # number of the round, where it begins


def by_rounds(
    columns: int,
    *,
    max_order: int,
    rounds: int,
    opened: Callable[[int, Sequence[Query]], Round],
    answers: Answers,
) -> Skeleton:
    """The skeleton from at most `rounds` findings.

    A round begins behind the query that the last one found, or behind its edge if that is
    removed; it ends with a finding, or with None at the end of the level.

    Args:
      columns: how many there are.
      max_order: the last level.
      rounds: when they are used up, the edges that are left are kept.
      opened: order, queries of the level -> its rounds; or raises `LevelRefused`.
      answers: asks each round, or knows what it told before.
    """
    with tqdm(total=rounds, unit=" rounds", disable=None) as bar:

        def asked(look: Round, number: int, start: int) -> Finding | None:
            found = answers(number, partial(look, number, start))
            bar.update()
            return None if found is None else Finding(*found)

        return _searched(columns, max_order, rounds, opened, asked)


def _searched(
    columns: int,
    max_order: int,
    rounds: int,
    opened: Callable[[int, Sequence[Query]], Round],
    asked: Callable[[Round, int, int], Finding | None],
) -> Skeleton:
    edges, separating, used = complete(columns), {}, 0
    for order in range(max_order + 1):
        queries = queries_of_level(edges, columns, order)
        if not queries:
            return Skeleton(columns, edges, separating, True)
        if used == rounds:
            return Skeleton(columns, edges, separating, False)
        try:
            look = opened(order, queries)
        except LevelRefused:
            return Skeleton(columns, edges, separating, False)
        start, gone = 0, dict[Edge, tuple[Given, ...]]()
        while start < len(queries) and used < rounds:
            found = asked(look, used, start)
            used += 1
            if found is None:
                start = len(queries)
            else:
                start = found.place + 1
                x, y, given = queries[found.place]
                if found.independent:
                    gone[x, y] = (given,)
                    while start < len(queries) and queries[start][:2] == (x, y):
                        start += 1
        separating |= gone
        edges = edges - gone.keys()
        if start < len(queries):
            return Skeleton(columns, edges, separating, False)
    left = queries_of_level(edges, columns, max_order + 1)
    return Skeleton(columns, edges, separating, not left)
