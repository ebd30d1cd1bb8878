"""Private searches for a graph: check the settings, charge the ledger, then compute."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from jaxtyping import Array, Key

from dpmic_jax.causal.answers import AnswerStore, stored_in
from dpmic_jax.causal.budget_split import Allowance
from dpmic_jax.causal.decisions import Decision
from dpmic_jax.causal.power import caution, check_not_lost
from dpmic_jax.causal.queries import Coded, DependenceTest, Query
from dpmic_jax.causal.reading import TableCodes
from dpmic_jax.causal.result import CausalResult, CausalStatement
from dpmic_jax.causal.score_lattice import LevelRefused, build_or_refuse
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.causal.strata import BlockTest
from dpmic_jax.dp.accounting.callables import callable_name
from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, check_probability
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.rng.keys import AnyKey, event_key, is_secret
from dpmic_jax.runs.charged import AnyLedger, charged_run, open_ledger
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.data_set import check_data_set
from dpmic_jax.runs.relation import persons_of, relation_of

Make = Callable[[Coded], DependenceTest]  # such as Kendall: columns -> a test of them


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """Settings that all private searches share.

    Attributes:
      epsilon, delta: privacy cost of the whole search.
      threshold: T; a score of at most T means independence.
      max_order: the most columns to condition on.
      records_per_person: the most records that one person may own.
    """

    epsilon: float
    delta: float = 0.0
    threshold: float | Fraction
    max_order: int
    records_per_person: int = 1

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)
        check_probability("delta", self.delta)
        integer("max_order", self.max_order, 0, 2**10)
        integer("records_per_person", self.records_per_person, 1, 2**20)
        if not 0 <= self.threshold < 2**28:
            raise ValueError(f"expected 0 <= threshold < 2^28, got {self.threshold}")

    @property
    def exact_threshold(self) -> Fraction:
        """T as an exact fraction of the decimal that was written."""
        return fraction(self.threshold)

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """Name of the mechanism in the event."""

    @abstractmethod
    def releases(self, columns: int) -> int:
        """The number of equal releases that the budget is split into."""

    @abstractmethod
    def check(self, data: Coded, make: Make) -> None:
        """Raise ValueError if the noise of the first level cannot be drawn.

        Only the shape and the categories of `data` may matter: this runs before the charge.
        """

    @property
    @abstractmethod
    def fewer(self) -> str:
        """What leaves more epsilon to each release, in words."""

    @abstractmethod
    def decision(self, data: Coded, make: Make, query: Query) -> Decision:
        """The noise that decides a query, in a graph from which no edge has been removed.

        Only the shape and the categories of `data` matter.
        """

    def decisions(self, data: Coded, make: Make) -> list[tuple[Query, Decision]]:
        """For each order that can be asked, a query with the most noise, and its decision."""
        # The sensitivity grows with the number of blocks: the largest columns give the worst case.
        largest = sorted(range(data.columns), key=lambda column: -data.categories[column])
        found = []
        for order in range(min(self.max_order, data.columns - 2) + 1):
            x, y = sorted(largest[order : order + 2])
            query = Query(x, y, tuple(sorted(largest[:order])))
            try:
                made = build_or_refuse(lambda query=query: self.decision(data, make, query))
            except LevelRefused:
                break  # the search ends here, too, and keeps the edges
            found.append((query, made))
        return found

    @abstractmethod
    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], store: AnswerStore
    ) -> Skeleton:
        """The private skeleton. `key` is the event's key, used for nothing else."""

    def event_settings(self) -> dict[str, str]:
        """Settings of the search in its event."""
        return {"threshold": str(self.exact_threshold), "max_order": str(self.max_order)}

    def allowance(self, columns: int) -> Allowance:
        """The guarantee that all releases of the search share."""
        return Allowance.better(self.epsilon, self.delta, self.releases(columns))

    def each(self, columns: int, releases: int) -> Fraction:
        """Epsilon of each of `releases` releases that share the whole budget, for one record.

        r records of one person are protected with epsilon if one record is with epsilon / r.
        """
        return self.allowance(columns).each(releases) / self.records_per_person


