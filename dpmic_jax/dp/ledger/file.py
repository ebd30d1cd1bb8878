"""The durable ledger of one data set: a file that cannot lose a charge.

An SQLite file with a rollback journal and synchronous=EXTRA: a charge is one transaction and
is on the disk before `charge` returns, so what is computed after it has been paid for. A row
is a charge, or sets budget aside for charges, or gives it back (`dp.ledger.reservations`). Rows
are chained by SHA-256 from a root over the header. The header's row counts them, and keeps the
exact sums of what they cost, sealed by a hash with the head of the chain and written with each
row: the next charge is judged by them, and costs the same after 10^5 entries as after ten.

What is checked. Every use checks the file's structure, the header, the seal, the last row and its
link, and that the sums fit the budget. What is wrong with older rows is found by `verify`, and by
whatever reads them all (`events`, `charges`, `ledger`, `spent`, `set_budget`): the pages, the whole
chain, and that the sums are those of the rows. `dp.ledger.store` has the checks.

Limits. Whoever can write the file can make up a consistent one: hashes find damage and
careless edits, not forgers. Sums that a forger made too small, and sealed, admit charges until
somebody calls `verify`. A restored old copy is a valid ledger that has forgotten charges.
After a crash the file and its `-journal` belong together: never move or delete one alone. The
file system has to honour locks and fsync, and to have hard links.

A new ledger is readable by its owner alone (mode 0600). Whoever shares one may change that.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.budget import Account, Budget, BudgetExceeded, Ledger, PrivacyAmount
from dpmic_jax.dp.ledger.format import Contents, Header, Receipt, State
from dpmic_jax.dp.ledger.reservations import GivenBack, Reservation
from dpmic_jax.dp.ledger.store import (
    LedgerRefused,
    append,
    checked,
    fill,
    found,
    rewrite,
    to_write,
    transaction,
    verified,
)

__all__ = ["Budget", "BudgetExceeded", "Ledger", "LedgerFile", "LedgerRefused", "Receipt"]


@dataclass(frozen=True)
class LedgerFile:
    """A ledger on disk. It holds no connection: threads, forks and processes may share it."""

    path: Path

    def __post_init__(self):
        # A later change of the working directory must not lead to another file.
        object.__setattr__(self, "path", Path(self.path).absolute())

    @classmethod
    def create(cls, path: str | os.PathLike[str], budget: Budget, *, data_set: str) -> "LedgerFile":
        """Make a new ledger; whatever is at `path` already is left as it is and refused.

        The file is filled under another name and then linked: a crash leaves no half of it.
        """
        path = Path(path).absolute()
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
        filled = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            fill(filled, header)
            os.link(filled, path)
        finally:
            filled.unlink(missing_ok=True)
        _sync_directory(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "LedgerFile":
        """A ledger that is there, after the checks of every use; `verify` checks all of it."""
        file = cls(Path(path))
        file._read()
        return file

    def verify(self) -> int:
        """Check all of the file, or raise `LedgerRefused`; the number of its entries."""
        return len(self._read_all().entries)

    def check(self, event: Event) -> None:
        """Raise what `charge` would raise for `event` now; nothing is written.

        It holds nothing back for later: another process may charge in between. `charge` decides.
        """
        self._read().admit(event)

    def charge(self, event: Event) -> Receipt:
        """Enter `event`, or raise `BudgetExceeded`. Release nothing before this returns."""
        with self._writing() as (connection, state):
            state.admit(event)
            return append(connection, state, event)

    def charge_once(self, event: Event, *, after: int = 0) -> Receipt:
        """Enter `event` unless it is there, for work that goes on after a crash.

        Only for events that no other work can have, such as by a random number in their label:
        what is entered before is taken for this very work, paid for and begun. Work whose events
        may repeat, such as that of a seeded key, notes `entries` when it begins and passes it as
        `after`: what was entered before that is not its own.
        """
        with self._writing() as (connection, state):
            receipt = found(connection, state, event, after)
            if receipt is not None:
                return receipt
            state.admit(event)
            return append(connection, state, event)

    def reserve(self, event: Event, *, times: int) -> Receipt:
        """Set aside `times` charges like `event`, or raise `BudgetExceeded` and set aside none.

        For work that is worth nothing unless all of it can be paid, such as the fits of a
        cross-validation. The reservation is in the file when this returns, so it outlives a crash.
        Later charges draw from it if they have the mechanism, guarantee, relation and count of
        `event`; all others are refused what it holds. `release` gives back what was not drawn.
        The reasons are in `dp.ledger.reservations`.
        """
        reservation = Reservation(event, times)
        with self._writing() as (connection, state):
            try:
                state.admit_reservation(reservation)
            except BudgetExceeded as error:
                raise BudgetExceeded(f"none of {times} charges was reserved: {error}") from None
            return append(connection, state, reservation)

    def cancel_reservation(self, serial: int) -> None:
        """Give back what is left of the reservation of entry `serial`; see `reservations`."""
        with self._writing() as (connection, state):
            if serial not in state.standing.reserved:
                raise ValueError(
                    f"entry {serial} of {self.path} is no reservation, or nothing of it is left; "
                    "`reservations` has those that are"
                )
            append(connection, state, GivenBack(serial))

    def set_budget(self, budget: Budget) -> None:
        """Replace the budget, or raise `BudgetExceeded` if what is taken does not fit it.

        That is what was charged and what is reserved.
        A larger budget is a weaker promise to the same people: theirs to allow, not ours.
        """
        if not isinstance(budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {budget!r}")
        with self._writing() as (connection, _):
            contents = verified(connection)
            taken = (*contents.charges.values(), *contents.state.standing.set_aside)
            Ledger(budget, taken)  # refuses what is beyond the budget
            if any(event.relation.records < budget.relation.records for event in taken):
                raise BudgetExceeded("what was charged protects fewer records a person")
            rewrite(connection, contents, contents.state.header._replace(budget=budget))

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """The checked state, in a transaction that is on the disk when this ends well."""
        # From BEGIN to COMMIT no other process can charge.
        with transaction(self.path, "BEGIN IMMEDIATE") as connection:
            yield connection, to_write(connection)
            connection.execute("COMMIT")

    @property
    def identity(self) -> str:
        """A random name, made with the ledger, that tells it from all others."""
        return self._read().header.identity

    @property
    def entries(self) -> int:
        """How many entries there are: charges, reservations and what gives them back."""
        return self._read().entries

    @property
    def ledger(self) -> Ledger:
        """The file as it is now, all of it checked again."""
        return self._read_all().ledger

    @property
    def budget(self) -> Budget:
        return self._read().header.budget

    @property
    def data_set(self) -> str:
        return self._read().header.data_set

    @property
    def events(self) -> tuple[Event, ...]:
        return self.ledger.events

    @property
    def spent(self) -> PrivacyAmount:
        return self.ledger.spent

    @property
    def left(self) -> PrivacyAmount:
        """As `Ledger.left`, for a charge that nothing is reserved for."""
        state = self._read()
        return Account(state.header.budget, state.standing.taken).left

    @property
    def charges(self) -> dict[int, Event]:
        """What was charged, by the numbers of the entries."""
        return self._read_all().charges

    @property
    def reservations(self) -> dict[int, Reservation]:
        """What is reserved and not yet drawn, by the numbers of the entries."""
        return self._read().standing.reserved

    def _read(self) -> State:
        with transaction(self.path, "BEGIN") as connection:
            return checked(connection)

    def _read_all(self) -> Contents:
        with transaction(self.path, "BEGIN") as connection:
            return verified(connection)


def _sync_directory(path: Path) -> None:
    """Make a new name durable; only POSIX has a way, and needs it."""
    if os.name == "posix":
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
