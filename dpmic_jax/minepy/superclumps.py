"""Clumps and superclumps of many lanes at once, rank by rank: `partitions`, compiled.

Ranks come first and lanes last, so that walking along the ranks is arithmetic on whole vectors.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Integer

from dpmic_jax.minepy.partitions import next_cut


def clumps(
    rows: Integer[Array, "n lanes"], between: Bool[Array, "n lanes"] | None, n: Int[Array, ""]
) -> Bool[Array, "n lanes"]:
    """Whether a clump begins at each rank but the first: `partitions.clumps`.

    Args:
      rows: of the records, by rank.
      between: whether another value begins at each rank; without, no values are tied.
      n: how many records there are.
    """
    changes = rows != jnp.concatenate([rows[:1], rows[:-1]])
    if between is None:
        return changes

    def step(rank, carry):
        """A value's records in several rows end the clump before them, and begin one."""
        found, mixed = carry
        change, edge = row_of(changes, rank), row_of(between, rank)
        begins = row_of(found, rank) | (edge & (change | mixed))
        found = lax.dynamic_update_index_in_dim(found, begins, rank, 0)
        return found, (change | mixed) & ~edge

    # Changes inside the value before each rank, then inside the one that begins there.
    none = jnp.zeros(rows.shape[1], bool)
    found, _ = lax.fori_loop(1, n, step, (jnp.zeros_like(changes), none))
    return lax.fori_loop(1, n, lambda i, carry: step(n - i, carry), (found, none))[0]


def superclumps(
    begins: Bool[Array, "n lanes"], most: Int[Array, " lanes"], n: Int[Array, ""], width: int
) -> Integer[Array, "n_plus_1 lanes"]:
    """Whether a part of the master ends before each rank: `partitions.superclumps`.

    Args:
      begins: whether a clump begins at each rank but the first.
      most: parts of the master.
      n: how many records there are.
      width: how many lanes are cut side by side.
    """
    n_up, lanes = begins.shape
    starts, ends, clumps = _runs(begins, n)
    starts, ends = starts.reshape(-1), ends.reshape(-1)

    def cut(group, marks):
        # The last group may repeat some of the one before, which marks the same ranks again.
        begin = jnp.minimum(group * width, lanes - width)
        parts = lax.dynamic_slice_in_dim(most, begin, width)
        whole = lax.dynamic_slice_in_dim(clumps, begin, width) <= parts
        lane = begin + jnp.arange(width, dtype=jnp.int32)

        def read(at):
            # Where to look is computed for whole vectors, but looked up one by one.
            at = lax.optimization_barrier(at * lanes + lane)
            return _look_up(starts, at), _look_up(ends, at)

        def step(made, carry):
            marks, place = carry
            left = jnp.maximum(parts - made, 1)
            place = next_cut(jnp, place, left, n, whole, read, partial(_divide, n_up))
            spots = lax.optimization_barrier(place * lanes + lane)
            return marks.at[spots].set(1, mode="promise_in_bounds"), place

        return lax.fori_loop(0, parts.max(), step, (marks, jnp.zeros_like(lane)))[0]

    marks = lax.fori_loop(0, -(-lanes // width), cut, jnp.zeros((n_up + 1) * lanes, jnp.int8))
    return marks.reshape(n_up + 1, lanes)


class _Runs(NamedTuple):
    """For each rank, where its clump begins and where it ends; and how many clumps there are."""

    starts: Int[Array, "n lanes"]
    ends: Int[Array, "n lanes"]
    number: Int[Array, " lanes"]


def _runs(begins: Bool[Array, "n lanes"], n: Int[Array, ""]) -> _Runs:
    """`partitions.runs`, as loops of short vectors: jax.lax.cummax takes 40 times longer."""
    lanes, dtype = begins.shape[1], short(len(begins))
    empty = jnp.zeros(begins.shape, dtype)

    def along(rank, carry):
        starts, start, number = carry
        begin = row_of(begins, rank)
        start = jnp.where(begin, rank.astype(dtype), start)
        starts = lax.dynamic_update_index_in_dim(starts, start, rank, 0)
        return starts, start, number + begin.astype(dtype)

    def back(i, carry):
        ends, end = carry
        rank = n - i
        ends = lax.dynamic_update_index_in_dim(ends, end, rank - 1, 0)
        return ends, jnp.where(row_of(begins, rank - 1), (rank - 1).astype(dtype), end)

    carry = empty, jnp.zeros(lanes, dtype), jnp.ones(lanes, dtype)
    starts, _, number = lax.fori_loop(1, n, along, carry)
    last = jnp.full(lanes, n.astype(dtype))
    ends, _ = lax.fori_loop(0, n, back, (empty, last))
    return _Runs(starts, ends, number.astype(jnp.int32))


def short(most: int) -> type[np.signedinteger]:
    """Numbers up to `most`, short where they may be: twice as many fit a vector."""
    return np.int16 if most < 2**15 else np.int32


def row_of(by_rank: Array, rank: Int[Array, ""]) -> Array:
    """The values of all lanes at one rank."""
    return lax.dynamic_index_in_dim(by_rank, rank, keepdims=False)


def _divide(n: int, ranks: Int[Array, " lanes"], by: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
    """Rounded down. A CPU divides whole vectors of floats, but integers one by one."""
    if n >= 2**23:
        return ranks // by
    about = (ranks.astype(jnp.float32) / by.astype(jnp.float32)).astype(jnp.int32)
    rest = ranks - about * by  # right on CPU; other devices may round a quotient up
    return about + (rest >= by).astype(jnp.int32) - (rest < 0).astype(jnp.int32)


def _look_up(table: Int[Array, " spots"], at: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
    return table.at[at].get(mode="promise_in_bounds").astype(jnp.int32)
