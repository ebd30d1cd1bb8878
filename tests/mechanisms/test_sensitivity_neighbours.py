"""What one record really does: the integer path on neighbours, against the proven bounds."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import jax
import numpy as np
import oracles
import pytest

from dpmic_jax import MICe, MICr
from dpmic_jax.mechanisms import sensitivity as bounds
from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.grids import definition, ladder, reshef
from dpmic_jax.mic.ties import RandomTies, grouped_ties
from dpmic_jax.mic.xlogx import UNIT, exact_gains

ONE = 2**VALUE_BITS  # on the integer path


@dataclass(frozen=True, eq=False)
class NoTies(RandomTies):
    """Unique values need no draw, which would take most of the time here."""

    def __call__(self, values, column):
        return grouped_ties(values, column)


@dataclass(frozen=True, eq=False)
class SameTies(RandomTies):
    """Data sets side by side in one table break ties as each would alone."""

    def __call__(self, values, column):
        return super().__call__(values, column % 2)


def released(columns, statistic, pairs):
    """What the integer path makes of pairs of columns, before noise."""
    limits = ([(0.0, 1.0)] * len(columns),) if isinstance(statistic, MICr) else ()
    cut = statistic.cut(columns, *limits)
    tiles = batch.score_pairs(cut, pairs, exact_gains(cut.n), devices=jax.devices()[:1])
    return np.concatenate([integer_mic(cut.grids, found) for found in tiles])


def largest_move(before, after, statistic):
    """Of data sets [set, record, 2] in the unit square; and each set's own move."""
    both = np.concatenate([before, after])
    columns = list(np.moveaxis(both, 2, 1).reshape(-1, both.shape[1]))
    values = released(columns, statistic, np.arange(len(columns)).reshape(-1, 2)).reshape(2, -1)
    moves = np.abs(values[0] - values[1])
    return Fraction(int(moves.max()), ONE), moves


def structured(rng, sets, n):
    """Corners, steps, checkerboards, hollow cells and noise, on coarse places."""
    places = rng.integers(2, 8, (sets, 1, 1))
    data = rng.integers(0, places, (sets, n, 2))
    kind = rng.integers(0, 5, sets)
    data[kind == 0] = 0
    data[kind == 1, :, 1] = data[kind == 1, :, 0]
    data[kind == 2, :, 0] = np.arange(n) * places[kind == 2, 0] // n
    data[kind == 2, :, 1] = data[kind == 2, :, 0] % 2
    hollow = (kind == 3)[:, None] & (data[..., 0] == data[..., 1])
    data[..., 1] = np.where(hollow, (data[..., 1] + 1) % places[..., 0], data[..., 1])
    return (data + 0.5) / places


def with_one_moved(rng, data):
    """Each data set with one record elsewhere: in a corner, on another's place, anywhere."""
    sets, n, _ = data.shape
    after, at = data.copy(), np.arange(sets)
    corner = rng.integers(0, 2, (sets, 2)) * 0.98 + 0.01
    other = np.stack([data[at, rng.integers(0, n, sets), axis] for axis in (0, 1)], axis=1)
    anywhere = rng.uniform(size=(sets, 2))
    how = rng.integers(0, 3, sets)
    after[at, rng.integers(0, n, sets)] = np.stack([corner, other, anywhere])[how, at]
    return after


