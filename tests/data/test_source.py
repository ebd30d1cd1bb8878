import itertools
import pickle
import warnings
from decimal import Decimal

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.demo import demo
from dpmic_jax.data.limits import CategoryLimits, WithMissing
from dpmic_jax.data.schema import Categories, FixedValue, MissingBin, Number, Schema
from dpmic_jax.data.source import base, column_names, files, memory, open_source, parquet
from dpmic_jax.data.table import Table
from dpmic_jax.mic.binning import by_range, codes

SCHEMA = Schema(
    (
        ("flag", Categories((True, False))),
        ("real", Number(-1, 1)),
        ("gaps", Number(0, 10, missing=MissingBin())),
        ("filled", Number(0, 10, missing=FixedValue(2.5))),
        ("town", Categories(("b", "a", "NA"), ordered=True)),
        ("letter", Categories(("x", "y"), missing=MissingBin())),
        ("grade", Categories((3, 1, 2), ordered=True, missing=FixedValue(2))),
        ("count", Number(0, 9)),
    ),
    ignored=("notes",),
)
# In another order than the schema, and each kind of missing value somewhere.
RAW = {
    "count": [1, 2, 3, 4, 5, 600],
    "notes": ["a\nb", None, 'c"d', "1,2", "", "é"],
    "real": [0.5, -0.25, 1e-300, 0.1, 7.0, -7.0],
    "gaps": [1.5, None, 0.0, float("nan"), 9.0, -3.0],
    "filled": [None, 4, 5, 6, None, 10],
    "town": ["a", "b", "NA", "a", "a", "b"],
    "letter": ["y", None, "x", "x", None, "y"],
    "grade": [1, 2, None, 3, 3, 1],
    "flag": [True, False, False, True, True, True],
}
NAMES = ("count", "real", "gaps", "filled", "town", "letter", "grade", "flag")
MISSING = -np.inf
EXPECTED = {
    "count": [1, 2, 3, 4, 5, 600],
    "real": [0.5, -0.25, 1e-300, 0.1, 7.0, -7.0],
    "gaps": [1.5, MISSING, 0.0, MISSING, 9.0, -3.0],
    "filled": [2.5, 4, 5, 6, 2.5, 10],
    "town": [1, 0, 2, 1, 1, 0],
    "letter": [1, MISSING, 0, 0, MISSING, 1],
    "grade": [1, 2, 2, 0, 0, 1],
    "flag": [0, 1, 1, 0, 0, 0],
}


def arrow():
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in RAW.items()})


def csv_file(folder, table=None):
    pyarrow.csv.write_csv(arrow() if table is None else table, folder / "table.csv")
    return folder / "table.csv"


def parquet_file(folder, table=None, **settings):
    table = arrow() if table is None else table
    pyarrow.parquet.write_table(table, folder / "table.parquet", **settings)
    return folder / "table.parquet"


def with_dictionaries(table):
    encoded = {name: table[name].dictionary_encode() for name in ("town", "letter", "grade")}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **encoded})


FLAVOURS = {
    "pandas": lambda _: pd.DataFrame(RAW),
    "pandas nullable": lambda _: pd.DataFrame(RAW).convert_dtypes(),
    "pandas on arrow": lambda _: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas objects": lambda _: pd.DataFrame(RAW, dtype=object),
    "pandas categories": lambda _: pd.DataFrame(RAW).astype(
        {"town": "category", "letter": "category", "grade": "category"}
    ),
    "polars": lambda _: pl.DataFrame(RAW, strict=False),
    "polars categories": lambda _: pl.DataFrame(RAW, strict=False).with_columns(
        pl.col("town", "letter").cast(pl.Categorical)
    ),
    "pyarrow": lambda _: arrow(),
    "pyarrow dictionaries": lambda _: with_dictionaries(arrow()),
    "lists": lambda _: RAW,
    "series": lambda _: {name: pl.Series(values, strict=False) for name, values in RAW.items()},
    "csv": csv_file,
    "csv name": lambda folder: str(csv_file(folder)),
    "parquet": parquet_file,
    "parquet row groups": lambda folder: parquet_file(folder, row_group_size=2),
    "parquet dictionaries": lambda folder: parquet_file(folder, with_dictionaries(arrow())),
}


def together(source, rows=10**9):
    return tuple(np.concatenate(parts) for parts in zip(*source.batches(rows), strict=True))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_data_frame_library_gives_the_same_columns(flavour, tmp_path):
    source = open_source(FLAVOURS[flavour](tmp_path), SCHEMA)
    assert source.names == NAMES
    assert source.validate() == 6
    for name, column in zip(NAMES, together(source), strict=True):
        assert column.dtype.kind in "iuf"
        np.testing.assert_array_equal(column, EXPECTED[name], err_msg=name)