def discover(
    data: Coded | TableCodes,
    make: Make,
    search: Search,
    *,
    names: Sequence[str] | None = None,
    key: AnyKey,
    ledger: AnyLedger = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> CausalResult:
    """Find the graph of direct dependences, (epsilon, delta)-DP for everyone in the data.

    The settings are checked and the ledger is charged once, durably, before anything is computed
    from values (`runs.charged`). If the rounds run out, the remaining edges are kept. The same call
    with the same `out` resumes an interrupted search and finds the same graph.

    Args:
      data: `TableCodes(open_source(table, bounds), bins)`, which reads the table after the charge;
        or columns as codes, with public numbers of categories.
      make: makes the test of the data, such as `Kendall`.
      search: `EMPC`, `SVTPC` or `PrivPC`.
      names: names of the columns, if `data` are codes.
      key: `secret_key()`; or `seeded_key(seed)` for research, and the result says so.
      ledger: ledger file to charge. Without one, account for the result's event yourself.
      out: folder of the run, from which it can be resumed.
      force: search even if noise will hide every dependence; else that is refused, uncharged.
    """
    secret, ledger_file = is_secret(key), open_ledger(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    lazy = isinstance(data, TableCodes)
    schema = data.schema if lazy else None
    if schema is not None:
        relation = relation_of(schema, search.records_per_person)
        search = replace(search, records_per_person=relation.records)
    if ledger_file is not None:
        check_data_set(ledger_file, schema)
    if lazy == (names is not None):
        raise ValueError("expected names= with columns as codes; a table has its own names")
    column_names = tuple(data.names if lazy else names or ())
    # Everything up to the charge is computed from codes without any record's values.
    empty = empty_codes(data.n, data.categories)
    nominal = [repr(name) for name in data.nominal] if lazy else []
    if nominal and isinstance(make(empty), BlockTest):
        raise ValueError(
            f"rank tests compare values, and nominal columns have no order: {', '.join(nominal)}; "
            "declare ordered = true where categories have an order, or ignore the column"
        )
    untested = Skeleton(empty.columns, complete(empty.columns), {}, False)
    CausalResult(names=column_names, found=untested, privacy=None)  # refuses wrong names
    event = _event(empty, make, search)
    search.check(empty, make)
    largest, decisions = make(empty).largest, [each for _, each in search.decisions(empty, make)]
    read: list[Coded] = []  # once

    def coded(key: AnyKey) -> Coded:
        if not read:
            read.append(data.read(key) if isinstance(data, TableCodes) else data)
        return read[0]

    with charged_run(
        lambda run: replace(event, label=f"run {run}" if run else ""),
        key=key,
        ledger=ledger_file,
        schema=schema,
        folder=folder,
        public={"columns": list(column_names)},
        records=lambda key: [tuple(coded(key).codes)],
        check=lambda: (
            force
            or check_not_lost(
                decisions[0], largest, threshold=float(search.threshold), fewer=search.fewer
            )
        ),
    ) as run:
        if run.result is not None:
            return CausalResult.from_json(run.result)
        found = search._skeleton(
            coded(run.key), make, event_key(run.key, run.event), stored_in(run)
        )
        pure = isinstance(event.guarantee, PureDP)
        statement = CausalStatement(
            event=run.event,
            epsilon=float(search.epsilon),
            delta=0.0 if pure else float(search.delta),
            key_is_secret=secret,
            ledger=run.entry or "none",
            persons=None if schema is None else persons_of(schema, event.n),
        )
        result = CausalResult(
            names=column_names,
            found=found,
            privacy=statement,
            caution=caution(decisions, largest),
        )
        run.finish(result.to_json())
        return result


def empty_codes(n: int, categories: Sequence[int]) -> Coded:
    """Codes of the same shape that are all 0, for what is computed before the charge."""
    return Coded(np.zeros((len(categories), n), np.uint8), tuple(categories))


def fraction(value: float | Fraction) -> Fraction:
    """The exact value of the decimal that a float was written as; a `Fraction` stays as it is."""
    return value if isinstance(value, Fraction) else as_fraction(float(value))


def _event(empty: Coded, make: Make, search: Search) -> Event:
    """The event to charge, without its label."""
    test, first = make(empty), queries_of_level(complete(empty.columns), empty.columns, 0)
    if not first:
        raise ValueError(f"expected at least 2 columns, got {empty.columns}")
    settings = search.event_settings() | {
        "test": callable_name(make),
        "columns": str(empty.columns),
        "categories": " ".join(map(str, empty.categories)),
        "sensitivity": "of order 0; every order has its own",
    }
    return Event(
        mechanism=search.mechanism,
        guarantee=search.allowance(empty.columns).guarantee,
        relation=ReplaceOne(search.records_per_person),
        n=empty.n,
        sensitivity=test.sensitivity(first) * search.records_per_person,
        settings=tuple(settings.items()),
    )
