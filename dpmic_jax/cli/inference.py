"""`dpmic test` and `dpmic units`: tests after selection, and epsilon in other units."""

import json
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.cli.options import (
    BETA,
    BOUNDS,
    CELLS,
    DELTA,
    FINENESS,
    JSON,
    TABLE,
    parse_table,
    text_options,
)

_MICE, _MICR = "mice", "micr"
_NO_NOISE = 10.0  # largest epsilon in the table of tuned defaults: the least noise it knows
_USEFUL_LEVEL = 0.001  # the smallest p-value of a test with 999 draws


@click.command()
@click.argument("result", type=click.Path(path_type=Path, dir_okay=False))
@TABLE
@BOUNDS
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Error rate to control.")
@click.option(
    "--test",
    type=click.Choice([_MICE, _MICR]),
    default=_MICR,
    show_default=True,
    help="mice: simulated null distribution, for columns without ties. micr: permutations.",
)
@CELLS
@FINENESS
@click.option(
    "--draws",
    type=click.IntRange(1),
    default=9999,
    show_default=True,
    help="Draws from the null distribution, or permutations.",
)
@click.option(
    "--share",
    is_flag=True,
    help="Control the false discovery rate, not the family-wise error rate.",
)
@click.option(
    "--candidates",
    is_flag=True,
    help="Correct for all candidate pairs of the screen, not by max-information.",
)
@click.option(
    "--ledger", type=click.Path(), help="Ledger of other releases that influenced the selection."
)
@click.option("--top", type=click.IntRange(1), help="Test only this many of the strongest pairs.")
@click.option("--force", is_flag=True, help="Test even if no data could be called dependent.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the draws.",
)
@text_options("bounds")
@JSON
def test(
    result: Path,
    table: Any,
    *,
    bounds: Any,
    alpha: float,
    test: str,
    cells: float | None,
    fineness: float,
    draws: int,
    share: bool,
    candidates: bool,
    ledger: str | None,
    top: int | None,
    force: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Test the pairs that a screen selected on the same TABLE.

    The p-values are not private, and not for release. RESULT is the result.json in the folder of a
    run. TABLE is the table that was screened, or "demo".
    """
    with exit_codes():
        cache_compiled_programs()
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

        def test_for(n: int) -> IndependenceTest:
            own = {} if cells is None else {"B": cells, "c": fineness, "sizes": ladder(1.25)}
            if test == _MICE:
                return NullTable(statistic=MICe(**own), draws=draws)
            statistic = MICr(**own) if own else default_screen_statistic(n, _NO_NOISE)
            return Permutation(statistic=statistic, draws=draws)

        released = ScreenResult.from_json(result)
        data, public = parse_table(table, bounds)
        found = post_selection(
            released if top is None else released.top(top),
            data,
            bounds=public,
            test=test_for(released.statement.n),
            key=seeded_key(seed),
            alpha=alpha,
            control=FalseDiscovery() if share else FamilyWise(),
            guard=Bonferroni() if candidates else MaxInformationCorrection(),
            prior_events=() if ledger is None else LedgerFile.open(ledger).events,
            force=force,
        )
        click.echo(found.to_json() if as_json else repr(found))


@click.command()
@click.option("--epsilon", type=float, required=True, help="Epsilon of all releases.")
@DELTA
@click.option("--records", "-n", type=click.IntRange(1), required=True, help="Number of records.")
@BETA
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Alpha of later tests.")
@JSON
def units(
    *, epsilon: float, delta: float, records: int, beta: float, alpha: float, as_json: bool
) -> None:
    """Convert epsilon to other units and to a level for tests."""
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
                f"A test that is chosen by these releases and run on the same records has an error "
                f"of at most {alpha:g} if it rejects at p <= {left.level:.3g} ({left.theorem})."
            )
        if left.level < _USEFUL_LEVEL < alpha:
            most = largest_epsilon(_USEFUL_LEVEL, n=records, alpha=alpha)
            click.echo(
                "This level is too small for most tests. Test on other records, or use an epsilon "
                f"of at most {most:.2g}, which leaves p <= {_USEFUL_LEVEL:g}."
            )
