"""A private search for a graph: check, charge, then compute."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Array, Key

from dpmic_jax.causal.answers import Answers, computed, kept_in
from dpmic_jax.causal.budget_split import Allowance
from dpmic_jax.causal.queries import Coded, DependenceTest
from dpmic_jax.causal.reading import TableCodes
from dpmic_jax.causal.result import CausalResult, CausalStatement
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.accounting.callables import callable_name
from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive, check_probability
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.rng.keys import AnyKey, event_key, is_secret
from dpmic_jax.runs.charged import AnyLedger, charged_run, opened
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.data_set import check_data_set

Make = Callable[[Coded], DependenceTest]


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """What all private searches are told.

    Attributes:
      epsilon, delta: what the whole search costs at most.
      threshold: T; a score of at most T is independence.
      max_order: the most columns to condition on.
      records_per_person: how many records one person may own.
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
    def level(self) -> Fraction:
        """T, as it was written."""
        return fraction(self.threshold)

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """The name in the ledger."""

    @abstractmethod
    def releases(self, columns: int) -> int:
        """Into how many equal parts the budget is cut, at most."""

    @abstractmethod
    def check(self, data: Coded, make: Make) -> None:
        """Refuse settings whose noise cannot be drawn for the first level."""

    @abstractmethod
    def _skeleton(
        self, data: Coded, make: Make, key: Key[Array, ""], answers: Answers = computed
    ) -> Skeleton:
        """The private skeleton; `key` is the event's, for this and nothing else."""

    def public(self) -> dict[str, str]:
        """Settings for the event."""
        return {"threshold": str(self.level), "max_order": str(self.max_order)}

    def allowance(self, columns: int) -> Allowance:
        """Of the whole search."""
        return Allowance.better(self.epsilon, self.delta, self.releases(columns))

    def each(self, columns: int, releases: int) -> Fraction:
        """The epsilon for one record of each of so many releases that share the whole budget."""
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
) -> CausalResult:
    """The graph of direct dependences, (epsilon, delta)-DP for everyone in the data.

    The settings are checked, the ledger is charged once, durably, and only then is anything
    computed from values (`runs.charged`). When rounds run out the edges that are left are kept. The
    same call with the same `out` goes on with a search that was interrupted, to the same graph.

    Args:
      data: `TableCodes(open_source(table, bounds), bins)`, which reads a table once it is paid for;
        or columns as codes, with public numbers of categories.
      make: data -> a test of them, such as a conditional Kendall's tau.
      search: `EMPC`, `SVTPC` or `PrivPC`.
      names: of the columns, if data are codes.
      key: `secret_key()`; or `seeded_key(seed)` for research, which the result then says.
      ledger: a ledger's file to charge. Without one, keep account yourself.
      out: the run's folder, which lets it go on after an interruption.
    """
    secret, book = is_secret(key), opened(ledger)
    folder = None if out is None else Folder(Path(out).absolute())
    lazy = isinstance(data, TableCodes)
    schema = data.schema if lazy else None
    if book is not None:
        check_data_set(book, schema)
    if lazy == (names is not None):
        raise ValueError("expected names= with columns as codes; a table has its own")
    named = tuple(data.names if lazy else names or ())
    empty = empty_codes(data.n, data.categories)
    nothing = Skeleton(empty.columns, complete(empty.columns), {}, False)
    CausalResult(names=named, found=nothing, privacy=None)  # refuses wrong names
    event = _event(empty, make, search)
    search.check(empty, make)
    held = cache(lambda: data.read() if isinstance(data, TableCodes) else data)
    with charged_run(
        lambda run: replace(event, label=f"run {run}" if run else ""),
        key=key,
        ledger=book,
        schema=schema,
        folder=folder,
        public={"columns": list(named)},
        # With their places: subsamples are taken by these.
        records=lambda: [(np.arange(data.n), *held().codes)],
    ) as run:
        if run.result is not None:
            return CausalResult.from_json(run.result)
        found = search._skeleton(held(), make, event_key(run.key, run.event), kept_in(run))
        pure = isinstance(event.guarantee, PureDP)
        statement = CausalStatement(
            event=run.event,
            epsilon=float(search.epsilon),
            delta=0.0 if pure else float(search.delta),
            key_is_secret=secret,
            ledger=run.entry or "none",
        )
        result = CausalResult(names=named, found=found, privacy=statement)
        run.finish(result.to_json())
        return result


def empty_codes(n: int, categories: Sequence[int]) -> Coded:
    """Data of the same shape without a record's values: what is settled before the charge."""
    return Coded(np.zeros((len(categories), n), np.uint8), tuple(categories))


def fraction(value: float | Fraction) -> Fraction:
    """A number as it was written."""
    return value if isinstance(value, Fraction) else as_fraction(float(value))


def _event(empty: Coded, make: Make, search: Search) -> Event:
    """What is charged, but for its label."""
    test, first = make(empty), queries_of_level(complete(empty.columns), empty.columns, 0)
    if not first:
        raise ValueError(f"expected at least 2 columns, got {empty.columns}")
    settings = search.public() | {
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
