"""The counter of kernels in `benchmarks.gpu`, on modules whose kernels can be counted by hand."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl

from benchmarks.gpu import hlo, model, pallas

MODULE = """
HloModule hand_written

%body (pair: (s32[], f32[100])) -> (s32[], f32[100]) {
  %pair = (s32[], f32[100]{0}) parameter(0)
  %turn = s32[] get-tuple-element(%pair), index=0
  %some = f32[100]{0} get-tuple-element(%pair), index=1
  %twice = f32[100]{0} fusion(%some), kind=kLoop, calls=%doubled
  %next = s32[] add(%turn, %turn)
  ROOT %both = (s32[], f32[100]{0}) tuple(%next, %twice)
}

%condition (pair: (s32[], f32[100])) -> pred[] {
  %pair.1 = (s32[], f32[100]{0}) parameter(0)
  %turn.1 = s32[] get-tuple-element(%pair.1), index=0
  ROOT %less = pred[] compare(%turn.1, %turn.1), direction=LT
}

%doubled (one: f32[100]) -> f32[100] {
  %one = f32[100]{0} parameter(0)
  ROOT %sum = f32[100]{0} add(%one, %one)
}

%picked (table: f32[1000], place: s32[10,1]) -> f32[10] {
  %table = f32[1000]{0} parameter(0)
  %place = s32[10,1]{1,0} parameter(1)
  ROOT %found = f32[10]{0} gather(%table, %place), offset_dims={}, slice_sizes={1}
}

ENTRY %main (first: f32[100], table: f32[1000], place: s32[10,1]) -> f32[10] {
  %first = f32[100]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[100]{0}) tuple(%zero, %first)
  %loop = (s32[], f32[100]{0}) while(%start), condition=%condition, body=%body, KNOWN
  %table.1 = f32[1000]{0} parameter(1)
  %place.1 = s32[10,1]{1,0} parameter(2)
  ROOT %last = f32[10]{0} fusion(%table.1, %place.1), kind=kLoop, calls=%picked
}
"""
KNOWN = 'backend_config={"known_trip_count":{"n":"7"}}'


def test_loops_launch_as_often_as_they_turn():
    module = hlo.Module(MODULE.replace("KNOWN", KNOWN))
    doubled, add, picked = module.kernels()
    assert (doubled.launches, add.launches, picked.launches) == (7, 7, 1)
    assert (doubled.bytes, doubled.operations) == (800, 100)
    assert picked.bytes == 10 * hlo.SECTOR + 40 + 40  # of the table only what is gathered
    assert module.unknown == []


def test_a_loop_whose_length_is_data_is_told():
    module = hlo.Module(MODULE.replace(", KNOWN", ""))
    assert sum(kernel.launches for kernel in module.kernels()) == 4  # and its condition
    assert module.unknown == ["loop"]


def test_a_kernel_takes_the_longest_of_its_launch_bytes_and_operations():
    device = model.Device(bytes=800e9, operations=1e9, updates=1, lookups=1, memory=0)
    found = model.cost_of(MODULE.replace("KNOWN", KNOWN), [], device)
    # 100 operations take less than a launch at first, and more on a device of 1 M/s.
    assert found.seconds == pytest.approx(15 * model.LAUNCH)
    slow = model.cost_of(MODULE.replace("KNOWN", KNOWN), [], device._replace(operations=1e6))
    assert slow.seconds == pytest.approx(7 * 100e-6 + 8 * model.LAUNCH)


def test_what_a_pallas_kernel_does_is_counted_with_its_loops():
    def kernel(table, out):
        def add(i, total):
            return total + table[jnp.abs(total)]

        out[:] = lax.fori_loop(0, 5, add, jnp.zeros(8, jnp.int32))

    call = pl.pallas_call(
        kernel, grid=(3,), out_shape=jax.ShapeDtypeStruct((8,), jnp.int32), interpret=True
    )
    traced = jax.jit(call).trace(jnp.arange(8))
    (work,) = pallas.work_of(SimpleNamespace(jaxpr=traced.jaxpr))
    assert work.lookups == 3 * 5 * 8
    assert work.operations >= 3 * 5 * (8 + 8 + 8)  # absolute value, look-up and sum
    assert work.operations < 3 * 5 * 8 * 8
