"""`dpmic report`: a run's result as one HTML page, with private histograms of chosen pairs."""

import hashlib
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.kept import keep_compiled_programs
from dpmic_jax.cli.options import SEED, parse_key, the_table

Pairs = list[tuple[str, str]]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="The page; else report.html beside the result."
)
@click.option("--top", type=click.IntRange(1), help="Show the strongest so many pairs only.")
@click.option(
    "--histogram",
    "wanted",
    multiple=True,
    help="Two columns, such as age,dose, to buy a private histogram of. May be given again.",
)
@click.option("--data", type=click.Path(), help="The table that was screened, for histograms.")
@click.option("--bounds", type=click.Path(), help="Its bounds file.")
@click.option("--epsilon", type=float, help="Of all histograms together.")
@click.option("--ledger", type=click.Path(), help="A ledger to charge for histograms.")
@SEED
def report(
    run: Path,
    *,
    out: Path | None,
    top: int | None,
    wanted: tuple[str, ...],
    data: str | None,
    bounds: str | None,
    epsilon: float | None,
    ledger: str | None,
    seed: int | None,
) -> None:
    """Write the result of RUN as one HTML page that works offline.

    RUN is the folder of a screen that is done, or its result.json. The page costs nothing. Each
    --histogram is bought from --data with --epsilon, which all of them share, as one event of its
    own: checked, charged to the ledger, and only then computed. Histograms are kept beside the
    result: the same command shows them again, and goes on if it was interrupted, for one charge.
    """
    with exit_codes():
        from dpmic_jax.results import ScreenResult

        source = run / "result.json" if run.is_dir() else run
        if not source.is_file():
            raise FileNotFoundError(
                f"there is no result at {source}; `dpmic screen --out` makes one, once it is done"
            )
        out = source.with_name("report.html") if out is None else out
        _check_free(out)
        result = ScreenResult.from_json(source)
        histograms = ()
        if wanted:
            keep_compiled_programs()
            from dpmic_jax.data.schema import schema_of
            from dpmic_jax.screening import release_histograms

            if data is None or epsilon is None:
                raise ValueError("expected --data and --epsilon, to buy each --histogram with")
            pairs = [_pair(text, result.names) for text in wanted]
            table, public = the_table(data, bounds)
            histograms = (
                release_histograms(
                    result,
                    table,
                    pairs=pairs,
                    bounds=public,
                    epsilon=epsilon,
                    key=parse_key(seed),
                    ledger=ledger,
                    out=_folder(source, pairs, epsilon, seed, schema_of(public)),
                ),
            )
        elif (data, bounds, epsilon, ledger, seed) != (None,) * 5:
            raise ValueError(
                "expected --histogram with --data, --bounds, --epsilon, --ledger and --seed: the "
                "page itself needs none of them"
            )
        shown = result if top is None else result.top(top)
        shown.to_html(out, histograms=histograms)
        click.echo(out)


def _folder(source: Path, *asked: object) -> Path:
    """Where these histograms are kept: beside the result, so that they are paid for once."""
    told = hashlib.sha256(repr(asked).encode("utf-8", "backslashreplace")).hexdigest()
    return source.with_name(f"histograms-{told[:12]}")


def _pair(text: str, names: tuple[str, ...]) -> tuple[str, str]:
    """Two names with a comma between them; names may have commas, too."""
    parts = text.split(",")
    cuts = ((",".join(parts[:k]), ",".join(parts[k:])) for k in range(1, len(parts)))
    found = [(x, y) for x, y in cuts if x in names and y in names and x != y]
    if len(found) != 1:
        raise ValueError(
            f"expected --histogram as two columns of the result, such as "
            f"{names[0]},{names[1]}, got {text!r}"
        )
    return found[0]


def _check_free(out: Path) -> None:
    if out.exists():
        raise FileExistsError(f"{out} is there already; choose another --out")
    if not out.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {out.parent}; make it, or choose another --out"
        )
