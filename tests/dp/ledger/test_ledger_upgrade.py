"""Files of version 1, which kept no totals: read as they are, upgraded by the first that writes."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest
from forking import drive
from ledger_files import chained, compact, header_text, kept, sql, write_version_1

from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import Budget, BudgetExceeded, LedgerFile, LedgerRefused

HEADER = header_text(2.0, 1e-6, data_set="old")


def event(number, **changes):
    plain = Event(
        mechanism="screen",
        guarantee=PureDP(0.1),
        relation=ReplaceOne(),
        n=337,
        sensitivity=Fraction(29, 1000),
        label=f"run {number} " + "x" * 400,
    )
    return replace(plain, **changes)


RESERVED = event(0, mechanism="held")
TEXTS = [
    *(event(number).to_json() for number in range(1, 6)),
    compact({"reserve": RESERVED.to_json(), "times": 4}),
    event(7, guarantee=ZCDP(0.001, 1e-15)).to_json(),
    event(8, mechanism="held").to_json(),
    compact({"reserve": RESERVED.to_json(), "times": 1}),
    compact({"release": 9}),
]


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.ledger"
    write_version_1(path, TEXTS, HEADER)
    return path


def version(path):
    connection = sqlite3.connect(path)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return found


def test_an_old_file_is_read_and_not_changed(old):
    before = old.read_bytes()
    file = LedgerFile.open(old)
    assert (file.data_set, file.identity) == ("old", "ab" * 16)
    assert file.budget == Budget(2.0, 1e-6)
    assert list(file.charges) == [1, 2, 3, 4, 5, 7, 8]
    assert {serial: one.times for serial, one in file.reservations.items()} == {6: 3}
    assert file.left.rho > 0
    file.check(event(99))
    assert file.verify() == 10
    assert old.read_bytes() == before


WRITES = {
    "charge": lambda file: file.charge(event(99)).serial,
    "charge that draws": lambda file: file.charge(event(99, mechanism="held")).serial,
    "charge_once": lambda file: file.charge_once(event(99)).serial,
    "charge_once, there": lambda file: 10 + 0 * file.charge_once(event(3)).serial,
    "reserve": lambda file: file.reserve(event(99), times=2).serial,
    "release": lambda file: file.cancel_reservation(6) or 11,
    "set_budget": lambda file: file.set_budget(Budget(3.0, 1e-6)) or 10,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_the_first_write_upgrades_the_file_and_keeps_all_entries(old, write):
    file = LedgerFile.open(old)
    charges = file.charges
    entries = write(file)
    assert version(old) == 2
    assert file.verify() == entries
    assert list(file.charges.items())[:7] == list(charges.items())
    fresh = LedgerFile.create(old.with_name("new"), file.budget, data_set="new")
    assert tables(old) == tables(fresh.path)


def tables(path):
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM sqlite_schema ORDER BY name").fetchall()
    connection.close()
    return [(kind, name, table, text) for kind, name, table, _, text in found]


def test_receipts_of_an_old_file_stay_valid(old):
    file = LedgerFile.open(old)
    hashes = [one.hex() for one in chained(HEADER, TEXTS)]
    file.charge(event(99))
    for number in range(1, 6):
        assert file.charge_once(event(number)) == ("ab" * 16, number, hashes[number])


def test_upgraded_totals_are_the_sums_of_all_charges(old):
    LedgerFile(old).charge(event(99, guarantee=PureDP(0.2)))
    totals = json.loads(kept(old)[3])
    rhos = [PureDP(0.1).rho] * 6 + [PureDP(0.2).rho, 0.001]
    assert totals["epsilon"] is None
    assert Fraction(totals["rho"]) == sum(Fraction(repr(rho)) for rho in rhos)
    assert Fraction(totals["variation"]) == Fraction(1, 10**15)
    assert [serial for serial, _ in totals["reserved"]] == [6]


def test_a_refused_charge_does_not_upgrade_the_file(old):
    before = old.read_bytes()
    with pytest.raises(BudgetExceeded):
        LedgerFile(old).charge(event(99, guarantee=PureDP(5.0)))
    assert old.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM charges WHERE serial = 4", "charge 4 is damaged"),
        ("DELETE FROM charges WHERE serial = 10", "missing at the end"),
        ("UPDATE charges SET event = replace(event, '337', '338') WHERE serial = 2", "charge 2"),
        ("UPDATE ledger SET charges = 9", "missing at the end"),
        ("UPDATE ledger SET header = replace(header, 'old', 'new')", "charge 1 is damaged"),
        ("UPDATE ledger SET header = replace(header, ':', ': ')", "header is damaged"),
        ("PRAGMA user_version = 2", "tables"),
    ],
)
def test_a_damaged_old_file_is_refused_by_every_use_and_never_upgraded(old, statement, reason):
    sql(old, statement)
    before = old.read_bytes()
    for use in (
        LedgerFile.open,
        lambda path: LedgerFile(path).check(event(99)),
        lambda path: LedgerFile(path).charge(event(99)),
        lambda path: LedgerFile(path).identity,
    ):
        with pytest.raises(LedgerRefused, match=reason):
            use(old)
    assert old.read_bytes() == before


DRIVER = r'''
import os, shutil
from fractions import Fraction

from forking import killed_everywhere

from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger.file import LedgerFile

EVENT = Event(mechanism="m", guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
              sensitivity=Fraction(1), label="x")


def upgrades(folder, old):
    """Killed before each step of an upgrade: the file is of one version or the other, and whole."""
    found = {"old": 0, "new": 0, "journals": 0}

    def upgrade(out, path, point):
        LedgerFile(path).charge(EVENT)
        point("charged")

    for path, _, _ in killed_everywhere(
        lambda number: shutil.copy(old, os.path.join(folder, f"{number}.ledger")), upgrade
    ):
        found["journals"] += os.path.exists(path + "-journal")
        entries = LedgerFile(path).verify()
        assert entries in (10, 11)
        found["new" if entries == 11 else "old"] += 1
        assert LedgerFile(path).charge(EVENT).serial == entries + 1
        assert LedgerFile(path).verify() == entries + 1
    return found
'''


def test_an_upgrade_killed_before_any_step_leaves_a_whole_file_of_either_version(old, tmp_path):
    found = drive(DRIVER, "upgrades", tmp_path, old)
    assert found["old"] > found["journals"] > 10
    assert found["new"] == 2
