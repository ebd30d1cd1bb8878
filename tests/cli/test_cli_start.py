"""Nothing heavy before it is needed: what commands import, in processes of their own."""

import subprocess
import sys

import click
import pytest
from commands import bounds_file, table_file
from made_results import result_of

from dpmic_jax import __version__
from dpmic_jax.cli import main

HEAVY = {"jax", "numpy", "pandas", "pyarrow", "scipy"}


def imported(*words):
    """How `dpmic` ended, what it said, and which heavy packages it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dpmic_jax", *map(str, words)],
        capture_output=True,
        text=True,
    )
    modules = {line.rsplit("|")[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "click" in modules
    return done.returncode, done.stdout + done.stderr, modules & HEAVY


def every_command(group, *words):
    """The words of every command and every group."""
    yield words
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, *words, name)
        else:
            yield (*words, name)


def test_help_imports_nothing_heavy():
    """One process for all commands: what is imported stays imported, so it stops at the first."""
    asked = [[*words, "--help"] for words in every_command(main)]
    program = f"""
import sys
from click.testing import CliRunner
from dpmic_jax.cli import main
for words in {asked}:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0 and done.output.startswith("Usage: "), (words, done.output)
    assert not {HEAVY} & set(sys.modules), words
print("read", end="")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("read", "")
    code, said, heavy = imported("screen", "--help")
    assert (code, heavy) == (0, set())
    assert said.startswith("Usage: ")


def test_the_version_imports_nothing_heavy():
    code, said, heavy = imported("--version")
    assert (code, heavy) == (0, set())
    assert __version__ in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("scren",), "No such command"),
        (("screen", "demo", "--epsilom", 1), "No such option"),
        (("screen", "--epsilon", 1), "Missing argument"),
        (("screen", "demo"), "Missing option"),
        (("screen", "demo", "--epsilon", "one"), "not a valid float"),
        (("plan", "--epsilon", 1, "-n", 3), "not in the range"),
        (("ledger", "show"), "Missing argument"),
    ],
)
def test_usage_errors_import_nothing_heavy(words, reason):
    code, said, heavy = imported(*words)
    assert (code, heavy) == (2, set())
    assert reason in said


def test_commands_that_compute_nothing_do_not_import_jax(tmp_path):
    table, bounds, ledger = table_file(tmp_path), bounds_file(tmp_path), tmp_path / "ledger"
    book = table_file(tmp_path, [["name", "low", "high"], ["age", 0, 1]], "book.csv")
    result_of(("a", "b", "c")).to_json(tmp_path / "result.json")
    for words in (
        ("ledger", "init", ledger, "--epsilon", 1, "--bounds", bounds, "--name", "x"),
        ("ledger", "set-budget", ledger, "--epsilon", 2),
        ("ledger", "verify", ledger),
        ("ledger", "show", ledger),
        ("units", "--epsilon", 1, "-n", 100),
        ("bounds", "template", table),
        ("bounds", "check", bounds, "--table", table),
        ("bounds", "from-codebook", book),
        ("data", "check", table, "--bounds", bounds),
        ("demo", tmp_path / "demo"),
        ("report", tmp_path),
    ):
        code, said, heavy = imported(*words)
        assert (code, "jax" in heavy) == (0, False), said
    refused, said, heavy = imported("bounds", "template", tmp_path / "no.csv")
    assert (refused, "jax" in heavy) == (2, False), said


def test_commands_that_compute_import_jax():
    """So the tests above would see it."""
    plan = ("causal-plan", "--epsilon", 1, "-n", 100, "--columns", 3)
    assert imported(*plan)[2] >= {"jax", "numpy"}
