"""A screen of a query is a screen of its records: same bits, one charge, no credentials kept."""

import jax
import pyarrow as pa
import pytest
from cli.commands import dpmic
from databases import PASSWORD
from small import BOUNDS, columns, same_bits, screened

from dpmic_jax import Budget
from dpmic_jax.data.schema import schema_of
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.screening import Above, AllPairs, Resources, TopK, create_ledger

ASKS = [AllPairs(), TopK(4, selection_fraction=0.7), Above(0.3, 3, selection_fraction=0.7)]
SQL = "SELECT a, b, c, d, e, f, g FROM records"


@pytest.fixture
def filled(database):
    database.fill(pa.table(columns()))
    return database


@pytest.fixture
def ledger(tmp_path):
    budget = Budget(1000.0)
    return create_ledger(tmp_path / "ledger", budget, name="small", schema=schema_of(BOUNDS))


@pytest.fixture
def interrupted(tmp_path, filled, ledger, monkeypatch):
    """The folder of a run that was charged, and stopped after its first tile."""
    keep = Folder.keep_tile

    def once(self, number, content):
        if number:
            raise KeyboardInterrupt
        keep(self, number, content)

    monkeypatch.setattr(Folder, "keep_tile", once)
    with pytest.raises(KeyboardInterrupt):
        screened(filled.query(SQL), out=tmp_path / "run", ledger=ledger)
    monkeypatch.setattr(Folder, "keep_tile", keep)
    return tmp_path / "run"


@pytest.mark.parametrize("ask", ASKS)
def test_a_query_has_the_bits_of_the_table(ask, filled):
    for resources in (Resources(tile=7, rows=100), Resources(tile=64)):
        assert same_bits(
            screened(filled.query(SQL), ask=ask, resources=resources), screened(ask=ask)
        )


def test_any_number_of_devices_has_the_bits_of_the_table(filled):
    assert same_bits(screened(filled.query(SQL), devices=jax.devices()[:2]), screened())


@pytest.mark.slow
def test_a_query_that_streams_past_has_the_bits_of_the_table(database):
    table = {f"{name}{copy}": v for copy in range(4) for name, v in columns(10_000, copy).items()}
    bounds = {name: BOUNDS[name[0]] for name in table}
    database.fill(pa.table(table))
    found = screened(database.query(), bounds=bounds, resources=Resources(memory=2**20, rows=8192))
    assert same_bits(found, screened(table, bounds=bounds))


def test_the_order_of_records_changes_no_bit(filled):
    backwards = filled.query(f"{SQL} ORDER BY e DESC")
    assert same_bits(screened(backwards), screened())


def test_an_interrupted_screen_resumes_bit_for_bit_in_any_order_of_records(
    interrupted, filled, ledger
):
    filled.execute("ALTER TABLE records RENAME TO before")
    filled.execute("CREATE TABLE records AS SELECT * FROM before ORDER BY e")
    filled.execute("DROP TABLE before")
    found = screened(filled.query(SQL), out=interrupted, ledger=ledger)
    assert len(ledger.events) == 1
    assert found.mic.tobytes() == screened().mic.tobytes()


def test_a_screen_is_not_resumed_with_another_query(interrupted, filled, ledger):
    with pytest.raises(ValueError, match="another table"):
        screened(filled.query(f"{SQL} WHERE true"), out=interrupted, ledger=ledger)


def test_a_screen_is_not_resumed_when_a_cell_has_changed(interrupted, filled, ledger):
    filled.execute("UPDATE records SET e = 0.5 WHERE e = (SELECT min(e) FROM records)")
    with pytest.raises(ValueError, match="other records"):
        screened(filled.query(SQL), out=interrupted, ledger=ledger)


def test_dask_workers_do_not_read_queries(filled, tmp_path):
    with pytest.raises(ValueError, match="write the table to Parquet"):
        screened(filled.query(SQL), out=tmp_path / "run", client=object())


def commands(database, folder):
    """A ledger and a screen by the command, with its bounds file."""
    bounds = folder / "bounds.toml"
    bounds.write_text(schema_of(BOUNDS).to_toml())
    table = ("--db", database.db, "--sql", SQL, "--bounds", bounds)
    ledger = ("ledger", "init", folder / "books", "--bounds", bounds, "--name", "small")
    yield *ledger, "--epsilon", 9
    places = ("--ledger", folder / "books", "--out", folder / "run")
    yield "screen", *table, "--epsilon", 5, "--seed", 1, "-B", 24, "-c", 3, *places
    yield "data", "check", *table
    yield "bounds", "template", *table[:4]


def test_commands_take_queries_and_keep_no_password(filled, tmp_path):
    shown = []
    for words in commands(filled, tmp_path):
        done = dpmic(*words)
        assert done.exit_code == 0, done.output
        shown.append(done.output)
    assert "600 records" in shown[2]
    assert "\ng = []  # low, high\n" in shown[3]
    secrets = PASSWORD.encode(), SQL.encode()  # a query may name a person
    assert found_in(tmp_path, secrets) == set()
    assert not any(secret.decode() in text for secret in secrets for text in shown)
    (tmp_path / "run" / "control").write_text(f"{PASSWORD} {SQL}")
    assert found_in(tmp_path, secrets) == set(secrets)


def found_in(folder, secrets):
    """Which of the secrets the ledger or the folder of the run has."""
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert {"run.json", "result.json", "books"} <= {path.name for path in written}
    return {secret for path in written for secret in secrets if secret in path.read_bytes()}
