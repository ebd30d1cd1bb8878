"""Queries to a PostgreSQL server: its types, one state for all passes, and where passwords are."""

import numpy as np
import pyarrow as pa
import pytest
from databases import PASSWORD

from dpmic_jax import Categories, FixedValue, MissingBin, Number, Query, Schema
from dpmic_jax.data.source import arrow_schema, open_source

pytestmark = pytest.mark.postgresql

# What PostgreSQL has of each type, beside what its own CSV has of it.
TYPED = """
    SELECT g::smallint AS small, g AS whole, (g * 10)::bigint AS long, g / 7.0::float8 AS real,
        CASE g WHEN 3 THEN 'NaN' WHEN 4 THEN NULL ELSE g * 0.37 END::numeric(12, 4) AS exact,
        (ARRAY['low', 'high', NULL])[1 + g % 3]::mood AS mood,
        (ARRAY['a', 'b'])[1 + g % 2]::varchar(5) AS letter, 'ab'::char(4) AS padded,
        md5((g % 2)::text)::uuid AS id, (g * 1.5)::money::numeric AS price, g::oid AS object
    FROM generate_series(1, 60) AS g
"""
UUIDS = "cfcd2084-95d5-65ef-66e7-dff9f98764da", "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
SCHEMA = Schema(
    (
        ("small", Number(0, 60)),
        ("whole", Categories(tuple(range(1, 50)))),
        ("long", Number(0, 600)),
        ("real", Number(0, 9)),
        ("exact", Number(0, 30, missing=MissingBin())),
        ("mood", Categories(("high", "low"), missing=FixedValue("low"))),
        ("letter", Categories(("a", "b"))),
        ("padded", Categories(("ab", "ab  "))),
        ("id", Categories(UUIDS)),
        ("price", Number(0, 90)),
        ("object", Number(0, 60)),
    )
)


def together(source):
    return tuple(np.concatenate(parts) for parts in zip(*source.batches(7), strict=True))


def test_every_type_is_coded_as_from_the_csv_file_that_the_server_writes(postgresql, server):
    postgresql.execute("DROP TYPE IF EXISTS mood CASCADE")
    postgresql.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
    # The server's CSV pads char(4); a query does not, since blanks at its end mean nothing.
    names = ", ".join(name for name, _ in SCHEMA.columns).replace("padded", "padded::text")
    plain = f"SELECT {names} FROM ({TYPED}) AS typed"
    postgresql.execute(f"COPY ({plain}) TO '{server}/data/typed.csv' WITH (FORMAT csv, HEADER)")
    source = open_source(postgresql.query(TYPED), SCHEMA)
    exported = open_source(server / "data" / "typed.csv", SCHEMA)
    assert source.validate() == exported.validate() == 60
    assert source.names == exported.names
    for name, one, other in zip(source.names, together(source), together(exported), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=name)
        assert name == "padded" or len(np.unique(one)) > 1


def test_money_is_no_whole_number_and_infinite_dates_are_missing(postgresql):
    schema = arrow_schema(postgresql.query("SELECT 1.5::money AS m, 1::numeric AS n, 'x'::text t"))
    assert pa.types.is_decimal(schema.field("m").type)
    assert pa.types.is_decimal(schema.field("n").type)
    sql = "SELECT * FROM (VALUES (1.5::money), ('2'), (NULL), ('0.25')) AS t(m)"
    source = open_source(postgresql.query(sql), {"m": (0, 2)})
    source.validate()
    assert together(source)[0].tolist() == [1.5, 2, 1, 0.25]
    reader = open_source(
        postgresql.query("SELECT 'infinity'::date AS d, 1 AS a FROM generate_series(1, 4)"),
        Schema((("a", Number(0, 1)),), ignored=("d",)),
    )._reader
    assert next(iter(reader.read(["d"]))).column(0).null_count == 4


def test_every_pass_sees_the_state_of_the_first(postgresql):
    postgresql.fill(pa.table({"a": [0.1, 0.2, 0.3, 0.4]}))
    source = open_source(postgresql.query(), {"a": (0, 1)})
    assert source.validate() == 4
    postgresql.execute("UPDATE records SET a = 0.9")
    postgresql.execute("INSERT INTO records VALUES (0.7)")
    for _ in range(2):
        assert together(source)[0].tolist() == [0.1, 0.2, 0.3, 0.4]
    assert open_source(postgresql.query(), {"a": (0, 1)}).validate() == 5  # the control


def test_a_pass_may_stop_before_its_end(postgresql):
    postgresql.fill(pa.table({"a": np.arange(50_000) / 50_000}))
    source = open_source(postgresql.query(), {"a": (0, 1)})
    assert source.validate() == 50_000
    begun = source.batches(10)
    next(begun)
    begun.close()
    assert len(together(source)[0]) == 50_000


def test_queries_cannot_write(postgresql):
    postgresql.fill(pa.table({"a": [1, 2, 3, 4]}))
    postgresql.execute(
        "CREATE OR REPLACE FUNCTION emptied() RETURNS int LANGUAGE sql AS "
        "'DELETE FROM records; SELECT 1'"
    )
    with pytest.raises(ValueError, match="failed"):
        open_source(
            postgresql.query("SELECT a FROM records WHERE emptied() = 1"), {"a": (0, 9)}
        ).validate()
    assert open_source(postgresql.query(), {"a": (0, 9)}).validate() == 4


def test_values_are_not_in_errors(postgresql):
    postgresql.fill(pa.table({"a": ["1", "2", "secret-77", "4"]}))
    source = open_source(postgresql.query("SELECT a::int AS a FROM records"), {"a": (0, 9)})
    assert source.validate() == 4
    with pytest.raises(ValueError, match="run it by itself") as refused:
        together(source)
    assert "secret-77" not in str(refused.value)
    assert refused.value.__context__ is None


def test_what_the_server_refuses_is_refused_with_its_reason(postgresql, monkeypatch):
    for sql, reason in (
        ("SELECT b FROM pg_class", 'column "b" does not exist'),
        ("DROP TABLE records", "syntax error"),
        ("SELECT 1 AS a; SELECT 2 AS a", "syntax error"),
    ):
        with pytest.raises(ValueError, match=reason):
            open_source(postgresql.query(sql), {"a": (0, 1)})
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(ValueError, match="password authentication failed"):
        open_source(postgresql.query("SELECT 1 AS a"), {"a": (0, 1)})


def test_a_service_file_may_have_the_connection_and_its_password(server, tmp_path, monkeypatch):
    service = f"[clinic]\nhost={server}\nuser=owner\ndbname=postgres\npassword={PASSWORD}\n"
    (tmp_path / "services").write_text(service)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    query = Query("postgresql://?service=clinic", "SELECT g AS a FROM generate_series(1, 9) AS g")
    assert open_source(query, {"a": (0, 9)}).validate() == 9
