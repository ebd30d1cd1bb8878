"""pstats and cstats against fast-mine and against MINE, on the compiled path and off it."""

import itertools
import subprocess
import sys

import fast_mine
import numpy as np
import peer
import pytest
import reference
from real_data import REAL, with_real_data

from dpmic_jax.mic import programs
from dpmic_jax.mic.grids import Grid, buckets
from dpmic_jax.mic.kernel import Layout
from dpmic_jax.minepy import MINE, cstats, pairs, partitions, pstats, tile


def table(n, tied, rng):
    """Eleven variables, one a row: 55 pairs, enough to be compiled."""
    kinds = [kind % reference.KINDS for kind in range(11)] if tied else [0] * 11
    X = np.stack([reference.column(kind, n, rng) for kind in kinds])
    X[3], X[4] = X[0] ** 2, X[1] + 0.3 * X[3]
    return X


def by_peer(X, settings):
    found = [peer.peer(x, y, *settings) for x, y in itertools.combinations(X, 2)]
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


@pytest.mark.parametrize(("room", "lanes"), [(1, 2), (8, 16), (64, 16)])
def test_tiles_of_any_size_give_the_same(room, lanes, rng, monkeypatch):
    X = table(60, True, rng)
    expected = pstats(X, 6, 2)

    def other(grids, count, platform):
        return Layout(buckets(grids, count), room, lanes, True)

    monkeypatch.setattr(tile, "layout_for", other)
    np.testing.assert_array_equal(pstats(X, 6, 2), expected)


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
@pytest.mark.parametrize(("room", "lanes"), [(1, 16), (8, 16), (32, 64), (128, 64)])
@pytest.mark.parametrize("count", [1, 48, 100, 780, 10_001])
def test_tiles_keep_all_workers_busy_and_fill_their_turns(count, room, lanes, workers):
    wanted = np.arange(2 * count).reshape(count, 2)
    found = pairs.tiles(wanted, Layout((), room, lanes, True), workers)
    np.testing.assert_array_equal(np.concatenate(found), wanted)
    sizes, turn = [len(some) for some in found], min(room, lanes // 2)
    assert 0 < min(sizes) <= max(sizes) <= room
    assert all(size % turn == 0 for size in sizes[:-1])
    # No worker has more to do than its share, rounded up to a turn a tile.
    rounds = -(-len(found) // workers)
    assert max(sizes) * rounds <= count / workers + 2 * turn * rounds


def test_tables_of_about_the_same_size_share_programs(rng):
    def run(x, y, n):
        cstats(rng.random((x, n)), rng.random((y, n)), 6, 2)
        return programs._compiled.cache_info().misses

    first = run(5, 10, 70)
    assert run(6, 10, 72) == first
    assert run(6, 10, 73) > first  # the next rung


def test_an_xla_that_does_not_know_our_options_finds_the_same(rng, monkeypatch):
    X = table(40, False, rng)
    expected = pstats(X, 6, 2)
    programs._compiled.cache_clear()
    monkeypatch.setattr(programs, "OPTIONS", {"cpu": {"xla_cpu_no_such_option": 1}})
    # Other options may round floats otherwise.
    np.testing.assert_allclose(pstats(X, 6, 2), expected, rtol=0, atol=3e-6)
    assert programs._compiled.cache_info().misses > 0  # it was compiled again
    programs._compiled.cache_clear()


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
