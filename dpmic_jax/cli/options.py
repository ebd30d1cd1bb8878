"""Options that several commands share, and what they stand for."""

from pathlib import Path
from typing import Any

import click

DEMO = "demo"
SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Repeat a run. Whoever guesses the seed takes the noise off: not for release.",
)

CELLS = click.option("--cells", "-B", type=float, help="Cells a grid; else a tuned number.")
FINENESS = click.option("--fineness", "-c", type=float, default=5, show_default=True)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def parse_key(seed: int | None) -> Any:
    """A secret key, or the seed's, with a warning."""
    from dpmic_jax.dp.rng.keys import secret_key, seeded_key

    if seed is None:
        return secret_key()
    click.echo("Warning: seeded: not for release.", err=True)
    return seeded_key(seed)


def the_ask(text: str) -> Any:
    """all, top:K, above:THRESHOLD:AT_MOST, against:COLUMN or between:A,B/C,D."""
    from dpmic_jax.screening import Above, Against, AllPairs, Between, TopK

    kind, _, rest = text.partition(":")
    try:
        if kind == "all" and not rest:
            return AllPairs()
        if kind == "top":
            return TopK(int(rest))
        if kind == "above" and rest.count(":") == 1:
            threshold, at_most = rest.split(":")
            return Above(float(threshold), int(at_most))
        if kind == "between" and rest.count("/") == 1:
            a, b = rest.split("/")
            return Between(tuple(a.split(",")), tuple(b.split(",")))
        if kind == "against" and rest:
            return Against(rest)
    except ValueError as error:
        raise ValueError(f"--ask {text}: {error}") from None
    raise ValueError(
        f"expected --ask as all, top:20, above:0.3:10, against:age or between:a,b/c,d, got {text!r}"
    )


def the_statistic(cells: float | None, fineness: float) -> Any:
    """MICr of these cells and fineness, or the rule that finds them."""
    from dpmic_jax.mic.grids import ladder
    from dpmic_jax.mic.statistics import MICr
    from dpmic_jax.screening import default_screen_statistic

    return (
        default_screen_statistic if cells is None else MICr(B=cells, c=fineness, sizes=ladder(1.25))
    )


def the_table(table: str, bounds: str | None) -> tuple[Any, Any]:
    """A table and what is public about it; "demo" is the one that comes with the package."""
    if table == DEMO:
        from dpmic_jax.data.demo import demo

        data = demo()
        return data.columns, bounds or data.bounds
    if bounds is None:
        raise ValueError(
            "expected --bounds: a file with the public bounds of the columns; "
            f"`dpmic bounds template {table}` writes one to fill in"
        )
    return table, bounds


def check_picture(option: str, path: Path, out: Path | None) -> None:
    """Refuse a picture that cannot be drawn before anything is charged."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError(f"{option} needs matplotlib: pip install 'dpmic_jax[plot]'") from None
    mpl.use("Agg")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"expected {option} to end in {', '.join(sorted(known))}, got {path}")
    if path.is_dir() or not (path.parent.is_dir() or path.parent == out):
        raise ValueError(f"expected {option} to be a file in a folder that is there, got {path}")
