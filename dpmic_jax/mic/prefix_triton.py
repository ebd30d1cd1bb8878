"""Prefix sums of counts on the refinement, as one Pallas kernel that Triton compiles for GPUs.

A program takes one pair in one orientation, column by column: what lies before the end of a column
is what lies before its beginning and what is in it, and both stay in registers. So counts are read
and sums written once, where XLA goes through them three times an axis.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Integer


def prefix_sums(
    counts: Integer[Array, "pairs columns sides rows"], *, interpret: bool = False
) -> Integer[Array, "pairs columns sides rows"]:
    """How many records lie up to each column and each row."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    pairs, columns, sides, rows = counts.shape
    width = 1 << (rows - 1).bit_length()  # Triton takes powers of two

    def kernel(counts_ref, found_ref):
        true = lax.iota(jnp.int32, width) < rows

        def add(column, before):
            at = column, pl.ds(0, width)
            some = triton.load(counts_ref.at[at], mask=true, other=0)
            before = before + jnp.cumsum(some, dtype=jnp.int32)
            triton.store(found_ref.at[at], before, mask=true)
            return before

        lax.fori_loop(0, columns, add, jnp.zeros(width, jnp.int32))

    block = pl.BlockSpec((None, columns, None, rows), lambda pair, side: (pair, 0, side, 0))
    return pl.pallas_call(
        kernel,
        grid=(pairs, sides),
        out_shape=jax.ShapeDtypeStruct(counts.shape, np.int32),
        in_specs=[block],
        out_specs=block,
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
    )(counts)
