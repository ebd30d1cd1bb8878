"""Bad tables are refused with a remedy, and without a word of what is in them."""

import datetime
import subprocess
import sys
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmic_jax.schema import Categories, FixedValue, Number, OwnBin, Schema
from dpmic_jax.source import open_source

TEXT, NUMBER, WHOLE = "SECRET-12345", 98765.4321, 987654321
MARKERS = (TEXT, "SECRET", str(NUMBER), "98765", str(WHOLE))

SCHEMA = Schema(
    (
        ("number", Number(0, 1)),
        ("letter", Categories(("a", "b"))),
        ("grade", Categories((1, 2))),
        ("flag", Categories((True, False))),
    ),
    ("notes",),
)
# A policy for missing values must not let anything else through.
LENIENT = Schema(
    (
        ("number", Number(0, 1, missing=OwnBin())),
        ("letter", Categories(("a", "b"), missing=FixedValue("a"))),
        ("grade", Categories((1, 2), missing=OwnBin())),
        ("flag", Categories((True, False), missing=FixedValue(True))),
    ),
    ("notes",),
)
GOOD = {
    "number": [0.1, 0.2, NUMBER, 0.3, 0.4],
    "letter": ["a", "b", "a", "b", "a"],
    "grade": [1, 2, 1, 2, 1],
    "flag": [True, False, True, False, True],
    "notes": [TEXT, "b", "c", "d", "e"],
}


def refusal(data, schema=SCHEMA, columns=()):
    """The text of the error, which has a remedy and no value in it nor in its traceback."""
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        list(open_source(data, schema).batches(2))
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as again:
        open_source(data, schema).validate()
    for error in (caught.value, again.value):
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
        shown = str(error) + "".join(traceback.format_exception(error))
        assert not any(marker in shown for marker in MARKERS)
        assert all(repr(name) in str(error) for name in columns)
    assert str(caught.value) == str(again.value)
    return str(again.value)


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def csv_text(**changed):
    columns = {**GOOD, **changed}
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def parquet_file(folder, columns):
    arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    path = folder / "table.parquet"
    pyarrow.parquet.write_table(pa.table(arrays), path)
    return path


def flavours(folder, **changed):
    """The table with some columns changed, in every flavour that can hold it."""
    columns = {**GOOD, **changed}
    yield columns
    yield pd.DataFrame(columns)
    yield pd.DataFrame(columns, dtype=object)
    yield pl.DataFrame(columns, strict=False)
    yield pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    yield parquet_file(folder, columns)
    spelled = {
        name: ["" if value is None else value for value in values]
        for name, values in columns.items()
    }
    yield write(folder, csv_text(**spelled))


def test_the_table_that_is_spoilt_below_is_good(tmp_path):
    for data in flavours(tmp_path):
        for schema in (SCHEMA, LENIENT):
            assert open_source(data, schema).validate() == 5


@pytest.mark.parametrize("schema", [SCHEMA, LENIENT])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("number", ["0.5", "1", TEXT, "2", "3"]),
        ("letter", [NUMBER, 1.5, 2.5, 3.5, 4.5]),
        ("grade", ["1", "2", TEXT, "1", "1"]),
        ("flag", [1, WHOLE, 0, 1, 1]),
        ("flag", [TEXT, "yes", "no", "no", "no"]),
    ],
)
def test_values_of_the_wrong_type_are_refused(schema, column, values, tmp_path):
    for data in flavours(tmp_path, **{column: values}):
        said = refusal(data, schema, [column])
        assert "ignore the column" in said
        # A CSV file has no types: numbers are text there, and not declared.
        assert "expected" in said or "not among its categories" in said


@pytest.mark.parametrize("schema", [SCHEMA, LENIENT])
@pytest.mark.parametrize(
    ("column", "values"),
    [("letter", ["a", "b", TEXT, "a", "b"]), ("grade", [1, 2, WHOLE, 1, 2])],
)
def test_undeclared_categories_are_refused(schema, column, values, tmp_path):
    for data in flavours(tmp_path, **{column: values}):
        assert "declare all that may occur" in refusal(data, schema, [column])


