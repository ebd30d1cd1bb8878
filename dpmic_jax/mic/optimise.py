"""OptimizeAxis: merge master columns so that they say as much as possible about the rows."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Num

from dpmic_jax.mic.xlogx import UNIT, Gains

# Below any information that grids.MOST_ROWS allows, and far enough from -2^31 to add to.
IMPOSSIBLE = np.int32(-16 * UNIT)
# Edges pushed together: what has been found is read and written once for all of them.
TOGETHER = 4
# And the edges they are pushed to at a time, where all of them would not fit a cache.
BLOCK = 32
# XLA splits a kernel that reads and writes this many bytes over the threads of a CPU. Other tiles
# use them already, and changing threads takes longer than the kernel.
SPLIT_BYTES = 2**19


def lanes_in_one_thread(rows: int, master: int, parts: int, most: int) -> int:
    """How many lanes, of `most`, a CPU should optimise side by side, and at least 32."""
    half = (master + TOGETHER + 1) // 2
    largest = max(
        2 * (master + 1) * (rows + 1),  # edges, before and after they are prepared
        (2 * parts + TOGETHER) * (master + 1),  # what has been found, and gains
        half * (master - half + 1),  # gains that are kept
    )
    while most > 32 and 4 * most * largest > SPLIT_BYTES:
        most //= 2
    return most


def best_information(
    edge_counts: Int[Array, "edges rows_and_sum lanes"],
    parts: int,
    gains: Gains,
    *,
    at_once: bool = False,
) -> Int[Array, "sizes lanes"]:
    """Most mutual information that 2, 3, ..., `parts` merged columns can keep.

    A part from edge s to edge t gains g(s, t) = sum_r phi(a_r) - phi(a), with a_r its
    records in row r and a all its records. Gains add up, so with G_0(0) = 0
    G_x(t) = max_s G_{x-1}(s) + g(s, t), and the information is
    phi(n) - sum_r phi(n_r) + G_x(last edge), over n. The first two terms are -G_1(last edge).

    Args:
      edge_counts: records of each row, and of all, before each edge of the master columns.
      parts: the most columns to merge into; static, at least 2.
      gains: how phi is evaluated.
      at_once: for a device that takes all lanes at once: in loops of known length, and not in
        blocks that fit a cache; static.

    Returns:
      Information in units of 2^-26 bits, entry i for i + 2 parts: `at_most` ends the work, on the
      host, where nothing has to be compiled for it.
    """
    more = partial(_more_parts, at_once=at_once)
    edges, reach = gains.prepare(edge_counts), more if parts > 2 else _two_parts
    # What lies before the first edge: zeros to begin with, once the edges are known. XLA also
    # spreads over threads what can be computed at a time, if that is more than eight arrays.
    reached = reach(edges, edge_counts[0, 0], parts, gains)
    return reached[1:] - reached[:1]


def at_most(
    found: Int[np.ndarray, "sizes *lanes"], gains: Gains
) -> Int[np.ndarray, "sizes *lanes"]:
    """Information that at most 2, 3, ... parts keep, from what these many keep.

    A part may be empty, so more parts never tell less; at worst they tell nothing.
    """
    found = np.maximum.accumulate(np.maximum(found, 0), axis=0)
    return np.where(found < gains.least, 0, found)


def table_information(
    counts: Int[Array, "lanes master rows"], gains: Gains
) -> Int[Array, " lanes"]:
    """The information of whole tables, of which nothing is merged."""

    def told(axes: tuple[int, ...]) -> Array:
        """Sum of phi over what is left of the counts when they are added up over some axes."""
        merged = gains.prepare(counts.sum(axis=axes, dtype=jnp.int32))
        return gains.phi(merged).reshape(len(counts), -1).sum(axis=1)

    columns, rows = told(()) - told((2,)), told((1, 2)) - told((1,))
    return jnp.maximum(gains.units(columns + rows), 0)


def _two_parts(
    edges: Num[Array, "edges rows_and_sum lanes"],
    zero: Int[Array, " lanes"],
    parts: int,
    gains: Gains,
) -> Int[Array, "2 lanes"]:
    """g(0, last), and max_s g(0, s) + g(s, last): only prefixes and suffixes are needed."""

    def from_end(end, carry):
        found, edge, sign = carry
        gain = _gain((sign * edges, sign * edge), _phi, gains)
        return lax.dynamic_update_slice_in_dim(found, gain[None], end, 0), edges[-1:], -sign

    # A loop over the two ends, so that the maximum is not fused with what it reads: on CPU
    # that would turn the arithmetic scalar.
    found = jnp.broadcast_to(zero, (parts, len(edges), edges.shape[2]))
    found, _, _ = lax.fori_loop(0, parts, from_end, (found, edges[:1], jnp.ones((), edges.dtype)))
    both = found[0] + found[1]
    return jnp.stack([both[0], both.max(axis=0)])


def _more_parts(
    edges: Num[Array, "edges rows_and_sum lanes"],
    zero: Int[Array, " lanes"],
    parts: int,
    gains: Gains,
    *,
    at_once: bool,
) -> Int[Array, "parts lanes"]:
    """G_1 .. G_parts at the last edge, by pushing every edge s forward to all later edges t.

    With K the last edge, s leads to K - s edges and K - s to s: together always K. So the gains
    from both are computed as one vector, with those from K - s at the places up to s, in reverse:
    place q has edge K + 1 - q. That is half of the square of all edges by all edges, as one loop.
    The gains from the first half of the edges are pushed at once, those from the second half are
    turned round and kept for a loop of their own. Places that an edge does not lead to get
    nonsense that is never read.
    """
    half = -(-((len(edges) + 1) // 2) // TOGETHER) * TOGETHER  # edges pushed by the first loop
    # A last edge that is repeated adds only parts that are empty.
    edges = jnp.concatenate([edges, *[edges[-1:]] * (half + 1 - len(edges))])
    last, lanes = len(edges) - 1, edges.shape[2]
    rest = -(-(len(edges) - half) // TOGETHER) * TOGETHER  # and by the second, some once more
    best = jnp.broadcast_to(zero + IMPOSSIBLE, (parts, last + 1, lanes))  # G_1 .. G_parts at t
    gain = jnp.broadcast_to(zero, (TOGETHER, last + 1, lanes))
    kept = jnp.broadcast_to(zero, (half, rest, lanes))
    place = np.arange(last + 1, dtype=np.int32)[:, None, None]

    def evaluate(s, carry):
        gain, goals, ends = carry
        # Before it is read, so that it is written in place.
        mirrored = lax.dynamic_slice_in_dim(edges, last + 1 - s, 1)
        goals = lax.dynamic_update_slice_in_dim(goals, mirrored, s, 0)
        new = _gain((goals, ends[:1], ends[1:]), partial(_phi_from_either, place <= s), gains)
        gain = lax.dynamic_update_slice_in_dim(gain, new[None], s % TOGETHER, 0)
        return gain, goals, _ends(edges, s + 1)

    def some_edges(s, evaluate, carry):
        if at_once:
            return lax.fori_loop(0, TOGETHER, lambda j, carry: evaluate(s + j, carry), carry)
        return lax.fori_loop(s, s + TOGETHER, evaluate, carry)

    def first_half(carry):
        s, best, gain, kept, goals, ends = carry
        gain, goals, ends = some_edges(s, evaluate, (gain, goals, ends))
        turned = gain[::-1, 1 : rest + 1][:, ::-1]
        kept = lax.dynamic_update_slice_in_dim(kept, turned, half - TOGETHER - s, 0)
        return s + TOGETHER, _push(best, gain, s, s == 0, at_once), gain, kept, goals, ends

    carry = np.int32(0), best, gain, kept, edges, _ends(edges, np.int32(0))
    _, best, _, kept, *_ = lax.while_loop(lambda carry: carry[0] < half, first_half, carry)
    if last == half:
        return best[:, -1]

    def second_half(i, best):
        s = i * np.int32(TOGETHER)
        return _push(
            best, lax.dynamic_slice_in_dim(kept, half - rest + s, TOGETHER), s, False, at_once
        )

    # What the first loop has pushed already is not pushed again.
    again = np.arange(rest, dtype=np.int32)[:, None] < rest - (last + 1 - half)
    best = jnp.where(again, IMPOSSIBLE, best[:, last + 1 - rest :])
    return lax.fori_loop(0, rest // TOGETHER, second_half, best)[:, -1]


def _push(
    best: Int[Array, "parts edges lanes"],
    gain: Int[Array, "together edges lanes"],
    start: Int[Array, ""],
    first: Bool[Array, ""] | bool,
    at_once: bool,
) -> Int[Array, "parts edges lanes"]:
    """Push a few edges, of which `start` is the first, to each other and then to all."""
    here = _among(best, gain, start, first)

    def to(best, gain):
        for j in range(TOGETHER):
            best = jnp.maximum(best, here[:, j][:, None] + gain[j][None])
        return best

    block = min(SPLIT_BYTES // (8 * len(best) * best.shape[2]), BLOCK)
    if at_once or block < BLOCK // 4 or 8 * best.size <= SPLIT_BYTES:
        return to(best, gain)

    def to_block(i, best):
        # The last one may have some edges of the one before: to push them again changes nothing.
        begin = i * np.int32(block)
        some, steps = (lax.dynamic_slice_in_dim(x, begin, block, axis=1) for x in (best, gain))
        return lax.dynamic_update_slice_in_dim(best, to(some, steps), begin, axis=1)

    # No edge is pushed back, to a block that lies before it.
    return lax.fori_loop(start // block, -(-best.shape[1] // block), to_block, best)


def _ends(
    edges: Num[Array, "edges rows_and_sum lanes"], s: Int[Array, ""] | np.int32
) -> Num[Array, "2 rows_and_sum lanes"]:
    """Edges s and K - s. Carried, not sliced where they are used: on CPU that would turn the
    arithmetic scalar."""
    return jnp.concatenate(
        [lax.dynamic_slice_in_dim(edges, at, 1) for at in (s, len(edges) - 1 - s)]
    )


def _among(
    best: Int[Array, "parts edges lanes"],
    gain: Int[Array, "together edges lanes"],
    start: Int[Array, ""],
    first: Bool[Array, ""] | bool,
) -> Int[Array, "parts together lanes"]:
    """G_0 .. G_{parts-1} at the edges that are pushed together, each pushed to the others first.

    The last edge of all has nowhere to be pushed to.
    """
    place, last = np.arange(TOGETHER, dtype=np.int32)[None, :, None], best.shape[1] - 1

    def push(j, near):
        found = _shifted(
            lax.dynamic_index_in_dim(near, j, axis=1, keepdims=False), first & (j == 0)
        )
        found = jnp.where(start + j == last, IMPOSSIBLE, found)
        step = lax.dynamic_slice(gain, (j, start, jnp.int32(0)), (1, TOGETHER, near.shape[2]))
        pushed = jnp.maximum(near, found[:, None] + step)
        return jnp.where(place < j, near, jnp.where(place == j, found[:, None], pushed))

    return lax.fori_loop(0, TOGETHER, push, lax.dynamic_slice_in_dim(best, start, TOGETHER, axis=1))


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

    Unrolled over rows, which makes one fused kernel; many rows are evaluated in a loop.
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
