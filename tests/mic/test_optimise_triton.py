"""Triton's kernels, interpreted: the bits of XLA's program for integers, and near it for floats."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_shapes import shapes
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmic_jax.mic import at_once, optimise_triton, prefix_triton
from dpmic_jax.mic.optimise import at_most, best_information
from dpmic_jax.mic.xlogx import UNIT, exact_gains, fast_gains

N, LANES = 60, 4


def some_counts(rows, master, lanes=LANES, n=N):
    rng = np.random.default_rng(rows * master)
    cells = rng.dirichlet(np.full(rows * master, 0.2), lanes)
    return np.stack([rng.multinomial(n, p) for p in cells]).reshape(-1, master, rows)


def difference(counts, parts, gains):
    """The largest between the two, in units, of what at most 2, 3, ... parts keep."""
    edges = at_once.edges_of(jnp.asarray(counts, jnp.int32))
    ours = optimise_triton.best_information(edges, parts, gains, interpret=True)
    theirs = best_information(jnp.transpose(edges, (2, 1, 0)), parts, gains)
    ours, theirs = (at_most(np.asarray(found), gains) for found in (ours, theirs))
    assert ours.shape == (parts - 1, len(counts))
    return np.abs(ours.astype(int) - theirs).max()


def agree(counts, parts):
    n = int(counts[0].sum())
    assert difference(counts, parts, exact_gains(n)) == 0
    assert difference(counts, parts, fast_gains(n)) < 2e-6 * UNIT


# Of each way to take edges: one lane or two, chunks of 16 and 32, 75 rows.
@pytest.mark.parametrize(
    ("rows", "master", "parts", "lanes"),
    [(75, 10, 2, 4), (3, 3, 3, 3), (6, 30, 6, 2), (2, 200, 2, 1)],
)
def test_the_kernel_finds_what_xla_finds(rows, master, parts, lanes):
    agree(some_counts(rows, master, lanes), parts)


@pytest.mark.slow
def test_the_kernel_finds_what_xla_finds_for_every_plan():
    for rows, master, parts in [*shapes(), (2, 100, 10), (2, 600, 3), (3, 255, 20)]:
        agree(some_counts(rows, master), parts)


@jax.jit
def both(counts, gains):
    edges = at_once.edges_of(counts)
    ours = optimise_triton.best_information(edges, 4, gains, interpret=True)
    return ours, best_information(jnp.transpose(edges, (2, 1, 0)), 4, gains)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 20 * 7 - 1), min_size=N, max_size=N))
def test_the_kernel_finds_what_xla_finds_in_any_table(cells):
    counts = np.bincount(cells, minlength=140).astype(np.int32).reshape(1, 20, 7)
    for gains, most in ((exact_gains(N), 0), (fast_gains(N), 2e-6 * UNIT)):
        ours, theirs = (at_most(np.asarray(found), gains) for found in both(counts, gains))
        assert np.abs(ours.astype(int) - theirs).max() <= most


def test_a_kernel_that_forgot_an_edge_would_be_found():
    """Where all information is at one edge: without it, half of a bit is left."""
    counts = np.repeat([[[10, 0]] * 3 + [[0, 10]] * 3], 2, axis=0)
    without = np.concatenate([counts[:, :2], counts[:, 2:3] + counts[:, 3:4], counts[:, 4:]], 1)
    edges = at_once.edges_of(jnp.asarray(without, jnp.int32))
    gains = exact_gains(N)
    theirs = best_information(
        jnp.transpose(at_once.edges_of(jnp.asarray(counts, jnp.int32)), (2, 1, 0)), 2, gains
    )
    ours = optimise_triton.best_information(edges, 2, gains, interpret=True)
    assert np.asarray(theirs).tolist() == [[UNIT, UNIT]]
    assert (np.asarray(ours) < 0.6 * UNIT).all()


def test_what_a_thread_keeps_is_bounded():
    for edges, parts in itertools.product(range(2, 1200, 37), [2, 3, 12, 40, 100]):
        chunk = optimise_triton.chunk_of(edges, parts)
        if chunk is None:  # XLA's program is used
            assert parts > 96 or edges > 512 * (96 // parts)
            continue
        chunks = -(-edges // chunk)
        assert chunk & (chunk - 1) == 0
        assert chunk <= 512
        assert chunks <= 12
        assert parts == 2 or chunks * parts <= 96


def test_prefix_sums_are_those_of_numpy(rng):
    counts = rng.integers(0, 9, (3, 7, 2, 20)).astype(np.int32)
    found = prefix_triton.prefix_sums(jnp.asarray(counts), interpret=True)
    np.testing.assert_array_equal(found, counts.cumsum(1).cumsum(3))
