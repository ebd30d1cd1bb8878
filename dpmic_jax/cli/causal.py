"""`dpmic causal`: which dependences are direct."""

import json
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.kept import keep_compiled_programs
from dpmic_jax.cli.ledger import RECORDS
from dpmic_jax.cli.options import JSON, SEED, check_picture, parse_key, the_table

_SVT, _EM, _PRIV = "svt-pc", "em-pc", "priv-pc"
_TESTS: tuple[str, ...] = ("kendall", "signed-kendall", "spearman", "signed-spearman")


def _shared(command: Any) -> Any:
    """The options that a search and its plan have in common."""
    options = (
        click.option("--bounds", type=click.Path(), help="The bounds file."),
        click.option("--epsilon", type=float, required=True, help="Of the whole search."),
        click.option("--delta", type=float, default=0.0, show_default=True),
        click.option(
            "--search", type=click.Choice([_SVT, _EM, _PRIV]), default=_SVT, show_default=True
        ),
        click.option("--test", type=click.Choice(_TESTS), default=_TESTS[0], show_default=True),
        click.option(
            "--threshold",
            type=float,
            default=1.0,
            show_default=True,
            help="A score of at most this is independence.",
        ),
        click.option(
            "--max-order",
            type=click.IntRange(0),
            default=2,
            show_default=True,
            help="The most columns to condition on.",
        ),
        click.option(
            "--bins", type=click.IntRange(2), default=2, show_default=True, help="Of numbers."
        ),
        click.option(
            "--rounds",
            type=click.IntRange(1),
            help="Of svt-pc and priv-pc; else as many as can be needed to remove all edges.",
        ),
        click.option(
            "--share",
            type=click.FloatRange(0, 1, min_open=True),
            default=0.5,
            show_default=True,
            help="Of the records in a subsample of priv-pc.",
        ),
        RECORDS,
        JSON,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("table", type=click.Path())
@_shared
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder: resume from it.")
@click.option("--ledger", type=click.Path(), help="A ledger to charge.")
@SEED
@click.option("--picture", type=click.Path(path_type=Path), help="A drawing of the graph.")
def causal(
    table: str,
    *,
    bounds: str | None,
    test: str,
    bins: int,
    out: Path | None,
    ledger: str | None,
    seed: int | None,
    picture: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find which dependences of TABLE are direct, privately.

    TABLE is a CSV or Parquet file, or "demo", the table that comes with the package.
    """
    with exit_codes():
        keep_compiled_programs()
        from dpmic_jax.causal.reading import TableCodes
        from dpmic_jax.causal.search import discover
        from dpmic_jax.data.source import open_source

        if picture is not None:
            check_picture("--picture", picture, out)
        data = TableCodes(open_source(*the_table(table, bounds)), bins)
        search = _search(len(data.names), data.n, **asked)
        found = discover(data, _test(test), search, key=parse_key(seed), ledger=ledger, out=out)
        if picture is not None:
            from dpmic_jax.causal.drawing import draw

            draw(found, picture)
        click.echo(json.dumps(found.to_dict()) if as_json else str(found))


@click.command("causal-plan")
@_shared
@click.option("--records", "-n", type=click.IntRange(4), required=True, help="How many.")
@click.option("--columns", type=click.IntRange(2), help="How many, without a bounds file.")
def causal_plan(
    *,
    bounds: str | None,
    test: str,
    bins: int,
    records: int,
    columns: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Say what a search for a graph will cost and can tell. No data is read."""
    with exit_codes():
        keep_compiled_programs()
        from dpmic_jax.causal.preview import preview_search
        from dpmic_jax.causal.reading import categories_of
        from dpmic_jax.data.schema import read_schema

        if (bounds is None) == (columns is None):
            raise ValueError("expected --bounds with the columns' names, or --columns, how many")
        counts = [bins] * (columns or 0)
        if bounds is not None:
            counts = [categories_of(rule, bins) for _, rule in read_schema(bounds).columns]
        search = _search(len(counts), records, **asked)
        found = preview_search(_test(test), search, categories=counts, n=records)
        click.echo(json.dumps(dict(found.lines())) if as_json else str(found))


def _test(name: str) -> Any:
    from dpmic_jax.causal.kendall import Kendall, SignedKendall
    from dpmic_jax.causal.spearman import SignedSpearman, Spearman

    return dict(zip(_TESTS, (Kendall, SignedKendall, Spearman, SignedSpearman), strict=True))[name]


def _search(columns: int, n: int, *, search: str, rounds: int | None, share: float, **others: Any):
    from dpmic_jax.causal.em_pc import EMPC
    from dpmic_jax.causal.priv_pc import PrivPC
    from dpmic_jax.causal.svt_pc import SVTPC

    enough = columns * (columns - 1) // 2 + others["max_order"] + 1
    if search == _EM:
        return EMPC(**others)
    if search == _SVT:
        return SVTPC(rounds=rounds or enough, **others)
    return PrivPC(rounds=rounds or enough, subsample=max(1, round(share * n)), tweak=0.0, **others)
