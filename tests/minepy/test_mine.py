"""MINE against fast-mine, and against the published procedure walked record by record."""

import itertools

import fast_mine
import numpy as np
import peer
import pytest
import reference
from real_data import REAL, with_real_data

from dpmic_jax.minepy import MINE

SETTINGS = list(itertools.product((0.4, 0.6, 9), (1, 5, 15), ("mic_approx", "mic_e")))


def scored(x, y, settings):
    mine = MINE(*settings)
    mine.compute_score(x, y)
    return mine


def farthest(pairs, settings):
    """The largest difference from fast-mine of any statistic of any pair."""
    gaps = []
    for x, y in pairs:
        theirs = peer.peer_statistics(peer.peer(x, y, *settings))
        ours = reference.statistics(scored(x, y, settings))
        gaps += [abs(ours[name] - theirs[name]) for name in theirs]
    return max(gaps)


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_statistic_is_that_of_fast_mine(settings):
    """Ties, constants and few records, and columns that are functions of each other."""
    assert farthest(map(reference.pair, range(12)), settings) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_statistic_of_500_pairs_is_that_of_fast_mine(settings):
    assert farthest(map(reference.pair, range(500)), settings) < 1e-5


@pytest.mark.slow
@with_real_data
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_statistic_of_the_baseball_table_is_that_of_fast_mine(settings):
    columns = np.genfromtxt(REAL / "baseball.csv", delimiter=",", skip_header=1).T
    columns = columns[~np.isnan(columns).any(axis=1)]
    assert len(columns) > 100
    assert farthest(itertools.combinations(columns, 2), settings) < 1e-5


@pytest.mark.parametrize("est", ["mic_approx", "mic_e"])
@pytest.mark.parametrize(("alpha", "c"), [(0.8, 2), (0.6, 15), (12, 0.7), (9, 0.1)])
def test_every_entry_is_that_of_the_published_procedure(alpha, c, est):
    for seed in range(6):
        x, y = reference.pair(seed, most=50)
        if alpha > 1 and len(x) < 4:
            continue
        found = scored(x, y, (alpha, c, est)).get_score()
        expected = reference.matrix(x, y, alpha, c, est)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("est", ["mic_approx", "mic_e"])
def test_the_matrix_has_y_first(est):
    """On a V: four parts of x tell two of y exactly, two parts of x tell nothing of y."""
    x = np.linspace(0, 1, 100)
    y = np.abs(x - 0.5)
    ours = scored(x, y, (0.6, 15, est)).get_score()
    theirs = peer.peer(x, y, 0.6, 15, est).M
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert ours[0][2] == pytest.approx(1)  # two parts of y, four of x
    assert ours[2][0] < 0.5


def test_an_entry_1e_7_below_the_threshold_still_counts_for_mcn():
    """So it is in fast-mine: asked with a matrix made for it."""
    x = np.arange(60.0)
    found = peer.peer(x, x, 0.6, 15, "mic_e")
    for below, expected in ((0.5e-7, 2.0), (2e-7, np.log2(6))):
        found.M = [np.zeros(len(row)) for row in found.M]
        found.M[0][0], found.M[1][0] = 1 - below, 1.0
        assert fast_mine.mine_mcn(found, 0.0) == pytest.approx(expected)
        mine = MINE(est="mic_e")
        mine.compute_score(x, x)
        flat = np.concatenate(found.M)
        object.__setattr__(mine._scores(), "values", flat)
        assert mine.mcn() == pytest.approx(expected)


@pytest.mark.parametrize("est", ["mic_approx", "mic_e"])
def test_a_constant_column_tells_nothing(est, rng):
    mine = scored(np.ones(50), rng.random(50), (0.6, 15, est))
    expected = dict.fromkeys(reference.statistics(mine), 0.0)
    expected.update({"mcn": 2.0, "mcn 0.2": 2.0, "mcn_general": 2.0})  # any grid is as good
    assert reference.statistics(mine) == expected


@pytest.mark.parametrize("n", [1, 2, 3])
def test_without_room_for_a_grid_every_statistic_is_zero(n):
    mine = scored(np.arange(n), np.arange(n), (9, 15, "mic_e"))
    assert set(reference.statistics(mine).values()) == {0.0}
    assert [len(row) for row in mine.get_score()] == [0]


def test_a_new_pair_replaces_the_old_scores(rng):
    mine = MINE()
    assert not mine.computed()
    mine.compute_score(range(40), range(40))
    assert mine.computed()
    assert mine.mic() == pytest.approx(1)
    mine.compute_score(rng.random(400), rng.random(400))
    assert mine.mic() < 0.5


@pytest.mark.parametrize(
    "name", ["mic", "mas", "mev", "mcn", "mcn_general", "gmic", "tic", "get_score"]
)
def test_scores_that_are_not_there_are_asked_to_be_computed(name):
    with pytest.raises(ValueError, match=r"call compute_score\(x, y\) first"):
        getattr(MINE(), name)()


@pytest.mark.parametrize("alpha", [0, -0.5, 1.5, 3.9, float("nan"), float("inf")])
def test_alpha_is_an_exponent_or_a_number_of_cells(alpha):
    with pytest.raises(ValueError, match="expected alpha in"):
        MINE(alpha=alpha)


@pytest.mark.parametrize("c", [0, -1, float("nan"), float("inf")])
def test_c_is_positive(c):
    with pytest.raises(ValueError, match="expected c > 0"):
        MINE(c=c)


def test_settings_of_other_kinds_are_named():
    with pytest.raises(TypeError, match="expected alpha to be a number"):
        MINE(alpha="0.6")
    with pytest.raises(TypeError, match="expected c to be a number"):
        MINE(c=True)
    with pytest.raises(ValueError, match=r"expected est to be one of .*mic_e.*got 'mice'"):
        MINE(est="mice")


@pytest.mark.parametrize(
    ("x", "y", "error", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], ValueError, "as many records on both sides, got 2 and 3"),
        ([[1.0, 2.0]], [1.0, 2.0], ValueError, "expected x to be one column"),
        ([1.0, 2.0], [], ValueError, "expected y to be one column"),
        ([1.0, float("nan")], [1.0, 2.0], ValueError, "x has NaN"),
        (["a", "b"], [1.0, 2.0], TypeError, "expected x to hold numbers"),
    ],
)
def test_columns_that_are_none_are_named(x, y, error, text):
    mine = MINE()
    with pytest.raises(error, match=text):
        mine.compute_score(x, y)
    assert not mine.computed()


def test_mcn_takes_no_negative_eps():
    mine = scored(range(40), range(40), (0.6, 15, "mic_e"))
    with pytest.raises(ValueError, match="expected eps >= 0"):
        mine.mcn(-0.1)
