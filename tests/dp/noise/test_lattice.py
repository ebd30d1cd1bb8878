import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpmic_jax.dp.arithmetic.intervals import SCALE, exponential
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.dp.rng.keys import secret_key

fractions = st.fractions(0, 1, max_denominator=10**7)


@given(fractions, fractions, st.integers(1, 30))
def test_values_within_the_sensitivity_round_to_points_within_the_sensitivity(u, v, bits):
    sensitivity = max(1, math.ceil(abs(u - v) * 2**bits))
    lattice = Lattice(bits=bits, sensitivity=sensitivity)
    assert abs(lattice.floor(u) - lattice.floor(v)) <= sensitivity
    assert 0 <= u * lattice.top - lattice.floor(u) < 1


def test_0_and_1_are_lattice_points():
    lattice = Lattice(bits=30, sensitivity=1)
    assert [lattice.floor(Fraction(v)) for v in (-1, 0, 1, 2)] == [0, 0, 2**30, 2**30]
    assert lattice.values(jnp.array([0, 1, 2**30], jnp.int32)).tolist() == [0, 2.0**-30, 1]


@given(
    st.fractions(Fraction(1, 10**8), 10, max_denominator=10**9).filter(bool),
    st.floats(1e-3, 20),
)
@example(Fraction(1, 2**20), 1.0)
@example(Fraction(292, 10**4), 1.0)
@example(Fraction(2), 0.1)
def test_sensitivity_takes_1024_to_2047_steps_where_it_can(delta_up, epsilon):
    lattice = Lattice.for_sensitivity(delta_up, epsilon)
    assert lattice.sensitivity == math.ceil(delta_up * lattice.top)
    assert 10 <= lattice.bits <= 30
    if 2 >= delta_up >= Fraction(1, 2**20):
        assert 1024 <= lattice.sensitivity <= 2048
    mechanism = LatticeLaplace(epsilon=epsilon, lattice=lattice)
    assert mechanism.certificate().epsilon_realised <= Fraction(epsilon)
    assert mechanism.certificate().delta_numerical == 0
    assert mechanism.scale >= float(delta_up) / epsilon * (1 - 1e-9)
    assert mechanism.scale <= float(delta_up) / epsilon * (1 + 1 / (lattice.sensitivity - 1)) + 1e-9


def test_a_tiny_epsilon_takes_a_coarser_lattice():
    fine = Lattice.for_sensitivity(Fraction(1, 100), 1e-5)
    coarse = Lattice.for_sensitivity(Fraction(1, 100), 1e-6)
    assert 1024 <= fine.sensitivity < 2048
    assert 16 <= coarse.sensitivity < 1024
    for epsilon, lattice in ((1e-5, fine), (1e-6, coarse)):
        LatticeLaplace(epsilon=epsilon, lattice=lattice)
    with pytest.raises(ValueError, match="no lattice"):
        Lattice.for_sensitivity(Fraction(1, 100), 1e-8)


@pytest.mark.parametrize(
    "lattice", [Lattice(bits=3, sensitivity=2), Lattice(bits=5, sensitivity=1)]
)
@pytest.mark.parametrize("epsilon", [0.5, 45.0])
def test_every_pair_of_points_is_within_epsilon(lattice, epsilon):
    mechanism = LatticeLaplace(epsilon=epsilon, lattice=lattice)
    rows = [[mechanism.pmf(v, o) for o in range(lattice.top + 1)] for v in range(lattice.top + 1)]
    assert all(sum(row) == 1 for row in rows)
    at_most = Fraction(2**SCALE, exponential(Fraction(epsilon)).high)
    for v, w in itertools.permutations(range(lattice.top + 1), 2):
        if abs(v - w) <= lattice.sensitivity:
            assert all(p <= at_most * q for p, q in zip(rows[v], rows[w], strict=True))


