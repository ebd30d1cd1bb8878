"""PC without noise: with perfect answers it finds the truth; with data, what causal-learn finds."""

import warnings

import numpy as np
import pytest
from bayes_nets import load, random_network, separated
from toys import asked

from dpmic_jax.causal.contingency import ChiSquare, GTest
from dpmic_jax.causal.orientation import cpdag
from dpmic_jax.causal.pc import pc, pc_original
from dpmic_jax.causal.queries import Coded
from dpmic_jax.causal.skeleton import (
    complete,
    original_skeleton,
    p_value_above,
    queries_of_level,
    score_at_most,
    stable_skeleton,
)


def perfect(network):
    return lambda queries: np.array([separated(network, *query) for query in queries])


def some_edges(columns, rng):
    return [edge for edge in sorted(complete(columns)) if rng.random() < 0.6]


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_queries_of_a_level_are_those_of_the_definition(order, rng):
    for columns in (2, 4, 6):
        edges = some_edges(columns, rng)
        found = [tuple(query) for query in queries_of_level(edges, columns, order)]
        assert found == asked(edges, columns, order)


@pytest.mark.parametrize("search", [stable_skeleton, original_skeleton])
@pytest.mark.parametrize("seed", range(8))
def test_perfect_answers_give_the_true_skeleton(search, seed):
    rng = np.random.default_rng(seed)
    network = random_network(7, 2, 0.35, rng)
    found = search(7, perfect(network), max_order=5)
    assert found.edges == network.skeleton
    assert found.finished
    assert set(found.separating_sets) == complete(7) - network.skeleton
    for (x, y), sets in found.separating_sets.items():
        assert sets
        assert all(separated(network, x, y, given) for given in sets)


def test_a_search_that_stops_early_keeps_edges_and_is_not_finished():
    asia = load("asia")
    found = stable_skeleton(8, perfect(asia), max_order=0)
    assert found.edges > asia.skeleton
    assert not found.finished
    assert stable_skeleton(8, perfect(asia), max_order=3).finished


def test_the_stable_order_does_not_depend_on_the_order_of_columns(rng):
    network = random_network(8, 3, 0.3, rng)
    records = network.sample(3000, rng)
    found = []
    for order in (np.arange(8), rng.permutation(8), rng.permutation(8)):
        data = Coded(records[:, order].T, tuple(network.states[c] for c in order))
        skeleton = stable_skeleton(8, p_value_above(GTest(data).p_values, 0.01), max_order=6)
        found.append({frozenset(order[list(edge)].tolist()) for edge in skeleton.edges})
    assert found[0] == found[1] == found[2]


def test_the_original_order_conditions_on_the_current_neighbours():
    """0 - 1 goes first, so 0 | 1 is never asked about given the other."""
    seen = []

    def decide(queries):
        (query,) = queries
        seen.append(tuple(query))
        return np.array([query.given == () and query[:2] == (0, 1)])

    original_skeleton(3, decide, max_order=1)
    order_one = [query for query in seen if query[2]]
    # 2 is between 0 and 1; neither is next to the other any more.
    assert set(order_one) == {(0, 2, (1,)), (1, 2, (0,))}
    assert seen[0] == (0, 1, ())


def test_a_score_of_at_most_the_threshold_means_independence():
    class Test:
        def scores(self, queries):
            return np.array([float(query.y) for query in queries])

    found = stable_skeleton(4, score_at_most(Test(), 2.0), max_order=0)
    assert found.edges == {(0, 3), (1, 3), (2, 3)}


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_outside_of_its_range_is_refused(level):
    with pytest.raises(ValueError, match="0 < level < 1"):
        p_value_above(lambda queries: np.zeros(len(queries)), level)


@pytest.mark.parametrize("order", [-1, 1.5, True])
def test_an_invalid_max_order_is_refused(order):
    with pytest.raises(ValueError, match="max_order"):
        stable_skeleton(3, lambda queries: np.zeros(len(queries), bool), max_order=order)


# --- against causal-learn ------------------------------------------------------------------


def causal_learn(records, name):
    """Pairs (x, y) alone for an arrow, (x, y) and (y, x) for an edge, by causal-learn's PC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = pytest.importorskip("causallearn.search.ConstraintBased.PC")
        graph = search.pc(records, 0.01, name, uc_rule=0, uc_priority=2, show_progress=False)
    ends, pairs = graph.G.graph, set()
    for x, y in complete(len(ends)):
        # ends[y, x] is the mark at y: 1 an arrowhead, -1 a tail.
        if ends[x, y] == 0:
            continue
        if ends[y, x] == 1 or ends[x, y] == -1:
            pairs.add((x, y))
        if ends[x, y] == 1 or ends[y, x] == -1:
            pairs.add((y, x))
        if {ends[x, y], ends[y, x]} == {1, -1}:
            pairs.discard((x, y) if ends[x, y] == 1 else (y, x))
    return pairs


def agrees(seed, test, name):
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(5, 13))
    network = random_network(columns, 3, 2 / (columns - 1), rng)
    records = network.sample(10_000, rng)
    data = Coded(records.T, network.states)
    decide = p_value_above(test(data).p_values, 0.01)
    found = stable_skeleton(columns, decide, max_order=columns)
    theirs = causal_learn(records, name)
    assert found.edges == {(min(pair), max(pair)) for pair in theirs}
    assert cpdag(found) == theirs
    return network, found


@pytest.mark.parametrize("seed", range(5))
def test_skeleton_and_directions_equal_those_of_causal_learn(seed):
    agrees(seed, GTest, "gsq")
    agrees(100 + seed, ChiSquare, "chisq")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_fifty_random_graphs_equal_those_of_causal_learn(seed):
    agrees(1000 + seed, GTest, "gsq")
    agrees(2000 + seed, ChiSquare, "chisq")


# --- the front door ------------------------------------------------------------------------


@pytest.mark.parametrize("search", [pc, pc_original])
def test_perfect_answers_about_asia_give_its_equivalence_class(search):
    asia = load("asia")
    found = search(perfect(asia), names=asia.names, max_order=6)
    assert found.finished
    assert {tuple(sorted(e)) for e in found.skeleton.edges} == {
        tuple(sorted((asia.names[x], asia.names[y]))) for x, y in asia.edges
    }
    arrows = set(found.graph.edges)
    assert ("tub", "either") in arrows
    assert ("either", "tub") not in arrows
    assert ("either", "xray") in arrows
    assert ("xray", "either") not in arrows
    assert {("asia", "tub"), ("tub", "asia")} <= arrows
    assert {("smoke", "bronc"), ("bronc", "smoke")} <= arrows
    assert frozenset({"smoke"}) in found.separating_sets["lung", "bronc"]
    assert found.privacy is None
    assert "NOT PRIVATE" in str(found)
    assert "tub -> either" in str(found)
    assert "asia -- tub" in str(found)


def test_names_must_be_different():
    with pytest.raises(ValueError, match="different names"):
        pc(lambda queries: np.zeros(len(queries), bool), names=("a", "a"), max_order=0)
