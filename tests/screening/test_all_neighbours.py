"""All tables of a few records with all their neighbours, through a screen's own path to integers.

Cells are coded by their schema, counted and scored as a screen does: rare flags, missing values
with a part of their own, and columns of several values.
"""

import itertools
from fractions import Fraction
from typing import NamedTuple

import jax
import numpy as np
import pytest

from dpmic_jax import Categories, MissingBin, Number
from dpmic_jax.data.source import open_source
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.mic import distance
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening.tiles import distance_points


class Column(NamedTuple):
    """What is public about a column, and the cells that a record may have in it."""

    rule: object
    cells: tuple


FLAG = Column((0.0, 1.0), (0, 1))
GAPS = Column(Number(0, 1, missing=MissingBin()), (None, 0.0, 1.0))
LEVELS = Column((0.0, 1.0), (0.0, 0.3, 1.0))
GRADES = Column(
    Categories(("low", "high"), missing=MissingBin(), ordered=True), ("low", "high", "")
)
# Of each pair of columns the number of records: with 12, a flag of one record is rare.
CASES = [(FLAG, FLAG, 12), (GAPS, FLAG, 5), (GAPS, LEVELS, 4), (GRADES, GAPS, 4)]


def every_table(columns, n):
    """All tables of n records, each by how many records there are of each sort."""
    sorts = list(itertools.product(*(column.cells for column in columns)))
    chosen = itertools.combinations_with_replacement(range(len(sorts)), n)
    return sorts, [tuple(np.bincount(table, minlength=len(sorts)).tolist()) for table in chosen]


def side_by_side(columns, n):
    """All tables of n records, by how many there are of each sort, and as one table of cells."""
    sorts, tables = every_table(columns, n)
    cells, rules = {}, {}
    for side, column in enumerate(columns):
        for number, table in enumerate(tables):
            records = itertools.chain.from_iterable(map(itertools.repeat, sorts, table))
            cells[f"{side} {number}"] = [record[side] for record in records]
            rules[f"{side} {number}"] = column.rule
    return tables, cells, rules


def scored(columns, n):
    """D, and the lattice point that noise is added to, of every table."""
    tables, cells, rules = side_by_side(columns, n)
    source = open_source(cells, rules)
    assert source.validate() == n
    (batch,) = source.batches(n)
    cut = MICrAndDistance(micr=None).cut(batch, source.bounds)
    pairs = np.arange(2 * len(tables)).reshape(2, -1).T
    found = np.concatenate(list(score_pairs(cut, pairs, None, devices=jax.devices()[:1])), axis=2)
    points = distance_points(lattice(n), found, n)
    values = zip(found[-1].max(axis=0).tolist(), points.tolist(), strict=True)
    return dict(zip(tables, values, strict=True))


def lattice(n):
    return Lattice.for_cube(Fraction(1, n))


def moves(values):
    """By how much one record that is replaced by another moves D and the point, at most."""
    most = [0, 0]
    for table, here in values.items():
        for one, other in itertools.permutations(range(len(table)), 2):
            if table[one]:
                neighbour = list(table)
                neighbour[one] -= 1
                neighbour[other] += 1
                there = values[tuple(neighbour)]
                most = [max(m, abs(a - b)) for m, a, b in zip(most, here, there, strict=True)]
    return most


@pytest.mark.parametrize("case", CASES, ids=["flags", "gaps, flag", "gaps, levels", "grades, gaps"])
def test_the_record_of_any_table_that_moves_it_most_moves_it_by_what_noise_covers(case):
    *columns, n = case
    of_integer, of_point = moves(scored(columns, n))
    # Both are attained: nothing less would do.
    assert of_integer == 2 * distance.steps_of(n)
    assert lattice(n).sensitivity - 1 <= of_point <= lattice(n).sensitivity


def test_weights_that_are_too_large_are_found_out(monkeypatch):
    """The control: w_k 3/2 of what the sensitivity allows."""
    steps = distance.steps

    def heavier(n):
        found = steps(n)
        return found._replace(weights=found.weights * 3 // 2)

    monkeypatch.setattr("dpmic_jax.mic.batch.steps", heavier)
    n = 12
    assert moves(scored((FLAG, FLAG), n))[0] > 2 * distance.steps_of(n)
