"""`dpmic independence`: a test of independence of a few pairs, which may be published."""

import json
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    BOUNDS,
    JSON,
    RECORDS_PER_PERSON,
    RUN,
    STATEMENT,
    TABLE,
    parse_key,
    parse_names,
    parse_table,
    text_options,
)

_DECISIONS, _P_VALUES = "decisions", "p-values"


@click.command()
@TABLE
@BOUNDS
@click.option(
    "--pairs", required=True, multiple=True, help="Two columns, as x,y; repeat it for more pairs."
)
@click.option("--epsilon", type=float, required=True, help="Epsilon of the whole test.")
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Error rate over all pairs, fixed beforehand.",
)
@click.option(
    "--method",
    type=click.Choice([_DECISIONS, _P_VALUES]),
    default=_DECISIONS,
    show_default=True,
    help="decisions: permutation test, exact level. p-values: of noisy distances; better for many "
    "pairs or a small epsilon.",
)
@click.option(
    "--draws",
    type=click.IntRange(1),
    help="Permutations of --method decisions.",
    show_default="auto",
)
@click.option(
    "--share",
    is_flag=True,
    help="Of p-values: control the false discovery rate, not the family-wise error rate.",
)
@RECORDS_PER_PERSON
@RUN
@text_options("bounds")
@click.option("--force", is_flag=True, help="Test even if noise will hide every dependence.")
@JSON
@STATEMENT
def independence(
    table: Any,
    *,
    bounds: Any,
    pairs: tuple[str, ...],
    epsilon: float,
    alpha: float,
    method: str,
    draws: int | None,
    share: bool,
    records_per_person: int,
    out: Path | None,
    ledger: str | None,
    seed: int | None,
    force: bool,
    as_json: bool,
    statement: bool,
) -> None:
    """Test whether pairs of columns of TABLE are independent, privately.

    The result may be published. TABLE is a CSV or Parquet file, or "demo", the table that comes
    with the package.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.inference import (
            FalseDiscovery,
            FamilyWise,
            PrivateDecisions,
            PrivatePValues,
            independence_test,
        )

        if method == _P_VALUES and draws is not None:
            raise ValueError("--draws is for --method decisions: p-values need no permutations")
        if method == _DECISIONS and share:
            raise ValueError("--share needs p-values: add --method p-values")
        chosen = PrivatePValues(control=FalseDiscovery() if share else FamilyWise())
        if method == _DECISIONS:
            chosen = PrivateDecisions() if draws is None else PrivateDecisions(draws=draws)
        data, public = parse_table(table, bounds)
        found = independence_test(
            data,
            bounds=public,
            pairs=[_pair(text) for text in pairs],
            epsilon=epsilon,
            alpha=alpha,
            method=chosen,
            key=parse_key(seed),
            ledger=ledger,
            out=out,
            records_per_person=records_per_person,
            force=force,
        )
        if as_json:
            click.echo(json.dumps(found.to_dict()))
        else:
            click.echo(str(found))
            if statement:
                click.echo(found.statement.text())


def _pair(text: str) -> tuple[str, str]:
    names = parse_names(text)
    if len(names) != 2 or not all(names):
        raise ValueError(
            f"expected --pairs as two names of columns, such as x,y, got {text!r}; a name with a "
            "comma is written in double quotes"
        )
    return names[0], names[1]
