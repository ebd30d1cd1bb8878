"""The durable ledger of one data set: a file that cannot lose a charge.

An SQLite file with a rollback journal and synchronous=EXTRA: a charge is one transaction and
is on the disk before `charge` returns, so what is computed after it has been paid for. A row
is a charge, or sets budget aside for charges, or gives it back (`dp.reservations`). Rows
are chained by SHA-256 from a root over the header, and the header's row counts them; every
use of the file checks its structure, the whole chain and the budget again.

Limits. Whoever can write the file can make up a consistent one: the chain finds damage and
careless edits, not forgers. A restored old copy is a valid ledger that has forgotten charges.
After a crash the file and its `-journal` belong together: never move or delete one alone. The
file system has to honour locks and fsync, and to have hard links.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dpmic_jax.dp.budget import Amount, Budget, BudgetExceeded, Ledger
from dpmic_jax.dp.contents import Contents, Header, link
from dpmic_jax.dp.events import Event
from dpmic_jax.dp.reservations import Entry, GivenBack, Reservation, entry_from_json, standing

__all__ = ["Budget", "BudgetExceeded", "Ledger", "LedgerFile", "LedgerRefused", "Receipt"]

_APPLICATION = 0x64704D49  # "dpMI"
_SCHEMA_VERSION = 1
_SCHEMA = (
    ("charges", "CREATE TABLE charges (serial INTEGER PRIMARY KEY, event TEXT, hash BLOB)"),
    (
        "ledger",
        "CREATE TABLE ledger (id INTEGER PRIMARY KEY, header TEXT, charges INTEGER, head BLOB)",
    ),
)
_PATIENCE = 60.0  # seconds to wait for another process's charge


class LedgerRefused(Exception):  # noqa: N818 - like BudgetExceeded
    """The file is no ledger, or is damaged. It is never repaired or made anew."""


class Receipt(NamedTuple):
    """An entry that is on the disk: its ledger, its place there, and the chain up to it."""

    ledger: str
    serial: int
    hash: str


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
            _fill(filled, header)
            os.link(filled, path)
        finally:
            filled.unlink(missing_ok=True)
        _sync_directory(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "LedgerFile":
        """A ledger that is there, after checking all of it."""
        file = cls(Path(path))
        file._read()
        return file

    def charge(self, event: Event) -> Receipt:
        """Enter `event`, or raise `BudgetExceeded`. Release nothing before this returns."""
        with self._writing() as (connection, contents):
            return _charge(connection, contents, event)

    def charge_once(self, event: Event) -> Receipt:
        """Enter `event` unless it is there, for work that goes on after a crash.

        Only for events that no other work can have, such as by a random number in their label:
        what is entered before is taken for this very work, paid for and begun.
        """
        with self._writing() as (connection, contents):
            charges = contents.standing.charges
            serial = next((place for place, one in charges.items() if one == event), None)
            if serial is not None:
                query = "SELECT hash FROM charges WHERE serial = ?"
                (kept,) = connection.execute(query, (serial,)).fetchone()
                return Receipt(contents.header.identity, serial, kept.hex())
            return _charge(connection, contents, event)

    def reserve(self, event: Event, *, times: int) -> Receipt:
        """Set aside `times` charges like `event`, or raise `BudgetExceeded` and set aside none.

        For work that is worth nothing unless all of it can be paid, such as the fits of a
        cross-validation. The reservation is in the file when this returns, so it outlives a crash.
        Later charges draw from it if they have the mechanism, guarantee, relation and count of
        `event`; all others are refused what it holds. `release` gives back what was not drawn.
        The reasons are in `dp.reservations`.
        """
        reservation = Reservation(event, times)
        with self._writing() as (connection, contents):
            try:
                contents.admit(reservation.whole_event, contents.standing.taken)
            except BudgetExceeded as error:
                raise BudgetExceeded(f"none of {times} charges was reserved: {error}") from None
            return _append(connection, contents, reservation)

    def release(self, serial: int) -> None:
        """Give back what is left of the reservation of entry `serial`; see `reservations`."""
        with self._writing() as (connection, contents):
            if serial not in contents.standing.reserved:
                raise ValueError(
                    f"entry {serial} of {self.path} is no reservation, or nothing of it is left; "
                    "`reservations` has those that are"
                )
            _append(connection, contents, GivenBack(serial))

    def set_budget(self, budget: Budget) -> None:
        """Replace the budget, or raise `BudgetExceeded` if what is taken does not fit it.

        That is what was charged and what is reserved.
        A larger budget is a weaker promise to the same people: theirs to allow, not ours.
        """
        if not isinstance(budget, Budget):
            raise TypeError(f"expected budget=Budget(epsilon, delta), got {budget!r}")
        with self._writing() as (connection, contents):
            header = contents.header._replace(budget=budget)
            taken = Ledger(budget, contents.standing.taken).events
            if any(event.relation.records < budget.relation.records for event in taken):
                raise BudgetExceeded("what was charged protects fewer records a person")
            head = header.root
            for serial, entry in enumerate(contents.entries, start=1):
                head = link(head, serial, entry.to_json())
                change = "UPDATE charges SET hash = ? WHERE serial = ?"
                connection.execute(change, (head, serial))
            change = "UPDATE ledger SET header = ?, head = ?"
            connection.execute(change, (header.to_json(), head))

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, Contents]]:
        """The checked content, in a transaction that is on the disk when this ends well."""
        with _connection(self.path) as connection:
            # From here to COMMIT no other process can charge.
            connection.execute("BEGIN IMMEDIATE")
            yield connection, _checked(connection, self.path)
            connection.execute("COMMIT")

    @property
    def identity(self) -> str:
        """A random name, made with the ledger, that tells it from all others."""
        return self._read().header.identity

    @property
    def ledger(self) -> Ledger:
        """The file as it is now, checked again."""
        return self._read().ledger

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
    def spent(self) -> Amount:
        return self.ledger.spent

    @property
    def left(self) -> Amount:
        """As `Ledger.left`, for a charge that nothing is reserved for."""
        contents = self._read()
        return Ledger(contents.header.budget, contents.standing.taken).left

    @property
    def charges(self) -> dict[int, Event]:
        """What was charged, by the numbers of the entries."""
        return self._read().standing.charges

    @property
    def reservations(self) -> dict[int, Reservation]:
        """What is reserved and not yet drawn, by the numbers of the entries."""
        return self._read().standing.reserved

    def _read(self) -> Contents:
        with _connection(self.path) as connection:
            connection.execute("BEGIN")
            return _checked(connection, self.path)


def _charge(connection: sqlite3.Connection, contents: Contents, event: Event) -> Receipt:
    contents.admit(event, contents.standing.before(event))
    return _append(connection, contents, event)


def _append(connection: sqlite3.Connection, contents: Contents, entry: Entry) -> Receipt:
    serial = len(contents.entries) + 1
    head = link(contents.head, serial, entry.to_json())
    row = (serial, entry.to_json(), head)
    connection.execute("INSERT INTO charges VALUES (?, ?, ?)", row)
    connection.execute("UPDATE ledger SET charges = ?, head = ?", (serial, head))
    return Receipt(contents.header.identity, serial, head.hex())


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that makes no file; closing it undoes what was not committed."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no ledger at {path}; make one with LedgerFile.create")
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_PATIENCE
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        yield connection
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise TimeoutError(f"{path} was in use for {_PATIENCE:g} s; nothing charged") from error
        raise LedgerRefused(f"{path} cannot be used as a ledger: {error}") from error
    except UnicodeDecodeError as error:  # sqlite3's own, when it quotes damaged text
        raise LedgerRefused(f"{path} cannot be used as a ledger: damaged text") from error
    finally:
        connection.close()


def _checked(connection: sqlite3.Connection, path: Path) -> Contents:
    """What the file holds, or a refusal. Inside a transaction, so nobody writes meanwhile."""

    def pragma(name: str) -> int | str:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    def require(holds: bool, what: str) -> None:
        if not holds:
            raise LedgerRefused(f"{path} is refused: {what}")

    require(pragma("application_id") == _APPLICATION, "it is not a ledger of this library")
    require(pragma("user_version") == _SCHEMA_VERSION, "it has another schema version")
    require(pragma("journal_mode") == "delete", "it is not in rollback-journal mode")
    size = int(pragma("page_count")) * int(pragma("page_size"))
    require(path.stat().st_size == size, "it is not as long as it says")
    require(pragma("integrity_check") == "ok", "its pages are damaged")
    schema = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    require(tuple(schema) == _SCHEMA, "its tables are not a ledger's")
    headers = connection.execute("SELECT * FROM ledger").fetchall()
    rows = connection.execute("SELECT * FROM charges ORDER BY serial").fetchall()
    require(len(headers) == 1, "it has no header, or several")
    _, text, charges, kept_head = headers[0]
    try:
        header = Header.from_json(text)
        require(header.to_json() == text, "its header is damaged")
        head, entries = header.root, []
        for place, (serial, entry, kept) in enumerate(rows, start=1):
            head = link(head, place, entry)
            require(serial == place and head == kept, f"charge {place} is damaged")
            entries.append(entry_from_json(entry))
        require(head == kept_head and charges == len(rows), "charges are missing at the end")
        found = standing(entries)
        Ledger(header.budget, found.taken)  # refuses what is beyond the budget
        return Contents(header, tuple(entries), found, head)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerRefused(f"{path} is refused: its content is damaged") from error
    except BudgetExceeded as error:
        raise LedgerRefused(f"{path} is refused: its charges exceed its budget") from error


def _fill(path: Path, header: Header) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        for _, statement in _SCHEMA:
            connection.execute(statement)
        row = (1, header.to_json(), 0, header.root)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", row)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _sync_directory(path: Path) -> None:
    """Make a new name durable; only POSIX has a way, and needs it."""
    if os.name == "posix":
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
