"""Bad tables are refused with a remedy and without a word of what is in them; values never are."""

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

from dpmic_jax.data.schema import Categories, FixedValue, MissingBin, Number, Schema
from dpmic_jax.data.source import files, open_source
from dpmic_jax.data.table import column
from dpmic_jax.mic.binning import by_range, codes

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
LENIENT = Schema(
    (
        ("number", Number(0, 1, missing=MissingBin())),
        ("letter", Categories(("a", "b"), missing=FixedValue("a"))),
        ("grade", Categories((1, 2), missing=MissingBin())),
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


def taken(data, schema=SCHEMA):
    """The columns by name, which no value has kept from being read."""
    source = open_source(data, schema)
    assert source.validate() == 5
    batches = list(source.batches(2))
    return {
        name: np.concatenate([batch[place] for batch in batches]).tolist()
        for place, name in enumerate(source.names)
    }


# What is in the number's column where nothing is known: the midpoint, and a bin of its own.
NONE = (0.5, -np.inf)


@pytest.mark.parametrize(
    ("values", "middle", "own"),
    [
        (["0.5", "1", TEXT, "+2", " 3e0 "], *([0.5, 1, none, 2, 3] for none in NONE)),
        ([0.5, None, NUMBER, 0.5, 0.5], *([0.5, none, NUMBER, 0.5, 0.5] for none in NONE)),
        ([0.5, float("nan"), 2, 0.5, 0.5], *([0.5, none, 2, 0.5, 0.5] for none in NONE)),
    ],
)
def test_cells_that_are_not_numbers_are_missing(values, middle, own, tmp_path):
    for data in flavours(tmp_path, number=values):
        assert taken(data)["number"] == middle
        assert taken(data, LENIENT)["number"] == own


@pytest.mark.parametrize(
    ("column", "values", "default", "lenient"),
    [
        ("letter", ["a", "b", TEXT, "a", None], [0, 1, -1, 0, -1], [0, 1, 0, 0, 0]),
        ("grade", [1, 2, WHOLE, 1, None], [0, 1, -1, 0, -1], [0, 1, -np.inf, 0, -np.inf]),
        ("grade", ["1", "2", TEXT, "1.0", "1.5"], [0, 1, -1, 0, -1], [0, 1, -np.inf, 0, -np.inf]),
        ("grade", [1.0, 2.0, 1.5, 1.0, 2.0], [0, 1, -1, 0, 1], [0, 1, -np.inf, 0, 1]),
        ("flag", [1, WHOLE, 0, 1, 1], [0, -1, 1, 0, 0], [0, 0, 1, 0, 0]),
        ("flag", [TEXT, "yes", "false", "TRUE", "0"], [-1, -1, 1, 0, 1], [0, 0, 1, 0, 1]),
        ("flag", [True, None, False, True, False], [0, -1, 1, 0, 1], [0, 0, 1, 0, 1]),
    ],
)
def test_undeclared_categories_are_missing(column, values, default, lenient, tmp_path):
    for data in flavours(tmp_path, **{column: values}):
        assert taken(data)[column] == default
        assert taken(data, LENIENT)[column] == lenient


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_values_are_clipped_and_not_missing(value, tmp_path):
    for data in flavours(tmp_path, number=[0.5, value, NUMBER, 0.5, 0.5]):
        for schema in (SCHEMA, LENIENT):
            bounds = open_source(data, schema).bounds[0]
            column = np.array(taken(data, schema)["number"])
            (parts,) = codes(by_range([column], [bounds], [3]))
            lowest = int(schema is LENIENT)  # where part 0 is for missing values
            assert parts[0, 1] == (2 if value > 0 else lowest)


def has_no_types(data):
    """Whether it is a list, a CSV file or of objects."""
    objects = isinstance(data, pd.DataFrame) and all(
        kind == "object" for kind in map(str, data.dtypes)
    )
    return objects or isinstance(data, dict) or getattr(data, "suffix", "") == ".csv"


def test_types_that_do_not_fit_are_refused(tmp_path):
    """By the type of a container, which no value decides."""
    for data in flavours(tmp_path, letter=[NUMBER, 1.5, 2.5, 3.5, 4.5]):
        if has_no_types(data):
            assert taken(data)["letter"] == [-1] * 5
        else:
            assert "got numbers; declare" in refusal(data, SCHEMA, ["letter"])


def test_dates_are_no_numbers(tmp_path):
    day = datetime.date(1987, 6, 5)
    for name, none in (("number", 0.5), ("letter", -1), ("grade", -1)):
        for data in flavours(tmp_path, **{name: [day] * 5}):
            if has_no_types(data) or isinstance(data, pd.DataFrame):  # pandas: objects
                assert taken(data)[name] == [none] * 5
            else:
                assert "got dates; " in refusal(data, SCHEMA, [name])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.arange(5) * 1j, "complex numbers"),
        (pd.Series(np.arange(5) * 1j), "complex numbers"),
        (np.arange(5).astype("M8[D]"), "dates"),
        (np.arange(5).astype("m8[D]"), "durations"),
        (pl.Series([[1], [2], [3], [4], [5]]), "lists"),
        (pd.Series(np.arange(5).astype("M8[s]")), "dates"),
    ],
)
def test_odd_types_are_refused_by_their_kind(column, kind):
    for rule in (Number(0, 1), Categories((0, 1)), Categories(("a",))):
        assert f"got {kind};" in refusal({"c": column}, Schema((("c", rule),)), ["c"])


