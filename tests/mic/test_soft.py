import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.extend import core

import dpmic_jax
from dpmic_jax.mic.grids import all_sizes, plan, power, reshef
from dpmic_jax.mic.soft import memberships, soft_micr

UNIT = ((0.0, 1.0), (0.0, 1.0))
SHAPES = {
    "line": lambda x, noise: 0.8 * x + 0.2 * noise,
    "parabola": lambda x, noise: 0.9 * (2 * x - 1) ** 2 + 0.1 * noise,
    "sine": lambda x, noise: 0.5 + 0.4 * np.sin(12 * x) + 0.1 * noise,
    "nothing": lambda x, noise: noise,
}
every_shape = pytest.mark.parametrize("shape", SHAPES)
# One program for most tests: compiling it takes longer than they do.
RECORDS, GRIDS = 60, {"B": 12, "c": 3}


def x64():
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def pair(rng, n, shape="parabola"):
    x, noise = rng.random((2, n))
    return x, SHAPES[shape](x, noise)


def away_from_cuts(values, most):
    """Those values in units of the range that are not near any cut p/q with q <= most."""
    cuts = np.unique([p / q for q in range(2, most + 1) for p in range(1, q)])
    return np.abs(values[:, None] - cuts).min(axis=1) > 2e-5


def shares(values, cuts, temperature):
    before = [1 / (1 + np.exp((values - cut) / temperature)) for cut in cuts]
    edges = [np.zeros_like(values), *before, np.ones_like(values)]
    return np.array([high - low for low, high in itertools.pairwise(edges)])


def by_enumeration(x, y, B, c, temperature):
    """From the definition: every grid, every choice of its cuts, soft counts, float64."""
    best = 0.0
    for merged, fixed in ((x, y), (y, x)):
        for rows, master, most in oracles.plan(B, c):
            row = shares(fixed, np.arange(1, rows) / rows, temperature)
            for parts in range(2, most + 1):
                for cuts in itertools.combinations(np.arange(1, master) / master, parts - 1):
                    table = shares(merged, cuts, temperature) @ row.T
                    told = oracles.information(np.maximum(table, 0))
                    best = max(best, told / math.log2(parts))
    return best


@every_shape
@pytest.mark.parametrize("temperature", [0.005, 0.05])
def test_is_the_best_of_all_grids_with_soft_counts(rng, shape, temperature):
    B, c = 9, 2
    x, y = pair(rng, RECORDS, shape)
    expected = by_enumeration(x, y, B, c, temperature)
    found = soft_micr(np.float32(x), np.float32(y), bounds=UNIT, B=B, c=c, temperature=temperature)
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(expected, abs=2e-6)
    with x64():
        found = soft_micr(x, y, bounds=UNIT, B=B, c=c, temperature=temperature)
    assert found.dtype == np.float64
    assert float(found) == pytest.approx(expected, abs=1e-12)
    assert abs(by_enumeration(x, y, B, c, 1.5 * temperature) - expected) > 1e-4


@every_shape
@pytest.mark.parametrize(("n", "B", "c"), [(RECORDS, 12, 3), (500, 40, 2.5)])
def test_is_micr_as_the_temperature_goes_to_zero(rng, shape, n, B, c):
    # Some values lie outside the bounds, and belong to the outer parts.
    x = rng.normal(0.5, 0.4, 2 * n)
    y = 2 * SHAPES[shape](x, rng.random(2 * n)) - 0.5
    kept = away_from_cuts(x, 40) & away_from_cuts(y, 40)
    low, width = np.array([-3.0, 10.0]), np.array([8.0, 0.5])
    x, y = np.float32(low + width * np.stack([x, y], axis=1)[kept][:n]).T
    assert len(x) == n
    bounds = [(-3.0, 5.0), (10.0, 10.5)]
    expected = oracles.micr(x, y, bounds, B, c)
    cold = soft_micr(x, y, bounds=bounds, B=B, c=c, temperature=1e-7)
    assert float(cold) == pytest.approx(expected, abs=1e-5)
    assert float(cold) == pytest.approx(dpmic_jax.micr(x, y, bounds=bounds, B=B, c=c), abs=1e-5)
    if shape != "nothing":
        warm = soft_micr(x, y, bounds=bounds, B=B, c=c, temperature=0.03)
        assert float(warm) < expected - 1e-3


@jax.jit
def value_and_gradients(x, y, bounds, temperature):
    """With respect to all arguments."""

    def value(x, y, bounds, temperature):
        return soft_micr(x, y, bounds=bounds, **GRIDS, temperature=temperature)

    return jax.value_and_grad(value, (0, 1, 2, 3))(x, y, bounds, temperature)


