import copy
import hashlib
import os
import pickle
from dataclasses import FrozenInstanceError, dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.extend.random import define_prng_impl
from jax.sharding import PartitionSpec

from dpmic_jax.dp.rng import keys
from dpmic_jax.dp.rng.chacha import CHACHA20


@dataclass(frozen=True)
class Told:
    """An event, as far as keys know."""

    digest: bytes


FIRST, SECOND = (Told(hashlib.sha256(name).digest()) for name in (b"first", b"second"))


def words_of(key):
    return np.asarray(jax.random.key_data(key)).tolist()


def chacha_key(number=0):
    return keys.wrap(jnp.arange(8, dtype=jnp.uint32) + jnp.uint32(number))


def either():
    return [keys.seeded_key(3), chacha_key()]


def test_a_secret_key_is_256_bits_of_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda number: bytes(range(number)))
    assert np.array(words_of(keys.secret_key().key), np.uint32).tobytes() == bytes(range(32))


def test_secret_keys_differ():
    assert len({tuple(words_of(keys.secret_key().key)) for _ in range(100)}) == 100


def test_no_text_shows_a_secret_key():
    secret = keys.secret_key()
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr({"key": [secret]})]
    for refused in (
        lambda: pickle.dumps(secret),
        lambda: jax.jit(lambda x: x)(secret),
        lambda: int(secret),
        lambda: format(secret, "x"),
        lambda: keys.event_key(secret, Told(b"short")),
        lambda: keys.SecretKey(secret),
        lambda: setattr(secret, "key", 0),
    ):
        with pytest.raises((TypeError, ValueError, FrozenInstanceError)) as caught:
            refused()
        shown.append(str(caught.value))
    for word in words_of(secret.key):
        for text in shown:
            assert str(word) not in text
            assert f"{word:x}" not in text.lower()
    # The search would find it: this is what JAX shows of a key.
    assert all(str(word) in repr(secret.key) for word in words_of(secret.key))


def test_a_secret_key_is_equal_to_itself_only():
    secret = keys.secret_key()
    same_bits = keys.SecretKey(secret.key)
    assert secret == secret
    assert secret != same_bits
    assert len({secret, same_bits}) == 2


def test_a_secret_key_is_not_pickled():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="add the noise in the process that has the key"):
            pickle.dumps(keys.secret_key(), protocol)


def test_a_copy_of_a_secret_key_is_itself():
    secret = keys.secret_key()
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


@pytest.mark.parametrize("make", [lambda: keys.seeded_key(0), lambda: chacha_key()[None]])
def test_a_secret_key_holds_one_chacha_key(make):
    with pytest.raises(ValueError, match=r"one ChaCha20 key: use dpmic_jax\.secret_key\(\)"):
        keys.SecretKey(make())


def test_only_chacha_keys_are_secret():
    secret = keys.secret_key()
    assert keys.is_secret(secret)
    assert keys.is_secret(secret.key)
    assert keys.is_secret(jax.random.split(secret.key, 3))
    assert keys.is_secret(keys.pair_key(keys.event_key(secret, FIRST), 0, 1))
    for generator in ("threefry2x32", "rbg", "unsafe_rbg"):
        assert not keys.is_secret(jax.random.key(0, impl=generator))
    assert not keys.is_secret(keys.event_key(keys.seeded_key(0), FIRST))


def test_traced_keys_are_recognised_as_secret_or_not():
    told = []

    def watch(key):
        told.append(keys.is_secret(key))
        return jax.random.bits(keys.noise_key(key), (), jnp.uint32)

    jax.jit(watch)(chacha_key())
    jax.jit(watch)(keys.seeded_key(0))
    jax.vmap(watch)(jax.random.split(chacha_key(), 2))
    jax.vmap(watch)(jax.random.split(keys.seeded_key(0), 2))
    assert told == [True, False, True, False]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: 5, r"got int: use dpmic_jax\.secret_key\(\)"),
        (lambda: None, "got NoneType"),
        (lambda: b"0" * 32, "got bytes"),
        (lambda: jax.random.PRNGKey(5), r"use jax\.random\.key\(seed\)"),
        (lambda: np.zeros(8, np.uint32), r"jax\.random\.wrap_key_data"),
    ],
)
def test_values_that_are_not_keys_are_refused(make, text):
    for ask in (keys.noise_key, keys.is_secret, lambda key: keys.event_key(key, FIRST)):
        with pytest.raises(TypeError, match=text):
            ask(make())


