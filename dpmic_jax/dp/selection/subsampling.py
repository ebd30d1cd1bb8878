"""A uniform subsample of m of n records, on the device or on the host, and what it buys.

The m records of least random priority, 64 bits each. Given that the priorities of the last one in
and the first one out differ, all subsets are exactly equally likely; whether they are `tied` is
told, so that the caller can look away.
"""

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt32


class Subsample(NamedTuple):
    """Records, and whether a tie decided on one of them; secret, like the key."""

    indices: Int32[Array, " m"]  # record numbers, in increasing order
    tied: Bool[Array, ""]


@partial(jax.jit, static_argnames=("n", "m"))
def subsample(key: Key[Array, ""], n: int, m: int) -> Subsample:
    """m of n records."""
    order = jnp.arange(n, dtype=jnp.int32)
    high, low, order = jax.lax.sort((*_priorities(key, n), order), num_keys=2)
    tied = jnp.zeros((), bool)
    if m < n:
        tied = (high[m - 1] == high[m]) & (low[m - 1] == low[m])
    return Subsample(jnp.sort(order[:m]), tied)


def subsample_on_host(key: Key[Array, ""], n: int, m: int) -> Subsample:
    """The same records: a selection takes a small part of the time that a sort takes."""
    if m == n:
        return Subsample(jnp.arange(n, dtype=jnp.int32), jnp.zeros((), bool))
    high, low = np.asarray(_priorities(key, n)).astype(np.uint64)
    priority = high << np.uint64(32) | low
    order = np.argpartition(priority, (m - 1, m))
    tied = priority[order[m - 1]] == priority[order[m]]
    return Subsample(jnp.asarray(np.sort(order[:m]).astype(np.int32)), jnp.asarray(tied))


@partial(jax.jit, static_argnames="n")
def _priorities(key: Key[Array, ""], n: int) -> UInt32[Array, "2 n"]:
    """High and low words of every record."""
    return jax.random.bits(key, (2, n), jnp.uint32)


def before_subsampling(epsilon: Fraction, share: Fraction) -> Fraction:
    """ln(1 + (e^epsilon - 1) / share), rounded down: epsilon' on a share m/n of the records."""
    with localcontext(prec=80, rounding=ROUND_FLOOR):
        # exp and ln are correctly rounded whatever the mode, so the next number is below.
        odds = (Decimal(epsilon.numerator) / epsilon.denominator).exp().next_minus() - 1
        inner = (1 + odds * share.denominator / share.numerator).ln().next_minus()
    return Fraction(int(Fraction(inner) * 2**64), 2**64)
