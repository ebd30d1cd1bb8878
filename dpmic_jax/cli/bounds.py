"""`dpmic bounds`: bounds files, filled in by hand or learned privately."""

import os
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import LEDGER, RECORDS_PER_PERSON, SEED, TABLE, parse_key

OUT = click.option(
    "--out", type=click.Path(path_type=Path), show_default="stdout", help="File to write."
)


@click.group()
def bounds() -> None:
    """Write bounds files, the public descriptions of tables."""


@bounds.command()
@TABLE
@OUT
def template(table: Any, *, out: Path | None) -> None:
    """Write a template for TABLE with the names of its columns. No value is read."""
    with exit_codes():
        from dpmic_jax.data.schema import template
        from dpmic_jax.data.source import column_names

        text = template(column_names(table))
        if isinstance(table, str) and Path(table).suffix.lower() == ".csv":
            click.echo(
                f"The first line of {table} was read as its header. If it is a record, do not "
                "share this template, and add a header to the file.",
                err=True,
            )
        _write(text, out)


@bounds.command()
@TABLE
@click.option(
    "--within", required=True, type=click.Path(), help="Bounds file with wide public bounds."
)
@click.option("--epsilon", type=float, required=True, help="Epsilon of all columns together.")
@LEDGER
@RECORDS_PER_PERSON
@SEED
@OUT
def learn(
    table: Any,
    *,
    within: str,
    epsilon: float,
    ledger: str | None,
    records_per_person: int,
    seed: int | None,
    out: Path | None,
) -> None:
    """Learn tighter bounds for TABLE privately, within wide ones.

    Every numeric column gets the range between two private quantiles; other columns keep their
    description.
    """
    with exit_codes():
        cache_compiled_programs()
        _check_free(out)  # before anything is charged
        from dpmic_jax.screening import learn_bounds

        found = learn_bounds(
            table,
            within=within,
            epsilon=epsilon,
            key=parse_key(seed),
            ledger=ledger,
            records_per_person=records_per_person,
        )
        event = found.event
        cost = f"# learned with epsilon = {epsilon:g}, {event.count} columns, n = {event.n}"
        stamp = "" if found.key_is_secret else "# seeded: not for release\n"
        _write(f"{cost}\n{stamp}\n{found.schema.to_toml()}", out)


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