def test_a_valid_key_is_unwrapped():
    secret = keys.secret_key()
    assert keys.noise_key(secret) is secret.key
    for key in either():
        assert keys.noise_key(key) is key


def test_an_array_of_keys_is_refused():
    for key in either():
        with pytest.raises(ValueError, match=r"shape \(2,\).*use jax\.vmap"):
            keys.noise_key(jax.random.split(key))


@pytest.mark.parametrize("generator", ["rbg", "unsafe_rbg"])
def test_rbg_keys_are_refused_for_noise(generator):
    with pytest.raises(ValueError, match=f"^{generator} keys are refused.*all keys but the first"):
        keys.noise_key(jax.random.key(0, impl=generator))


def test_unknown_generators_are_refused():
    own = define_prng_impl(
        key_shape=(1,),
        seed=lambda seed: jnp.zeros(1, jnp.uint32),
        split=lambda key, shape: jnp.zeros((*shape, 1), jnp.uint32),
        random_bits=lambda key, width, shape: jnp.zeros(shape, jnp.uint32),
        fold_in=lambda key, data: key,
        name="constant",
    )
    with pytest.raises(ValueError, match="expected a ChaCha20 or threefry2x32 key"):
        keys.noise_key(jax.random.key(0, impl=own))


def follows_every_key(generator):
    """Whether the draws of a batch change with the keys after the first."""

    def draw(last):
        batch = jnp.stack([data[0], data[1], data[last]])
        batch = jax.random.wrap_key_data(batch, impl=generator)
        return jax.vmap(lambda key: jax.random.bits(key, (4,), jnp.uint32))(batch)

    size = {"threefry2x32": 2, "rbg": 4, "unsafe_rbg": 4, CHACHA20: 8}[generator]
    data = jnp.asarray(np.random.default_rng(1).integers(0, 2**32, (4, size), dtype=np.uint32))
    return not np.array_equal(draw(2), draw(3))


def test_rbg_ignores_all_keys_of_a_batch_but_the_first():
    """The reason for the refusal; the others do not."""
    assert not follows_every_key("rbg")
    assert not follows_every_key("unsafe_rbg")
    assert follows_every_key("threefry2x32")
    assert follows_every_key(CHACHA20)


def test_event_key_is_the_key_folded_with_the_words_of_the_digest():
    for key in either():
        folded = key
        for word in np.frombuffer(FIRST.digest, "<u4"):
            folded = jax.random.fold_in(folded, word)
        assert words_of(keys.event_key(key, FIRST)) == words_of(folded)
        assert words_of(jax.jit(lambda key: keys.event_key(key, FIRST))(key)) == words_of(folded)


def test_every_byte_of_the_digest_counts():
    changed = [
        Told(FIRST.digest[:i] + bytes([FIRST.digest[i] ^ 1]) + FIRST.digest[i + 1 :])
        for i in range(32)
    ]
    for key in either():
        found = {tuple(words_of(keys.event_key(key, event))) for event in (FIRST, SECOND, *changed)}
        assert len(found) == 34


@pytest.mark.parametrize("digest", [b"", b"0" * 31, b"0" * 33, "0" * 32, bytearray(32)])
def test_a_digest_has_32_bytes(digest):
    with pytest.raises(ValueError, match="32 bytes"):
        keys.event_key(chacha_key(), Told(digest))


def test_pair_key_is_the_key_folded_with_i_then_j():
    for key in either():
        expected = words_of(jax.random.fold_in(jax.random.fold_in(key, 4), 2**32 - 1))
        i, j = np.uint32(4), np.uint32(2**32 - 1)
        asked = [(4, 2**32 - 1), (i, j), (jnp.int32(4), jnp.asarray(j)), (i, jnp.int32(-1))]
        for pair in asked:
            assert words_of(keys.pair_key(key, *pair)) == expected


