"""`dpmic registry`: a finished screen as an entry of a public registry."""

import json
import tomllib
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.report import curve_of_run


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    help='TOML file with what only you know, such as title = "..." in [deployment].',
)
@click.option("--ledger", type=click.Path(), help="Ledger, for the total cost so far.")
def registry(run: Path, *, answers: Path | None, ledger: str | None) -> None:
    """Print the result of RUN as an entry of a registry of deployments, as JSON.

    RUN is the folder of a finished screen, or its result.json. What is left to answer is listed on
    stderr. Nothing is charged.
    """
    with exit_codes():
        from dpmic_jax.results import ScreenResult

        source = run / "result.json" if run.is_dir() else run
        result = ScreenResult.from_json(source)
        given: dict[str, Any] = {} if answers is None else tomllib.loads(answers.read_text("utf-8"))
        entry = result.to_registry(given, ledger=ledger, curve=curve_of_run(result))
        click.echo(json.dumps(entry, indent=1))
        if entry["unanswered"]:
            click.echo(f"Left to answer: {', '.join(entry['unanswered'])}", err=True)
