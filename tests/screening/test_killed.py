"""Runs killed by SIGKILL at any point, and run again: the same bits, one charge, nothing exact.

Real processes with nothing replaced. Their tiles have one pair each, so that most of the time
files are being written.
"""

import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from killing import ASKS, EPSILON, LIMITS, POINTS, N, Run, table
from small import STATISTIC

from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.mechanisms.release import on_lattice
from dpmic_jax.mic.batch import score_pairs
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.screening.planning import plan
from dpmic_jax.screening.tiles import distance_points


def rows(result):
    return [(pair["x"], pair["y"], pair["mic"].hex()) for pair in result["pairs"]]


def exact_bytes(ask):
    """What must be in no file, exact values in many forms; and the point of every pair.

    Points of the lattice of values are short numbers, and another pair's noised value by chance:
    they are looked at by place.
    """
    planned = plan(
        names=tuple(LIMITS),
        n=N,
        ask=ASKS[ask],
        epsilon=EPSILON,
        delta=0.0,
        statistic=STATISTIC,
        relation=ReplaceOne(1),
        label="",
    )
    cut = planned.measured.cut(list(table().values()), list(LIMITS.values()))
    found = np.concatenate(list(score_pairs(cut, planned.pairs, exact_gains(N))), axis=2)
    values = integer_mic(cut.grids, found)
    inside = values[values < 2**VALUE_BITS]
    floats = inside * 2.0**-VALUE_BITS
    forbidden = {value.tobytes() for value in (*inside, *floats, *floats.astype("f4"))}
    forbidden |= {f"{value:.9f}".encode() for value in floats}
    for bits in (26, 28, 30):
        points = inside >> (VALUE_BITS - bits)
        forbidden |= {point.tobytes() for point in points.astype("<i4")}
    distances = found[-1].max(axis=0)
    far = distances / (2 * steps_of(N) * N)
    forbidden |= {value.tobytes() for value in (*distances, *far, *far.astype("f4"))}
    forbidden |= {f"{value:.9f}".encode() for value in far}
    assert min(map(len, forbidden)) == 4
    assert bytes(4) not in forbidden
    points = distance_points(planned.distances.lattice, found, N)
    return forbidden, np.stack([points, on_lattice(planned.values.lattice, values)], axis=1)


class Judge:
    """What must hold of a run of an ask, wherever it was killed."""

    def __init__(self, place, ask):
        self.expected = rows(Run(place, ask, name="whole").finished())
        self.forbidden, self.places = exact_bytes(ask)

    def check_killed(self, run):
        # Opening the ledger undoes what was not committed.
        assert run.charges <= 1
        assert run.charges or not run.tiles
        self._check_nothing_exact(run)

    def check_finished(self, run):
        assert rows(run.finished()) == self.expected
        assert run.charges == 1
        assert {entry.name for entry in run.out.iterdir()} == {"lock", "run.json", "result.json"}
        self._check_nothing_exact(run)

    def _check_nothing_exact(self, run):
        for path in filter(Path.is_file, run.out.rglob("*")):
            content = path.read_bytes()
            assert not any(value in content for value in self.forbidden), path.name
            if path.parent.name == "tiles" and path.name.isdecimal() and run.ask == "all":
                noised = np.frombuffer(content[32:], "<i4")
                exact = self.places[int(path.name)]
                assert noised.shape == exact.shape
                # The largest MICr are 1, and may be with noise that is clipped.
                assert np.all((noised != exact) | (exact == self.places.max(axis=0)))


def kill_at(run, name):
    """Let the run come to a point, at which it kills itself."""
    point = POINTS[name]
    code, said = run.ended(run.start(point))
    assert code == -signal.SIGKILL, f"{name}: {said}"
    if run.ledger:
        assert run.journal == (name == "it is being charged")
        assert (run.charges, run.tiles) == (point.charges, point.tiles), name


def kill_and_finish(place, ask, names):
    """Kill one run at these points, one after the other, then let it finish."""
    judge, run = Judge(place, ask), Run(place, ask, name="killed")
    for name in names:
        kill_at(run, name)
        judge.check_killed(run)
    judge.check_finished(run)


def test_a_run_killed_where_it_hurts_most_ends_as_if_it_had_not_been(tmp_path):
    hurts = ("it is described", "it is being charged", "it is charged", "a tile is being written")
    hurts += ("many tiles are there", "the result is there")
    kill_and_finish(tmp_path, "top", hurts)


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["all", "top"])
def test_a_run_killed_at_every_change_of_its_folder_ends_as_if_it_had_not_been(tmp_path, ask):
    kill_and_finish(tmp_path, ask, POINTS)


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["all", "top"])
def test_20_kills_at_any_moment_change_nothing(tmp_path, ask):
    """Some may come after the end of a run: then there is a new one, in another folder."""
    judge, dice = Judge(tmp_path, ask), random.Random(7)
    started = time.monotonic()
    judge.check_finished(Run(tmp_path, ask, name="timed"))
    life, run = time.monotonic() - started, Run(tmp_path, ask, name="killed at any moment")
    for number in range(20):
        process = run.start()
        process.join(dice.random() * life)
        process.kill()
        code, said = run.ended(process)
        assert code in (0, -signal.SIGKILL), said
        judge.check_killed(run)
        if code == 0 or number == 19:
            judge.check_finished(run)
            run = Run(tmp_path, ask, name=f"killed after {number}")


@pytest.mark.slow
def test_a_killed_run_of_a_secret_key_has_the_noise_of_the_key_that_was_kept(tmp_path):
    """One goes on where it was killed, and one from a copy that has its key and no tile."""
    run, copy, another = (
        Run(tmp_path, "top", key="secret", name=name, with_ledger=False)
        for name in ("secret", "copy", "another")
    )
    kill_at(run, "many tiles are there")
    assert run.tiles == 40
    shutil.copytree(run.out, copy.out)
    shutil.rmtree(copy.out / "tiles")
    (copy.out / "tiles").mkdir()
    found = run.finished()
    assert rows(found) == rows(copy.finished())
    assert found["privacy"]["key"] == "secret"
    assert not (run.out / "key").exists()
    assert rows(found) != rows(another.finished())
