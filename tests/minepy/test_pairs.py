"""pstats and cstats against fast-mine and against MINE, on the compiled path and off it."""

import itertools
import subprocess
import sys
from functools import partial

import fast_mine
import jax
import numpy as np
import pytest
import reference
from real_data import REAL, with_real_data

from dpmic_jax.mic.gains import exact_gains
from dpmic_jax.mic.grids import Bucket, Grid
from dpmic_jax.minepy import MINE, cstats, pairs, partitions, pstats, tile
from dpmic_jax.minepy.settings import Settings


def table(n, tied, rng):
    """Eleven variables, one a row: 55 pairs, enough to be compiled."""
    kinds = [kind % reference.KINDS for kind in range(11)] if tied else [0] * 11
    X = np.stack([reference.column(kind, n, rng) for kind in kinds])
    X[3], X[4] = X[0] ** 2, X[1] + 0.3 * X[3]
    return X


def by_peer(X, settings):
    found = [reference.peer(x, y, *settings) for x, y in itertools.combinations(X, 2)]
    return np.array([[fast_mine.mine_mic(one), fast_mine.mine_tic(one, True)] for one in found]).T


@pytest.mark.parametrize("settings", [(9, 5, "mic_approx"), (6, 2, "mic_e")])
def test_pstats_of_tied_columns_is_that_of_fast_mine(settings, rng):
    X = table(70, True, rng)
    np.testing.assert_allclose(pstats(X, *settings), by_peer(X, settings), rtol=0, atol=1e-5)


