"""`dpmic pairwise`: fast exact MIC, for data that is not sensitive."""

import json
import time
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes, print_seconds
from dpmic_jax.cli.options import DEMO, TABLE, check_picture, text_format

STATISTICS = click.Choice(["mice", "micr"])
_LARGEST = 150  # cells of a grid, unless --cells asks for more


@click.command()
@TABLE
@click.option(
    "--statistic",
    type=STATISTICS,
    default="mice",
    show_default=True,
    help="mice: bins of equal frequency. micr: bins of equal width on --bounds.",
)
@click.option("--bounds", type=click.Path(), help="Bounds file, for micr.")
@click.option(
    "--cells",
    "-B",
    type=float,
    show_default=f"records^0.6, at most {_LARGEST}",
    help="Largest number of cells in a grid.",
)
@click.option(
    "--fineness",
    "-c",
    type=float,
    default=5,
    show_default=True,
    help="Master bins for each bin of a grid (c in the papers).",
)
@click.option("--p-values", is_flag=True, help="Test the independence of each pair.")
@click.option(
    "--draws",
    type=click.IntRange(1),
    default=9999,
    show_default=True,
    help="Random tables for a p-value, at most.",
)
@click.option(
    "--adjust",
    type=click.Choice(["by", "bh", "holm"]),
    default="by",
    show_default=True,
    help="Benjamini-Yekutieli, Benjamini-Hochberg or Holm.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the random tables.")
@click.option(
    "--refuse-missing", is_flag=True, help="Refuse missing values, not leave them out by pair."
)
@click.option("--heatmap", type=click.Path(path_type=Path), help="Picture to draw.")
@click.option("--report", type=click.Path(path_type=Path), help="HTML page to write.")
@click.option(
    "--top", type=click.IntRange(1), default=15, show_default=True, help="Pairs to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every pair.")
@text_format
def pairwise(
    table: Any,
    *,
    statistic: str,
    bounds: str | None,
    cells: float | None,
    fineness: float,
    p_values: bool,
    draws: int,
    adjust: str,
    seed: int,
    refuse_missing: bool,
    heatmap: Path | None,
    report: Path | None,
    top: int,
    as_json: bool,
    text: Any,
) -> None:
    """Rank pairs of columns of TABLE by exact, non-private MIC.

    TABLE is a CSV or Parquet file, a folder or pattern of Parquet files, or "demo", the table that
    comes with the package. Instead of TABLE, --db and --sql query a database. Columns are taken by
    the types that their values suggest: numbers, dates and durations by rank, texts as categories
    without an order.
    """
    started = time.perf_counter()
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.data.frame import pair_by_pair
        from dpmic_jax.data.frame import refuse_missing as refuse
        from dpmic_jax.frames import pairwise
        from dpmic_jax.inference import TableTest

        for option, path in (("--heatmap", heatmap), ("--report", report)):
            if path is not None and not path.parent.is_dir():
                raise FileNotFoundError(f"no folder {path.parent} for {option}; create it")
        if heatmap is not None:
            check_picture("--heatmap", heatmap, None)
        data, public = _table(table, bounds, text)
        result = pairwise(
            data,
            statistic=_statistic(statistic, cells, fineness),
            bounds=public if statistic == "micr" else None,
            missing=refuse if refuse_missing else pair_by_pair,
            p_values=TableTest(draws=draws) if p_values else False,
            control=_control(adjust),
            rng=seed,
        )
        if report is not None:
            result.to_html(report)
        if heatmap is not None:
            result.plot.heatmap().figure.savefig(heatmap, dpi=150, bbox_inches="tight")
        click.echo(json.dumps(_json(result)) if as_json else result.text(top))
        print_seconds(started)


def _table(table: Any, bounds: str | None, text: Any) -> tuple[Any, Any]:
    """The columns of a table, and the public bounds of its numbers, if there are any."""
    if table == DEMO:
        from dpmic_jax.data.demo import demo

        data = demo()
        return data.columns, data.bounds
    from dpmic_jax.data.source.inferred import read_table

    frame = read_table(table, text)
    if bounds is None:
        return frame, None
    from dpmic_jax.data.limits import ScaledBounds
    from dpmic_jax.data.schema import Number, read_schema

    schema = read_schema(bounds).for_columns(frame.column_names)
    numbers = {name: rule for name, rule in schema.columns if isinstance(rule, Number)}
    kept = [name for name in frame.column_names if name not in schema.ignored]
    limits = {
        name: ScaledBounds(*rule.cut_between, rule.cut_scale) for name, rule in numbers.items()
    }
    return frame.select(kept), limits


def _statistic(name: str, cells: float | None, fineness: float) -> Any:
    from dpmic_jax.mic.grids import ladder, power
    from dpmic_jax.mic.statistics import MICe, MICr

    usual = power(0.6)
    rule = (lambda n: min(_LARGEST, usual(n))) if cells is None else cells
    return {"mice": MICe, "micr": MICr}[name](B=rule, c=fineness, sizes=ladder(1.25))


def _control(name: str) -> Any:
    from dpmic_jax.inference import BenjaminiHochberg, FalseDiscovery, FamilyWise

    return {"by": FalseDiscovery, "bh": BenjaminiHochberg, "holm": FamilyWise}[name]()


def _json(result: Any) -> dict[str, Any]:
    """Every pair, the strongest first; JSON has no NaN."""
    columns = {
        name: values if isinstance(values, list) else values.tolist()
        for name, values in result.columns().items()
    }
    rows = zip(*columns.values(), strict=True)
    plain = ([None if value != value else value for value in row] for row in rows)
    return {"pairs": [dict(zip(columns, row, strict=True)) for row in plain]}
