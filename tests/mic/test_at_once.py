"""The programs for devices that take all lanes at once give the bits of those of a CPU."""

import itertools
import threading
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from like_a_gpu import like_a_gpu

from dpmic_jax.data.limits import NominalLimits
from dpmic_jax.mic import at_once, backends, batch, coding, streaming
from dpmic_jax.mic.grids import ladder
from dpmic_jax.mic.statistics import MICr, MICrAndDistance
from dpmic_jax.mic.xlogx import exact_gains

N = 150
PAIRS = np.array([(i, j) for i in range(6) for j in range(i)])
MICR = MICr(B=24, c=3, sizes=ladder(2))
# What is measured, and limits of the last two columns, which have the values 0 .. 3.
MEASURED = {
    "numbers": (MICrAndDistance(micr=MICR), (0, 3)),
    "nominal": (MICrAndDistance(micr=MICR, bins=4, tables=True), NominalLimits(4, False)),
}
PREPARE = {"direct": coding.direct_codes, "refined": coding.refined_codes}


def cuts(rows=N, kind="numbers"):
    rng, (measured, last) = np.random.default_rng(3), MEASURED[kind]
    columns = [rng.random(N) for _ in range(4)] + [rng.integers(0, 4, N) for _ in range(2)]
    limits = [(0, 1)] * 4 + [last] * 2
    for start in range(0, N, rows):
        yield measured.cut([column[start : start + rows] for column in columns], limits)


def scorer(kind="numbers", prepare="direct", tile=2**31, devices=1):
    (cut,) = cuts(kind=kind)
    codes = PREPARE[prepare](cut.masters, cut.rows)
    return batch.Scorer(
        codes,
        cut.grids,
        exact_gains(N),
        n=N,
        devices=jax.devices()[:devices],
        tile=tile,
        pairs=len(PAIRS),
        bins=cut.bins,
    )


def scored(**how):
    return np.concatenate(list(scorer(**how)(PAIRS)), axis=2)


@pytest.fixture(scope="module")
def expected():
    return {kind: scored(kind=kind) for kind in MEASURED}


@pytest.mark.parametrize(
    ("triton", "kind", "prepare", "tile", "devices"),
    [(False, "numbers", "direct", 15, 1), (True, "nominal", "refined", 4, 2)],
)
def test_a_gpus_programs_give_the_bits_of_a_cpu(
    expected, triton, kind, prepare, tile, devices, monkeypatch
):
    like_a_gpu(monkeypatch, triton=triton)
    monkeypatch.setattr(backends, "REFINED_BYTES", 2**16)  # some pairs at a time
    found = scored(kind=kind, prepare=prepare, tile=tile, devices=devices)
    np.testing.assert_array_equal(found, expected[kind])


# Counts of 150 records in words of their own, or in half a word.
@pytest.mark.parametrize(
    ("triton", "half"), [(False, 4), pytest.param(True, 16, marks=pytest.mark.slow)]
)
def test_streaming_on_a_gpu_gives_the_bits_of_a_cpu(expected, triton, half, monkeypatch):
    like_a_gpu(monkeypatch, triton=triton)
    monkeypatch.setattr(at_once, "_HALF", half)
    monkeypatch.setattr(backends, "MOST_CELLS", 2**14)  # of some pairs
    found = streaming.score_batches(lambda: cuts(70), PAIRS, exact_gains(N), n=N, rows=70, group=15)
    np.testing.assert_array_equal(np.concatenate(list(found), axis=2), expected["numbers"])


@pytest.fixture
def sizes(monkeypatch):
    """How many pairs were tried at a time, on a device that holds the counts of 7."""
    like_a_gpu(monkeypatch, triton=False)
    original, tried = batch.Optimiser.__call__, set()

    def limited(self, counts, *others):
        tried.add(self.layout.pairs)
        if self.layout.pairs > 7:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return original(self, counts, *others)

    monkeypatch.setattr(batch.Optimiser, "__call__", limited)
    return tried


def test_a_device_with_too_little_memory_scores_less_at_a_time(expected, sizes):
    np.testing.assert_array_equal(scored(), expected["numbers"])
    assert sizes == {7, 15}


