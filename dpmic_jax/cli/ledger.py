"""`dpmic ledger`: the privacy ledger of a data set."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.runs import stage

EPSILON = click.option("--epsilon", type=float, required=True, help="Of all releases together.")
DELTA = click.option("--delta", type=float, default=0.0, show_default=True)
RECORDS = click.option(
    "--records-per-person",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many records one person may own.",
)
BETA = click.option(
    "--beta",
    type=float,
    default=0.025,
    show_default=True,
    help="The chance that max-information leaves aside: half of a later test's alpha.",
)
PATH = click.argument("path", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def ledger() -> None:
    """Keep the privacy ledger of a data set: what was spent, and what may be."""


@ledger.command()
@PATH
@EPSILON
@DELTA
@RECORDS
@click.option("--bounds", required=True, type=click.Path(), help="The data set's bounds file.")
@click.option("--name", required=True, help="What the data set is called.")
def init(
    path: Path, epsilon: float, delta: float, records_per_person: int, bounds: str, name: str
) -> None:
    """Make a ledger at PATH, for the data set of a bounds file."""
    with exit_codes():
        from dpmic_jax.data.schema import read_schema
        from dpmic_jax.dp.accounting.events import ReplaceOne
        from dpmic_jax.dp.ledger.budget import Budget
        from dpmic_jax.runs.data_set import create_ledger

        budget = Budget(epsilon, delta, ReplaceOne(records_per_person))
        schema = read_schema(bounds)
        with _entering():
            create_ledger(path, budget, name=name, schema=schema)
        click.echo(_shown(path))


@ledger.command()
@PATH
@BETA
def show(path: Path, beta: float) -> None:
    """Show what was spent of the budget, and on what, in all units."""
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        click.echo(_shown(path))
        content = LedgerFile.open(path).ledger
        if content.events:
            click.echo(content.privacy_cost(delta=content.budget.delta, beta=beta))


@ledger.command()
@PATH
def verify(path: Path) -> None:
    """Check all of a ledger: its pages, every entry, and that its totals are theirs."""
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        click.echo(f"{path}: {LedgerFile.open(path).verify()} entries, ok")


@ledger.command("set-budget")
@PATH
@EPSILON
@DELTA
@RECORDS
def set_budget(path: Path, epsilon: float, delta: float, records_per_person: int) -> None:
    """Replace the budget. A larger one is a weaker promise to the same people."""
    with exit_codes():
        from dpmic_jax.dp.accounting.events import ReplaceOne
        from dpmic_jax.dp.ledger.budget import Budget
        from dpmic_jax.dp.ledger.file import LedgerFile

        budget = Budget(epsilon, delta, ReplaceOne(records_per_person))
        book = LedgerFile.open(path)
        with _entering():
            book.set_budget(budget)
        click.echo(_shown(path))


@ledger.command()
@PATH
@click.argument("entry", type=click.IntRange(1))
def release(path: Path, entry: int) -> None:
    """Give back what is left of a reservation, by its number in `show`."""
    with exit_codes():
        from dpmic_jax.dp.ledger.file import LedgerFile

        book = LedgerFile.open(path)
        with _entering():
            book.cancel_reservation(entry)
        click.echo(_shown(path))


@contextmanager
def _entering() -> Iterator[None]:
    """The one change that a command is for: an interrupt comes before it, or too late."""
    with stage.charging():
        yield
        stage.done()


def _shown(path: Path) -> str:
    from dpmic_jax.dp.ledger.budget import Ledger
    from dpmic_jax.dp.ledger.file import LedgerFile

    book = LedgerFile.open(path)
    charges = book.charges  # reads and checks all, so once
    content = Ledger(book.budget, tuple(charges.values()))
    budget, spent, left = content.budget, content.spent, book.left
    lines = [
        f"data set  {book.data_set}",
        f"ledger    {book.identity}",
        f"budget    epsilon {budget.epsilon:g}, delta {budget.delta:g}, "
        f"{budget.relation.records} record(s) a person",
        f"spent     epsilon {spent.epsilon if content.events else 0.0:.6g}",
        f"left      epsilon {left.epsilon:.6g}" + (f", rho {left.rho:.6g}" if left.rho else ""),
    ]
    for serial, event in charges.items():
        cost = f"{event.count} x {event.guarantee}"
        lines.append(f"{serial:>4}  {event.mechanism}, n={event.n}: {cost}; {event.label}")
    for serial, kept in book.reservations.items():
        cost = f"{kept.event.count} x {kept.event.guarantee}"
        lines.append(f"{serial:>4}  reserved: {kept.times} times {kept.event.mechanism}: {cost}")
    return "\n".join(lines)