def climb(rng, data, statistic, rounds, jitter=0.0):
    """The largest move found by keeping, again and again, the better half and changing it."""
    most = Fraction(0)
    for _ in range(rounds):
        after = with_one_moved(rng, data)
        unique = rng.uniform(0, jitter, data.shape)
        # A record that stays where it was keeps its jitter, so that neighbours stay neighbours.
        found, moves = largest_move(data + unique, after + unique, statistic)
        most = max(most, found)
        best = np.argsort(-moves)[: len(data) // 2]
        data = np.concatenate([data[best], with_one_moved(rng, data[best])])
    return most


@pytest.mark.parametrize(
    ("n", "statistic"),
    [
        (6, MICr(B=9, c=1)),
        pytest.param(9, MICr(B=9, c=2), marks=pytest.mark.slow),
        (12, MICr(B=12, c=1, master=definition)),
        pytest.param(16, MICr(B=16, c=1), marks=pytest.mark.slow),
        (23, MICr(B=14, c=2, sizes=ladder(1.5))),
        (30, MICr(B=16, c=5)),
    ],
)
def test_micr_moves_by_at_most_its_bound_and_comes_near_it(rng, n, statistic):
    most = climb(rng, structured(rng, 400, n), statistic, rounds=6)
    bound = bounds.integer_path(statistic, n)
    assert bound * 2 / 3 < most <= bound


@pytest.mark.parametrize("n", [12, 30, 200])
def test_where_entries_of_three_parts_move_most_micr_stays_within_its_bound(rng, n):
    """A lone record leaves an under-filled cell of a 3 x 3 grid for an empty row and column."""
    cells = np.array([(1, 1), (1, 2), (2, 1)])
    before = cells[rng.integers(0, 3, (300, n))]
    before[:, 0] = 2
    after = before.copy()
    after[:, 0] = 0
    # The source row in the middle, or at the edge; and both orientations.
    order = np.array(list(itertools.permutations(range(3))))[rng.integers(0, 6, 300)]
    before, after = (order[np.arange(300)[:, None, None], data] for data in (before, after))
    told = [[oracles.information(oracles.table_of(*d.T)) for d in data] for data in (before, after)]
    entry = np.abs(np.subtract(*told)).max() / math.log2(3)
    assert entry <= bounds.entry_bound(3, 3, n)
    statistic = MICr(B=9, c=1)
    most, _ = largest_move((before + 0.5) / 3, (after + 0.5) / 3, statistic)
    assert most <= bounds.integer_path(statistic, n)
    # From some n on the entry alone breaks the bound of the maximum: two parts make it hold.
    assert n < 30 or entry > bounds.exact(statistic, n)


@pytest.mark.parametrize(("n", "B"), [(6, 4), (30, 9), (337, 40)])
def test_a_record_that_leaves_a_corner_for_the_opposite_one_attains_the_bound(n, B):
    corner = np.full((2, 1, n, 2), 0.01)
    corner[1, 0, 0] = 0.99
    most, _ = largest_move(*corner, MICr(B=B))
    assert abs(most - bounds.exact(MICr(B=B), n)) <= Fraction(6, UNIT)


def neighbours(every):
    """For each record and new place (x, y), the row of `every` that each order becomes."""
    n = every.shape[1]
    digits = n ** np.arange(n)[::-1]
    codes = every @ digits  # grows along the rows
    for record in range(n):
        rest = np.delete(every, record, axis=1)
        rest = rest - (rest > every[:, [record]])
        for x, y in itertools.product(range(n), repeat=2):
            yield np.searchsorted(codes, np.insert(rest + (rest >= y), x, y, axis=1) @ digits)


@pytest.mark.parametrize("rule", [reshef, definition])
@pytest.mark.parametrize("n", [6, *(pytest.param(n, marks=pytest.mark.slow) for n in (7, 8))])
def test_every_neighbour_of_every_order_stays_within_the_bound_of_mice(key, n, rule):
    """All data sets of unique ranks: record i has x-rank i and y-rank p[i]."""
    every = np.array(list(itertools.permutations(range(n))), np.int64)
    columns = [np.arange(n), *every]
    pairs = np.stack([np.zeros(len(every), int), np.arange(1, len(columns))], axis=1)
    values = []
    for B, rows in [(4, 2), (6, 3), (8, 4), (9, 3), (12, 4)]:
        # One fixed size at a time, so that the largest entry does not hide the others.
        statistic = MICe(B=B, c=3, master=rule, sizes=lambda _, size=rows: [size], ties=NoTies(key))
        values.append((released(columns, statistic, pairs), bounds.integer_path(statistic, n)))
    most = [0] * len(values)
    for becomes in neighbours(every):
        moves = (int(np.abs(value[becomes] - value).max()) for value, _ in values)
        most = [max(pair) for pair in zip(most, moves, strict=True)]
    shares = [Fraction(m, ONE) / bound for m, (_, bound) in zip(most, values, strict=True)]
    assert Fraction(3, 5) < max(shares) <= 1


@pytest.mark.parametrize(("n", "B"), [(13, 9), (30, 16)])
def test_mice_moves_by_at_most_its_bound_and_by_more_than_half_of_it(rng, key, n, B):
    statistic = MICe(B=B, c=2, ties=NoTies(key))
    most = climb(rng, structured(rng, 300, n), statistic, rounds=6, jitter=1e-3)
    bound = bounds.integer_path(statistic, n)
    assert bound / 2 < most <= bound


@pytest.mark.parametrize(("n", "B"), [(11, 9), (30, 12)])
def test_mice_of_tied_data_moves_by_at_most_its_bound(rng, key, n, B):
    statistic = MICe(B=B, c=2, ties=SameTies(key))
    data = structured(rng, 150, n)
    most, _ = largest_move(data, with_one_moved(rng, data), statistic)
    assert 0 < most <= bounds.integer_path(statistic, n)


@pytest.mark.parametrize(("n", "rows"), [(90, 3), (150, 5), (330, 15)])
def test_a_shifted_square_wave_attains_the_bound_of_mice(rng, key, n, rows):
    """Every half period gets a record of the next, and one of them a second by its rank in y."""
    half, x = n // rows, np.arange(n, dtype=float)
    y = rng.permutation(n) + 1.0 + 2 * n * (x // half % 2)
    y[half + half // 2] = 2 * n  # the lowest of the upper level: it falls when another rises
    before = np.stack([x, y], axis=1)[None]
    after = before.copy()
    after[0, 0] = n, 4 * n
    statistic = MICe(B=2 * rows, ties=RandomTies(key))
    most, _ = largest_move(before, after, statistic)
    assert abs(most - bounds.exact(statistic, n)) <= bounds.allowance(statistic, n)
