"""ChaCha20 (RFC 8439) as a random number generator behind JAX's typed keys.

A key is 256 bits. Everything made from one comes out of the ChaCha20 block function

    block(key, counter, nonce),    nonce = (domain, 0, 0),

where the domain word says what the block is for: random bits, keys made by `split`, or keys
made by `fold_in`. Different uses never share an input of the block function, so one key may be
folded, split and drawn from, and no output repeats another. The counter has 32 bits; a call that
would need more than 2^32 blocks is refused, so it never wraps.

Derived keys are the first 256 bits of a block. If the block function is a pseudorandom
function, as ChaCha20 is believed to be, then q keys derived along distinct paths of `split` and
`fold_in` contain an equal pair with probability at most about q^2 / 2^257: 2^-177 for 2^40 keys.
(With threefry2x32, whose keys have 64 bits, that is q^2 / 2^65: 3 % for 10^9 keys.)

The arithmetic is additions, exclusive ors and rotations of uint32. So the bits are the same
with or without jit, for any batching and on any device, and the running time does not depend on
the key.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Integer, UInt, UInt32

BITS, SPLIT, FOLD = (np.uint32(domain) for domain in (1, 2, 3))  # domain words
BLOCKS_A_CALL = 2**32  # values of the counter
WORDS = 16  # in a block
# Long draws are made in parts of 1 MiB: their state stays in cache, and memory use is bounded.
BLOCKS_A_PART = 2**14

_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4").astype(np.uint32)
_COLUMNS = tuple((i, 4 + i, 8 + i, 12 + i) for i in range(4))
_DIAGONALS = tuple((i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4))

State = tuple[UInt32[Array, "..."], ...]


def block(
    key: UInt32[Array, "8"],
    counter: UInt32[Array, "*blocks"],
    nonce: tuple[np.uint32, np.uint32, np.uint32],
) -> State:
    """The block function of RFC 8439, section 2.3, for many counters at once.

    Returns:
      The 16 words of a block, each an array over blocks. They are not stacked, since that is a
      transposition, which callers that use the words one by one do not need.
    """
    # A zero that varies over devices as the key does: under shard_map the state of a loop has to
    # have the same varying axes before and after.
    zero = jnp.broadcast_to(key[0] - key[0], counter.shape)
    words = [*_CONSTANTS, *key, counter, *nonce]
    start = tuple(jnp.broadcast_to(word, counter.shape) + zero for word in words)
    # A loop, not 10 copies of its body: unrolled it takes half a minute to compile and runs no
    # faster.
    end = lax.fori_loop(0, 10, _double_round, start)
    return tuple(x + y for x, y in zip(start, end, strict=True))


def _double_round(_, state: State) -> State:
    words = list(state)
    for quarter in (*_COLUMNS, *_DIAGONALS):
        a, b, c, d = (words[i] for i in quarter)
        a = a + b
        d = _rotate(d ^ a, 16)
        c = c + d
        b = _rotate(b ^ c, 12)
        a = a + b
        d = _rotate(d ^ a, 8)
        c = c + d
        b = _rotate(b ^ c, 7)
        for i, word in zip(quarter, (a, b, c, d), strict=True):
            words[i] = word
    return tuple(words)


def _rotate(word: UInt32[Array, "..."], by: int) -> UInt32[Array, "..."]:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))


def _blocks(key: UInt32[Array, "8"], counter: UInt32[Array, "*blocks"], domain) -> State:
    return block(key, counter, (domain, np.uint32(0), np.uint32(0)))


def _draw(key: UInt32[Array, "8"], words: int) -> UInt32[Array, " words"]:
    """The first `words` random words: part by part, word 0 of all its blocks, then word 1, ..."""
    blocks = max(1, -(-words // WORDS))
    if blocks > BLOCKS_A_CALL:
        raise ValueError(
            f"{words} words need {blocks} blocks of the key, more than its 2^32: "
            "split the key and draw from each of the new ones"
        )

    def part(first, size: int):
        return jnp.concatenate(_blocks(key, first + lax.iota(np.uint32, size), BITS))

    if blocks <= BLOCKS_A_PART:
        return part(np.uint32(0), blocks)[:words]
    first = lax.iota(np.uint32, -(-blocks // BLOCKS_A_PART)) * np.uint32(BLOCKS_A_PART)
    return lax.map(lambda start: part(start, BLOCKS_A_PART), first).reshape(-1)[:words]


@functools.partial(jax.jit, static_argnums=(1, 2))
def random_bits(
    key: UInt32[Array, "8"], bit_width: int, shape: tuple[int, ...]
) -> UInt[Array, "..."]:
    """Uniform unsigned integers of 8, 16, 32 or 64 bits; each takes one word, or two for 64."""
    size = math.prod(shape)
    if bit_width == 64:
        low, high = _draw(key, 2 * size).astype(np.uint64).reshape(2, *shape)
        return (high << np.uint64(32)) | low
    if bit_width not in (8, 16, 32):
        raise TypeError(f"expected integers of 8, 16, 32 or 64 bits, got {bit_width}")
    return _draw(key, size).astype(f"uint{bit_width}").reshape(shape)


@functools.partial(jax.jit, static_argnums=1)
def split(key: UInt32[Array, "8"], shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """An array of new keys; the key at flat position i is the first half of block i."""
    number = math.prod(shape)
    if number > BLOCKS_A_CALL:
        raise ValueError(f"a key splits into at most 2^32 keys, not {number}: split in two steps")
    words = _blocks(key, lax.iota(np.uint32, number), SPLIT)
    return jnp.stack(words[:8], axis=-1).reshape(*shape, 8)


@jax.jit
def fold_in(key: UInt32[Array, "8"], data: Integer[Array, ""]) -> UInt32[Array, "8"]:
    """A new key for a 32-bit integer `data`: the first half of block number `data`."""
    return jnp.stack(_blocks(key, lax.convert_element_type(data, np.uint32), FOLD)[:8])


def _seed(seed):
    # JAX asks every generator for a seeding function; 32 or 64 bits of seed could be guessed.
    raise TypeError(
        "a ChaCha20 key is not made from a seed, which could be guessed: "
        "use dpmic_jax.secret_key() for a release, dpmic_jax.seeded_key(seed) for research"
    )


CHACHA20 = define_prng_impl(
    key_shape=(8,),
    seed=_seed,
    split=split,
    random_bits=random_bits,
    fold_in=fold_in,
    name="dpmic_chacha20",
    tag="dpmic_chacha20",
)
