"""The neighbouring relation of a release, by the schema of its table."""

from dpmic_jax.data.schema import Schema
from dpmic_jax.dp.accounting.events import ReplaceOne


def relation_of(schema: Schema, records_per_person: int) -> ReplaceOne:
    """The relation of a release: as declared by its argument, or as enforced by the schema."""
    enforced = schema.records_per_person
    if enforced is None:
        return ReplaceOne(records_per_person)
    if records_per_person not in (1, enforced):
        raise ValueError(
            f"expected records_per_person as in the bounds, {enforced}, got {records_per_person}: "
            "leave it out, or change it there"
        )
    return ReplaceOne(enforced)


def persons_of(schema: Schema, n: int) -> int | None:
    """How many persons n records are of, if each counts with exactly as many as the schema says."""
    return None if schema.records_per_person is None else n // schema.records_per_person


def check_one_record(schema: Schema, remedy: str) -> None:
    """Refuse persons with several records, for tests of which the level needs independent ones."""
    if (schema.records_per_person or 1) > 1:
        raise ValueError(
            "this test shuffles records, which have to be independent, and the records of one "
            f"person are not: {remedy}"
        )
