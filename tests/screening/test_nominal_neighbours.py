"""What one record does to pairs with nominal columns, through a screen's own path to integers."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import pytest
from test_all_neighbours import Column, side_by_side

from dpmic_jax import Categories, MICr, Number
from dpmic_jax.data.schema import FixedValue
from dpmic_jax.data.source import open_source
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mic import characteristic, distance
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic, table_weights
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.mic.xlogx import UNIT, exact_gains
from dpmic_jax.screening.kinds import kinds_of

BLOOD = Column(Categories(("a", "b", "o")), ("a", "b", "undeclared", None))
BARE = Column(Categories(("x", "y", "z"), missing=FixedValue("x")), ("x", "y", "z"))
WARDS = Column(Categories(tuple("pqrs")), tuple("pqrs"))
LEVELS = Column(Number(0, 1), (0.0, 0.3, 1.0))
SMALL = MICr(B=10, c=2)
# Of each pair of columns the number of records.
CASES = {
    "nominal, nominal": (BARE, BARE, 5),
    "missing and undeclared": (BLOOD, BARE, 4),
    "nominal, number": (BARE, LEVELS, 5),
    "missing, number": (BLOOD, LEVELS, 4),
    "more categories, number": (WARDS, LEVELS, 4),
}


def integers(cells, rules, pairs, n, statistic=SMALL):
    """D and MICr of pairs of columns of cells, and the plan's bound on MICr."""
    source = open_source(cells, rules)
    assert source.validate() == n
    kinds = kinds_of(source.names, source.bounds, pairs)
    measured = MICrAndDistance(micr=statistic, bins=kinds.most, tables=kinds.categories > 0)
    (batch,) = source.batches(n)
    cut = measured.cut(batch, source.bounds)
    tiles = score_pairs(cut, pairs, exact_gains(n), devices=jax.devices()[:1])
    found = np.concatenate(list(tiles), axis=2)
    weights = table_weights(source.bounds, pairs) if measured.tables else None
    micr = integer_mic(cut.grids, found, weights)
    bound = sensitivity.of_person(statistic, n, 1, categories=kinds.categories)
    return found[-1].max(axis=0), micr, bound


def scored(columns, n):
    """The same of every table of n records."""
    tables, cells, rules = side_by_side(columns, n)
    pairs = np.arange(2 * len(tables)).reshape(2, -1).T
    return np.array(tables), *integers(cells, rules, pairs, n)


def largest_moves(tables, values):
    """By how much one record that is replaced by another moves each kind of values, at most."""
    n, sorts = tables[0].sum(), tables.shape[1]
    digits = (n + 1) ** np.arange(sorts, dtype=np.int64)
    codes = tables @ digits
    order = np.argsort(codes)
    most = [0] * len(values)
    for one, other in itertools.permutations(range(sorts), 2):
        here = np.flatnonzero(tables[:, one])
        there = order[
            np.searchsorted(codes, codes[here] - digits[one] + digits[other], sorter=order)
        ]
        moves = [int(np.abs(each[here] - each[there]).max()) for each in values]
        most = [max(pair) for pair in zip(most, moves, strict=True)]
    return most


SLOW = {"eight records": (BARE, BARE, 8), "eight, number": (BARE, LEVELS, 8)}


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_no_record_of_any_table_moves_either_value_further_than_its_bound(case):
    *columns, n = (CASES | SLOW)[case]
    tables, distances, micr, bound = scored(columns, n)
    of_distance, of_micr = largest_moves(tables, [distances, micr])
    # The first bound is attained.
    assert of_distance == 2 * distance.steps_of(n)
    assert Fraction(of_micr, 2**VALUE_BITS) <= bound
    assert Fraction(of_micr, 2**VALUE_BITS) > bound * 2 / 3


def test_a_weight_that_is_too_large_is_found_out(monkeypatch):
    """The control: the information of the whole table over 2/3 of the logarithm."""
    own = characteristic.weight
    monkeypatch.setattr(characteristic, "weight", lambda parts: own(parts) * 3 // 2)
    tables, _, micr, bound = scored((BARE, BARE), 5)
    assert Fraction(*largest_moves(tables, [micr]), 2**VALUE_BITS) > bound


def test_a_lone_record_moves_the_whole_table_by_its_bound_which_exceeds_that_of_micr():
    """A record leaves a row and a column that are otherwise full for empty ones."""
    n = 200
    half = (n - 1) // 2
    x = np.array(["a"] * (1 + half) + ["b"] * (n - 1 - half))
    y = np.array(["a"] + ["b"] * half + ["a"] * (n - 1 - half))
    moved = [each.copy() for each in (x, y)]
    for each in moved:
        each[0] = "c"
    cells = dict(zip(("x", "y", "u", "v"), (x, y, *moved), strict=True))
    rules = dict.fromkeys(cells, Categories(("a", "b", "c")))
    _, micr, bound = integers(cells, rules, np.array([[0, 1], [2, 3]]), n)
    found = Fraction(abs(int(micr[0]) - int(micr[1])), 2**VALUE_BITS)
    assert bound - Fraction(12, UNIT) <= found <= bound
    # Noise for MICr of numbers would not do.
    assert found > sensitivity.integer_path(SMALL, n)


KINDS = {
    "nominal, nominal": ([f"c{i}" for i in range(3)], [f"d{i}" for i in range(5)]),
    "nominal, number": ([f"c{i}" for i in range(5)], None),
    "long list, number": ([f"c{i}" for i in range(20)], None),
    "long list, nominal": ([f"c{i}" for i in range(20)], [f"d{i}" for i in range(3)]),
}


def random_tables(rng, sets, n, places):
    """Codes in which cells are often alone in a row or a column, or go with each other."""
    data = np.stack([rng.integers(-1, p, (sets, n)) for p in places], axis=2)
    some = rng.random((sets, n)) < rng.random((sets, 1))
    data[some] = np.array([rng.integers(-1, p) for p in places])
    few = rng.integers(1, 4, (sets, 1, 1))
    return np.where(rng.random((sets, 1, 1)) < 0.5, np.minimum(data, few), data)


@pytest.mark.parametrize("kind", KINDS)
def test_adversarial_neighbours_with_missing_values_stay_within_the_bounds(rng, kind):
    categories = KINDS[kind]
    n, sets = 30, 100
    places = [len(each) if each else 8 for each in categories]
    data, most = random_tables(rng, sets, n, places), np.zeros(2)
    for _ in range(4):
        after, at = data.copy(), np.arange(sets)
        after[at, rng.integers(0, n, sets)] = random_tables(rng, sets, 1, places)[:, 0]
        cells, rules = {}, {}
        for side, names in enumerate(categories):
            for number, table in enumerate(np.concatenate([data, after])):
                codes = table[:, side].tolist()
                cell = [None if c < 0 else names[c] for c in codes] if names else codes
                cells[f"{side} {number}"] = cell
                rules[f"{side} {number}"] = Categories(tuple(names)) if names else Number(0, 7)
        pairs = np.arange(4 * sets).reshape(2, -1).T
        *values, bound = integers(cells, rules, pairs, n)
        moves = np.abs([np.subtract(*each.reshape(2, -1)) for each in values])
        most = np.maximum(most, moves.max(axis=1))
        best = np.argsort(-moves[1])[: sets // 2]
        data = np.concatenate([data[best], after[best]])
    assert 4 / 3 * distance.steps_of(n) < most[0] <= 2 * distance.steps_of(n)
    assert bound / 4 < Fraction(int(most[1]), 2**VALUE_BITS) <= bound
