"""A private search for a graph: check, charge, then compute."""

import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import jax
import numpy as np
from jaxtyping import Array, Key

from dpmic_jax.causal.allowance import Allowance
from dpmic_jax.causal.queries import Coded, DependenceTest
from dpmic_jax.causal.result import CausalResult, CausalStatement
from dpmic_jax.causal.skeleton import Skeleton, complete, queries_of_level
from dpmic_jax.dp.enclosures import integer
from dpmic_jax.dp.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.keys import AnyKey, event_key, is_secret, noise_key
from dpmic_jax.dp.ledger import LedgerFile
from dpmic_jax.dp.written import chance, positive, written

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
        positive("epsilon", self.epsilon)
        chance("delta", self.delta)
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
    def search(self, data: Coded, make: Make, key: Key[Array, ""]) -> Skeleton:
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
    data: Coded,
    make: Make,
    search: Search,
    *,
    names: Sequence[str],
    key: AnyKey,
    ledger: LedgerFile | str | os.PathLike[str] | None = None,
) -> CausalResult:
    """The graph of direct dependences, (epsilon, delta)-DP for everyone in the data.

    The settings are checked, the ledger is charged once, durably, and only then is anything
    computed from values. When rounds run out the edges that are left are kept.

    Args:
      data: columns as codes, with public numbers of categories.
      make: data -> a test of them, such as a conditional Kendall's tau.
      search: `EMPC`, `SVTPC` or `PrivPC`.
      names: of the columns.
      key: `secret_key()`; or `seeded_key(seed)` for research, which the result then says.
      ledger: a ledger's file to charge. Without one, keep the books yourself.
    """
    secret = is_secret(key)
    book = ledger if isinstance(ledger, LedgerFile | None) else LedgerFile.open(ledger)
    nothing = Skeleton(data.columns, complete(data.columns), {}, False)
    CausalResult(names=tuple(names), found=nothing, privacy=None)  # refuses wrong names
    event = _event(data, make, search, key)
    search.check(data, make)
    receipt = book.charge(event) if book else None
    found = search.search(data, make, event_key(key, event))
    pure = isinstance(event.guarantee, PureDP)
    statement = CausalStatement(
        event=event,
        epsilon=float(search.epsilon),
        delta=0.0 if pure else float(search.delta),
        secret=secret,
        ledger=f"{receipt.ledger}#{receipt.serial}" if receipt else "none",
    )
    return CausalResult(names=tuple(names), found=found, privacy=statement)


def fraction(value: float | Fraction) -> Fraction:
    """A number as it was written."""
    return value if isinstance(value, Fraction) else written(float(value))


def _event(data: Coded, make: Make, search: Search, key: AnyKey) -> Event:
    """What is charged. Its label tells runs of one secret key apart, so noise never repeats."""
    test, first = make(data), queries_of_level(complete(data.columns), data.columns, 0)
    if not first:
        raise ValueError(f"expected at least 2 columns, got {data.columns}")
    settings = search.public() | {
        "test": type(test).__name__,
        "columns": str(data.columns),
        "categories": " ".join(map(str, data.categories)),
        "sensitivity": "of order 0; every order has its own",
    }
    event = Event(
        mechanism=search.mechanism,
        guarantee=search.allowance(data.columns).guarantee,
        relation=ReplaceOne(search.records_per_person),
        n=data.n,
        sensitivity=test.sensitivity(first) * search.records_per_person,
        settings=tuple(settings.items()),
    )
    if is_secret(key):
        return replace(event, label=f"run {secrets.token_hex(16)}")
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    return replace(
        event, label=f"run seeded-{hashlib.sha256(words + event.digest).hexdigest()[:25]}"
    )
