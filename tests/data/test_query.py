"""What names a query, and which secrets are refused, before a database is opened."""

import pytest

from dpmic_jax import Query

SECRET = "tulip-7"
WITH_SECRETS = [
    f"postgresql://ann:{SECRET}@host/clinic",
    f"postgres://ann:{SECRET}@host",
    f"postgresql://ann:1#{SECRET}@host",
    f"postgresql://ann:1/{SECRET}@host",
    f"postgresql://ann:1?{SECRET}@host",
    f"postgresql://host/clinic?password={SECRET}",
    f"postgresql://host/clinic?user=ann&p%61ssword={SECRET}",
    f"postgresql://host/clinic?sslpassword={SECRET}",
    f"postgresql://host/clinic?scram_client_key={SECRET}",
    f"mysql://ann:{SECRET}@host/clinic",
]
WITHOUT = [
    "postgresql://",
    "postgresql://host/clinic",
    "postgresql://ann@host:5432,other:5433/clinic?sslmode=require",
    "postgresql://ann@[::1]:5432/clinic",
    "postgresql:///clinic?host=/run/postgresql&user=ann",
    "postgresql://?service=clinic",
]


@pytest.mark.parametrize("db", WITH_SECRETS)
def test_a_password_is_refused_and_not_repeated(db):
    with pytest.raises(ValueError, match="db") as refused:
        Query(db, "SELECT 1")
    assert SECRET not in str(refused.value)
    assert not db.startswith("postgres") or "PGPASSWORD" in str(refused.value)


@pytest.mark.parametrize("db", WITHOUT)
def test_what_is_no_secret_is_taken(db):
    assert Query(db, "SELECT 1").db == db


@pytest.mark.parametrize(("db", "sql"), [("duckdb:", " ; "), ("file.duckdb", "SELECT 1")])
def test_other_queries_are_refused(db, sql):
    with pytest.raises(ValueError, match="expected"):
        Query(db, sql)


def test_the_identity_tells_databases_and_queries_apart_and_shows_neither():
    queries = [Query(f"duckdb:{db}", sql) for db in ("a", "b") for sql in ("SELECT 1", "SELECT 2")]
    identities = [query.identity() for query in queries]
    assert len(set(map(str, identities))) == 4
    assert identities[0] == Query("duckdb:./a", "SELECT 1").identity()
    assert not any("SELECT" in str(identity) for identity in identities)
