"""What a screen adds noise to moves no further than its noise covers, on the screen's own path."""

import numpy as np
import pytest

from dpmic_jax.data.source import open_source
from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.mic.grids import ladder
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening import Above, AllPairs, TopK
from dpmic_jax.screening.planning import plan
from dpmic_jax.screening.tiles import DEFAULT, TileScorer

NAMES, BOUNDS = ("a", "b", "c"), {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
ASKS = [AllPairs(), TopK(1, selection_fraction=0.7), Above(0.3, 2, selection_fraction=0.7)]


def planned(ask, n, records=1):
    return plan(
        names=NAMES,
        n=n,
        ask=ask,
        epsilon=400.0,  # so much that MICr is released
        delta=0.0,
        statistic=MICr(B=16, c=2, sizes=ladder(1.25)),
        relation=ReplaceOne(records),
        label="moves",
    )


def points(plan, table):
    """On the lattice that noise is added to first, and on that of the values."""
    work = TileScorer(open_source(dict(zip(NAMES, table.T, strict=True)), BOUNDS), plan, DEFAULT)
    lattices = plan.distances.lattice, plan.values.lattice
    found = list(np.concatenate(list(work._points(plan.pairs, lattices))).T)
    if plan.choice:
        (scores,) = np.concatenate(list(work._points(plan.pairs, [plan.choice.lattice]))).T
        found.append(scores)
    return found


def sensitivities(plan):
    values = [noise.lattice.sensitivity for noise in (plan.distances, plan.values)]
    return values + ([plan.choice.selector.sensitivity] if plan.choice else [])


def moves(plan, table, neighbour):
    pair = zip(points(plan, table), points(plan, neighbour), strict=True)
    return [np.abs(one - other).max() for one, other in pair]


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_no_pair_changes_by_more_than_the_sensitivity(rng, ask, records):
    n = 12
    settled = planned(ask, n, records)
    for _ in range(12):
        table = rng.integers(0, 5, (n, 3)) / 4
        neighbour = table.copy()
        neighbour[:records] = rng.integers(0, 5, (records, 3)) / 4
        for moved, most in zip(
            moves(settled, table, neighbour), sensitivities(settled), strict=True
        ):
            assert moved <= most


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_two_thirds_of_it_would_not_cover_a_record_that_leaves_a_corner(ask):
    n = 12
    settled = planned(ask, n)
    table = np.zeros((n, 3))
    neighbour = table.copy()
    neighbour[0] = 1
    # A distance moves furthest between tables that are half way to being dependent.
    half = np.repeat([[0.0], [1.0]], n // 2, axis=0) * np.ones(3)
    half[[0, 1, -1, -2], 0] = 1, 1, 0, 0
    other = half.copy()
    other[2, 0] = 1
    pairs = zip(moves(settled, table, neighbour), moves(settled, half, other), strict=True)
    for moved, most in zip(pairs, sensitivities(settled), strict=True):
        assert 2 / 3 * most < max(moved) <= most
