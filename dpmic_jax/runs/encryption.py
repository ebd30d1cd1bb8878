"""Bytes sealed under a run's key: nobody else can read them, or change them unnoticed.

Encrypt, then authenticate: a stream from the key folded with 256 fresh random bits, so that no
stream is ever used twice, and HMAC-SHA256 under another fold of it. Under a secret key the stream
is ChaCha20 (`dp.rng.chacha`, tested by the vectors of RFC 8439); what is sealed is noise once the
key is destroyed. Under a seeded key it hides nothing from who knows the seed.
"""

import hashlib
import hmac
import os

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from dpmic_jax.dp.rng.keys import AnyKey, fold, noise_key

_NONCE = 32
_TAG = 32
# Folded in last, so that the two uses of a nonce share nothing.
_STREAM, _AUTHENTICATION = 1, 2


class SealBrokenError(Exception):
    """The bytes were sealed under another key or for another purpose, or were changed."""


def seal(content: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """Hide `content`; `unseal` with the same key and purpose gives it back."""
    nonce = os.urandom(_NONCE)
    hidden = _xor(content, _key(key, nonce, _STREAM))
    return nonce + hidden + _tag(nonce + hidden, _key(key, nonce, _AUTHENTICATION), purpose)


def unseal(sealed: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """What was sealed, or SealBrokenError."""
    nonce, hidden, tag = sealed[:_NONCE], sealed[_NONCE:-_TAG], sealed[-_TAG:]
    if len(sealed) < _NONCE + _TAG or not hmac.compare_digest(
        tag, _tag(nonce + hidden, _key(key, nonce, _AUTHENTICATION), purpose)
    ):
        raise SealBrokenError(f"these bytes were not sealed as {purpose!r} under this key")
    return _xor(hidden, _key(key, nonce, _STREAM))


def _key(key: AnyKey, nonce: bytes, use: int) -> Key[Array, ""]:
    words = [*np.frombuffer(nonce, "<u4").astype(np.uint32), np.uint32(use)]
    return fold(noise_key(key), jnp.asarray(np.array(words)))


def _xor(content: bytes, key: Key[Array, ""]) -> bytes:
    # To a power of two, so that few lengths are compiled.
    words = 1 << max(4, (-(-len(content) // 4) - 1).bit_length())
    stream = np.asarray(jax.random.bits(key, (words,), jnp.uint32)).astype("<u4").tobytes()
    pair = (np.frombuffer(part, np.uint8) for part in (content, stream[: len(content)]))
    return np.bitwise_xor(*pair).tobytes()


def _tag(content: bytes, key: Key[Array, ""], purpose: str) -> bytes:
    words = np.asarray(jax.random.bits(key, (8,), jnp.uint32)).astype("<u4").tobytes()
    name = purpose.encode()
    # The length keeps a purpose and a content from running into each other.
    return hmac.new(words, len(name).to_bytes(8, "big") + name + content, hashlib.sha256).digest()
