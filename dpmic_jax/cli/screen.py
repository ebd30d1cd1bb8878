"""`dpmic screen`: a private screen of a table."""

import json
import time
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes, print_seconds
from dpmic_jax.cli.options import (
    BOUNDS,
    CELLS,
    DELTA,
    FINENESS,
    JSON,
    RECORDS_PER_PERSON,
    RUN,
    STATEMENT,
    TABLE,
    check_picture,
    combine,
    parse_ask,
    parse_key,
    parse_names,
    parse_statistic,
    parse_table,
    text_options,
)

# Of a screen and of its plan.
SHARED = combine(
    DELTA,
    click.option(
        "--ask",
        default="all",
        show_default=True,
        help="Query: all, top:20, above:0.3:10, against:age or between:a,b/c,d; to select from "
        "fewer pairs, top:20:against:age.",
    ),
    BOUNDS,
    RECORDS_PER_PERSON,
    CELLS,
    FINENESS,
    click.option(
        "--memory",
        type=click.IntRange(1),
        default=1024,
        show_default=True,
        help="Memory for bin codes or counts, in MB.",
    ),
    click.option(
        "--rows",
        type=click.IntRange(1),
        default=2**18,
        show_default=True,
        help="Records read at a time.",
    ),
    click.option(
        "--tile",
        type=click.IntRange(1),
        default=256,
        show_default=True,
        help="Pairs stored together.",
    ),
    JSON,
)


@click.command()
@TABLE
@click.option("--epsilon", type=float, required=True, help="Epsilon of the whole screen.")
@SHARED
@RUN
@click.option("--force", is_flag=True, help="Screen even if noise will hide every dependence.")
@click.option(
    "--relative",
    help="Columns with rare values, such as a,b: show distances relative to what they allow.",
)
@click.option("--dask", help="Address of a Dask scheduler, such as tcp://host:8786.")
@click.option(
    "--devices",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of devices of this machine to use.",
)
@click.option(
    "--heatmap", type=click.Path(path_type=Path), help="Draw the result to this picture file."
)
@text_options("bounds")
@click.option(
    "--top",
    type=click.IntRange(1),
    show_default="all that were selected, else 15",
    help="Pairs to print.",
)
@STATEMENT
def screen(
    table: Any,
    *,
    bounds: Any,
    as_json: bool,
    out: Path | None,
    ledger: str | None,
    seed: int | None,
    force: bool,
    relative: str | None,
    dask: str | None,
    devices: int,
    heatmap: Path | None,
    top: int | None,
    statement: bool,
    **asked: Any,
) -> None:
    """Screen TABLE for dependent pairs of columns, privately.

    TABLE is a CSV or Parquet file, a folder of Parquet files, or "demo", the table that comes with
    the package. Instead of TABLE, --db and --sql query a database.
    """
    started = time.perf_counter()
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.screening import preview
        from dpmic_jax.screening import screen as run

        data, public = parse_table(table, bounds)
        settings = {**screen_settings(**asked), "relative": parse_names(relative)}
        if heatmap is not None:  # before the charge, which a bad path must not waste
            check_picture("--heatmap", heatmap, out)
        with _client(dask) as client:
            result = run(
                data,
                bounds=public,
                key=parse_key(seed),
                ledger=ledger,
                out=out,
                devices=_devices(devices),
                client=client,
                force=force,
                **settings,
            )
        if out is not None:
            result.to_csv(out / "result.csv")
        if heatmap is not None:
            _draw(result, heatmap)
        if as_json:
            settings["records_per_person"] = result.statement.relation.records
            expected = preview(columns=result.names, n=result.statement.n, **settings)
            click.echo(json.dumps({**result.to_dict(), "plan": dict(expected.lines())}))
        else:
            click.echo(result.text(top))
            if statement:
                click.echo(result.statement.text())
        print_seconds(started)


def screen_settings(
    *,
    epsilon: float,
    delta: float,
    ask: str,
    records_per_person: int,
    cells: float | None,
    fineness: float,
    memory: int,
    rows: int,
    tile: int,
) -> dict[str, Any]:
    """The arguments that `screen` and `preview` share."""
    from dpmic_jax.screening import Resources

    return {
        "epsilon": epsilon,
        "delta": delta,
        "ask": parse_ask(ask),
        "records_per_person": records_per_person,
        "statistic": parse_statistic(cells, fineness),
        "resources": Resources(memory=memory * 2**20, rows=rows, tile=tile),
    }


def _devices(count: int) -> Any:
    """The first `count` devices; for one device none, so that a small table may be scored in NumPy.

    A screen whose devices are named always uses the compiled programs.
    """
    if count == 1:
        return ()
    import jax

    available = jax.devices()
    if count > len(available):
        raise ValueError(
            f"expected --devices of at most {len(available)}, the devices of this machine, got "
            f"{count}"
        )
    return available[:count]


def _client(address: str | None) -> Any:
    from contextlib import nullcontext

    if address is None:
        return nullcontext()
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("--dask needs dask: pip install 'dpmic_jax[dask]'") from None
    return Client(address)


def _draw(result: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    result.plot.heatmap()
    plt.savefig(path, dpi=150, bbox_inches="tight")
