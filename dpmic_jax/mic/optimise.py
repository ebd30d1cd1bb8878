"""OptimizeAxis: merge master columns so that they say as much as possible about the rows."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, Num

from dpmic_jax.mic.gains import UNIT, Gains

# Below any information that grids.MOST_ROWS allows, and far enough from -2^31 to add to.
IMPOSSIBLE = np.int32(-16 * UNIT)
# From so many parts on, edges are pushed so many at a time: then what has been found outweighs the
# gains, and is read and written once for all of them. With fewer parts it only takes longer.
MANY_PARTS, TOGETHER = 7, 4


def best_information(
    edge_counts: Int[Array, "edges rows lanes"], parts: int, gains: Gains, *, blocks: int = 1
) -> Int[Array, "sizes lanes"]:
    """Most mutual information that at most 2, 3, ..., `parts` merged columns can keep.

    A part from edge s to edge t gains g(s, t) = sum_r phi(a_r) - phi(a), with a_r its
    records in row r and a all its records. Gains add up, so with G_0(0) = 0
    G_x(t) = max_s G_{x-1}(s) + g(s, t), and the information is
    phi(n) - sum_r phi(n_r) + G_x(last edge), over n.

    Args:
      edge_counts: records of each row before each edge of the master columns.
      parts: the most columns to merge into; static, at least 2.
      gains: how phi is evaluated.
      blocks: how many loops to split the edges into. More waste less work and take longer
        to compile; the result is the same.

    Returns:
      Information in units of 2^-26 bits, entry i for at most i + 2 parts.
    """
    rows = gains.prepare(edge_counts)
    edges = jnp.concatenate([rows, rows.sum(axis=1, keepdims=True, dtype=rows.dtype)], axis=1)
    recurse = _many_parts if parts >= MANY_PARTS else _few_parts if parts > 2 else _two_parts
    best = recurse(edges, parts, gains, blocks)
    entropy = -_gain(edges[-1], edges[0], gains)
    # A part may be empty, so more parts never tell less; at worst they tell nothing.
    found = lax.cummax(jnp.maximum(best + entropy[None], 0), axis=0)
    return jnp.where(found < gains.least, 0, found)


def _gain(
    edges: Num[Array, "*#edges rows_and_sum lanes"],
    others: Num[Array, "*#edges rows_and_sum lanes"],
    gains: Gains,
) -> Int[Array, "*edges lanes"]:
    """g from one edge to another. Unrolled over rows: one fused kernel."""
    *rows, total = zip(_rows(edges), _rows(others), strict=True)
    gain = -_phi(*total, gains)
    for row in rows:
        gain = _add_phi(gain, *row, gains)
    return gains.units(gain)


def _rows(edges: Num[Array, "*edges rows_and_sum lanes"]) -> Sequence[Num[Array, "*edges 1 lanes"]]:
    return lax.split(edges, [1] * edges.shape[-2], axis=-2)


# Jitted, so that what is done for every row is traced and lowered once: the persistent cache
# of compiled programs saves compiling, but neither of these.
@jax.jit
def _phi(edge, other, gains):
    return gains.phi((edge - other).squeeze(-2))


@jax.jit
def _add_phi(gain, edge, other, gains):
    return gain + _phi(edge, other, gains)


def _two_parts(edges, parts, gains, blocks):
    """max_s g(0, s) + g(s, last): only prefixes and suffixes are needed."""

    def from_end(_, carry):
        both, edge, sign = carry
        return both + _gain(sign * edges, sign * edge, gains), edges[-1:], -sign

    # A loop over the two ends, so that the maximum is not fused with what it reads: on CPU
    # that would turn the arithmetic scalar.
    both = jnp.zeros((len(edges), edges.shape[2]), jnp.int32)
    both, _, _ = lax.fori_loop(0, 2, from_end, (both, edges[:1], jnp.ones((), edges.dtype)))
    return both.max(axis=0, keepdims=True)


def _few_parts(edges, parts, gains, blocks):
    """Push every edge s forward to all later edges t, for all numbers of parts at once.

    A step applies the gains that the step before has computed. So the gains and the maximum
    are two kernels, both plain arithmetic on whole vectors. Edges before s are updated too,
    with nonsense that is never read.
    """
    last, lanes = len(edges) - 1, edges.shape[2]
    best = jnp.full((parts - 1, last + 1, lanes), IMPOSSIBLE)  # G_1 .. G_{parts-1} at t
    full = jnp.full(lanes, IMPOSSIBLE)  # G_parts at the last edge, where alone it is wanted
    here = jnp.full((parts, lanes), IMPOSSIBLE)  # G_0 .. G_{parts-1} at the edge before s
    gain = jnp.zeros((last + 1, lanes), jnp.int32)  # from the edge before s to t
    carry = best, full, here, gain, edges[0]
    stops = np.unique(np.linspace(0, last, blocks + 1).astype(int)).tolist()
    for start, stop in itertools.pairwise(stops):
        ahead = edges[start:]

        def step(s, carry, ahead=ahead, start=start):
            best, full, here, gain, edge = carry
            full = jnp.maximum(full, here[-1] + gain[-1])
            best = jnp.maximum(best, here[:-1, None] + gain[None])
            gain = _gain(ahead, edge[None], gains)
            none_yet = jnp.where(s == 0, 0, IMPOSSIBLE)  # G_0
            here = jnp.concatenate([jnp.full((1, lanes), none_yet), best[:, s - start]])
            return best, full, here, gain, ahead[s + 1 - start]

        best, full, here, gain, edge = carry
        carry = best[:, -len(ahead) :], full, here, gain[-len(ahead) :], edge
        carry = lax.fori_loop(start, stop, step, carry)
    best, full, here, gain, _ = carry
    reached = jnp.concatenate([best[1:, -1], full[None]])
    return jnp.maximum(reached, here[1:] + gain[-1:])


def _many_parts(edges, parts, gains, blocks):
    """The same, a few edges at a time: each is pushed to the others first, then all forward.

    The inner loop keeps the gains apart from the maximum.
    """
    # A last edge that is repeated adds only parts that are empty.
    edges = jnp.concatenate([edges, *[edges[-1:]] * (-len(edges) % TOGETHER)])
    turns, lanes = len(edges) // TOGETHER, edges.shape[2]
    some = edges.reshape(turns, TOGETHER, *edges.shape[1:])
    among = _gain(some[:, None], some[:, :, None], gains)  # from each edge of a turn to the others
    best = jnp.full((parts - 1, len(edges), lanes), IMPOSSIBLE)  # G_1 .. G_{parts-1} at t
    full = jnp.full(lanes, IMPOSSIBLE)  # G_parts at the last edge, where alone it is wanted
    here = jnp.full((TOGETHER, parts, lanes), IMPOSSIBLE)  # G_0 .. G_{parts-1} at each s
    gain = jnp.zeros((TOGETHER, len(edges), lanes), jnp.int32)  # from each s to t
    carry = best, full, here, gain, edges[0]
    stops = np.unique(np.linspace(0, turns, blocks + 1).astype(int)).tolist()
    for start, stop in itertools.pairwise(stops):
        ahead = edges[start * TOGETHER :]

        def turn(i, carry, ahead=ahead, start=start):
            best, full, here, gain, edge = carry
            first = (i - start) * TOGETHER
            near = lax.dynamic_slice_in_dim(best, first, TOGETHER, axis=1)

            def push(j, carry):
                near, here, gain, edge = carry
                none_yet = jnp.where(i + j == 0, 0, IMPOSSIBLE)  # G_0
                found = lax.dynamic_index_in_dim(near, j, axis=1, keepdims=False)
                found = jnp.concatenate([jnp.full((1, lanes), none_yet), found])
                steps = lax.dynamic_slice(among, (i, j, 0, 0), (1, 1, TOGETHER, lanes))
                near = jnp.maximum(near, found[:-1, None] + steps[0])
                here = lax.dynamic_update_slice_in_dim(here, found[None], j, 0)
                new = _gain(ahead, edge[None], gains)
                gain = lax.dynamic_update_slice_in_dim(gain, new[None], j, 0)
                edge = lax.dynamic_index_in_dim(ahead, first + j + 1, keepdims=False)
                return near, here, gain, edge

            near, here, gain, edge = lax.fori_loop(0, TOGETHER, push, (near, here, gain, edge))
            for j in range(TOGETHER):
                full = jnp.maximum(full, here[j, -1] + gain[j, -1])
                best = jnp.maximum(best, here[j, :-1, None] + gain[j][None])
            return best, full, here, gain, edge

        best, full, here, gain, edge = carry
        carry = best[:, -len(ahead) :], full, here, gain[:, -len(ahead) :], edge
        carry = lax.fori_loop(start, stop, turn, carry)
    best, full, *_ = carry
    return jnp.concatenate([best[1:, -1], full[None]])