def test_every_pair_of_every_event_has_its_own_noise():
    i, j = (axis.ravel() for axis in jnp.indices((40, 40), dtype=jnp.int32))
    pairs = jax.jit(jax.vmap(keys.pair_key, (None, 0, 0)))
    for key in either():
        found = [pairs(keys.event_key(key, event), i, j) for event in (FIRST, SECOND)]
        draw = jax.jit(jax.vmap(lambda key: jax.random.bits(key, (4,), jnp.uint32)))
        noise = np.concatenate([draw(batch) for batch in found])
        assert len(np.unique(noise, axis=0)) == 2 * 40 * 40
        one = keys.pair_key(keys.event_key(key, SECOND), 3, 17)
        assert words_of(one) == words_of(found[1][3 * 40 + 17])


def test_each_device_makes_the_keys_of_its_own_pairs():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("pairs",))
    rows, whole = PartitionSpec("pairs"), PartitionSpec()
    i, j = jnp.arange(8, dtype=jnp.uint32), jnp.arange(8, 16, dtype=jnp.uint32)

    def words(key, i, j):
        return jax.random.key_data(jax.vmap(keys.pair_key, (None, 0, 0))(key, i, j))

    local = jax.shard_map(words, mesh=mesh, in_specs=(whole, rows, rows), out_specs=rows)
    for key in either():
        np.testing.assert_array_equal(jax.jit(local)(key, i, j), words(key, i, j))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (-1, ValueError, r"0 <= {} < 2\^32"),
        (2**32, ValueError, r"0 <= {} < 2\^32"),
        (np.int64(2**40), ValueError, r"0 <= {} < 2\^32"),
        (True, TypeError, "expected {} to be an integer, got bool"),
        (1.0, TypeError, "integer"),
        (jnp.float32(1), TypeError, "expected {} to be one uint32 or int32, got float32"),
        (jnp.arange(3), TypeError, r"expected {} .* of shape \(3,\): use jax.vmap"),
    ],
)
def test_column_numbers_that_would_be_truncated_are_refused(place, index, error, text):
    pair = [0, 0]
    pair[place] = index
    with pytest.raises(error, match=text.format("ij"[place])):
        keys.pair_key(chacha_key(), *pair)


def test_a_seed_gives_the_key_that_jax_gives():
    for seed in (0, 5, np.int64(7), 2**31, 2**32 - 1):
        words = words_of(keys.seeded_key(seed))
        assert words == [0, int(seed)]
        assert words == words_of(jax.random.key(int(seed), impl="threefry2x32"))


def test_jax_takes_seeds_modulo_two_to_the_32_and_we_refuse_them():
    assert words_of(jax.random.key(2**40 + 5)) == words_of(jax.random.key(5))
    for seed in (2**40 + 5, 2**32, -1):
        with pytest.raises(ValueError, match=r"0 <= seed < 2\^32.*modulo 2\^32") as caught:
            keys.seeded_key(seed)
        assert str(seed) not in str(caught.value)
    for seed in (1.0, "1", True, None):
        with pytest.raises(TypeError, match="integer"):
            keys.seeded_key(seed)


def test_words_make_the_key_they_came_from():
    for key in (*either(), jax.random.split(chacha_key(), (2, 3))):
        again = keys.wrap(jax.random.key_data(key))
        assert again.dtype == key.dtype
        assert words_of(again) == words_of(key)
    for shape in ((), (4,), (8, 3)):
        with pytest.raises(ValueError, match="expected 8 or 2 words a key"):
            keys.wrap(jnp.zeros(shape, jnp.uint32))


def test_programs_that_draw_from_key_data_are_exported():
    def noise(key_data, i, j):
        pair = keys.pair_key(keys.wrap(key_data), i, j)
        return jax.random.bits(pair, (20,), jnp.uint32)

    key = chacha_key()
    given = (jax.random.key_data(key), jnp.uint32(2), jnp.uint32(9))
    program = export.export(jax.jit(noise), platforms=["cpu", "cuda", "tpu"])(*given)
    assert program.platforms == ("cpu", "cuda", "tpu")
    drawn = program.call(*given)
    expected = jax.random.bits(keys.pair_key(key, 2, 9), (20,), jnp.uint32)
    np.testing.assert_array_equal(drawn, expected)
