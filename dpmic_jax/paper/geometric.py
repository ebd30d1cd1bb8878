"""Noise of the published MICr-Geom, fast, for studies that draw billions of it.

What is released comes from `dp.noise.TruncatedGeometric`, in integers with a certificate. Here
nothing is released, so floats do: they have the same law but for chances below 2^-24.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from dpmic_jax.paper.scoring import Counts, Lanes


@jax.jit
def truncated_geometric(
    counts: Int32[Array, "*shape"],
    epsilon: Float32[Array, ""],
    n: Int32[Array, ""],
    *,
    key: PRNGKeyArray,
) -> Int32[Array, "*shape"]:
    """TruncGeom(epsilon, n, count) of Definition 4.5 for every count.

    With r = e^-epsilon the magnitude of the noise is at least k >= 1 with probability
    2 r^k / (1 + r): one logarithm of a uniform number, and a bit for the sign.
    """
    bits = jax.random.bits(key, counts.shape, jnp.uint32)
    uniform = ((bits >> np.uint32(8)).astype(jnp.float32) + np.float32(0.5)) * np.float32(2**-24)
    reach = jnp.log(uniform * ((1 + jnp.exp(-epsilon)) / 2)) / -epsilon
    size = jnp.floor(reach).astype(jnp.int32)
    noise = jnp.where((bits & np.uint32(1)) == 1, size, -size)
    return jnp.clip(counts + noise, 0, n)


@jax.jit
def noisy_grids(
    counts: Counts,
    lanes: Lanes,
    stride: Int32[Array, ""],
    key: PRNGKeyArray,
    epsilon: Float32[Array, ""],
    n: Int32[Array, ""],
) -> Counts:
    """MICr-Geom's noise of epsilon / 2 on each cell of the lanes' grids, and none on padding.

    Args:
      counts: rows of `stride` cells.
    """
    noisy = truncated_geometric(counts, epsilon / 2, n, key=key)
    cell = jnp.arange(counts.shape[1], dtype=jnp.int32)
    column, row = (cell // stride)[None], (cell % stride)[None]
    inside = (column < lanes.master[:, None]) & (row < lanes.rows[:, None])
    return jnp.where(inside, noisy, 0)
