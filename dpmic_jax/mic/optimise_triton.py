"""OptimizeAxis as one Pallas kernel, which Triton compiles for GPUs: nothing leaves the registers.

A program of the kernel takes one lane or two. G_1 .. G_parts at all edges stay in registers, in
chunks of edges of which each thread has one. The edges s are taken in turn: the gains g(s, t) to
all edges t from the chunk of s on are evaluated, row by row, and raise G_x(t) to
G_{x-1}(s) + g(s, t). What s would lead to before itself is nonsense that is never read.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, Num

from dpmic_jax.mic.optimise import IMPOSSIBLE
from dpmic_jax.mic.xlogx import ExactGains, FastGains

# Threads of a warp. Half of it is the smallest chunk, as little is wasted on edges before s.
_WARP = 32
_SMALLEST = 16
# Chunks, over which loops are unrolled, and numbers that a thread may keep, at most.
_MOST_CHUNKS, _MOST_KEPT = 12, 96
# With more threads than this a thread has no registers for so many.
_MOST_THREADS = 512
_LEAST = np.int32(-(2**31))

_Chunk = Num[Array, "side chunk"]
# Gains between one edge and all edges of some chunks.
_Gain = Callable[[Any, Sequence[int]], list[_Chunk]]


def chunk_of(edges: int, parts: int) -> int | None:
    """How many edges a chunk has: a power of two, as few as there are registers for.

    None if there are too few for any, as in grids of thousands of cells: they take XLA's program.
    """
    chunk, kept = _SMALLEST, parts if parts > 2 else 1
    while (chunks := -(-edges // chunk)) > _MOST_CHUNKS or chunks * kept > _MOST_KEPT:
        chunk *= 2
        if chunk > _MOST_THREADS:
            return None
    return chunk


def best_information(
    edge_counts: Int[Array, "lanes rows_and_sum edges"],
    parts: int,
    gains: FastGains | ExactGains,
    *,
    interpret: bool = False,
) -> Int[Array, "sizes lanes"]:
    """`optimise.best_information`, of counts whose lanes come first.

    Args:
      edge_counts: records of each row, and of all, before each edge of the master columns.
      parts: the most columns to merge into; static, at least 2.
      gains: how phi is evaluated.
      interpret: run by XLA, operation by operation, on any device.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    lanes, rows, edges = edge_counts.shape
    chunk = chunk_of(edges, parts)
    if chunk is None:
        raise ValueError(f"expected fewer edges and parts, got {edges} and {parts}")
    side = _WARP // chunk if chunk < _WARP and lanes % (_WARP // chunk) == 0 else 1
    chunks = -(-edges // chunk)
    prepared = gains.prepare(edge_counts)
    data, phi, units = _parts_of(gains)
    lead = _to_two_parts if parts == 2 else _to_more_parts

    def kernel(edges_ref, *refs):
        def ends(row, place):
            """The edges of a chunk; of the last one some may not be there."""
            if (place + 1) * chunk <= edges:
                return edges_ref[:, row, pl.ds(place * chunk, chunk)]
            at = slice(None), jnp.int32(row), pl.ds(jnp.int32(place * chunk), chunk)
            true = _places((side, chunk), place) < edges
            return triton.load(edges_ref.at[at], mask=true, other=0)

        def gain(edge, places):
            """Gains between an edge and all edges of some chunks, row by row."""

            def of_row(row):
                start = edges_ref[:, row, edge][:, None]
                return [phi(jnp.abs(ends(row, place) - start), refs[0]) for place in places]

            def add(row, total):
                return [some + part for some, part in zip(total, of_row(row), strict=True)]

            total = lax.fori_loop(0, rows - 1, add, [-part for part in of_row(rows - 1)])
            return [units(part, refs[0]) for part in total]

        for index, found in enumerate(lead(gain, (side, chunk), chunks, edges - 1, parts)):
            refs[1][index, :] = found

    return pl.pallas_call(
        kernel,
        grid=(lanes // side,),
        out_shape=_shaped(parts - 1, lanes),
        in_specs=[
            pl.BlockSpec((side, rows, edges), lambda i: (i, 0, 0)),
            pl.BlockSpec(data.shape, lambda i: (0,)),
        ],
        out_specs=pl.BlockSpec((parts - 1, side), lambda i: (0, i)),
        compiler_params=triton.CompilerParams(
            num_warps=max(1, side * chunk // _WARP), num_stages=1
        ),
        interpret=interpret,
    )(prepared, data)


def _shaped(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.int32)


def _parts_of(
    gains: FastGains | ExactGains,
) -> tuple[Array, Callable[..., Any], Callable[..., Any]]:
    """What a kernel has to be given, phi, and units: the kernel reads its data by reference."""
    if isinstance(gains, FastGains):
        return (
            jnp.reshape(gains.grow, 1),
            lambda counts, _: gains.phi(counts),
            lambda gain, grow: (gain * grow[0]).astype(jnp.int32),
        )
    return gains.table, lambda counts, table: table[counts], lambda gain, _: gain


def _to_two_parts(
    gain: _Gain, shape: tuple[int, int], chunks: int, last: int, parts: int
) -> list[Int[Array, " side"]]:
    """max_t g(0, t) + g(t, last) - g(0, last)."""
    del parts
    places = range(chunks)
    first, rest = gain(0, places), gain(last, places)
    found = _LEAST
    for place in places:
        both = first[place] + rest[place]
        true = _places(shape, place) <= last
        found = jnp.maximum(found, jnp.where(true, both, _LEAST).max(axis=1))
    return [found - _at(first, shape, last, last // shape[1])]


def _to_more_parts(
    gain: _Gain, shape: tuple[int, int], chunks: int, last: int, parts: int
) -> list[Int[Array, " side"]]:
    """G_2 .. G_parts at the last edge, less G_1 there."""
    places = list(range(chunks))
    none = [jnp.full(shape, IMPOSSIBLE) for _ in places]
    best = [gain(0, places), *[none] * (parts - 1)]

    for place in places:
        left = places[place:]

        def push(s, best, place=place, left=left):
            here = [_at(some, shape, s, place)[:, None] for some in best[:-1]]
            steps = gain(s, left)
            raised = [
                [jnp.maximum(old, at + step) for old, step in zip(some[place:], steps, strict=True)]
                for some, at in zip(best[1:], here, strict=True)
            ]
            return [
                best[0],
                *(old[:place] + new for old, new in zip(best[1:], raised, strict=True)),
            ]

        begin, end = max(1, place * shape[1]), min((place + 1) * shape[1], last)
        best = lax.fori_loop(begin, end, push, best)
    found = [_at(some, shape, last, last // shape[1]) for some in best]
    return [some - found[0] for some in found[1:]]


def _places(shape: tuple[int, int], place: int) -> Int[Array, "side chunk"]:
    """The edges of a chunk."""
    return lax.broadcasted_iota(jnp.int32, shape, 1) + np.int32(place * shape[1])


def _at(
    chunks: Sequence[_Chunk], shape: tuple[int, int], edge: Any, place: int
) -> Int[Array, " side"]:
    """What a chunk has at an edge, for every thread."""
    return jnp.where(_places(shape, place) == edge, chunks[place], _LEAST).max(axis=1)