# --- Gaussian -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.5, 2, 4, 8])
def test_gaussian_release_has_the_renyi_divergence_of_its_rho(alpha):
    """zCDP: a divergence of order alpha of at most alpha rho, for every pair of points."""
    lattice = Lattice(bits=5, sensitivity=3)
    mechanism = LatticeGauss(sigma=6.5, lattice=lattice)
    rho = float(mechanism.certificate().rho)
    points = range(lattice.top + 1)
    rows = np.array([[float(mechanism.pmf(v, o)) for o in points] for v in points])
    np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-12)
    worst = 0
    for v, w in itertools.permutations(points, 2):
        if abs(v - w) <= lattice.sensitivity:
            total = np.exp(alpha * np.log(rows[v]) + (1 - alpha) * np.log(rows[w])).sum()
            worst = max(worst, math.log(total) / (alpha - 1))
    assert alpha * rho * 2 / 3 <= worst <= alpha * rho + 1e-12


@given(st.floats(1e-4, 10), st.integers(1, 10**4))
def test_sigma_for_rho_costs_rho_and_no_more(rho, draws):
    lattice = Lattice.for_gauss(Fraction(3, 1000), math.sqrt(draws / (2 * rho)))
    assert 1024 <= lattice.sensitivity < 2048
    mechanism = LatticeGauss.for_rho(rho, lattice, draws=draws)
    cost = mechanism.certificate().rho * draws
    assert Fraction(rho) * Fraction(999, 1000) <= cost <= Fraction(rho)
    assert mechanism.certificate().total_variation <= Fraction(1, 10**15)
    ideal = 0.003 * math.sqrt(draws / (2 * rho))
    assert mechanism.scale == pytest.approx(ideal, rel=1e-3)


def test_gaussian_releases_stay_on_the_lattice_and_have_the_stated_deviation(key):
    lattice = Lattice.for_gauss(Fraction(1, 100), 10)
    mechanism = LatticeGauss(sigma=10 * lattice.sensitivity, lattice=lattice)
    points = jnp.full(20_000, lattice.top // 2, jnp.int32)
    out = mechanism.release(points, key=key)
    assert out.dtype == jnp.int32
    values = lattice.values(out)
    assert values.min() >= 0
    assert values.max() <= 1
    assert np.std(values) == pytest.approx(0.1, rel=0.02)
    ends = mechanism.release(jnp.array([0] * 999 + [lattice.top] * 999, jnp.int32), key=key)
    assert 400 <= np.sum(np.asarray(ends[:999]) == 0) <= 600
    assert 400 <= np.sum(np.asarray(ends[999:]) == lattice.top) <= 600


@pytest.mark.parametrize(
    "mechanism",
    [
        LatticeLaplace(epsilon=1.0, lattice=Lattice(bits=16, sensitivity=1500)),
        LatticeGauss(sigma=3000, lattice=Lattice(bits=16, sensitivity=1500)),
    ],
)
def test_releases_with_one_key_per_point_do_not_depend_on_the_batch(mechanism, key):
    keys, points = jax.random.split(key, 6), jnp.arange(0, 60_000, 10_000, dtype=jnp.int32)
    release = jax.vmap(lambda key, point: mechanism.release(point, key=key))
    together = release(keys, points)
    apart = jnp.concatenate([release(keys[:2], points[:2]), release(keys[2:], points[2:])])
    np.testing.assert_array_equal(together, apart)
    assert len(set((together - points).tolist())) == 6


def test_a_secret_key_is_accepted_and_an_rbg_key_refused():
    mechanism = LatticeLaplace(epsilon=1.0, lattice=Lattice(bits=16, sensitivity=1500))
    points = jnp.full(9, 2**15, jnp.int32)
    assert mechanism.release(points, key=secret_key()).shape == (9,)
    with pytest.raises(ValueError, match="rbg"):
        mechanism.release(points, key=jax.random.key(0, impl="rbg"))


def test_invalid_settings_are_refused():
    for bits in (0, 31):
        with pytest.raises(ValueError, match="bits"):
            Lattice(bits=bits, sensitivity=1)
    with pytest.raises(ValueError, match="sensitivity"):
        Lattice(bits=10, sensitivity=0)
    with pytest.raises(ValueError, match="delta_up"):
        Lattice.for_sensitivity(Fraction(0), 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        LatticeLaplace(epsilon=math.nan, lattice=Lattice(bits=10, sensitivity=1))
    with pytest.raises(ValueError, match="rho"):
        LatticeGauss.for_rho(-1.0, Lattice(bits=10, sensitivity=1))
    with pytest.raises(ValueError, match="no lattice"):
        Lattice.for_gauss(Fraction(1), 1e9)
