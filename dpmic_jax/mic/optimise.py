"""OptimizeAxis: merge master columns so that they say as much as possible about the rows."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Num

from dpmic_jax.mic.gains import UNIT, Gains

# Below any information that grids.MOST_ROWS allows, and far enough from -2^31 to add to.
IMPOSSIBLE = np.int32(-16 * UNIT)
# Edges are pushed so many at a time: what has been found is read and written once for all of them.
TOGETHER = 4


def best_information(
    edge_counts: Int[Array, "edges rows lanes"], parts: int, gains: Gains
) -> Int[Array, "sizes lanes"]:
    """Most mutual information that at most 2, 3, ..., `parts` merged columns can keep.

    A part from edge s to edge t gains g(s, t) = sum_r phi(a_r) - phi(a), with a_r its
    records in row r and a all its records. Gains add up, so with G_0(0) = 0
    G_x(t) = max_s G_{x-1}(s) + g(s, t), and the information is
    phi(n) - sum_r phi(n_r) + G_x(last edge), over n. The first two terms are -G_1(last edge).

    Args:
      edge_counts: records of each row before each edge of the master columns.
      parts: the most columns to merge into; static, at least 2.
      gains: how phi is evaluated.

    Returns:
      Information in units of 2^-26 bits, entry i for at most i + 2 parts.
    """
    total = edge_counts.sum(axis=1, keepdims=True, dtype=edge_counts.dtype)
    return best_of_edges(jnp.concatenate([edge_counts, total], axis=1), parts, gains)


def best_of_edges(
    edge_counts: Int[Array, "edges rows_and_sum lanes"], parts: int, gains: Gains
) -> Int[Array, "sizes lanes"]:
    """`best_information`, given the sum of all rows as one more row."""
    edges = gains.prepare(edge_counts)
    reached = _more_parts(edges, parts, gains) if parts > 2 else _two_parts(edges, gains)
    # A part may be empty, so more parts never tell less; at worst they tell nothing.
    found = lax.cummax(jnp.maximum(reached[1:] - reached[:1], 0), axis=0)
    return jnp.where(found < gains.least, 0, found)


def _two_parts(
    edges: Num[Array, "edges rows_and_sum lanes"], gains: Gains
) -> Int[Array, "2 lanes"]:
    """g(0, last), and max_s g(0, s) + g(s, last): only prefixes and suffixes are needed."""

    def from_end(_, carry):
        both, edge, sign = carry
        return both + _gain((sign * edges, sign * edge), _phi, gains), edges[-1:], -sign

    # A loop over the two ends, so that the maximum is not fused with what it reads: on CPU
    # that would turn the arithmetic scalar.
    both = jnp.zeros((len(edges), edges.shape[2]), jnp.int32)
    both, _, _ = lax.fori_loop(0, 2, from_end, (both, edges[:1], jnp.ones((), edges.dtype)))
    return jnp.stack([both[0], both.max(axis=0)])


def _more_parts(
    edges: Num[Array, "edges rows_and_sum lanes"], parts: int, gains: Gains
) -> Int[Array, "parts lanes"]:
    """G_1 .. G_parts at the last edge, by pushing every edge s forward to all later edges t.

    With K the last edge, s leads to K - s edges and K - s to s: together always K. So the gains
    from both are computed as one vector, with those from K - s at the places up to s, in reverse:
    place q has edge K + 1 - q. That is half of the square of all edges by all edges, as one loop.
    The gains from the first half of the edges are pushed at once, those from the second half are
    kept for a loop of their own. Places that an edge does not lead to get nonsense that is never
    read.
    """
    turns = -(-((len(edges) + 1) // 2) // TOGETHER)
    half = turns * TOGETHER  # edges pushed by the first loop
    # A last edge that is repeated adds only parts that are empty.
    edges = jnp.concatenate([edges, *[edges[-1:]] * (half + 1 - len(edges))])
    last, lanes = len(edges) - 1, edges.shape[2]
    best = jnp.full((parts, last + 1, lanes), IMPOSSIBLE)  # G_1 .. G_parts at t
    gain = jnp.zeros((TOGETHER, last + 1, lanes), jnp.int32)
    kept = jnp.zeros((half, last - half + 1, lanes), jnp.int32)
    place = lax.broadcasted_iota(jnp.int32, (last + 1, 1, 1), 0)

    def evaluate(j, carry):
        gain, goals, low, high, before, start = carry
        s = start + j
        # Before it is read, so that it is written in place.
        goals = lax.dynamic_update_slice_in_dim(goals, before, s, 0)
        new = _gain((goals, low, high), partial(_phi_from_either, place <= s), gains)
        gain = lax.dynamic_update_slice_in_dim(gain, new[None], j, 0)
        # Carried, not sliced where they are used: on CPU that would turn the arithmetic scalar.
        lower, higher = (lax.dynamic_slice_in_dim(edges, at, 1) for at in (s + 1, last - s - 1))
        return gain, goals, lower, higher, high, start

    def turn(i, carry):
        best, gain, kept, goals, low, high, before = carry
        start = i * np.int32(TOGETHER)
        gain, goals, low, high, before, _ = lax.fori_loop(
            0, TOGETHER, evaluate, (gain, goals, low, high, before, start)
        )
        kept = lax.dynamic_update_slice_in_dim(kept, gain[:, : last - half + 1], start, 0)
        here = _among(best, gain, start)
        for j in range(TOGETHER):
            best = jnp.maximum(best, here[j][:, None] + gain[j][None])
        return best, gain, kept, goals, low, high, before

    carry = best, gain, kept, edges, edges[:1], edges[-1:], edges[:1]
    best, _, kept, *_ = lax.fori_loop(0, turns, turn, carry)
    if last == half:
        return best[:, -1]
    return _second_half(best[:, ::-1][:, : last - half + 1], kept)


def _among(
    best: Int[Array, "parts edges lanes"],
    gain: Int[Array, "together edges lanes"],
    start: Int[Array, ""],
) -> Int[Array, "together parts lanes"]:
    """G_0 .. G_{parts-1} at the edges that are pushed together, each pushed to the others first."""
    near = lax.dynamic_slice_in_dim(best, start, TOGETHER, axis=1)
    steps = lax.dynamic_slice_in_dim(gain, start, TOGETHER, axis=1)

    def push(j, carry):
        near, here = carry
        found = _shifted(lax.dynamic_index_in_dim(near, j, axis=1, keepdims=False), start + j == 0)
        step = lax.dynamic_index_in_dim(steps, j, keepdims=False)
        near = jnp.maximum(near, found[:, None] + step[None])
        return near, lax.dynamic_update_slice_in_dim(here, found[None], j, 0)

    here = jnp.zeros((TOGETHER, len(best), best.shape[2]), jnp.int32)
    return lax.fori_loop(0, TOGETHER, push, (near, here))[1]


def _second_half(
    best: Int[Array, "parts places lanes"], kept: Int[Array, "half places lanes"]
) -> Int[Array, "parts lanes"]:
    """Push the edges of the second half, of which place q has edge K + 1 - q, and q = 1 the last.

    A step applies the gains that the step before has fetched.
    """
    parts, places, lanes = best.shape

    def step(i, carry):
        best, here, gain = carry
        s = places - 1 - i  # K - s is pushed, which is at place s + 1
        best = jnp.maximum(best, here[:, None] + gain[None])
        here = _shifted(lax.dynamic_index_in_dim(best, s, axis=1, keepdims=False), False)
        gain = jnp.roll(lax.dynamic_index_in_dim(kept, s, keepdims=False), -1, axis=0)
        return best, here, gain

    here = jnp.full((parts, lanes), IMPOSSIBLE)
    carry = best, here, jnp.zeros((places, lanes), jnp.int32)
    best, here, gain = lax.fori_loop(0, places - 1, step, carry)
    return jnp.maximum(best[:, 0], here + gain[:1])


def _shifted(
    found: Int[Array, "parts lanes"], first: Bool[Array, ""] | bool
) -> Int[Array, "parts lanes"]:
    """G_0 .. G_{parts-1} at an edge, from G_1 .. G_parts. Only the first edge has G_0 = 0."""
    none = jnp.where(first, 0, IMPOSSIBLE)
    return jnp.concatenate([jnp.full((1, found.shape[1]), none), found[:-1]])


def _gain(
    sides: tuple[Num[Array, "_ rows_and_sum lanes"], ...],
    phi: Callable[..., Num[Array, "edges lanes"]],
    gains: Gains,
) -> Int[Array, "edges lanes"]:
    """g between edges: the sum over rows of a phi of one row of each side, less that of the sum.

    Unrolled over rows, which makes one fused kernel, but for many rows in a loop.
    """
    rows = sides[0].shape[1] - 1

    def add(gain, begin, many):
        some = (lax.dynamic_slice_in_dim(side, begin, many, axis=1) for side in sides)
        for row in zip(*map(_rows, some), strict=True):
            gain = gain + phi(*row, gains)
        return gain

    gain = -phi(*(side[:, rows:] for side in sides), gains)
    most = gains.unrolled
    turns = rows // most if rows > most else 0
    if turns:
        gain = lax.fori_loop(0, turns, lambda i, gain: add(gain, i * np.int32(most), most), gain)
    return gains.units(add(gain, turns * most, rows - turns * most))


def _rows(edges: Num[Array, "edges rows lanes"]) -> Sequence[Num[Array, "edges 1 lanes"]]:
    return lax.split(edges, [1] * edges.shape[1], axis=1)


# Jitted, so that what is done for every row is traced and lowered once: the persistent cache
# of compiled programs saves compiling, but neither of these.
@jax.jit
def _phi(edge, other, gains):
    return gains.phi((edge - other).squeeze(1))


@jax.jit
def _phi_from_either(reverse, edge, low, high, gains):
    """From `high` at the places in reverse, from `low` at the others."""
    return _phi(edge, jnp.where(reverse, high, low), gains)
