"""`dpmic pairwise`: fast exact MIC, for data that is not sensitive."""

import json
import time

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes, print_seconds

STATISTICS = click.Choice(["micr", "mice"])


@click.command()
@click.argument("table", type=click.Choice(["demo"]))
@click.option(
    "--statistic",
    type=STATISTICS,
    default="micr",
    show_default=True,
    help="micr: bins of equal width. mice: bins of equal frequency.",
)
@click.option(
    "--cells",
    "-B",
    type=float,
    default=150,
    show_default=True,
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
@click.option(
    "--top", type=click.IntRange(1), default=15, show_default=True, help="Pairs to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every pair.")
def pairwise(
    table: str, statistic: str, cells: float, fineness: float, top: int, as_json: bool
) -> None:
    """Rank pairs of columns of TABLE by exact, non-private MIC.

    TABLE is "demo", the table that comes with the package.
    """
    started = time.perf_counter()
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.data.demo import demo
        from dpmic_jax.data.table import Table
        from dpmic_jax.mic.grids import ladder
        from dpmic_jax.mic.pairwise import pairwise
        from dpmic_jax.mic.statistics import MICe, MICr

        data = demo()
        columns = Table(tuple(data.columns), tuple(data.columns.values()))
        settings = {"B": cells, "c": fineness, "sizes": ladder(1.25)}
        result = (
            pairwise(columns, statistic=MICr(**settings), bounds=data.bounds)
            if statistic == "micr"
            else pairwise(columns, statistic=MICe(**settings))
        )
        rows = result.ranked()
        if as_json:
            pairs = [{"x": x, "y": y, "mic": mic} for x, y, mic in rows]
            click.echo(json.dumps({"pairs": pairs}))
        else:
            _show(rows[:top], columns.names, statistic)
            click.echo(
                f"{len(rows)} pairs of {len(columns.names)} columns, "
                f"{len(columns.columns[0])} records. Not private: exact values."
            )
        print_seconds(started)


def _show(rows: list[tuple[str, str, float]], names: tuple[str, ...], statistic: str) -> None:
    width = max(map(len, names))
    click.echo(f"{'x':<{width}}  {'y':<{width}}  {statistic}")
    for x, y, mic in rows:
        click.echo(f"{x:<{width}}  {y:<{width}}  {mic:.3f} {'#' * round(30 * mic)}")
