"""Text files as people have them: delimiters, decimal marks, encodings, compression, dialects."""

import gzip
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from dpmic_jax.data.schema import Categories, Number, Schema, TextFormat, Times
from dpmic_jax.data.source import column_names, files, open_source

SCHEMA = Schema(
    (
        ("price", Number(0, 10_000)),
        ("grade", Categories((1, 2, 1000))),
        ("town", Categories(("Köln", "Århus", "a,b"), ordered=True)),
    )
)
GERMAN = TextFormat(delimiter=";", decimal=",", thousands=".", encoding="latin-1", missing=("?",))
LINES = [
    "price;grade;town",
    "1.234,5;1.000;Köln",
    "0,25;2;Århus",
    '?;1;"a;b"',
    "7;1,0;a,b",
    "1;?;?",
]
PRICES, GRADES, TOWNS = [1234.5, 0.25, 5000, 7, 1], [2, 1, 0, 0, -1], [0, 1, -1, 2, -1]


def write(folder, lines=LINES, encoding="latin-1", name="table.csv"):
    content = "\n".join([*lines, ""]).encode(encoding)
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def read(path, text=GERMAN, schema=SCHEMA, rows=10**6):
    source = open_source(path, replace(schema, text=text))
    source.validate()
    return [np.concatenate(parts).tolist() for parts in zip(*source.batches(rows), strict=True)]


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "TABLE.TSV"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
def test_numbers_and_texts_of_another_dialect(name, encoding, tmp_path):
    path = write(tmp_path, encoding=encoding, name=name)
    found = read(path, replace(GERMAN, encoding=encoding), rows=2)
    assert found == [PRICES, GRADES, TOWNS]


def test_tabs_are_the_default_of_tsv_files(tmp_path):
    lines = [line.replace(";", "\t") for line in LINES]
    for name in ("table.tsv", "table.tsv.gz"):
        path = write(tmp_path, lines, name=name)
        assert read(path, replace(GERMAN, delimiter=""))[0] == PRICES
        assert column_names(path) == ("price", "grade", "town")


WRITTEN = {  # cell: number in the German format, with percent signs, and with plain marks
    "1.234,5": (1234.5, 1234.5, None),
    "1.234": (1234, 1234, 1.234),
    "1.5": (None, None, 1.5),  # and not 15
    "12.34,5": (None, None, None),
    "1.23.456": (123456, 123456, None),
    "1.234.56": (None, None, None),
    "1.234,5.6": (None, None, None),
    "1.2345": (None, None, 1.2345),
    "1,5": (1.5, 1.5, None),
    "1,5e2": (150, 150, None),
    "12 %": (None, 12, None),
    "12,5%": (None, 12.5, None),
    "%": (None, None, None),
    "-.": (None, None, None),
    " 3 ": (3, 3, 3),
    "True": (1, 1, 1),
}


@pytest.mark.parametrize("alone", [True, False])
def test_a_number_is_read_as_declared_or_missing(alone, tmp_path):
    schema = Schema((("x", Number(-1, 3)), ("y", Number(0, 1))))
    formats = [replace(GERMAN, percent=percent) for percent in (False, True)]
    formats.append(TextFormat(delimiter=";"))
    for place, text in enumerate(formats):
        expected = [1 if found[place] is None else found[place] for found in WRITTEN.values()]
        tables = [[cell] for cell in WRITTEN] if alone else [list(WRITTEN)]
        found = []
        for cells in tables:
            lines = ["x;y", *(f"{cell};0" for cell in cells), *["0;0"] * 4]
            found += read(write(tmp_path, lines), text, schema)[0][: len(cells)]
        assert found == expected


def test_a_comma_may_be_the_mark_of_decimals_alone(tmp_path):
    schema, text = (
        Schema((("x", Number(0, 9)), ("y", Number(0, 1)))),
        TextFormat(delimiter=";", decimal=","),
    )
    for last, expected in (("7", 7), ("1.5", 4.5), ("x", 4.5)):
        lines = ["x;y", "1,5;0", "2;0", ",5;0", "NA;0", f"{last};0"]
        assert read(write(tmp_path, lines), text, schema)[0] == [1.5, 2, 0.5, 4.5, expected]


def test_declared_numbers_and_dates_may_mean_a_missing_value(tmp_path):
    schema = Schema((("x", Number(-1000, 10)), ("g", Categories((-999, 1)))))
    lines = ["x,g", "-999,-999", "5,-9", "-9,1", ",1", "-999.0,2"]
    found = read(write(tmp_path, lines), TextFormat(missing=("-999", "-9")), schema)
    assert found == [[-495, 5, -495, -495, -999], [0, -1, 1, 1, -1]]


