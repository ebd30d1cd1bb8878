"""The durable ledger of one data set: a file that does not lose a charge in a crash.

The file is an SQLite database with a rollback journal and synchronous=EXTRA. A charge is one
transaction and is on disk before `charge` returns, so everything computed afterwards has been
charged. A row is a charge, a reservation of budget for later charges, or the cancellation of a
reservation (`dp.ledger.reservations`). Rows are chained by SHA-256 from a root over the header.
The row of the header has their number and the exact sums of their costs. It is sealed by a hash
together with the head of the chain, and updated with each row. Only these sums decide on the next
charge, so a charge takes as long after 10^5 entries as after ten.

Checks. Every use checks the file's structure, the header, the seal, the last row and its link, and
that the sums fit the budget. Damage in older rows is found by `verify`, and by everything that
reads all rows (`events`, `charges`, `ledger`, `spent`, `set_budget`): they check the pages, the
whole chain, and that the sums are those of the rows. The checks are in `dp.ledger.store`.

Limits. Anyone who can write the file can forge a consistent one: hashes detect damage and careless
edits, not forgery. If sums are forged too small and sealed again, charges are admitted until
`verify` is called. A restored old copy is a valid ledger without the later charges. After a crash
the file and its `-journal` belong together: never move or delete only one of them. The file system
has to support locks, fsync and hard links.

A new ledger is readable by its owner only (mode 0600). To share it, change the mode.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpmic_jax.dp import files
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.budget import Account, Budget, BudgetExceeded, Ledger, PrivacyAmount
from dpmic_jax.dp.ledger.format import Contents, Header, Receipt, State
from dpmic_jax.dp.ledger.reservations import GivenBack, Reservation
from dpmic_jax.dp.ledger.store import (
    LedgerRefused,
    append,
    checked,
    fill,
    find_charge,
    rewrite,
    to_write,
    transaction,
    verified,
)

__all__ = ["Budget", "BudgetExceeded", "Ledger", "LedgerFile", "LedgerRefused", "Receipt"]


@dataclass(frozen=True)
class LedgerFile:
    """A ledger on disk. No connection is kept open: threads, forks and processes may share it."""

    path: Path

    def __post_init__(self):
        # A later change of the working directory must not lead to another file.
        object.__setattr__(self, "path", Path(self.path).absolute())

    @classmethod
    def create(cls, path: str | os.PathLike[str], budget: Budget, *, data_set: str) -> "LedgerFile":
        """Create a new ledger; an existing file at `path` is never replaced.

        The file is written under a temporary name and then linked: a crash leaves a whole ledger
        or none.

        Raises:
          FileExistsError: there is a file at `path`, or a journal of one.
        """
        path = Path(path).absolute()
        # SQLite would apply a stale journal to the new file, so journals are refused as well.
        for taken in (path, *(path.with_name(path.name + end) for end in ("-journal", "-wal"))):
            if os.path.lexists(taken):
                raise FileExistsError(f"{taken} is there; open it, or choose another path")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
        if not isinstance(data_set, str) or not data_set.isprintable() or not data_set:
            raise ValueError("expected data_set to be the data set's name, of printable characters")
        if not isinstance(budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {budget!r}")
        header = Header(secrets.token_hex(16), data_set, budget)
        with files.temporary(path) as filled:
            fill(filled, header)
            os.link(filled, path)
        files.sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "LedgerFile":
        """Open an existing ledger, with the checks of every use; `verify` checks all entries."""
        file = cls(Path(path))
        file._read()
        return file

    def verify(self) -> int:
        """Check the whole file, and return the number of its entries, or raise `LedgerRefused`."""
        return len(self._read_all().entries)

    def check(self, event: Event) -> None:
        """Raise what `charge` would raise for `event` now, without writing anything.

        Nothing is reserved: another process may charge in between, and then `charge` may refuse.
        """
        self._read().admit(event)

    def charge(self, event: Event) -> Receipt:
        """Charge `event`, or raise `BudgetExceeded`. Release nothing before this returns."""
        with self._writing() as (connection, state):
            state.admit(event)
            return append(connection, state, event)

    def charge_once(self, event: Event, *, after: int = 0) -> Receipt:
        """Charge `event` unless it is already charged, for work that is resumed after a crash.

        An equal event in the ledger is taken for the charge of the same work, so events have to
        be unique, for example by a random number in their label. Work whose events may repeat,
        such as with a seeded key, keeps the value of `entries` from its beginning and passes it
        as `after`: earlier entries are not considered.
        """
        # Search and charge are one transaction, so processes that race charge the event once.
        with self._writing() as (connection, state):
            receipt = find_charge(connection, state, event, after)
            if receipt is not None:
                return receipt
            state.admit(event)
            return append(connection, state, event)

    def reserve(self, event: Event, *, times: int) -> Receipt:
        """Reserve budget for `times` charges like `event`, or raise `BudgetExceeded`.

        For work that is useless unless all of it can be charged, such as the fits of a
        cross-validation. All charges are reserved or none. The reservation is on disk when this
        returns, so it survives a crash. Later charges draw from it if they have the mechanism,
        guarantee, relation and count of `event`; no other charge can use the reserved budget.
        `cancel_reservation` gives back what was not drawn. See `dp.ledger.reservations` for the
        reasons.
        """
        reservation = Reservation(event, times)
        with self._writing() as (connection, state):
            try:
                state.admit_reservation(reservation)
            except BudgetExceeded as error:
                raise BudgetExceeded(f"none of {times} charges was reserved: {error}") from None
            return append(connection, state, reservation)

    def cancel_reservation(self, serial: int) -> None:
        """Give back what is left of the reservation with entry number `serial`."""
        with self._writing() as (connection, state):
            if serial not in state.standing.reserved:
                raise ValueError(
                    f"entry {serial} of {self.path} is no reservation, or nothing of it is left; "
                    "`reservations` has those that are"
                )
            append(connection, state, GivenBack(serial))

    def set_budget(self, budget: Budget) -> None:
        """Replace the budget, or raise `BudgetExceeded` if charges and reservations do not fit it.

        A larger budget is a weaker guarantee for the people in the data: they have to agree to it.
        """
        if not isinstance(budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {budget!r}")
        with self._writing() as (connection, _):
            # All entries are verified, since the chain is computed anew from the new header: a
            # damaged entry would otherwise get a valid hash.
            contents = verified(connection)
            taken = (*contents.charges.values(), *contents.state.standing.set_aside)
            Ledger(budget, taken)  # raises BudgetExceeded
            if any(event.relation.records < budget.relation.records for event in taken):
                raise BudgetExceeded("what was charged protects fewer records a person")
            rewrite(connection, contents, contents.state.header._replace(budget=budget))

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """The checked state, in a transaction that is committed when the block ends normally."""
        # IMMEDIATE takes the write lock at once: from here to COMMIT no other process can charge,
        # so the state that is checked is the one that is changed.
        with transaction(self.path, "BEGIN IMMEDIATE") as connection:
            yield connection, to_write(connection)
            connection.execute("COMMIT")

    @property
    def identity(self) -> str:
        """A random identifier of the ledger, made when it was created."""
        return self._read().header.identity

    @property
    def entries(self) -> int:
        """Number of entries: charges, reservations and cancellations of reservations."""
        return self._read().entries

    @property
    def ledger(self) -> Ledger:
        """The budget and all charged events, after a check of the whole file."""
        return self._read_all().ledger

    @property
    def budget(self) -> Budget:
        """The budget that charges have to fit."""
        return self._read().header.budget

    @property
    def data_set(self) -> str:
        """The name of the data set, as given to `create`."""
        return self._read().header.data_set

    @property
    def events(self) -> tuple[Event, ...]:
        """All charged events, in order."""
        return self.ledger.events

    @property
    def spent(self) -> PrivacyAmount:
        """As `Ledger.spent`: the cost of all charges, without reservations."""
        return self.ledger.spent

    @property
    def left(self) -> PrivacyAmount:
        """As `Ledger.left`, for a charge that does not draw from a reservation."""
        state = self._read()
        return Account(state.header.budget, state.standing.taken).left

    @property
    def charges(self) -> dict[int, Event]:
        """Charged events by their entry numbers."""
        return self._read_all().charges

    @property
    def reservations(self) -> dict[int, Reservation]:
        """What is left of each reservation, by its entry number."""
        return self._read().standing.reserved

    def _read(self) -> State:
        with transaction(self.path, "BEGIN") as connection:
            return checked(connection)

    def _read_all(self) -> Contents:
        with transaction(self.path, "BEGIN") as connection:
            return verified(connection)
