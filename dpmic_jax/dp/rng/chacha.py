"""ChaCha20 (RFC 8439) as a random number generator behind JAX's typed keys.

A key is 256 bits. Everything made from one comes out of the ChaCha20 block function

    block(key, counter, nonce),    nonce = (domain, 0, 0),

where the domain word tells what the block is for: drawn bits, keys made by `split`, or keys
made by `fold_in`. No two of them share an input of the block function, so a key may be folded,
split and drawn from without any output repeating another. The counter has 32 bits; a call that
would need more than 2^32 blocks is refused, so it never wraps.

Derived keys are the first 256 bits of a block. If the block function is a pseudorandom
function, which is what ChaCha20 is believed to be, then q keys derived along distinct paths of
`split` and `fold_in` contain an equal pair with probability at most about q^2 / 2^257: 2^-177
for 2^40 keys. (With threefry2x32, whose keys have 64 bits, that is q^2 / 2^65: 3 % for 10^9.)

The arithmetic is additions, exclusive ors and rotations of uint32, so the bits are the same
compiled or not, for any batching and on any device, and take the same time whatever they are.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Integer, UInt, UInt32

BITS, SPLIT, FOLD = (np.uint32(domain) for domain in (1, 2, 3))
BLOCKS_A_CALL = 2**32
WORDS = 16  # in a block
# A part of a long draw, 1 MiB: its state stays in cache, and memory in use stays bounded.
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
      The 16 words of a block, each an array over blocks. They are left apart because joining
      them is a transposition, which a caller who uses words one by one never needs.
    """
    # Zero, but varying over devices as the key does: a loop's state has to.
    zero = jnp.broadcast_to(key[0] - key[0], counter.shape)
    words = [*_CONSTANTS, *key, counter, *nonce]
    start = tuple(jnp.broadcast_to(word, counter.shape) + zero for word in words)
    # A loop, not 10 copies of its body: unrolled it compiles for half a minute, runs no faster.
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
    """The first `words` words: word 0 of all blocks, word 1 of all blocks, ..., part by part."""
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
    """Uniform unsigned integers of 8, 16, 32 or 64 bits. A word a value, or two for 64 bits."""
    size = math.prod(shape)
    if bit_width == 64:
        low, high = _draw(key, 2 * size).astype(np.uint64).reshape(2, *shape)
        return (high << np.uint64(32)) | low
    if bit_width not in (8, 16, 32):
        raise TypeError(f"expected integers of 8, 16, 32 or 64 bits, got {bit_width}")
    return _draw(key, size).astype(f"uint{bit_width}").reshape(shape)


@functools.partial(jax.jit, static_argnums=1)
def split(key: UInt32[Array, "8"], shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """New keys: the one at flat position i is the first half of block i."""
    number = math.prod(shape)
    if number > BLOCKS_A_CALL:
        raise ValueError(f"a key splits into at most 2^32 keys, not {number}: split in two steps")
    words = _blocks(key, lax.iota(np.uint32, number), SPLIT)
    return jnp.stack(words[:8], axis=-1).reshape(*shape, 8)


@jax.jit
def fold_in(key: UInt32[Array, "8"], data: Integer[Array, ""]) -> UInt32[Array, "8"]:
    """A new key for each 32-bit `data`: the first half of block number `data`."""
    return jnp.stack(_blocks(key, lax.convert_element_type(data, np.uint32), FOLD)[:8])


def _seed(seed):
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