def test_it_counts_fewer_pairs_in_one_pass_over_the_table(expected, sizes):
    found = streaming.score_batches(lambda: cuts(70), PAIRS, exact_gains(N), n=N, rows=70, group=14)
    np.testing.assert_array_equal(np.concatenate(list(found), axis=2), expected["numbers"])
    assert sizes == {7, 14}


def test_an_error_of_another_kind_is_not_tried_again(monkeypatch):
    like_a_gpu(monkeypatch, triton=False)

    def broken(self, *given):
        raise jax.errors.JaxRuntimeError("INTERNAL: a bug")

    monkeypatch.setattr(batch.Optimiser, "__call__", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        scored()


@pytest.mark.parametrize(("pairs", "tile"), [(15, 15), (8646, 8646), (10**6, 4096), (10**6, 10**6)])
def test_the_tile_is_the_largest_that_memory_holds(pairs, tile):
    (cut,) = cuts()
    rooms = [
        batch.layout_for(cut.grids, pairs, "gpu", tile=tile, memory=2**power).pairs
        for power in (24, 30, 36)
    ]
    assert rooms == sorted(rooms)
    assert max(rooms) <= 9 / 8 * tile
    assert rooms[-1] >= min(tile, 10**5)
    layout = batch.layout_for(cut.grids, pairs, "gpu", tile=tile, memory=2**24)
    assert 2 * 4 * layout.cells <= 2**24 or layout.pairs == 1


class Recorder:
    """numpy, noting what it brings from a device, where two tiles have to be under way."""

    def __init__(self):
        self.fetched, self._two = [], threading.Barrier(2)

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, array, *arguments):
        if isinstance(array, jax.Array):
            self.fetched.append(array.shape)
            self._two.wait(timeout=60)  # for another tile: one after the other would fail
        return np.asarray(array, *arguments)


def test_codes_go_to_the_device_once_and_a_tile_comes_back_as_one_array(monkeypatch):
    like_a_gpu(monkeypatch, triton=False)
    given, recorder, original = [], Recorder(), batch.compiled_together

    def recorded(mesh, calls):
        def one(program):
            def run(*arguments):
                leaves = jax.tree.leaves(arguments)
                given.extend(leaf for leaf in leaves if not isinstance(leaf, jax.Array))
                return program(*arguments)

            return run

        return list(map(one, original(mesh, calls)))

    monkeypatch.setattr(batch, "compiled_together", recorded)
    made = scorer(tile=4)
    monkeypatch.setattr(batch, "np", recorder)
    tiles = list(made(PAIRS))
    assert len(recorder.fetched) == len(tiles) == 4
    # From the host only which pairs a tile has, and how many.
    assert sum(np.size(leaf) for leaf in given if np.size(leaf) > 1) == 2 * 4 * len(tiles)
    assert all(np.size(leaf) <= 4 for leaf in given)
    assert made.workers == batch.WORKERS == 2  # so that one tile runs while one is fetched


def test_a_gpu_has_its_own_choices():
    """Direct counting has an atomic for each record and grid: fewer records make it too dear."""
    cpu, gpu = (backends.backend(platform) for platform in ("cpu", "gpu"))
    n, grids, cells = 1000, 20, 5000
    assert cpu.counts_directly(n, grids, cells)
    assert not gpu.counts_directly(n, grids, cells)
    assert gpu.counts_directly(n, grids, 10**6)
    assert not backends.backend("tpu").triton


@pytest.mark.parametrize(
    ("capability", "takes"), [("8.0", True), ("12.1", True), ("7.5", False), ("gfx90a", False)]
)
def test_older_gpus_and_others_run_xlas_program(capability, takes, monkeypatch):
    device = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(jax, "devices", lambda platform: [device])
    assert backends.backend("gpu").triton == takes


def test_more_pairs_get_tighter_buckets():
    (cut,) = cuts()
    for few, many in itertools.pairwise([1, 10**3, 10**6]):
        assert len(batch.layout_for(cut.grids, few, "gpu").buckets) <= len(
            batch.layout_for(cut.grids, many, "gpu").buckets
        )