def central_differences(function, at, step=1e-6):
    """Along each coordinate."""
    moves = [step * unit.reshape(at.shape) for unit in np.eye(at.size)]
    found = [float(function(at + move)) - float(function(at - move)) for move in moves]
    return np.reshape(found, at.shape) / (2 * step)


@every_shape
@pytest.mark.parametrize("temperature", [0.01, 0.1])
def test_gradients_are_central_differences(rng, shape, temperature):
    both = np.stack(pair(rng, RECORDS, shape))
    with x64():
        _, (of_x, of_y, _, _) = value_and_gradients(*both, np.array(UNIT), temperature)
        differences = central_differences(
            lambda both: value_and_gradients(*both, np.array(UNIT), temperature)[0], both
        )
    exact = np.stack([of_x, of_y])
    np.testing.assert_allclose(exact, differences, rtol=1e-4, atol=1e-8)
    # Both columns have a say, and the comparison is one of numbers well above its errors.
    assert np.all(np.abs(exact).max(axis=1) > 1e-3)
    assert not np.allclose(1.5 * exact, differences, rtol=1e-4, atol=1e-8)


def test_gradients_of_temperature_and_bounds_are_central_differences(rng):
    x, y = pair(rng, RECORDS)
    at = np.array([0.04, -0.1, 1.1, 0.05, 0.9])
    with x64():

        def both(at):
            return value_and_gradients(x, y, at[1:].reshape(2, 2), at[0])

        _, (_, _, of_bounds, of_temperature) = both(at)
        differences = central_differences(lambda at: both(at)[0], at)
    exact = np.append(np.asarray(of_temperature), np.asarray(of_bounds))
    np.testing.assert_allclose(exact, differences, rtol=1e-4)
    assert np.all(np.abs(differences) > 1e-3)


def test_gradients_reach_the_parameters_that_made_the_columns(rng):
    table = rng.normal(size=(RECORDS, 3))
    target = np.cos(2 * table[:, 0]) + 0.1 * table[:, 1]

    @jax.jit
    def both(parameters):
        def score(parameters):
            weights, shift, scale = parameters[:3], parameters[3], parameters[4]
            representation, scaled = jnp.tanh(table @ weights + shift), target * scale
            bounds = ((-1, 1), (-1.3, 1.3))
            return soft_micr(representation, scaled, bounds=bounds, **GRIDS, temperature=0.05)

        return jax.value_and_grad(score)(parameters)

    at = np.array([0.7, -0.4, 0.2, 0.1, 0.9])
    with x64():
        exact = both(at)[1]
        differences = central_differences(lambda at: both(at)[0], at)
    np.testing.assert_allclose(exact, differences, rtol=1e-4)
    assert np.all(np.abs(differences) > 1e-3)


@pytest.mark.slow
def test_second_derivatives_are_differences_of_gradients(rng):
    x, y = pair(rng, RECORDS)

    @jax.jit
    def slope(shift):
        def moved(shift):
            return soft_micr(x + shift, y, bounds=UNIT, **GRIDS, temperature=0.05)

        return jax.grad(moved)(shift)

    at = np.array(0.01)
    with x64():
        expected = float(central_differences(slope, at))
        assert float(jax.grad(slope)(at)) == pytest.approx(expected, rel=1e-4)
        _, forward = jax.jvp(slope, (at,), (np.ones(()),))
    assert float(forward) == pytest.approx(expected, rel=1e-4)


def test_gradients_in_32_bits_are_those_in_64(rng):
    x, y = np.float32(pair(rng, RECORDS, "sine"))
    bounds = np.array(UNIT)
    short = value_and_gradients(x, y, np.float32(bounds), np.float32(0.03))[1][0]
    with x64():
        long = value_and_gradients(np.float64(x), np.float64(y), bounds, 0.03)[1][0]
    assert (short.dtype, long.dtype) == (np.float32, np.float64)
    assert np.abs(short - np.asarray(long)).max() < 1e-3 * np.abs(long).max()


def short(x, y, bounds=UNIT, temperature=0.02):
    """In 32 bits."""
    return value_and_gradients(x, y, np.float32(bounds), np.float32(temperature))


def test_batches_by_vmap_are_a_loop(rng):
    x, y = np.float32([pair(rng, RECORDS, shape) for shape in SHAPES]).transpose(1, 0, 2)
    temperatures = np.float32([0.02, 0.03, 0.05, 0.1])
    bounds = np.float32([UNIT, UNIT, UNIT, ((-0.2, 1.1), (-0.1, 1.3))])
    values, gradients = jax.vmap(value_and_gradients)(x, y, bounds, temperatures)
    for row, one in enumerate(zip(x, y, bounds, temperatures, strict=True)):
        value, expected = value_and_gradients(*one)
        np.testing.assert_allclose(values[row], value, atol=2e-6)
        for found, wanted in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(found[row], wanted, rtol=1e-4, atol=1e-5)