def test_pstats_of_untied_columns_is_that_of_fast_mine(rng):
    X, settings = table(90, False, rng), (6, 3, "mic_approx")
    np.testing.assert_allclose(pstats(X, *settings), by_peer(X, settings), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("est", ["mic_approx", "mic_e"])
@pytest.mark.parametrize(("alpha", "c"), [(0.4, 15), (0.6, 1), (0.6, 15), (0.75, 5)])
def test_pstats_is_that_of_fast_mine_for_every_kind_of_plan(alpha, c, est, tied, rng):
    X = table(200, tied, rng)
    theirs = by_peer(X, (alpha, c, est))
    np.testing.assert_allclose(pstats(X, alpha, c, est), theirs, rtol=0, atol=1e-5)


@pytest.mark.slow
@with_real_data
@pytest.mark.parametrize("est", ["mic_approx", "mic_e"])
@pytest.mark.parametrize("alpha", [0.4, 0.6, 9])
@pytest.mark.parametrize("c", [1, 5, 15])
def test_pstats_of_the_baseball_table_is_that_of_fast_mine(alpha, c, est):
    X = np.genfromtxt(REAL / "baseball.csv", delimiter=",", skip_header=1).T
    X = X[~np.isnan(X).any(axis=1)]
    theirs = by_peer(X, (alpha, c, est))
    np.testing.assert_allclose(pstats(X, alpha, c, est), theirs, rtol=0, atol=1e-5)


def test_turns_and_lanes_that_are_split_change_nothing(rng, monkeypatch):
    """What memory and cache ask for: grids taken one after another, pairs in two halves."""
    columns, plan = cut(table(40, True, rng), (6, 2, "mic_approx"))
    whole = compiled(columns, plan)
    monkeypatch.setattr(tile, "MOST_HELD", 40 * 2 * 8)
    monkeypatch.setattr(tile, "CACHE", 1)
    monkeypatch.setattr(tile, "FEWEST_LANES", 8)
    np.testing.assert_array_equal(whole, compiled(columns, plan))


def cut(X, settings):
    plan = Settings(*settings).plan(X.shape[1])
    return partitions.cut_columns(X, plan.grids), plan


def compiled(columns, plan):
    """Information of the first eight pairs, in buckets of one grid each."""
    layout = tile.Layout(tuple(Bucket((g,), 1) for g in plan.grids), columns.rows.dtype, True)
    first, second = np.arange(8, dtype=np.int32), np.arange(1, 9, dtype=np.int32)
    gains = exact_gains(columns.order.shape[1])
    program = jax.jit(partial(tile.score, layout=layout))
    return np.asarray(program(tile.put(columns), first, second, gains))


def test_tiles_of_any_width_give_the_same(rng, monkeypatch):
    X = table(60, True, rng)
    found = []
    for width in (8, 24, 56):  # seven tiles, three of which the last is not full, and one
        monkeypatch.setattr(pairs, "tile_width", lambda *asked, width=width: width)
        found.append(pstats(X, 6, 2))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("held", [10**3, 10**4, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("count", [48, 100, 780, 10**6])
def test_tiles_keep_all_threads_busy_and_hold_no_more_than_they_may(count, held, threads):
    width = pairs.tile_width(count, held, threads, "cpu")
    assert 1 <= width <= pairs.MOST
    assert width == 1 or width * held <= 8 * tile.MOST_HELD
    if width % 8 == 0:
        assert width * held <= max(pairs.CACHED, pairs.FEWEST * held)
        # No thread has more to do than its share, rounded up to eight pairs a tile.
        rounds = -(-count // width // threads)
        assert width * rounds <= count / threads + 8 * rounds


@pytest.mark.parametrize("cells", [4, 16])
def test_few_pairs_are_those_of_mine(cells, rng):
    X = table(50, True, rng)[:5]
    found = pstats(X, cells, 5, "mic_e")
    for index, (x, y) in enumerate(itertools.combinations(X, 2)):
        mine = MINE(cells, 5, "mic_e")
        mine.compute_score(x, y)
        assert found.mic[index] == mine.mic()
        assert found.tic[index] == mine.tic(norm=True)


def test_pstats_is_condensed_as_minepy_says(rng):
    X = rng.random((4, 30))
    mic, tic = pstats(X, 6, 5)
    assert mic.shape == tic.shape == (6,)
    mine = MINE(6, 5)
    for i, j in itertools.combinations(range(4), 2):
        mine.compute_score(X[i], X[j])
        assert mic[4 * i - i * (i + 1) // 2 - i - 1 + j] == mine.mic()


def test_cstats_has_a_row_for_each_variable_of_x(rng):
    X, Y = rng.random((2, 30)), rng.random((3, 30))
    mic, tic = cstats(X, Y, 6, 5, "mic_e")
    assert mic.shape == tic.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        mine = MINE(6, 5, "mic_e")
        mine.compute_score(X[i], Y[j])
        assert (mic[i, j], tic[i, j]) == (mine.mic(), mine.tic(norm=True))


@pytest.mark.parametrize("variables", [1, 3])
def test_no_pairs_and_no_grids_give_no_values_and_zeros(variables):
    mic, tic = pstats(np.arange(3.0 * variables).reshape(variables, 3), alpha=9)
    np.testing.assert_array_equal(mic, np.zeros(variables * (variables - 1) // 2))
    np.testing.assert_array_equal(tic, mic)


def test_one_record_tells_nothing():
    mine = MINE()
    mine.compute_score([1.0], [2.0])
    assert mine.mic() == 0
    np.testing.assert_array_equal(pstats(np.arange(60.0)[:, None]), np.zeros((2, 60 * 59 // 2)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pstats([1.0, 2.0]), "expected X to be an array of variables by records"),
        (lambda: pstats(np.zeros((0, 5))), "expected X to be an array of variables by records"),
        (lambda: pstats([[1.0, float("nan")], [1.0, 2.0]]), "X has NaN"),
        (lambda: cstats(np.eye(3), np.eye(4)), "as many records on both sides, got 3 and 4"),
        (lambda: cstats(np.eye(3), [1.0, 2.0, 3.0]), "expected Y to be an array"),
        (lambda: pstats(np.eye(3), alpha=2), "expected alpha in"),
        (lambda: cstats(np.eye(3), np.eye(3), c=0), "expected c > 0"),
        (lambda: pstats(np.eye(3), est="mic"), "expected est to be one of"),
    ],
)
def test_what_is_no_table_and_no_setting_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_superclumps_are_at_most_as_many_as_asked_for(rng):
    """And, where there are no more clumps, they are the clumps."""
    rows = rng.integers(0, 3, (60, 2)).astype(np.uint8)
    ties = partitions.runs(np.ones((59, 1), bool))
    begins = partitions.clumps(rows, ties)
    ends = partitions.superclumps(begins, (Grid(3, 7, 2), Grid(3, 60, 2)))
    assert len(set(ends[:, 0].tolist())) <= 7
    changes = np.flatnonzero(np.diff(rows[:, 1].astype(int))) + 1
    assert sorted(set(ends[:, 1].tolist())) == [*changes.tolist(), 60]


def test_importing_the_library_imports_nothing_of_this():
    program = "import sys, dpmic_jax; print([m for m in sys.modules if 'dpmic_jax.minepy' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_as_many_pairs_as_are_compiled_for_are_more_than_few():
    assert len(list(itertools.combinations(range(11), 2))) >= pairs.FEW
