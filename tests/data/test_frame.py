"""Columns of every library and type; what they are taken as is written out by hand."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmic_jax.data.frame import frame_of, refuse_missing

DAYS = [dt.date(2020, 1, day) for day in (3, 1, 2)]
SPANS = [dt.timedelta(hours=hours) for hours in (5, 7, 6)]
GRADES = ["low", "high", "middle"]
ORDER = ["low", "middle", "high"]
NONE = [False] * 3

# A column, its kind, its ranks, and where it is missing.
COLUMNS = {
    "numpy integers": (np.array([3, 1, 2]), "number", [2, 0, 1], NONE),
    "numpy booleans": (np.array([True, False, True]), "boolean", [1, 0, 1], NONE),
    "numpy text": (np.array(["b", "a", "b"]), "nominal", [1, 0, 1], NONE),
    "numpy dates": (np.array(DAYS, "M8[D]"), "timestamp", [2, 0, 1], NONE),
    "numpy NaT": (np.array(["NaT", "2020", "2021"], "M8[s]"), "timestamp", [0, 1], [1, 0, 0]),
    "objects": (np.array([1, None, 2.5], object), "number", [0, 1], [0, 1, 0]),
    "decimals": (np.array([Decimal(2), Decimal(1), None]), "number", [1, 0], [0, 0, 1]),
    "dates": (np.array(DAYS, object), "date", [2, 0, 1], NONE),
    "durations": (np.array(SPANS, object), "duration", [0, 2, 1], NONE),
    "masked": (np.ma.array([3, 9, 2], mask=[0, 1, 0]), "number", [1, 0], [0, 1, 0]),
    "bytes": (np.array([b"b", b"a", b"b"]), "nominal", [1, 0, 1], NONE),
    "pandas NA": (pd.Series([3, None, 2], dtype="Int64"), "number", [1, 0], [0, 1, 0]),
    "pandas floats": (pd.Series([np.nan, 2.0, 1.0]), "number", [1, 0], [1, 0, 0]),
    "pandas category": (pd.Series(GRADES, dtype="category"), "nominal", [1, 0, 2], NONE),
    "pandas ordered": (
        pd.Series(pd.Categorical(GRADES, ORDER, ordered=True)),
        "ordered",
        [0, 2, 1],
        NONE,
    ),
    "pandas missing category": (
        pd.Series(pd.Categorical(["b", None, "a"])),
        "nominal",
        [1, 0],
        [0, 1, 0],
    ),
    "pandas zone": (pd.Series(DAYS).astype("datetime64[ns, UTC]"), "timestamp", [2, 0, 1], NONE),
    "pandas spans": (pd.Series(SPANS), "duration", [0, 2, 1], NONE),
    "pandas arrow": (
        pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32())),
        "date",
        [2, 0, 1],
        NONE,
    ),
    "polars": (pl.Series([3, None, 2]), "number", [1, 0], [0, 1, 0]),
    "polars booleans": (pl.Series([True, None, False]), "boolean", [1, 0], [0, 1, 0]),
    "polars text": (pl.Series(["b", None, "a"]), "nominal", [1, 0], [0, 1, 0]),
    "polars Categorical": (
        pl.Series(GRADES, dtype=pl.Categorical),
        "nominal",
        [1, 0, 2],
        NONE,
    ),
    "polars Enum": (pl.Series(GRADES, dtype=pl.Enum(ORDER)), "ordered", [0, 2, 1], NONE),
    "polars dates": (pl.Series(DAYS), "date", [2, 0, 1], NONE),
    "polars durations": (pl.Series(SPANS), "duration", [0, 2, 1], NONE),
    "polars decimals": (pl.Series([2, 1, 3], dtype=pl.Decimal(9, 2)), "number", [1, 0, 2], NONE),
    "arrow ordered": (
        pa.chunked_array(
            [pa.DictionaryArray.from_arrays(pa.array([0, 2, 1]), pa.array(ORDER), ordered=True)]
        ),
        "ordered",
        [0, 2, 1],
        NONE,
    ),
    "arrow dictionary": (
        pa.chunked_array([pa.array(["b", "a", None]).dictionary_encode()]),
        "nominal",
        [0, 1],  # as its dictionary has them
        [0, 0, 1],
    ),
}


@pytest.mark.parametrize("given", COLUMNS)
def test_a_column_is_taken_by_its_type(given):
    values, kind, ranks, missing = COLUMNS[given]
    (taken,) = frame_of({"c": values}, "X").columns
    assert taken.kind == kind
    assert taken.missing.tolist() == [bool(each) for each in missing]
    known = taken.values[~taken.missing]
    assert np.unique(known, return_inverse=True)[1].tolist() == ranks


def test_frames_of_every_library_are_taken():
    columns = {"a": [3.0, 1.0], "b": ["x", "y"]}
    for frame, backend in (
        (pd.DataFrame(columns), "pandas"),
        (pl.DataFrame(columns), "polars"),
        (pa.table(columns), "pyarrow"),
    ):
        found = frame_of(frame, "X")
        assert found.backend == backend
        assert [column.kind for column in found.columns] == ["number", "nominal"]


def test_integers_as_names_of_pandas_become_texts():
    assert frame_of(pd.DataFrame(np.ones((4, 2))), "X").names == ("0", "1")
    with pytest.raises(ValueError, match="two '1'"):
        frame_of(pd.DataFrame(np.ones((4, 2)), columns=[1, "1"]), "X")


def test_every_column_that_cannot_be_taken_is_in_one_error():
    frame = pd.DataFrame({"mixed": [1, "x"], "fine": [1, 2], "z": [1j, 2], "far": [np.inf, 1]})
    with pytest.raises(TypeError) as caught:
        frame_of(frame, "X")
    for text in ("'mixed', got a mixture of int, str", "'z', got complex", "'far' has infinite"):
        assert text in str(caught.value)
    assert "fine" not in str(caught.value)
    with pytest.raises(TypeError, match=r"column 't', got Time; convert it"):
        frame_of(pl.DataFrame({"t": [dt.time(1)]}), "X")


def test_a_series_is_a_table_of_one_column():
    for series in (pd.Series([3.0, 1.0], name="a"), pl.Series("a", [3.0, 1.0])):
        assert frame_of(series, "Y").names == ("a",)
    assert frame_of(pd.Series([3.0, 1.0]), "Y").names == ("y",)


def test_what_is_not_in_memory_is_refused_with_a_remedy():
    for data, text in (("a.csv", "read it first"), (pl.LazyFrame({"a": [1]}), "collect it first")):
        with pytest.raises(TypeError, match=text):
            frame_of(data, "X")


def test_identifiers_are_refused_with_a_remedy():
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(65)]})
    with pytest.raises(ValueError, match=r"column 'id' has 65 categories, .* leave it out"):
        frame_of(frame, "X")
    assert len(frame_of(frame[:64], "X").columns[0].categories) == 64


def test_missing_values_are_refused_with_the_names_of_all_columns():
    frame = frame_of({"a": [1.0, np.nan], "b": [1, 2], "c": np.array(["x", None])}, "X")
    with pytest.raises(ValueError, match="columns 'a', 'c' of X have missing values"):
        refuse_missing(frame, "X")


def test_notes_say_how_columns_are_taken():
    frame = frame_of(
        {
            "a": [1.0, 2, 3],
            "b": [1, 1, 2],
            "c": [4] * 3,
            "d": list("xyz"),
            "e": list("xyx"),
            "f": [np.nan] * 3,
        },
        "X",
    )
    assert [column.note() for column in frame.columns] == [
        "number: by rank, no ties",
        "number: by rank, some ties",
        "number: constant, so 0 with every column",
        "nominal: 3 categories, no order is used",
        "nominal: 2 categories, a flag",
        "no value: all are missing",
    ]
