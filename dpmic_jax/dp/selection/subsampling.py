"""Uniform subsamples of m of n records, on device or host, and privacy amplification by them.

A subsample consists of the m records with the least random priorities, of 64 bits each. Given that
the priorities of the last record inside and the first one outside differ, all subsets are exactly
equally likely. `tied` says whether they are equal, so that the caller can ignore such a subsample.
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
    """Records, and whether a tie of priorities decided on one of them; secret, like the key."""

    indices: Int32[Array, " m"]  # record numbers, in increasing order
    tied: Bool[Array, ""]


@partial(jax.jit, static_argnames=("n", "m"))
def subsample(key: Key[Array, ""], n: int, m: int) -> Subsample:
    """m of n records, by a sort on the device. Works under jit and vmap."""
    order = jnp.arange(n, dtype=jnp.int32)
    high, low, order = jax.lax.sort((*_priorities(key, n), order), num_keys=2)
    tied = jnp.zeros((), bool)
    if m < n:
        tied = (high[m - 1] == high[m]) & (low[m - 1] == low[m])
    return Subsample(jnp.sort(order[:m]), tied)


def subsample_on_host(key: Key[Array, ""], n: int, m: int) -> Subsample:
    """The same records as `subsample`, by a partial sort in NumPy, which is much faster."""
    if m == n:
        return Subsample(jnp.arange(n, dtype=jnp.int32), jnp.zeros((), bool))
    high, low = np.asarray(_priorities(key, n)).astype(np.uint64)
    priority = high << np.uint64(32) | low
    order = np.argpartition(priority, (m - 1, m))
    tied = priority[order[m - 1]] == priority[order[m]]
    return Subsample(jnp.asarray(np.sort(order[:m]).astype(np.int32)), jnp.asarray(tied))


@partial(jax.jit, static_argnames="n")
def _priorities(key: Key[Array, ""], n: int) -> UInt32[Array, "2 n"]:
    """The high and low words of every record's priority."""
    return jax.random.bits(key, (2, n), jnp.uint32)


def before_subsampling(epsilon: Fraction, share: Fraction) -> Fraction:
    """The epsilon' on a fraction m/n of the records that is epsilon after amplification.

    epsilon' = ln(1 + (e^epsilon - 1) / share), rounded down to a multiple of 2^-64.
    """
    with localcontext(prec=80, rounding=ROUND_FLOOR):
        # exp and ln round to the nearest whatever the mode; the next number down is a lower bound.
        odds = (Decimal(epsilon.numerator) / epsilon.denominator).exp().next_minus() - 1
        inner = (1 + odds * share.denominator / share.numerator).ln().next_minus()
    return Fraction(int(Fraction(inner) * 2**64), 2**64)
