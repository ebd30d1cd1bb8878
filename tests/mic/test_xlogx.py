from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpmic_jax.mic.xlogx import UNIT, exact_gains, fast_gains, gains_for, xlog2x


def test_polynomial_is_x_log_x():
    x = np.concatenate([np.geomspace(1e-7, 1, 100_001), 2.0 ** -np.arange(25)]).astype(np.float32)
    found = np.asarray(jax.jit(xlog2x)(jnp.asarray(x)), float) / 2**23
    wide = x.astype(float)
    # Relative to x, since counts sum to 1: the polynomial, and rounding of the logarithm.
    allowed = wide * (6e-7 + 1.2e-7 * np.abs(np.log2(wide)))
    assert np.all(np.abs(found - wide * np.log2(wide)) <= allowed)
    assert float(xlog2x(jnp.zeros(()))) == 0


def test_powers_of_two_are_exact():
    x = np.ldexp(np.float32(1), -np.arange(24)).astype(np.float32)
    np.testing.assert_array_equal(
        xlog2x(jnp.asarray(x)), x * -np.arange(24, dtype=np.float32) * np.float32(2**23)
    )


@pytest.mark.parametrize("n", [4, 5, 23, 337, 1000])
def test_table_is_phi_rounded_to_the_nearest_unit(n):
    table = np.asarray(exact_gains(n).table)
    with localcontext(prec=50):
        for a in range(n + 1):
            exact = a * (Decimal(max(a, 1)).ln() / Decimal(2).ln()) * UNIT / n
            assert abs(int(table[a]) - exact) <= Decimal("0.5")


def test_float_gains_hold_to_the_largest_n():
    n = 2**24
    counts = jnp.array([0, 1, 2, n // 3, n - 1, n], jnp.int32)
    gains = fast_gains(n)
    found = np.asarray(gains.units(gains.phi(gains.prepare(counts))), float) / UNIT
    wide = np.maximum(np.asarray(counts, float), 1)
    # Scaling by 2^-24 takes 24 a / n off each term; gains are differences, so it cancels.
    expected = np.asarray(counts) / n * (np.log2(wide) - 24)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gains_refuse_what_they_cannot_hold():
    with pytest.raises(ValueError, match="exact_gains"):
        fast_gains(2**24 + 1)
    with pytest.raises(ValueError, match="32-bit"):
        exact_gains(2**31)
    assert type(gains_for(1000)).__name__ == "FastGains"


@pytest.mark.parametrize("make", [fast_gains, exact_gains])
def test_n_is_data_that_programs_do_not_depend_on(make):
    def program(n):
        leaves, tree = jax.tree.flatten(make(n))
        return tree, [(np.shape(leaf), leaf.dtype) for leaf in leaves]

    assert program(1001) == program(2000)
    for one, other in zip(jax.tree.leaves(make(1001)), jax.tree.leaves(make(2000)), strict=True):
        assert not np.array_equal(one, other)
