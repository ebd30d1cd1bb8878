import jax
import numpy as np
import pandas as pd
import pytest
from p_value_checks import all_orders, mic, not_uniform, tic, too_small

from dpmic_jax import MICe, MICr
from dpmic_jax.inference import Permutation, permutation_p_values, shuffling
from dpmic_jax.inference.permutation import count_as_large
from dpmic_jax.mic.characteristic import mic as read_mic
from dpmic_jax.mic.characteristic import tic as read_tic
from dpmic_jax.mic.ties import RandomTies

SMALL = {
    "MICe": MICe(B=6, c=2),
    "MICe, broken ties": MICe(B=6, c=2, ties=RandomTies(jax.random.key(3))),
    "MICr": MICr(B=6, c=2),
}
MEASURES = {"mic": (read_mic, mic), "tic": (read_tic, tic)}
COLUMNS = {
    "continuous": lambda rng, shape: rng.random(shape),
    "tied": lambda rng, shape: np.round(rng.beta(0.5, 0.5, shape), 1),
    "discrete": lambda rng, shape: rng.integers(0, 2, shape) / 1.0,
}


def p_values(columns, pairs, statistic, key, **settings):
    bounds = [(0, 1)] * len(columns) if isinstance(statistic, MICr) else None
    return permutation_p_values(
        np.stack(columns, axis=1),
        pairs=pairs,
        statistic=statistic,
        bounds=bounds,
        key=key,
        **settings,
    )


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        pytest.param(name, measure, marks=() if measure == "mic" else pytest.mark.slow)
        for name in ("MICe", "MICr")
        for measure in MEASURES
    ],
)
def test_all_720_orders_agree_with_brute_force(monkeypatch, rng, key, name, measure):
    def every_order(key, draws, n, mesh):
        return np.where(draws[:, None] > 0, all_orders(n)[draws - 1], np.arange(n)).astype(np.int32)

    monkeypatch.setattr(shuffling, "shuffles", every_order)
    read, oracle = MEASURES[measure]
    columns = [np.round(rng.random(6), 1), np.array([0, 0.3, 0.3, 0.8, 1, 1]), rng.random(6)]
    found = p_values(columns, [(0, 1), (1, 2)], SMALL[name], key, measure=read, draws=720)
    for p, (x, y) in zip(found, ((0, 1), (1, 2)), strict=True):
        values = np.array(
            [oracle(columns[x], columns[y][order], SMALL[name]) for order in all_orders(6)]
        )
        as_large = (values >= values[0] - 1e-6).sum()
        assert p == pytest.approx((1 + as_large) / 721, rel=1e-12)


def independent(kind, name, measure, rounds=4, tests=50, n=40, draws=199):
    """P-values of independent pairs; `draws` are shared by the `tests` of a round."""
    rng, found = np.random.default_rng(11), []
    for round_ in range(rounds):
        columns = list(COLUMNS[kind](rng, (2 * tests, n)))
        pairs = [(i, tests + i) for i in range(tests)]
        key = jax.random.key(100 + round_)
        found.append(
            p_values(columns, pairs, SMALL[name], key, measure=MEASURES[measure][0], draws=draws)
        )
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("kind", "name", "measure"),
    [
        ("continuous", "MICe", "tic"),
        ("tied", "MICe", "mic"),
        ("discrete", "MICe, broken ties", "mic"),
        ("continuous", "MICr", "mic"),
        ("discrete", "MICr", "tic"),
    ],
)
def test_p_values_are_valid_for_independent_columns(kind, name, measure):
    p = independent(kind, name, measure)
    assert not too_small(p, sharing=50 / 199)
    if kind == "continuous":
        assert not not_uniform(p, sharing=50 / 199)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("kind", COLUMNS)
def test_p_values_are_valid_for_independent_columns_of_every_kind(kind, name, measure):
    p = independent(kind, name, measure, rounds=20)
    assert not too_small(p, sharing=50 / 199)
    if kind == "continuous" and measure == "tic":
        assert not not_uniform(p, sharing=50 / 199)


def test_shuffling_both_columns_alike_would_be_noticed(monkeypatch, rng, key):
    """It shuffles nothing: p is 1 on the plainest dependence."""
    x = rng.random(50)
    dependent = [x, x**2]
    assert p_values(dependent, [(0, 1)], SMALL["MICe"], key, draws=99) == 0.01

    def alike(columns, first, second, orders):
        moved = jax.tree.map(lambda codes: codes[..., orders[0]], columns)
        still = jax.numpy.broadcast_to(jax.numpy.arange(orders.shape[1])[None], orders.shape)
        return shuffling._side_by_side(moved, first, second, still)

    broken = shuffling._LAYING_OUT._replace(function=alike)
    monkeypatch.setattr(shuffling, "_LAYING_OUT", broken)
    assert p_values(dependent, [(0, 1)], SMALL["MICe"], key, draws=99) == 1


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", SMALL)
def test_strong_dependence_has_the_smallest_p(rng, key, name, measure):
    x = rng.random(80)
    columns = [x, 4 * (x - 0.5) ** 2 + rng.normal(0, 0.05, 80), np.round(x, 1)]
    test = Permutation(statistic=SMALL[name], measure=MEASURES[measure][0], draws=199)
    p = test.p_values(columns, np.array([[0, 1], [2, 1]]), [(0, 1)] * 3, key=key)
    assert p.tolist() == [test.smallest_p] * 2 == [1 / 200] * 2


def test_a_constant_column_depends_on_nothing(rng, key):
    columns = [rng.random(20), np.full(20, 0.5)]
    for name in ("MICe", "MICr"):
        assert p_values(columns, [(0, 1)], SMALL[name], key, draws=30) == 1


@pytest.mark.parametrize("name", ["MICe, broken ties", "MICr"])
def test_same_p_values_for_any_tile_and_devices(rng, key, name):
    columns, pairs = list(np.round(rng.random((4, 30)), 1)), np.array([[0, 1], [2, 3], [0, 3]])
    cut = SMALL[name].cut(columns, [(0, 1)] * 4) if name == "MICr" else SMALL[name].cut(columns)
    expected = count_as_large(cut, pairs, read_tic, 50, key=key)
    assert 0 < expected.sum() < 150
    for tile, devices in ((7, 1), (4, 3)):
        found = count_as_large(
            cut, pairs, read_tic, 50, key=key, tile=tile, devices=jax.devices()[:devices]
        )
        np.testing.assert_array_equal(found, expected)
    test = Permutation(statistic=SMALL[name], measure=read_tic, draws=50)
    together = test.p_values(columns, pairs, [(0, 1)] * 4, key=key)
    np.testing.assert_array_equal(together, (1 + expected) / 51)
    # Alone, a pair has the p-value that it has among others.
    for pair, p in zip(pairs, together, strict=True):
        assert test.p_values(columns, pair[None], [(0, 1)] * 4, key=key) == p


def test_pairs_of_a_data_frame_are_given_by_name(rng, key):
    X = rng.random((20, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    by_name = permutation_p_values(
        frame,
        pairs=[("a", "c")],
        statistic=SMALL["MICr"],
        key=key,
        draws=20,
        bounds={"a": (0, 1), "b": (0, 1), "c": (0, 1)},
    )
    assert by_name == p_values(list(X.T), [(0, 2)], SMALL["MICr"], key, draws=20)