@pytest.mark.parametrize("library", [pd, pl])
def test_errors_do_not_show_the_categories_of_a_type(library):
    kind = pl.Enum([TEXT, "b"]) if library is pl else "category"
    column = library.Series([TEXT, "b", TEXT, "b", "b"], dtype=kind)
    assert "got categories;" in refusal({"c": column}, Schema((("c", Number(0, 1)),)), ["c"])


def test_errors_do_not_show_the_length_of_a_text():
    for given in (np.array([TEXT] * 4), np.array([TEXT.encode()] * 4)):
        with pytest.raises(TypeError) as caught:
            column(given, "x")
        assert "12" not in str(caught.value)
        assert "got text" in str(caught.value) or "got bytes" in str(caught.value)


def test_bounds_of_an_unknown_column_are_refused(tmp_path):
    schema = Schema((*SCHEMA.columns, ("weight", Number(0, 1))), ("notes",))
    for data in flavours(tmp_path):
        assert "correct its name" in refusal(data, schema, ["weight"])
    schema = Schema(SCHEMA.columns, ("notes", "weight"))
    for data in flavours(tmp_path):
        refusal(data, schema, ["weight"])


def test_a_column_without_bounds_is_refused(tmp_path):
    for data in flavours(tmp_path, weight=[1, 2, 3, 4, WHOLE]):
        assert "ignore = true" in refusal(data, SCHEMA, ["weight"])


def test_two_columns_of_one_name_are_refused(tmp_path):
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


def test_a_first_line_that_may_be_data_is_not_a_header(tmp_path):
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
    "no commas": (csv_text().replace(",", ";"), "semicolons"),
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
    for rule, found in ((Categories(("a", "b")), [0, 1, -1, 0, 1]), (Number(0, 2), [1] * 5)):
        assert taken(tmp_path / "t.parquet", Schema((("letter", rule),)))["letter"] == found


def test_nested_columns_are_refused_unless_ignored(tmp_path):
    nested = [{"number": NUMBER}] * 5
    path = parquet_file(tmp_path, {**GOOD, "notes": nested})
    assert open_source(path, SCHEMA).validate() == 5
    path = parquet_file(tmp_path, {**GOOD, "number": nested})
    refusal(path, SCHEMA, ["number"])


