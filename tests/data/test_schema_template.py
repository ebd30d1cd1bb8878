"""Templates: a line for each column, its kind if its type says it, and nothing of its values."""

import datetime
import decimal
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmic_jax.data.schema import Number, Schema, read_schema, template
from dpmic_jax.data.source import arrow_kinds, column_kinds

MARKERS = ("SECRET", "98765", "1999")

TYPES = {
    "real": pa.float32(),
    "money": pa.decimal128(9, 2),
    "count": pa.int16(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "level": pa.dictionary(pa.int8(), pa.string()),
    "stage": pa.dictionary(pa.int8(), pa.string(), ordered=True),
    "day": pa.date32(),
    "time": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    "stay": pa.duration("s"),
    "nothing": pa.null(),
    "photo": pa.binary(),
    "many": pa.list_(pa.int64()),
    "clock": pa.time64("us"),
}
KINDS = dict(
    zip(
        TYPES,
        [
            *("number", "number", "whole", "boolean", "nominal", "nominal", "ordered", "date"),
            *("timestamp", "timestamp with time zone", "duration", None, *["ignored"] * 3),
        ],
        strict=True,
    )
)


def secrets():
    day = datetime.datetime(1999, 1, 1)
    values = {"real": 98765.0, "money": decimal.Decimal(98765), "count": 9876, "flag": True}
    values |= dict.fromkeys(("text", "level", "stage"), "SECRET") | {"photo": b"SECRET"}
    values |= {"day": day.date(), "time": day, "instant": day, "stay": datetime.timedelta(98765)}
    values |= {"nothing": None, "many": [98765], "clock": day.time()}
    return pa.table({name: pa.array([values[name]] * 4, kind) for name, kind in TYPES.items()})


def test_kinds_are_those_of_arrow_types():
    assert arrow_kinds(pa.schema(list(TYPES.items()))) == KINDS


def test_a_parquet_file_has_the_kinds_of_its_types(tmp_path):
    pa.parquet.write_table(secrets(), tmp_path / "table.parquet")
    assert column_kinds(tmp_path / "table.parquet") == KINDS


def test_a_data_frame_has_the_kinds_of_its_types():
    table = secrets().drop_columns(["nothing", "photo", "many", "clock"])
    # narwhals does not say of all frames whether categories have an order.
    kinds = {name: KINDS[name] for name in table.column_names} | {"stage": "nominal"}
    assert column_kinds(table) == kinds
    assert column_kinds(pl.from_arrow(table)) == kinds
    # Columns of Python objects have no type.
    objects = dict.fromkeys(("money", "day"))
    found = column_kinds(table.to_pandas())
    assert found.pop("text") in (None, "nominal")  # a type since pandas 3
    assert found == {name: {**kinds, **objects}[name] for name in found}


def test_arrays_and_lists_have_the_kinds_of_their_dtypes():
    columns = {
        "a": np.zeros(4, np.int8),
        "b": np.zeros(4, bool),
        "c": np.zeros(4, "M8[s]"),
        "d": np.zeros(4, "m8[s]"),
        "e": np.zeros(4, "U3"),
        "f": np.zeros(4, complex),
        "g": [1, 2, 3, 4],
        "h": pd.Series([1, 2, 3, 4], dtype=object),
    }
    kinds = ("whole", "boolean", "timestamp", "duration", "nominal", "ignored", None, None)
    assert tuple(column_kinds(columns).values()) == kinds


def test_csv_files_have_names_and_no_types(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert column_kinds(tmp_path / "table.csv") == {"a": None, "b": None}


def test_nothing_of_the_values_is_in_a_template(tmp_path):
    """A Parquet file keeps the least and largest values, and dictionaries list values."""
    path = tmp_path / "table.parquet"
    secrets().to_pandas().to_parquet(path)  # pandas adds metadata of its own
    texts = [template(column_kinds(data)) for data in (path, secrets(), secrets().to_pandas())]
    assert not any(marker in text for text in texts for marker in MARKERS)
    footer = pa.parquet.read_metadata(path)
    assert "SECRET" in str(footer.row_group(0).column(4).statistics)  # the markers are there


def test_the_index_that_pandas_stores_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4]}, index=[3, 4, 5, 9])
    frame.to_parquet(tmp_path / "table.parquet")
    assert "__index_level_0__" in pa.parquet.read_schema(tmp_path / "table.parquet").names
    assert column_kinds(tmp_path / "table.parquet") == {"a": "number"}


AWKWARD = ["age", 'q"uo\nte', "a.b", "", "größe", "a*", "x[*]", "__index_level_0__"]


@pytest.mark.parametrize("names", [AWKWARD, iter(AWKWARD), dict.fromkeys(AWKWARD)])
def test_a_template_asks_for_each_column_and_is_a_bounds_file_once_filled_in(names, tmp_path):
    path = tmp_path / "bounds.toml"
    text = template(names)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"has {len(AWKWARD)} problems") as caught:
        read_schema(path)
    assert str(caught.value).count("no bounds: write [low, high]") == len(AWKWARD)
    path.write_text(text.replace("= []", "= [0, 1]"), encoding="utf-8")
    assert read_schema(path) == Schema(tuple((name, Number(0, 1)) for name in AWKWARD))


def lines(kinds):
    return [
        line.split("#")[0].rstrip() for line in template(kinds).split("[columns]\n")[1].splitlines()
    ]


def test_many_columns_of_one_kind_share_a_line():
    names = [f"tax{number}" for number in range(1, 21)]
    assert lines(names) == ['"tax*" = []']
    assert "# low, high; or categories; or ignore it; 20 columns, tax1 to tax20" in template(names)
    assert lines(["q1_a", "x", "q2_a", "q3_a", "q4_a"]) == ['"q*_a" = []', "x = []"]
    assert lines(names[:3]) == ["tax1 = []", "tax2 = []", "tax3 = []"]  # too few


def test_columns_share_no_line_with_others_that_the_pattern_would_match():
    names = [f"tax{number}" for number in range(1, 6)]
    assert '"tax*" = []' not in lines([*names, "taxes"])
    assert len(lines([*names, "taxes"])) == 6
    assert len(lines(dict.fromkeys(names, "number") | {"tax6": "date"})) == 6
    assert lines([f"a*{number}" for number in range(5)]) == ['"a[*]*" = []']


def test_what_is_left_to_do_for_each_kind():
    """Every line is TOML; flags and types that cannot be screened are complete."""
    found = tomllib.loads(template(KINDS))["columns"]
    assert found["count"] == {"kind": "whole", "bounds": []}
    assert found["stay"] == {"kind": "duration", "bounds": []}
    assert found["stage"] == {"kind": "ordered", "categories": []}
    assert found["flag"] == {"kind": "boolean"}
    assert found["photo"] == {"ignore": True}
    for name in ("real", "money", "text", "level", "day", "time", "instant", "nothing"):
        assert found[name] == []
