"""`dpmic bounds`, `ledger`, `plan` and `demo`."""

import json
import re
import sqlite3
import tomllib
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import BOUNDS, MARKER, NAMES, QUICK, bounds_file, columns, dpmic, lines, table_file

from dpmic_jax import Budget, LedgerFile, ReplaceOne
from dpmic_jax.data.schema import read_schema
from dpmic_jax.dp.accounting.events import Event, PureDP

WIDE = BOUNDS.replace("high = 100", "high = 1e6").replace("high = 1\n", "high = 50\n")


def test_a_template_has_the_names_and_nothing_of_the_values(tmp_path):
    table = table_file(tmp_path)
    done = dpmic("bounds", "template", table)
    assert done.exit_code == 0, done.output
    assert list(tomllib.loads(done.stdout)["columns"]) == list(NAMES)
    other = dpmic("bounds", "template", table_file(tmp_path, [lines()[0], ["1", "2", "3", "4"]]))
    assert other.stdout == done.stdout
    shown = {word for column in columns().values() for word in map(str, column)}
    assert not any(word in done.stdout for word in shown if len(word) > 2)


def test_a_template_warns_that_the_first_line_was_read_as_the_header(tmp_path):
    table, out = table_file(tmp_path), tmp_path / "template.toml"
    for words in ((), ("--out", out)):
        done = dpmic("bounds", "template", table, *words)
        assert done.exit_code == 0
        assert "first line of" in done.stderr
        assert "do not share this template" in done.stderr
    parquet = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pa.table({"2020": [1], "b": [2]}), parquet)
    done = dpmic("bounds", "template", parquet)
    assert list(tomllib.loads(done.stdout)["columns"]) == ["2020", "b"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("age,dose,age", "columns 1 and 3 of .* have the same name"),
        ("age,,dose", "column 2 of .* has no name"),
        ("age, ,dose", "column 2 of .* has no name"),
        (f"bob,{MARKER},north", "does not begin with a header: column 2"),
        ("1,2,3", "does not begin with a header"),
        ("age;dose;site", "semicolons .* --delimiter"),
        ("age\tdose\tsite", "tabs .* --delimiter"),
    ],
)
def test_invalid_headers_are_refused_before_anything_is_printed(header, said, tmp_path):
    table, out = tmp_path / "table.csv", tmp_path / "template.toml"
    table.write_text(f"{header}\n1,2,3\n")
    done = dpmic("bounds", "template", table, "--out", out)
    assert done.exit_code == 2
    assert re.search(said, done.stderr)
    assert done.stdout == ""
    assert not out.exists()
    assert MARKER not in done.stderr
    assert "bob" not in done.stderr


def test_a_template_is_refused_as_bounds_until_it_is_filled_in(tmp_path):
    table, path = table_file(tmp_path), tmp_path / "template.toml"
    assert dpmic("bounds", "template", table, "--out", path).exit_code == 0
    done = dpmic("screen", table, "--bounds", path, "--epsilon", 1)
    assert done.exit_code == 2
    assert "column 'age': no bounds" in done.stderr
    again = dpmic("bounds", "template", table, "--out", path)
    assert again.exit_code == 2
    assert "already exists" in again.stderr


def test_learned_bounds_are_a_bounds_file_within_the_wide_ones(tmp_path):
    table, wide = table_file(tmp_path), bounds_file(tmp_path, WIDE)
    words = ("bounds", "learn", table, "--within", wide, "--epsilon", 12, "--seed", 1)
    out = tmp_path / "learned.toml"
    assert dpmic(*words, "--out", out).exit_code == 0
    text = out.read_text()
    assert "learned with epsilon = 12, 3 columns, n = 200" in text
    assert "# seeded: not for release" in text
    assert MARKER not in text
    schema = read_schema(out)
    assert [name for name, _ in schema.columns] == list(NAMES)
    assert 0 <= schema["age"].low < 40 < schema["age"].breakpoints[-1] < 90
    assert schema["site"] == read_schema(wide)["site"]
    assert dpmic(*words).stdout == text
    gaussian = dpmic(*words[:6], 3, "--delta", 0.01, "--seed", 1).stdout
    assert "learned with epsilon = 3, delta = 0.01, 3 columns, n = 200" in gaussian
    done = dpmic("screen", table, "--bounds", out, "--epsilon", 1, "--seed", 1, *QUICK)
    assert done.exit_code == 0, done.output


def test_bounds_are_charged_only_if_they_can_be_written(tmp_path):
    table, wide, ledger = table_file(tmp_path), bounds_file(tmp_path, WIDE), tmp_path / "ledger"
    init = ("ledger", "init", ledger, "--epsilon", 20, "--bounds", wide, "--name", "trial")
    assert dpmic(*init).exit_code == 0
    words = ("bounds", "learn", table, "--within", wide, "--epsilon", 12, "--ledger", ledger)
    for bad in (tmp_path / "no" / "b.toml", wide):
        done = dpmic(*words, "--out", bad)
        assert done.exit_code == 2
        assert LedgerFile.open(ledger).events == ()
    done = dpmic(*words, "--out", tmp_path / "learned.toml")
    assert done.exit_code == 0, done.output
    (event,) = LedgerFile.open(ledger).events
    assert event.epsilon == 12
    assert dpmic(*words).exit_code == 3
    assert len(LedgerFile.open(ledger).events) == 1


