import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpmic_jax import MICe, MICr
from dpmic_jax.mic import counting, sweep, tile
from dpmic_jax.mic.gains import exact_gains
from dpmic_jax.mic.grids import buckets


def histogram(columns, rows, shape):
    counts, _, _ = np.histogram2d(columns, rows, [np.arange(s + 1) for s in shape])
    return np.concatenate([np.zeros((1, shape[1])), counts.cumsum(axis=0)])


@pytest.mark.parametrize("n", [4, 8, 337])
def test_direct_counts_are_histograms(rng, n):
    columns = rng.integers(0, 5, (3, n)).astype(np.uint8)
    rows = rng.integers(0, 4, (3, n)).astype(np.uint8)
    padded = counting.pad_records(columns, 9), counting.pad_records(rows, 0)
    assert padded[0].shape[1] % counting.ALIGN == 0
    found = counting.direct(*map(jnp.asarray, padded), (5, 4))
    for lane in range(3):
        np.testing.assert_array_equal(
            found[..., lane], histogram(columns[lane], rows[lane], (5, 4))
        )


def test_padding_widens_the_dtype_when_it_must():
    assert counting.pad_records(np.zeros(5, np.uint8), 300).dtype == np.uint16


CUTS = {
    "by rank, tied": lambda columns: MICe(B=30, c=4).cut(columns),
    "by width": lambda columns: MICr(B=30, c=4).cut(columns, [(0, 9), (0, 1), (-1, 1)]),
}


@pytest.fixture
def columns(rng):
    return [rng.integers(0, 9, 203), rng.random(203), rng.normal(size=203)]


@pytest.mark.parametrize("how", CUTS)
def test_both_ways_of_counting_give_the_same_integers(columns, how):
    cut = CUTS[how](columns)
    pairs = np.array([[0, 1], [2, 1], [0, 2], [1, 1]])
    one, other = (
        np.concatenate(
            list(
                sweep.information(
                    prepare(cut.masters, cut.rows),
                    cut.grids,
                    pairs,
                    exact_gains(cut.n),
                    devices=jax.devices()[:1],
                    tile=4,
                )
            ),
            axis=-1,
        )
        for prepare in (tile.direct_codes, tile.refined_codes)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch", [7, 200, 203])
def test_row_batches_add_up_to_the_same_integers(columns, batch):
    cut = CUTS["by width"](columns)
    whole = tile.refined_codes(cut.masters, cut.rows)
    first, second = jnp.array([0, 1], jnp.int32), jnp.array([2, 2], jnp.int32)
    layout = tile.Layout(buckets(cut.grids, 2), 64)
    total, add = jnp.zeros((2, *whole.counts_shape), jnp.int32), jax.jit(tile.add_records)
    for start in range(0, cut.n, batch):
        some = slice(start, start + batch)
        part = tile.refined_codes(
            cut.masters._replace(fine=cut.masters.fine[:, some]),
            cut.rows._replace(fine=cut.rows.fine[:, some]),
        )
        total = add(total, part.codes, first, second)
    gains = exact_gains(cut.n)
    np.testing.assert_array_equal(
        tile.score_counts(total, whole.edges, first, second, gains, layout=layout),
        tile.score(whole, first, second, gains, layout=layout),
    )


def test_the_way_of_counting_follows_the_number_of_records(rng):
    def way(n):
        cut = MICr(B=60, c=5).cut([rng.random(n), rng.random(n)], [(0, 1), (0, 1)])
        return type(tile.cheaper_codes(cut.masters, cut.rows))

    assert way(200) is tile.DirectCodes
    assert way(50_000) is tile.RefinedCodes
