"""`dpmic pairwise`: exact values, for tables that are nobody's secret."""

import json
import time

import click

from dpmic_jax.cli.errors import exit_codes, tell_seconds
from dpmic_jax.cli.kept import keep_compiled_programs

STATISTICS = click.Choice(["micr", "mice"])


@click.command()
@click.argument("table", type=click.Choice(["demo"]))
@click.option("--statistic", type=STATISTICS, default="micr", show_default=True)
@click.option("--cells", "-B", type=float, default=150, show_default=True, help="Cells a grid.")
@click.option("--fineness", "-c", type=float, default=5, show_default=True, help="c of the papers.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Rows to show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every pair.")
def pairwise(
    table: str, statistic: str, cells: float, fineness: float, top: int, as_json: bool
) -> None:
    """Rank all pairs of columns of TABLE by their maximal information coefficient.

    TABLE is "demo", the table that comes with the package. Nothing here is private.
    """
    started = time.perf_counter()
    with exit_codes():
        keep_compiled_programs()
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
        tell_seconds(started)


def _show(rows: list[tuple[str, str, float]], names: tuple[str, ...], statistic: str) -> None:
    width = max(map(len, names))
    click.echo(f"{'x':<{width}}  {'y':<{width}}  {statistic}")
    for x, y, mic in rows:
        click.echo(f"{x:<{width}}  {y:<{width}}  {mic:.3f} {'#' * round(30 * mic)}")
