"""The tile program as a whole: same bits however it is run, and it lowers for every device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpmic_jax import MICe, MICr, exact_gains, fast_gains, ladder, pairwise
from dpmic_jax.mic import sweep, tile
from dpmic_jax.mic.gains import UNIT
from dpmic_jax.mic.grids import Bucket, buckets

GAINS = {"fast": fast_gains, "exact": exact_gains}
SLOW = pytest.mark.slow
PREPARE = {"direct": tile.direct_codes, "refined": tile.refined_codes}


@pytest.fixture(scope="module")
def cut():
    rng = np.random.default_rng(3)
    columns = [rng.random(150) for _ in range(5)] + [rng.integers(0, 4, 150)]
    return MICr(B=24, c=3).cut(columns, [(0, 1)] * 5 + [(0, 3)])


PAIRS = np.array([(i, j) for i in range(6) for j in range(i)])


def run(cut, gains, *, prepare="direct", size=4, devices=1):
    found = sweep.information(
        PREPARE[prepare](cut.masters, cut.rows),
        cut.grids,
        PAIRS,
        GAINS[gains](cut.n),
        devices=jax.devices()[:devices],
        tile=size,
    )
    return np.concatenate(list(found), axis=-1)


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


@pytest.mark.slow
def test_integers_do_not_depend_on_buckets(cut):
    codes = tile.direct_codes(cut.masters, cut.rows)
    first, second = jnp.asarray(PAIRS.T, jnp.int32)
    layouts = [
        tile.Layout(buckets(cut.grids, 1), 64),
        tile.Layout(tuple(Bucket((grid,), 2) for grid in cut.grids), 8),
        tile.Layout((Bucket(cut.grids, 1),), 4096),
    ]
    one, *others = (
        np.asarray(
            jax.jit(tile.score, static_argnames="layout")(
                codes, first, second, exact_gains(cut.n), layout=layout
            )
        )
        for layout in layouts
    )
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("prepare", PREPARE)
def test_the_program_that_runs_also_lowers_for(cut, platform, gains, prepare):
    layout = tile.Layout(buckets(cut.grids, len(PAIRS)), sweep.MORE_LANES)
    program = sweep.compiled(layout, jax.sharding.Mesh(np.array(jax.devices()[:1]), ("pairs",)))
    codes = PREPARE[prepare](cut.masters, cut.rows)
    first, second = jnp.asarray(PAIRS.T, jnp.int32)
    exported = jax.export.export(program, platforms=[platform])(
        codes, first, second, GAINS[gains](cut.n)
    )
    text = exported.mlir_module()
    assert exported.platforms == (platform,)
    assert "callback" not in text
    assert "custom_call" not in text
    assert exported.out_avals[0].shape == (len(run(cut, "exact")), 2, len(PAIRS))


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
