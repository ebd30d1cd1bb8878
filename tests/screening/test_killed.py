"""Runs killed by SIGKILL at any point, and run again: the same bits, one charge, nothing exact.

Real processes with nothing replaced. Their tiles have one pair each, so that most of the time
files are being written.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from small import BOUNDS, STATISTIC, columns

from dpmic_jax import Budget, LedgerFile
from dpmic_jax.dp.events import ReplaceOne
from dpmic_jax.mechanisms.release import on_lattice
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.gains import exact_gains
from dpmic_jax.mic.sweep import score_pairs
from dpmic_jax.schema import schema_of
from dpmic_jax.screening import AllPairs, TopK, create_ledger
from dpmic_jax.screening.planning import plan

N, EPSILON = 400, 60.0
ASKS = {"all": AllPairs(), "top": TopK(5)}
PROGRAM = """
import sys
from small import BOUNDS, screened
from dpmic_jax import secret_key, seeded_key
from dpmic_jax.screening import AllPairs, Resources, TopK

table, out, ledger, ask, key = sys.argv[1:]
screened(
    table,
    ask={"all": AllPairs(), "top": TopK(5)}[ask],
    bounds={f"{name}{copy}": limits for copy in (0, 1) for name, limits in BOUNDS.items()},
    epsilon=60.0,
    key=secret_key() if key == "secret" else seeded_key(int(key)),
    ledger=ledger or None,
    out=out,
    resources=Resources(tile=1),
)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the table is, in a folder that also has the compiled programs of earlier runs."""
    folder = tmp_path_factory.mktemp("killed")
    table = {f"{name}{copy}": v for copy in (0, 1) for name, v in columns(N, seed=copy).items()}
    pyarrow.parquet.write_table(pa.table(table), folder / "table.parquet")
    return folder


class Run:
    """A run that may be started and killed as often as one likes."""

    def __init__(self, place, ask, *, key="1", name="run", with_ledger=True):
        self.place, self.ask, self.key = place, ask, key
        self.out = place / f"{ask} {name}"
        self.ledger = None
        if with_ledger:
            schema = schema_of({f"{n}{copy}": b for copy in (0, 1) for n, b in BOUNDS.items()})
            path = place / f"{ask} {name}.ledger"
            # Twice what is asked for: a second charge would go through, and be seen.
            self.ledger = create_ledger(path, Budget(2 * EPSILON), name="x", schema=schema)

    def start(self):
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "JAX_COMPILATION_CACHE_DIR": str(self.place / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "XLA_FLAGS": "",
        }
        ledger = str(self.ledger.path) if self.ledger else ""
        words = [str(self.place / "table.parquet"), str(self.out), ledger, self.ask, self.key]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def killed(self, when):
        """Start it, kill it when the time has come, and say whether it was still at work."""
        with self.start() as process:
            begin = time.monotonic()
            while process.poll() is None and not when(self, time.monotonic() - begin):
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
            error = process.stderr.read()
            assert process.wait() in (0, -signal.SIGKILL), error
            return process.returncode != 0

    def finished(self):
        """Let it run to its end; its result, as the folder keeps it."""
        with self.start() as process:
            error = process.stderr.read()
            assert process.wait() == 0, error
        return json.loads((self.out / "result.json").read_text())

    @property
    def charges(self):
        return len(LedgerFile.open(self.ledger.path).events)

    def there(self, name):
        return (self.out / name).exists()

    @property
    def tiles(self):
        folder = self.out / "tiles"
        return len(list(folder.glob("0*"))) if folder.exists() else 0


def rows(result):
    return [(pair["x"], pair["y"], pair["mic"].hex()) for pair in result["pairs"]]


def exact_bytes(ask):
    """What must be in no file, exact values in many forms; and the point of every pair.

    Points of the lattice of values are short numbers, and another pair's noised value by chance:
    they are looked at by place.
    """
    names = [f"{name}{copy}" for copy in (0, 1) for name in BOUNDS]
    planned = plan(
        names=tuple(names),
        n=N,
        ask=ASKS[ask],
        epsilon=EPSILON,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label="",
    )
    table = [values for copy in (0, 1) for values in columns(N, seed=copy).values()]
    cut = STATISTIC.cut(table, [BOUNDS[name[0]] for name in names])
    found = score_pairs(cut, planned.pairs, exact_gains(N))
    values = np.concatenate([integer_mic(STATISTIC.grids(N), tile) for tile in found])
    inside = values[values < 2**VALUE_BITS]
    floats = inside * 2.0**-VALUE_BITS
    forbidden = {value.tobytes() for value in (*inside, *floats, *floats.astype("f4"))}
    forbidden |= {f"{value:.9f}".encode() for value in floats}
    for bits in (26, 28, 30):
        points = inside >> (VALUE_BITS - bits)
        forbidden |= {point.tobytes() for point in points.astype("<i4")}
    assert min(map(len, forbidden)) == 4
    assert bytes(4) not in forbidden
    return forbidden, on_lattice(planned.values.lattice, values)


def check_nothing_exact(run, forbidden, places):
    for path in filter(Path.is_file, run.out.rglob("*")):
        content = path.read_bytes()
        assert not any(value in content for value in forbidden), path.name
        if path.parent.name == "tiles" and path.name.isdecimal() and run.ask == "all":
            assert len(content) == 32 + 4
            # The largest are 1, and may be with noise that is clipped.
            exact, noised = places[int(path.name)], int.from_bytes(content[32:], "little")
            assert noised != exact or exact == max(places)


def state(condition):
    return lambda run, seconds: condition(run)


STATES = {
    "its key is being written": state(lambda run: run.there("key")),
    "it is described": state(lambda run: run.there("run.json")),
    "it is being charged": state(lambda run: Path(f"{run.ledger.path}-journal").exists()),
    "a tile is there": state(lambda run: run.tiles >= 1),
    "many tiles are there": state(lambda run: run.tiles >= 40),
    "most tiles are there": state(lambda run: run.tiles >= 80),
    "the result is there": state(lambda run: run.there("result.json")),
}


def kill_and_finish(place, ask, moments, kills):
    """Kill a run at so many moments, then let it finish, and check all that must hold.

    A run that is done before its moment comes is followed by a new one, in another folder.
    """
    expected = rows(Run(place, ask, name="whole").finished())
    forbidden, places = exact_bytes(ask)
    run, runs = Run(place, ask, name="killed"), 1
    while kills:
        if run.killed(next(moments)):
            kills -= 1
            assert run.charges <= 1
            assert run.charges or not run.tiles
            check_nothing_exact(run, forbidden, places)
            if kills:
                continue
        assert rows(run.finished()) == expected
        assert run.charges == 1
        assert {entry.name for entry in run.out.iterdir()} == {"lock", "run.json", "result.json"}
        check_nothing_exact(run, forbidden, places)
        run, runs = Run(place, ask, name=f"killed {runs}"), runs + 1


def test_a_run_killed_where_it_hurts_most_ends_as_if_it_had_not_been(place):
    hurts = ["it is described", "it is being charged", "a tile is there", "many tiles are there"]
    kill_and_finish(place, "top", iter([STATES[name] for name in hurts]), kills=4)


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["all", "top"])
def test_20_kills_at_random_points_and_one_at_every_change_of_the_folder(place, ask):
    Run(place, ask, name="first").finished()  # compiles
    started = time.monotonic()
    Run(place, ask, name="timed").finished()
    life, dice = time.monotonic() - started, random.Random(7)

    def moments():
        yield from STATES.values()
        while True:
            at = dice.random() * life
            yield lambda run, seconds, at=at: seconds >= at

    kill_and_finish(place, ask, moments(), kills=20 + len(STATES))


@pytest.mark.slow
def test_a_killed_run_of_a_secret_key_has_the_noise_of_the_key_that_was_kept(place):
    """One goes on where it was killed, and one from a copy that has its key and no tile."""
    run, copy, another = (
        Run(place, "top", key="secret", name=name, with_ledger=False)
        for name in ("secret", "copy", "another")
    )
    assert run.killed(STATES["many tiles are there"])
    shutil.copytree(run.out, copy.out)
    shutil.rmtree(copy.out / "tiles")
    (copy.out / "tiles").mkdir()
    found = run.finished()
    assert rows(found) == rows(copy.finished())
    assert found["privacy"]["key"] == "secret"
    assert not run.there("key")
    assert rows(found) != rows(another.finished())
