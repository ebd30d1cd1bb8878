"""What a ledger's file says, as data: a header, entries, and a chain of hashes over them."""

import hashlib
import json
from typing import NamedTuple

from dpmic_jax.dp.budget import Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.events import Event, ReplaceOne, canonical
from dpmic_jax.dp.reservations import Entry, Standing


class Header(NamedTuple):
    """What is settled when a ledger is made."""

    identity: str  # random, tells ledgers of one name apart
    data_set: str
    budget: Budget

    def to_json(self) -> str:
        budget = {
            "epsilon": self.budget.epsilon.hex(),
            "delta": self.budget.delta.hex(),
            "records": self.budget.relation.records,
            "failure_share": self.budget.failure_share.hex(),
        }
        return canonical({"identity": self.identity, "data_set": self.data_set, "budget": budget})

    @classmethod
    def from_json(cls, text: str) -> "Header":
        content = json.loads(text)
        budget = Budget(
            epsilon=float.fromhex(content["budget"]["epsilon"]),
            delta=float.fromhex(content["budget"]["delta"]),
            relation=ReplaceOne(content["budget"]["records"]),
            failure_share=float.fromhex(content["budget"]["failure_share"]),
        )
        return cls(content["identity"], content["data_set"], budget)

    @property
    def root(self) -> bytes:
        return hashlib.sha256(b"dpmic_jax ledger 1\0" + self.to_json().encode("ascii")).digest()


class Contents(NamedTuple):
    """A file's content, checked."""

    header: Header
    entries: tuple[Entry, ...]
    standing: Standing
    head: bytes

    @property
    def ledger(self) -> Ledger:
        """What was charged."""
        return Ledger(self.header.budget, tuple(self.standing.charges.values()))

    def admit(self, event: Event, taken: tuple[Event, ...]) -> None:
        """Raise unless the budget holds `event` with what is taken of it already."""
        try:
            Ledger(self.header.budget, taken).spend(event)
        except BudgetExceeded as error:
            aside = ", ".join(map(str, self.standing.reserved))
            if not aside:
                raise
            raise BudgetExceeded(f"{error}; spent counts what entries {aside} reserve") from None


def link(head: bytes, serial: int, entry: str) -> bytes:
    """The chain up to an entry, from the chain up to the one before."""
    return hashlib.sha256(head + serial.to_bytes(8, "big") + entry.encode("ascii")).digest()
