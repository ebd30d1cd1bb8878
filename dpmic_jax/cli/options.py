"""Options that several commands share, and the objects that they stand for."""

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.errors import exit_codes

DEMO = "demo"

Decorator = Callable[[Any], Any]


def combine(*options: Decorator) -> Decorator:
    """One decorator that adds several options, which the help lists in this order."""

    def decorate(command: Any) -> Any:
        # The decorator applied last comes first in the help.
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def or_query(name: str, *, required: bool) -> Decorator:
    """Options --db and --sql; the command gets their query in place of the path `name`."""

    def decorate(command: Any) -> Any:
        @wraps(command)
        def with_table(*, db: str | None, sql: str | None, **options: Any) -> Any:
            table, place = options[name], name.upper() if required else f"--{name}"
            if (db is None) != (sql is None):
                raise click.UsageError("--db and --sql belong together.")
            if table is not None and db is not None:
                raise click.UsageError(f"--db and --sql exclude {place}.")
            if required and table is None and db is None:
                raise click.UsageError(f"Missing argument '{place}', or --db and --sql.")
            return command(**{**options, name: _query(db, sql) or table})

        return _DATABASE(with_table)

    return decorate


def _query(db: str | None, sql: str | None) -> Any:
    from dpmic_jax.data.source.query import Query

    if db is None or sql is None:
        return None
    with exit_codes():
        return Query(db, sql)


_DATABASE = combine(
    click.option(
        "--db",
        help="Database to query instead: duckdb:FILE or postgresql://HOST/DATABASE. Its password "
        "comes from PGPASSWORD, ~/.pgpass or a service file.",
    ),
    click.option("--sql", help="SELECT whose records are the table, for --db."),
)
# The command gets `table`, a path or a query.
TABLE = combine(
    click.argument("table", type=click.Path(), required=False), or_query("table", required=True)
)
BOUNDS = click.option("--bounds", type=click.Path(), help="Bounds file of the table.")
DELTA = click.option(
    "--delta", type=float, default=0.0, show_default=True, help="Delta of (epsilon, delta)-DP."
)
RECORDS_PER_PERSON = click.option(
    "--records-per-person",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Largest number of records of one person. It is not checked, unless the bounds file has "
    "person = a column of ids, and then is taken from there.",
)
LEDGER = click.option("--ledger", type=click.Path(), help="Ledger to charge.")
SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Seed of a reproducible run. Not for release: whoever guesses it can remove the noise.",
)
CELLS = click.option(
    "--cells",
    "-B",
    type=float,
    show_default="tuned",
    help="Largest number of cells in a grid.",
)
FINENESS = click.option(
    "--fineness",
    "-c",
    type=float,
    default=5,
    show_default=True,
    help="Master bins for each bin of a grid (c in the papers); used with --cells.",
)
BETA = click.option(
    "--beta",
    type=float,
    default=0.025,
    show_default=True,
    help="Failure probability of the max-information bound, such as half of a later test's alpha.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
STATEMENT = click.option(
    "--statement", is_flag=True, help="Print the whole privacy statement, for a publication."
)
# Of a run that may be charged, interrupted and resumed.
RUN = combine(
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="Folder of the run. Repeat the command to resume an interrupted run.",
    ),
    LEDGER,
    SEED,
)
# Of a plan, which reads no table.
COLUMNS = click.option(
    "--columns", type=click.IntRange(2), help="Number of columns, if there is no bounds file."
)
COLUMNS_OF = click.option(
    "--columns-of",
    type=click.Path(),
    help="Table with the columns that patterns of the bounds file stand for; only names are read.",
)
SIZE = combine(
    click.option(
        "--records", "-n", type=click.IntRange(4), required=True, help="Number of records."
    ),
    COLUMNS,
)


def parse_key(seed: int | None) -> Any:
    """A new secret key, or the key of a seed, with a warning."""
    from dpmic_jax.dp.rng.keys import secret_key, seeded_key

    if seed is None:
        return secret_key()
    click.echo("Warning: seeded: not for release.", err=True)
    return seeded_key(seed)


def parse_names(text: str | None) -> tuple[str, ...]:
    """Column names, separated by commas; a name with a comma is in double quotes, as in CSV."""
    if text is None:
        return ()
    try:
        return tuple(next(csv.reader([text], strict=True)) or [""])
    except csv.Error as error:
        raise ValueError(f"expected names separated by commas, got {text!r}: {error}") from None


def parse_ask(text: str) -> Any:
    """The query in all, top:K, above:THRESHOLD:AT_MOST, against:COLUMN or between:A,B/C,D.

    The pairs that top and above select from may follow, as in top:K:against:COLUMN.
    """
    from dpmic_jax.screening import Above, TopK

    kind, _, rest = text.partition(":")
    try:
        if kind == "top":
            k, _, group = rest.partition(":")
            return TopK(int(k), candidates=_parse_group(group or "all"))
        if kind == "above" and rest.count(":"):
            threshold, at_most, group = f"{rest}:".split(":", 2)
            candidates = _parse_group(group.removesuffix(":") or "all")
            return Above(float(threshold), int(at_most), candidates=candidates)
        return _parse_group(text)
    except NoQueryError:
        pass
    except ValueError as error:
        raise ValueError(f"--ask {text}: {error}") from None
    raise ValueError(
        "expected --ask as all, top:20, above:0.3:10, against:age or between:a,b/c,d, or as "
        f"top:20:against:age, got {text!r}"
    )


