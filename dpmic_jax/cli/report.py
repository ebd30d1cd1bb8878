"""`dpmic report`: a run's result as one HTML page, with private histograms of chosen pairs."""

import hashlib
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.exits import answered
from dpmic_jax.cli.options import SEED, the_key, the_table

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
    own: checked, charged to the ledger, and only then computed.
    """
    with answered():
        from dpmic_jax import ScreenResult

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
            if data is None or epsilon is None:
                raise ValueError("expected --data and --epsilon, to buy each --histogram with")
            pairs = [_pair(text, result.names) for text in wanted]
            table, public = the_table(data, bounds)
            histograms = (
                buy(
                    result,
                    pairs,
                    table,
                    bounds=public,
                    epsilon=epsilon,
                    key=the_key(seed),
                    ledger=ledger,
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


def buy(
    result: Any,
    pairs: Pairs,
    table: Any,
    *,
    bounds: Any,
    epsilon: float,
    key: Any,
    ledger: str | None,
) -> Any:
    """Histograms of pairs of columns of the table that a result is of: one event.

    Everything is checked, the ledger is charged, and only then is anything computed. Each of
    the histograms gets an equal part of epsilon.
    """
    from dpmic_jax import LedgerFile, MICrHistogram
    from dpmic_jax.dp.written import at_most, positive, written
    from dpmic_jax.results.bought import Histograms
    from dpmic_jax.screening.books import check_data_set
    from dpmic_jax.source import open_source
    from dpmic_jax.table import Table

    statement = result.statement
    book = None if ledger is None else LedgerFile.open(ledger)
    each = at_most(written(positive("epsilon", epsilon)) / len(pairs))
    mechanism = MICrHistogram(epsilon=each, relation=statement.relation)
    source = open_source(table, bounds)
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    for name in names:
        if name not in source.names:
            raise ValueError(f"--data has no column {name!r} with bounds; correct its name")
    if book is not None:
        check_data_set(book, source.schema)
    n = source.validate()
    if n != statement.n:
        raise ValueError(f"expected the table that was screened, of {statement.n} records, got {n}")
    mechanism.law(n)  # refuses noise that cannot be drawn
    side = mechanism.settings(n).side
    event = mechanism.event(n, count=len(pairs))
    event = replace(event, label=f"run {_run(event, pairs, key)}, report of run {statement.run}")
    receipt = book.charge(event) if book is not None else None
    columns = [_column(source, name, side) for name in names]
    found = mechanism.release_batch(
        Table(names, tuple(values for values, _ in columns)),
        pairs=pairs,
        bounds=[limits for _, limits in columns],
        key=key,
        label=event.label,
    )
    axes = {name: _axis(name, source) for name in names}
    return Histograms(
        axes=tuple((axes[x], axes[y]) for x, y in pairs),
        release=found,
        ledger=None if receipt is None else f"{receipt.ledger}#{receipt.serial}",
    )


def _run(event: Any, pairs: Pairs, key: Any) -> str:
    """Random, but for a seeded key, whose runs have to come out the same each time."""
    import jax
    import numpy as np

    from dpmic_jax import is_secret
    from dpmic_jax.dp.keys import noise_key

    if is_secret(key):
        return secrets.token_hex(16)
    words = np.asarray(jax.random.key_data(noise_key(key))).tobytes()
    # With the pairs: the same noise on two of them would cancel in a difference.
    told = words + event.digest + repr(pairs).encode("utf-8", "backslashreplace")
    return "seeded-" + hashlib.sha256(told).hexdigest()[:25]


def _column(source: Any, name: str, side: int) -> tuple[Any, tuple[float, float]]:
    """The cell of each record, as a column with bounds that give each cell a part of its own."""
    from dpmic_jax.source import cells_of

    return cells_of(source, name, side), (-0.5, side - 0.5)


def _axis(name: str, source: Any) -> Any:
    from dpmic_jax.results.bought import CategoryAxis, NumberAxis, SpareAxis
    from dpmic_jax.schema import Number, OwnBin, SparePart

    rule = source.schema[name]
    missing = isinstance(rule.missing, OwnBin)
    if isinstance(rule, Number):
        return NumberAxis(name, rule.low, rule.high, missing)
    values = tuple(map(str, rule.values))
    if isinstance(rule.missing, SparePart):
        return SpareAxis(name, values)
    return CategoryAxis(name, values, missing)


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
