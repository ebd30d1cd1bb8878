"""Run the `dpmic` command in this process, on a small table in a file."""

import csv
from functools import lru_cache

import numpy as np
from click.testing import CliRunner

from dpmic_jax.cli import main

N = 200
NAMES = ("age", "dose", "response", "site")
MARKER = "98765.4321"  # a value that is in the table and nowhere else
BOUNDS = """
[columns.age]
low = 0
high = 100

[columns.dose]
low = 0
high = 1

[columns.response]
low = -1
high = 1

[columns.site]
categories = ["north", "south"]
"""
QUICK = ("-B", "12", "-c", "2")


def dpmic(*words):
    """What the command does."""
    return CliRunner().invoke(main, [str(word) for word in words])


@lru_cache
def columns():
    """Response depends on dose; the first age is far outside its bounds."""
    rng = np.random.default_rng(7)
    dose = rng.random(N)
    age = rng.integers(18, 90, N).astype(object)
    age[0] = MARKER
    sites = rng.choice(["north", "south"], N)
    return dict(zip(NAMES, (age, dose, np.sin(5 * dose), sites), strict=True))


def lines(**changed):
    """The table as rows of text, the names first."""
    table = {**columns(), **changed}
    return [list(table), *([str(v) for v in row] for row in zip(*table.values(), strict=True))]


def table_file(folder, rows=None, name="table.csv"):
    path = folder / name
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(lines() if rows is None else rows)
    return path


def bounds_file(folder, text=BOUNDS, name="bounds.toml"):
    path = folder / name
    path.write_text(text)
    return path