def test_does_not_care_which_column_comes_first(rng):
    x, y = np.float32(pair(rng, RECORDS, "sine"))
    bounds = (0.0, 1.0), (-0.1, 1.2)
    value, (of_x, of_y, _, _) = short(x, y, bounds)
    swapped, (of_first, of_second, _, _) = short(y, x, bounds[::-1])
    assert float(value) == pytest.approx(float(swapped), abs=2e-6)
    np.testing.assert_allclose(of_x, of_second, atol=1e-5)
    np.testing.assert_allclose(of_y, of_first, atol=1e-5)


def test_does_not_care_about_the_order_of_records(rng):
    x, y = np.float32(pair(rng, RECORDS, "sine"))
    order = rng.permutation(RECORDS)
    value, (gradient, _, _, _) = short(x, y)
    other, (moved, _, _, _) = short(x[order], y[order])
    assert float(value) == pytest.approx(float(other), abs=2e-6)
    np.testing.assert_allclose(gradient[order], moved, atol=1e-5)


jitted = jax.jit(memberships)


@given(
    value=st.floats(-1e6, 1e6, width=32),
    cuts=st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4).map(sorted),
    temperature=st.floats(1e-6, 1e3),
)
def test_memberships_of_a_record_add_up_to_one(value, cuts, temperature):
    values, temperature = jnp.asarray([value], jnp.float32), jnp.asarray(temperature, jnp.float32)
    found = jitted(values, jnp.asarray(cuts, jnp.float32), temperature)
    assert found.shape == (1, len(cuts) + 1)
    assert float(found.sum()) == pytest.approx(1, abs=1e-6)
    assert float(found.min()) > -1e-6
    # A cut that is none adds an empty part.
    padded = jitted(values, jnp.asarray([*cuts, np.inf], jnp.float32), temperature)
    np.testing.assert_array_equal(padded[:, :-1], found)
    assert float(padded[0, -1]) == 0


def test_values_far_outside_belong_to_the_outer_parts():
    far = jnp.asarray([-50.0, 51.0])
    found = memberships(far, jnp.asarray([0.25, 0.5, 0.75]), jnp.asarray(0.1))
    np.testing.assert_array_equal(found, [[1, 0, 0, 0], [0, 0, 0, 1]])


def test_a_constant_column_says_nothing_and_has_no_gradient(rng):
    x, y = np.full(RECORDS, 0.3, np.float32), rng.random(RECORDS, np.float32)
    value, gradients = short(x, y, temperature=0.01)
    assert float(value) == pytest.approx(0, abs=1e-6)
    for gradient in gradients:
        assert np.all(np.abs(gradient) < 1e-3)


def test_gradients_are_finite_in_the_coldest_bins_and_far_outside(rng):
    x, y = np.float32(pair(rng, RECORDS, "sine"))
    x[:2] = 1e6, -1e6
    for gradient in short(x, y, temperature=1e-6)[1]:
        assert np.all(np.isfinite(gradient))


def test_nan_in_gives_nan_out(rng):
    x, y = np.float32(pair(rng, RECORDS, "sine"))
    x[3] = np.nan
    assert np.isnan(soft_micr(x, y, bounds=UNIT, **GRIDS, temperature=0.02))


def test_takes_integers_and_rules(rng):
    x = rng.integers(0, 10, RECORDS)
    rule = power(0.61)
    assert int(rule(RECORDS)) == GRIDS["B"]
    bounds = ((-0.5, 9.5), (-2, 2))
    value = soft_micr(x, np.sign(x - 4.5), bounds=bounds, B=rule, c=3, temperature=1e-4)
    assert value.dtype == jnp.float32
    share = (x > 4).mean()
    entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    assert float(value) == pytest.approx(entropy, abs=1e-5)


@pytest.mark.slow
def test_following_the_gradient_finds_a_better_projection(rng):
    table = jnp.asarray(rng.normal(size=(300, 2)), jnp.float32)
    target = jnp.cos(2 * table[:, 0])

    def score(angle):
        projection = table @ jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        return soft_micr(projection, target, bounds=((-3, 3), (-1, 1)), B=20, temperature=0.03)

    climb = jax.jit(lambda angle: angle + 0.05 * jnp.sign(jax.grad(score)(angle)))
    angle = jnp.asarray(0.8)
    before = float(score(angle))
    for _ in range(20):
        angle = climb(angle)
    assert abs(float(angle)) < 0.1
    assert float(score(angle)) > before + 0.3


