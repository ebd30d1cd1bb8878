"""Files of a run that nobody else can read, or change unnoticed: ChaCha20-Poly1305 (RFC 8439).

The cipher is that of the `cryptography` package. Every purpose has a key of its own: HMAC-SHA256 of
the purpose under 256 bits that are drawn from the run's key, folded with a word that no noise is
drawn by. Every message has a random nonce of 96 bits, so that two messages of one purpose, of which
there are a handful, share one with probability below 2^-80. Once the run's key is destroyed, what
is encrypted is noise. Under a seeded key it hides nothing from whoever knows the seed.
"""

import hashlib
import hmac
import os

import jax
import jax.numpy as jnp
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dpmic_jax.dp.rng.keys import AnyKey, fold, noise_key

_NONCE, _TAG = 12, 16
# Eight words, as many as an event's digest has: no event has this one, so no noise is drawn by it.
_USE = np.frombuffer(hashlib.sha256(b"dpmic_jax: encryption of a run's files").digest(), "<u4")


class DecryptionError(Exception):
    """The bytes were encrypted under another key or for another purpose, or were changed."""


def encrypt(content: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """A nonce, and `content` hidden and authenticated: `decrypt` gives it back.

    Args:
      content: what nobody else is to read.
      key: of the run.
      purpose: what the bytes are; they are not accepted as anything else.
    """
    nonce = os.urandom(_NONCE)
    return nonce + _cipher(key, purpose).encrypt(nonce, content, None)


def decrypt(encrypted: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """What was encrypted, or DecryptionError."""
    if len(encrypted) >= _NONCE + _TAG:
        try:
            nonce, hidden = encrypted[:_NONCE], encrypted[_NONCE:]
            return _cipher(key, purpose).decrypt(nonce, hidden, None)
        except InvalidTag:
            pass
    raise DecryptionError(f"these bytes were not encrypted as {purpose!r} under this key")


def _cipher(key: AnyKey, purpose: str) -> ChaCha20Poly1305:
    folded = fold(noise_key(key), jnp.asarray(_USE.astype(np.uint32)))
    bits = np.asarray(jax.random.bits(folded, (8,), jnp.uint32)).astype("<u4").tobytes()
    return ChaCha20Poly1305(hmac.new(bits, purpose.encode(), hashlib.sha256).digest())
