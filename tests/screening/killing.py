"""Screens in processes of their own, which kill themselves at named points."""

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet
from faults import die_at
from processes import ended, started
from small import BOUNDS, columns, screened

from dpmic_jax import Budget, LedgerFile, secret_key, seeded_key
from dpmic_jax.data.schema import schema_of
from dpmic_jax.screening import AllPairs, Resources, TopK, create_ledger

N, EPSILON = 400, 60.0
ASKS = {"all": AllPairs(), "top": TopK(5)}
LIMITS = {f"{name}{copy}": limits for copy in (0, 1) for name, limits in BOUNDS.items()}


class Point(NamedTuple):
    """Before which step a process dies, and how many charges and tiles there are then."""

    step: str
    charges: int
    tiles: int
    count: int = 1  # of the steps like this one that the process comes to


# In the order of a run of 91 tiles.
POINTS = {
    "its key is being written": Point("os.link key$", 0, 0),
    "its key is there": Point("os.mkdir tiles$", 0, 0),
    "it is being described": Point("os.rename run.json$", 0, 0),
    "it is described": Point("BEGIN IMMEDIATE$", 0, 0),
    "it is being charged": Point("COMMIT$", 0, 0),
    "it is charged": Point(r"open \.00000000", 1, 0),
    "a tile is being written": Point("os.rename 00000000$", 1, 0),
    "a tile is there": Point(r"open \.00000001", 1, 1),
    "many tiles are there": Point("os.rename 00000040$", 1, 40),
    "most tiles are there": Point("os.rename 00000080$", 1, 80),
    "the result is being written": Point("os.rename result.json$", 1, 91),
    "the result is there": Point("open key$", 1, 91),
    "its key is overwritten": Point("os.remove key$", 1, 91),
    "tiles are being removed": Point(r"os.remove \d{8}$", 1, 51, 41),
    "its tiles are removed": Point("os.rmdir tiles$", 1, 0),
}


def table():
    return {f"{name}{copy}": v for copy in (0, 1) for name, v in columns(N, seed=copy).items()}


def work(place, out, ledger, ask, key, point):
    """What the process does."""
    if point is not None:
        die_at(point.step, point.count)
    screened(
        place / "table.parquet",
        ask=ASKS[ask],
        bounds=LIMITS,
        epsilon=EPSILON,
        key=secret_key() if key == "secret" else seeded_key(key),
        ledger=ledger,
        out=out,
        resources=Resources(tile=1),
    )


class Run:
    """A run that may be started and killed as often as one likes."""

    def __init__(self, place, ask, *, key=1, name="run", with_ledger=True):
        self.place, self.ask, self.key = place, ask, key
        self.out, self.said = place / f"{ask} {name}", place / f"{ask} {name}.said"
        self.ledger = place / f"{ask} {name}.ledger" if with_ledger else None
        if not (place / "table.parquet").exists():
            pyarrow.parquet.write_table(pa.table(table()), place / "table.parquet")
        if self.ledger:
            # Twice what is asked for: a second charge would go through, and be seen.
            schema = schema_of(LIMITS)
            create_ledger(self.ledger, Budget(2 * EPSILON), name="x", schema=schema)

    def start(self, point=None):
        settings = (self.place, self.out, self.ledger, self.ask, self.key, point)
        return started(work, *settings, err=self.said)

    def ended(self, process):
        return ended(process), self.said.read_text()

    def finished(self):
        """Let it run to its end; its result, as the folder keeps it."""
        code, said = self.ended(self.start())
        assert code == 0, said
        return json.loads((self.out / "result.json").read_text())

    @property
    def charges(self):
        return len(LedgerFile.open(self.ledger).events)

    @property
    def journal(self):
        """Whether a transaction was begun that has not come to its end."""
        return Path(f"{self.ledger}-journal").exists()

    @property
    def tiles(self):
        return len(list((self.out / "tiles").glob("0*")))
