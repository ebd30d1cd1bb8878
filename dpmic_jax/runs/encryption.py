"""Authenticated encryption of a run's files: ChaCha20-Poly1305 (RFC 8439).

The cipher is that of the `cryptography` package. Every purpose has its own key: HMAC-SHA256 of the
purpose, keyed by 256 bits drawn from the run's key folded with a word that no noise uses. Every
message has a random nonce of 96 bits. There are a handful of messages per purpose, so two of them
share a nonce with probability below 2^-80. Once the run's key is destroyed, the files cannot be
decrypted. Under a seeded key, anyone who knows the seed can decrypt them.
"""

import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dpmic_jax.dp.rng.keys import AnyKey, purpose_bytes

_NONCE, _TAG = 12, 16


class DecryptionError(Exception):
    """The bytes were encrypted under another key or for another purpose, or were changed."""


def encrypt(content: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """Encrypt and authenticate `content`: a nonce, then the ciphertext with its tag.

    Args:
      content: the plaintext.
      key: the key of the run.
      purpose: what the bytes are; `decrypt` accepts them for no other purpose.
    """
    nonce = os.urandom(_NONCE)
    return nonce + _cipher(key, purpose).encrypt(nonce, content, None)


def decrypt(encrypted: bytes, *, key: AnyKey, purpose: str) -> bytes:
    """The plaintext of `encrypt`, or `DecryptionError`."""
    if len(encrypted) >= _NONCE + _TAG:  # even an empty message has both
        try:
            nonce, hidden = encrypted[:_NONCE], encrypted[_NONCE:]
            return _cipher(key, purpose).decrypt(nonce, hidden, None)
        except InvalidTag:
            pass
    raise DecryptionError(f"these bytes were not encrypted as {purpose!r} under this key")


def _cipher(key: AnyKey, purpose: str) -> ChaCha20Poly1305:
    bits = purpose_bytes(key, "dpmic_jax: encryption of a run's files")
    return ChaCha20Poly1305(hmac.new(bits, purpose.encode(), hashlib.sha256).digest())
