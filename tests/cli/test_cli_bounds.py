"""`dpmic bounds check` and `from-codebook`, and patterns in commands that read no table."""

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import BOUNDS, NAMES, QUICK, bounds_file, columns, dpmic, table_file

from dpmic_jax import read_schema
from dpmic_jax.data.schema import TextFormat

STARS = '[columns]\n"s*" = ["north", "south"]\n"*e" = [0, 100]\nresponse = [-1, 1]\n'


def test_a_complete_bounds_file_is_summed_up(tmp_path):
    bounds, table = bounds_file(tmp_path), table_file(tmp_path)
    for words in ((), ("--table", table)):
        done = dpmic("bounds", "check", bounds, *words)
        assert done.exit_code == 0, done.output
        assert done.stdout == f"{bounds} is complete.\n3 number\n1 nominal\n"


def test_everything_that_is_left_to_do_is_said_at_once(tmp_path):
    table = table_file(tmp_path)
    bounds = bounds_file(tmp_path, "[columns]\nage = []\ndose = [1, 0]\nsite = ['a', 'b']\n")
    done = dpmic("bounds", "check", bounds, "--table", table)
    assert done.exit_code == 2
    heading, *lines = done.stderr.splitlines()
    assert heading.endswith("has 3 problems:")
    for line, word in zip(
        lines, ("'age': no bounds", "'dose': ", "'response' without"), strict=True
    ):
        assert word in line


def test_types_and_names_of_a_table_are_checked_and_no_value(tmp_path):
    table = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pa.table({"a": ["x"], "b": ["y"], "c": [1.0]}), table)
    said = {
        "a = [0, 1]\nb = ['q', 'r']\nc = ['u', 'v']": ("column 'c'",),
        "a = ['x', 'z']\nb = ['y', 'z']": ("column 'c' without bounds",),
        "a = ['x', 'z']\nb = ['y', 'z']\nd = [0, 1]\ne = [0, 1]": (
            "'d' that is not",
            "'e' that is not",
        ),
        "a = ['x', 'z']\nd* = [0, 1]".replace("d*", '"d*"'): ("matches 'd*'",),
    }
    for text, words in said.items():
        done = dpmic(
            "bounds", "check", bounds_file(tmp_path, f"[columns]\n{text}\n"), "--table", table
        )
        assert done.exit_code == 2
        assert all(word in done.stderr for word in words), done.stderr
        assert len(done.stderr.splitlines()) == 1 + len(words) * (len(words) > 1)


def test_a_query_is_checked_and_so_is_the_type_of_its_ids(tmp_path):
    database = f"duckdb:{tmp_path / 'table.duckdb'}"
    with duckdb.connect(tmp_path / "table.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, DATE '2020-01-01' AS day")
    columns, ids = "[columns]\na = [0, 1]\n", 'person = "day"\nrecords_per_person = 2\n'
    said = {
        f"{columns}b = ['x', 'y']\nday = {{ ignore = true }}": "is complete",
        f"{columns}b = [2020-01-01, 2020-01-02]\nday = [0, 1]": "column 'day', got dates",
        f"{ids}{columns}b = ['x', 'y']": "ids of persons in column 'day'",
    }
    for text, words in said.items():
        query = ("--db", database, "--sql", "SELECT * FROM t")
        done = dpmic("bounds", "check", bounds_file(tmp_path, text), *query)
        assert words in done.output
        assert done.exit_code == (0 if words == "is complete" else 2)


def test_patterns_are_screened_as_the_columns_that_they_mean(tmp_path):
    table = table_file(tmp_path)
    exact = BOUNDS.replace("high = 1\n\n[columns.response]", "high = 100\n\n[columns.response]")
    results = []
    for name, text in (("a.toml", STARS), ("b.toml", exact)):
        bounds = bounds_file(tmp_path, text, name)
        words = ("--epsilon", 20, "--seed", 1, *QUICK)
        done = dpmic("screen", table, "--bounds", bounds, *words)
        assert done.exit_code == 0, done.output
        results.append(done.stdout)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--epsilon", 1, "-n", 1000),
        ("causal-plan", "--epsilon", 1, "-n", 1000),
        ("ledger", "init", "LEDGER", "--epsilon", 1, "--name", "x"),
    ],
)
def test_commands_that_read_no_table_ask_for_the_names_of_its_columns(words, tmp_path):
    table, bounds = table_file(tmp_path), bounds_file(tmp_path, STARS)
    words = [tmp_path / "ledger" if word == "LEDGER" else word for word in words]
    refused = dpmic(*words, "--bounds", bounds)
    assert refused.exit_code == 2
    assert "pattern, 's*': add --columns-of TABLE" in refused.stderr
    done = dpmic(*words, "--bounds", bounds, "--columns-of", table)
    assert done.exit_code == 0, done.output
    if words[0] == "plan":
        assert f"columns, records            {len(NAMES)}, 1000" in done.stdout


def test_a_codebook_becomes_a_bounds_file(tmp_path):
    book, out = tmp_path / "book.csv", tmp_path / "bounds.toml"
    book.write_text("name,low,high,categories\nage,0,100,\nsite,,,north|south\ndose,,,\n")
    done = dpmic("bounds", "from-codebook", book, "--out", out)
    assert done.exit_code == 0, done.output
    assert dpmic("bounds", "from-codebook", book).stdout == out.read_text()
    checked = dpmic("bounds", "check", out)
    assert checked.exit_code == 2
    assert checked.stderr.endswith(
        "column 'dose': no bounds: write [low, high], or categories such as "
        '["a", "b"], or { ignore = true }\n'
    )
    out.write_text(out.read_text().replace("dose = []", "dose = [0, 1]"))
    assert [name for name, _ in read_schema(out).columns] == ["age", "site", "dose"]
    assert dpmic("bounds", "from-codebook", book, "--out", out).exit_code == 2  # it is there


def test_a_template_says_how_the_text_file_is_written(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("größe;alter\n1,8;40\n", encoding="latin-1")
    options = ("--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--missing", "?")
    done = dpmic("bounds", "template", table, *options)
    filled = tmp_path / "bounds.toml"
    filled.write_text(done.stdout.replace("[]", "[0, 9]"), encoding="utf-8")
    expected = TextFormat(delimiter=";", decimal=",", encoding="latin-1", missing=("?",))
    assert read_schema(filled).text == expected


def test_a_template_of_a_typed_file_has_kinds_and_no_warning(tmp_path):
    table = tmp_path / "table.parquet"
    typed = {name: pa.array(list(column)[1:]) for name, column in columns().items()}
    pyarrow.parquet.write_table(pa.table(typed), table)
    done = dpmic("bounds", "template", table)
    assert done.exit_code == 0, done.output
    assert 'age = { kind = "whole", bounds = [] }' in done.stdout
    assert done.stderr == ""
