"""From a skeleton and separating sets to directions: colliders, then Meek's rules.

A mixed graph is a set of pairs: (x, y) alone is x -> y, (x, y) and (y, x) are x - y.
Triples are taken by their middle column: the order matters only if answers contradict each other.
"""

from collections.abc import Iterator
from itertools import combinations, permutations

from dpmic_jax.causal.skeleton import Skeleton, neighbours

Pairs = set[tuple[int, int]]


def cpdag(skeleton: Skeleton) -> Pairs:
    """The completed partially directed graph of the skeleton's equivalence class.

    Without contradictions it has an arrow where all graphs of the class have it (Meek 1995).
    """
    return meek(colliders(skeleton), skeleton)


def colliders(skeleton: Skeleton) -> Pairs:
    """x -> y <- z for x - y - z, x and z apart, if no separating set of x and z has y.

    Not if one of the two edges is an arrow from y already.
    """
    pairs = {pair for x, y in skeleton.edges for pair in ((x, y), (y, x))}
    for y, around in enumerate(neighbours(skeleton.edges, skeleton.columns)):
        for x, z in combinations(around, 2):
            if (x, z) in skeleton.edges or any(y in s for s in skeleton.separating_sets[x, z]):
                continue
            if (x, y) in pairs and (z, y) in pairs:
                pairs -= {(y, x), (y, z)}
    return pairs


def meek(pairs: Pairs, skeleton: Skeleton) -> Pairs:
    """Meek's rules, in turn, until none of them changes anything.

    An arrow is left out if it would close a cycle, which only contradictions can bring about.
    """
    pairs, before = set(pairs), -1
    while len(pairs) != before:
        before = len(pairs)
        for rule in (_chain, _shortcut, _two_ways_in, _long_way):
            for x, y in rule(pairs, skeleton):
                if _undirected(pairs, x, y) and not _leads(pairs, y, x):
                    pairs.remove((y, x))
    return pairs


def _chain(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 1: w -> x - y, w and y apart: x -> y, or it would be a collider."""
    for w, x, y in _paths(skeleton):
        if _arrow(pairs, w, x) and _undirected(pairs, x, y) and not _adjacent(skeleton, w, y):
            yield x, y


def _shortcut(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 2: x -> w -> y and x - y: x -> y, or it would be a cycle."""
    for x, w, y in _paths(skeleton):
        if _arrow(pairs, x, w) and _arrow(pairs, w, y) and _undirected(pairs, x, y):
            yield x, y


def _two_ways_in(pairs: Pairs, skeleton: Skeleton) -> Iterator[tuple[int, int]]:
    """Rule 3: x - v -> y, x - w -> y, v and w apart, and x - y: x -> y."""
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
    """Rule 4: x - v -> w -> y, v and y apart, x and w adjacent, and x - y: x -> y."""
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
    """All (a, b, c), a and c next to b."""
    near = neighbours(skeleton.edges, skeleton.columns)
    return sorted((a, b, c) for b, around in enumerate(near) for a, c in permutations(around, 2))


def _adjacent(skeleton: Skeleton, x: int, y: int) -> bool:
    return (min(x, y), max(x, y)) in skeleton.edges


def _arrow(pairs: Pairs, x: int, y: int) -> bool:
    return (x, y) in pairs and (y, x) not in pairs


def _undirected(pairs: Pairs, x: int, y: int) -> bool:
    return (x, y) in pairs and (y, x) in pairs


def _leads(pairs: Pairs, start: int, end: int) -> bool:
    """Whether arrows lead from `start` to `end`."""
    reached, edge = {start}, [start]
    while edge:
        here = edge.pop()
        further = {y for x, y in pairs if x == here and _arrow(pairs, x, y)} - reached
        reached |= further
        edge.extend(further)
    return end in reached
