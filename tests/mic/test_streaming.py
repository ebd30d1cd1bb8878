"""Row batches, groups of pairs and devices change nothing."""

import itertools

import jax
import numpy as np
import pytest

from dpmic_jax.mic import backends, batch, coding, streaming
from dpmic_jax.mic.grids import ladder
from dpmic_jax.mic.statistics import MICr, MICrAndDistance
from dpmic_jax.mic.xlogx import exact_gains

N, BOUNDS = 1003, [(0.0, 1.0), (-3.0, 3.0), (0, 9), (0.0, 2.0)]
PAIRS = np.array(list(itertools.combinations(range(4), 2)))
STATISTIC = MICr(B=30, c=5, sizes=ladder(1.25))


@pytest.fixture
def columns(rng):
    x = rng.random(N)
    return [x, rng.normal(size=N), rng.integers(0, 10, N), x**2 + rng.random(N)]


def cuts(columns, rows):
    for start in range(0, N, rows):
        yield STATISTIC.cut([values[start : start + rows] for values in columns], BOUNDS)


def whole(columns):
    found = batch.score_pairs(STATISTIC.cut(columns, BOUNDS), PAIRS, exact_gains(N))
    return np.concatenate(list(found), axis=2)


@pytest.mark.parametrize("rows", [1, 100, N])
def test_cuts_of_batches_join_to_the_cut_of_the_table(columns, rows):
    if rows == 1:
        columns = [values[:20] for values in columns]
        cut = STATISTIC.cut(columns, BOUNDS)
        parts = (STATISTIC.cut([v[i : i + 1] for v in columns], BOUNDS) for i in range(20))
        found = streaming.joined(parts, 20)
    else:
        cut = STATISTIC.cut(columns, BOUNDS)
        found = streaming.joined(cuts(columns, rows), N)
    for part, other in ((cut.masters, found.masters), (cut.rows, found.rows)):
        np.testing.assert_array_equal(part.fine, other.fine)
        np.testing.assert_array_equal(part.edges, other.edges)
    assert found.grids == cut.grids


def test_a_table_that_lost_records_is_refused(columns):
    with pytest.raises(ValueError, match="expected batches of 1004 records in all, got 1003"):
        streaming.joined(cuts(columns, 100), N + 1)


@pytest.mark.parametrize(("rows", "group", "devices"), [(100, 6, 1), (N, 4, 2), (500, 1, 4)])
def test_streaming_gives_the_same_bits_as_the_whole_table(columns, rows, group, devices):
    found = streaming.score_batches(
        lambda: cuts(columns, rows),
        PAIRS,
        exact_gains(N),
        rows=rows,
        group=group,
        devices=jax.devices()[:devices],
    )
    np.testing.assert_array_equal(np.concatenate(list(found), axis=2), whole(columns))


def test_memory_is_priced_as_it_is_taken(columns):
    cut = STATISTIC.cut(columns, BOUNDS)
    assert streaming.code_bytes(cut) * N == cut.masters.fine.nbytes + cut.rows.fine.nbytes
    counts = coding.refined_codes(cut.masters, cut.rows).empty
    assert streaming.count_bytes(cut) == counts.nbytes


def programs_of(columns):
    """Every program that a pass over a table compiles, with its arguments."""
    kept = []

    def keep(mesh, calls):
        kept.extend((program, mesh, arguments) for program, arguments in calls)
        return [None] * len(calls)

    cut = MICrAndDistance(micr=STATISTIC).cut(columns, BOUNDS)
    devices = np.array(jax.devices()[:1])
    mesh = jax.sharding.Mesh(devices, ("pairs",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "compiled_together", keep)
        patch.setitem(backends._BACKENDS, "cpu", backends.TPU)
        streaming._Pass(cut, N, PAIRS, len(PAIRS), exact_gains(N), N, mesh)
    return kept


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_the_programs_that_run_also_lower_for(columns, platform):
    kept = programs_of(columns)
    names = {program.function.__name__ for program, _, _ in kept}
    assert names == {"add_records", "count_refined", "optimise", "distances", "joined"}
    for program, mesh, arguments in kept:
        exported = jax.export.export(program.on(mesh), platforms=[platform])(*arguments)
        assert exported.platforms == (platform,)
        assert "callback" not in exported.mlir_module()
        assert "custom_call" not in exported.mlir_module()
