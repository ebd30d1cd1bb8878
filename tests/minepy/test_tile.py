"""The compiled program of pstats: what it does apart from the definition, for speed."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpmic_jax.mic.gains import gains_for
from dpmic_jax.mic.grids import buckets
from dpmic_jax.minepy import pstats, tile
from dpmic_jax.minepy.partitions import cut_columns
from dpmic_jax.minepy.settings import Settings


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


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_the_program_lowers_for_other_devices(platform, tied):
    X = np.random.default_rng(0).normal(size=(5, 60))
    grids = Settings(0.6, 5, "mic_approx").plan(60).grids
    columns = cut_columns(X, grids)
    layout = tile.Layout(buckets(grids, 100), columns.rows.dtype, tied)
    program, pair = jax.jit(partial(tile.score, layout=layout)), np.zeros(8, np.int32)
    given = tile.put(columns), pair, pair, gains_for(60)
    exported = jax.export.export(program, platforms=[platform])(*given)
    assert exported.platforms == (platform,)
    scored = sum(grid.parts - 1 for grid in grids)
    assert exported.out_avals[0].shape == (scored, 2, 8)