def test_bounds_are_what_by_range_takes(tmp_path):
    source = open_source(csv_file(tmp_path), SCHEMA)
    bounds = dict(zip(source.names, source.bounds, strict=True))
    assert bounds["count"] == (0, 9)
    assert bounds["gaps"] == WithMissing(0, 10)
    assert bounds["letter"] == WithMissing(-0.5, 1.5)
    assert bounds["town"] == CategoryLimits(3)
    assert bounds["grade"] == (-0.5, 2.5)
    assert [name for name, of in bounds.items() if isinstance(of, WithMissing)] == [
        "gaps",
        "letter",
    ]
    # As many parts as there are categories: each has its own, missing ones included.
    columns = dict(zip(source.names, together(source), strict=True))
    (town,) = codes(by_range([columns["town"]], [bounds["town"]], [3]))
    np.testing.assert_array_equal(town[0], EXPECTED["town"])
    (letter,) = codes(by_range([columns["letter"]], [bounds["letter"]], [3]))
    np.testing.assert_array_equal(letter[0], [2, 0, 1, 1, 0, 2])


@pytest.mark.parametrize("make", [csv_file, parquet_file, lambda folder, table: table])
@pytest.mark.parametrize("rows", [1, 7, 1000, 5000, 10**9])
def test_batches_of_any_size_join_to_the_same_table(make, rows, tmp_path, monkeypatch):
    # Pieces that do not fit the batches, several to a batch and several batches to one.
    monkeypatch.setattr(files, "BLOCK", 2000)
    monkeypatch.setattr(parquet, "BLOCK", 2000)
    monkeypatch.setattr(parquet, "PIECE", 301)
    monkeypatch.setattr(memory, "PIECE", 301)
    columns = {name: column[:3001] for name, column in demo().columns.items()}
    source = open_source(make(tmp_path, pa.table(columns)), demo().bounds)
    assert source.validate() == 3001
    sizes = [len(batch[0]) for batch in source.batches(rows)]
    assert sizes == [rows] * (3001 // rows) + [3001 % rows] * (3001 % rows > 0)
    for name, column in zip(source.names, together(source, rows), strict=True):
        np.testing.assert_array_equal(column, columns[name])


DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
DTYPES += [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "make", [lambda _, table: table, parquet_file, lambda _, table: pl.from_arrow(table)]
)
def test_numbers_are_float64_but_for_shorter_floats(dtype, make, tmp_path):
    values = np.arange(5).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        values[-1] = np.iinfo(dtype).max  # which a float64 may not hold
    data = make(tmp_path, pa.table({"a": values, "b": values}))
    source = open_source(data, {"a": (0, 1), "b": Number(0, 1, missing=MissingBin())})
    a, b = together(source)
    assert a.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert b.dtype == np.float64
    np.testing.assert_array_equal(a, values.astype(np.float64))
    np.testing.assert_array_equal(b, values.astype(np.float64))


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pl.Series(values, dtype=pl.Float32),
        lambda values: pd.Series(values, dtype="Float32"),
        lambda values: pd.Series(values, dtype="float32"),
        lambda values: pa.chunked_array([pa.array(values, pa.float32())]),
    ],
)
def test_one_null_does_not_change_the_dtype_of_others(make):
    for values in ([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, None]):
        (column,) = together(open_source({"a": make(values)}, {"a": (0, 1)}))
        assert column.dtype == np.float32
        assert column[-1] == (np.float32(0.4) if values[-1] else 0.5)


