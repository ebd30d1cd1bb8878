import struct

import jax
import jax.numpy as jnp
import numpy as np
import optimised
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec

from dpmic_jax.dp.rng import chacha

SMALL = bytes(range(32))
WORD = st.integers(0, 2**32 - 1)


def reference(key, counter, nonce):
    """A block by RFC 8439, section 2.3, in Python's integers; key and nonce are bytes."""

    def quarter_round(a, b, c, d):
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) % 2**32
            mixed = state[z] ^ state[x]
            state[z] = (mixed << by | mixed >> (32 - by)) % 2**32

    words = struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
    state = list(words)
    for _ in range(10):
        quarter_round(0, 4, 8, 12)
        quarter_round(1, 5, 9, 13)
        quarter_round(2, 6, 10, 14)
        quarter_round(3, 7, 11, 15)
        quarter_round(0, 5, 10, 15)
        quarter_round(1, 6, 11, 12)
        quarter_round(2, 7, 8, 13)
        quarter_round(3, 4, 9, 14)
    return [(x + y) % 2**32 for x, y in zip(words, state, strict=True)]


def in_domain(domain, key, counter):
    return reference(key, counter, struct.pack("<3I", domain, 0, 0))


def keystream(key, counters, nonce):
    """The package's blocks as the RFC writes them: rows of 64 bytes."""
    words = jnp.asarray(np.frombuffer(key, "<u4"))
    nonce = tuple(np.frombuffer(nonce, "<u4"))
    blocks = optimised.jit(chacha.block)(words, jnp.asarray(counters, jnp.uint32), nonce)
    return np.stack(blocks, axis=-1).astype("<u4").view(np.uint8)


def typed(key):
    return jax.random.wrap_key_data(jnp.asarray(np.frombuffer(key, "<u4")), impl=chacha.CHACHA20)


def words_of(keys):
    return np.asarray(jax.random.key_data(keys))


def by_block(words):
    """Draws come word by word; rows of 16 come back."""
    return np.asarray(words).reshape(16, -1).T


@pytest.fixture
def chacha_key():
    return typed(SMALL)


# Key, nonce, counter and block: section 2.3.2, then appendix A.1, test vectors 1 to 5.
VECTORS = [
    (
        SMALL.hex(),
        "000000090000004a00000000",
        1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        "00" * 32,
        "00" * 12,
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "00" * 32,
        "00" * 12,
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "00" * 31 + "01",
        "00" * 12,
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        "00ff" + "00" * 30,
        "00" * 12,
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        "00" * 32,
        "00" * 11 + "02",
        0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]


@pytest.mark.parametrize(("key", "nonce", "counter", "block"), VECTORS)
def test_block_equals_the_test_vectors_of_the_rfc(key, nonce, counter, block):
    found = keystream(bytes.fromhex(key), [counter], bytes.fromhex(nonce))
    assert found.tobytes().hex() == block
    expected = reference(bytes.fromhex(key), counter, bytes.fromhex(nonce))
    assert struct.pack("<16I", *expected).hex() == block


def test_keystream_encrypts_as_in_the_rfc():
    """Section 2.4.2."""
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you "
        b"only one tip for the future, sunscreen would be it."
    )
    cipher = bytes.fromhex(
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d"
    )
    stream = keystream(SMALL, [1, 2], bytes.fromhex("000000000000004a00000000")).tobytes()
    assert bytes(a ^ b for a, b in zip(plain, stream, strict=False)) == cipher


@given(key=st.binary(min_size=32, max_size=32), nonce=st.binary(min_size=12, max_size=12), n=WORD)
def test_block_equals_the_reference_implementation(key, nonce, n):
    assert keystream(key, [n], nonce).tobytes() == struct.pack("<16I", *reference(key, n, nonce))


def test_bits_split_and_fold_in_are_blocks_of_their_own_domains(chacha_key):
    assert len({chacha.BITS, chacha.SPLIT, chacha.FOLD}) == 3
    drawn = by_block(jax.random.bits(chacha_key, (48,), jnp.uint32))
    new = words_of(jax.random.split(chacha_key, (3,)))
    folded = [words_of(jax.random.fold_in(chacha_key, i)) for i in range(3)]
    for i in range(3):
        assert drawn[i].tolist() == in_domain(chacha.BITS, SMALL, i)
        assert new[i].tolist() == in_domain(chacha.SPLIT, SMALL, i)[:8]
        assert folded[i].tolist() == in_domain(chacha.FOLD, SMALL, i)[:8]


def test_bits_split_keys_and_folded_keys_of_one_key_never_coincide(chacha_key):
    number = 2**12
    drawn = by_block(jax.random.bits(chacha_key, (16 * number,), jnp.uint32))
    counters = jnp.arange(number, dtype=jnp.uint32)
    folded = jax.vmap(jax.random.fold_in, (None, 0))(chacha_key, counters)
    new = jax.random.split(chacha_key, number)
    halves = np.concatenate([drawn[:, :8], drawn[:, 8:], words_of(new), words_of(folded)])
    assert len(np.unique(halves, axis=0)) == 4 * number


def test_a_long_draw_uses_every_counter_once(chacha_key):
    size = chacha.BLOCKS_A_PART
    drawn = np.asarray(jax.random.bits(chacha_key, (16 * (size + 3),), jnp.uint32))
    whole = jax.random.bits(chacha_key, (32 * size,), jnp.uint32)
    np.testing.assert_array_equal(drawn, whole[: len(drawn)])
    blocks = np.concatenate([by_block(part) for part in whole.reshape(2, -1)])
    for i in (0, 1, size - 1, size, size + 1, 2 * size - 1):
        assert blocks[i].tolist() == in_domain(chacha.BITS, SMALL, i)
    assert len(np.unique(blocks, axis=0)) == 2 * size


