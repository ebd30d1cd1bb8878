"""Directions: those that all graphs of the equivalence class share, found by trying all graphs."""

from itertools import combinations, product

import numpy as np
import pytest
from bayes_nets import random_network, separated

from dpmic_jax.causal.orientation import colliders, cpdag, meek
from dpmic_jax.causal.skeleton import Skeleton, stable_skeleton


def acyclic(arrows, columns):
    left = set(range(columns))
    while True:
        free = {v for v in left if not any(y == v and x in left for x, y in arrows)}
        if not free:
            return not left
        left -= free


def v_structures(arrows):
    into = [(x, y, z) for x, y in arrows for z, end in arrows if end == y and x < z]
    near = {frozenset(arrow) for arrow in arrows}
    return {triple for triple in into if {triple[0], triple[2]} not in near}


def equivalent(network):
    """All acyclic graphs with the same edges and the same unshielded colliders."""
    edges = sorted(network.skeleton)
    for turned in product((False, True), repeat=len(edges)):
        arrows = {(y, x) if turn else (x, y) for (x, y), turn in zip(edges, turned, strict=True)}
        if acyclic(arrows, len(network.names)) and v_structures(arrows) == v_structures(
            network.edges
        ):
            yield arrows


def found(network):
    columns = len(network.names)

    def decide(queries):
        return np.array([separated(network, *query) for query in queries])

    return stable_skeleton(columns, decide, max_order=columns)


@pytest.mark.parametrize("seed", range(25))
def test_directions_are_those_that_all_equivalent_graphs_share(seed):
    network = random_network(6, 2, 0.5, np.random.default_rng(seed))
    union = set().union(*equivalent(network))
    assert cpdag(found(network)) == union


@pytest.mark.parametrize("seed", range(25))
def test_meeks_rules_are_complete_with_an_additional_known_arrow(seed):
    """Meek 1995: rules 1 to 4 find all that follows; this is where the fourth is needed."""
    rng = np.random.default_rng(seed)
    network = random_network(6, 2, 0.7, rng)
    skeleton = found(network)
    pairs = cpdag(skeleton)
    open_edges = [(x, y) for x, y in network.edges if (y, x) in pairs]
    if not open_edges:
        return
    x, y = open_edges[rng.integers(len(open_edges))]
    agreeing = [arrows for arrows in equivalent(network) if (x, y) in arrows]
    assert meek(pairs - {(y, x)}, skeleton) == set().union(*agreeing)


def test_the_fourth_rule_orients_its_edge():
    """x = 0, v = 1, w = 2, y = 3: 0 - 1 -> 2 -> 3, 0 - 2, 0 - 3."""
    edges = frozenset({(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)})
    skeleton = Skeleton(4, edges, {(1, 3): ((0, 2),)}, True)
    pairs = {pair for x, y in edges for pair in ((x, y), (y, x))} - {(2, 1), (3, 2)}
    assert meek(pairs, skeleton) == pairs - {(3, 0)}


def test_colliders_that_contradict_each_other_turn_no_arrow_around():
    """0 - 1 - 2 - 3 with colliders at 1 and 2: the first one wins."""
    skeleton = Skeleton(
        4, frozenset({(0, 1), (1, 2), (2, 3)}), {(0, 2): ((),), (1, 3): ((),), (0, 3): ((),)}, True
    )
    assert colliders(skeleton) == {(0, 1), (2, 1), (2, 3), (3, 2)}


def test_rules_never_close_a_cycle():
    """Answers at random contradict each other; arrows alone may come from colliders only."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        columns = 6
        edges = frozenset(e for e in combinations(range(columns), 2) if rng.random() < 0.5)
        sets = {
            (x, y): (tuple(v for v in range(columns) if v not in (x, y) and rng.random() < 0.3),)
            for x, y in combinations(range(columns), 2)
            if (x, y) not in edges
        }
        skeleton = Skeleton(columns, edges, sets, True)
        pairs = cpdag(skeleton)
        assert {(min(p), max(p)) for p in pairs} == edges
        before = {(x, y) for x, y in colliders(skeleton) if (y, x) not in colliders(skeleton)}
        after = {(x, y) for x, y in pairs if (y, x) not in pairs}
        assert before <= after
        if acyclic(before, columns):
            assert acyclic(after, columns)
