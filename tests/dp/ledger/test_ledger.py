import os
import shutil
import sqlite3
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from ledger_files import sql

from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger import file as ledger_module
from dpmic_jax.dp.ledger import store
from dpmic_jax.dp.ledger.file import Budget, BudgetExceeded, Ledger, LedgerFile, LedgerRefused

TENTH = PureDP(0.1)


def event(guarantee=TENTH, **changes):
    plain = Event(
        mechanism="MICr-Lap",
        guarantee=guarantee,
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
    )
    return replace(plain, **changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a table?.ledger"


@pytest.fixture
def filled(path):
    """A ledger of eleven charges on several pages."""
    file = LedgerFile.create(path, Budget(10.0, 1e-6), data_set="baseball")
    for i in range(10):
        file.charge(event(PureDP(0.01 * (i + 1)), label=f"{i}" * 100 * (i % 3 + 1)))
    file.charge(event(ZCDP(0.001, 1e-15)))
    return file


def test_a_ledger_file_keeps_its_charges(filled):
    again = LedgerFile.open(filled.path)
    assert again.data_set == "baseball"
    assert again.budget == Budget(10.0, 1e-6)
    in_memory = Ledger(again.budget)
    for each in again.events:
        in_memory = in_memory.charge(each)
    assert again.ledger == in_memory
    assert (again.spent, again.left) == (in_memory.spent, in_memory.left)


def test_receipts_are_numbered_and_chained(path):
    file = LedgerFile.create(path, Budget(1.0), data_set="x")
    receipts = [file.charge(event()) for _ in range(3)]
    assert [receipt.serial for receipt in receipts] == [1, 2, 3]
    assert len({receipt.hash for receipt in receipts}) == 3
    assert len({receipt.ledger for receipt in receipts}) == 1
    other = LedgerFile.create(path.with_name("other"), Budget(1.0), data_set="x")
    assert other.charge(event()).hash != receipts[0].hash


def test_a_refused_charge_leaves_the_file_unchanged(path):
    file = LedgerFile.create(path, Budget(1.0), data_set="x")
    file.charge(event(PureDP(0.75)))
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match=r"0.25 of 1 is left"):
        file.charge(event(PureDP(0.5)))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    file.charge(event(PureDP(0.25)))


@pytest.mark.parametrize("taken", ["", "-journal", "-wal"])
def test_create_never_replaces_an_existing_file(path, taken):
    there = path.with_name(path.name + taken)
    there.write_bytes(b"something")
    with pytest.raises(FileExistsError):
        LedgerFile.create(path, Budget(1.0), data_set="x")
    assert there.read_bytes() == b"something"
    assert os.listdir(path.parent) == [there.name]


def test_create_does_not_replace_a_file_made_meanwhile(path, monkeypatch):
    fill = ledger_module.fill

    def slow(new, header):
        fill(new, header)
        path.write_bytes(b"the winner's")

    monkeypatch.setattr(ledger_module, "fill", slow)
    with pytest.raises(FileExistsError):
        LedgerFile.create(path, Budget(1.0), data_set="x")
    assert path.read_bytes() == b"the winner's"
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_file_is_not_created(path):
    for use in (LedgerFile.open, lambda where: LedgerFile(where).charge(event())):
        with pytest.raises(FileNotFoundError, match="create"):
            use(path)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("data_set", ["", "a\nb", "\ud800", 3])
def test_a_data_set_needs_a_printable_name(path, data_set):
    with pytest.raises(ValueError, match="data_set"):
        LedgerFile.create(path, Budget(1.0), data_set=data_set)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("content", [b"", b"text\n" * 1000, bytes(8192), os.urandom(8192)])
