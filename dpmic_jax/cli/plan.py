"""`dpmic plan`: the cost and power of a screen, forwards and backwards, without data."""

import json
from typing import TYPE_CHECKING, Any

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    COLUMNS,
    COLUMNS_OF,
    check_columns,
    combine,
    parse_names,
    parse_schema,
)
from dpmic_jax.cli.screen import SHARED, screen_settings

if TYPE_CHECKING:
    from dpmic_jax.data.schema import Schema
    from dpmic_jax.screening.planning import Plan

_TOP = "top"  # --ask without a k
_ANSWERS = {
    "epsilon": "Smallest epsilon that finds",
    "records": "Fewest records that find",
    "ask": "Largest k that finds",
}
_UNKNOWN = combine(
    click.option("--epsilon", type=float, help="Epsilon of the whole screen."),
    click.option(
        "--records",
        "-n",
        type=click.IntRange(4),
        help="Number of records; of persons with an id, their number times --records-per-person.",
    ),
    click.option(
        "--find",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        help="Solve for what finds dependences of this MIC: --epsilon or --records, whichever is "
        "left out, or the k of --ask top.",
    ),
)


@click.command()
@_UNKNOWN
@SHARED
@COLUMNS
@COLUMNS_OF
@click.option("--relative", help="Columns with rare values, as for `dpmic screen`.")
@click.option("--curve", is_flag=True, help="Show the smallest MIC found at other epsilons too.")
@click.option("--compare", is_flag=True, help="Compare the usual queries for this budget.")
def plan(
    *,
    bounds: str | None,
    as_json: bool,
    columns: int | None,
    columns_of: str | None,
    find: float | None,
    curve: bool,
    compare: bool,
    **asked: Any,
) -> None:
    """Preview the cost and power of a screen without reading data.

    \b
    Plan backwards with --find, which solves for what is left out:
      dpmic plan --columns 30 --records 20000 --find 0.2
      dpmic plan --columns 30 --epsilon 1 --find 0.2
      dpmic plan --columns 30 --records 20000 --epsilon 1 --ask top --find 0.2
    """
    if compare and (find is not None or curve):
        raise click.UsageError("--compare excludes --find and --curve.")
    unknown = _unknown(find, **asked)
    with exit_codes():
        check_columns(bounds, columns)
        from dpmic_jax.runs.relation import relation_of
        from dpmic_jax.screening import preview

        schema = parse_schema(bounds, columns_of) if bounds else None
        if schema is not None:
            relation = relation_of(schema, asked["records_per_person"])
            asked["records_per_person"] = relation.records
        described = schema or columns
        solved = {}
        if unknown is not None and find is not None:
            solved[unknown] = _solution(unknown, find, described, asked)
        settings = {"columns": described, **_settings({**asked, **solved})}
        if compare:
            click.echo(_comparison(settings, as_json=as_json))
            return
        found = preview(**settings)
        points = found.curve() if curve else None
        advice = _advice(schema, found.plan) if schema else {}
        if as_json:
            answer = {"find": find, "solution": solved} if solved else {}
            drawn = {"curve": points.to_list()} if points else {}
            click.echo(json.dumps({**answer, **dict(found.lines()), **advice, **drawn}))
            return
        for name, value in solved.items():
            click.echo(f"{_ANSWERS[name]} a MIC of {find:g}: {str(value).removeprefix('top:')}\n")
        width = max(len(what) for what, _ in found.lines())
        click.echo("\n".join([str(found), *(f"{k:<{width}}  {v}" for k, v in advice.items())]))
        if points:
            click.echo(f"\n{points.text()}")


def _advice(schema: "Schema", of: "Plan") -> dict[str, str]:
    """What may help columns of numbers that are skewed."""
    from dpmic_jax.dp.ledger.budget import Budget
    from dpmic_jax.screening.private_bounds import buying

    said = buying(schema, n=of.n, budget=Budget(of.epsilon, of.delta, of.event.relation))
    return {} if said is None else {"skewed columns": said}


def _unknown(
    find: float | None,
    *,
    epsilon: float | None,
    records: int | None,
    ask: str,
    **_: Any,
) -> str | None:
    """The option to solve for; None if there is nothing to solve for."""
    given = {"epsilon": epsilon is not None, "records": records is not None, "ask": ask != _TOP}
    left_out = [name for name, there in given.items() if not there]
    if find is None:
        if "ask" in left_out:
            raise click.UsageError("--ask top needs a k, such as top:20, or --find.")
        if left_out:
            raise click.UsageError(
                f"Missing option '--{left_out[0]}', or '--find' with a MIC to solve for it."
            )
        return None
    if len(left_out) != 1:
        raise click.UsageError(
            "--find solves for one of three: leave out --epsilon, or --records, or the k of "
            "--ask top, and give the other two."
        )
    return left_out[0]


def _settings(asked: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `preview`, without the columns."""
    rest = dict(asked)
    n, relative = rest.pop("records"), parse_names(rest.pop("relative"))
    return {"n": n, "relative": relative, **screen_settings(**rest)}


def _solution(unknown: str, find: float, columns: Any, asked: dict[str, Any]) -> float | int | str:
    """The value of the option that was left out."""
    from dpmic_jax.screening import fewest_records, largest_k, smallest_epsilon

    if unknown == "ask":
        settings = _settings({**asked, "ask": "all"})
        del settings["ask"]
        return f"top:{largest_k(find, columns=columns, **settings)}"
    settings = _settings(asked)
    if unknown == "epsilon":
        del settings["epsilon"]
        return smallest_epsilon(find, columns=columns, **settings)
    del settings["n"]
    return fewest_records(find, columns=columns, **settings)


def _comparison(settings: dict[str, Any], *, as_json: bool) -> str:
    """The usual queries and the one that was asked, for one budget."""
    from dpmic_jax.screening import preview
    from dpmic_jax.screening.comparison import compare, rows, table, usual_asks

    names, ask = preview(**settings).plan.names, settings.pop("ask")
    usual = usual_asks(names)
    found = compare(usual if ask in usual else (ask, *usual), **settings)
    return json.dumps({"compare": rows(found)}) if as_json else table(found)
