"""`dpmic verify`: check a finished screen later, against its event, its folder and the ledger."""

import sys
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.runs import stage

DIFFERS = 1
_WORDS = {True: "ok", False: "DIFFERS", None: "not checked"}


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--ledger", type=click.Path(), help="Ledger that the screen was charged to.")
@click.option("--no-ledger", is_flag=True, help="Leave out the charge in the ledger.")
def verify(run: Path, *, ledger: str | None, no_ledger: bool) -> None:
    """Recompute what can be checked of a finished screen, without its table.

    RUN is the folder of the screen, or its result.json. Statement, event, limits, the files of the
    run and the charge in the ledger have to agree. No value of the table is read.

    \b
    Exit codes:
      0  everything that was checked agrees
      1  something differs
      2  invalid input, such as a missing file
    """
    with exit_codes():
        from dpmic_jax.screening import verify as verified

        if (ledger is None) != no_ledger:
            raise ValueError("expected --ledger with the ledger of the screen, or --no-ledger")
        checks = verified(run, ledger=ledger)
        width = max(len(word) for word in _WORDS.values())
        for check in checks:
            detail = f": {check.detail}" if check.detail else ""
            click.echo(f"{_WORDS[check.agrees]:<{width}}  {check.what}{detail}")
        stage.done()
    if any(check.agrees is False for check in checks):
        sys.exit(DIFFERS)