def test_a_file_that_is_no_ledger_is_refused_and_unchanged(path, content):
    path.write_bytes(content)
    for use in (LedgerFile.open, lambda where: LedgerFile(where).charge(event())):
        with pytest.raises(LedgerRefused, match="ledger"):
            use(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_foreign_database_is_refused_and_unchanged(path, mode):
    sql(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE charges (serial, event, hash)")
    before = path.read_bytes()
    with pytest.raises(LedgerRefused, match="not a ledger"):
        LedgerFile.open(path)
    assert path.read_bytes() == before


EVERY_USE = {
    "open": lambda path: LedgerFile.open(path),
    "verify": lambda path: LedgerFile(path).verify(),
    "check": lambda path: LedgerFile(path).check(event()),
    "charge": lambda path: LedgerFile(path).charge(event()),
    "charge_once": lambda path: LedgerFile(path).charge_once(event()),
    "reserve": lambda path: LedgerFile(path).reserve(event(), times=2),
    "release": lambda path: LedgerFile(path).cancel_reservation(1),
    "set_budget": lambda path: LedgerFile(path).set_budget(Budget(20.0, 1e-6)),
    "identity": lambda path: LedgerFile(path).identity,
    "data_set": lambda path: LedgerFile(path).data_set,
    "budget": lambda path: LedgerFile(path).budget,
    "left": lambda path: LedgerFile(path).left,
    "reservations": lambda path: LedgerFile(path).reservations,
}
WHOLE = {
    "verify": EVERY_USE["verify"],
    "set_budget": EVERY_USE["set_budget"],
    "events": lambda path: LedgerFile(path).events,
    "charges": lambda path: LedgerFile(path).charges,
    "ledger": lambda path: LedgerFile(path).ledger,
    "spent": lambda path: LedgerFile(path).spent,
}


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["DELETE FROM charges WHERE serial = 11"], "missing at the end"),
        (["DELETE FROM charges WHERE serial = 10"], "missing at the end|charge 10"),
        (["DELETE FROM charges WHERE serial > 5"], "missing at the end"),
        (["DELETE FROM charges"], "missing at the end"),
        (
            ["INSERT INTO charges SELECT 12, event, hash, digest FROM charges LIMIT 1"],
            "missing|charge 12",
        ),
        (["UPDATE charges SET serial = 20 WHERE serial = 11"], "missing|charge 11"),
        (["UPDATE charges SET event = replace(event, '337', '338')"], "charge (1|11) is damaged"),
        (["UPDATE charges SET event = CAST(event AS BLOB) WHERE serial = 11"], "damaged"),
        (["UPDATE charges SET hash = zeroblob(32) WHERE serial = 10"], "charge 1[01] is damaged"),
        (["UPDATE charges SET hash = zeroblob(32) WHERE serial = 11"], "charge 11 is damaged"),
        (["UPDATE charges SET digest = zeroblob(32) WHERE serial = 11"], "charge 11 is damaged"),
        (["DELETE FROM charges WHERE serial = 11", "UPDATE ledger SET charges = 10"], "damaged"),
        (["UPDATE ledger SET charges = 12"], "running totals are damaged"),
        (["UPDATE ledger SET head = zeroblob(32)"], "running totals are damaged"),
        (["UPDATE ledger SET head = NULL"], "damaged"),
        (["UPDATE ledger SET seal = zeroblob(32)"], "running totals are damaged"),
        (["UPDATE ledger SET seal = NULL"], "running totals are damaged"),
        (["UPDATE ledger SET totals = NULL"], "damaged"),
        (["UPDATE ledger SET totals = '{}'"], "damaged"),
        (["UPDATE ledger SET totals = replace(totals, '/', '/0')"], "damaged"),
        (["UPDATE ledger SET totals = replace(totals, '1', '2')"], "damaged"),
        (["UPDATE ledger SET totals = replace(totals, ':', ': ')"], "totals are damaged"),
        (["UPDATE ledger SET header = replace(header, 'baseball', 'football')"], "damaged"),
        (["UPDATE ledger SET header = replace(header, 'p+3', 'p+4')"], "damaged"),
        (["UPDATE ledger SET header = '{}'"], "damaged"),
        (["UPDATE ledger SET id = 2"], "damaged"),
        (["DELETE FROM ledger"], "header"),
        (
            ["INSERT INTO ledger SELECT 2, header, charges, head, totals, seal FROM ledger"],
            "header",
        ),
        (["DROP TABLE charges"], "tables"),
        (["DROP INDEX charges_by_digest"], "tables"),
        (["CREATE TABLE more (x)"], "tables"),
        (["CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM charges; END"], "tables"),
        (["PRAGMA user_version = 1"], "tables"),
        (["PRAGMA user_version = 3"], "schema version"),
        (["PRAGMA application_id = 0"], "not a ledger"),
        (["PRAGMA journal_mode = wal"], "rollback-journal"),
        (["PRAGMA auto_vacuum = full", "VACUUM"], "pages"),
    ],
)
def test_edits_at_the_head_and_in_the_header_are_refused_by_every_use(filled, statements, reason):
    sql(filled.path, *statements)
    for use in EVERY_USE.values():
        with pytest.raises(LedgerRefused, match=reason):
            use(filled.path)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM charges WHERE serial = 4", "charge 4 is damaged"),
        ("UPDATE charges SET event = replace(event, '337', '338') WHERE serial = 4", "charge 4"),
        ("UPDATE charges SET event = CAST(event AS BLOB) WHERE serial = 3", "damaged"),
        ("UPDATE charges SET hash = zeroblob(32) WHERE serial = 3", "charge 3 is damaged"),
        ("UPDATE charges SET digest = zeroblob(32) WHERE serial = 3", "charge 3 is damaged"),
        ("UPDATE charges SET digest = NULL WHERE serial = 3", "charge 3 is damaged"),
    ],
)
def test_edits_of_older_charges_are_refused_by_every_full_read(filled, statement, reason):
    assert sql(filled.path, statement) == 1
    for use in WHOLE.values():
        with pytest.raises(LedgerRefused, match=reason):
            use(filled.path)
    # The stated limit: a charge goes by the totals, which are right, and loses nothing.
    left = filled.left
    assert filled.charge(event(PureDP(0.5))).serial == 12
    assert filled.left.rho < left.rho


