"""Sealed bytes: read by who has the key, by nobody else, and not changed unnoticed."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax import secret_key, seeded_key
from dpmic_jax.runs.encryption import SealBrokenError, seal, unseal

KEYS = {"secret": secret_key(), "seeded": seeded_key(7)}
OVERHEAD = 64  # a nonce and a tag


@pytest.fixture(params=list(KEYS))
def key(request):
    return KEYS[request.param]


@given(st.binary(max_size=100), st.text(max_size=20), st.sampled_from(list(KEYS)))
def test_what_was_sealed_comes_back(content, purpose, kind):
    sealed = seal(content, key=KEYS[kind], purpose=purpose)
    assert len(sealed) == len(content) + OVERHEAD
    assert unseal(sealed, key=KEYS[kind], purpose=purpose) == content


@pytest.mark.parametrize("length", [*range(70), 1000, 4096])
def test_every_length_comes_back(length):
    content = bytes(range(256)) * 16
    sealed = seal(content[:length], key=KEYS["seeded"], purpose="x")
    assert unseal(sealed, key=KEYS["seeded"], purpose="x") == content[:length]


def test_another_key_or_purpose_is_refused(key):
    sealed = seal(b"scores", key=key, purpose="run 1 tile 2")
    others = [secret_key(), seeded_key(8), *(each for each in KEYS.values() if each is not key)]
    for other in others:
        with pytest.raises(SealBrokenError):
            unseal(sealed, key=other, purpose="run 1 tile 2")
    for purpose in ("run 1 tile 3", "run 1 tile", "run 1 tile 2 ", ""):
        with pytest.raises(SealBrokenError, match="not sealed as"):
            unseal(sealed, key=key, purpose=purpose)


def test_purpose_and_content_do_not_run_into_each_other():
    sealed = seal(b"", key=KEYS["seeded"], purpose="ab")
    nonce, tag = sealed[:32], sealed[32:]
    for cut in (nonce[:31], nonce + b"b"):
        with pytest.raises(SealBrokenError):
            unseal(cut + tag, key=KEYS["seeded"], purpose="a")


def test_any_flipped_bit_is_noticed(key):
    sealed = seal(bytes(range(12)), key=key, purpose="x")
    for place in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[place] ^= 1 << bit
            with pytest.raises(SealBrokenError):
                unseal(bytes(changed), key=key, purpose="x")


def test_anything_cut_off_or_added_is_noticed(key):
    sealed = seal(bytes(range(12)), key=key, purpose="x")
    for length in range(len(sealed)):
        with pytest.raises(SealBrokenError):
            unseal(sealed[:length], key=key, purpose="x")
    with pytest.raises(SealBrokenError):
        unseal(sealed + b"\0", key=key, purpose="x")


def test_the_same_bytes_are_never_sealed_the_same(key):
    seals = [seal(bytes(40), key=key, purpose="x") for _ in range(8)]
    for part in (slice(32), slice(32, 72), slice(72, None)):
        assert len({sealed[part] for sealed in seals}) == 8


def test_a_seal_looks_like_noise(key):
    """Of 8000 bits set at random, as many are ones as chance allows (8 standard deviations)."""
    hidden = seal(bytes(1000), key=key, purpose="x")[32:-32]
    ones = int(np.unpackbits(np.frombuffer(hidden, np.uint8)).sum())
    assert abs(ones - 4000) < 8 * np.sqrt(2000)
    assert len(set(hidden)) > 200


def test_the_tag_is_not_of_the_content_alone():
    """A guess of the content cannot be checked without the key."""
    content = bytes(16)
    sealed = seal(content, key=KEYS["secret"], purpose="x")
    guesses = [
        hashlib.sha256(content).digest(),
        hashlib.sha256(sealed[:-32]).digest(),
        hmac.new(b"", sealed[:-32], hashlib.sha256).digest(),
    ]
    assert sealed[-32:] not in guesses


def test_a_refusal_shows_nothing(key):
    sealed = seal(b"SECRET-12345", key=key, purpose="x")
    with pytest.raises(SealBrokenError) as caught:
        unseal(sealed, key=key, purpose="y")
    assert "SECRET" not in str(caught.value)
