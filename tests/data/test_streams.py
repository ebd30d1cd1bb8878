"""Tables that other libraries read: their columns, what is refused, and what errors do not say."""

import datetime
import pickle
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from dpmic_jax import Categories, MissingBin, Number, Query, Schema
from dpmic_jax.data.source import arrow_schema, column_kinds, column_names, open_source
from dpmic_jax.data.source import streams as streams_module

N = 500
SCHEMA = Schema(
    (
        ("real", Number(0, 1)),
        ("count", Number(0, 40, missing=MissingBin())),
        ("price", Number(0, 100)),
        ("town", Categories(("a", "b"))),
        ("grade", Categories((1, 2, 3))),
        ("flag", Categories((True, False))),
    ),
    ignored=("day", "tags"),
)
NAMES = tuple(name for name, _ in SCHEMA.columns)
SECRET = "98765"  # a value in the table


def records():
    rng = np.random.default_rng(3)
    count = [None if i % 9 == 0 else int(c) for i, c in enumerate(rng.integers(0, 50, N))]
    town = pa.array([("a", "b", "c", None)[i] for i in rng.integers(0, 4, N)])
    return pa.table(
        {
            "real": rng.random(N),
            "count": pa.array(count, pa.int32()),
            "price": pa.array([Decimal(int(c)) / 4 for c in rng.integers(0, 400, N)]),
            "town": town.dictionary_encode(),
            "grade": pa.array(rng.integers(0, 5, N), pa.int8()),
            "flag": pa.array(rng.random(N) < 0.5),
            "day": pa.array([datetime.date(2020, 1, 1)] * N),
            "tags": pa.array([["x", SECRET]] * N),
        }
    )


class Stream:
    """Any library's table: nothing but the protocol."""

    def __init__(self, table, times=10**9):
        self.table, self.times = table, times

    def __arrow_c_stream__(self, requested_schema=None):
        self.times -= 1
        if self.times < 0:
            raise RuntimeError(f"over after {SECRET}")
        return self.table.__arrow_c_stream__(requested_schema)


def relation(table):
    return duckdb.connect().from_arrow(table)


def parts(table, folder):
    for index in range(4):
        part = table.slice(index * 150, 150)
        pyarrow.parquet.write_table(part, folder / f"part-{index}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


STREAMS = {
    "LazyFrame": lambda table, _: pl.from_arrow(table).lazy(),
    "LazyFrame of files": lambda table, folder: pl.scan_parquet(parts(table, folder) / "*.parquet"),
    "DuckDB relation": lambda table, _: relation(table),
    "dataset": lambda table, _: pyarrow.dataset.dataset(table),
    "dataset of files": lambda table, folder: pyarrow.dataset.dataset(parts(table, folder)),
    "stream": lambda table, _: Stream(table),
    "record batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "query without a database": lambda table, folder: Query(
        "duckdb:", f"SELECT * FROM '{parts(table, folder)}/*.parquet' -- all\n;"
    ),
    "folder": parts,
    "pattern": lambda table, folder: str(parts(table, folder) / "part-*.parquet"),
    "folders": lambda table, folder: parts(table, folder).parent / "**" / "*.parquet",
}


