"""Storage of a ledger in an SQLite file: its tables, and the checks on them.

`checked` is done at every use, and reads as much of a file of 10^5 entries as of one of ten: the
file's own header and length, its schema, the one row of `ledger` with its seal, and the last two
entries, whose link has to end in the head that is sealed with the totals. `verified` reads the
whole file: it checks the pages, the whole chain, and that the totals are those of the entries.

Version 1 of the tables had no totals. Such a file is verified at every use, and upgraded by the
first use that writes. Its entries and hashes stay the same, so receipts stay valid.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmic_jax.dp import files
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.ledger.format import Contents, Header, Receipt, State, link
from dpmic_jax.dp.ledger.reservations import Entry, Standing, entry_from_json, standing

APPLICATION = 0x64704D49  # "dpMI", SQLite's application_id of a ledger
VERSION = 2
# The upgrade adds columns to the tables of version 1, after which SQLite stores exactly the text
# of version 2: both kinds of files pass the same comparison.
SCHEMAS = {
    1: (
        ("charges", "CREATE TABLE charges (serial INTEGER PRIMARY KEY, event TEXT, hash BLOB)"),
        (
            "ledger",
            "CREATE TABLE ledger (id INTEGER PRIMARY KEY, header TEXT, charges INTEGER, head BLOB)",
        ),
    ),
    VERSION: (
        (
            "charges",
            "CREATE TABLE charges (serial INTEGER PRIMARY KEY, event TEXT, hash BLOB, digest BLOB)",
        ),
        ("charges_by_digest", "CREATE INDEX charges_by_digest ON charges (digest)"),
        (
            "ledger",
            "CREATE TABLE ledger (id INTEGER PRIMARY KEY, header TEXT, charges INTEGER, head BLOB, "
            "totals TEXT, seal BLOB)",
        ),
    ),
}
PATIENCE = 60.0  # seconds to wait while another process holds the lock

Row = tuple[int, str, bytes, bytes | None]


class LedgerRefused(Exception):  # noqa: N818 - like BudgetExceeded
    """The file is not a ledger, or is damaged. It is never repaired or replaced."""


class _DamageError(Exception):
    """A check of the file failed; the message says which. Becomes a `LedgerRefused`."""


def fill(path: Path, header: Header) -> None:
    """Write a ledger without entries to a new file of mode 0600."""
    # Created before SQLite opens it, which would use the umask; journals get the file's mode.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, files.PRIVATE))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 4096")
        # With a rollback journal, EXTRA also syncs the folder after the journal is deleted: a
        # commit that has returned survives a power failure. On macOS that takes fullfsync.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for _, statement in SCHEMAS[VERSION]:
            connection.execute(statement)
        row = _row(State(header, 0, header.root, standing(())))
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")
    finally:
        connection.close()


@contextmanager
def transaction(path: Path, begin: str) -> Iterator[sqlite3.Connection]:
    """A transaction on an existing ledger; what is not committed at the end is rolled back.

    Args:
      path: the ledger's file.
      begin: "BEGIN" to read, or "BEGIN IMMEDIATE" to keep all other processes from writing.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no ledger at {path}; make one with LedgerFile.create or `dpmic ledger init`"
        )
    # mode=rw never creates a file. isolation_level=None leaves BEGIN and COMMIT to us.
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute(begin)
        _check_frame(connection, path)
        yield connection
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise TimeoutError(f"{path} was in use for {PATIENCE:g} s; nothing charged") from error
        raise LedgerRefused(f"{path} cannot be used as a ledger: {error}") from error
    except _DamageError as error:
        raise LedgerRefused(f"{path} is refused: {error}") from error
    except UnicodeDecodeError as error:  # raised by sqlite3 when it quotes damaged text
        raise LedgerRefused(f"{path} cannot be used as a ledger: damaged text") from error
    finally:
        connection.close()


def checked(connection: sqlite3.Connection) -> State:
    """The state of the ledger, after the checks of every use."""
    if _pragma(connection, "user_version") == 1:
        return verified(connection).state
    with _damage():
        state = _state(connection)
        # The last entry, and the one before for the hash that the last one is linked to.
        query = "SELECT * FROM charges ORDER BY serial DESC LIMIT 2"
        rows = connection.execute(query).fetchall()
        last = list(range(state.entries, max(state.entries - 2, 0), -1))
        _require([row[0] for row in rows] == last, "charges are missing at the end")
        head = state.header.root
        if rows:
            _entry(rows[1][2] if len(rows) > 1 else head, rows[0])
            head = rows[0][2]
        _require(head == state.head, "charges are missing at the end")
    return state


def verified(connection: sqlite3.Connection) -> Contents:
    """The state and all entries, after all checks."""
    first = _pragma(connection, "user_version") == 1
    _require(_pragma(connection, "integrity_check") == "ok", "its pages are damaged")
    with _damage():
        stored = _state_of_version_1(connection) if first else _state(connection)
        digest = "NULL" if first else "digest"
        query = f"SELECT serial, event, hash, {digest} FROM charges ORDER BY serial"
        head, entries = stored.header.root, []
        for place, row in enumerate(connection.execute(query), start=1):
            _require(row[0] == place, f"charge {place} is damaged")
            entries.append(_entry(head, row, with_digest=not first))
            head = row[2]
        whole = head == stored.head and len(entries) == stored.entries
        _require(whole, "charges are missing at the end")
        state = stored._replace(standing=standing(entries))
        _require(_fits_budget(state), "its charges exceed its budget")
        _require(first or state == stored, "its running totals are not those of its charges")
    return Contents(state, tuple(entries))


