import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmic_jax.mic import optimise
from dpmic_jax.mic.optimise import at_most, best_information
from dpmic_jax.mic.xlogx import UNIT, ExactGains, FastGains, exact_gains, fast_gains

GAINS = {"fast": fast_gains, "exact": exact_gains}
_program = jax.jit(best_information, static_argnums=1)


def best(edges, parts, gains):
    return at_most(np.asarray(_program(edges, parts, gains)), gains)


def edge_counts(counts):
    """From [columns, rows, lanes] to the records of each row, and of all, before each edge."""
    counts = np.concatenate([counts, counts.sum(axis=1, keepdims=True, dtype=np.int32)], axis=1)
    return jnp.asarray(np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)]))


def drawn(rng, records, columns, rows, lanes):
    """Tables of so many records, in [columns, rows, lanes]: uneven ones, with empty cells."""
    chances = rng.dirichlet(np.full(columns * rows, 0.4))
    counts = rng.multinomial(records, chances, size=lanes).T
    return counts.reshape(columns, rows, lanes).astype(np.int32)


def tried(counts, parts):
    """Most information of at most 2, 3, ..., `parts` merged columns, by trying all."""
    columns, rows = np.indices(counts.shape).reshape(2, -1)
    found = oracles.enumerate_merges(
        np.repeat(columns, counts.ravel()),
        np.repeat(rows, counts.ravel()),
        len(counts),
        min(parts, len(counts)),
    )
    return np.maximum.accumulate(found + found[-1:] * (parts - 1 - len(found)))


def assert_best(found, counts, parts):
    for lane in range(counts.shape[2]):
        expected = tried(counts[..., lane], parts)
        np.testing.assert_allclose(np.asarray(found[:, lane]) / UNIT, expected, atol=2e-6)


@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_matches_every_partition_tried_in_turn(rng, gains, parts):
    counts = drawn(rng, 60, 7, 3, 6)
    assert_best(best(edge_counts(counts), parts, GAINS[gains](60)), counts, parts)


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7, 8, 9, 12])
def test_any_number_of_columns_matches_every_partition(rng, columns):
    """Edges are folded, so that a half of them is pushed four at a time, and then the rest."""
    counts = drawn(rng, 90, columns, 3, 2)
    assert_best(best(edge_counts(counts), 5, exact_gains(90)), counts, 5)


@pytest.mark.parametrize("columns", [8, 11, 14])
def test_edges_pushed_to_a_block_at_a_time_match_every_partition(monkeypatch, rng, columns):
    """As for large masters; blocks of five edges, the last of which overlaps with another."""
    monkeypatch.setattr(optimise, "BLOCK", 5)
    monkeypatch.setattr(optimise, "SPLIT_BYTES", 8 * 4 * 2 * 5)
    counts, gains = drawn(rng, 90, columns, 3, 2), exact_gains(90)
    in_blocks = jax.jit(lambda edges, gains: best_information(edges, 4, gains))
    found = at_most(np.asarray(in_blocks(edge_counts(counts), gains)), gains)
    assert_best(found, counts, 4)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("gains", GAINS)
def test_rows_in_a_loop_tell_what_rows_in_one_kernel_do(monkeypatch, rng, gains, parts):
    """7 rows are three turns of two, and one that is left."""
    counts = drawn(rng, 80, 6, 7, 4)
    together = best(edge_counts(counts), parts, GAINS[gains](80))
    for kind in (ExactGains, FastGains):
        monkeypatch.setattr(kind, "unrolled", 2)
    # Another function, so that it is traced anew.
    in_a_loop = jax.jit(lambda edges, gains: best_information(edges, parts, gains))
    found = np.asarray(in_a_loop(edge_counts(counts), GAINS[gains](80)))
    found = at_most(found, GAINS[gains](80))
    assert_best(found, counts, parts)
    # Floats may be added in another order.
    np.testing.assert_allclose(found, together, atol=0 if gains == "exact" else 2e-6 * UNIT)


@pytest.mark.parametrize("gains", GAINS)
@given(cells=arrays(np.int32, 200, elements=st.integers(0, 23)))
def test_more_parts_never_lose_information(gains, cells):
    counts = np.bincount(cells, minlength=24).reshape(6, 4, 1).astype(np.int32)
    found = best(edge_counts(counts), 6, GAINS[gains](200))
    assert np.all(found >= 0)
    assert np.all(np.diff(found, axis=0) >= 0)


def test_empty_columns_and_rows_change_nothing(rng):
    """Where two edges are equal, and at the end, as in grids that are filled up."""
    counts = drawn(rng, 200, 6, 5, 4)
    padded = np.pad(counts, ((0, 3), (0, 2), (0, 0)))
    inside = np.insert(counts, [0, 3, 3], 0, axis=0)
    gains = exact_gains(200)
    whole = best(edge_counts(counts), 4, gains)
    for other in (padded, inside):
        np.testing.assert_array_equal(best(edge_counts(other), 4, gains), whole)
    # What is there does matter: the same test sees a column that is left out.
    assert not np.array_equal(best(edge_counts(counts[1:]), 4, gains), whole)


@pytest.mark.parametrize("gains", GAINS)
def test_one_program_serves_every_number_of_records(rng, gains):
    """As n is data; the integers' tables are of the same length."""
    programs = set()
    for records in (90, 97):
        counts = drawn(rng, records, 7, 3, 6)
        assert_best(best(edge_counts(counts), 3, GAINS[gains](records)), counts, 3)
        programs.add(_program._cache_size())
    assert len(programs) == 1


@pytest.mark.parametrize("gains", GAINS)
def test_a_diagonal_table_has_all_the_information(gains):
    counts = (np.eye(8, dtype=np.int32) * 16)[..., None]
    found = best(edge_counts(counts), 8, GAINS[gains](128))
    np.testing.assert_allclose(np.asarray(found[-1, 0]) / UNIT, 3, atol=1e-6)


@pytest.mark.parametrize("gains", GAINS)
def test_one_row_tells_nothing(gains):
    counts = np.full((5, 1, 2), 10, np.int32)
    assert not np.asarray(best(edge_counts(counts), 3, GAINS[gains](50))).any()
