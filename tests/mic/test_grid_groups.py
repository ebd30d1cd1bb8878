"""Plans that do not fit in memory, at a small size with little room."""

import numpy as np

from dpmic_jax import MICe
from dpmic_jax.mic import batch, grid_groups
from dpmic_jax.mic.xlogx import exact_gains


def test_grids_scored_group_by_group_give_the_same_bits(rng, monkeypatch):
    columns = [*rng.random((2, 300)), rng.integers(0, 5, 300)]
    cut, pairs = MICe(B=24, c=3).cut(columns), np.array([[0, 1], [0, 2], [1, 2]])
    whole = _joined(batch.score_pairs(cut, pairs, exact_gains(300)))
    assert grid_groups.groups_of(cut) == [range(11)]
    monkeypatch.setattr(grid_groups, "_REFINED_CELLS", 1)
    monkeypatch.setattr(grid_groups, "DIRECT_BYTES", 4 * 500 * 3 * 3)
    monkeypatch.setattr(grid_groups, "_PAIRS", 2)
    assert grid_groups.groups_of(cut) == [range(3), range(3, 6), range(6, 9), range(9, 11)]
    found = _joined(grid_groups.score_pairs(cut, pairs, exact_gains(300)))
    np.testing.assert_array_equal(found, whole)


def _joined(tiles):
    return np.concatenate(list(tiles), axis=2)