def test_a_ledger_is_made_shown_and_given_another_budget(tmp_path):
    table, bounds, path = table_file(tmp_path), bounds_file(tmp_path), tmp_path / "ledger"
    made = dpmic(
        *("ledger", "init", path, "--epsilon", 2, "--delta", "1e-6"),
        *("--records-per-person", 3, "--bounds", bounds, "--name", "trial"),
    )
    assert made.exit_code == 0, made.output
    assert LedgerFile.open(path).budget == Budget(2.0, 1e-6, ReplaceOne(3))
    words = (table, "--bounds", bounds, *QUICK, "--records-per-person", 3, "--ledger", path)
    made = dpmic("screen", *words, "--epsilon", 1.5, "--ask", "top:2", "--force")
    assert made.exit_code == 0
    shown = dpmic("ledger", "show", path).stdout
    assert "data set  trial (schema " in shown
    assert "budget    epsilon 2, delta 1e-06, 3 record(s) per person" in shown
    assert "spent     epsilon 1.5" in shown
    assert "screen: TopK, n=200" in shown
    less = dpmic("ledger", "set-budget", path, "--epsilon", 1, "--records-per-person", 3)
    assert less.exit_code == 3
    assert dpmic("ledger", "show", path).stdout == shown
    more = dpmic("ledger", "set-budget", path, "--epsilon", 5, "--records-per-person", 3)
    assert more.exit_code == 0
    assert "budget    epsilon 5, delta 0" in more.stdout
    assert len(LedgerFile.open(path).events) == 1


def test_verify_counts_the_entries_of_a_whole_ledger_and_refuses_a_damaged_one(tmp_path):
    path = tmp_path / "ledger"
    init = ("--epsilon", 2, "--bounds", bounds_file(tmp_path), "--name", "trial")
    assert dpmic("ledger", "init", path, *init).exit_code == 0
    one = Event(
        mechanism="m",
        guarantee=PureDP(0.1),
        relation=ReplaceOne(),
        n=9,
        sensitivity=Fraction(1),
    )
    for _ in range(3):
        LedgerFile.open(path).charge(one)
    done = dpmic("ledger", "verify", path)
    assert (done.exit_code, done.stdout) == (0, f"{path}: 3 entries, ok\n")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE charges SET event = replace(event, '9', '8') WHERE serial = 1")
    for command in ("verify", "show"):
        refused = dpmic("ledger", command, path)
        assert refused.exit_code == 2
        assert refused.stderr == f"Error: {path} is refused: charge 1 is damaged\n"
        assert refused.stdout == ""


def test_invalid_ledgers_are_refused(tmp_path):
    bounds = bounds_file(tmp_path)
    init = ("--epsilon", 1, "--bounds", bounds, "--name", "trial")
    assert dpmic("ledger", "init", tmp_path / "a", *init).exit_code == 0
    for words, said in [
        (("init", tmp_path / "a", *init), "is there; open it"),
        (("init", tmp_path / "no" / "a", *init), "there is no folder"),
        (("init", tmp_path / "b", *init[:2], "--bounds", tmp_path / "no", "--name", "x"), "no bo"),
        (("init", tmp_path / "b", *init[:4], "--name", "two\nlines"), "printable"),
        (("show", tmp_path / "b"), "there is no ledger"),
        (("show", bounds), "cannot be used as a ledger"),
        (("set-budget", tmp_path / "a", "--epsilon", -1), "epsilon"),
    ]:
        done = dpmic("ledger", *words)
        assert done.exit_code == 2, done.output
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "b").exists()


def test_a_plan_reads_no_data(tmp_path):
    bounds = bounds_file(tmp_path)
    words = ("plan", "--bounds", bounds, "-n", 5000, "--epsilon", 1, *QUICK)
    done = dpmic(*words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["columns, records"] == "4, 5000"
    assert found["pairs looked at"] == "6"
    text = dpmic(*words).stdout
    assert all(what in text and how_much in text for what, how_much in found.items())
    assert "pays" in found.pop("skewed columns")
    counted = dpmic("plan", "--columns", 4, "-n", 5000, "--epsilon", 1, *QUICK, "--json")
    assert json.loads(counted.stdout) == found
    named = dpmic(*words, "--ask", "against:age", "--json")
    assert json.loads(named.stdout)["pairs looked at"] == "3"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", 1), "expected either --bounds, a bounds file, or --columns"),
        (("--epsilon", 1, "--columns", 4, "--bounds", "b"), "or --columns, a number"),
        (("--columns", 4), "Missing option '--epsilon'"),
        (("--epsilon", 1, "--columns", 4, "--ask", "against:age"), "an unknown column 'age'"),
        (("--epsilon", 1, "--columns", 4, "--delta", 2), "expected 0 <= delta < 1"),
    ],
)
def test_invalid_plans_are_refused(words, said):
    done = dpmic("plan", "-n", 5000, *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_demo_is_never_written_over(tmp_path):
    done = dpmic("demo", tmp_path)
    assert done.exit_code == 0, done.output
    before = (tmp_path / "demo.csv").read_bytes()
    schema = read_schema(tmp_path / "demo.toml")
    assert before.splitlines()[0].decode().split(",") == [name for name, _ in schema.columns]
    again = dpmic("demo", tmp_path)
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    assert (tmp_path / "demo.csv").read_bytes() == before


def test_help_says_how_commands_end():
    done = dpmic("--help")
    codes = [line.split()[0] for line in done.output.splitlines() if line[:5].strip().isdigit()]
    assert codes == ["0", "1", "2", "3", "4", "5", "130"]
    running = Path(__file__).parents[2] / "docs" / "running.md"
    assert re.findall(r"^\| (\d+) \|", running.read_text(), re.MULTILINE) == codes
