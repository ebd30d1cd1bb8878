"""Real processes, killed and racing. One driver without JAX forks them: that is quick."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dpmic_jax

DRIVER = r'''
import json, os, random, select, signal, sys, time, traceback, types
from fractions import Fraction

# The package's own __init__ would import JAX, whose threads do not like to be forked.
package = types.ModuleType("dpmic_jax")
package.__path__ = [sys.argv[1]]
sys.modules["dpmic_jax"] = package

from dpmic_jax.dp.events import Event, PureDP, ReplaceOne
from dpmic_jax.dp.ledger import Budget, BudgetExceeded, LedgerFile

assert "jax" not in sys.modules
folder, task, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
EVENT = Event(mechanism="m", guarantee=PureDP(0.001), relation=ReplaceOne(), n=9,
              sensitivity=Fraction(1), label="x" * 500)


def child(work):
    """Start a process that writes to a pipe; give back its id and the pipe's other end."""
    back, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(back)
            work(out)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(out)
    return pid, back


def everything(pipe):
    parts = []
    while part := os.read(pipe, 65536):
        parts.append(part)
    os.close(pipe)
    return b"".join(parts)


def charge_then_release(path, out):
    LedgerFile(path).charge(EVENT)
    os.write(out, b".")


def release_then_charge(path, out):
    os.write(out, b".")
    LedgerFile(path).charge(EVENT)


def kills(step=charge_then_release):
    """Charge until killed; a byte down the pipe is the release of what was charged."""
    dice = random.Random(7)
    found = {"released": 0, "journals": 0, "unused": 0, "unpaid": 0}
    for i in range(count // 20):
        path = os.path.join(folder, f"{i}.ledger")
        LedgerFile.create(path, Budget(1000.0), data_set="crash")
        known = 0

        def work(out):
            while True:
                step(path, out)

        for _ in range(20):
            pid, pipe = child(work)
            # Once it has begun, it can be anywhere in a charge when the time comes.
            select.select([pipe], [], [], 30)
            time.sleep(dice.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
            released = len(everything(pipe))
            found["released"] += released
            found["journals"] += os.path.exists(path + "-journal")
            ledger = LedgerFile.open(path)
            paid = len(ledger.events) - known
            found["unpaid"] += max(released - paid, 0)
            found["unused"] += max(paid - released, 0)
            assert abs(paid - released) <= 1
            assert ledger.charge(EVENT).serial == known + paid + 1
            known += paid + 1
            assert ledger.spent.epsilon == known / 1000
    return found


def races():
    """Eight processes want the last unit; all start when the starting pipe is closed."""
    wins = []
    for i in range(count):
        path = os.path.join(folder, f"{i}.ledger")
        ledger = LedgerFile.create(path, Budget(0.005), data_set="race")
        for _ in range(4):
            ledger.charge(EVENT)
        gate, start = os.pipe()

        def work(out):
            os.close(start)
            os.read(gate, 1)
            try:
                LedgerFile(path).charge(EVENT)
                os.write(out, b"W")
            except BudgetExceeded:
                os.write(out, b"L")

        children = [child(work) for _ in range(8)]
        os.close(start)
        os.close(gate)
        results = b"".join(everything(pipe) for _, pipe in children)
        assert all(os.waitpid(pid, 0)[1] == 0 for pid, _ in children)
        wins.append(results.count(b"W"))
        assert len(results) == 8
        assert len(LedgerFile.open(path).events) == 5
    return {"wins": wins}


def creations():
    """Killed while making a ledger: it is there whole, or not at all."""
    dice = random.Random(7)
    made = 0
    for i in range(count):
        path = os.path.join(folder, f"{i}.ledger")
        pid, pipe = child(lambda out: LedgerFile.create(path, Budget(1.0), data_set="x"))
        time.sleep(dice.uniform(0, 0.02) * i / count)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(pipe)
        if os.path.exists(path):
            made += 1
            assert LedgerFile.open(path).events == ()
        else:
            LedgerFile.create(path, Budget(1.0), data_set="x")
    return {"made": made, "not made": count - made}


tasks = {
    "kills": kills,
    "early": lambda: kills(release_then_charge),
    "races": races,
    "creations": creations,
}
print(json.dumps(tasks[task]()))
'''


def drive(folder, task, count):
    package = Path(dpmic_jax.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(package), str(folder), task, str(count)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kills", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_no_charge(tmp_path, kills):
    found = drive(tmp_path, "kills", kills)
    assert found["unpaid"] == 0
    # Some die before their first release, on a busy machine more of them.
    assert found["released"] >= kills // 2
    # Some died inside a transaction: their journals were there to be rolled back.
    assert found["journals"] > kills // 40


def test_the_kills_find_releases_that_come_before_their_charge(tmp_path):
    assert drive(tmp_path, "early", 40)["unpaid"] > 5


def test_eight_processes_racing_for_the_last_unit_have_one_winner(tmp_path):
    assert drive(tmp_path, "races", 10)["wins"] == [1] * 10


def test_a_killed_create_leaves_a_whole_ledger_or_none(tmp_path):
    assert drive(tmp_path, "creations", 40)["not made"] > 0


@pytest.mark.slow
def test_2000_kills_lose_no_charge(tmp_path):
    assert drive(tmp_path, "kills", 2000)["unpaid"] == 0
