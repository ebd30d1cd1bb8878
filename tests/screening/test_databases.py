"""A screen of a query is a screen of its records: same bits, one charge, no credentials kept."""

import datetime
from decimal import Decimal

import jax
import numpy as np
import pyarrow as pa
import pytest
from cli.commands import dpmic
from databases import PASSWORD
from small import BOUNDS, columns, same_bits, screened

from dpmic_jax import Budget, Categories, MissingBin, Number
from dpmic_jax.data.schema import Times, schema_of
from dpmic_jax.data.source import open_source
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


def of_all_kinds(n=300):
    """A table with a column of every kind, some with gaps, and its schema."""
    rng = np.random.default_rng(5)
    moment = np.datetime64("2020-01-01T00:00:00", "us")
    seconds = rng.integers(0, 10**7, n).astype("m8[s]").astype("m8[us]")
    gaps = rng.random(n) < 0.1
    table = {
        "real": rng.lognormal(5, 2, n),
        "short": rng.random(n, np.float32),
        "whole": pa.array(rng.integers(0, 20, n), pa.int32(), mask=gaps),
        "price": pa.array([Decimal(int(cents)) / 100 for cents in rng.integers(0, 999, n)]),
        "blood": pa.array(rng.choice(["A", "B", "AB", "0", "?"], n), mask=gaps),
        "grade": rng.integers(1, 5, n),
        "flag": rng.random(n) < 0.3,
        "day": pa.array((moment + seconds).astype("M8[D]"), mask=gaps),
        "time": pa.array(moment + seconds, mask=gaps),
        "zoned": pa.array(moment + seconds, pa.timestamp("us", "UTC")),
        "stay": pa.array(seconds, pa.duration("us"), mask=gaps),
    }
    zone = datetime.UTC
    rules = {
        "real": Number(1, 1e5, scale="log"),
        "short": (0, 1),
        "whole": Number(0, 19, whole=True, missing=MissingBin()),
        "price": (0, 10),
        "blood": Categories(("A", "B", "AB", "0")),
        "grade": Categories((1, 2, 3), ordered=True),
        "flag": Categories((True, False)),
        "day": Times(datetime.date(2020, 1, 1), datetime.date(2020, 5, 1)),
        "time": Times(datetime.datetime(2020, 1, 1), datetime.datetime(2020, 5, 1)),
        "zoned": Times(*(datetime.datetime(2020, month, 1, tzinfo=zone) for month in (1, 5))),
        "stay": Times(datetime.timedelta(0), datetime.timedelta(100)),
    }
    return pa.table(table), schema_of(rules)


def test_columns_of_all_kinds_have_the_bits_of_the_table(database):
    table, schema = of_all_kinds()
    spans = table.set_column(10, "stay", table["stay"].cast(pa.int64()))
    database.fill(spans)
    # No driver writes durations to both.
    chosen, stay = ", ".join(table.column_names[:-1]), database.microseconds.format("stay")
    database.execute("DROP TABLE IF EXISTS kinds")
    database.execute(f"CREATE TABLE kinds AS SELECT {chosen}, {stay} AS stay FROM records")
    source = open_source(database.query("SELECT * FROM kinds"), schema)
    held = open_source(table, schema)
    assert source.validate() == held.validate()
    assert source.names == held.names
    for name, *columns_of in zip(held.names, together(source), together(held), strict=True):
        np.testing.assert_array_equal(*columns_of, err_msg=name, strict=True)
        assert len(np.unique(columns_of[0])) > 1


def together(source):
    return tuple(np.concatenate(parts) for parts in zip(*source.batches(70), strict=True))


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
