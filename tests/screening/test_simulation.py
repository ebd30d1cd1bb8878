"""Mean and deviation on independent columns: of any statistic, by laws that are known."""

import itertools
import math

import numpy as np
import pytest

from dpmic_jax import MICr, micr
from dpmic_jax.paper.calibration import variations
from dpmic_jax.screening.simulation import micr_values, simulated

PAIRS = np.array(list(itertools.combinations(range(5), 2)))


def squared_correlations(columns, pairs):
    return np.corrcoef(columns)[tuple(pairs.T)] ** 2


@pytest.mark.parametrize("n", [5, 50])
def test_any_statistic_will_do_such_as_one_whose_mean_is_known(n):
    """r^2 of independent columns has mean 1 / (n - 1), whatever their law, and falls off near it.

    Ranks would do for the proof: all orders of one column beside the other are as likely.
    """
    found = simulated(squared_correlations, n, columns=128)
    error = 4 * found.deviation / math.sqrt(128 * 127 / 2)
    assert error < 0.2 / (n - 1)
    assert abs(found.mean - 1 / (n - 1)) < error


def test_a_statistic_of_another_mechanism_will_do():
    def variation(columns, pairs):
        x, y = np.array(columns, np.float32)[pairs.T]
        return variations(x, y, 4)

    found = [simulated(variation, n, columns=24) for n in (100, 1600)]
    # What total variation is by chance falls with the square root of n.
    assert found[0].mean / found[1].mean == pytest.approx(4, rel=0.05)
    assert found[0].deviation / found[1].deviation == pytest.approx(4, rel=0.3)


def test_moments_are_those_of_all_pairs_and_the_draw_is_repeatable():
    kept = []

    def values(columns, pairs):
        kept.append(columns)
        return np.arange(len(pairs), dtype=float)

    first, again, other = (simulated(values, n, columns=4) for n in (30, 30, 31))
    assert first == again == other == (2.5, pytest.approx(math.sqrt(3.5)))
    np.testing.assert_array_equal(kept[0], kept[1])
    assert not np.isin(kept[0], kept[2]).any()
    assert np.shape(kept[0]) == (4, 30)
    assert 0 <= np.min(kept[0]) <= np.max(kept[0]) < 1


def test_values_of_micr_are_micr(rng):
    columns = list(rng.random((5, 60)))
    found = micr_values(MICr(B=12, c=2))(columns, PAIRS)
    for value, (one, other) in zip(found, PAIRS, strict=True):
        x, y = columns[one], columns[other]
        wanted = micr(x, y, bounds=[(0, 1), (0, 1)], B=12, c=2)
        assert value == pytest.approx(float(wanted), abs=4e-6)
