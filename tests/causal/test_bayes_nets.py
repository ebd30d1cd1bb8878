"""The known networks: their size as published, and records that follow their tables."""

from itertools import product

import numpy as np
import pytest
from bayes_nets import NETWORKS, load, separated
from scipy import stats

PUBLISHED = {  # nodes, arcs: bnlearn's repository
    "asia": (8, 8),
    "cancer": (5, 4),
    "earthquake": (5, 4),
    "survey": (6, 6),
    "sachs": (11, 17),
    "alarm": (37, 46),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_of_nodes_and_arcs_are_as_published(name):
    network = load(name)
    assert (len(network.names), len(network.edges)) == PUBLISHED[name]
    for table, size in zip(network.tables, network.states, strict=True):
        assert table.shape[1] == size
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-4)


def test_asia_has_the_tables_of_lauritzen_and_spiegelhalter():
    """Their table: P(tub | asia), P(lung | smoke), P(dysp | either, bronc), each of "yes"."""
    asia = load("asia")
    at = {name: table[:, 0].tolist() for name, table in zip(asia.names, asia.tables, strict=True)}
    assert at["tub"] == [0.05, 0.01]
    assert at["lung"] == [0.1, 0.01]
    assert at["bronc"] == [0.6, 0.3]
    assert at["xray"] == [0.98, 0.05]
    parents = [asia.names[p] for p in asia.parents[asia.names.index("dysp")]]
    assert parents == ["bronc", "either"]
    assert at["dysp"] == [0.9, 0.8, 0.7, 0.1]


@pytest.mark.parametrize("name", ["cancer", "survey"])
def test_records_follow_the_joint_distribution(name, rng):
    network, n = load(name), 50_000
    cells = list(product(*(range(size) for size in network.states)))
    joint = []
    for cell in cells:
        p = 1.0
        for column, parents in enumerate(network.parents):
            row = 0
            for parent in parents:
                row = row * network.states[parent] + cell[parent]
            p *= network.tables[column][row, cell[column]]
        joint.append(p)
    records = network.sample(n, rng)
    counts = np.zeros(network.states)
    np.add.at(counts, tuple(records.T), 1)
    expected, found = n * np.array(joint) / sum(joint), counts.ravel()
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    found = np.append(found[~rare], found[rare].sum())
    assert stats.chisquare(found, expected).pvalue > 1e-4


def test_d_separation_in_asia():
    asia = load("asia")
    at = asia.names.index
    assert separated(asia, at("asia"), at("smoke"), ())
    assert not separated(asia, at("lung"), at("bronc"), ())
    assert separated(asia, at("lung"), at("bronc"), (at("smoke"),))
    assert not separated(asia, at("lung"), at("bronc"), (at("smoke"), at("dysp")))
    assert not separated(asia, at("lung"), at("tub"), (at("xray"),))