def to_write(connection: sqlite3.Connection) -> State:
    """As `checked`; a file of version 1 is upgraded in the same transaction."""
    if _pragma(connection, "user_version") != 1:
        return checked(connection)
    # In the caller's transaction: a charge that is refused rolls the upgrade back.
    state, entries = verified(connection)
    connection.execute("ALTER TABLE charges ADD COLUMN digest BLOB")
    connection.execute("ALTER TABLE ledger ADD COLUMN totals TEXT")
    connection.execute("ALTER TABLE ledger ADD COLUMN seal BLOB")
    for serial, entry in enumerate(entries, start=1):
        change = "UPDATE charges SET digest = ? WHERE serial = ?"
        connection.execute(change, (_digest(entry), serial))
    connection.execute("CREATE INDEX charges_by_digest ON charges (digest)")
    _write_state(connection, state)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    return state


def append(connection: sqlite3.Connection, state: State, entry: Entry) -> Receipt:
    """Insert an entry and update the totals, in the caller's transaction."""
    after = state.after(entry)
    row = (after.entries, entry.to_json(), after.head, _digest(entry))
    connection.execute("INSERT INTO charges VALUES (?, ?, ?, ?)", row)
    _write_state(connection, after)
    return after.receipt


def find_charge(
    connection: sqlite3.Connection, state: State, event: Event, after: int
) -> Receipt | None:
    """The receipt of the first charge of `event` after entry number `after`, or None.

    The row that is found is checked against its link in the chain.
    """
    query = "SELECT * FROM charges WHERE digest = ? AND serial > ? ORDER BY serial LIMIT 1"
    row = connection.execute(query, (_digest(event), after)).fetchone()
    if row is None:
        return None
    serial = row[0]
    query = "SELECT hash FROM charges WHERE serial = ?"
    (before,) = connection.execute(query, (serial - 1,)).fetchone() or (state.header.root,)
    with _damage():
        _require(_entry(before, row) == event, f"charge {serial} is damaged")
    return Receipt(state.header.identity, serial, row[2].hex())


def rewrite(connection: sqlite3.Connection, contents: Contents, header: Header) -> None:
    """Replace the header, and compute the chain of hashes anew from its root.

    The hashes of earlier receipts are not found in the new chain.
    """
    head = header.root
    for serial, entry in enumerate(contents.entries, start=1):
        head = link(head, serial, entry.to_json())
        connection.execute("UPDATE charges SET hash = ? WHERE serial = ?", (head, serial))
    _write_state(connection, contents.state._replace(header=header, head=head))


def _check_frame(connection: sqlite3.Connection, path: Path) -> None:
    """Check the file's own header, its length and its schema.

    Only before anything is written in a transaction, since the file grows at its commit.
    """
    application, version, mode = (
        _pragma(connection, name) for name in ("application_id", "user_version", "journal_mode")
    )
    _require(application == APPLICATION, "it is not a ledger of this library")
    _require(version in SCHEMAS, "it has another schema version")
    _require(mode == "delete", "it is not in rollback-journal mode")
    # If a flipped bit turned auto_vacuum on, SQLite would write pointer maps over our pages.
    _require(_pragma(connection, "auto_vacuum") == 0, "its pages are damaged")
    size = int(_pragma(connection, "page_count")) * int(_pragma(connection, "page_size"))
    _require(path.stat().st_size == size, "it is not as long as it says")
    schema = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    _require(tuple(schema) == SCHEMAS[int(version)], "its tables are not a ledger's")


def _state(connection: sqlite3.Connection) -> State:
    """The state in the row of `ledger`, if it is canonical, its seal fits, and so do its sums."""
    row = _header_row(connection)
    _, header, entries, head, totals, _ = row
    state = State(Header.from_json(header), entries, head, Standing.from_json(totals))
    _require(_row(state) == row, "its header or its running totals are damaged")
    _require(_fits_budget(state), "its charges exceed its budget")
    return state


def _state_of_version_1(connection: sqlite3.Connection) -> State:
    """The state in a file of version 1, without totals: the caller computes them."""
    _, text, entries, head = _header_row(connection)
    header = Header.from_json(text)
    _require(header.to_json() == text, "its header is damaged")
    return State(header, entries, head, standing(()))


def _header_row(connection: sqlite3.Connection) -> tuple[Any, ...]:
    rows = connection.execute("SELECT * FROM ledger LIMIT 2").fetchall()
    _require(len(rows) == 1, "it has no header, or several")
    return rows[0]


def _row(state: State) -> tuple[int, str, int, bytes, str, bytes]:
    header, totals = state.header.to_json(), state.standing.to_json()
    return (1, header, state.entries, state.head, totals, state.seal)


def _write_state(connection: sqlite3.Connection, state: State) -> None:
    change = "UPDATE ledger SET id = ?, header = ?, charges = ?, head = ?, totals = ?, seal = ?"
    connection.execute(change, _row(state))


def _entry(head: bytes, row: Row, *, with_digest: bool = True) -> Entry:
    """The entry of a row, after checking its link to the hash before it, and its digest."""
    serial, text, hashed, digest = row
    _require(link(head, serial, text) == hashed, f"charge {serial} is damaged")
    entry = entry_from_json(text)
    _require(not with_digest or digest == _digest(entry), f"charge {serial} is damaged")
    return entry


def _digest(entry: Entry) -> bytes | None:
    """The digest that `find_charge` looks up; reservations have none."""
    return entry.digest if isinstance(entry, Event) else None


def _fits_budget(state: State) -> bool:
    return state.header.budget.holds(state.standing.taken)


def _pragma(connection: sqlite3.Connection, name: str) -> int | str:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise _DamageError(what)


@contextmanager
def _damage() -> Iterator[None]:
    """Report content that cannot be parsed as damage."""
    try:
        yield
    # What the parsers of JSON, fractions, budgets and events raise for invalid content.
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _DamageError("its content is damaged") from error
