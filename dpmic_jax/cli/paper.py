"""`dpmic paper`: the experiments of the MIC paper, beside those of this package."""

import json
from pathlib import Path
from typing import Any

import click

from dpmic_jax.cli.compilation import cache_compiled_programs
from dpmic_jax.cli.errors import exit_codes
from dpmic_jax.runs import stage

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
OUT = click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for results and intermediate files. Repeat the command to resume.",
)
QUICK = click.option("--quick", is_flag=True, help="Fewer draws: less accurate, in minutes.")
DATA = click.option(
    "--data",
    type=FOLDER,
    show_default="$DPMIC_DATA or ../shared/data",
    help="Folder with baseball.csv and Spellman.csv.",
)


@click.group()
def paper() -> None:
    """Reproduce the tables and figures of the MIC paper."""


@paper.command()
@click.option("--out", type=FILE, required=True, help="JSON file to write.")
def family(out: Path) -> None:
    """Compute the 189 distributions and their MIC*. Takes a few minutes."""
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper.family import computed

        _write(out, computed())


@paper.command()
@OUT
@QUICK
def tune(out: Path, quick: bool) -> None:
    """Find the best B, c and sizes for every n and epsilon.

    Takes hours, or 5 minutes with --quick. The table is OUT/tuned.json; this command made the one
    that comes with the package.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper import tuning
        from dpmic_jax.paper.select_defaults import tuned
        from dpmic_jax.paper.store import Store

        stage.begun(resume=out)
        search = tuning.QUICK if quick else tuning.FULL
        command = "dpmic paper tune" + (" --quick" if quick else "")
        table = tuned(search, Store(out / "parts", search.description()), command)
        _write(out / "tuned.json", table, indent=None)
        for row in table["settings"]:
            if row["epsilon"] in (0.1, 1.0):
                _show(row, "accurate", "cheap")


@paper.command()
@click.option("--out", type=FILE, required=True, help="JSON file to write.")
def calibrate(out: Path) -> None:
    """Calibrate the estimate of MIC* by VariationLap.

    Measures its statistic on the 189 distributions, which takes about a minute. This command made
    the table that comes with the package.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper.calibration import RECORDS, SETS, calibrated

        _write(out, calibrated(RECORDS, SETS, "dpmic paper calibrate"), indent=None)


@paper.command()
@click.option("--out", type=FILE, required=True, help="JSON file to write.")
def distances(out: Path) -> None:
    """Calibrate the estimate of MIC* from the distance from independence.

    Computes both for distributions of many kinds, and tests the estimate on kinds left out, which
    takes a few minutes. This command made the table that comes with the package.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper.dependences import curves
        from dpmic_jax.paper.distances import calibrated

        _write(out, calibrated(curves(), "dpmic paper distances"), indent=None)


@paper.command()
@OUT
@QUICK
@DATA
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
def tables(out: Path, quick: bool, data: Path | None, seed: int) -> None:
    """Reproduce Tables 1 and 3, the mechanisms on real data.

    100 draws each; with --quick 10 draws, of at most 130 pairs of each collection.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper import summary
        from dpmic_jax.paper.collections import data_folder
        from dpmic_jax.paper.page_tables import real_table

        folder, draws, most = data_folder(data), *((10, 130) if quick else (100, 10_000))
        stage.begun(resume=out)
        store = out / f"real-{draws}"
        rows = summary.tables(store, folder, draws=draws, most_pairs=most, seed=seed)
        command = f"dpmic paper tables --seed {seed}" + (" --quick" if quick else "")
        _write(out / "tables.json", {"command": command, "draws": draws, "rows": rows})
        click.echo(real_table(rows))
        missed = summary.misses(rows)
        click.echo(f"Not reproduced: {'; '.join(missed) or 'none'}")


