"""`dpmic bounds`: bounds files, to be filled in by hand or bought privately."""

import os
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.kept import keep_compiled_programs
from dpmic_jax.cli.ledger import RECORDS
from dpmic_jax.cli.options import SEED, parse_key

OUT = click.option("--out", type=click.Path(path_type=Path), help="Where to; else it is printed.")


@click.group()
def bounds() -> None:
    """Write bounds files: what is public about the columns of a table."""


@bounds.command()
@click.argument("table", type=click.Path())
@OUT
def template(table: str, out: Path | None) -> None:
    """Write a template for TABLE: the names of its columns, and nothing of its values."""
    with exit_codes():
        from dpmic_jax.data.schema import template
        from dpmic_jax.data.source import column_names

        text = template(column_names(table))
        if Path(table).suffix.lower() == ".csv":
            click.echo(
                f"The first line of {table} was taken for the names of its columns. If it is a "
                "record, keep this template to yourself, and write the names on top.",
                err=True,
            )
        _put(text, out)


@bounds.command()
@click.argument("table", type=click.Path())
@click.option("--within", required=True, type=click.Path(), help="A bounds file, surely wide.")
@click.option("--epsilon", type=float, required=True, help="Of all columns together.")
@click.option("--ledger", type=click.Path(), help="A ledger to charge.")
@RECORDS
@SEED
@OUT
def learn(
    table: str,
    within: str,
    epsilon: float,
    ledger: str | None,
    records_per_person: int,
    seed: int | None,
    out: Path | None,
) -> None:
    """Buy bounds for the numbers of TABLE privately, inside wide public ones."""
    with exit_codes():
        keep_compiled_programs()
        _check_free(out)  # before anything is bought
        from dpmic_jax.screening import learn_bounds

        found = learn_bounds(
            table,
            within=within,
            epsilon=epsilon,
            key=parse_key(seed),
            ledger=ledger,
            records_per_person=records_per_person,
        )
        cost = (
            f"# bought with epsilon = {epsilon:g}, {found.event.count} columns, n = {found.event.n}"
        )
        stamp = "" if found.key_is_secret else "# seeded: not for release\n"
        _put(f"{cost}\n{stamp}\n{found.schema.to_toml()}", out)


def _check_free(out: Path | None) -> None:
    if out is not None and os.path.lexists(out):
        raise FileExistsError(f"{out} is there already; choose another --out")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {out.parent}; make it, or choose another --out"
        )


def _put(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
        return
    _check_free(out)
    with open(out, "x", encoding="utf-8") as file:  # nor through a link that leads nowhere yet
        file.write(text)
