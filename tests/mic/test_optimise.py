import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax.mic.gains import UNIT, exact_gains, fast_gains
from dpmic_jax.mic.optimise import best_information

GAINS = {"fast": fast_gains, "exact": exact_gains}
_jitted = jax.jit(best_information, static_argnums=1, static_argnames="blocks")


def edge_counts(counts):
    """From [columns, rows, lanes] to the records before each edge."""
    return jnp.asarray(np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)]))


def records(counts):
    """Column and row of every record in a table."""
    columns, rows = np.indices(counts.shape).reshape(2, -1)
    return np.repeat(columns, counts.ravel()), np.repeat(rows, counts.ravel())


@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_matches_every_partition_tried_in_turn(rng, gains, parts):
    counts = rng.multinomial(60, rng.dirichlet(np.full(21, 0.4)), size=6).T.reshape(7, 3, 6)
    found = best_information(edge_counts(counts.astype(np.int32)), parts, GAINS[gains](60))
    for lane in range(6):
        tried = oracles.enumerate_merges(*records(counts[..., lane]), 7, parts)
        np.testing.assert_allclose(np.asarray(found[:, lane]) / UNIT, tried, atol=1e-6)


@pytest.mark.parametrize("columns", [8, 9, 10, 11])
def test_many_parts_match_every_partition_for_any_number_of_edges(rng, columns):
    """Edges are taken four at a time, and these numbers leave each remainder."""
    counts = rng.multinomial(90, rng.dirichlet(np.full(3 * columns, 0.4)), size=2).T
    counts = counts.reshape(columns, 3, 2).astype(np.int32)
    found = best_information(edge_counts(counts), 8, exact_gains(90), blocks=2)
    for lane in range(2):
        tried = oracles.enumerate_merges(*records(counts[..., lane]), columns, 8)
        np.testing.assert_allclose(np.asarray(found[:, lane]) / UNIT, tried, atol=1e-6)


@pytest.mark.parametrize("gains", GAINS)
@given(cells=arrays(np.int32, 200, elements=st.integers(0, 23)))
def test_more_parts_never_lose_information(gains, cells):
    counts = np.bincount(cells, minlength=24).reshape(6, 4, 1).astype(np.int32)
    found = np.asarray(_jitted(edge_counts(counts), 6, GAINS[gains](200)))
    assert np.all(found >= 0)
    assert np.all(np.diff(found, axis=0) >= 0)


@pytest.mark.parametrize("parts", [4, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("gains", GAINS)
def test_blocks_change_nothing(rng, gains, parts):
    counts = rng.multinomial(500, np.full(26 * 5, 1 / 130), size=16).T.reshape(26, 5, 16)
    edges = edge_counts(counts.astype(np.int32))
    one, *others = (
        np.asarray(_jitted(edges, parts, GAINS[gains](500), blocks=blocks)) for blocks in (1, 2, 5)
    )
    for other in others:
        np.testing.assert_array_equal(one, other)


def test_padding_with_empty_columns_and_rows_changes_nothing(rng):
    counts = rng.multinomial(200, np.full(40, 1 / 40), size=4).T.reshape(8, 5, 4).astype(np.int32)
    padded = np.pad(counts, ((0, 3), (0, 2), (0, 0)))
    gains = exact_gains(200)
    np.testing.assert_array_equal(
        best_information(edge_counts(counts), 4, gains),
        best_information(edge_counts(padded), 4, gains),
    )


@pytest.mark.parametrize("gains", GAINS)
def test_a_diagonal_table_has_all_the_information(gains):
    counts = (np.eye(8, dtype=np.int32) * 16)[..., None]
    found = best_information(edge_counts(counts), 8, GAINS[gains](128))
    np.testing.assert_allclose(np.asarray(found[-1, 0]) / UNIT, 3, atol=1e-6)


@pytest.mark.parametrize("gains", GAINS)
def test_one_row_tells_nothing(gains):
    counts = np.full((5, 1, 2), 10, np.int32)
    assert not np.asarray(best_information(edge_counts(counts), 3, GAINS[gains](50))).any()