def together(source, rows=10**9):
    return tuple(np.concatenate(parts) for parts in zip(*source.batches(rows), strict=True))


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("rows", [7, 10**9])
def test_every_stream_gives_the_columns_of_its_table(kind, rows, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    source = open_source(STREAMS[kind](records(), folder), SCHEMA)
    assert source.names == NAMES
    assert source.validate() == N
    expected = together(open_source(records(), SCHEMA))
    for _ in range(2):  # as often as it is asked
        for column, held in zip(together(source, rows), expected, strict=True):
            assert column.dtype == held.dtype
            np.testing.assert_array_equal(column, held)


@pytest.mark.parametrize("kind", STREAMS)
def test_types_are_known_without_reading(kind, tmp_path, monkeypatch):
    folder = tmp_path / "parts"
    folder.mkdir()
    made = STREAMS[kind](records(), folder)
    for reader in ("LazyFrameReader", "RelationReader", "DatasetReader", "ExportReader"):
        monkeypatch.setattr(getattr(streams_module, reader), "read", None)
    found = arrow_schema(made)
    assert column_names(made) == tuple(found.names) == (*NAMES, "day", "tags")
    assert found.field("count").type == pa.int32()
    assert pa.types.is_decimal(found.field("price").type)
    assert pa.types.is_date(found.field("day").type)
    kinds = column_kinds(made)
    assert [kinds[name] for name in ("real", "price", "flag")] == ["number", "number", "boolean"]
    assert [kinds[name] for name in ("count", "town", "day")] == ["whole", "nominal", "date"]


def test_files_and_frames_have_types_too_and_lists_have_none(tmp_path):
    pyarrow.csv.write_csv(pa.table({"a": [1]}), tmp_path / "a.csv")
    table = pa.table({"a": [0.5]})
    for data in (table, pd.DataFrame({"a": [0.5]}), pl.DataFrame({"a": [0.5]}), Stream(table)):
        assert arrow_schema(data) == table.schema
    for data in ({"a": [0.5]}, tmp_path / "a.csv"):
        assert arrow_schema(data).types == [pa.null()]


ONCE = {
    "reader": lambda table: table.to_reader(),
    "relation of a reader": lambda table: relation(table.to_reader()),
    "stream that begins once": lambda table: Stream(table, times=1),
    "stream that begins thrice": lambda table: Stream(table, times=3),
}


@pytest.mark.parametrize("kind", ONCE)
def test_a_stream_that_can_be_read_once_is_refused_with_the_remedy(kind):
    with pytest.raises(TypeError, match=r"only once.*read_all\(\).*Query") as refused:
        open_source(ONCE[kind](records()), SCHEMA).validate()
    assert SECRET not in str(refused.value)


FAILING = {
    "LazyFrame": lambda table: pl.from_arrow(table).lazy().map_batches(failing),
    "DuckDB relation": lambda table: relation(table).filter(f"error('{SECRET}') OR real > 2"),
    "query": lambda _: Query("duckdb:", f"SELECT * FROM range(9) AS t(a) WHERE error('{SECRET}')"),
}


def failing(frame):
    raise ValueError(SECRET)


@pytest.mark.parametrize("kind", FAILING)
def test_errors_of_other_libraries_are_not_shown(kind):
    schema = Schema((("a", Number(0, 1)),)) if kind == "query" else SCHEMA
    with pytest.raises(ValueError, match="run it by itself to see why") as refused:
        open_source(FAILING[kind](records()), schema).validate()
    assert SECRET not in str(refused.value)
    assert refused.value.__context__ is None


def test_nested_and_other_types_are_refused_unless_ignored():
    for name, kind in (("tags", "lists"), ("day", "numbers")):
        kept = tuple(other for other in ("day", "tags") if other != name)
        schema = Schema((*SCHEMA.columns, (name, Number(0, 1))), kept)
        with pytest.raises(TypeError, match=rf"numbers in column '{name}'.*{kind}"):
            open_source(Stream(records()), schema)


REFUSED = {
    "SELEC * FROM records": "syntax error",
    "SELECT * FROM elsewhere": "elsewhere does not exist",
    "DROP TABLE records": "syntax error",
    "SELECT 1 AS a; SELECT 2 AS a": "syntax error",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_one_select_is_refused_with_the_reason(sql, tmp_path):
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE records AS SELECT 1 AS a")
    with pytest.raises(ValueError, match=REFUSED[sql]):
        open_source(Query(f"duckdb:{tmp_path / 'a.duckdb'}", sql), SCHEMA)


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="no DuckDB database"):
        open_source(Query(f"duckdb:{tmp_path / 'a.duckdb'}", "SELECT 1 AS a"), SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_nobody_writes_to_a_duckdb_file_that_is_read(tmp_path):
    file = tmp_path / "a.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE TABLE records AS SELECT 1 AS a")
    source = open_source(Query(f"duckdb:{file}", "SELECT * FROM records"), {"a": (0, 2)})
    with pytest.raises(duckdb.Error):
        duckdb.connect(file)
    with pytest.raises(ValueError, match="at least 4 records, got 1"):
        source.validate()
    del source
    duckdb.connect(file).execute("DROP TABLE records")


def test_variables_of_the_program_are_no_tables():
    query = Query("duckdb:", "SELECT * FROM schema")
    with pytest.raises(ValueError, match="schema does not exist"):
        open_source(query, SCHEMA)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_infinite_times_of_duckdb_are_missing_as_from_other_tables(kind):
    given = "'infinity', '-infinity', NULL, '2020-01-03 00:00:00+00'"
    query = Query("duckdb:", f"SELECT unnest([{given}])::{kind} AS time")
    days = datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)
    source = open_source(query, {"time": days})
    assert source.validate() == 4
    ((found,),) = source.batches(4)
    assert found.tolist() == [18263, 18263, 18263, 18264]  # the middle, and the 3rd of January


def test_a_folder_of_folders_and_one_without_tables_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \.parquet file"):
        open_source(tmp_path, SCHEMA)
    (tmp_path / "year=2020").mkdir()
    with pytest.raises(ValueError, match=r"pass the pattern .*parquet.*dataset"):
        open_source(tmp_path, SCHEMA)
    pyarrow.csv.write_csv(pa.table({"a": [1]}), tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"match \.parquet files, got 'a\.csv'"):
        open_source(tmp_path / "a*", SCHEMA)


def written(folder, **parts):
    for name, values in parts.items():
        pyarrow.parquet.write_table(pa.table({"a": values}), folder / f"{name}.parquet")
    return folder


def test_files_may_differ_in_types_that_give_the_same_codes(tmp_path):
    halves = [1.0, float("nan")], [3, 4], [None, None]
    source = open_source(written(tmp_path, x=halves[0], y=halves[1], z=halves[2]), {"a": (0, 8)})
    assert source.validate() == 6
    np.testing.assert_array_equal(together(source)[0], [1, 4, 3, 4, 4, 4])


def test_files_of_other_columns_or_lengths_of_floats_are_refused(tmp_path):
    folder = written(tmp_path, x=[1.0, 2.0], y=pa.array([1.0, 2.0], pa.float32()))
    with pytest.raises(TypeError, match="column 'a' has floats of other lengths"):
        open_source(folder, {"a": (0, 1)})
    pyarrow.parquet.write_table(pa.table({"b": [1]}), folder / "y.parquet")
    with pytest.raises(ValueError, match="different columns"):
        open_source(folder, {"a": (0, 1)})


def test_workers_are_sent_the_paths_of_a_folder(tmp_path):
    source = open_source(written(tmp_path, x=[1.0, 2.0], y=[3.0, 4.0]), {"a": (0, 8)})
    sent = pickle.dumps(source)
    assert len(sent) < 5000
    np.testing.assert_array_equal(together(pickle.loads(sent))[0], [1, 2, 3, 4])


def test_the_identity_of_a_folder_changes_with_its_files(tmp_path):
    folder = written(tmp_path, x=[1.0, 2.0], y=[1.0, 2.0])
    before, again = (open_source(folder, {"a": (0, 1)}).identity() for _ in range(2))
    assert before == again
    written(tmp_path, z=[1.0])
    assert open_source(folder, {"a": (0, 1)}).identity() != before
