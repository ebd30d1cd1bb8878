"""Orient the edges of a skeleton: colliders by the separating sets, then Meek's rules.

A mixed graph is a set of pairs: (x, y) alone is x -> y, (x, y) and (y, x) together are x - y.
Triples are visited by their middle column. The order matters only if answers contradict each other.
"""

from collections.abc import Iterator
from itertools import combinations, permutations

from dpmic_jax.causal.skeleton import Skeleton, neighbours

Pairs = set[tuple[int, int]]


def cpdag(skeleton: Skeleton) -> Pairs:
    """The completed partially directed acyclic graph (CPDAG) of the skeleton's equivalence class.

    Without contradictions it has the arrows that all graphs of the class share (Meek 1995).
    """
    return meek(colliders(skeleton), skeleton)


def colliders(skeleton: Skeleton) -> Pairs:
    """Orient x - y - z as x -> y <- z if x and z are not adjacent and no separating set holds y.

    The triple is skipped if one of its edges is an arrow from y already.
    """
    pairs = {pair for x, y in skeleton.edges for pair in ((x, y), (y, x))}
    for y, around in enumerate(neighbours(skeleton.edges, skeleton.columns)):
        for x, z in combinations(around, 2):
            if (x, z) in skeleton.edges or any(y in s for s in skeleton.separating_sets[x, z]):
                continue
            # An earlier collider may have turned an edge the other way: the first one wins.
            if (x, y) in pairs and (z, y) in pairs:
                pairs -= {(y, x), (y, z)}
    return pairs


def meek(pairs: Pairs, skeleton: Skeleton) -> Pairs:
    """Apply Meek's rules in turn until none of them changes anything.

    An arrow that would close a cycle is left out; only contradictory answers lead to one.
    """
    pairs, before = set(pairs), -1
    while len(pairs) != before:
        before = len(pairs)
        for rule in (_chain, _shortcut, _two_ways_in, _long_way):
            for x, y in rule(pairs, skeleton):
                if _undirected(pairs, x, y) and not _directed_path(pairs, y, x):
                    pairs.remove((y, x))
    return pairs


def _chain(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 1: x -> y if w -> x - y, w and y not adjacent; else x would be a collider."""
    for w, x, y in _paths(skeleton):
        if _arrow(pairs, w, x) and _undirected(pairs, x, y) and not _adjacent(skeleton, w, y):
            yield x, y


def _shortcut(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 2: x -> y if x -> w -> y and x - y; else there would be a cycle."""
    for x, w, y in _paths(skeleton):
        if _arrow(pairs, x, w) and _arrow(pairs, w, y) and _undirected(pairs, x, y):
            yield x, y


def _two_ways_in(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 3: x -> y if x - v -> y, x - w -> y and x - y, v and w not adjacent."""
    near = neighbours(skeleton.edges, skeleton.columns)
    for x, around in enumerate(near):
        for v, w in combinations(around, 2):
            if _adjacent(skeleton, v, w) or not (
                _undirected(pairs, x, v) and _undirected(pairs, x, w)
            ):
                continue
            for y in around:
                if _arrow(pairs, v, y) and _arrow(pairs, w, y) and _undirected(pairs, x, y):
                    yield x, y


def _long_way(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 4: x -> y if x - v -> w -> y and x - y, x and w adjacent, v and y not."""
    near = neighbours(skeleton.edges, skeleton.columns)
    for x, around in enumerate(near):
        for v, w, y in permutations(around, 3):
            if (
                _undirected(pairs, x, v)
                and _arrow(pairs, v, w)
                and _arrow(pairs, w, y)
                and _undirected(pairs, x, y)
                and not _adjacent(skeleton, v, y)
            ):
                yield x, y


def _paths(skeleton: Skeleton) -> list[tuple[int, int, int]]:
    """All triples (a, b, c) with a and c adjacent to b."""
    near = neighbours(skeleton.edges, skeleton.columns)
    # Sorted, so that the result does not depend on the order of a set.
    return sorted((a, b, c) for b, around in enumerate(near) for a, c in permutations(around, 2))


def _adjacent(skeleton: Skeleton, x: int, y: int) -> bool:
    return (min(x, y), max(x, y)) in skeleton.edges


def _arrow(pairs: Pairs, x: int, y: int) -> bool:
    return (x, y) in pairs and (y, x) not in pairs


def _undirected(pairs: Pairs, x: int, y: int) -> bool:
    return (x, y) in pairs and (y, x) in pairs


def _directed_path(pairs: Pairs, start: int, end: int) -> bool:
    """Whether arrows lead from `start` to `end`."""
    reached, frontier = {start}, [start]
    while frontier:
        here = frontier.pop()
        further = {y for x, y in pairs if x == here and _arrow(pairs, x, y)} - reached
        reached |= further
        frontier.extend(further)
    return end in reached
