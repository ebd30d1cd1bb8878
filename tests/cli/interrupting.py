"""Real `dpmic` processes on a small table, interrupted at a named point or at any moment."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import points
from made_results import result_of, statement_of
from processes import HANGS
from processes import ended as exit_code
from processes import started as forked

from dpmic_jax import Budget, LedgerFile, create_ledger, read_schema

INTERRUPT = "interrupt()"


class Ending(NamedTuple):
    """How a process ended, and what it left in the ledger."""

    code: int
    out: str
    err: str
    charges: int


class Place:
    """A folder with a table, its bounds, a ledger and the result of a screen."""

    def __init__(self, folder, columns=3, n=400):
        self.folder, rng = folder, np.random.default_rng(7)
        self.table, self.bounds = folder / "table.csv", folder / "bounds.toml"
        names = tuple(f"c{i}" for i in range(columns))
        rows = rng.random((n, columns)).round(6).astype(str)
        self.table.write_text("\n".join(map(",".join, [names, *rows])) + "\n")
        self.bounds.write_text("".join(f"[columns.{name}]\nlow = 0\nhigh = 1\n" for name in names))
        self.ledger, self.out, self.made = folder / "ledger", folder / "out", folder / "made"
        self.result, self.page = folder / "result.json", folder / "page.html"
        result_of(names, statement=statement_of(n=n)).to_json(self.result)
        schema = read_schema(self.bounds)
        create_ledger(self.ledger, Budget(10.0), name="x", schema=schema)

    @property
    def histogram_folders(self):
        """Folders of histograms, which are beside the result."""
        return sorted(self.folder.glob("histograms-*"))

    def resumes_from(self, command):
        """The folder from which a command said that it resumes."""
        return self.histogram_folders[0] if command == "report" else self.out

    def cleared(self):
        """As it was in the beginning, with nothing charged."""
        for folder in (self.out, *self.histogram_folders):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (self.ledger, self.page, self.made):
            path.unlink(missing_ok=True)
        create_ledger(self.ledger, Budget(10.0), name="x", schema=read_schema(self.bounds))
        return self

    def words(self, command):
        """A command line by its name here."""
        public, charge = ("--bounds", self.bounds), ("--ledger", self.ledger)
        data, grids = (self.table, *public, "--epsilon", 1), ("-B", 12, "-c", 2)
        histograms = ("--histogram", "c0,c1", "--data", *data, "--out", self.page)
        made = ("--epsilon", 1, *public, "--name", "x")
        return {
            "screen": ("screen", *data, *grids, "--tile", 1),
            "screen, ledger": ("screen", *data, *grids, *charge),
            "screen, out": ("screen", *data, *grids, "--tile", 1, "--out", self.out),
            "screen, out, ledger": (
                "screen",
                *data,
                *grids,
                "--tile",
                1,
                "--out",
                self.out,
                *charge,
            ),
            "bounds learn": ("bounds", "learn", self.table, "--within", *data[2:], *charge),
            "causal": ("causal", *data, "--force", *charge),
            "causal, out": ("causal", *data, "--force", "--out", self.out, *charge),
            "causal-plan": ("causal-plan", *public, "--epsilon", 1, "-n", 60),
            "report": ("report", self.result, *histograms, *charge),
            "test": ("test", self.result, self.table, *public, *grids, "--draws", 9, "--force"),
            "plan": ("plan", *public, "--epsilon", 1, "-n", 60),
            "ledger init": ("ledger", "init", self.made, *made),
            "ledger set-budget": ("ledger", "set-budget", self.ledger, "--epsilon", 20),
            "ledger show": ("ledger", "show", self.ledger),
        }[command]

    def at_point(self, command, event, point, action=INTERRUPT, *, err=None):
        """A process that is interrupted when the function `module:name` is called, or returns."""
        out, said = self.folder / "stdout", self.folder / "stderr"
        words = [str(word) for word in self.words(command)]
        process = forked(points.command, words, action, event, point, out=out, err=err or said)
        code = exit_code(process)
        return Ending(code, out.read_text(), "" if err else said.read_text(), self.charges)

    def at_point_anew(self, command, event, point, action=INTERRUPT, module="dpmic_jax.__main__"):
        """The same in a Python that starts anew, and has imported nothing."""
        words = (points.__file__, module, action, event, point)
        return self.ended(self.started(command, *words))

    def started(self, command, *before, **streams):
        """A Python that starts anew: `python *before` and the command's words."""
        environment = {**os.environ, "XLA_FLAGS": ""}
        words = [*(before or ("-m", "dpmic_jax")), *self.words(command)]
        return subprocess.Popen(
            [sys.executable, *map(str, words)],
            env=environment,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def ended(self, process):
        out, err = process.communicate(timeout=HANGS)
        return Ending(process.returncode, out, err, self.charges)

    @property
    def charges(self):
        return len(LedgerFile.open(self.ledger).events)

    def after(self, command, seconds, number):
        """Interrupted after some time."""
        process = self.started(command)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(number)
        return self.ended(process)


def seconds_of(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


SIGNALS = (signal.SIGINT, signal.SIGTERM)
