"""Tiles on Dask workers that are processes of their own, one of them killed half-way."""

import itertools
import json
import logging
import os
import pickle
import signal
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace

import dask
import distributed
import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from cli.commands import dpmic
from processes import HANGS
from small import BOUNDS, NAMES, STATISTIC, N, columns, same_bits, screened

from dpmic_jax import Budget, ReplaceOne, secret_key, seeded_key
from dpmic_jax.data.schema import schema_of
from dpmic_jax.data.source import open_source
from dpmic_jax.dp.rng import key_file
from dpmic_jax.dp.rng.errors import KeyLostError
from dpmic_jax.runs.checkpoint import Folder
from dpmic_jax.runs.encryption import DecryptionError
from dpmic_jax.screening import Above, AllPairs, Resources, TopK, create_ledger
from dpmic_jax.screening import distributed as on_a_worker
from dpmic_jax.screening.distributed import Cluster, WorkersLostError, one_tile, some_values
from dpmic_jax.screening.execution import LocalExecutor, ScreenTask
from dpmic_jax.screening.planning import plan
from dpmic_jax.screening.tiles import unpacked

# Sockets and pipes that Dask leaves to the garbage collector, where its workers are killed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WAITS = "distributed.comm.timeouts"
WIDE = {f"{name}{copy}": BOUNDS[name] for copy in (0, 1) for name in NAMES}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """91 pairs, so that there is a half-way."""
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    table = {f"{name}{copy}": v for copy in (0, 1) for name, v in columns(N, seed=copy).items()}
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Starts worker processes on this machine, of one thread each; busy ones are waited for."""
    folder = tmp_path_factory.mktemp("workers")

    @contextmanager
    def started(count):
        with distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        ) as cluster:
            yield cluster

    waits = dict.fromkeys(("connect", "tcp"), f"{HANGS} s")
    with pytest.MonkeyPatch.context() as patch, dask.config.set({WAITS: waits}):
        patch.setenv("XLA_FLAGS", "")
        yield started


@pytest.fixture(scope="module")
def cluster(workers):
    with workers(3) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        # Dask replaces one that was killed.
        client.wait_for_workers(3, timeout=HANGS)
        yield client


@pytest.fixture
def ledger(tmp_path):
    return create_ledger(tmp_path / "ledger", Budget(99.0), name="x", schema=schema_of(WIDE))


def on_workers(file, client, out, **changes):
    settings = {"bounds": WIDE, "resources": Resources(tile=1), **changes}
    return screened(file, out=out, client=client, **settings)


@pytest.fixture
def grave(client, tmp_path):
    """Where a worker leaves its name before it kills itself: the first with a tenth tile to do.

    One of three gets as many of 91. It has finished nine, and has others to do.
    """
    path = tmp_path / "grave"

    def ready(path, at=10):
        from dpmic_jax.screening.tiles import TileScorer

        real, begun = TileScorer.tiles, itertools.count(1)

        def tiles(*arguments):
            found = real(*arguments)
            if next(begun) == at:
                with suppress(FileExistsError), open(path, "x") as file:
                    file.write(str(os.getpid()))
                    file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
            return found

        TileScorer.tiles, TileScorer.real_tiles = tiles, real
        return os.getpid()

    def restored():
        from dpmic_jax.screening.tiles import TileScorer

        TileScorer.tiles = getattr(TileScorer, "real_tiles", TileScorer.tiles)

    yield path, set(client.run(ready, str(path)).values())
    client.run(restored)


def test_one_of_three_workers_killed_half_way_changes_no_bit(client, grave, file, ledger, tmp_path):
    out, (path, pids) = tmp_path / "run", grave
    found = on_workers(file, client, out, ask=TopK(4, selection_fraction=0.7), ledger=ledger)
    killed, left = int(path.read_text()), set(client.run(os.getpid).values())
    assert killed in pids
    assert killed not in left
    assert pids - {killed} <= left
    here = screened(file, bounds=WIDE, ask=TopK(4, selection_fraction=0.7))
    np.testing.assert_array_equal(found.mic, here.mic)
    np.testing.assert_array_equal(found.pairs, here.pairs)
    assert len(ledger.events) == 1
    assert sorted(entry.name for entry in out.iterdir()) == ["lock", "result.json", "run.json"]


def test_workers_draw_the_records_of_persons_that_this_process_draws(client, tmp_path):
    ids = np.random.default_rng(3).integers(0, 150, N)
    pyarrow.parquet.write_table(pa.table({**columns(), "id": ids}), tmp_path / "table.parquet")
    bounds = replace(schema_of(BOUNDS), person="id", records_per_person=2)
    shared = {"bounds": bounds, "ask": TopK(4, selection_fraction=0.7)}
    found = on_workers(tmp_path / "table.parquet", client, tmp_path / "run", **shared)
    assert same_bits(found, screened(tmp_path / "table.parquet", **shared))


@pytest.mark.slow
@pytest.mark.parametrize("ask", [AllPairs(), Above(0.3, 3, selection_fraction=0.7)])
def test_three_workers_give_the_bits_of_this_process(client, file, tmp_path, ask):
    found = on_workers(file, client, tmp_path / "run", ask=ask)
    assert same_bits(found, screened(file, bounds=WIDE, ask=ask))


@pytest.mark.slow
def test_one_worker_gives_the_bits_of_this_process(workers, file, tmp_path):
    with workers(1) as cluster, distributed.Client(cluster) as client:
        found = on_workers(file, client, tmp_path / "run", ask=TopK(4, selection_fraction=0.7))
    assert same_bits(found, screened(file, bounds=WIDE, ask=TopK(4, selection_fraction=0.7)))


def test_the_command_takes_the_address_of_a_cluster(client, cluster, file, tmp_path):
    bounds = tmp_path / "bounds.toml"
    bounds.write_text(schema_of(WIDE).to_toml())
    words = ("screen", file, "--bounds", bounds, "--epsilon", 20, "--ask", "top:4", "--seed", 1)
    words += ("-B", 24, "-c", 3, "--tile", 1, "--json")
    done = dpmic(*words, "--out", tmp_path / "run", "--dask", cluster.scheduler_address)
    assert done.exit_code == 0, done.output
    found = [(pair["x"], pair["y"], pair["mic"]) for pair in json.loads(done.stdout)["pairs"]]
    assert found == screened(file, bounds=WIDE, ask=TopK(4)).ranked()
    refused = dpmic(*words, "--dask", cluster.scheduler_address)
    assert refused.exit_code == 2
    assert "needs out=" in refused.stderr


def a_task(source, ask, *, size=7, label="run x"):
    planned = plan(
        names=source.names,
        n=N,
        ask=ask,
        epsilon=20.0,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label=label,
    )
    return ScreenTask(source, planned, Resources(), size)


@pytest.fixture
def parquet(tmp_path):
    """Writes small tables to files."""

    def written(name="table", **changed):
        path = tmp_path / f"{name}.parquet"
        pyarrow.parquet.write_table(pa.table({**columns(), **changed}), path)
        source = open_source(path, BOUNDS)
        source.validate()
        return source

    return written


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return Folder(path)


class Future:
    """Of a task that is done."""

    def __init__(self, answer):
        self._answer = answer

    def result(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def release(self):
        pass


class Client:
    """Notes what it is given, and gives one answer to everything."""

    def __init__(self, answer, monkeypatch):
        self.sent, self._answer = [], answer
        monkeypatch.setattr(distributed, "as_completed", iter)

    def submit(self, *call, **_):
        self.sent.append(call)
        return Future(self._answer)

    def cancel(self, futures):
        pass


def test_workers_are_sent_neither_the_key_nor_a_record(parquet, folder, monkeypatch):
    marker, key, client = 0.12345678901234567, secret_key(), Client(b"", monkeypatch)
    key_file.save(folder.path / "key", key)
    secret = np.asarray(jax.random.key_data(key.key)).tobytes()
    task = a_task(parquet(a=np.full(N, marker)), TopK(4, selection_fraction=0.7))
    crew = Cluster(task, folder, client)
    for number in range(3):
        with pytest.raises(DecryptionError):  # of the answer, which is nobody's tile
            list(crew.tiles([number], lambda _: None))
    crew.noised(task.plan.pairs[:4])
    assert len(client.sent) == 4
    for call in client.sent:
        content = pickle.dumps(call)
        assert not any(secret[start : start + 4] in content for start in range(0, 32, 4))
        assert np.float64(marker).tobytes() not in content
        assert repr(marker).encode() not in content
        assert len(content) < 10_000
        # The same search finds them where they are.
        assert secret in pickle.dumps((call, (folder.path / "key").read_bytes()))
        assert np.float64(marker).tobytes() in pickle.dumps((call, columns_of(task)))


def columns_of(task):
    return next(task.source.batches(N))


def test_a_tile_of_noisy_scores_leaves_a_worker_encrypted(parquet, folder):
    """The noisy scores of all pairs together are not private."""
    key_file.save(folder.path / "key", secret_key())
    task = a_task(parquet(), TopK(4, selection_fraction=0.7))
    content = one_tile(task, folder, 1)
    scores = unpacked(task.plan, 1, content, folder.key)
    assert len(scores) == 7
    assert not any(score.tobytes() in content for score in scores)
    # Sealed anew each time, so that equal tiles do not show; what is in them is the same.
    again = one_tile(task, folder, 1)
    assert again != content
    np.testing.assert_array_equal(unpacked(task.plan, 1, again, folder.key), scores)


def test_values_leave_a_worker_with_noise(parquet, folder):
    key_file.save(folder.path / "key", seeded_key(1))
    task = a_task(parquet(), AllPairs(), size=21)
    found = np.frombuffer(one_tile(task, folder, 0), "<i4").reshape(21, 2)
    ((_, other),) = LocalExecutor(task, seeded_key(2), ()).tiles([0], lambda _: None)
    assert ((other != found).sum(axis=0) >= 15).all()


def test_seeded_runs_of_two_tables_do_not_share_what_a_worker_holds(parquet, folder):
    """They have one label, and one number of records."""
    key_file.save(folder.path / "key", seeded_key(1))
    rng = np.random.default_rng(1)
    found = []
    for source in (parquet("one"), parquet("two", g=rng.random(N)), parquet("one")):
        task = a_task(source, AllPairs(), size=21)
        found.append(unpacked(task.plan, 0, one_tile(task, folder, 0), folder.key))
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0] != found[1]).any()
    assert len(on_a_worker._cached) == 1


def test_a_worker_without_the_key_raises(parquet, folder):
    task = a_task(parquet(), TopK(4, selection_fraction=0.7))
    for work in (lambda: one_tile(task, folder, 0), lambda: some_values(task, folder, [[0, 1]])):
        with pytest.raises(KeyLostError, match="there is no key"):
            work()


@pytest.mark.parametrize("error", [CancelledError(), distributed.KilledWorker("t", None, 3)])
def test_a_run_resumes_after_its_cluster_gave_up(error, parquet, folder, monkeypatch):
    task = a_task(parquet(), TopK(4, selection_fraction=0.7))
    crew = Cluster(task, folder, Client(error, monkeypatch))
    with pytest.raises(WorkersLostError, match="repeat the call to resume"):
        list(crew.tiles([0], lambda _: None))
    with pytest.raises(WorkersLostError, match="repeat the call to resume"):
        crew.noised(task.plan.pairs[:1])


@pytest.mark.parametrize(
    ("changes", "said"), [({"out": None}, "needs out="), ({"table": None}, "CSV or Parquet file")]
)
def test_a_run_that_workers_cannot_read_is_refused_before_the_charge(
    changes, said, file, ledger, tmp_path, monkeypatch
):
    settings = {"table": file, "bounds": WIDE, "ledger": ledger, "out": tmp_path / "run", **changes}
    if settings["table"] is None:
        settings |= {"table": columns(), "bounds": BOUNDS, "ledger": None}
    with pytest.raises(ValueError, match=said):
        screened(client=Client(b"", monkeypatch), **settings)
    assert ledger.events == ()
    assert not (tmp_path / "run").exists()
