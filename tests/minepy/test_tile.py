"""The compiled program of pstats: what it does apart from the definition, for speed."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpmic_jax.minepy import pstats, tile


@pytest.mark.parametrize("n", [2**23 - 1, 2**23 + 3])
def test_ranks_are_divided_exactly(n):
    by = np.unique(np.geomspace(1, n, 3000).astype(np.int32))
    # Where a quotient that is rounded would go wrong: at a multiple, and one before it.
    multiple = n // by * by
    for ranks in (multiple, multiple - 1, np.full_like(by, n), np.zeros_like(by)):
        found = tile._divide(n, jnp.asarray(ranks.astype(np.int32)), jnp.asarray(by))
        np.testing.assert_array_equal(found, ranks // by)


def test_an_xla_that_does_not_know_our_options_finds_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(11, 40))
    expected = pstats(X, 0.6, 2)
    tile.program.cache_clear()
    monkeypatch.setattr(tile, "COMPILER", {"cpu": {"xla_cpu_no_such_option": 1}})
    np.testing.assert_array_equal(pstats(X, 0.6, 2), expected)
    assert tile.program.cache_info().misses == 1  # it was compiled again
    tile.program.cache_clear()