def test_whole_categories_are_not_rounded(tmp_path):
    for data in flavours(tmp_path, grade=[1.0, 2.0, 1.5, 1.0, 2.0]):
        refusal(data, SCHEMA, ["grade"])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("number", [0.5, None, NUMBER, 0.5, 0.5]),
        ("number", [0.5, float("nan"), NUMBER, 0.5, 0.5]),
        ("letter", ["a", None, "b", "a", "b"]),
        ("grade", [1, None, 2, 1, 2]),
        ("flag", [True, None, False, True, False]),
    ],
)
def test_missing_values_are_refused_unless_there_is_a_rule_for_them(column, values, tmp_path):
    for data in flavours(tmp_path, **{column: values}):
        said = refusal(data, SCHEMA, [column])
        assert 'missing = "bin"' in said
        assert "missing = { value = ... }" in said
        assert open_source(data, LENIENT).validate() == 5


@pytest.mark.parametrize("schema", [SCHEMA, LENIENT])
@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_values_are_refused_always(schema, value, tmp_path):
    for data in flavours(tmp_path, number=[0.5, value, NUMBER, 0.5, 0.5]):
        assert "infinite" in refusal(data, schema, ["number"])


def test_dates_are_no_numbers(tmp_path):
    day = datetime.date(1987, 6, 5)
    for column in ("number", "letter", "grade"):
        for data in flavours(tmp_path, **{column: [day] * 5}):
            assert "1987" not in refusal(data, SCHEMA, [column])


@pytest.mark.parametrize("data", [{"c": [1 + 1j] * 5}, {"c": np.arange(5).astype("M8[D]")}])
def test_odd_dtypes_are_refused_in_memory(data):
    for rule in (Number(0, 1), Categories((0, 1)), Categories(("a",))):
        refusal(data, Schema((("c", rule),)), ["c"])


def test_bounds_for_a_column_that_is_not_there(tmp_path):
    schema = Schema((*SCHEMA.columns, ("weight", Number(0, 1))), ("notes",))
    for data in flavours(tmp_path):
        assert "correct its name" in refusal(data, schema, ["weight"])
    schema = Schema(SCHEMA.columns, ("notes", "weight"))
    for data in flavours(tmp_path):
        refusal(data, schema, ["weight"])


def test_a_column_without_bounds(tmp_path):
    for data in flavours(tmp_path, weight=[1, 2, 3, 4, WHOLE]):
        assert "ignore = true" in refusal(data, SCHEMA, ["weight"])


def test_two_columns_of_one_name(tmp_path):
    schema, values = Schema((("a", Number(0, 1)),)), np.full(5, NUMBER)
    table = pa.table([values, values], names=["a", "a"])
    pyarrow.parquet.write_table(table, tmp_path / "table.parquet")
    for data in (
        pd.DataFrame(np.stack([values] * 2, axis=1), columns=["a", "a"]),
        table,
        tmp_path / "table.parquet",
        write(tmp_path, "a,a\n" + f"{NUMBER},{NUMBER}\n" * 5),
    ):
        assert "rename" in refusal(data, schema)


def test_what_may_be_data_is_not_taken_for_a_name(tmp_path):
    """A file without a header begins with a record."""
    line = f"{NUMBER},{TEXT},1,True,x\n"
    assert "header" in refusal(write(tmp_path, line * 6))
    assert "header" in refusal(write(tmp_path, f"{NUMBER},{WHOLE}\n" * 6))


