"""Queries to DuckDB and PostgreSQL: all passes of a run read one state of the database."""

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from dpmic_jax.data.source.query import DUCKDB, Query
from dpmic_jax.data.source.streams import FINITE, Reader, RelationReader, quoted

# Of DuckDB, which otherwise keeps a file in memory as far as it fits.
MEMORY = "1GB"

_WHERE = "the result of the query"
# In the transaction that is kept open for the run, which a server may otherwise end meanwhile.
_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL intervalstyle = 'iso_8601'",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
# How columns are read whose types Arrow has no equal of, by PostgreSQL's name of the type: as what
# a CSV file would have.
_AS_TEXT = "{}::text"
_READ_AS = {"money": "{}::numeric::text", "bpchar": _AS_TEXT, "oid": _AS_TEXT}
_READ_AS |= {"interval": _AS_TEXT}
_READ_AS |= dict.fromkeys(("date", "timestamp", "timestamptz"), FINITE)
_TYPES = {"money": pa.decimal128(38, 2), "numeric": pa.decimal128(38, 18), "oid": pa.int64()}
_TYPES |= {"interval": pa.duration("us")}


def query_reader(query: Query) -> Reader:
    """The reader of a query; opens its database."""
    return DuckDBReader(query) if query.db.startswith(DUCKDB) else PostgreSQLReader(query)


class DuckDBReader(RelationReader):
    """A query to a DuckDB file, which nobody can write to meanwhile, or without a file."""

    where, is_snapshot = _WHERE, True

    def __init__(self, query: Query):
        try:
            import duckdb
        except ImportError:
            raise ImportError('duckdb: needs DuckDB: pip install "dpmic_jax[duckdb]"') from None
        self._query = query
        if query.file is not None and not query.file.is_file():
            raise FileNotFoundError(f"no DuckDB database at {query.file}")
        # Names in the query are not those of variables in this program.
        settings: Any = {"memory_limit": MEMORY, "python_enable_replacements": False}
        where, read_only = query.file or ":memory:", query.file is not None
        self._connection = _answer(
            lambda: duckdb.connect(where, read_only=read_only, config=settings), duckdb.Error
        )
        self._connection.begin()
        # Messages of other errors may quote what was found in files.
        relation = _answer(
            lambda: self._connection.sql(f"SELECT * FROM {query.select}"),
            (duckdb.ParserException, duckdb.CatalogException),
        )
        super().__init__(relation)

    def identity(self) -> list[str | int]:
        """That of the query."""
        return self._query.identity()


class PostgreSQLReader(Reader):
    """A query to PostgreSQL, in a transaction that sees the database as it was at its start."""

    where, is_snapshot = _WHERE, True

    def __init__(self, query: Query):
        try:
            import adbc_driver_postgresql.dbapi as postgresql
        except ImportError:
            raise ImportError(
                'postgresql:// needs its ADBC driver: pip install "dpmic_jax[postgresql]"'
            ) from None
        self._query = query
        self._connection = _answer(lambda: postgresql.connect(query.db), postgresql.Error)
        weakref.finalize(self, self._connection.close)
        described = _answer(self._described, postgresql.Error)
        self._read_as = {field.name: _expression(field) for field in described}
        self.schema = pa.schema([(field.name, _type(field)) for field in described])

    def _described(self) -> Any:
        """The query's names and types, of which the server knows without running it."""
        with closing(self._connection.cursor()) as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
            return cursor.adbc_execute_schema(f"SELECT * FROM {self._query.select}")

    def identity(self) -> list[str | int]:
        """That of the query."""
        return self._query.identity()

    def count(self) -> int:
        """The number of records."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"SELECT count(*) FROM {self._query.select}")
            return cursor.fetchone()[0]

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        columns = ", ".join(f"{self._read_as[name]} AS {quoted(name)}" for name in names)
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"SELECT {columns} FROM {self._query.select}")
            with closing(cursor.fetch_record_batch()) as stream:
                yield from stream


def _expression(field: Any) -> str:
    """What is selected for a column; text where Arrow has no type of its own for it."""
    kind, own = _kind(field), "{}" if _is_known(field) else _AS_TEXT
    return _READ_AS.get(kind, own).format(quoted(field.name))


def _type(field: Any) -> Any:
    return _TYPES.get(_kind(field), field.type if _is_known(field) else pa.string())


def _kind(field: Any) -> str:
    """PostgreSQL's name of a column's type."""
    name = (field.metadata or {}).get(b"POSTGRESQL:type")
    if name is None:  # money would pass for a hundred times as much
        raise ImportError("postgresql:// needs adbc-driver-postgresql 1.13 or newer")
    return name.decode()


def _is_known(field: Any) -> bool:
    """Whether Arrow has the type; the driver names those that it has not."""
    named = b"ADBC:postgresql:typname" in (field.metadata or {})
    return not named and not isinstance(field.type, pa.BaseExtensionType)


def _answer(ask: Callable[[], Any], shown: Any) -> Any:
    """What a database answers before it reads a value; messages of the errors `shown` are kept."""
    try:
        return ask()
    except shown as error:
        # Its first line: others repeat the query.
        said = re.search(r"(?:ERROR|FATAL):\s*(.+)", str(error)) or re.search("(.+)", str(error))
        reason = said[1] if said else "no reason was given"
    except Exception:
        reason = "run the query by itself to see why"
    # Raised outside of the `except` block, so that the first error is not its context.
    raise ValueError(f"the database refused the query or the connection: {reason}")
