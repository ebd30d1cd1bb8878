"""The data set that a ledger belongs to.

A ledger identifies its data set by a name and a salted hash of the table's schema: the names of the
columns, whether they are numbers or categories, and which one has the ids of persons, if any.
Nothing in it comes from records. It prevents a charge to the wrong ledger; it does not prevent a
second ledger for the same data.
"""

import os
import re
import secrets

from dpmic_jax.data.schema import Schema
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.ledger.file import LedgerFile

_DATA_SET = re.compile(r"(?P<name>.*) \(schema (?P<salt>[0-9a-f]{32}):(?P<hash>[0-9a-f]{64})\)")


def create_ledger(
    path: str | os.PathLike[str], budget: Budget, *, name: str, schema: Schema
) -> LedgerFile:
    """Create a ledger for tables with this schema."""
    # A salt, so that ledgers of two data sets do not show whether their schemas are equal.
    salt = secrets.token_hex(16)
    return LedgerFile.create(
        path, budget, data_set=f"{name} (schema {salt}:{schema.fingerprint(salt)})"
    )


def check_data_set(ledger: LedgerFile, schema: Schema | None) -> None:
    """Refuse a ledger that was created for another schema; without a schema it is not checked."""
    found = _DATA_SET.fullmatch(ledger.data_set)
    if found is None:
        return
    if schema is None:
        raise ValueError(
            f"the ledger at {ledger.path} belongs to the data set {found['name']!r} with known "
            "columns, but the data have no schema; pass the table with its bounds"
        )
    # Of a ledger without ids, which only has a promise, persons may be protected.
    hashes = [each.fingerprint(found["salt"]) for each in (schema, schema.without_persons())]
    if found["hash"] not in hashes:
        raise ValueError(
            f"the ledger at {ledger.path} belongs to another data set, {found['name']!r}, with "
            "other columns than this table, or with another column of ids; use the ledger of this "
            "table, with its person"
        )
