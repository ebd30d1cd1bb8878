"""Databases with one table `records`: a DuckDB file, and a PostgreSQL server of the tests' own.

The server listens on a socket in its own folder only, and goes with the tests. It refuses to be run
by root, so root runs it as Debian's user `postgres`.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dpmic_jax.data.source import Query

PASSWORD = "correct-horse-98"
DATABASES = ["duckdb", pytest.param("postgresql", marks=pytest.mark.postgresql)]


class DuckDB:
    """A database in a file."""

    microseconds = "to_microseconds({})"  # as an interval

    def __init__(self, folder):
        self.file = folder / "clinic.duckdb"
        self.db = f"duckdb:{self.file}"

    def connect(self):
        import duckdb

        return duckdb.connect(self.file)

    def fill(self, table):
        with self.connect() as connection:
            connection.register("given", table)
            connection.execute("CREATE OR REPLACE TABLE records AS SELECT * FROM given")

    def execute(self, sql):
        with self.connect() as connection:
            connection.execute(sql)

    def query(self, sql="SELECT * FROM records"):
        return Query(self.db, sql)


class PostgreSQL:
    """The database of a server."""

    microseconds = "{} * INTERVAL '1 microsecond'"

    def __init__(self, folder):
        self.db = f"postgresql:///postgres?host={folder}&user=owner"

    def connect(self):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.db)

    def fill(self, table):
        self.execute("DROP TABLE IF EXISTS records")
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("records", table)
            connection.commit()

    def execute(self, sql):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            connection.commit()

    def query(self, sql="SELECT * FROM records"):
        return Query(self.db, sql)


def _programs():
    """The folder of initdb and pg_ctl, of the newest version that Debian's packages installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))
    if not found and (initdb := shutil.which("initdb")):
        found = [Path(initdb).resolve().parent]
    if not found:
        pytest.fail("no PostgreSQL: apt-get install postgresql, or leave out `-m postgresql`")
    return found[-1]


def _run(*words):
    root = os.geteuid() == 0
    # The server stays, so it must not have this process's output: that would wait for its end.
    done = subprocess.run(
        ["su", "postgres", "-s", "/bin/sh", "-c", shlex.join(words)] if root else words,
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"{words[0]} failed"


@pytest.fixture(scope="session")
def server():
    """The folder of a running server, whose user `owner` has the password."""
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="dpmic-"))
    try:
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(folder / "password", "postgres")
        data = str(folder / "data")
        secret = ("-A", "scram-sha-256", "--pwfile", str(folder / "password"))
        _run(str(programs / "initdb"), "-D", data, "-U", "owner", "-E", "UTF8", "-N", *secret)
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        # It waits for a minute by itself, which is not enough on a busy machine.
        control = (str(programs / "pg_ctl"), "-D", data, "-w", "-t", "600")
        _run(*control, "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield folder
        finally:
            _run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgresql(server, monkeypatch):
    """The database of the server; the password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return PostgreSQL(server)


@pytest.fixture(params=DATABASES)
def database(request, tmp_path):
    """Each of the databases in turn."""
    return DuckDB(tmp_path) if request.param == "duckdb" else request.getfixturevalue("postgresql")
