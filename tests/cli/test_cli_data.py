"""`dpmic data check`: what the owner of the data sees, and that it says so."""

import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import BOUNDS, MARKER, bounds_file, columns, dpmic, lines, table_file

OWNER = "Not private: for the data owner only."


def counts(done):
    """The table that was printed, by column, without its first and last line."""
    first, records, heading, *rows, last = done.stdout.splitlines()
    assert first == last == OWNER
    assert heading.split() == ["column", "missing", "unreadable", "below", "above"]
    return records, {row.split()[0]: tuple(map(int, row.split()[1:])) for row in rows}


def spoilt():
    dose, site = (columns()[name].astype(object) for name in ("dose", "site"))
    dose[:7] = ["", "NA", " nan ", "abc", "inf", "-1", " 0.5 "]
    site[:4] = ["", "null", "west", "North"]
    return {"dose": dose, "site": site}


def test_missing_unreadable_and_clipped_cells_are_counted(tmp_path):
    table, bounds = table_file(tmp_path, lines(**spoilt())), bounds_file(tmp_path)
    done = dpmic("data", "check", table, "--bounds", bounds)
    assert done.exit_code == 0, done.output
    assert counts(done) == (
        "200 records",
        {
            "age": (0, 0, 0, 1),
            "dose": (3, 1, 1, 1),
            "response": (0, 0, 0, 0),
            "site": (2, 2, 0, 0),
        },
    )
    assert MARKER not in done.output


@pytest.mark.parametrize("missing", ['missing = "bin"', 'missing = { value = "north" }'])
def test_counts_do_not_depend_on_the_rule_for_missing_values(missing, tmp_path):
    table = table_file(tmp_path, lines(**spoilt()))
    bounds = bounds_file(tmp_path, f"{BOUNDS}{missing}\n")
    assert counts(dpmic("data", "check", table, "--bounds", bounds))[1]["site"] == (2, 2, 0, 0)


def test_parquet_files_are_counted_by_their_types(tmp_path):
    path = tmp_path / "table.parquet"
    table = {
        "a": pa.array([1.0, None, float("nan"), 5.0, -5.0]),
        "b": pa.array([1, 2, 3, None, 2]),
        "c": pa.array(["x", "", None, "y", "z"]),
    }
    pyarrow.parquet.write_table(pa.table(table), path)
    bounds = bounds_file(
        tmp_path,
        "[columns.a]\nlow = 0\nhigh = 2\n[columns.b]\ncategories = [1, 2]\n"
        '[columns.c]\ncategories = ["x", "y"]\n',
    )
    done = dpmic("data", "check", path, "--bounds", bounds)
    assert counts(done)[1] == {"a": (2, 0, 1, 1), "b": (1, 1, 0, 0), "c": (1, 2, 0, 0)}


def test_cells_of_all_records_of_persons_are_counted(tmp_path):
    ids = ["a", "b"] * 75 + [""] * 50
    table = table_file(tmp_path, lines(**spoilt(), person=ids))
    bounds = bounds_file(tmp_path, f'person = "person"\nrecords_per_person = 3\n{BOUNDS}')
    records, found = counts(dpmic("data", "check", table, "--bounds", bounds))
    assert records == "200 records of 52 persons"
    assert found["dose"] == (3, 1, 1, 1)
    assert "person" not in found


def test_faults_of_structure_are_bad_input(tmp_path):
    table, bounds = table_file(tmp_path, [*lines(), ["1"]]), bounds_file(tmp_path)
    for words in ((table, "--bounds", bounds), (tmp_path / "no.csv", "--bounds", bounds)):
        done = dpmic("data", "check", *words)
        assert done.exit_code == 2
        assert done.stdout == ""
