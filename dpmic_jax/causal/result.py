"""Result of a search for a graph: the graph, its separating sets, and its privacy statement."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmic_jax.causal.orientation import cpdag
from dpmic_jax.causal.skeleton import Skeleton
from dpmic_jax.dp.accounting.events import Event, ReplaceOne, canonical
from dpmic_jax.results import SEEDED
from dpmic_jax.results.statement import protected_records

if TYPE_CHECKING:
    import networkx

_NOT_PRIVATE = "NOT PRIVATE: made without noise"


@dataclass(frozen=True, kw_only=True)
class CausalStatement:
    """Privacy statement of a search. All of it is public.

    Attributes:
      event: the event that was charged, before anything was computed from values.
      epsilon, delta: privacy cost of the whole search.
      key_is_secret: whether the noise came from a secret key.
      ledger: "identity#serial" of the charge's receipt; "none" if no ledger was charged.
      persons: number of persons, as for a screen (`results.Statement`).
    """

    event: Event
    epsilon: float
    delta: float
    key_is_secret: bool
    ledger: str
    persons: int | None = None

    @property
    def relation(self) -> ReplaceOne:
        """The neighboring relation of the guarantee."""
        return self.event.relation

    @property
    def line(self) -> str:
        """The statement in one line."""
        protected = protected_records(self.relation, self.event.n, self.persons)
        line = (
            f"epsilon = {self.epsilon:g}, delta = {self.delta:g} for {protected}: "
            f"{self.event.mechanism}"
        )
        return line if self.key_is_secret else f"{SEEDED}. {line}"

    def to_dict(self) -> dict[str, Any]:
        """The statement as a dictionary of JSON values."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "records_per_person": self.relation.records,
            "key": "secret" if self.key_is_secret else SEEDED,
            "ledger": self.ledger,
            **({} if self.persons is None else {"persons": self.persons}),
            "event": json.loads(self.event.to_json()),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "CausalStatement":
        """The statement that `to_dict` wrote as `content`."""
        return cls(
            event=Event.from_json(canonical(content["event"])),
            epsilon=content["epsilon"],
            delta=content["delta"],
            key_is_secret=content["key"] == "secret",
            ledger=content["ledger"],
            persons=content.get("persons"),
        )


@dataclass(frozen=True, kw_only=True)
class CausalResult:
    """A graph of direct dependences.

    Attributes:
      names: names of the columns.
      found: the skeleton, with columns by number, and its separating sets.
      privacy: the privacy statement; None if the search had no noise, and the graph must not be
        published.
      caution: what noise may have done to the graph, by public numbers; empty if little.
    """

    names: tuple[str, ...]
    found: Skeleton
    privacy: CausalStatement | None
    caution: str = ""

    def __post_init__(self):
        object.__setattr__(self, "names", _names(self.names, self.found.columns))

    @property
    def graph(self) -> "networkx.DiGraph":
        """The CPDAG: x -> y alone is an arrow, x -> y and y -> x together an undirected edge."""
        graph = _networkx().DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[x], self.names[y]) for x, y in sorted(cpdag(self.found)))
        return graph

    @property
    def skeleton(self) -> "networkx.Graph":
        """The edges without their directions."""
        graph = _networkx().Graph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[x], self.names[y]) for x, y in sorted(self.found.edges))
        return graph

    @property
    def separating_sets(self) -> Mapping[tuple[str, str], tuple[frozenset[str], ...]]:
        """The separating sets of every removed edge (x, y), x before y in the order of columns."""
        return {
            (self.names[x], self.names[y]): tuple(
                frozenset(self.names[column] for column in given) for given in sets
            )
            for (x, y), sets in sorted(self.found.separating_sets.items())
        }

    @property
    def finished(self) -> bool:
        """Whether no query was left. If not, some edges are kept that were not fully tested."""
        return self.found.finished

    def to_dict(self) -> dict[str, Any]:
        """The result as a dictionary of JSON values."""
        pairs = cpdag(self.found)
        named = [(self.names[x], self.names[y], (y, x) in pairs) for x, y in sorted(pairs)]
        return {
            "columns": list(self.names),
            "arrows": [[x, y] for x, y, both in named if not both],
            "lines": [[x, y] for x, y, both in named if both and (x, y) in self._edges],
            "separating_sets": [
                {"edge": list(edge), "sets": [sorted(each) for each in sets]}
                for edge, sets in self.separating_sets.items()
            ],
            "finished": self.finished,
            "caution": self.caution,
            "privacy": self.privacy.to_dict() if self.privacy else _NOT_PRIVATE,
        }

    def to_json(self) -> str:
        """The result as JSON, for `from_json`."""
        # Columns by number: those of `to_dict` are by name, and edges by direction.
        sets = self.found.separating_sets.items()
        found = {
            "edges": sorted(self.found.edges),
            "separating_sets": [[*edge, list(map(list, given))] for edge, given in sorted(sets)],
        }
        return json.dumps({**self.to_dict(), "found": found}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "CausalResult":
        """The private result that `to_json` wrote."""
        content = json.loads(text)
        names, skeleton = tuple(content["columns"]), content["found"]
        sets = {(x, y): tuple(map(tuple, given)) for x, y, given in skeleton["separating_sets"]}
        edges = frozenset((x, y) for x, y in skeleton["edges"])
        found = Skeleton(len(names), edges, sets, content["finished"])
        return cls(
            names=names,
            found=found,
            privacy=CausalStatement.from_dict(content["privacy"]),
            # Results of earlier versions have none.
            caution=content.get("caution", ""),
        )

    @property
    def _edges(self) -> set[tuple[str, str]]:
        return {(self.names[x], self.names[y]) for x, y in self.found.edges}

    def __str__(self) -> str:
        pairs = cpdag(self.found)
        lines = [
            f"{self.names[x]} {'--' if (y, x) in pairs else '->'} {self.names[y]}"
            for x, y in sorted(pairs)
            if (y, x) not in pairs or x < y
        ]
        if not self.finished:
            lines.append("The search stopped early: edges that were not tested fully are kept.")
        if self.caution:
            lines.append(self.caution)
        lines.append(self.privacy.line if self.privacy else _NOT_PRIVATE)
        return "\n".join(lines)


def _names(names: Sequence[str], columns: int) -> tuple[str, ...]:
    if len(names) != columns or len(set(names)) != columns:
        raise ValueError(f"expected {columns} different names, one for each column")
    return tuple(names)


def _networkx():
    try:
        import networkx
    except ImportError as error:
        raise ImportError('graphs need networkx: pip install "dpmic_jax[causal]"') from error
    return networkx
