"""A key on disk is its owner's, whole or refused, and gone when it is destroyed."""

import os

import jax
import numpy as np
import pytest

from dpmic_jax import secret_key, seeded_key
from dpmic_jax.dp.rng import key_file
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.dp.rng.keys import SecretKey, is_secret, noise_key


@pytest.fixture
def path(tmp_path):
    return tmp_path / "key"


@pytest.fixture(params=[secret_key, lambda: seeded_key(7)], ids=["secret", "seeded"])
def key(request):
    return request.param()


def words(key):
    return np.asarray(jax.random.key_data(noise_key(key)))


def test_a_saved_key_is_loaded_unchanged(path, key):
    key_file.save(path, key)
    found = key_file.load(path)
    np.testing.assert_array_equal(words(found), words(key))
    assert is_secret(found) == is_secret(key)
    assert isinstance(found, SecretKey) == isinstance(key, SecretKey)
    drawn = [jax.random.bits(noise_key(each), (4,)) for each in (key, found)]
    np.testing.assert_array_equal(*drawn)


def test_only_the_owner_may_read_a_key_file_whatever_the_umask(path, key):
    before = os.umask(0)
    try:
        key_file.save(path, key)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_not_replaced(path, key):
    path.write_bytes(b"something")
    with pytest.raises(FileExistsError):
        key_file.save(path, key)
    assert path.read_bytes() == b"something"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o610])
def test_a_key_that_others_may_read_is_refused(path, key, mode):
    key_file.save(path, key)
    path.chmod(mode)
    with pytest.raises(KeyLostError, match="may be read by others"):
        key_file.load(path)


def test_a_missing_key_file_is_refused(path):
    with pytest.raises(KeyLostError, match="there is no key at"):
        key_file.load(path)


def test_a_damaged_key_file_is_refused(path, key):
    """Or a part of a secret key would pass for a seeded one, and zeros for a key."""
    key_file.save(path, key)
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
            key_file.load(path)
        assert not any(str(word) in str(caught.value) for word in words(key) if word > 10**6)
    path.write_bytes(whole)
    assert key_file.same(key_file.load(path), key)


def test_keys_are_the_same_if_their_words_are():
    one, other = secret_key(), secret_key()
    assert key_file.same(one, SecretKey(one.key))
    assert not key_file.same(one, other)
    assert key_file.same(seeded_key(1), seeded_key(1))
    assert not key_file.same(seeded_key(1), seeded_key(2))
    assert not key_file.same(one, seeded_key(1))


def test_a_destroyed_key_is_overwritten_in_place(path, key):
    key_file.save(path, key)
    size = path.stat().st_size
    with open(path, "rb") as still_open:
        key_file.destroy(path)
        assert not path.exists()
        assert still_open.read() == bytes(size)
    key_file.destroy(path)  # again does nothing
