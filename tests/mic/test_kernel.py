"""The tile program as a whole: same bits however it is run, and it lowers for every device."""

import os
import re

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from dpmic_jax import MICe, MICr, pairwise
from dpmic_jax.mic import batch, coding, kernel, optimise, programs
from dpmic_jax.mic.grids import Bucket, Grid, ladder
from dpmic_jax.mic.xlogx import UNIT, exact_gains, fast_gains

GAINS = {"fast": fast_gains, "exact": exact_gains}
SLOW = pytest.mark.slow
PREPARE = {"direct": coding.direct_codes, "refined": coding.refined_codes}


@pytest.fixture(scope="module")
def cut():
    rng = np.random.default_rng(3)
    columns = [rng.random(150) for _ in range(5)] + [rng.integers(0, 4, 150)]
    return MICr(B=24, c=3).cut(columns, [(0, 1)] * 5 + [(0, 3)])


PAIRS = np.array([(i, j) for i in range(6) for j in range(i)])


def run(cut, gains, *, prepare="direct", size=4, devices=1):
    score = batch.Scorer(
        PREPARE[prepare](cut.masters, cut.rows),
        cut.grids,
        GAINS[gains](cut.n),
        n=cut.n,
        devices=jax.devices()[:devices],
        tile=size,
        pairs=len(PAIRS),
    )
    return np.concatenate(list(score(PAIRS)), axis=-1)


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize(
    ("size", "devices"),
    [(1, 1), (15, 1), pytest.param(7, 1, marks=SLOW), pytest.param(3, 2, marks=SLOW), (2, 4)],
)
def test_integers_do_not_depend_on_tiles_or_devices(cut, prepare, size, devices):
    np.testing.assert_array_equal(
        run(cut, "exact", prepare=prepare, size=size, devices=devices), run(cut, "exact")
    )


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize(
    ("size", "devices"), [(15, 1), pytest.param(1, 1, marks=SLOW), pytest.param(2, 4, marks=SLOW)]
)
def test_floats_stay_within_2e_6(cut, prepare, size, devices):
    found = run(cut, "fast", prepare=prepare, size=size, devices=devices)
    assert np.abs(found - run(cut, "exact")).max() / UNIT < 2e-6


def test_integers_do_not_depend_on_buckets(cut, monkeypatch):
    whole = run(cut, "exact")
    apart = tuple(Bucket((grid,)) for grid in cut.grids)
    for chosen in (apart, (Bucket(cut.grids),)):
        monkeypatch.setattr(batch, "buckets", lambda *_, chosen=chosen: chosen)
        np.testing.assert_array_equal(run(cut, "exact"), whole)


def programs_of(cut, gains, prepare, platform):
    """Every program that a table's scorer compiles for a platform, with its arguments."""
    kept, original = [], batch.layout_for

    def layout(grids, pairs, _, **room):
        return original(grids, pairs, platform, **room)._replace(triton=False)

    def keep(mesh, calls):
        kept.extend((program, mesh, arguments) for program, arguments in calls)
        return [None] * len(calls)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "compiled_together", keep)
        patch.setattr(batch, "layout_for", layout)
        batch.Scorer(
            PREPARE[prepare](cut.masters, cut.rows),
            cut.grids,
            GAINS[gains](cut.n),
            n=cut.n,
            devices=jax.devices()[:1],
            tile=8,
            pairs=len(PAIRS),
        )
    return kept


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("prepare", PREPARE)
def test_the_programs_that_run_also_lower_for(cut, platform, gains, prepare):
    kept = programs_of(cut, gains, prepare, platform)
    assert len(kept) > 1
    for program, mesh, arguments in kept:
        exported = jax.export.export(program.on(mesh), platforms=[platform])(*arguments)
        text = exported.mlir_module()
        assert exported.platforms == (platform,)
        assert "callback" not in text
        assert "custom_call" not in text


def test_tritons_kernels_are_all_that_a_gpu_is_given_besides(cut):
    """Of a plan's programs, lowered for a GPU as they run there."""
    layout = batch.layout_for(cut.grids, len(PAIRS), "cuda")
    mesh = Mesh(np.array(jax.devices()[:1]), ("pairs",))
    assert layout.triton
    for bucket in layout.buckets:
        program = kernel.optimising_program(
            bucket, layout.lanes_of(bucket), together=True, by_triton=True
        )
        counts = jax.ShapeDtypeStruct((layout.room(bucket), bucket.master, bucket.rows), np.int32)
        lowered = program.on(mesh).trace(counts, np.zeros(1, np.int32), exact_gains(cut.n))
        text = lowered.lower(lowering_platforms=("cuda",)).as_text()
        assert set(re.findall(r"custom_call @([\w$.]+)", text)) == {"__gpu$xla.gpu.triton"}
        assert "callback" not in text


def test_all_devices_give_the_same_statistics(cut):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 6))
    for devices in (1, 2, 4):
        found = pairwise(X, statistic=MICe(c=4), gains=exact_gains, devices=jax.devices()[:devices])
        np.testing.assert_array_equal(
            found.matrix, pairwise(X, statistic=MICe(c=4), gains=exact_gains).matrix
        )


def test_the_users_64_bit_switch_changes_nothing():
    X = np.random.default_rng(1).normal(size=(90, 3))
    narrow = pairwise(X, statistic=MICe(c=4), gains=exact_gains).matrix
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        wide = pairwise(X, statistic=MICe(c=4), gains=exact_gains).matrix
        near = pairwise(X, statistic=MICe(c=4), gains=fast_gains).matrix
    np.testing.assert_array_equal(narrow, wide)
    np.testing.assert_allclose(near, narrow, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10**6, 10**7])
def test_many_records_are_counted_exactly(n):
    """At n records a halved square has one bit, and an independent column almost none."""
    rng = np.random.default_rng(5)
    x = rng.random(n, dtype=np.float32)
    table = np.column_stack([x, (x > 0.5).astype(np.float32), rng.random(n, dtype=np.float32)])
    statistic = MICr(B=40, c=2, sizes=ladder(1.5))
    for gains in GAINS.values():
        found = pairwise(table, statistic=statistic, bounds=[(0, 1)] * 3, gains=gains).matrix
        half = np.count_nonzero(table[:, 1]) / n
        entropy = -(half * np.log2(half) + (1 - half) * np.log2(1 - half))
        assert found[0, 1] == pytest.approx(entropy, abs=3e-6)
        assert found[0, 2] < 1e-4


@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("grid", [Grid(12, 105, 7), Grid(32, 30, 2)])
def test_no_kernel_of_the_recursion_is_split_over_threads(gains, grid):
    """A tile has a thread, and other tiles the others: to change threads would take longer."""
    fewer = optimise.lanes_in_one_thread(grid.rows, grid.master, grid.parts, 64)
    assert not split_kernels(grid, GAINS[gains](1000), fewer)
    if (os.cpu_count() or 1) > 1:
        assert split_kernels(grid, GAINS[gains](1000), 4 * fewer)


def split_kernels(grid, gains, lanes):
    counts = jax.ShapeDtypeStruct((lanes, grid.master, grid.rows), np.int32)
    program = kernel.optimising_program(Bucket((grid,)), lanes)
    mesh = Mesh(np.array(jax.devices("cpu")[:1]), ("pairs",))
    compiled = programs.compiled(program, mesh, counts, np.zeros(1, np.int32), gains)
    return compiled.as_text().count("outer_dimension_partitions")
