"""Keys that noise is drawn from: secret keys, seeded keys, and keys of events and pairs.

Noise drawn twice from one key is the same noise, and cancels in a difference. So the noise of
pair (i, j) in an event is drawn from the given key folded with the event's digest, then i, then
j: one key may be used for any number of different events without repeating noise. The
probability that two derived keys are equal is bounded in `dpmic_jax.dp.rng.chacha`.

Use `secret_key()` for releases. A seeded key is for research: anyone who guesses the seed can
subtract the noise.
"""

import hashlib
import operator
import os
from dataclasses import dataclass
from typing import NoReturn, Protocol, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Key, UInt32

from dpmic_jax.dp.rng.chacha import CHACHA20

_SEEDED = "threefry2x32"
_DIGEST_BYTES = 32
_REMEDY = "use dpmic_jax.secret_key(), or dpmic_jax.seeded_key(seed) for research"


@final
@dataclass(frozen=True, eq=False, repr=False)
class SecretKey:
    """A key of 256 secret bits, which is not printed, not pickled, and compared by identity.

    Attributes:
      key: the typed JAX key. JAX prints the content of its keys, so do not log it, and do not
        leave it in a local variable that a traceback may show.
    """

    key: Key[Array, ""]

    def __post_init__(self):
        if not is_secret(_typed(self.key)) or self.key.shape:
            raise ValueError("a SecretKey holds one ChaCha20 key: use dpmic_jax.secret_key()")

    def __repr__(self) -> str:
        return "SecretKey(hidden)"

    def __copy__(self) -> "SecretKey":
        return self

    def __deepcopy__(self, memo: object) -> "SecretKey":
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a SecretKey is not pickled, since a reader of the pickle could subtract the noise: "
            "let workers return exact results, and add the noise in the process that has the key"
        )


AnyKey = SecretKey | Key[Array, ""]
Word = int | np.integer | Array


class Event(Protocol):
    """Anything with a digest; `dpmic_jax.dp.accounting.events.Event` is one."""

    @property
    def digest(self) -> bytes:
        """A hash of 32 bytes that differs between different events."""
        ...


def secret_key() -> SecretKey:
    """Make a new key of 256 bits from the operating system's random number generator."""
    words = np.frombuffer(os.urandom(32), np.uint32)
    return SecretKey(wrap(jnp.asarray(words)))


def seeded_key(seed: int) -> Key[Array, ""]:
    """Make a reproducible key from a seed, for research; releases made with it are marked so.

    Seeds of 2^32 and more are refused: without its 64-bit mode JAX takes them modulo 2^32.
    """
    return jax.random.key(_index(seed, "seed"), impl=_SEEDED)


def is_secret(key: AnyKey) -> bool:
    """Whether a key comes from `secret_key()` or is derived from one, concrete or traced."""
    return isinstance(key, SecretKey) or jax.random.key_impl(_typed(key)) == CHACHA20


def noise_key(key: AnyKey) -> Key[Array, ""]:
    """Check that a key is fit for noise, and return it as a typed JAX key.

    Raises:
      TypeError: it is not a typed key.
      ValueError: it is an array of keys, or of a generator other than ChaCha20 and threefry2x32.
        Under `jax.vmap`, `rbg` and `unsafe_rbg` give all keys the noise of the first one.
    """
    if isinstance(key, SecretKey):
        return key.key
    key = _typed(key)
    generator = jax.random.key_impl(key)
    if generator in ("rbg", "unsafe_rbg"):
        raise ValueError(
            f"{generator} keys are refused for noise, because under jax.vmap all keys but the "
            f"first are ignored and every pair would get the same noise: {_REMEDY}"
        )
    if generator not in (_SEEDED, CHACHA20):
        raise ValueError(f"expected a ChaCha20 or threefry2x32 key, got {generator}: {_REMEDY}")
    if key.shape:
        raise ValueError(
            f"expected one key, got an array of keys of shape {key.shape}: pass one of them, "
            "or use jax.vmap"
        )
    return key