def shapes_of(jaxpr):
    """Of everything that a program computes, inside its loops too."""
    for equation in jaxpr.eqns:
        yield from (one.aval.shape for one in equation.outvars)
        for inner in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda one: isinstance(one, core.Jaxpr | core.ClosedJaxpr),
        ):
            if isinstance(inner, core.ClosedJaxpr):
                yield from shapes_of(inner.jaxpr)
            elif isinstance(inner, core.Jaxpr):
                yield from shapes_of(inner)


def gradient_program(n, B, c):
    def score(x, y):
        return soft_micr(x, y, bounds=UNIT, B=B, c=c, temperature=0.02)

    column = jax.ShapeDtypeStruct((n,), jnp.float32)
    return jax.value_and_grad(score, (0, 1)), (column, column)


def test_no_array_of_a_gradient_has_records_times_columns_times_rows():
    n, B, c = 10_007, 60, 5
    grids = plan(B=B, c=c, master=reshef, sizes=all_sizes)
    longest = max(max(grid.master, grid.rows) for grid in grids)
    program, columns = gradient_program(n, B, c)
    with_records = [s for s in shapes_of(jax.make_jaxpr(program)(*columns).jaxpr) if n in s]
    assert len(with_records) > 50
    # The shares before every edge of an axis are the largest.
    assert n * (longest - 1) <= max(map(math.prod, with_records)) <= n * (longest + 1)


@pytest.mark.slow
def test_memory_grows_with_records_as_the_shares_of_one_grid_do():
    B, c = 100, 5
    grids = plan(B=B, c=c, master=reshef, sizes=all_sizes)
    shares = 4 * (max(grid.master for grid in grids) + max(grid.rows for grid in grids))
    products = 4 * max(grid.master * grid.rows for grid in grids)

    def bytes_for(n):
        program, columns = gradient_program(n, B, c)
        compiled = jax.jit(program).lower(*columns).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    a_record = (bytes_for(4000) - bytes_for(2000)) / 2000
    assert a_record < 4 * shares < products


GOOD = {"bounds": UNIT, "B": 12, "c": 3, "temperature": 0.1}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"B": 3}, ValueError, "B >= 4"),
        ({"B": "many"}, TypeError, "B to be a number"),
        ({"c": 0}, ValueError, "c > 0"),
        ({"c": -1.5}, ValueError, "c > 0"),
        ({"temperature": 0.0}, ValueError, "temperature > 0"),
        ({"temperature": -0.1}, ValueError, "temperature > 0"),
        ({"temperature": float("nan")}, ValueError, "temperature > 0"),
        ({"temperature": np.float32(0)}, ValueError, "temperature > 0"),
        ({"temperature": "warm"}, TypeError, "temperature to be a number"),
        ({"temperature": np.ones(2)}, ValueError, "one temperature"),
        ({"bounds": (0, 1)}, ValueError, "bounds of x to be"),
        ({"bounds": 1}, ValueError, r"\(\(x_low, x_high\), \(y_low, y_high\)\)"),
        ({"bounds": ((0, 1), (1, 1))}, ValueError, "low < high as bounds of y"),
        ({"bounds": ((2, 1), (0, 1))}, ValueError, "low < high as bounds of x"),
        ({"bounds": ((0, math.inf), (0, 1))}, ValueError, "finite numbers as bounds of x"),
        ({"bounds": jnp.zeros((2, 2))}, ValueError, "low < high as bounds of x"),
    ],
)
def test_bad_settings_are_refused(change, error, text):
    with pytest.raises(error, match=text):
        soft_micr(np.linspace(0, 1, 9), np.linspace(0, 1, 9), **{**GOOD, **change})


@pytest.mark.parametrize(
    ("x", "y", "error", "text"),
    [
        (np.ones(9), np.ones(8), ValueError, "same number of records"),
        (np.ones((2, 9)), np.ones(9), ValueError, "x to have one dimension, got 2.*vmap"),
        (np.ones(3), np.ones(3), ValueError, "at least 4 records"),
        (np.ones(9), np.ones(9) * 1j, TypeError, "numbers in y"),
    ],
)
def test_bad_columns_are_refused(x, y, error, text):
    with pytest.raises(error, match=text):
        soft_micr(x, y, **GOOD)


def test_the_global_64_bit_switch_is_never_set():
    assert not jax.config.read("jax_enable_x64")
