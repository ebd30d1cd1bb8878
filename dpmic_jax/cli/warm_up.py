"""`dpmic warm-up`: compile the programs of a screen ahead of time."""

import os
import time
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes, print_seconds
from dpmic_jax.cli.options import CELLS, FINENESS, parse_ask, parse_statistic


@click.command("warm-up")
@click.option(
    "--records",
    "-n",
    type=click.IntRange(4),
    default=20_000,
    show_default=True,
    help="Number of records.",
)
@click.option(
    "--columns", type=click.IntRange(2), default=12, show_default=True, help="Number of columns."
)
@click.option(
    "--epsilon", type=float, default=1.0, show_default=True, help="Epsilon of the whole screen."
)
@click.option("--ask", default="all", show_default=True, help="Query: all, top:20 or above:0.3:10.")
@CELLS
@FINENESS
def warm_up(
    records: int, columns: int, epsilon: float, ask: str, cells: float | None, fineness: float
) -> None:
    """Compile the programs of a screen ahead of time.

    Later runs of `dpmic screen` with the same options find them in the cache, on the same kind of
    processor and with the same version of JAX. The command screens random numbers; it reads no
    data.

    The cache is the folder dpmic_jax in $XDG_CACHE_HOME or ~/.cache, or the folder
    JAX_COMPILATION_CACHE_DIR. JAX_ENABLE_COMPILATION_CACHE=false disables it.
    """
    started = time.perf_counter()
    with exit_codes():
        from dpmic_jax.mic.compilation_cache import enable_compilation_cache

        folder = _writable(enable_compilation_cache())
        before = _programs(folder)
        _screen_random_table(records, columns, epsilon, ask, cells, fineness)
        after = _programs(folder)
        names = ", ".join(sorted({name.split("-")[0] for name in after - before}))
        click.echo(f"Compiled {len(after - before)} programs: {names or 'all were cached'}")
        click.echo(f"Cached in {folder}, {len(after)} in total")
        print_seconds(started)


def _writable(folder: str | None) -> Path:
    if folder is None:
        raise ValueError("the compilation cache is disabled; set JAX_ENABLE_COMPILATION_CACHE=true")
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} is not writable; choose another XDG_CACHE_HOME")
    return Path(folder)


def _programs(folder: Path) -> set[str]:
    # JAX names an entry after its program and a digest: jit_count-...-cache.
    return {path.name for path in folder.glob("*-cache")}


def _screen_random_table(
    records: int, columns: int, epsilon: float, ask: str, cells: float | None, fineness: float
) -> None:
    """Screen random numbers, which compiles exactly the programs that a screen uses.

    The device is named because a small table is otherwise scored in NumPy, without programs that
    larger tables of the same padded shape need.
    """
    import jax
    import numpy as np

    from dpmic_jax.dp.rng.keys import secret_key
    from dpmic_jax.screening import screen

    values = np.random.default_rng(0).random((columns, records))
    names = [f"c{number}" for number in range(columns)]
    screen(
        dict(zip(names, values, strict=True)),
        bounds=dict.fromkeys(names, (0.0, 1.0)),
        epsilon=epsilon,
        ask=parse_ask(ask),
        key=secret_key(),
        statistic=parse_statistic(cells, fineness),
        devices=jax.devices()[:1],
    )
