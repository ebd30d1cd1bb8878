import itertools

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from p_value_checks import mic, tic
from scipy import stats

from dpmic_jax import MICe, MICr
from dpmic_jax.inference import shuffling
from dpmic_jax.mic import coding
from dpmic_jax.mic.characteristic import mic as read_mic
from dpmic_jax.mic.characteristic import tic as read_tic
from dpmic_jax.mic.ties import RandomTies

SMALL = {"MICe": MICe(B=6, c=2), "MICr": MICr(B=6, c=2)}
PAIRS = np.array([[0, 1], [2, 1], [2, 0]])


def cut_of(statistic, columns):
    if isinstance(statistic, MICr):
        return statistic.cut(columns, [(0, 1)] * len(columns))
    return statistic.cut(columns)


def shuffles(key, draws, n):
    return shuffling.shuffles(key, draws, n, Mesh(np.array(jax.devices()[:1]), ("pairs",)))


def run(cut, draws, key, measure=read_mic, **settings):
    found = shuffling.measured(cut, PAIRS, measure, draws, key=key, **settings)
    return np.concatenate(list(found)).reshape(-1, len(PAIRS))


@pytest.fixture
def columns(rng):
    """Without ties, with a few, with many."""
    return [rng.random(13), np.round(rng.random(13), 1), rng.integers(0, 2, 13) / 1.0]


def test_all_orders_are_equally_likely(key):
    orders = np.concatenate(
        [shuffles(key, np.arange(i, i + 4000), 4) for i in range(1, 24_001, 4000)]
    )
    place = {order: index for index, order in enumerate(itertools.permutations(range(4)))}
    counts = np.bincount([place[tuple(order)] for order in orders.tolist()], minlength=24)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("decided", [True, False])
def test_equal_words_are_decided_by_further_ones(key, decided, monkeypatch):
    """Words of 1 bit, so that all draws have ties; without the further words orders are biased."""
    program = shuffling.compiled

    def of_one_bit(*given):
        return lambda *arrays: np.asarray(program(*given)(*arrays)) & 1

    monkeypatch.setattr(shuffling, "compiled", of_one_bit)
    if not decided:
        monkeypatch.setattr(shuffling, "_tied", lambda words, orders: np.zeros(len(words), bool))
    orders = shuffles(key, np.arange(1, 1001), 4)
    place = {order: index for index, order in enumerate(itertools.permutations(range(4)))}
    counts = np.bincount([place[tuple(order)] for order in orders.tolist()], minlength=24)
    assert (stats.chisquare(counts).pvalue > 1e-3) == decided
    np.testing.assert_array_equal(shuffles(key, np.arange(1, 1001), 4), orders)


def test_a_draw_is_the_same_in_any_batch(key):
    together = shuffles(key, np.arange(6), 50)
    np.testing.assert_array_equal(together[0], np.arange(50))
    for draw in range(6):
        alone = shuffles(key, np.array([draw, draw]), 50)
        np.testing.assert_array_equal(alone, together[[draw, draw]])
    assert len(np.unique(together, axis=0)) == 6


def test_a_key_that_breaks_ties_gives_other_orders_here(key):
    n = 30
    broken = [RandomTies(key)(np.zeros(n), column).records for column in range(5)]
    for order in shuffles(key, np.arange(5), n):
        assert not any(np.array_equal(order, other) for other in broken)


@pytest.mark.parametrize("name", SMALL)
def test_equals_brute_force_on_shuffled_records(columns, key, name):
    cut = cut_of(SMALL[name], columns)
    for measure, oracle in ((read_mic, mic), (read_tic, tic)):
        found = run(cut, range(0, 4), key, measure)
        for draw, order in enumerate(shuffles(key, np.arange(4), 13)):
            expected = [oracle(columns[x], columns[y][order], SMALL[name]) for x, y in PAIRS]
            np.testing.assert_allclose(found[draw], expected, atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_both_ways_of_counting_agree(columns, key, name, monkeypatch):
    cut = cut_of(SMALL[name], columns)
    with monkeypatch.context() as patch:
        patch.setattr(shuffling, "cheaper_codes", lambda *cut: coding.direct_codes(*cut[:2]))
        direct = run(cut, range(0, 9), key)
        patch.setattr(shuffling, "cheaper_codes", lambda *cut: coding.refined_codes(*cut[:2]))
        np.testing.assert_array_equal(run(cut, range(0, 9), key), direct)
        other = run(cut, range(0, 9), key, tile=3, devices=jax.devices()[:2])
        np.testing.assert_array_equal(other, direct)


def test_same_bits_for_any_tile_device_and_part_of_the_draws(columns, key):
    cut = cut_of(SMALL["MICe"], columns)
    for measure in (read_mic, read_tic):
        found = run(cut, range(0, 12), key, measure)
        for lanes, devices in ((1, 1), (5, 1), (4, 3)):
            other = run(
                cut, range(0, 12), key, measure, tile=lanes, devices=jax.devices()[:devices]
            )
            np.testing.assert_array_equal(other, found)
        np.testing.assert_array_equal(run(cut, range(3, 8), key, measure), found[3:8])


def test_a_draw_shares_its_order_among_pairs(key):
    x = np.random.default_rng(1).random((2, 40))
    cut = SMALL["MICe"].cut([x[0], x[1], x[0]])
    found = run(cut, range(0, 5), key)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])


def test_stops_when_the_caller_does(columns, key):
    cut = cut_of(SMALL["MICe"], columns)
    tiles = shuffling.measured(cut, PAIRS, read_mic, range(0, 10**9), key=key)
    assert 0 < len(next(tiles)) < 1000
    tiles.close()


def test_a_measure_must_give_one_number_for_each_matrix(columns, key):
    cut = cut_of(SMALL["MICe"], columns)
    with pytest.raises(ValueError, match="one number for each matrix"):
        run(cut, range(0, 2), key, lambda matrix: matrix.values)
