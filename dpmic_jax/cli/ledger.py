"""`dpmic ledger`: the privacy ledger of a data set."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import BETA, COLUMNS_OF, DELTA, RECORDS_PER_PERSON, parse_schema
from dpmic_jax.runs import stage

EPSILON = click.option(
    "--epsilon", type=float, required=True, help="Epsilon of all releases together."
)
PATH = click.argument("path", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def ledger() -> None:
    """Create, inspect and change the privacy ledger of a data set."""


@ledger.command()
@PATH
@EPSILON
@DELTA
@RECORDS_PER_PERSON
@click.option("--bounds", required=True, type=click.Path(), help="Bounds file of the data set.")
@COLUMNS_OF
@click.option("--name", required=True, help="Name of the data set.")
def init(
    path: Path,
    epsilon: float,
    delta: float,
    records_per_person: int,
    bounds: str,
    columns_of: str | None,
    name: str,
) -> None:
    """Create a ledger at PATH for the data set of a bounds file."""
    with exit_codes():
        from dpmic_jax.dp.ledger.budget import Budget
        from dpmic_jax.runs.data_set import create_ledger
        from dpmic_jax.runs.relation import relation_of

        schema = parse_schema(bounds, columns_of)
        budget = Budget(epsilon, delta, relation_of(schema, records_per_person))
        with _entering():
            create_ledger(path, budget, name=name, schema=schema)
        click.echo(_shown(path))


@ledger.command()
@PATH
@BETA
def show(path: Path, beta: float) -> None:
    """Show the budget, the charges and their total cost."""
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        click.echo(_shown(path))
        content = LedgerFile.open(path).ledger
        if content.events:
            click.echo(content.privacy_cost(delta=content.budget.delta, beta=beta))


@ledger.command()
@PATH
def verify(path: Path) -> None:
    """Check the pages, the chain of entries and the totals."""
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        click.echo(f"{path}: {LedgerFile.open(path).verify()} entries, ok")


@ledger.command("set-budget")
@PATH
@EPSILON
@DELTA
@RECORDS_PER_PERSON
def set_budget(path: Path, epsilon: float, delta: float, records_per_person: int) -> None:
    """Replace the budget. A larger one weakens the guarantee for the same people."""
    with exit_codes():
        from dpmic_jax.dp.accounting.events import ReplaceOne
        from dpmic_jax.dp.ledger.budget import Budget
        from dpmic_jax.dp.ledger.file import LedgerFile

        budget = Budget(epsilon, delta, ReplaceOne(records_per_person))
        file = LedgerFile.open(path)
        with _entering():
            file.set_budget(budget)
        click.echo(_shown(path))


@ledger.command()
@PATH
@click.argument("entry", type=click.IntRange(1))
def release(path: Path, entry: int) -> None:
    """Cancel a reservation.

    ENTRY is its number in `show`. What was drawn from it stays charged.
    """
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        file = LedgerFile.open(path)
        with _entering():
            file.cancel_reservation(entry)
        click.echo(_shown(path))


@contextmanager
def _entering() -> Iterator[None]:
    """Protect the one change that a command makes: interrupts wait until it is on the disk."""
    with stage.charging():
        yield
        stage.done()


def _shown(path: Path) -> str:
    from dpmic_jax.dp.ledger.budget import Ledger
    from dpmic_jax.dp.ledger.file import LedgerFile

    file = LedgerFile.open(path)
    charges = file.charges  # reads and verifies the whole file, so only once
    content = Ledger(file.budget, tuple(charges.values()))
    budget, spent, left = content.budget, content.spent, file.left
    lines = [
        f"data set  {file.data_set}",
        f"ledger    {file.identity}",
        f"budget    epsilon {budget.epsilon:g}, delta {budget.delta:g}, "
        f"{budget.relation.records} record(s) per person",
        f"spent     epsilon {spent.epsilon if content.events else 0.0:.6g}",
        f"left      epsilon {left.epsilon:.6g}" + (f", rho {left.rho:.6g}" if left.rho else ""),
    ]
    for serial, event in charges.items():
        cost = f"{event.count} x {event.guarantee}"
        lines.append(f"{serial:>4}  {event.mechanism}, n={event.n}: {cost}; {event.label}")
    for serial, kept in file.reservations.items():
        cost = f"{kept.event.count} x {kept.event.guarantee}"
        lines.append(f"{serial:>4}  reserved: {kept.times} times {kept.event.mechanism}: {cost}")
    return "\n".join(lines)
