"""A ledger is its owner's alone: the file, the one it is made from, and its journal."""

import os
import sqlite3
import stat
from fractions import Fraction

import pytest

from dpmic_jax.dp.accounting.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger import store
from dpmic_jax.dp.ledger.file import Budget, LedgerFile

EVENT = Event(
    mechanism="m",
    guarantee=PureDP(0.1),
    relation=ReplaceOne(),
    n=9,
    sensitivity=Fraction(1),
)


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture
def open_umask():
    """Nothing is taken away by the user's own setting."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_a_ledger_is_readable_by_its_owner_only_from_the_start(tmp_path, monkeypatch):
    seen = []
    connect = sqlite3.connect

    def looking(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda _: seen.append(modes(tmp_path)))
        return connection

    monkeypatch.setattr(store.sqlite3, "connect", looking)
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0), data_set="x")
    made = len(seen)
    file.charge(EVENT)
    # The file under its first name, its journal, the file under its own, and the journal again.
    assert any(name.endswith(".new") for found in seen[:made] for name in found)
    assert any(name.endswith(".new-journal") for found in seen[:made] for name in found)
    assert any("ledger-journal" in found for found in seen[made:])
    assert {mode for found in [*seen, modes(tmp_path)] for mode in found.values()} == {0o600}


@pytest.mark.usefixtures("open_umask")
def test_a_changed_file_mode_is_kept(tmp_path):
    file = LedgerFile.create(tmp_path / "ledger", Budget(1.0), data_set="x")
    file.path.chmod(0o660)
    file.charge(EVENT)
    assert modes(tmp_path) == {"ledger": 0o660}


@pytest.mark.usefixtures("open_umask")
def test_sqlite_alone_would_make_the_file_readable_by_all(tmp_path):
    """The control: without a mode of its own the file has that of the umask."""
    sqlite3.connect(tmp_path / "plain").execute("CREATE TABLE t (x)").connection.close()
    assert modes(tmp_path)["plain"] & 0o044
