"""`dpmic screen` and `dpmic plan`: the main job, and what it will cost and can show."""

import json
import time
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.errors import exit_codes, tell_seconds
from dpmic_jax.cli.kept import keep_compiled_programs
from dpmic_jax.cli.ledger import RECORDS
from dpmic_jax.cli.options import (
    CELLS,
    FINENESS,
    JSON,
    SEED,
    check_picture,
    parse_key,
    the_ask,
    the_statistic,
    the_table,
)


def _shared(command: Any) -> Any:
    """The options that a screen and its plan have in common."""
    options = (
        click.option("--epsilon", type=float, required=True, help="Of the whole screen."),
        click.option("--delta", type=float, default=0.0, show_default=True),
        click.option(
            "--ask",
            default="all",
            show_default=True,
            help="all, top:20, above:0.3:10, against:age or between:a,b/c,d.",
        ),
        click.option("--bounds", type=click.Path(), help="The bounds file."),
        RECORDS,
        CELLS,
        FINENESS,
        click.option(
            "--memory", type=click.IntRange(1), default=1024, show_default=True, help="MB."
        ),
        click.option(
            "--rows",
            type=click.IntRange(1),
            default=2**18,
            show_default=True,
            help="Read at a time.",
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
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("table", type=click.Path())
@_shared
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder: resume from it.")
@click.option("--ledger", type=click.Path(), help="A ledger to charge.")
@SEED
@click.option("--dask", help="Address of a Dask scheduler, such as tcp://host:8786.")
@click.option("--devices", type=click.IntRange(1), default=1, show_default=True, help="How many.")
@click.option("--heatmap", type=click.Path(path_type=Path), help="A picture to draw.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Rows to show.")
def screen(
    table: str,
    *,
    bounds: str | None,
    as_json: bool,
    out: Path | None,
    ledger: str | None,
    seed: int | None,
    dask: str | None,
    devices: int,
    heatmap: Path | None,
    top: int,
    **asked: Any,
) -> None:
    """Screen TABLE privately: which columns depend on each other?

    TABLE is a CSV or Parquet file, or "demo", the table that comes with the package.
    """
    started = time.perf_counter()
    with exit_codes():
        keep_compiled_programs()
        from dpmic_jax.screening import preview
        from dpmic_jax.screening import screen as run

        data, public = the_table(table, bounds)
        settings = _settings(**asked)
        if heatmap is not None:
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
                **settings,
            )
        if out is not None:
            result.to_csv(out / "result.csv")
        if heatmap is not None:
            _draw(result, heatmap)
        if as_json:
            expected = preview(columns=result.names, n=result.statement.n, **settings)
            click.echo(json.dumps({**result.to_dict(), "plan": dict(expected.lines())}))
        else:
            click.echo(f"{result.text(top)}\n{result.statement.text()}")
        tell_seconds(started)


@click.command()
@_shared
@click.option("--records", "-n", type=click.IntRange(4), required=True, help="How many.")
@click.option("--columns", type=click.IntRange(2), help="How many, without a bounds file.")
def plan(
    *, bounds: str | None, as_json: bool, records: int, columns: int | None, **asked: Any
) -> None:
    """Say what a screen will cost and can show. No data is read."""
    with exit_codes():
        keep_compiled_programs()
        from dpmic_jax.data.schema import read_schema
        from dpmic_jax.screening import preview

        if (bounds is None) == (columns is None):
            raise ValueError("expected --bounds with the columns' names, or --columns, how many")
        names = columns or [name for name, _ in read_schema(bounds or "").columns]
        settings = _settings(**asked)
        found = preview(columns=names, n=records, **settings)
        click.echo(json.dumps(dict(found.lines())) if as_json else str(found))


def _settings(
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
        "ask": the_ask(ask),
        "records_per_person": records_per_person,
        "statistic": the_statistic(cells, fineness),
        "resources": Resources(memory=memory * 2**20, rows=rows, tile=tile),
    }


def _devices(count: int) -> Any:
    """None are chosen for one: the screen knows best where a small table is worked on."""
    if count == 1:
        return ()
    import jax

    there = jax.devices()
    if count > len(there):
        raise ValueError(f"expected --devices of at most {len(there)}, which there are")
    return there[:count]


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
