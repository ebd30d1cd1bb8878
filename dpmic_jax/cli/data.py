"""`dpmic data`: non-private checks of a table, for the owner of the data."""

from typing import Any

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import TABLE, text_options

_OWNER = "Not private: for the data owner only."
_HEADING = ("column", "missing", "unreadable", "below", "above")


@click.group()
def data() -> None:
    """Inspect a table as its owner; the output is not private."""


@data.command()
@TABLE
@click.option("--bounds", required=True, type=click.Path(), help="Bounds file of the table.")
@text_options("bounds")
def check(table: Any, *, bounds: Any) -> None:
    """Count missing, unreadable and clipped cells of TABLE.

    A missing cell is empty. An unreadable cell is not a number, date or duration, or not a declared
    category. Both are coded as the bounds file says of missing values: by default as the midpoint
    of low and high, or in a bin that no category uses; what is not a declared category counts as
    `other` where the bounds file names one. Cells below low or above high are clipped to them. Of a
    table with persons the cells of all records count, not only of those that are drawn.
    """
    with exit_codes():
        from dpmic_jax.data.schema import schema_of
        from dpmic_jax.data.source import open_source

        schema = schema_of(bounds)
        source: Any = open_source(table, schema.without_persons())
        records = f"{source.validate()} records"
        if schema.records_per_person is not None:
            persons = open_source(table, schema).validate() // schema.records_per_person
            records += f" of {persons} persons"
        found = source.tally()
        rows = [(name, *map(str, tally.counts)) for name, tally in found.items()]
        click.echo(_OWNER)
        click.echo(records)
        for line in _aligned([_HEADING, *rows]):
            click.echo(line)
        click.echo(_OWNER)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