def test_a_draw_that_would_wrap_the_counter_is_refused():
    words = jax.ShapeDtypeStruct((8,), jnp.uint32)
    fits = jax.eval_shape(lambda key: chacha.random_bits(key, 32, (2**36,)), words)
    assert fits.shape == (2**36,)
    with pytest.raises(ValueError, match=r"more than its 2\^32: split the key"):
        jax.eval_shape(lambda key: chacha.random_bits(key, 32, (2**36 + 1,)), words)
    with pytest.raises(ValueError, match=r"more than its 2\^32"):
        jax.eval_shape(lambda key: chacha.random_bits(key, 64, (2**18, 2**18)), words)
    with pytest.raises(ValueError, match=r"at most 2\^32 keys"):
        jax.eval_shape(lambda key: chacha.split(key, (2**16, 2**16 + 1)), words)


@pytest.mark.parametrize("width", [8, 16, 32])
def test_narrow_draws_are_the_low_bits_of_words(chacha_key, width):
    drawn = jax.random.bits(chacha_key, (5, 3), f"uint{width}")
    assert drawn.dtype == f"uint{width}"
    words = np.asarray(jax.random.bits(chacha_key, (5, 3), jnp.uint32)).astype(np.uint64)
    np.testing.assert_array_equal(drawn, words % 2**width)


def test_a_wide_draw_is_two_words():
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        key = typed(SMALL)
        drawn = np.asarray(jax.random.bits(key, (2, 3), jnp.uint64))
        low, high = np.asarray(jax.random.bits(key, (2, 2, 3), jnp.uint32)).astype(np.uint64)
    assert drawn.dtype == np.uint64
    np.testing.assert_array_equal(drawn, low + 2**32 * high)


def test_other_widths_are_refused():
    with pytest.raises(TypeError, match="8, 16, 32 or 64 bits, got 24"):
        chacha.random_bits(jnp.zeros(8, jnp.uint32), 24, (1,))


@pytest.mark.parametrize("shape", [(), (0,), (17,), (3, 0), (2, 3, 7)])
def test_draws_and_keys_have_the_shape_asked_for(chacha_key, shape):
    assert jax.random.bits(chacha_key, shape, jnp.uint32).shape == shape
    assert jax.random.split(chacha_key, shape).shape == shape


@pytest.mark.parametrize("shape", [(13,), (4, 5)])
def test_batched_keys_draw_as_single_keys(chacha_key, shape):
    def draw(key):
        return jax.random.bits(key, shape, jnp.uint32)

    keys = jax.random.split(chacha_key, (3, 4))
    one_by_one = np.stack([[draw(key) for key in row] for row in keys])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(draw))(keys), one_by_one)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(draw), in_axes=1, out_axes=1)(keys), one_by_one)
    _, scanned = jax.lax.scan(lambda _, key: (None, draw(key)), None, keys[0])
    np.testing.assert_array_equal(scanned, one_by_one[0])


def test_batched_keys_split_and_fold_as_single_keys(chacha_key):
    keys = jax.random.split(chacha_key, 5)
    data = jnp.array([0, 1, 2**31, 2**32 - 1, 7], jnp.uint32)
    folded = words_of(jax.vmap(jax.random.fold_in)(keys, data))
    new = words_of(jax.vmap(lambda key: jax.random.split(key, (2, 3)))(keys))
    for i in range(5):
        raw = words_of(keys[i]).astype("<u4").tobytes()
        assert folded[i].tolist() == in_domain(chacha.FOLD, raw, int(data[i]))[:8]
        for j, key in enumerate(new[i].reshape(6, 8)):
            assert key.tolist() == in_domain(chacha.SPLIT, raw, j)[:8]


def test_compiled_bits_equal_uncompiled_bits(chacha_key):
    def draw(key):
        return jax.random.bits(key, (20,), jnp.uint32)

    compiled = optimised.jit(draw)(chacha_key)
    np.testing.assert_array_equal(draw(chacha_key), compiled)
    with jax.disable_jit():
        np.testing.assert_array_equal(draw(chacha_key), compiled)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_any_number_of_devices_draws_the_same_bits(chacha_key, devices):
    def draw(key, data):
        folded = jax.vmap(jax.random.fold_in, (None, 0))(key, data)
        return jax.vmap(lambda key: jax.random.bits(key, (20,), jnp.uint32))(folded)

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("pairs",))
    rows, whole = PartitionSpec("pairs"), PartitionSpec()
    data = jnp.arange(8, dtype=jnp.uint32)
    expected = draw(chacha_key, data)
    spread = jax.device_put(data, NamedSharding(mesh, rows))
    np.testing.assert_array_equal(jax.jit(draw)(chacha_key, spread), expected)
    local = jax.shard_map(draw, mesh=mesh, in_specs=(whole, rows), out_specs=rows)
    np.testing.assert_array_equal(jax.jit(local)(chacha_key, spread), expected)


def test_a_seed_is_refused():
    with pytest.raises(TypeError, match=r"use dpmic_jax\.secret_key\(\)"):
        jax.random.key(0, impl=chacha.CHACHA20)
    with pytest.raises(TypeError, match=r"use dpmic_jax\.secret_key\(\)"):
        jax.jit(lambda seed: jax.random.key(seed, impl=chacha.CHACHA20))(0)
    with pytest.raises(ValueError, match="dpmic_chacha20"):
        jax.random.key(0, impl="dpmic_chacha20")
