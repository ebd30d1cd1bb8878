import math

import numpy as np
import oracles
import pandas as pd
import pytest

from dpmic_jax import MICe, MICr, characteristic, characteristics, pairwise
from dpmic_jax.mic.characteristic import (
    Characteristic,
    gmic,
    mas,
    mcn,
    mev,
    mic,
    tic,
    tic_normalised,
)


@pytest.fixture
def pair(rng):
    x = rng.normal(size=60)
    return x, np.sin(3 * x) + 0.3 * rng.normal(size=60)


def entries(pair):
    return oracles.characteristic(
        *pair, 24, 3, lambda v, parts, _: oracles.mass_codes(v, parts), oracles.merge_by_recursion
    )


def test_every_entry_is_the_definition(pair):
    found = characteristic(*pair, statistic=MICe(B=24, c=3))
    expected = entries(pair)
    cells = found.entries
    scored = dict(
        zip(
            zip(cells.x_parts.tolist(), cells.y_parts.tolist(), strict=True),
            found.values,
            strict=True,
        )
    )
    assert scored.keys() == expected.keys()
    for cell, value in expected.items():
        assert scored[cell] == pytest.approx(value, abs=2e-6)
        assert found.matrix[cell[0] - 2, cell[1] - 2] == scored[cell]
    assert np.isnan(found.matrix).sum() == found.matrix.size - len(expected)


def test_every_statistic_is_read_off_as_defined(pair):
    found, expected = characteristic(*pair, statistic=MICe(B=24, c=3)), entries(pair)
    values = list(expected.values())
    best = max(values)
    assert found.mic == pytest.approx(best, abs=2e-6)
    assert found.tic == pytest.approx(sum(values), abs=1e-4)
    assert found.tic_normalised == pytest.approx(sum(values) / len(values), abs=2e-6)
    assert found.mas == pytest.approx(
        max(abs(v - expected[cell[::-1]]) for cell, v in expected.items()), abs=4e-6
    )
    assert found.mev == pytest.approx(max(v for c, v in expected.items() if 2 in c), abs=2e-6)
    for eps in (0.05, 0.3, 1.0):
        good = [c for c, v in expected.items() if v >= (1 - eps) * best]
        assert found.mcn(eps) == pytest.approx(min(math.log2(k * rows) for k, rows in good))
    largest = [
        max(v for other, v in expected.items() if math.prod(other) <= math.prod(cell))
        for cell in expected
    ]
    for p in (-1, 1, 2):
        mean = (sum(v**p for v in largest) / len(largest)) ** (1 / p)
        assert found.gmic(p) == pytest.approx(mean, abs=1e-5)
    geometric = math.exp(sum(map(math.log, largest)) / len(largest))
    assert found.gmic(0) == pytest.approx(geometric, abs=1e-5)


def test_gmic_tends_to_mic(pair):
    found = characteristic(*pair, statistic=MICe(B=24, c=3))
    assert found.gmic(2000) == pytest.approx(found.mic, abs=5e-3)


def test_measures_take_many_pairs_at_once(pair, rng):
    one = characteristic(*pair, statistic=MICe(B=24, c=3))
    other = characteristic(pair[0], rng.normal(size=60), statistic=MICe(B=24, c=3))
    both = Characteristic(np.stack([one.values, other.values]), one.entries)
    for measure in (mic, tic, tic_normalised, mas, mev, mcn, gmic):
        np.testing.assert_allclose(measure(both), [measure(one), measure(other)])
    assert both.matrix.shape == (2, *one.matrix.shape)


def test_matrices_of_many_pairs_are_those_of_each_pair(pair, rng):
    columns = {"a": pair[0], "b": pair[1], "c": rng.normal(size=60)}
    wanted = [("a", "b"), ("c", "a"), ("b", "b")]
    many = characteristics(pd.DataFrame(columns), pairs=wanted, statistic=MICe(B=24, c=3))
    for found, names in zip(many.values, wanted, strict=True):
        alone = characteristic(*(columns[name] for name in names), statistic=MICe(B=24, c=3))
        np.testing.assert_allclose(found, alone.values, atol=2e-6)
    by_place = characteristics(
        np.stack(list(columns.values()), axis=1),
        pairs=[(0, 1), (2, 0), (1, 1)],
        statistic=MICe(B=24, c=3),
    )
    np.testing.assert_array_equal(many.values, by_place.values)


def test_matrices_of_more_pairs_than_a_tile_hold_what_pairwise_reads_off(rng):
    table = rng.random((50, 10))
    pairs = [(i, j) for i in range(10) for j in range(i)]
    settings = {"statistic": MICr(B=12, c=2), "bounds": [(0, 1)] * 10}
    many = characteristics(table, pairs=pairs, **settings)
    for measure in (mic, tic, mas):
        matrix = pairwise(table, measure=measure, **settings).matrix
        np.testing.assert_allclose(measure(many), [matrix[pair] for pair in pairs], atol=1e-5)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([], "at least one"),
        (["ab"], "two columns"),
        ([(0, 1, 2)], "two columns"),
        ([(0, "z")], "an unknown column 'z'"),
        ([(0, 3)], "position from 0 to 2"),
        ([(-1, 0)], "position from 0 to 2"),
    ],
)
def test_pairs_that_are_not_there_are_refused(rng, pairs, text):
    with pytest.raises(ValueError, match=text):
        characteristics(rng.random((20, 3)), pairs=pairs, statistic=MICe())


def test_mcn_refuses_a_strange_eps(pair):
    with pytest.raises(ValueError, match="eps"):
        characteristic(*pair, statistic=MICe(B=24, c=3)).mcn(1.5)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("statistic", "bounds"),
    [
        (MICe(B=24, c=3), None),
        (MICr(B=24, c=3), ((-4, 4), (-2, 2))),
        (MICr(B=24, c=0.5), ((-4, 4), (-2, 2))),
    ],
)
def test_the_grid_that_attains_mic_has_that_information(pair, statistic, bounds, tied):
    x, y = (np.round(values, int(not tied) * 8 + tied) for values in pair)
    found = characteristic(x, y, statistic=statistic, bounds=bounds)
    for merged, fixed in ((found.x_cuts, found.y_cuts), (found.y_cuts, found.x_cuts)):
        assert np.all(np.diff(merged) > 0)
        assert (1 + len(merged)) * (1 + len(fixed)) <= 24
    table = oracles.table_of(
        np.searchsorted(found.x_cuts, x, side="right"),
        np.searchsorted(found.y_cuts, y, side="right"),
    )
    shorter = 1 + min(len(found.x_cuts), len(found.y_cuts))
    if not tied:  # with ties a partition may have fewer parts than asked for
        assert oracles.information(table) / math.log2(shorter) == pytest.approx(found.mic, abs=2e-6)
    else:
        assert oracles.information(table) <= found.mic * math.log2(5)
        assert oracles.information(table) >= found.mic * math.log2(2) - 2e-6
