"""`dpmic report`: the result of a run as an HTML page, with private histograms of chosen pairs."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    BOUNDS,
    LEDGER,
    SEED,
    or_query,
    parse_key,
    parse_table,
    text_options,
)

if TYPE_CHECKING:
    from dpmic_jax.results import ScreenResult
    from dpmic_jax.results.power_curve import PowerCurve


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="report.html beside the result",
    help="File to write.",
)
@click.option("--top", type=click.IntRange(1), help="Show only this many of the strongest pairs.")
@click.option(
    "--histogram",
    "wanted",
    multiple=True,
    help="Release a private histogram of two columns, such as age,dose. May be repeated.",
)
@click.option("--data", type=click.Path(), help="Table that was screened; needed for histograms.")
@or_query("data", required=False)
@BOUNDS
@click.option("--epsilon", type=float, help="Epsilon of all histograms together.")
@text_options("bounds")
@LEDGER
@SEED
def report(
    run: Path,
    *,
    out: Path | None,
    top: int | None,
    wanted: tuple[str, ...],
    data: Any,
    bounds: Any,
    epsilon: float | None,
    ledger: str | None,
    seed: int | None,
) -> None:
    """Write the result of RUN as a self-contained HTML page.

    RUN is the folder of a finished screen, or its result.json. The page itself costs no privacy.
    Histograms do: all of them are released from --data as one event of cost --epsilon, which is
    charged to the ledger before anything is computed. They are stored beside the result. Repeating
    the command shows them again, or resumes an interrupted release, at no further charge.
    """
    with exit_codes():
        from dpmic_jax.results import ScreenResult

        source = run / "result.json" if run.is_dir() else run
        if not source.is_file():
            raise FileNotFoundError(
                f"no result at {source}; `dpmic screen --out` writes one when it finishes"
            )
        out = source.with_name("report.html") if out is None else out
        _check_free(out)  # before histograms are charged
        result = ScreenResult.from_json(source)
        histograms = ()
        if wanted:
            cache_compiled_programs()
            from dpmic_jax.data.schema import schema_of
            from dpmic_jax.screening import release_histograms

            if data is None or epsilon is None:
                raise ValueError("expected --data and --epsilon with --histogram")
            pairs = [_pair(text, result.names) for text in wanted]
            table, public = parse_table(data, bounds)
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
                "expected --histogram with --data, --bounds, --epsilon, --ledger or --seed; the "
                "page itself needs none of them"
            )
        shown = result if top is None else result.top(top)
        shown.to_html(out, histograms=histograms, curve=curve_of_run(result))
        click.echo(out)


def curve_of_run(result: "ScreenResult") -> "PowerCurve | None":
    """What the screen would find at other epsilons; None if its event does not have its query."""
    from dpmic_jax.dp.accounting.events import Event

    if "ask" not in dict(Event.from_json(result.statement.event).settings):
        return None
    from dpmic_jax.screening.curve import curve_of  # imports JAX

    return curve_of(result)


def _folder(source: Path, *asked: object) -> Path:
    """The folder of these histograms, beside the result.

    Its name is a digest of everything that was asked for, so the same command finds it again and
    is not charged twice.
    """
    digest = hashlib.sha256(repr(asked).encode("utf-8", "backslashreplace")).hexdigest()
    return source.with_name(f"histograms-{digest[:12]}")


def _pair(text: str, names: tuple[str, ...]) -> tuple[str, str]:
    """The two columns named in X,Y. Names may contain commas, so every split is tried."""
    words = text.split(",")
    splits = ((",".join(words[:k]), ",".join(words[k:])) for k in range(1, len(words)))
    found = [(x, y) for x, y in splits if x in names and y in names and x != y]
    if len(found) != 1:
        raise ValueError(
            f"expected --histogram as two columns of the result, such as "
            f"{names[0]},{names[1]}, got {text!r}"
        )
    return found[0]


def _check_free(out: Path) -> None:
    if out.exists():
        raise FileExistsError(f"{out} already exists; choose another --out")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"no folder {out.parent}; create it, or choose another --out")
