"""Bad input is exit 2 and one clear line: nothing charged, nothing made, no value shown."""

import datetime

import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import (
    BOUNDS,
    MARKER,
    NAMES,
    QUICK,
    N,
    bounds_file,
    columns,
    dpmic,
    lines,
    table_file,
)

from dpmic_jax import LedgerFile

SECRET = "SECRET-12345"


@pytest.fixture
def ledger(tmp_path):
    path, bounds = tmp_path / "ledger", bounds_file(tmp_path, name="of the ledger.toml")
    done = dpmic("ledger", "init", path, "--epsilon", 99, "--bounds", bounds, "--name", "trial")
    assert done.exit_code == 0, done.output
    return path


def refusal(ledger, *words, out=None):
    """The one line that is said, after checking that nothing else came of it."""
    before = ledger.read_bytes()
    places = () if out is None else ("--out", out)
    done = dpmic("screen", "--epsilon", 1, *QUICK, *words, "--ledger", ledger, *places)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    (said,) = done.stderr.splitlines()
    assert said.startswith("Error: ")
    assert not any(value in done.output for value in (SECRET, MARKER, "98765", "Traceback"))
    assert ledger.read_bytes() == before
    assert LedgerFile.open(ledger).events == ()
    assert out is None or not out.exists() or any(out.iterdir())
    return said


def without(name):
    """The bounds file with one column less."""
    parts = BOUNDS.split("[columns.")
    return "[columns.".join(part for part in parts if not part.startswith(f"{name}]"))


def spoilt(column, value):
    """The table with one value replaced."""
    values = columns()[column].copy().astype(object)
    values[5] = value
    return lines(**{column: values})


def renamed(*names):
    return [list(names), *lines()[1:]]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (without("dose"), "has a column 'dose' without bounds"),
        (BOUNDS + "[columns.weight]\nlow = 0\nhigh = 1\n", "column 'weight' that"),
        (BOUNDS.replace("high = 100", ""), "column 'age': no high"),
        (BOUNDS.replace("high = 100", "high = -5"), "column 'age': expected low < high"),
        (BOUNDS.replace("high = 100", "hihg = 100"), "column 'age': unknown field 'hihg'"),
        (BOUNDS + "[columns.age]\nlow = 0\nhigh = 1\n", "is not a TOML file"),
        ("low = 3\n", "expected"),
        ("", "at least one column"),
    ],
)
def test_bounds_that_do_not_match_the_table_are_refused(bounds, said, ledger, tmp_path):
    out = tmp_path / "run"
    found = refusal(
        ledger, table_file(tmp_path), "--bounds", bounds_file(tmp_path, bounds), out=out
    )
    assert said in found
    assert not out.exists()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param([], "is empty", id="an empty file"),
        pytest.param(lines()[:1], "at least 4 records, got 0", id="no records"),
        pytest.param(lines()[:4], "at least 4 records, got 3", id="few records"),
        pytest.param([*lines(), ["1", "2"]], "a line without the 4 values", id="ragged"),
        pytest.param([*lines(), [SECRET] * 7], "a line without the 4 values", id="ragged too"),
        pytest.param(lines()[1:], "; remove it, or correct its name", id="no header"),
        pytest.param(renamed("age", "dose", "dose", "site"), "column 'response' that", id="twice"),
        pytest.param(
            [[*row, row[1]] for row in lines()], "has two columns 'dose'", id="a column again"
        ),
        pytest.param(renamed("age", "Dose", "response", "site"), "column 'dose' that", id="Dose"),
    ],
)
def test_a_table_that_does_not_match_its_bounds_is_refused(rows, said, ledger, tmp_path):
    out = tmp_path / "run"
    found = refusal(ledger, table_file(tmp_path, rows), "--bounds", bounds_file(tmp_path), out=out)
    assert said in found
    assert not out.exists()


