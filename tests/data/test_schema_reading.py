"""Short forms, kinds, defaults, persons and text formats of bounds files."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from dpmic_jax.data.schema import (
    Categories,
    FixedValue,
    MissingBin,
    Number,
    Schema,
    TextFormat,
    Times,
    read_schema,
)
from dpmic_jax.data.source import open_source

DAYS = date(2015, 1, 1), date(2024, 12, 31)
LINES = {
    "[0, 100]": Number(0, 100),
    "{ low = 0, high = 100 }": Number(0, 100),
    "{ bounds = [0, 100] }": Number(0, 100),
    '{ kind = "number", bounds = [0, 100] }': Number(0, 100),
    '{ kind = "whole", bounds = [0, 100] }': Number(0, 100, whole=True),
    "{ low = 0, high = 100, whole = true }": Number(0, 100, whole=True),
    '{ bounds = [1, 100], scale = "log" }': Number(1, 100, scale="log"),
    "{ bounds = [1, 100], breakpoints = [2, 5] }": Number(1, 100, breakpoints=(2, 5)),
    '["a", "b", "c"]': Categories(("a", "b", "c")),
    "[false, true]": Categories((False, True)),
    '{ kind = "boolean" }': Categories((False, True)),
    '{ kind = "boolean", missing = "bin" }': Categories((False, True), missing=MissingBin()),
    "{ categories = [1, 2, 3] }": Categories((1, 2, 3)),
    '{ kind = "nominal", categories = [1, 2] }': Categories((1, 2)),
    '{ kind = "ordered", categories = ["a", "b"] }': Categories(("a", "b"), ordered=True),
    '{ categories = ["a", "b"], ordered = true }': Categories(("a", "b"), ordered=True),
    '{ categories = ["a", "b"], other = "rest" }': Categories(("a", "b"), other="rest"),
    "[2015-01-01, 2024-12-31]": Times(*DAYS),
    '{ kind = "date", low = 2015-01-01, high = 2024-12-31 }': Times(*DAYS),
    "{ bounds = [2015-01-01, 2024-12-31], breakpoints = [2020-03-11] }": Times(
        *DAYS, breakpoints=(date(2020, 3, 11),)
    ),
    "{ bounds = [2015-01-01, 2024-12-31], missing = { value = 2020-03-11 } }": Times(
        *DAYS, missing=FixedValue(date(2020, 3, 11))
    ),
    "[2015-01-01T00:00:00, 2024-12-31 23:59:59.5]": Times(
        datetime(2015, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 500_000)
    ),
    '{ kind = "timestamp", bounds = [2015-01-01T00:00:00Z, 2015-01-01T23:00:00-01:00] }': Times(
        datetime(2015, 1, 1, tzinfo=UTC), datetime(2015, 1, 2, tzinfo=UTC)
    ),
    '{ kind = "duration", bounds = ["P0D", "PT12H"] }': Times(timedelta(0), timedelta(hours=12)),
    '{ low = "-P1DT1.5S", high = "P2W" }': Times(
        -timedelta(days=1, seconds=1, microseconds=500_000), timedelta(weeks=2)
    ),
    '{ bounds = [0, 1.5], unit = "days", breakpoints = [1], missing = { value = 0 } }': Times(
        timedelta(0),
        timedelta(hours=36),
        breakpoints=(timedelta(days=1),),
        missing=FixedValue(timedelta(0)),
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_describes_a_column(read, line):
    ((name, rule),) = read(f"[columns]\nage = {line}\n").columns
    assert (name, rule) == ("age", LINES[line])
    assert not isinstance(rule, Categories) or rule.kind is LINES[line].kind


def test_defaults_are_for_the_columns_that_have_such_a_field_and_do_not_set_it(read):
    schema = read(
        '[defaults]\nmissing = "bin"\nordered = true\nother = "rest"\n[columns]\na = [0, 1]\n'
        'b = { bounds = [0, 1], missing = "default" }\nc = ["x", "y"]\n'
        'flag = { kind = "boolean" }\n'
        'd = { categories = ["x", "y"], other = "y", ordered = false }\ne = { ignore = true }\n'
    )
    own = MissingBin()
    assert dict(schema.columns) == {
        "a": Number(0, 1, missing=own),
        "b": Number(0, 1),
        "c": Categories(("x", "y"), missing=own, ordered=True, other="rest"),
        "flag": Categories((False, True), missing=own),
        "d": Categories(("x", "y"), missing=own, other="y"),
    }
    assert schema.ignored == ("e",)


@pytest.mark.parametrize("line", ["", "id = []\n", "id = { ignore = true }\n"])
def test_the_column_of_persons_is_not_screened_whatever_the_file_says_of_it(read, line):
    schema = read(f'person = "id"\nrecords_per_person = 3\n[columns]\n{line}a = [0, 1]\n')
    assert schema == Schema((("a", Number(0, 1)),), person="id", records_per_person=3)


def test_the_file_table_says_how_text_is_written(read):
    schema = read(
        '[file]\ndelimiter = ";"\ndecimal = ","\nthousands = "."\npercent = true\n'
        'encoding = "cp1252"\nmissing = ["?", "."]\n[columns]\na = [0, 1]\n'
    )
    assert schema.text == TextFormat(
        delimiter=";",
        decimal=",",
        thousands=".",
        percent=True,
        encoding="cp1252",
        missing=("?", "."),
    )


def test_all_problems_of_a_file_are_in_one_error_a_line_each(read):
    with pytest.raises(ValueError, match="has 6 problems") as caught:
        read(
            'colums = 3\n[file]\ndecimals = ","\n[defaults]\nmising = "bin"\n[columns]\n'
            'age = []\ngood = [0, 1]\ndose = [2, 1]\n"tax*" = { low = 0 }\n'
        )
    lines = str(caught.value).splitlines()[1:]
    said = ("'colums'", "[defaults]: ", "[file]: ", "'age': ", "'dose': ", "'tax*': ")
    assert len(lines) == len(said)
    assert all(word in line for word, line in zip(said, lines, strict=True))


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_bytes("\ufeff[columns]\na = [0, 1]\n".encode())
    assert read_schema(path) == Schema((("a", Number(0, 1)),))


def test_whole_numbers_are_categories_also_where_pandas_wrote_fractions(tmp_path):
    """An integer column with a hole is a column of floats."""
    frame = pd.DataFrame({"grade": [1, 2, None, 3, 7], "x": np.arange(5)})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    assert "1.0" in (tmp_path / "table.csv").read_text()
    bounds = {"grade": Categories((1, 2, 3)), "x": (0, 4)}
    for data in (frame, tmp_path / "table.csv", tmp_path / "table.parquet"):
        (batch,) = open_source(data, bounds).batches(5)
        assert [*map(int, batch[0])] == [0, 1, -1, 2, -1]
