"""`dpmic data`: what the owner of the data may look at, before anything private is asked."""

import click

from dpmic_jax.cli.errors import exit_codes

_OWNER = "not private: for the data's owner"
_HEADING = ("column", "missing", "unreadable", "below", "above")


@click.group()
def data() -> None:
    """Look at a table as its owner: nothing here is private."""


@data.command()
@click.argument("table", type=click.Path())
@click.option("--bounds", required=True, type=click.Path(), help="Its bounds file.")
def check(table: str, bounds: str) -> None:
    """Count the cells of TABLE that do not count as what they hold.

    Missing cells hold nothing; unreadable ones hold no number, or no declared category. Both are
    coded as the bounds file says of missing values: by default as the midpoint of low and high, or
    in a part that no category has. Cells below low and above high count as low and high.
    """
    with exit_codes():
        from dpmic_jax.data.schema import read_schema
        from dpmic_jax.data.source.files import open_file

        source = open_file(table, read_schema(bounds))
        records = source.validate()
        found = source.tally()
        rows = [(name, *map(str, tally.counts)) for name, tally in found.items()]
        click.echo(_OWNER)
        click.echo(f"{records} records")
        for line in _aligned([_HEADING, *rows]):
            click.echo(line)
        click.echo(_OWNER)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
