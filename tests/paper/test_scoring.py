import threading

import numpy as np
import oracles
import pytest

import dpmic_jax
from dpmic_jax import MICr
from dpmic_jax.mic.grids import Grid, all_sizes, ladder
from dpmic_jax.paper import scoring
from dpmic_jax.paper.scoring import Lanes, best_entries, by_shape, count, lanes_of, micr, shape_of

UNIT = ((0.0, 1.0), (0.0, 1.0))
# phi is within 2e-6 bits in float32, and k = 2 divides by the least, one bit.
CLOSE = {"rtol": 0, "atol": 2e-6}
STATISTICS = [
    MICr(B=4, c=1),
    MICr(B=12, c=2),
    MICr(B=16, c=3, sizes=ladder(1.5)),
]
GRIDS = sorted({grid for statistic in STATISTICS for grid in statistic.grids(0)})


def related(rng, sets, n):
    """From independent to nearly a function, with records on the borders of the square."""
    x = rng.random((sets, n))
    noise = np.linspace(0, 1, sets)[:, None] * (rng.random((sets, n)) - 0.5)
    y = np.clip(np.sin(6 * x) / 2 + 0.5 + noise, 0, 1)
    return x.astype(np.float32), y.astype(np.float32)


@pytest.fixture(scope="module")
def scored():
    """Data sets of 25, 300 and 5000 records, and their entries."""
    rng = np.random.default_rng(11)
    data = {n: related(rng, 6, n) for n in (25, 300, 5000)}
    return {n: (x, y, best_entries(x, y, GRIDS)) for n, (x, y) in data.items()}


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: f"B={s.B}, c={s.c}")
@pytest.mark.parametrize("n", [25, 300])
def test_statistics_are_those_of_the_definition(scored, n, statistic):
    x, y, entries = scored[n]
    found = micr(entries, statistic.grids(n))
    for index in (0, 2, 5):
        expected = oracles.micr(
            x[index],
            y[index],
            UNIT,
            statistic.B,
            statistic.c,
            sizes=statistic.sizes(statistic.B // 2),
        )
        np.testing.assert_allclose(found[index], expected, **CLOSE)


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: f"B={s.B}, c={s.c}")
def test_statistics_of_many_records_are_those_of_the_engine(scored, statistic):
    x, y, entries = scored[5000]
    table = np.concatenate([x, y]).T
    pairs = [(index, len(x) + index) for index in range(len(x))]
    expected = dpmic_jax.characteristics(
        table, pairs=pairs, statistic=statistic, bounds=UNIT[:1] * table.shape[1]
    ).mic
    np.testing.assert_allclose(micr(entries, statistic.grids(5000)), expected, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 5000])
def test_large_plans_are_those_of_the_engine_too(rng, n):
    x, y = related(rng, 6, n)
    table = np.concatenate([x, y]).T
    pairs = [(index, len(x) + index) for index in range(len(x))]
    for statistic in (MICr(B=40, c=5), MICr(B=150, c=5, sizes=ladder(1.25)), MICr(B=60, c=1)):
        expected = dpmic_jax.characteristics(
            table, pairs=pairs, statistic=statistic, bounds=UNIT[:1] * table.shape[1]
        ).mic
        grids = statistic.grids(n)
        np.testing.assert_allclose(micr(best_entries(x, y, grids), grids), expected, **CLOSE)


def test_a_shape_has_room_for_every_grid_it_serves():
    for grid in GRIDS:
        shape = shape_of(grid)
        assert shape.master >= grid.master
        assert shape.rows >= grid.rows
        assert shape.master >= shape.parts >= grid.parts
        cells = scoring.cells_of(shape)
        assert cells >= shape.master * shape.rows
        assert cells.bit_count() == 1
        assert shape_of(shape) == shape
    shared = by_shape(GRIDS)
    assert len(shared) < len(GRIDS)
    assert sorted(grid for some in shared.values() for grid in some) == GRIDS


