"""The published MICr-Geom loses more than its epsilon: exact laws of its output on tiny data."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import oracles
import pytest

from benchmarks.published_geom import (
    Grid,
    PublishedGeom,
    appendix_grids,
    bits,
    code_grids,
    definition_grids,
    information_keys,
)
from dpmic_jax.dp.audit import exact_loss, replace_one

TINY = Fraction(1, 10**12)
# Cells are 4 y + x of the common refinement, whose cuts on each axis are 1/3, 1/2 and 2/3.
WITNESSES = [
    (1.0, 4, appendix_grids, (5, 5, 5, 5), (5, 5, 5, 15), 1.0802586),
    (1.0, 5, appendix_grids, (0, 0, 0, 0, 0), (0, 0, 0, 0, 10), 1.4621383),
    (1.0, 6, appendix_grids, (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 10), 1.6721026),
    (3.0, 6, appendix_grids, (0, 0, 0, 1, 8, 10), (0, 0, 0, 1, 10, 11), 6.4145251),
    (1.0, 4, code_grids, (5, 5, 5, 5), (5, 5, 5, 15), 1.3537148),
    (1.0, 5, code_grids, (0, 0, 0, 0, 0), (0, 0, 0, 0, 10), 1.8001314),
    (1.0, 6, code_grids, (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 10), 2.0507244),
    (3.0, 6, code_grids, (1, 1, 1, 3, 9, 11), (1, 1, 1, 9, 11, 15), 8.0926535),
]

LONG = *WITNESSES[2:4], *WITNESSES[6:]  # seconds each


@pytest.mark.parametrize(
    ("epsilon", "n", "grids", "data", "neighbour", "loss"),
    [pytest.param(*one, marks=pytest.mark.slow if one in LONG else ()) for one in WITNESSES],
)
def test_exact_loss_on_the_counterexample_exceeds_epsilon(epsilon, n, grids, data, neighbour, loss):
    geom = PublishedGeom(grids=grids(6), n=n, epsilon=epsilon)
    found = exact_loss(geom.law, [(data, neighbour)])
    assert found.epsilon == pytest.approx(loss, abs=1e-7)
    assert not found.at_most(epsilon)
    assert found.at_most(len(geom.grids) * epsilon)


@pytest.mark.parametrize(("epsilon", "n", "grids", "data", "neighbour", "loss"), WITNESSES[:2])
def test_no_neighbours_are_worse_than_the_counterexample(epsilon, n, grids, data, neighbour, loss):
    assert PublishedGeom(grids=grids(6), n=n, epsilon=epsilon).worst().loss == pytest.approx(
        loss, abs=1e-7
    )


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "n", "grids", "data", "neighbour", "loss"), WITNESSES[2:])
def test_no_neighbours_are_worse_than_the_larger_counterexamples(
    epsilon, n, grids, data, neighbour, loss
):
    assert PublishedGeom(grids=grids(6), n=n, epsilon=epsilon).worst().loss == pytest.approx(
        loss, abs=1e-7
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "grids", "loss"),
    [
        (1.0, definition_grids(6), 1.444),
        (1.0, appendix_grids(8), 1.648),
        (3.0, appendix_grids(8), 8.484),
    ],
    ids=["Definition 4.1", "B = 8", "B = 8, epsilon = 3"],
)
def test_other_masters_are_no_better(epsilon, grids, loss):
    geom = PublishedGeom(grids=grids, n=4, epsilon=epsilon)
    worst = geom.worst()
    assert worst.loss == pytest.approx(loss, abs=5e-4)
    assert not exact_loss(geom.law, [(worst.dataset, worst.neighbour)]).at_most(epsilon)


@pytest.mark.parametrize(("grid", "n"), [(Grid(2, 2), 4), (Grid(2, 3), 3), (Grid(3, 3), 2)])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_one_grid_alone_loses_epsilon_and_not_more(grid, n, epsilon):
    geom = PublishedGeom(grids=(grid,), n=n, epsilon=epsilon)
    loss = exact_loss(geom.law, replace_one(range(geom.cells), n))
    assert loss.at_most(epsilon)
    assert not loss.at_most(epsilon - 100 * TINY)


def information_law(counts, shape, n, rho):
    """Definition 4.5 cell by cell, and information from its definition, rounded to merge."""

    def chance(noisy, count):
        inside = 1 if noisy in (0, n) else 1 - rho
        return inside * rho ** abs(noisy - count) / (1 + rho)

    law = Counter()
    for noisy in itertools.product(range(n + 1), repeat=len(counts)):
        value = oracles.information(np.reshape(noisy, shape)) if any(noisy) else 0.0
        law[round(abs(value), 9)] += np.prod(
            [chance(a, f) for a, f in zip(noisy, counts, strict=True)]
        )
    return law


def test_law_is_that_of_the_mechanism_written_out():
    """n = 2; a record at the lower left, one right of the middle of the upper half."""
    geom = PublishedGeom(grids=appendix_grids(6), n=2, epsilon=1.0)
    points, rho = [(0.1, 0.1), (0.6, 0.9)], np.exp(-0.5)
    laws = []
    for rows, columns in ((2, 2), (2, 3), (3, 2)):
        table = np.zeros((rows, columns), int)
        for x, y in points:
            table[int(y * rows), int(x * columns)] += 1
        laws.append(information_law(table.ravel().tolist(), (rows, columns), 2, rho))
    expected = Counter()
    for combination in itertools.product(*(law.items() for law in laws)):
        values, chances = zip(*combination, strict=True)
        expected[max(values)] += np.prod(chances)
    found = geom.law((0, 4 * 3 + 2))
    assert sum(found.values()) == 1
    assert len(found) == len(expected)
    for value, chance in found.items():
        assert float(chance) == pytest.approx(expected[round(value, 9)], abs=1e-10)


def test_keys_merge_exactly_the_tables_that_tell_the_same():
    tables = np.array(list(itertools.product(range(4), repeat=6))).reshape(-1, 2, 3)
    keys = [tuple(key) for key in information_keys(tables).tolist()]
    told = [oracles.information(table) if table.any() else 0.0 for table in tables]
    np.testing.assert_allclose(bits(np.array(keys)), told, atol=1e-12)
    # One key, one number, and one number, one key.
    rounded = [round(abs(value), 9) for value in told]
    assert len(set(keys)) == len(set(rounded)) == len(set(zip(keys, rounded, strict=True)))


def test_grids_are_those_of_the_appendix():
    assert appendix_grids(6) == (Grid(2, 2), Grid(2, 3), Grid(2, 3, True))
    assert code_grids(6) == (*appendix_grids(6), Grid(2, 2, True))
    with pytest.raises(ValueError, match="B"):
        appendix_grids(9)
