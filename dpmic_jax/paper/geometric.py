"""Fast noise of the published MICr-Geom, for studies that draw billions of samples.

Releases use `dp.noise.TruncatedGeometric`, which samples in integers and has a certificate. Nothing
is released here, so float32 is enough: the distribution is the same up to probabilities below
2^-24.
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

    With r = e^-epsilon, the magnitude of the noise is at least k >= 1 with probability
    2 r^k / (1 + r). So one logarithm of a uniform number gives the magnitude, and one bit the sign.
    """
    bits = jax.random.bits(key, counts.shape, jnp.uint32)
    # The upper 24 bits make the uniform number, in the middle of its interval so that it is never
    # 0; the lowest bit, independent of them, is the sign.
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
    """Add MICr-Geom's noise of epsilon / 2 to each cell of each lane's grid, but not to padding.

    Args:
      counts: the counts of each lane, in rows of `stride` cells.
      lanes: the grid of each lane.
      stride: length of a padded row.
      key: of the noise.
      epsilon: of the mechanism; a cell gets half of it, as replacing a record changes two cells.
      n: number of records, at which noisy counts are clipped.
    """
    noisy = truncated_geometric(counts, epsilon / 2, n, key=key)
    cell = jnp.arange(counts.shape[1], dtype=jnp.int32)
    column, row = (cell // stride)[None], (cell % stride)[None]
    inside = (column < lanes.master[:, None]) & (row < lanes.rows[:, None])
    return jnp.where(inside, noisy, 0)
