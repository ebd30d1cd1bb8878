"""`dpmic test` and `dpmic units`: tests on what a screen selected, and what epsilon means."""

import json
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.kept import keep_compiled_programs
from dpmic_jax.cli.ledger import BETA
from dpmic_jax.cli.options import CELLS, FINENESS, JSON, the_table

_MICE, _MICR = "mice", "micr"
_NO_NOISE = 10.0  # the largest epsilon of the tuned table: its statistic for exact values
_WORTH_HAVING = 0.001  # a level that 1000 draws reach


@click.command()
@click.argument("result", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("table", type=click.Path())
@click.option("--bounds", type=click.Path(), help="The bounds file of the screen.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="The error allowed.")
@click.option(
    "--test",
    type=click.Choice([_MICE, _MICR]),
    default=_MICR,
    show_default=True,
    help="mice: its null law, for columns without ties. micr: permutations, for any.",
)
@CELLS
@FINENESS
@click.option("--draws", type=click.IntRange(1), default=9999, show_default=True)
@click.option(
    "--share",
    is_flag=True,
    help="Allow a share alpha of false discoveries, not a chance alpha of any.",
)
@click.option(
    "--candidates",
    is_flag=True,
    help="Count all pairs that were looked at as tested, in place of the correction by privacy.",
)
@click.option("--ledger", type=click.Path(), help="Whose other releases had a say in the choice.")
@click.option("--top", type=click.IntRange(1), help="Test the strongest so many pairs only.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@JSON
def test(
    result: Path,
    table: str,
    *,
    bounds: str | None,
    alpha: float,
    test: str,
    cells: float | None,
    fineness: float,
    draws: int,
    share: bool,
    candidates: bool,
    ledger: str | None,
    top: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Test the pairs of a screen's RESULT on the same TABLE. Not private: not for release.

    RESULT is the result.json of a run's folder; TABLE the table that was screened, or "demo".
    """
    with exit_codes():
        keep_compiled_programs()
        from dpmic_jax.dp.ledger.file import LedgerFile
        from dpmic_jax.dp.rng.keys import seeded_key
        from dpmic_jax.inference import (
            Bonferroni,
            FalseDiscovery,
            FamilyWise,
            IndependenceTest,
            MaxInformationCorrection,
            NullTable,
            Permutation,
            post_selection,
        )
        from dpmic_jax.mic.grids import ladder
        from dpmic_jax.mic.statistics import MICe, MICr
        from dpmic_jax.results import ScreenResult
        from dpmic_jax.screening import default_screen_statistic

        def made(n: int) -> IndependenceTest:
            own = {} if cells is None else {"B": cells, "c": fineness, "sizes": ladder(1.25)}
            if test == _MICE:
                return NullTable(statistic=MICe(**own), draws=draws)
            statistic = MICr(**own) if own else default_screen_statistic(n, _NO_NOISE)
            return Permutation(statistic=statistic, draws=draws)

        released = ScreenResult.from_json(result)
        data, public = the_table(table, bounds)
        found = post_selection(
            released if top is None else released.top(top),
            data,
            bounds=public,
            test=made(released.statement.n),
            key=seeded_key(seed),
            alpha=alpha,
            control=FalseDiscovery() if share else FamilyWise(),
            guard=Bonferroni() if candidates else MaxInformationCorrection(),
            prior_events=() if ledger is None else LedgerFile.open(ledger).events,
        )
        click.echo(found.to_json() if as_json else repr(found))


@click.command()
@click.option("--epsilon", type=float, required=True, help="Of all that is released.")
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option("--records", "-n", type=click.IntRange(1), required=True, help="How many.")
@BETA
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Of tests later on.")
@JSON
def units(
    *, epsilon: float, delta: float, records: int, beta: float, alpha: float, as_json: bool
) -> None:
    """Say what an epsilon means in other units, and what level it leaves for tests."""
    with exit_codes():
        from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP
        from dpmic_jax.dp.conversions import of_guarantee
        from dpmic_jax.dp.max_information import corrected_level, largest_epsilon

        spent = ApproximateDP(epsilon, delta) if delta else PureDP(epsilon)
        found = of_guarantee(spent, n=records, delta=delta, beta=beta)
        left = corrected_level(alpha, spent, n=records)
        if as_json:
            click.echo(json.dumps({**vars(found), "alpha": alpha, "level": left.level}))
            return
        click.echo(found)
        if left.level:
            click.echo(
                f"A test chosen by these releases, on the same records, may reject at p <= "
                f"{left.level:.3g} and errs with a chance of at most {alpha:g} ({left.theorem})."
            )
        if left.level < _WORTH_HAVING < alpha:
            most = largest_epsilon(_WORTH_HAVING, n=records, alpha=alpha)
            click.echo(
                "That leaves hardly a test on the same records: test on others, or spend an "
                f"epsilon of {most:.2g} or less, which leaves p <= {_WORTH_HAVING:g}."
            )