SPOILT = {
    "text": ("dose", SECRET),
    "missing": ("dose", ""),
    "infinite": ("dose", "inf"),
    "undeclared": ("site", SECRET),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_no_refusal_depends_on_values_of_the_table(kind, ledger, tmp_path):
    """Else whoever asks for more than the budget has would learn it, as often as they like."""
    said = []
    for rows in (lines(), spoilt(*SPOILT[kind])):
        words = (table_file(tmp_path, rows), "--bounds", bounds_file(tmp_path))
        done = dpmic("screen", *words, "--epsilon", 1e9, "--ledger", ledger, *QUICK)
        said.append((done.exit_code, done.stdout, done.stderr))
    assert said[0][0] == 3
    assert said[0] == said[1]


@pytest.mark.parametrize("categories", ['["north"]', '["south"]', '["west"]', "[1, 2]"])
def test_categories_that_are_left_out_are_not_found_by_asking(categories, ledger, tmp_path):
    said = set()
    for bounds in (BOUNDS, BOUNDS.replace('["north", "south"]', categories)):
        words = (table_file(tmp_path), "--bounds", bounds_file(tmp_path, bounds))
        done = dpmic("screen", *words, "--epsilon", 1e9, "--ledger", ledger, *QUICK)
        said.add((done.exit_code, done.stdout, done.stderr))
    ((code, _, text),) = said
    assert code == 3
    assert "Budget exceeded" in text


@pytest.mark.parametrize("kind", SPOILT)
def test_tables_with_any_values_are_screened(kind, tmp_path):
    words = (table_file(tmp_path, spoilt(*SPOILT[kind])), "--bounds", bounds_file(tmp_path))
    done = dpmic("screen", *words, "--epsilon", 1, "--seed", 1, *QUICK)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output


def test_an_invalid_parquet_file_and_one_of_wrong_types_are_refused(ledger, tmp_path):
    path, bounds = tmp_path / "table.parquet", bounds_file(tmp_path)
    table = {**columns(), "age": [datetime.date(2020, 1, 1)] * N}
    pyarrow.parquet.write_table(pa.table({n: pa.array(list(table[n])) for n in NAMES}), path)
    assert "expected numbers in column 'age', got dates" in refusal(
        ledger, path, "--bounds", bounds
    )
    path.write_text(f"{SECRET}\n" * 100)
    assert "damaged or not a Parquet file" in refusal(ledger, path, "--bounds", bounds)


def test_missing_files_are_refused(ledger, tmp_path):
    table, bounds = table_file(tmp_path), bounds_file(tmp_path)
    assert "no file at" in refusal(ledger, tmp_path / "no.csv", "--bounds", bounds)
    assert "no bounds file at" in refusal(ledger, table, "--bounds", tmp_path / "no.toml")
    assert "expected --bounds" in refusal(ledger, table)
    assert "no .parquet file at" in refusal(ledger, tmp_path, "--bounds", bounds)


def test_a_missing_ledger_and_one_of_another_data_set_are_refused(ledger, tmp_path):
    table = table_file(tmp_path, [row[:3] for row in lines()])
    bounds = bounds_file(tmp_path, without("site"))
    assert "belongs to another data set, 'trial'" in refusal(ledger, table, "--bounds", bounds)
    done = dpmic("screen", table, "--bounds", bounds, "--epsilon", 1, "--ledger", tmp_path / "no")
    assert done.exit_code == 2
    assert "there is no ledger at" in done.stderr
    (tmp_path / "other").write_text("not a ledger, but long enough to be looked at\n" * 50)
    done = dpmic(
        *("screen", table, "--bounds", bounds, "--epsilon", 1, "--ledger", tmp_path / "other")
    )
    assert done.exit_code == 2
    assert "cannot be used as a ledger" in done.stderr


def test_a_folder_with_other_contents_is_refused(ledger, tmp_path):
    table, bounds = table_file(tmp_path), bounds_file(tmp_path)
    words = ("screen", table, "--bounds", bounds, "--seed", 1, *QUICK, "--out", tmp_path / "run")
    assert dpmic(*words, "--epsilon", 20).exit_code == 0
    other = (table, "--bounds", bounds, "--ask", "against:age", "--seed", 1)
    done = dpmic("screen", *other, "--epsilon", 20, *QUICK, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert "holds a run with other settings" in done.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    found = refusal(ledger, table, "--bounds", bounds, out=tmp_path / "mine")
    assert "holds 'thesis.tex', which belongs to no run" in found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ask", "most:3"), "expected --ask as all, top:20"),
        (("--ask", "top:many"), "--ask top:many"),
        (("--ask", "top:0"), "k >= 1"),
        (("--ask", "top:6"), "expected k below 6, the number"),
        (("--ask", "above:0.5"), "expected --ask as"),
        (("--ask", "above:2:3"), "0 < threshold < 1"),
        (("--ask", "between:age"), "expected --ask as"),
        (("--ask", "between:age/age"), "'age' is in both groups"),
        (("--ask", "against:weight"), "an unknown column 'weight'"),
        (("--delta", "1"), "delta"),
        (("-B", "3"), "B"),
        (("-c", "0"), "c"),
        (("--devices", "99"), "--devices of at most"),
    ],
)
def test_invalid_options_are_refused(words, said, ledger, tmp_path):
    out = tmp_path / "run"
    found = refusal(
        ledger, table_file(tmp_path), "--bounds", bounds_file(tmp_path), *words, out=out
    )
    assert said in found
    assert not out.exists()


@pytest.mark.parametrize(
    "words", [("--epsilon", "x"), ("--epsilon", "1", "--seed", "-1"), ("--epsilon", "1", "--no")]
)
def test_usage_errors_exit_with_2_too(words, tmp_path):
    done = dpmic("screen", table_file(tmp_path), "--bounds", bounds_file(tmp_path), *words)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_an_invalid_epsilon_is_exit_2(epsilon, ledger, tmp_path):
    words = (table_file(tmp_path), "--bounds", bounds_file(tmp_path), "--ledger", ledger)
    done = dpmic("screen", *words, "--epsilon", epsilon, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert "epsilon" in done.stderr
    assert not (tmp_path / "run").exists()
    assert LedgerFile.open(ledger).events == ()
