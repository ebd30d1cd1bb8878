"""Real processes, killed and racing. One driver without JAX forks them: that is quick."""

import json
import subprocess
import sys
from pathlib import Path

import dpmic_jax

HELPERS = r'''
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


def race(works):
    """Run works at once, from the moment that the starting pipe is closed."""
    gate, start = os.pipe()

    def waiting(work):
        def begin(out):
            os.close(start)
            os.read(gate, 1)
            work(out)
        return begin

    children = [child(waiting(work)) for work in works]
    os.close(start)
    os.close(gate)
    results = [everything(pipe) for _, pipe in children]
    assert all(os.waitpid(pid, 0)[1] == 0 for pid, _ in children)
    return results


def tried(out, act):
    try:
        act()
        os.write(out, b"W")
    except BudgetExceeded:
        os.write(out, b"L")
'''


def drive(driver, folder, task, count):
    """What `task` of the driver returns: the name of a function of it."""
    package = Path(dpmic_jax.__file__).parent
    script = f"{HELPERS}\n{driver}\nprint(json.dumps(globals()[task]()))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(package), str(folder), task, str(count)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