def event_key(key: AnyKey, event: Event) -> Key[Array, ""]:
    """The key of one event: `key` folded with the eight words of the event's digest."""
    digest = event.digest
    if not isinstance(digest, bytes) or len(digest) != _DIGEST_BYTES:
        raise ValueError("expected event.digest to be 32 bytes: use hashlib.sha256(...).digest()")
    return fold(noise_key(key), jnp.asarray(np.frombuffer(digest, "<u4").astype(np.uint32)))


def purpose_bytes(key: AnyKey, purpose: str) -> bytes:
    """32 bytes for a purpose other than noise, such as the key of a cipher.

    No event has a hash of such a text as its digest, so that no noise is drawn from an equal key.
    """
    words = np.frombuffer(hashlib.sha256(purpose.encode()).digest(), "<u4").astype(np.uint32)
    bits = jax.random.bits(fold(noise_key(key), jnp.asarray(words)), (8,), jnp.uint32)
    return np.asarray(bits).astype("<u4").tobytes()


def pair_key(key: AnyKey, i: Word, j: Word) -> Key[Array, ""]:
    """The key of pair (i, j): `key` folded with i, then j. Use `jax.vmap` for many pairs.

    Args:
      key: usually an `event_key`.
      i: index of the first column, 0 <= i < 2^32; an int, or a scalar uint32 or int32 array.
      j: index of the second column, likewise.
    """
    return fold(noise_key(key), jnp.stack([_word(i, "i"), _word(j, "j")]))


def wrap(key_data: UInt32[Array, "*keys words"]) -> Key[Array, "*keys"]:
    """Typed keys from their words: 8 words are a ChaCha20 key, 2 words a threefry2x32 key.

    The inverse of `jax.random.key_data`. `jax.export` cannot serialise custom key types, so an
    exported function takes the words and wraps them inside.
    """
    generators = {8: CHACHA20, 2: _SEEDED}
    if not key_data.shape or key_data.shape[-1] not in generators:
        raise ValueError(f"expected 8 or 2 words a key on the last axis, got {key_data.shape}")
    return jax.random.wrap_key_data(key_data, impl=generators[key_data.shape[-1]])


@jax.jit
def fold(key: Key[Array, ""], words: UInt32[Array, " words"]) -> Key[Array, ""]:
    """Fold `key` with one word after the other."""
    # Adds a zero that varies over devices as the words do: under shard_map the state of a scan
    # has to have the same varying axes before and after.
    data = jax.random.key_data(key)
    key = wrap(data + jnp.broadcast_to(words[0] - words[0], data.shape))
    # A scan compiles one block function; a Python loop would compile one for each word.
    return lax.scan(lambda key, word: (jax.random.fold_in(key, word), None), key, words)[0]


def _typed(key: object) -> Key[Array, "..."]:
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array | np.ndarray):
        raise TypeError(
            "expected a typed key, got an array of numbers: use jax.random.key(seed) in place of "
            "jax.random.PRNGKey(seed), or jax.random.wrap_key_data(words)"
        )
    raise TypeError(f"expected a key, got {type(key).__name__}: {_REMEDY}")


def _index(value: Word, name: str) -> int:
    if isinstance(value, bool):
        raise TypeError(f"expected {name} to be an integer, got bool")
    index = operator.index(value)
    if not 0 <= index < 2**32:
        # The value is not shown: it may be a seed.
        raise ValueError(
            f"expected 0 <= {name} < 2^32, since JAX would silently take it modulo 2^32"
        )
    return index


def _word(value: Word, name: str) -> UInt32[Array, ""]:
    if not isinstance(value, jax.Array):
        return jnp.asarray(np.uint32(_index(value, name)))
    if value.dtype not in (np.uint32, np.int32) or value.shape:
        raise TypeError(
            f"expected {name} to be one uint32 or int32, got {value.dtype} of shape "
            f"{value.shape}: use jax.vmap for many pairs"
        )
    return value.astype(np.uint32)