def test_a_header_in_another_dialect_is_hinted_at_in_every_command(tmp_path):
    path = write(tmp_path)
    text = TextFormat(encoding="latin-1")
    for ask in (lambda: read(path, text), lambda: column_names(path, text)):
        with pytest.raises(
            ValueError, match=r"semicolons between .* not commas; pass --delimiter ';'"
        ):
            ask()
    lines = ["price,grade,town", *LINES[1:]]
    with pytest.raises(ValueError, match=r'commas between .* not tabs; .*delimiter = ","'):
        read(write(tmp_path, lines, name="table.tsv"), text)
    lines = ["price;a,grade;town", *LINES[1:]]  # a name with a comma
    schema = Schema(tuple((name, Number(0, 1)) for name in ("price", "a,grade", "town")))
    with pytest.raises(ValueError, match="semicolons"):
        read(write(tmp_path, lines), text, schema)


def test_a_column_may_have_a_semicolon_in_its_name(tmp_path):
    path = write(tmp_path, ["a;b", "1", "2", "3", "4"])
    assert read(path, TextFormat(), Schema((("a;b", Number(0, 9)),))) == [[1, 2, 3, 4]]


def test_a_wrong_encoding_is_named_with_its_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"not UTF-8 text; .*--encoding 'cp1252'"):
        read(write(tmp_path), replace(GERMAN, encoding="utf-8"))
    path = write(tmp_path, encoding="utf-8")
    with pytest.raises(ValueError, match="not ascii text"):
        read(path, replace(GERMAN, encoding="ascii"))


def test_a_damaged_compressed_file_is_refused_by_its_name(tmp_path):
    path = write(tmp_path, name="table.csv.gz")
    whole = path.read_bytes()
    for content in (b"price;grade;town\n", whole[: len(whole) // 2], whole[:-9] + b"x" * 9):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"table\.csv\.gz") as caught:
            read(path)
        assert "234" not in str(caught.value)
        assert caught.value.__context__ is None


def test_records_longer_than_a_block_are_read_from_compressed_files(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 64)
    lines = [LINES[0], *(f"{price};1;{'x' * 500}" for price in range(5))]
    assert read(write(tmp_path, lines, name="table.csv.gz"))[0] == list(range(5))


def test_the_index_of_pandas_is_no_column(tmp_path):
    frame = pd.DataFrame({"x": range(5), "y": range(5)}, index=pd.Index(range(5, 10)))
    frame.to_parquet(tmp_path / "table.parquet", index=True)
    assert column_names(tmp_path / "table.parquet") == ("x", "y")
    schema = Schema((("x", Number(0, 9)), ("y", Number(0, 9))))
    assert read(tmp_path / "table.parquet", TextFormat(), schema) == [[0, 1, 2, 3, 4]] * 2
    schema = Schema((*schema.columns, ("__index_level_0__", Number(0, 9))))
    assert len(read(tmp_path / "table.parquet", TextFormat(), schema)) == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"delimiter": ";;"},
        {"delimiter": '"'},
        {"delimiter": "é"},
        {"decimal": ""},
        {"decimal": "1"},
        {"thousands": "."},
        {"encoding": "klingon"},
        {"encoding": "zip"},
        {"encoding": 8},
        {"percent": 1},
        {"missing": "?"},
        {"missing": [1]},
        {"dates": "%d %B %Y"},
        {"dates": "%"},
    ],
    ids=str,
)
def test_settings_that_no_file_can_have_are_refused(settings):
    (name,) = settings
    with pytest.raises((ValueError, TypeError), match=name):
        TextFormat(**settings)


DATES = {  # cell: day since 1970, if days come first and months have no names
    "29.02.2020": 18321,
    "1.3.2020": 18322,
    " 01.03.2020 ": 18322,
    "2020-02-29": None,
    "30.02.2020": None,
    "29.02.20": None,
    "٢٩.02.2020": None,
    "": None,
}


def test_dates_are_read_in_the_declared_form_and_no_other(tmp_path):
    schema = Schema((("x", Times(date(2020, 1, 1), date(2020, 12, 31))), ("y", Number(0, 1))))
    middle = (18262 + 18627) / 2
    path = write(tmp_path, ["x,y", *(f"{cell},0" for cell in DATES)], "utf-8")
    found = read(path, TextFormat(dates="%d.%m.%Y"), schema)[0]
    assert found == [middle if day is None else day for day in DATES.values()]
    assert read(path, TextFormat(), schema)[0] == [middle] * 3 + [18321] + [middle] * 4


def test_timestamps_in_a_declared_form_may_have_a_zone(tmp_path):
    schema = Schema((("x", Times(datetime(2020, 1, 1), datetime(2021, 1, 1))), ("y", Number(0, 1))))
    lines = ["x,y", *["01/02/2020 03:04 +0130,0"] * 4]
    expected = datetime(2020, 2, 1, 1, 34, tzinfo=UTC).timestamp() * 1e6
    found = read(write(tmp_path, lines), TextFormat(dates="%d/%m/%Y %H:%M %z"), schema)[0]
    assert found == [expected] * 4
