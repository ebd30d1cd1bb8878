"""What a ledger's file says, as data: a header, entries, a chain of hashes, and running totals."""

import hashlib
import json
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import Totals
from dpmic_jax.dp.accounting.events import Event, ReplaceOne, canonical
from dpmic_jax.dp.ledger.budget import Account, Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.ledger.reservations import Entry, Reservation, Standing


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


class Receipt(NamedTuple):
    """An entry that is on the disk: its ledger, its place there, and the chain up to it."""

    ledger: str
    serial: int
    hash: str


class State(NamedTuple):
    """What a ledger's file keeps beside its entries: enough to judge and to chain the next one."""

    header: Header
    entries: int
    head: bytes
    standing: Standing

    @property
    def seal(self) -> bytes:
        """Binds the running totals to the chain that they are the totals of."""
        content = [self.header.to_json(), self.entries, self.head.hex(), self.standing.to_json()]
        text = canonical(content).encode("ascii")
        return hashlib.sha256(b"dpmic_jax ledger 2\0" + text).digest()

    @property
    def receipt(self) -> Receipt:
        """Of the last entry."""
        return Receipt(self.header.identity, self.entries, self.head.hex())

    def after(self, entry: Entry) -> "State":
        """With one more entry."""
        serial = self.entries + 1
        head = link(self.head, serial, entry.to_json())
        return State(self.header, serial, head, self.standing.after(serial, entry))

    def admit(self, event: Event) -> None:
        """Raise unless `event` may be charged, with what is taken but for what it draws."""
        if not isinstance(event, Event):
            raise TypeError(f"expected an Event, got {event!r}")
        self._admit(event, self.standing.before(event))

    def admit_reservation(self, reservation: Reservation) -> None:
        """Raise unless all of a reservation may be taken."""
        self._admit(reservation.whole_event, self.standing.taken)

    def _admit(self, event: Event, taken: Totals) -> None:
        try:
            Account(self.header.budget, taken).admit(event)
        except BudgetExceeded as error:
            aside = ", ".join(map(str, self.standing.reserved))
            if not aside:
                raise
            raise BudgetExceeded(f"{error}; spent counts what entries {aside} reserve") from None


class Contents(NamedTuple):
    """All that a file holds, checked."""

    state: State
    entries: tuple[Entry, ...]

    @property
    def charges(self) -> dict[int, Event]:
        """Events by the numbers of their entries."""
        numbered = enumerate(self.entries, start=1)
        return {serial: entry for serial, entry in numbered if isinstance(entry, Event)}

    @property
    def ledger(self) -> Ledger:
        """What was charged."""
        return Ledger(self.state.header.budget, tuple(self.charges.values()))


def link(head: bytes, serial: int, entry: str) -> bytes:
    """The chain up to an entry, from the chain up to the one before."""
    return hashlib.sha256(head + serial.to_bytes(8, "big") + entry.encode("ascii")).digest()
