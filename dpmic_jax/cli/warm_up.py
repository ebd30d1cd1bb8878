"""`dpmic warm-up`: compile now what screens will need."""

import os
import time
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes, tell_seconds
from dpmic_jax.cli.options import CELLS, FINENESS, the_ask, the_statistic


@click.command("warm-up")
@click.option(
    "--records", "-n", type=click.IntRange(4), default=20_000, show_default=True, help="How many."
)
@click.option("--columns", type=click.IntRange(2), default=12, show_default=True, help="How many.")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Of a whole screen.")
@click.option("--ask", default="all", show_default=True, help="all, top:20 or above:0.3:10.")
@CELLS
@FINENESS
def warm_up(
    records: int, columns: int, epsilon: float, ask: str, cells: float | None, fineness: float
) -> None:
    """Compile the programs of a screen, and keep them for later ones.

    They are those of `dpmic screen` with the same options, on this kind of processor and with this
    version of JAX. A made-up table is screened; no data are read.

    Programs are kept where all commands keep them: in dpmic_jax in $XDG_CACHE_HOME or ~/.cache, or
    in JAX_COMPILATION_CACHE_DIR. JAX_ENABLE_COMPILATION_CACHE=false keeps none.
    """
    started = time.perf_counter()
    with exit_codes():
        from dpmic_jax.mic.compilation_cache import enable_compilation_cache

        folder = _writable(enable_compilation_cache())
        before = _programs(folder)
        _screen_anything(records, columns, epsilon, ask, cells, fineness)
        after = _programs(folder)
        new = sorted({name.split("-")[0] for name in after - before})
        click.echo(f"Compiled {len(after - before)} programs: {', '.join(new) or 'all were there'}")
        click.echo(f"Kept in {folder}, {len(after)} in all")
        tell_seconds(started)


def _writable(folder: str | None) -> Path:
    if folder is None:
        raise ValueError("JAX's cache is switched off: expected JAX_ENABLE_COMPILATION_CACHE=true")
    if os.path.isdir(folder) and not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} may not be written to; choose another XDG_CACHE_HOME")
    return Path(folder)


def _programs(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*-cache")}


def _screen_anything(
    records: int, columns: int, epsilon: float, ask: str, cells: float | None, fineness: float
) -> None:
    """The real machinery, so that its programs are the right ones whatever they are.

    On a named device, since a table this small may need none where others on its rungs do.
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
        ask=the_ask(ask),
        key=secret_key(),
        statistic=the_statistic(cells, fineness),
        devices=jax.devices()[:1],
    )
