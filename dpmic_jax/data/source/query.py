"""A table that is the result of an SQL query: what names it, without opening the database."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

DUCKDB, POSTGRESQL = "duckdb:", "postgresql://"

_CREDENTIALS = (
    "put the password into the environment (PGPASSWORD), ~/.pgpass or a service file (PGSERVICE)"
)
# Parameters of a connection that are no secrets. Others stay in the environment or a service file.
_PARAMETERS = {"host", "hostaddr", "port", "dbname", "user", "service", "passfile", "options"}
_PARAMETERS |= {"application_name", "connect_timeout", "target_session_attrs", "krbsrvname"}
_PARAMETERS |= {"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "gssencmode"}
_PARAMETERS |= {"keepalives", "keepalives_idle", "channel_binding", "require_auth"}


@dataclass(frozen=True)
class Query:
    """The records that an SQL query yields, as a table.

    The query may be run several times, always in one transaction, so it sees one state of the
    database. Its order of records has no influence.

    Attributes:
      db: "duckdb:FILE", "duckdb:" without a database (to query files), or a URI
        "postgresql://host/database", without a password.
      sql: one SELECT. One person may contribute to `records_per_person` of its records at most, and
        their number is public.
    """

    db: str
    sql: str

    def __post_init__(self):
        for name, value in (("db", self.db), ("sql", self.sql)):
            if not isinstance(value, str):
                raise TypeError(f"expected {name} as text, got {type(value).__name__}")
        if not self.sql.strip(" \t\r\n;"):
            raise ValueError("expected sql to be a SELECT, got an empty text")
        if self.db.startswith(("postgresql://", "postgres://")):
            _check_uri(self.db)
        elif not self.db.startswith(DUCKDB):
            # Not shown: it may be a URI of another kind, with a password.
            raise ValueError("expected db to begin with duckdb: or postgresql://")

    @property
    def select(self) -> str:
        """The query as a subquery, which can only be one SELECT."""
        return f"(\n{self.sql.strip().rstrip(';')}\n) AS query"

    @property
    def file(self) -> Path | None:
        """The file of a DuckDB database; None without one."""
        name = self.db.removeprefix(DUCKDB)
        return Path(name).absolute() if name and name != self.db else None

    def identity(self) -> list[str | int]:
        """A digest of the database's name and the query, to detect that they are others."""
        where = self.db if self.file is None else f"{DUCKDB}{self.file.resolve()}"
        return ["query", hashlib.sha256(json.dumps([where, self.sql]).encode()).hexdigest()]


def _check_uri(uri: str) -> None:
    """Refuse a URI with a secret in it; it is not quoted."""
    # Wherever it ends: the database's own reader of URIs may divide it differently.
    if re.search("://.*:.*@", uri, re.DOTALL):
        raise ValueError(
            f"db has a password in it, which others can read off the list of processes; "
            f"{_CREDENTIALS}, and leave it out (write @ in names as %40)"
        )
    _, _, parameters = uri.partition("?")
    for parameter in filter(None, parameters.split("&")):
        if unquote(parameter.partition("=")[0]) not in _PARAMETERS:
            raise ValueError(
                "db has a parameter that may be a secret, or is unknown; write those like host, "
                f"dbname, user, service and sslmode, {_CREDENTIALS}, and other settings into the "
                "service file"
            )
