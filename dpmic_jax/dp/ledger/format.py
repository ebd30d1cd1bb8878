"""The content of a ledger's file: a header, entries, a chain of hashes, and running totals."""

import hashlib
import json
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import Totals
from dpmic_jax.dp.accounting.events import Event, ReplaceOne, canonical
from dpmic_jax.dp.ledger.budget import Account, Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.ledger.reservations import Entry, Reservation, Standing


class Header(NamedTuple):
    """The identity, data set and budget of a ledger."""

    identity: str  # random: ledgers of data sets with the same name differ
    data_set: str
    budget: Budget

    def to_json(self) -> str:
        """Canonical JSON, with floats in hexadecimal."""
        budget = {
            "epsilon": self.budget.epsilon.hex(),
            "delta": self.budget.delta.hex(),
            "records": self.budget.relation.records,
            "failure_share": self.budget.failure_share.hex(),
        }
        return canonical({"identity": self.identity, "data_set": self.data_set, "budget": budget})

    @classmethod
    def from_json(cls, text: str) -> "Header":
        """Read a header; the caller checks that the text is canonical."""
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
        """The start of the chain of hashes."""
        return hashlib.sha256(b"dpmic_jax ledger 1\0" + self.to_json().encode("ascii")).digest()


class Receipt(NamedTuple):
    """Proof of an entry on disk: the ledger's identity, the entry's number, and its hash."""

    ledger: str
    serial: int
    hash: str


class State(NamedTuple):
    """What a ledger's file stores beside its entries: enough to check and to chain the next one."""

    header: Header
    entries: int
    head: bytes
    standing: Standing

    @property
    def seal(self) -> bytes:
        """A hash that binds the running totals to the chain of entries that they belong to."""
        # The prefix differs from that of `Header.root`, so that no seal can be taken for a root.
        content = [self.header.to_json(), self.entries, self.head.hex(), self.standing.to_json()]
        text = canonical(content).encode("ascii")
        return hashlib.sha256(b"dpmic_jax ledger 2\0" + text).digest()

    @property
    def receipt(self) -> Receipt:
        """The receipt of the last entry."""
        return Receipt(self.header.identity, self.entries, self.head.hex())

    def after(self, entry: Entry) -> "State":
        """The state after one more entry."""
        serial = self.entries + 1
        head = link(self.head, serial, entry.to_json())
        return State(self.header, serial, head, self.standing.after(serial, entry))

    def admit(self, event: Event) -> None:
        """Raise `BudgetExceeded` unless `event` can be charged, from a reservation if there is one.

        What the event would draw from a reservation does not count against the budget twice.
        """
        if not isinstance(event, Event):
            raise TypeError(f"expected an Event, got {event!r}")
        self._admit(event, self.standing.before(event))

    def admit_reservation(self, reservation: Reservation) -> None:
        """Raise `BudgetExceeded` unless all charges of a reservation fit what is left."""
        self._admit(reservation.whole_event, self.standing.taken)

    def _admit(self, event: Event, taken: Totals) -> None:
        try:
            Account(self.header.budget, taken).admit(event)
        except BudgetExceeded as error:
            reserved = ", ".join(map(str, self.standing.reserved))
            if not reserved:
                raise
            raise BudgetExceeded(f"{error}; spent counts what entries {reserved} reserve") from None


class Contents(NamedTuple):
    """The checked state and all entries of a file."""

    state: State
    entries: tuple[Entry, ...]

    @property
    def charges(self) -> dict[int, Event]:
        """Charged events by their entry numbers."""
        numbered = enumerate(self.entries, start=1)
        return {serial: entry for serial, entry in numbered if isinstance(entry, Event)}

    @property
    def ledger(self) -> Ledger:
        """The budget and all charged events, without reservations."""
        return Ledger(self.state.header.budget, tuple(self.charges.values()))


def link(head: bytes, serial: int, entry: str) -> bytes:
    """The hash of an entry in the chain, from the hash of the entry before (`head`)."""
    return hashlib.sha256(head + serial.to_bytes(8, "big") + entry.encode("ascii")).digest()
