"""A key on disk is its owner's, whole or refused, and gone when it is destroyed."""

import os

import jax
import numpy as np
import pytest

from dpmic_jax import is_secret, secret_key, seeded_key
from dpmic_jax.dp import keyfile
from dpmic_jax.dp.keys import SecretKey, noise_key
from dpmic_jax.dp.refusals import KeyLostError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "key"


@pytest.fixture(params=[secret_key, lambda: seeded_key(7)], ids=["secret", "seeded"])
def key(request):
    return request.param()


def words(key):
    return np.asarray(jax.random.key_data(noise_key(key)))


def test_a_key_comes_back_as_it_was(path, key):
    keyfile.save(path, key)
    found = keyfile.load(path)
    np.testing.assert_array_equal(words(found), words(key))
    assert is_secret(found) == is_secret(key)
    assert isinstance(found, SecretKey) == isinstance(key, SecretKey)
    drawn = [jax.random.bits(noise_key(each), (4,)) for each in (key, found)]
    np.testing.assert_array_equal(*drawn)


def test_only_the_owner_may_read_it_whatever_the_mask(path, key):
    before = os.umask(0)
    try:
        keyfile.save(path, key)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_replaced(path, key):
    path.write_bytes(b"something")
    with pytest.raises(FileExistsError):
        keyfile.save(path, key)
    assert path.read_bytes() == b"something"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610])
def test_a_key_that_others_may_read_is_lost(path, key, mode):
    keyfile.save(path, key)
    path.chmod(mode)
    with pytest.raises(KeyLostError, match="may be read by others"):
        keyfile.load(path)


def test_there_is_no_key_without_a_file(path):
    with pytest.raises(KeyLostError, match="there is no key at"):
        keyfile.load(path)


def test_a_key_that_lost_anything_is_damaged(path, key):
    """Or a part of a secret key would pass for a seeded one, and zeros for a key."""
    keyfile.save(path, key)
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [whole + b"\0", bytes(len(whole)), bytes(8), bytes(32)]
    damaged += [
        whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
        for place in range(len(whole))
        for bit in (0, 7)
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(KeyLostError, match="is damaged") as caught:
            keyfile.load(path)
        assert not any(str(word) in str(caught.value) for word in words(key) if word > 10**6)
    path.write_bytes(whole)
    assert keyfile.same(keyfile.load(path), key)


def test_keys_are_the_same_if_their_words_are():
    one, other = secret_key(), secret_key()
    assert keyfile.same(one, SecretKey(one.key))
    assert not keyfile.same(one, other)
    assert keyfile.same(seeded_key(1), seeded_key(1))
    assert not keyfile.same(seeded_key(1), seeded_key(2))
    assert not keyfile.same(one, seeded_key(1))


def test_a_destroyed_key_was_overwritten_where_it_was(path, key):
    keyfile.save(path, key)
    size = path.stat().st_size
    with open(path, "rb") as still_open:
        keyfile.destroy(path)
        assert not path.exists()
        assert still_open.read() == bytes(size)
    keyfile.destroy(path)  # again does nothing
