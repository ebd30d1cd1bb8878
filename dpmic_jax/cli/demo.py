"""`dpmic demo`: the built-in table as files."""

import csv
from pathlib import Path

import click

from dpmic_jax.cli.errors import exit_codes


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def demo(folder: Path) -> None:
    """Write the demo table and its bounds file to FOLDER."""
    with exit_codes():
        from dpmic_jax.data.demo import demo
        from dpmic_jax.data.schema import schema_of

        data = demo()
        table, bounds = folder / "demo.csv", folder / "demo.toml"
        for path in (table, bounds):
            if path.exists():
                raise FileExistsError(f"{path} already exists; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        with open(table, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(data.columns)
            columns = [column.tolist() for column in data.columns.values()]
            writer.writerows(zip(*columns, strict=True))
        bounds.write_text(schema_of(data.bounds).to_toml())
        click.echo(f"{table}\n{bounds}\nTry: dpmic screen {table} --bounds {bounds} --epsilon 1")
