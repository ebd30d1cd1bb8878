import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from dpmic_jax.mic import programs
from dpmic_jax.mic.programs import EVERYWHERE, SPLIT, Program, compiled, compiled_together


def scaled(values, factor, *, power):
    return values**power * factor


def program(power=2):
    return Program(scaled, (("power", power),), (SPLIT, EVERYWHERE), SPLIT)


def mesh(devices=1):
    return Mesh(np.array(jax.devices()[:devices]), ("pairs",))


VALUES, FACTOR = np.arange(8, dtype=np.int32), np.int32(3)


def test_equal_shapes_share_a_program_whatever_their_values():
    found = compiled(program(), mesh(), VALUES, FACTOR)
    assert compiled(program(), mesh(), VALUES[::-1].copy(), np.int32(5)) is found
    # Placeholders, and arrays on devices, are as good.
    spots = jax.ShapeDtypeStruct((8,), np.int32), jnp.zeros((), jnp.int32)
    assert compiled(program(), mesh(), *spots) is found
    np.testing.assert_array_equal(found(VALUES, FACTOR), 3 * VALUES**2)


@pytest.mark.parametrize(
    "other",
    [
        lambda: compiled(program(3), mesh(), VALUES, FACTOR),
        lambda: compiled(program(), mesh(2), VALUES, FACTOR),
        lambda: compiled(program(), mesh(), VALUES[:4], FACTOR),
        lambda: compiled(program(), mesh(), VALUES.astype(np.int16), np.int16(3)),
    ],
    ids=["settings", "devices", "shape", "dtype"],
)
def test_programs_are_told_apart_by(other):
    assert other() is not compiled(program(), mesh(), VALUES, FACTOR)


def test_side_by_side_gives_the_programs_in_order():
    calls = [(program(power), (VALUES, FACTOR)) for power in (5, 1, 4)]
    found = compiled_together(mesh(), calls)
    assert found == [compiled(one, mesh(), *given) for one, given in calls]
    for run, power in zip(found, (5, 1, 4), strict=True):
        np.testing.assert_array_equal(run(VALUES, FACTOR), 3 * VALUES**power)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_any_number_of_devices_gives_the_same(devices):
    run = compiled(program(), mesh(devices), VALUES, FACTOR)
    np.testing.assert_array_equal(run(VALUES, FACTOR), 3 * VALUES**2)


def test_an_xla_that_does_not_know_our_options_compiles_without_them(monkeypatch):
    unknown = {"xla_of_another_version": True}
    monkeypatch.setitem(programs.OPTIONS, "cpu", unknown)
    lowered = program(6).on(mesh()).lower(VALUES, FACTOR)
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_of_another_version"):
        lowered.compile(compiler_options=unknown)
    run = compiled(program(6), mesh(), VALUES, FACTOR)
    np.testing.assert_array_equal(run(VALUES, FACTOR), 3 * VALUES**6)


def test_this_xla_knows_our_options():
    program(7).on(mesh()).lower(VALUES, FACTOR).compile(compiler_options=programs.OPTIONS["cpu"])
