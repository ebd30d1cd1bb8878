"""Real processes, interrupted: exit 4, and the same command goes on to the same bits."""

import json
import re

import numpy as np
import points
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import dpmic
from processes import ended, started

from dpmic_jax import LedgerFile, MICr, seeded_key
from dpmic_jax.mic.grids import ladder
from dpmic_jax.screening import TopK, screen

COLUMNS, N = 14, 300
MARKER = 0.12345678901234567


@pytest.fixture
def files(tmp_path):
    """91 pairs, which are stored one by one."""
    rng, path = np.random.default_rng(7), tmp_path / "table.parquet"
    table = {f"c{i}": rng.random(N) ** (1 + i) for i in range(COLUMNS)}
    table["c1"] = table["c0"].copy()
    table["c2"][0] = MARKER
    pyarrow.parquet.write_table(pa.table(table), path)
    bounds = tmp_path / "bounds.toml"
    bounds.write_text("".join(f"[columns.{name}]\nlow = 0\nhigh = 1\n" for name in table))
    return path, bounds


class Run:
    """The command, in a process of its own."""

    def __init__(self, folder, *words):
        self.words, self._folder = [str(word) for word in words], folder

    def _ended(self, work, *arguments):
        out, err = self._folder / "stdout", self._folder / "stderr"
        code = ended(started(work, *arguments, out=out, err=err))
        return code, out.read_text(), err.read_text()

    def finished(self):
        return self._ended(points.command, self.words)

    def interrupted(self, action, tiles):
        """When it has kept so many tiles."""
        keep = "dpmic_jax.runs.checkpoint:Folder.keep_tile"
        return self._ended(points.command, self.words, action, "return", keep, tiles)


def test_a_run_interrupted_by_sigint_and_sigterm_resumes_bit_for_bit(files, tmp_path):
    table, bounds = files
    out, ledger = tmp_path / "run", tmp_path / "ledger"
    init = ("ledger", "init", ledger, "--epsilon", 99, "--bounds", bounds, "--name", "x")
    assert dpmic(*init).exit_code == 0
    words = ("screen", table, "--bounds", bounds, "--epsilon", 50, "--ask", "top:3", "--seed", 5)
    words += ("-B", 12, "-c", 2, "--tile", 1, "--out", out, "--ledger", ledger, "--json")
    run, there = Run(tmp_path, *words), 0
    for name, more in (("SIGINT", 5), ("SIGTERM", 15)):
        code, said, error = run.interrupted(f"interrupt(signal.{name})", more)
        assert (code, said) == (4, ""), error
        warning, last = error.splitlines()
        assert warning == "Warning: seeded: not for release."
        assert (
            last == f"Interrupted; repeat the command to resume from {out}, at no further charge."
        )
        there += more
        assert len(list((out / "tiles").glob("0*"))) == there < 91
        assert len(LedgerFile.open(ledger).events) == 1
    code, said, error = run.finished()
    assert code == 0, error
    warning, seconds = error.splitlines()
    assert warning == "Warning: seeded: not for release."
    assert re.fullmatch(r"\d+\.\d s", seconds)
    assert len(LedgerFile.open(ledger).events) == 1
    here = screen(
        table,
        bounds=bounds,
        epsilon=50.0,
        ask=TopK(3),
        key=seeded_key(5),
        statistic=MICr(B=12, c=2, sizes=ladder(1.25)),
    )
    found = [(pair["x"], pair["y"], pair["mic"]) for pair in json.loads(said)["pairs"]]
    assert found == here.ranked()
    assert str(MARKER) not in said + error


def test_a_cluster_that_gives_up_is_exit_4(files, tmp_path, monkeypatch):
    table, bounds = files

    def stop(*_):
        from dpmic_jax.screening.distributed import WorkersLostError

        raise WorkersLostError("the cluster is gone; repeat the call to go on")

    monkeypatch.setattr("dpmic_jax.screening.tiles.TileScorer.tiles", stop)
    words = ("screen", table, "--bounds", bounds, "--epsilon", 1, "-B", 12, "--force")
    done = dpmic(*words, "--out", tmp_path / "run")
    assert done.exit_code == 4
    assert done.stderr == (
        "Error: the cluster is gone; repeat the call to go on; repeat the command to resume from "
        f"{tmp_path / 'run'}.\n"
    )


def test_a_real_process_refuses_bad_input_in_one_line(files, tmp_path):
    table, bounds = files
    table.write_bytes(table.read_bytes()[:-100])
    run = Run(tmp_path, "screen", table, "--bounds", bounds, "--epsilon", 1)
    said = f"Error: {table} is damaged or not a Parquet file; write it again\n"
    assert run.finished() == (2, "", said)
