"""The compiled program of pstats: what it does apart from the definition, for speed."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

from dpmic_jax.mic.grids import Bucket, buckets
from dpmic_jax.mic.kernel import Layout
from dpmic_jax.minepy import superclumps, tile
from dpmic_jax.minepy.partitions import cut_columns
from dpmic_jax.minepy.settings import Settings

N, PAIRS = 40, 8


@pytest.mark.parametrize("n", [2**23 - 1, 2**23 + 3])
def test_ranks_are_divided_exactly(n):
    by = np.unique(np.geomspace(1, n, 3000).astype(np.int32))
    # Where a quotient that is rounded would go wrong: at a multiple, and one before it.
    multiple = n // by * by
    for ranks in (multiple, multiple - 1, np.full_like(by, n), np.zeros_like(by)):
        found = superclumps._divide(n, jnp.asarray(ranks.astype(np.int32)), jnp.asarray(by))
        np.testing.assert_array_equal(found, ranks // by)


def cut(tied, rng):
    kinds = range(PAIRS + 1) if tied else [0] * (PAIRS + 1)
    X = np.stack([reference.column(kind % reference.KINDS, N, rng) for kind in kinds])
    grids = Settings(14, 2, "mic_approx").plan(N).grids
    return X, cut_columns(X, grids), Layout((Bucket(grids[:1]), Bucket(grids[1:])), PAIRS, 16, True)


def counted(columns, layout, blocks, number=PAIRS):
    """Counts of the neighbours among the columns."""
    first = np.arange(PAIRS, dtype=np.int32)
    program = jax.jit(partial(tile.count, layout=layout, blocks=blocks))
    given = np.array([number], np.int32), np.int32(N)
    return [np.asarray(one) for one in program(tile.pack(columns), first, first + 1, *given)]


def by_hand(merged, fixed, grid):
    """Records of each cell of the superclumps of one column by the rows of another."""
    order = np.argsort(merged, kind="stable")
    rows = reference.equipartition(fixed, grid.rows)[0][order]
    parts = reference.superclumps(reference.clumps(merged[order], rows.tolist()), grid.master)
    counts = np.zeros((grid.master, grid.rows), int)
    np.add.at(counts, (parts, rows), 1)
    return counts


@pytest.mark.parametrize("tied", [True, False])
def test_counts_are_those_of_the_published_procedure(tied, rng):
    X, columns, layout = cut(tied, rng)
    found = counted(columns, layout, tile.blocks_for(layout, columns, "cpu"))
    for bucket, counts in zip(layout.buckets, found, strict=True):
        lane = iter(counts)
        for pair in range(PAIRS):
            for grid in bucket.grids:
                for merged, fixed in ((pair, pair + 1), (pair + 1, pair)):
                    here = next(lane)
                    expected = by_hand(X[merged], X[fixed], grid)
                    np.testing.assert_array_equal(here[: grid.master, : grid.rows], expected)
                    assert here.sum() == N


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("pairs", "grids"), [(8, 4), (2, 4), (1, 6)])
def test_blocks_of_any_size_count_the_same(pairs, grids, tied, rng):
    """Also where grids, of which there are six, do not fill the last block."""
    _, columns, layout = cut(tied, rng)
    whole = counted(columns, layout, tile.Blocks(8, 6, 4, tied))
    some = counted(columns, layout, tile.Blocks(pairs, grids, 4, tied))
    for one, other in zip(whole, some, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_more_pairs_are_counted_than_there_are(rng):
    _, columns, layout = cut(True, rng)
    blocks = tile.Blocks(2, 6, 4, True)
    for bucket, counts in zip(layout.buckets, counted(columns, layout, blocks, 3), strict=True):
        lanes = 2 * len(bucket.grids)
        assert counts[: 3 * lanes].any(axis=(1, 2)).all()
        assert not counts[4 * lanes :].any()  # one beyond fills the last block


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("n", [50, 3000])
@pytest.mark.parametrize("most", [2**10, 2**14, 2**25])
def test_blocks_hold_no_more_than_they_may(most, n, platform, monkeypatch):
    grids = Settings(0.6, 5, "mic_approx").plan(n).grids
    columns = cut_columns(np.random.default_rng(0).random((3, n)), grids)
    monkeypatch.setattr(tile, "MOST_HELD", most)
    layout = tile.layout_for(grids, 500, platform)
    pairs, some, digits, tied = tile.blocks_for(layout, columns, platform)
    assert layout.pairs % pairs == 0
    assert not tied
    # A pair and a word of grids at least.
    held = 2 * tile.room(columns)[1] * pairs * some
    assert held <= most or (pairs == 1 and some <= digits)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_the_program_lowers_for_other_devices(platform, tied):
    grids = Settings(0.6, 5, "mic_approx").plan(60).grids
    columns = cut_columns(np.random.default_rng(0).normal(size=(5, 60)), grids)
    layout = Layout(buckets(grids, 100), 8, 16, True)
    blocks = tile.blocks_for(layout, columns, platform)._replace(tied=tied)
    program = jax.jit(partial(tile.count, layout=layout, blocks=blocks))
    pair, number = np.zeros(8, np.int32), np.zeros(1, np.int32)
    given = tile.pack(columns), pair, pair, number, np.int32(60)
    exported = jax.export.export(program, platforms=[platform])(*given)
    assert exported.platforms == (platform,)
    shapes = [(layout.room(one), one.master, one.rows) for one in layout.buckets]
    assert [one.shape for one in exported.out_avals] == shapes
