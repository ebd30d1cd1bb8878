import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dpmic_jax import __version__
from dpmic_jax.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    # Compiled programs of the test run are not for keeps.
    monkeypatch.setattr("dpmic_jax.cli._keep_compiled_programs", lambda: None)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_demo_prints_a_ranked_table(run):
    result = run("pairwise", "demo", "--top", "9")
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()[1:10]]
    scores = [float(row[2]) for row in rows]
    assert rows[0][:2] == ["dose", "response"]
    assert scores == sorted(scores, reverse=True)
    assert "66 pairs of 12 columns, 20000 records" in result.output


def test_json_is_one_object_with_every_pair(run):
    result = run("pairwise", "demo", "--statistic", "mice", "-B", "40", "-c", "2", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["pairs"]) == 66
    assert set(found["pairs"][0]) == {"x", "y", "mic"}


def test_bad_settings_exit_with_2(run):
    result = run("pairwise", "demo", "-B", "3")
    assert result.exit_code == 2
    assert "B >= 4" in result.output


def test_version(run):
    assert __version__ in run("--version").output


def test_the_real_command_runs_and_keeps_what_it_compiled(tmp_path):
    """In a process of its own, with nothing replaced."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "XLA_FLAGS": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-m", "dpmic_jax", "pairwise", "demo", "--top", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("dose ")
    assert any((tmp_path / "dpmic_jax").iterdir())