@pytest.mark.parametrize(
    "rule",
    [
        Number(0, 4),
        Number(0, 4, missing=MissingBin()),
        Number(0, 4, missing=FixedValue(1)),
        Categories((1, 2), ordered=True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_signalling_nan_is_missing_without_a_warning(rule, dtype, tmp_path):
    """numpy says of these that they are invalid, and only if one is there."""
    values = np.ones(5, dtype)
    size = values.itemsize
    values.view(f"u{size}")[3] = {2: 0x7D00, 4: 0x7FA00000, 8: 0x7FF4000000000000}[size]
    table = pa.table({"a": values})
    ways = [{"a": values}, {"a": pd.Series(values)}, table, parquet_file(tmp_path, table)]
    ways += [values[:, None]] if size > 2 else []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in ways:
            given = open_source(data, [rule] if data is ways[-1] and size > 2 else {"a": rule})
            (column,) = together(given)
            assert len(set(column[[0, 1, 2, 4]].tolist())) == 1
            assert column[3] != column[0] or rule == Number(0, 4, missing=FixedValue(1))


BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]


@pytest.mark.parametrize("kind", [*BYTES, pa.dictionary(pa.int8(), pa.binary())], ids=str)
def test_bytes_of_every_type_of_arrow_are_texts(kind, tmp_path):
    values = pa.array([b"1", b"2", None, b"\xe9", b"2"], BYTES[0])
    if kind == pa.binary_view():
        column = pa.array(values.to_pylist(), kind)
    else:
        column = values.dictionary_encode() if pa.types.is_dictionary(kind) else values.cast(kind)
    table = pa.table({"a": column})
    ways = [table, parquet_file(tmp_path, table)]
    if kind != pa.binary_view():  # pandas has none of these
        ways.append(table.to_pandas(types_mapper=pd.ArrowDtype))
    for data in ways:
        for categories in (Categories(("1", "2"), ordered=True), Categories((1, 2), ordered=True)):
            (found,) = together(open_source(data, {"a": categories}))
            np.testing.assert_array_equal(found, [0, 1, -1, -1, 1])
        if not pa.types.is_dictionary(kind):  # whose type in memory is that of categories
            (found,) = together(open_source(data, {"a": Number(0, 4, missing=MissingBin())}))
            np.testing.assert_array_equal(found, [1, 2, MISSING, MISSING, 2])


def test_arrays_have_columns_x0_x1(rng):
    array = rng.random((9, 3), dtype=np.float32)
    table = Table(("p", "q", "r"), tuple(array.T))
    for data in (array, jnp.asarray(array), table):
        source = open_source(data, [(0, 1), Number(0, 2), (0, 3)])
        assert source.names == ("p", "q", "r") if data is table else ("x0", "x1", "x2")
        assert source.bounds == ((0, 1), (0, 2), (0, 3))
        assert source.validate() == 9
        assert source.path is None
        np.testing.assert_array_equal(np.stack(together(source, 4), axis=1), array)
    assert open_source(array, {"x2": (0, 1), "x0": (0, 1), "x1": (0, 1)}).names[0] == "x0"


def test_large_whole_categories_stay_apart(tmp_path):
    start = 2**53
    values = [start + 1, start, None, start + 1, 2**63 - 1]
    schema = {
        "a": Categories((start, start + 1, 2**63 - 1), missing=FixedValue(start), ordered=True)
    }
    table = pa.table({"a": values})
    for data in (table, csv_file(tmp_path, table), parquet_file(tmp_path, table), {"a": values}):
        np.testing.assert_array_equal(together(open_source(data, schema))[0], [1, 0, 0, 1, 2])


def test_decimals_booleans_and_null_columns_are_numbers(tmp_path):
    table = pa.table(
        {
            "decimal": [Decimal("0.5"), None, Decimal("2.25"), Decimal(3)],
            "boolean": [True, False, True, False],
            "nothing": pa.nulls(4),
        }
    )
    schema = {
        "decimal": Number(0, 1, missing=MissingBin()),
        "boolean": (0, 1),
        "nothing": Number(0, 1, missing=FixedValue(0.5)),
    }
    for data in (table, parquet_file(tmp_path, table), pl.from_arrow(table)):
        decimal, boolean, nothing = together(open_source(data, schema))
        np.testing.assert_array_equal(decimal, [0.5, MISSING, 2.25, 3])
        np.testing.assert_array_equal(boolean, [1, 0, 1, 0])
        np.testing.assert_array_equal(nothing, [0.5] * 4)


@pytest.mark.parametrize("text", ["", "NA", "N/A", "null", "NaN", '""'])
def test_a_csv_has_many_words_for_missing(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"number,text\n1,a\n{text},{text}\n3,a\n4,a\n")
    missing = MissingBin()
    schema = {"number": Number(0, 1, missing=missing), "text": Categories(("a",), missing=missing)}
    number, words = together(open_source(path, schema))
    np.testing.assert_array_equal(number, [1, MISSING, 3, 4])
    np.testing.assert_array_equal(words, [0, MISSING, 0, 0])


def test_a_csv_may_have_a_mark_other_line_ends_and_empty_lines(tmp_path):
    path = tmp_path / "TABLE.CSV"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,x\r\n 2 ,x\r\n\r\n3,x\r\n4,x\r\n\r\n")
    source = open_source(path, {"a": (0, 1), "b": Categories(("x",))})
    assert source.validate() == 4
    np.testing.assert_array_equal(together(source)[0], [1, 2, 3, 4])


def test_a_quoted_line_end_does_not_end_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 1000)  # so that some end within quotes
    path = tmp_path / "table.csv"
    path.write_text("a,notes\n" + "".join(f'{i},"{i},p\n{i},q\n"\n' for i in range(2000)))
    source = open_source(path, Schema((("a", Number(0, 1)),), ("notes",)))
    assert source.validate() == 2000
    np.testing.assert_array_equal(together(source)[0], np.arange(2000))


floats = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6)


