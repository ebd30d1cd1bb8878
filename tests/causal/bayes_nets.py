"""Bayesian networks with known structures and tables, and records drawn from them."""

import json
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "networks"
NETWORKS = ("asia", "cancer", "earthquake", "survey", "sachs", "alarm")


class Network(NamedTuple):
    """Columns in order; of each its number of states, its parents, and P(state | parents).

    A row of a table belongs to the parents' states, the first parent's changing slowest.
    """

    names: tuple[str, ...]
    states: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]

    @property
    def edges(self) -> frozenset[tuple[int, int]]:
        """(parent, child)."""
        return frozenset((p, c) for c, parents in enumerate(self.parents) for p in parents)

    @property
    def skeleton(self) -> frozenset[tuple[int, int]]:
        """(x, y), x < y."""
        return frozenset((min(edge), max(edge)) for edge in self.edges)

    def sample(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """n records as codes, ancestors first: one uniform number each against the table's sums."""
        records = np.full((n, len(self.names)), -1)
        waiting = list(range(len(self.names)))
        while waiting:
            column = next(c for c in waiting if not set(self.parents[c]) & set(waiting))
            waiting.remove(column)
            row = np.zeros(n, int)
            for parent in self.parents[column]:
                row = row * self.states[parent] + records[:, parent]
            ends = np.cumsum(self.tables[column], axis=1)
            ends /= ends[:, -1:]  # some tables are printed to few digits
            drawn = (generator.random(n)[:, None] >= ends[row]).sum(axis=1)
            records[:, column] = np.minimum(drawn, self.states[column] - 1)
        return records


def load(name: str) -> Network:
    variables = json.loads((FOLDER / f"{name}.json").read_text())["variables"]
    names = tuple(variables)
    return Network(
        names,
        tuple(len(v["states"]) for v in variables.values()),
        tuple(tuple(names.index(p) for p in v["parents"]) for v in variables.values()),
        tuple(np.array(v["table"]) for v in variables.values()),
    )


def random_network(
    columns: int, states: int, chance: float, generator: np.random.Generator
) -> Network:
    """A random order, each earlier column a parent with this chance; tables from a Dirichlet."""
    order = generator.permutation(columns)
    parents: list[tuple[int, ...]] = [() for _ in range(columns)]
    for late in range(columns):
        kept = generator.random(late) < chance
        parents[order[late]] = tuple(sorted(order[:late][kept].tolist()))[:4]
    sizes = tuple(int(s) for s in generator.integers(2, states + 1, columns))
    tables = tuple(
        generator.dirichlet(
            np.ones(sizes[c]), int(np.prod([sizes[p] for p in parents[c]], dtype=int))
        )
        for c in range(columns)
    )
    return Network(tuple(f"v{i}" for i in range(columns)), sizes, tuple(parents), tables)


def separated(network: Network, x: int, y: int, given: tuple[int, ...]) -> bool:
    """d-separation: no path in the moral graph of the ancestors that avoids `given`."""
    kept, grown = {x, y, *given}, True
    while grown:
        more = kept | {p for c in kept for p in network.parents[c]}
        grown, kept = more != kept, more
    links = {(p, c) for c in kept for p in network.parents[c]}
    links |= {pair for c in kept for pair in combinations(network.parents[c], 2)}
    reached, edge = {x}, {x}
    while edge:
        edge = {
            b
            for a in edge
            for link in links
            if a in link
            for b in link
            if b not in reached and b not in given
        }
        reached |= edge
    return y not in reached
