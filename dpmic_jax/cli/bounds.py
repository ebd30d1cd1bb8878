"""`dpmic bounds`: bounds files, filled in by hand or learned privately."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    LEDGER,
    RECORDS_PER_PERSON,
    SEED,
    TABLE,
    or_query,
    parse_key,
    text_format,
    text_options,
)

if TYPE_CHECKING:
    from dpmic_jax.screening import LearnedBounds

OUT = click.option(
    "--out", type=click.Path(path_type=Path), show_default="stdout", help="File to write."
)


@click.group()
def bounds() -> None:
    """Write bounds files, the public descriptions of tables."""


@bounds.command()
@TABLE
@text_format
@OUT
def template(table: Any, *, text: Any, out: Path | None) -> None:
    """Write a template for TABLE, with a line for each column. No value is read.

    It has the names of the columns, their kinds as far as the types of a Parquet file or of a
    query say, and the options of a text file.
    """
    with exit_codes():
        from dpmic_jax.data.schema import template
        from dpmic_jax.data.source import column_kinds
        from dpmic_jax.data.source.files import is_text_file

        found = template(column_kinds(table, text), text)
        if isinstance(table, str) and is_text_file(table):
            click.echo(
                f"The first line of {table} was read as its header. If it is a record, do not "
                "share this template, and add a header to the file.",
                err=True,
            )
        _write(found, out)


@bounds.command()
@click.argument("file", type=click.Path())
@click.option("--table", type=click.Path(), help="Table to check the names and types of.")
@or_query("table", required=False)
def check(file: str, *, table: Any) -> None:
    """Say what is incomplete or wrong in the bounds file FILE, all at once.

    Of the table, or the query, only the names and types of its columns are read.
    """
    with exit_codes():
        from dpmic_jax.data.schema.reading import examine, listed

        schema, problems = examine(file)
        if table is not None and schema is not None:
            from dpmic_jax.data.source.checking import problems_with

            schema, more = problems_with(schema, table)
            problems += more
        if problems or schema is None:
            raise ValueError(listed(problems, file))
        click.echo(f"{file} is complete.\n{schema.summary()}")


@bounds.command("from-codebook")
@click.argument("codebook", type=click.Path())
@click.option(
    "--labels", is_flag=True, help="The table has the labels of the codebook, not its codes."
)
@OUT
def from_codebook(codebook: str, labels: bool, out: Path | None) -> None:
    """Write a bounds file from CODEBOOK, and leave to fill in what it does not say.

    \b
    CODEBOOK is a CSV file with a line for each column and headings such as
      name,kind,low,high,categories,ordered,other,missing,ignore
    or a SAS (.sas7bdat, .xpt), Stata (.dta) or SPSS (.sav) file, of which only
    types, labels and missing ranges are read, and no values.
    """
    with exit_codes():
        from dpmic_jax.data.schema.codebook import from_codebook

        _write(from_codebook(codebook, labels=labels), out)


@bounds.command()
@TABLE
@click.option(
    "--within", required=True, type=click.Path(), help="Bounds file with wide public bounds."
)
@click.option("--epsilon", type=float, required=True, help="Epsilon of all columns together.")
@click.option(
    "--delta", type=float, default=0.0, help="Delta, for Gaussian noise where it is smaller."
)
@LEDGER
@RECORDS_PER_PERSON
@SEED
@text_options("within")
@OUT
def learn(
    table: Any,
    *,
    within: Any,
    epsilon: float,
    delta: float,
    ledger: str | None,
    records_per_person: int,
    seed: int | None,
    out: Path | None,
) -> None:
    """Learn bounds and breakpoints for TABLE privately, within wide bounds.

    Every column of numbers or times gets breakpoints near its quantiles, so that bins hold similar
    numbers of records however skewed it is; other columns keep their description, and so do whole
    numbers of at most 16 values. All columns are learned for one charge.
    """
    with exit_codes():
        cache_compiled_programs()
        _check_free(out)  # before anything is charged
        from dpmic_jax.screening import learn_bounds

        found = learn_bounds(
            table,
            within=within,
            epsilon=epsilon,
            delta=delta,
            key=parse_key(seed),
            ledger=ledger,
            records_per_person=records_per_person,
        )
        _write(f"{_cost(found)}\n{found.schema.to_toml()}", out)


def _cost(found: "LearnedBounds") -> str:
    event = found.event
    delta = f", delta = {event.delta:g}" if event.delta else ""
    columns = dict(event.settings)["columns"]
    return (
        f"# learned with epsilon = {event.epsilon:g}{delta}, {columns} columns, n = {event.n}\n"
        f"# quantiles are off by about {found.error:.1%} of the records\n"
        + "# seeded: not for release\n"
        * (not found.key_is_secret)
    )


def _check_free(out: Path | None) -> None:
    if out is not None and os.path.lexists(out):
        raise FileExistsError(f"{out} already exists; choose another --out")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"no folder {out.parent}; create it, or choose another --out")


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
        return
    _check_free(out)
    with open(out, "x", encoding="utf-8") as file:  # "x" refuses a dangling link, too
        file.write(text)