def test_paths_have_to_be_files_of_a_known_kind(tmp_path):
    for name in ("table.xlsx", "table", "table.csv.zip"):
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
        ([[1, 2], [3, 4], [NUMBER], [5, 6]], [(0, 1)] * 2, "records of one length"),
        ([[1, 2], NUMBER, [3, 4], [5, 6]], [(0, 1)] * 2, "records by columns"),
        (pl.Series([1, 2, 3, 4]), {"a": (0, 1)}, "data frame"),
    ],
)
def test_data_that_is_not_a_table_is_refused(data, bounds, match):
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
from dpmic_jax.data.source import open_source
assert open_source({{"a": np.arange(5)}}, {{"a": (0, 4)}}).validate() == 5
try:
    open_source({str(tmp_path / "table.csv")!r}, {{"a": (0, 4)}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'pip install "dpmic_jax[files]"' in done.stdout


LINE = "0.25,b,1,True,x\n"


def with_long_cell(folder, length, before, column):
    """A file in which one record of some lines has a long cell, after so many bytes of others."""
    cells = ["0.5", "a", "1", "True", "x"]
    cells[column] = "9" * length
    lines = [LINE] * (before // len(LINE))
    text = "number,letter,grade,flag,notes\n" + "".join([*lines, ",".join(cells) + "\n", LINE * 9])
    return write(folder, text), len(lines) + 10


@pytest.mark.parametrize("column", [0, 1, 4])  # a number, a category, and what is ignored
@pytest.mark.parametrize(
    ("length", "before"), [(1_200_000, 0), (1_200_000, 1_000_000), (3_000_000, 900_000)]
)
def test_a_cell_may_be_longer_than_a_block_wherever_it_begins(length, before, column, tmp_path):
    path, records = with_long_cell(tmp_path, length, before, column)
    source = open_source(path, SCHEMA)
    assert source.validate() == records
    batches = list(source.batches(records))
    number, letter = np.concatenate([batch[0] for batch in batches]), batches[0][1]
    there = records - 10
    expected = {0: (np.inf, 0), 1: (0.5, -1), 4: (0.5, 0)}[column]
    assert (number[there], letter[there]) == expected
    assert (np.delete(number, there) == 0.25).all()
    assert (np.delete(letter, there) == 1).all()
    assert source.tally()["number"].above == (column == 0)


@pytest.mark.parametrize("block", [8, 64, 100, 2**20])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('1,"p\nq,""r"\n2,x\n3,' + "y" * 90 + "\n4,x\n", ""),
        ("1,x\n2,x\n3,x\n4," + "y" * 90 + ",z\n", "2 values"),
        ("1,x\n2,x\n3\n4," + "y" * 90 + "\n", "2 values"),
        ('1,x\n2,x\n3,x\n4,"' + "y" * 90 + "\n", ""),  # a quote that ends with the file
        ("1,x\n2,x\n3,x\n4," + "y" * 90, ""),
    ],
)
def test_a_file_is_read_wherever_its_blocks_end(block, rows, said, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", block)
    path = write(tmp_path, "a,notes\n" + rows)
    schema = Schema((("a", Number(0, 9)),), ("notes",))
    if said:
        assert said in refusal(path, schema)
    else:
        assert open_source(path, schema).validate() == 4
        (column,) = zip(*open_source(path, schema).batches(1), strict=True)
        np.testing.assert_array_equal(np.concatenate(column), [1, 2, 3, 4])


def test_a_record_that_fits_no_block_is_refused(tmp_path, monkeypatch):
    """The negative control: blocks that may not grow make a verdict of a long cell."""
    monkeypatch.setattr(files, "LONGEST", files.BLOCK)
    assert "bytes; write it again" in refusal(with_long_cell(tmp_path, 3_000_000, 0, 4)[0])


@pytest.mark.parametrize("before", [0, 9_000])  # Python decodes 8 KiB at a time
def test_only_screened_columns_have_to_be_utf8_wherever(before, tmp_path):
    lines = "number,letter,grade,flag,notes\n" + LINE * (before // len(LINE) + 4)
    for bad, refused in ((b"0.5,a,1,True,\xe9\n", False), (b"0.5,\xe9,1,True,x\n", True)):
        path = write(tmp_path, lines.encode() + bad + LINE.encode())
        if refused:
            assert "UTF-8" in refusal(path)
        else:
            assert open_source(path, SCHEMA).validate() == before // len(LINE) + 6