class NoQueryError(ValueError):
    """A text is not a query."""


def _parse_group(text: str) -> Any:
    """The pairs in all, against:COLUMN or between:A,B/C,D."""
    from dpmic_jax.screening import Against, AllPairs, Between

    kind, _, rest = text.partition(":")
    if text == "all":
        return AllPairs()
    if kind == "between" and rest.count("/") == 1:
        a, b = rest.split("/")
        return Between(parse_names(a), parse_names(b))
    if kind == "against" and rest:
        return Against(rest)
    raise NoQueryError


def parse_statistic(cells: float | None, fineness: float) -> Any:
    """MICr with B cells and fineness c, or the rule that chooses both if B is not given."""
    from dpmic_jax.mic.grids import ladder
    from dpmic_jax.mic.statistics import MICr
    from dpmic_jax.screening import default_screen_statistic

    return (
        default_screen_statistic if cells is None else MICr(B=cells, c=fineness, sizes=ladder(1.25))
    )


def parse_table(table: Any, bounds: Any) -> tuple[Any, Any]:
    """A path or a query, and its bounds; "demo" is the table that comes with the package."""
    if table == DEMO:
        from dpmic_jax.data.demo import demo

        data = demo()
        return data.columns, bounds or data.bounds
    if bounds is None:
        raise ValueError(
            "expected --bounds: a file with the public bounds of the columns; "
            "`dpmic bounds template` writes a template"
        )
    return table, bounds


def parse_schema(bounds: str, columns_of: str | None) -> Any:
    """The schema of a bounds file, for a command that reads no table."""
    from dpmic_jax.data.schema import read_schema

    schema = read_schema(bounds)
    if columns_of is not None:
        from dpmic_jax.data.source import column_names

        schema = schema.for_columns(column_names(columns_of, schema.text))
    if schema.patterns:
        raise ValueError(
            f"{bounds} has a pattern, {schema.patterns[0][0]!r}: add --columns-of TABLE, of which "
            "only the names of the columns are read"
        )
    return schema


def text_options(name: str) -> Decorator:
    """Options for how a text file is written, which go before the [file] table of the bounds file.

    The command gets a schema in place of the bounds file `name` if one of them is given.
    """

    def decorate(command: Any) -> Any:
        @wraps(command)
        def with_text(**options: Any) -> Any:
            given = _given_text(options)
            if given and options[name] is not None:
                with exit_codes():
                    from dpmic_jax.data.schema import read_schema

                    schema = read_schema(options[name])
                    options[name] = replace(schema, text=replace(schema.text, **given))
            return command(**options)

        return _TEXT(with_text)

    return decorate


def text_format(command: Any) -> Any:
    """The same options, of a command that has no bounds file: it gets `text`, a `TextFormat`."""

    @wraps(command)
    def with_text(**options: Any) -> Any:
        with exit_codes():
            from dpmic_jax.data.schema import TextFormat

            text = TextFormat(**_given_text(options))
        return command(text=text, **options)

    return _TEXT(with_text)


def _given_text(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a `TextFormat` that were given, which are taken out of the options."""
    names = "delimiter", "decimal", "encoding", "missing"
    found = {name: options.pop(name) for name in names}
    return {name: value for name, value in found.items() if value not in (None, ())}


_TEXT = combine(
    click.option("--delimiter", help="Character between the values of a text file, such as ';'."),
    click.option("--decimal", help="Decimal mark of its numbers."),
    click.option("--encoding", help="Its encoding, such as cp1252.  [default: utf-8]"),
    click.option(
        "--missing", multiple=True, help="Text that means a missing value in it. May be repeated."
    ),
)


def check_columns(bounds: str | None, columns: int | None) -> None:
    """Refuse a plan that has both a bounds file and a number of columns, or neither."""
    if (bounds is None) == (columns is None):
        raise ValueError("expected either --bounds, a bounds file, or --columns, a number")


def check_picture(option: str, path: Path, out: Path | None) -> None:
    """Refuse a picture that cannot be drawn, before anything is charged."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError(f"{option} needs matplotlib: pip install 'dpmic_jax[plot]'") from None
    mpl.use("Agg")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"expected {option} to end in {', '.join(sorted(known))}, got {path}")
    # The folder of the run is created with the run, so the picture may go there.
    if path.is_dir() or not (path.parent.is_dir() or path.parent == out):
        raise ValueError(f"expected {option} to be a file in an existing folder, got {path}")