@paper.command()
@OUT
@QUICK
def synthetic(out: Path, quick: bool) -> None:
    """Reproduce Figures 2 and 4, the mechanisms on synthetic data."""
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper import summary
        from dpmic_jax.paper.page_tables import synthetic_table
        from dpmic_jax.paper.synthetic import RECORDS, Study

        stage.begun(resume=out)
        study = Study(iterations=5, large_iterations=2, mice_sets=1) if quick else Study()
        rows = summary.distributions(out / f"synthetic-{study.iterations}", study, RECORDS)
        command = "dpmic paper synthetic" + (" --quick" if quick else "")
        content = {"command": command, **vars(study), "rows": rows}
        _write(out / "synthetic.json", content)
        click.echo(synthetic_table(rows))


@paper.command()
@click.option("--out", type=FOLDER, required=True, help="Folder for the results.")
@QUICK
def consistency(out: Path, quick: bool) -> None:
    """Measure how MICr and MIC* converge."""
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper import summary
        from dpmic_jax.paper.page_tables import consistency_table

        records, sets = (
            ((100, 1000, 10_000), (5, 2, 1))
            if quick
            else (
                (100, 1000, 10_000, 100_000),
                (20, 10, 4, 1),
            )
        )
        rows = summary.consistency(records, sets, seed=2)
        command = "dpmic paper consistency" + (" --quick" if quick else "")
        content = {"command": command, "rows": rows, "mic_star": summary.convergence()}
        _write(out / "consistency.json", content)
        click.echo(consistency_table(rows))


@paper.command()
@OUT
@QUICK
@DATA
@click.option("--seed", type=int, default=3, show_default=True, help="Seed of the draws.")
def tried(out: Path, quick: bool, data: Path | None, seed: int) -> None:
    """Run ablations beyond the tables of the paper.

    Variants of MICr-Geom, finer master grids, and relationships of other shapes.
    """
    with exit_codes():
        cache_compiled_programs()
        from dpmic_jax.paper import ablations as trials
        from dpmic_jax.paper import shapes
        from dpmic_jax.paper.collections import data_folder
        from dpmic_jax.paper.page_tables import geom_table, others_table
        from dpmic_jax.paper.store import Store

        folder, draws = data_folder(data), 2 if quick else 5
        stage.begun(resume=out)
        store = Store(out / f"tried-{draws}", {"study": "tried", "draws": draws, "seed": seed})
        records, sets = ((250,), (2,)) if quick else ((250, 1000, 10_000), (20, 10, 2))
        content = {
            "command": f"dpmic paper tried --seed {seed}" + (" --quick" if quick else ""),
            "draws": draws,
            "geom": trials.unsigned_of_geom(folder, store, draws=draws, seed=seed),
            "finer": trials.finer(records, sets, store, seed=seed),
            "parts": [
                row
                for n in ((250,) if quick else (250, 1000))
                for row in trials.parts(n, 2 if quick else 10, trials.PARTS, seed=seed + 10)
            ],
            "others": shapes.errors((250, 1000), 3 if quick else 50, seed=seed),
        }
        _write(out / "tried.json", content)
        click.echo(geom_table(content["geom"]))
        click.echo(others_table(content["others"]))


@paper.command()
@click.argument("results", type=FOLDER)
@click.option("--out", type=FILE, required=True, help="Markdown file to write.")
def page(results: Path, out: Path) -> None:
    """Write the comparison page from the files in RESULTS."""
    with exit_codes():
        from dpmic_jax.paper.page import page

        names = ("tables", "synthetic", "consistency", "tried")
        missing = [name for name in names if not (results / f"{name}.json").is_file()]
        if missing:
            raise FileNotFoundError(
                f"no {missing[0]}.json in {results}: run `dpmic paper {missing[0]} --out {results}`"
            )
        content = {name: json.loads((results / f"{name}.json").read_text()) for name in names}
        out.write_text(page(content))


def _write(path: Path, content: Any, indent: int | None = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    separators = (",", ":") if indent is None else None
    path.write_text(json.dumps(content, indent=indent, separators=separators) + "\n")


def _show(row: dict[str, Any], *kinds: str) -> None:
    found = (
        f"{kind} B={row[kind]['B']} c={row[kind]['c']} ratio={row[kind]['ratio']}" for kind in kinds
    )
    click.echo(f"n={row['n']:<8} epsilon={row['epsilon']:<5} " + "  ".join(found))