@given(
    rows=st.lists(
        st.tuples(floats, st.integers(-(2**63), 2**63 - 1), words, words), min_size=4, max_size=20
    )
)
@pytest.mark.parametrize("make", [csv_file, parquet_file])
def test_files_hold_what_was_written(make, rows, tmp_path_factory):
    numbers, wholes, texts, names = zip(*rows, strict=True)
    distinct, kinds = tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(wholes))
    awkward = f"a.{names[0]}"
    table = pa.table({awkward: numbers, "w": wholes, "a": texts, "ignored": names})
    schema = Schema(
        (
            (awkward, Number(0, 1)),
            ("w", Categories(kinds, ordered=True)),
            ("a", Categories(distinct, ordered=True)),
        ),
        ("ignored",),
    )
    source = open_source(make(tmp_path_factory.mktemp("file"), table), schema)
    assert source.validate() == len(rows)
    real, whole, text = together(source, 3)
    np.testing.assert_array_equal(real, numbers)
    assert [kinds[code] for code in whole] == list(wholes)
    assert [distinct[code] for code in text] == list(texts)


@pytest.mark.parametrize("make", [csv_file, parquet_file])
def test_file_sources_travel_as_a_path_and_a_schema(make, tmp_path, monkeypatch):
    big = pa.concat_tables([arrow()] * 2000)
    monkeypatch.chdir(tmp_path)
    relative = make(tmp_path, big).relative_to(tmp_path)
    source = open_source(relative, SCHEMA)
    source.validate()
    assert len(pickle.dumps(source)) < 4000
    monkeypatch.chdir(tmp_path.parent)  # another process may run elsewhere
    again = pickle.loads(pickle.dumps(source))
    assert again.path == source.path
    assert again.path.is_absolute()
    for one, other in zip(together(source), together(again), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [csv_file, parquet_file])
@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("rows", [2, 100])
def test_a_file_with_another_number_of_records_is_noticed(make, change, rows, tmp_path):
    source = open_source(make(tmp_path, pa.table({"a": np.arange(10)})), {"a": (0, 1)})
    source.validate()
    make(tmp_path, pa.table({"a": np.arange(10 + change)}))
    for reader in (source, pickle.loads(pickle.dumps(source))):
        with pytest.raises(ValueError, match="changed since it was checked: it had 10"):
            list(reader.batches(rows))
    source.validate()
    assert len(together(source)[0]) == 10 + change


@pytest.mark.parametrize("make", [csv_file, parquet_file])
def test_memory_does_not_grow_with_the_number_of_records(make, tmp_path, monkeypatch):
    """pyarrow keeps up to 32 blocks of a CSV file, and a page of each column: make them small."""
    monkeypatch.setattr(files, "BLOCK", 2**15)
    monkeypatch.setattr(parquet, "BLOCK", 2**15)
    monkeypatch.setattr(parquet, "PIECE", 2**12)
    small = {"use_dictionary": False, "data_page_size": 2**15} if make is parquet_file else {}
    rng, columns = np.random.default_rng(0), 8

    def peak(n):
        table = pa.table({f"c{index}": rng.random(n) for index in range(columns)})
        path = make(tmp_path, table, **small)
        del table
        source = open_source(path, {f"c{index}": (0, 1) for index in range(columns)})
        held, peak = pa.total_allocated_bytes(), 0
        for _ in source.batches(1000):
            peak = max(peak, pa.total_allocated_bytes() - held)
        return peak

    few, many = peak(75_000), peak(300_000)
    assert 1000 * columns * 8 < few
    assert many < 1.5 * few
    assert many < 300_000 * columns * 8 / 4


def test_names_of_columns_for_a_template(tmp_path):
    assert column_names(csv_file(tmp_path)) == tuple(RAW)
    assert column_names(parquet_file(tmp_path)) == tuple(RAW)
    assert column_names(arrow()) == tuple(RAW)
    assert column_names(np.zeros((4, 2))) == ("x0", "x1")


@given(sizes=st.lists(st.integers(0, 9), max_size=12), rows=st.integers(1, 12))
def test_pieces_are_resliced_without_loss(sizes, rows):
    ends = np.cumsum([0, *sizes])
    pieces = [(np.arange(a, b), -np.arange(a, b)) for a, b in itertools.pairwise(ends)]
    batches = list(base._resliced(pieces, rows))
    assert all(len(batch[0]) == rows for batch in batches[:-1])
    for sign, parts in zip((1, -1), zip(*batches, strict=True), strict=False):
        np.testing.assert_array_equal(np.concatenate(parts), sign * np.arange(ends[-1]))
    assert sum(len(batch[0]) for batch in batches) == ends[-1]
