"""Encrypted bytes: read by whoever has the key, by nobody else, and not changed unnoticed."""

import hashlib
import hmac

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax import secret_key, seeded_key
from dpmic_jax.dp.rng import chacha
from dpmic_jax.runs import encryption
from dpmic_jax.runs.encryption import DecryptionError, decrypt, encrypt

KEYS = {"secret": secret_key(), "seeded": seeded_key(7)}
OVERHEAD = 28  # a nonce and a tag


@pytest.fixture(params=list(KEYS))
def key(request):
    return KEYS[request.param]


@given(st.binary(max_size=100), st.text(max_size=20), st.sampled_from(list(KEYS)))
def test_decryption_inverts_encryption(content, purpose, kind):
    encrypted = encrypt(content, key=KEYS[kind], purpose=purpose)
    assert len(encrypted) == len(content) + OVERHEAD
    assert decrypt(encrypted, key=KEYS[kind], purpose=purpose) == content


@pytest.mark.parametrize("length", [*range(70), 1000, 4096])
def test_decryption_inverts_encryption_of_every_length(length):
    content = bytes(range(256)) * 16
    encrypted = encrypt(content[:length], key=KEYS["seeded"], purpose="x")
    assert decrypt(encrypted, key=KEYS["seeded"], purpose="x") == content[:length]


def test_another_key_or_purpose_is_refused(key):
    encrypted = encrypt(b"scores", key=key, purpose="run 1 tile 2")
    others = [secret_key(), seeded_key(8), *(each for each in KEYS.values() if each is not key)]
    for other in others:
        with pytest.raises(DecryptionError):
            decrypt(encrypted, key=other, purpose="run 1 tile 2")
    for purpose in ("run 1 tile 3", "run 1 tile", "run 1 tile 2 ", ""):
        with pytest.raises(DecryptionError, match="not encrypted as"):
            decrypt(encrypted, key=key, purpose=purpose)


def test_any_flipped_bit_is_refused(key):
    encrypted = encrypt(bytes(range(12)), key=key, purpose="x")
    for place in range(len(encrypted)):
        for bit in range(8):
            changed = bytearray(encrypted)
            changed[place] ^= 1 << bit
            with pytest.raises(DecryptionError):
                decrypt(bytes(changed), key=key, purpose="x")


def test_truncated_or_extended_bytes_are_refused(key):
    encrypted = encrypt(bytes(range(12)), key=key, purpose="x")
    for length in range(len(encrypted)):
        with pytest.raises(DecryptionError):
            decrypt(encrypted[:length], key=key, purpose="x")
    with pytest.raises(DecryptionError):
        decrypt(encrypted + b"\0", key=key, purpose="x")


def test_the_same_bytes_are_never_encrypted_the_same(key):
    several = [encrypt(bytes(40), key=key, purpose="x") for _ in range(8)]
    for part in (slice(12), slice(12, 52), slice(52, None)):
        assert len({encrypted[part] for encrypted in several}) == 8


def test_encrypted_bytes_look_random(key):
    """Of 8000 bits set at random, as many are ones as chance allows (8 standard deviations)."""
    hidden = encrypt(bytes(1000), key=key, purpose="x")[12:-16]
    ones = int(np.unpackbits(np.frombuffer(hidden, np.uint8)).sum())
    assert abs(ones - 4000) < 8 * np.sqrt(2000)
    assert len(set(hidden)) > 200


def test_the_tag_is_not_of_the_content_alone():
    """A guess of the content cannot be checked without the key."""
    content = bytes(16)
    encrypted = encrypt(content, key=KEYS["secret"], purpose="x")
    guesses = [
        hashlib.sha256(content).digest()[:16],
        hashlib.sha256(encrypted[:-16]).digest()[:16],
        hmac.new(b"", encrypted[:-16], hashlib.sha256).digest()[:16],
    ]
    assert encrypted[-16:] not in guesses


def test_a_refusal_shows_nothing(key):
    encrypted = encrypt(b"SECRET-12345", key=key, purpose="x")
    with pytest.raises(DecryptionError) as caught:
        decrypt(encrypted, key=key, purpose="y")
    assert "SECRET" not in str(caught.value)


def test_the_cipher_is_chacha20_with_a_key_of_the_purpose(monkeypatch):
    """By the block function of RFC 8439 that noise is drawn with, which shares no code with it."""
    keys = []
    aead = encryption.ChaCha20Poly1305
    monkeypatch.setattr(encryption, "ChaCha20Poly1305", lambda key: keys.append(key) or aead(key))
    content = bytes(range(200))
    for purpose in ("one", "two", "one"):
        encrypted = encrypt(content, key=KEYS["secret"], purpose=purpose)
        words, nonce = (np.frombuffer(part, "<u4") for part in (keys[-1], encrypted[:12]))
        counters = jnp.arange(1, 5, dtype=jnp.uint32)  # block 0 is for the tag
        blocks = chacha.block(jnp.asarray(words), counters, tuple(nonce))
        stream = np.stack(blocks, axis=-1).astype("<u4").tobytes()[: len(content)]
        hidden = bytes(a ^ b for a, b in zip(content, stream, strict=True))
        assert encrypted[12:-16] == hidden
    assert keys[0] == keys[2] != keys[1]
