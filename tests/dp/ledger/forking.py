"""Real processes on ledgers, killed and racing. One driver without JAX forks them: that is quick.

`drive` runs a driver, which is a program's text that imports the rest of this module.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

from faults import die_at

from dpmic_jax.dp.ledger.file import BudgetExceeded

HERE = Path(__file__).parent


def drive(driver, task, *arguments):
    """What the function `task` of a driver returns."""
    script = f"import json, sys\n{driver}\nassert 'jax' not in sys.modules\n"
    script += "print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))"
    path = os.pathsep.join([str(HERE), str(HERE.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", script, task, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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


def ended(pid, pipe):
    """How a process ended, as `subprocess` says it, and what it wrote."""
    parts = []
    while part := os.read(pipe, 65536):
        parts.append(part)
    os.close(pipe)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), b"".join(parts)


def killed_everywhere(begin, work):
    """Kill a process before its first step on the disk, another before its second, and so on.

    Args:
      begin: number -> what the process works on, new each time.
      work: the process: given a pipe, what it works on, and `point`, to name a step of its own.

    Yields:
      What was worked on, whether the process came to its end, which the last one does, and what
      it wrote.
    """
    for number in itertools.count(1):
        what = begin(number)

        def dying(out, what=what, number=number):
            work(out, what, die_at("", number))

        code, wrote = ended(*child(dying))
        assert code in (0, -signal.SIGKILL)
        yield what, code == 0, wrote
        if code == 0:
            return


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
    codes, results = zip(*(ended(*one) for one in children), strict=True)
    assert set(codes) == {0}
    return list(results)


def tried(out, act):
    try:
        act()
        os.write(out, b"W")
    except BudgetExceeded:
        os.write(out, b"L")