def test_padding_changes_no_score(scored):
    """The same counts, padded to the least shape and to a much larger one."""
    x, y, _ = scored[300]
    grid = Grid(rows=3, master=5, parts=3)
    lanes = scoring._filled(lanes_of([grid], len(x)))
    values = [
        scoring.score(count(x, y, lanes, shape), lanes.parts, shape)
        for shape in (grid, Grid(rows=8, master=11, parts=6))
    ]
    assert values[0].min() > 0
    np.testing.assert_allclose(*values, **CLOSE)


def test_parts_of_the_padded_shape_beyond_those_of_the_grid_do_not_count():
    """Alternating columns: eight parts have one bit of at most three, two parts much less."""
    x = ((np.arange(64) + 0.5) / 64).astype(np.float32)[None]
    y = ((np.arange(64) // 8 % 2 + 0.5) / 2).astype(np.float32)[None]
    lanes = scoring._filled(Lanes(*(np.array([value], np.int32) for value in (0, 0, 8, 2, 2))))
    shape = Grid(rows=2, master=8, parts=8)
    columns, rows = np.arange(64) // 8, np.arange(64) // 8 % 2
    expected = oracles.merge_by_enumeration(columns, rows, 8, 2)
    assert expected < 0.3
    counts = count(x, y, lanes, shape)
    np.testing.assert_allclose(scoring.score(counts, lanes.parts, shape), expected, **CLOSE)
    eight = np.full_like(lanes.parts, 8)
    np.testing.assert_allclose(scoring.score(counts, eight, shape), 1 / 3, **CLOSE)


def test_lanes_beyond_those_that_are_asked_for_change_nothing(scored):
    """Even one with many more records, which would change the scale."""
    x, y, _ = scored[300]
    grid = Grid(rows=4, master=6, parts=4)
    lanes = scoring._filled(lanes_of([grid], len(x)))
    counts = np.array(count(x, y, lanes, grid))
    whole = scoring.score(counts, lanes.parts, grid)
    counts[12:] *= 1000
    np.testing.assert_array_equal(scoring.score(counts, lanes.parts[:12], grid), whole[:12])
    assert not np.array_equal(scoring.score(counts, lanes.parts, grid), whole)


@pytest.mark.parametrize("n", [1, 64, 65, 128, 129, 300])
def test_counts_are_those_of_a_histogram(rng, n, monkeypatch):
    """Records in any number of blocks, each in its cell once."""
    monkeypatch.setattr(scoring, "BLOCK", 64)
    x, y = (rng.random((3, n)).astype(np.float32) for _ in range(2))
    grids = [Grid(rows=4, master=6, parts=3), Grid(rows=5, master=7, parts=3)]
    lanes = lanes_of(grids, 3)
    shape = Grid(rows=5, master=7, parts=3)
    found = np.asarray(count(x, y, lanes, shape))
    assert found.shape == (12, 64)
    assert not found[:, 35:].any()
    for lane, (data, flipped, master, rows, _) in enumerate(zip(*lanes, strict=True)):
        axes = (y[data], x[data]) if flipped else (x[data], y[data])
        table, _, _ = np.histogram2d(*axes, bins=(master, rows), range=UNIT)
        expected = np.zeros((7, 5))
        expected[:master, :rows] = table
        np.testing.assert_array_equal(found[lane, :35].reshape(7, 5), expected)


def test_records_on_borders_go_to_the_cell_above_and_the_last_ones_stay_inside():
    x = np.array([[0, 0.25, 0.5, 0.75, 1]], np.float32)
    lanes = Lanes(*(np.array([value], np.int32) for value in (0, 0, 4, 2, 2)))
    found = np.asarray(count(x, x, lanes, Grid(rows=2, master=4, parts=2)))[0].reshape(4, 2)
    np.testing.assert_array_equal(found, [[1, 0], [1, 0], [0, 1], [0, 2]])


def test_zero_noise_changes_nothing(scored):
    x, y, entries = scored[300]
    again = best_entries(x, y, GRIDS, noise=lambda counts, lanes, stride, part: counts)
    for grid in GRIDS:
        np.testing.assert_array_equal(again[grid], entries[grid])


def test_grids_without_records_score_zero_and_do_not_change_the_others(scored):
    """Noise that empties the grids of some data sets."""
    x, y, entries = scored[300]

    def emptied(counts, lanes, stride, part):
        return counts * (lanes.data % 2).astype(np.int32)[:, None]

    found = best_entries(x, y, GRIDS, noise=emptied)
    for grid in GRIDS:
        assert not found[grid][::2].any()
        np.testing.assert_allclose(found[grid][1::2], entries[grid][1::2], **CLOSE)


def test_a_grid_with_noise_is_divided_by_its_own_number_of_records(scored):
    """A table with all counts multiplied has the same score, beside others with other factors."""
    x, y, entries = scored[300]

    def multiplied(counts, lanes, stride, part):
        return counts * (1 + lanes.data)[:, None]

    found = best_entries(x, y, GRIDS, noise=multiplied)
    for grid in GRIDS:
        # One scale serves all lanes, so that with the fewest records has a sixth of the digits.
        np.testing.assert_allclose(found[grid], entries[grid], rtol=0, atol=6 * CLOSE["atol"])


def test_noise_sees_each_lane_once_under_a_number_of_its_own(rng):
    """Over several calls and shapes: noise that is drawn from the number is never repeated."""
    x, y = related(rng, 300, 25)
    grids = [Grid(2, 2, 2), Grid(3, 6, 3), Grid(4, 6, 3)]
    seen, lock = [], threading.Lock()

    def noise(counts, lanes, stride, number):
        first = Grid(int(lanes.rows[0]), int(lanes.master[0]), int(lanes.parts[0]))
        assert stride == shape_of(first).rows
        with lock:
            seen.append((number, lanes))
        return counts

    finished = []
    best_entries(x, y, grids, noise=noise, done=finished.append)
    numbers = [number for number, _ in seen]
    assert len(set(numbers)) == len(numbers) > len(by_shape(grids))
    lanes = {
        lane for _, some in seen for lane in zip(*(column.tolist() for column in some), strict=True)
    }
    expected = {
        (data, flipped, grid.master, grid.rows, grid.parts)
        for data in range(300)
        for flipped in (0, 1)
        for grid in grids
    }
    assert lanes == expected
    assert sum(finished) == len(expected)


def test_independent_columns_on_a_full_grid_score_zero():
    side = (np.arange(8) + 0.5) / 8
    x, y = (axis.reshape(1, -1).astype(np.float32) for axis in np.meshgrid(side, side))
    grids = [Grid(2, 4, 2), Grid(4, 8, 4)]
    found = best_entries(x, y, grids)
    assert not np.concatenate([found[grid] for grid in grids]).any()


def test_a_diagonal_scores_one():
    x = ((np.arange(64) + 0.5) / 64).astype(np.float32)[None]
    for grid, value in best_entries(x, 1 - x, [Grid(2, 4, 2), Grid(4, 8, 4)]).items():
        assert value[0] == pytest.approx(1, abs=2e-6), grid


def test_all_sizes_of_a_plan_are_read_off_one_set_of_entries(scored):
    """A statistic is the largest entry of its own grids."""
    _, _, entries = scored[300]
    few, many = MICr(B=12, c=2).grids(0), [*MICr(B=12, c=2).grids(0), *STATISTICS[2].grids(0)]
    assert (micr(entries, few) <= micr(entries, many)).all()
    by_hand = [max(float(entries[grid][index]) for grid in few) for index in range(6)]
    np.testing.assert_array_equal(micr(entries, few), np.array(by_hand, np.float32))
    assert set(few) == set(MICr(B=12, c=2, sizes=all_sizes).grids(0))
