"""Checks of scores, and guarantees, that all selectors share."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float

MOST_CANDIDATES = 2**31 - 1  # indices are int32
Mask = Bool[Array, " candidates"] | Bool[np.ndarray, " candidates"]


def check_scores(
    scores: Int32[Array, " candidates"], least: int = 1
) -> Int32[Array, " candidates"]:
    """Return the scores if they are a one-dimensional int32 array of `least` entries or more."""
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", ())
    if dtype != np.int32 or len(shape) != 1 or not 0 < shape[0] <= MOST_CANDIDATES:
        raise TypeError(
            f"expected scores as a one-dimensional int32 array, got {dtype} of shape {shape}; "
            "JAX would truncate longer integers to 32 bits without a warning"
        )
    if shape[0] < least:
        raise ValueError(f"expected at least {least} candidates to choose from, got {shape[0]}")
    return jnp.asarray(scores)


def pure_guarantee(epsilon: float | Fraction) -> PureDP:
    """epsilon-DP as the ledger records it: a fraction is rounded up to the next float."""
    return PureDP(ceil_to_float(epsilon) if isinstance(epsilon, Fraction) else epsilon)
