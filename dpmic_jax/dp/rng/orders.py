"""Orders that are exactly uniform: by random words, and further ones where words are equal."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, UInt64


def uniform_order(key: Key[Array, ""], n: int) -> Int[np.ndarray, " n"]:
    """A uniform permutation of n records."""
    return untied(np.zeros(n, np.uint64), key)


def untied(words: UInt64[np.ndarray, " n"], key: Key[Array, ""]) -> Int[np.ndarray, " n"]:
    """The order of the words, and of further random ones where they are equal."""
    every = [words]
    while True:
        order = np.lexsort(every[::-1])
        ordered = np.stack(every)[:, order]
        if not (ordered[:, 1:] == ordered[:, :-1]).all(axis=0).any():
            return order.astype(np.int32)
        key, own = jax.random.split(key)
        high, low = np.asarray(jax.random.bits(own, (2, len(words)), jnp.uint32)).astype(np.uint64)
        every.append(high << np.uint64(32) | low)
