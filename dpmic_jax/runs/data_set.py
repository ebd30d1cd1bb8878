"""Which data set a ledger belongs to, told by what the user says of it.

A ledger's data set is its name and a salted hash of the table's schema: the names of the columns
and whether they are numbers or categories. Nothing of it comes from records. It keeps a charge
from going to the wrong ledger, not a user from making a second one.
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
    """A new ledger for a table of this schema."""
    salt = secrets.token_hex(16)
    return LedgerFile.create(
        path, budget, data_set=f"{name} (schema {salt}:{schema.fingerprint(salt)})"
    )


def check_data_set(ledger: LedgerFile, schema: Schema | None) -> None:
    """Refuse a ledger that was made for another schema; one made without is taken at its word."""
    found = _DATA_SET.fullmatch(ledger.data_set)
    if found is None:
        return
    if schema is None:
        raise ValueError(
            f"the ledger at {ledger.path} is of the data set {found['name']!r} and knows its "
            "columns, but the data come without a schema; pass the table with its bounds"
        )
    if schema.fingerprint(found["salt"]) != found["hash"]:
        raise ValueError(
            f"the ledger at {ledger.path} is of another data set, {found['name']!r}: its columns "
            "are not those of this table; use the ledger of this table"
        )