def test_charge_once_refuses_an_edited_row(filled):
    third = filled.events[2]
    sql(filled.path, "UPDATE charges SET hash = zeroblob(32) WHERE serial = 2")
    with pytest.raises(LedgerRefused, match="charge 3 is damaged"):
        filled.charge_once(third)


def test_charges_beyond_the_budget_are_refused_however_they_got_there(path, monkeypatch):
    file = LedgerFile.create(path, Budget(1.0), data_set="x")
    monkeypatch.setattr(Budget, "holds", lambda *_: True)
    file.charge(event(PureDP(1.5)))
    monkeypatch.undo()
    with pytest.raises(LedgerRefused, match="exceed its budget"):
        LedgerFile.open(path)


def test_a_locked_ledger_times_out(path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    file = LedgerFile.create(path, Budget(1.0), data_set="x")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError, match="in use"):
        file.charge(event())
    other.execute("ROLLBACK")
    other.close()
    assert file.charge(event()).serial == 1


def test_a_restored_old_copy_is_accepted_as_documented(filled):
    """A consistent file that has forgotten a charge cannot be told from one that never had it."""
    copy = filled.path.with_name("copy")
    shutil.copy(filled.path, copy)
    filled.charge(event())
    assert len(LedgerFile.open(copy).events) == len(filled.events) - 1


def test_truncated_files_are_refused(filled, rng):
    content = filled.path.read_bytes()
    lengths = {*range(0, len(content), 512), *rng.integers(0, len(content), 40).tolist()}
    lengths |= {0, 1, 99, 100, 4095, 4096, 4097, len(content) - 1}
    for length in sorted(lengths):
        filled.path.write_bytes(content[:length])
        with pytest.raises(LedgerRefused):
            LedgerFile.open(filled.path)
        assert filled.path.read_bytes() == content[:length]
    filled.path.write_bytes(content + bytes(4096))
    with pytest.raises(LedgerRefused, match="as long as it says"):
        LedgerFile.open(filled.path)


def flipped(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def harmless(filled, bits):
    """The bits whose flips are not refused: the ledger then has to be the same one."""
    content, ledger = filled.path.read_bytes(), filled.ledger
    for bit in bits:
        filled.path.write_bytes(flipped(content, bit))
        try:
            assert filled.ledger == ledger
        except LedgerRefused:
            continue
        yield bit
    filled.path.write_bytes(content)


def places(path, texts):
    """Where in the file the texts are, byte by byte."""
    content = path.read_bytes()
    for text in texts:
        start = content.index(text.encode())
        yield from range(start, start + len(text))


def test_flipped_bits_in_charges_are_refused(filled, rng):
    used = list(places(filled.path, [each.to_json() for each in filled.events]))
    bits = 8 * rng.choice(used, 100, replace=False) + rng.integers(0, 8, 100)
    assert list(harmless(filled, bits.tolist())) == []


def test_flipped_bits_in_the_tables_names_are_refused(filled):
    used = list(places(filled.path, [statement for _, statement in store.SCHEMAS[2]]))
    # The top bit makes text that is not UTF-8, and that sqlite3 cannot quote.
    assert list(harmless(filled, [8 * place + bit for place in used[::3] for bit in (0, 7)])) == []


def test_flipped_bits_anywhere_are_refused_or_harmless(filled, rng):
    size = filled.path.stat().st_size
    assert size >= 4 * 4096
    pages = [8 * page + rng.integers(0, 8 * 4096, 30) for page in range(0, size, 4096)]
    # Where each page's own header and list of cells are.
    fronts = [8 * page + rng.integers(0, 8 * 40, 20) for page in range(4096, size, 4096)]
    bits = np.concatenate([*pages, *fronts]).tolist()
    found = list(harmless(filled, bits))
    assert 20 < len(found) < len(bits) - 20


def test_a_flip_in_the_files_header_that_is_not_refused_loses_no_later_charge(filled, rng):
    content, ledger = filled.path.read_bytes(), filled.ledger
    found = list(harmless(filled, rng.choice(8 * 100, 60, replace=False).tolist()))
    assert 10 < len(found) < 50
    for bit in found:
        filled.path.write_bytes(flipped(content, bit))
        try:
            filled.charge(event())
        except LedgerRefused:
            assert filled.ledger == ledger
        else:
            assert filled.ledger == ledger.charge(event())


def test_no_flip_in_the_files_header_makes_totals_forget_a_charge(filled, rng):
    """Also where the flip is found only by `verify`."""
    content, after = filled.path.read_bytes(), filled.ledger.charge(event()).left
    refused = 0
    for bit in rng.choice(8 * 100, 60, replace=False).tolist():
        filled.path.write_bytes(flipped(content, bit))
        try:
            filled.charge(event())
        except LedgerRefused:
            refused += 1
        else:
            assert filled.left == after
    assert 10 < refused < 50


@pytest.mark.slow
def test_a_flipped_bit_of_any_byte_is_refused_or_harmless(filled, rng):
    size = filled.path.stat().st_size
    bits = (8 * np.arange(size) + rng.integers(0, 8, size)).tolist()
    assert 0 < len(list(harmless(filled, bits))) < size