FILES = {
    "empty": ("", "empty"),
    "a header without a line end": (csv_text().splitlines()[0], "no records"),
    "a line too long": (csv_text() + f"{NUMBER},a,1,True,{TEXT},x\n", "5 values"),
    "a line too short": (csv_text() + f"{NUMBER},a,1\n", "5 values"),
    "not UTF-8": (csv_text().replace("b,2", "é,2").encode("latin-1"), "UTF-8"),
    "not UTF-8 in a number": (csv_text().encode() + b"\xe9,a,1,True,x\n", "UTF-8"),
    "a header that is not UTF-8": (csv_text().replace("notes", "é").encode("latin-1"), "UTF-8"),
    "UTF-16": (csv_text().encode("utf-16"), "UTF-8"),
    "a quote that stays open": (csv_text() + f'0.1,a,1,"{TEXT},x\n', "5 values"),
    "no commas": (csv_text().replace(",", ";"), "header"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_no_table_is_refused(kind, tmp_path):
    text, match = FILES[kind]
    assert match in refusal(write(tmp_path, text))


@pytest.mark.parametrize("records", [0, 3])
def test_too_few_records_are_refused(records, tmp_path):
    few = {name: values[:records] for name, values in GOOD.items()}
    lines = csv_text().splitlines()[: records + 1]
    frame = pl.DataFrame(GOOD)[:records]
    frame.write_parquet(tmp_path / "few.parquet")
    text = write(tmp_path, "\n".join(lines) + "\n")
    for data in (few, frame, tmp_path / "few.parquet", text):
        with pytest.raises(ValueError, match=f"at least 4 records, got {records}"):
            open_source(data, SCHEMA).validate()


def test_a_file_that_is_no_parquet_file_is_refused(tmp_path):
    whole = parquet_file(tmp_path, GOOD).read_bytes()
    for text in (b"", csv_text().encode(), whole[:-9], b"PAR1" + TEXT.encode() + b"PAR1"):
        assert "not a Parquet file" in refusal(write(tmp_path, text, "table.parquet"))
    # The footer is whole, and so are names and types; the pages are not.
    broken = whole[:4] + bytes(200) + whole[204:]
    assert "damaged" in refusal(write(tmp_path, broken, "table.parquet"))


def test_text_in_parquet_that_is_not_utf8_is_not_declared(tmp_path):
    column = pa.array([b"a", b"b", b"\xe9SECRET", b"a", b"b"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"letter": column}), tmp_path / "t.parquet")
    refusal(tmp_path / "t.parquet", Schema((("letter", Categories(("a", "b"))),)), ["letter"])


def test_nested_columns_are_refused_unless_ignored(tmp_path):
    nested = [{"number": NUMBER}] * 5
    path = parquet_file(tmp_path, {**GOOD, "notes": nested})
    assert open_source(path, SCHEMA).validate() == 5
    path = parquet_file(tmp_path, {**GOOD, "number": nested})
    refusal(path, SCHEMA, ["number"])


def test_paths_have_to_be_files_of_a_known_kind(tmp_path):
    for name in ("table.xlsx", "table", "table.csv.gz"):
        assert ".parquet" in refusal(write(tmp_path, csv_text(), name))
    assert "no file" in refusal(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "none.parquet", SCHEMA)
    (tmp_path / "folder.csv").mkdir()
    assert "one file" in refusal(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("data", "bounds", "match"),
    [
        (np.zeros(4), [(0, 1)], "records by columns"),
        (NUMBER, [(0, 1)], "records by columns"),
        (np.zeros((4, 2)), [(0, 1)], "each of 2 columns"),
        (np.zeros((4, 0)), {"a": (0, 1)}, "columns, got none"),
        (pd.DataFrame(np.zeros((4, 2))), {"a": (0, 1)}, "as text"),
        ({"a": [1, 2, 3, 4], "b": [1, 2, 3]}, {"a": (0, 1), "b": (0, 1)}, "same number"),
        ({"a": np.zeros((4, 2))}, {"a": (0, 1)}, "one dimension"),
        ({"a": [10**400] * 4}, {"a": (0, 1)}, "no float holds"),
        ({"a": [0.5, [WHOLE], 1, 1]}, {"a": (0, 1)}, "expected numbers"),
        (pl.DataFrame({"a": [1, 2, 3, 4]}).lazy(), {"a": (0, 1)}, "data frame"),
    ],
)
def test_what_is_no_table_is_refused(data, bounds, match):
    assert match in refusal(data, bounds)


def test_bounds_of_a_file_go_by_name(tmp_path):
    with pytest.raises(TypeError, match="by name"):
        open_source(write(tmp_path, csv_text()), [(0, 1)])


@pytest.mark.parametrize("rows", [0, -1, True])
def test_a_batch_has_a_record_at_least(rows):
    with pytest.raises(ValueError, match="rows >= 1"):
        open_source(np.zeros((4, 1)), [(0, 1)]).batches(rows)


def test_tables_in_memory_do_without_pyarrow(tmp_path):
    """And files say what is missing."""
    program = f"""
import sys
sys.modules["pyarrow"] = None
import numpy as np
from dpmic_jax.source import open_source
assert open_source({{"a": np.arange(5)}}, {{"a": (0, 4)}}).validate() == 5
try:
    open_source({str(tmp_path / "table.csv")!r}, {{"a": (0, 4)}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'pip install "dpmic_jax[files]"' in done.stdout
