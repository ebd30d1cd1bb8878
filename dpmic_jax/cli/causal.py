"""`dpmic causal` and `dpmic causal-plan`: a private search for a causal graph, and its preview."""

import json
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    BOUNDS,
    COLUMNS_OF,
    DELTA,
    JSON,
    RECORDS_PER_PERSON,
    RUN,
    SIZE,
    TABLE,
    check_columns,
    check_picture,
    combine,
    parse_key,
    parse_schema,
    parse_table,
    text_options,
)

_SVT, _EM, _PRIV = "svt-pc", "em-pc", "priv-pc"
_TESTS: tuple[str, ...] = ("kendall", "signed-kendall", "spearman", "signed-spearman")

_SHARED = combine(
    BOUNDS,
    click.option("--epsilon", type=float, required=True, help="Epsilon of the whole search."),
    DELTA,
    click.option(
        "--search",
        type=click.Choice([_SVT, _EM, _PRIV]),
        default=_SVT,
        show_default=True,
        help="Private variant of the PC algorithm.",
    ),
    click.option(
        "--test",
        type=click.Choice(_TESTS),
        default=_TESTS[0],
        show_default=True,
        help="Test of conditional independence.",
    ),
    click.option(
        "--threshold",
        type=float,
        default=1.0,
        show_default=True,
        help="Largest score at which columns count as independent.",
    ),
    click.option(
        "--max-order",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="Largest number of columns to condition on.",
    ),
    click.option(
        "--bins",
        type=click.IntRange(2),
        default=2,
        show_default=True,
        help="Bins of a column of numbers.",
    ),
    click.option(
        "--rounds",
        type=click.IntRange(1),
        show_default="one for each pair of columns and each order",
        help="Rounds of svt-pc and priv-pc.",
    ),
    click.option(
        "--share",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.5,
        show_default=True,
        help="Fraction of the records in a subsample of priv-pc.",
    ),
    RECORDS_PER_PERSON,
    JSON,
)


@click.command()
@TABLE
@_SHARED
@RUN
@click.option(
    "--picture", type=click.Path(path_type=Path), help="Draw the graph to this picture file."
)
@text_options("bounds")
@click.option("--force", is_flag=True, help="Search even if noise will hide every dependence.")
def causal(
    table: Any,
    *,
    bounds: Any,
    test: str,
    bins: int,
    out: Path | None,
    ledger: str | None,
    seed: int | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find the direct dependences in TABLE, privately.

    The result is the graph of a private variant of the PC algorithm. TABLE is a CSV or Parquet
    file, or "demo", the table that comes with the package.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.causal.reading import TableCodes
        from dpmic_jax.causal.search import discover
        from dpmic_jax.data.source import open_source

        if picture is not None:
            check_picture("--picture", picture, out)
        data = TableCodes(open_source(*parse_table(table, bounds)), bins)
        search = _search(len(data.names), data.n, **asked)
        found = discover(
            data,
            _test(test),
            search,
            key=parse_key(seed),
            ledger=ledger,
            out=out,
            force=force,
        )
        if picture is not None:
            from dpmic_jax.causal.drawing import draw

            draw(found, picture)
        click.echo(json.dumps(found.to_dict()) if as_json else str(found))


@click.command("causal-plan")
@_SHARED
@SIZE
@COLUMNS_OF
def causal_plan(
    *,
    bounds: str | None,
    columns_of: str | None,
    test: str,
    bins: int,
    records: int,
    columns: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Preview the cost of a causal search without reading data."""
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.causal.preview import preview_search
        from dpmic_jax.causal.reading import categories_of
        from dpmic_jax.runs.relation import relation_of

        check_columns(bounds, columns)
        counts = [bins] * (columns or 0)
        if bounds is not None:
            schema = parse_schema(bounds, columns_of)
            counts = [categories_of(rule, bins) for _, rule in schema.columns]
            relation = relation_of(schema, asked["records_per_person"])
            asked["records_per_person"] = relation.records
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

    # A round of svt-pc removes one edge or finishes one order, so these are always enough. Priv-pc
    # also spends rounds on examinations that remove nothing.
    enough = columns * (columns - 1) // 2 + others["max_order"] + 1
    if search == _EM:
        return EMPC(**others)
    if search == _SVT:
        return SVTPC(rounds=rounds or enough, **others)
    return PrivPC(rounds=rounds or enough, subsample=max(1, round(share * n)), tweak=0.0, **others)
