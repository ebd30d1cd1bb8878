"""Bounds files from codebooks: CSV files, and labels of SAS, Stata and SPSS files."""

import builtins
import datetime

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from dpmic_jax.data.schema import (
    Categories,
    FixedValue,
    MissingBin,
    Number,
    Times,
    from_codebook,
    read_schema,
)

CODEBOOK = """\
Name,Type,Min,Max,Categories,Ordered,Other,Missing,Ignore,Description
age,integer,18,90,,,,,,Age in years
dose,float,0,2.5,,,,0.5,,
sex,,,,1=male|2=female,,,,,
stage,ordered,,,I;II;III,,,bin,,
grade,,,,1|2|3,yes,,,,
site,text,,,north|south,no,rest,,,
code,text,,,01|02,,,,,
admitted,date,2015-01-01,2024-12-31,,,,,,
smoker,boolean,,,,,,,,
patient,text,,,,,,,yes,
bmi,float,,,,,,,,"Body mass,
kg per square metre"
remarks,,,,,,,,,
"""


@pytest.fixture
def book(tmp_path):
    def book(text, name="book.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return book


def schema_in(text, tmp_path, filled="[0, 1]"):
    path = tmp_path / "bounds.toml"
    path.write_text(text.replace("= []", f"= {filled}"), encoding="utf-8")
    return read_schema(path)


def test_a_codebook_says_what_a_bounds_file_says(book, tmp_path):
    text = from_codebook(book(CODEBOOK))
    schema = schema_in(text, tmp_path)
    assert dict(schema.columns) == {
        "age": Number(18, 90, whole=True),
        "dose": Number(0, 2.5, missing=FixedValue(0.5)),
        "sex": Categories((1, 2)),
        "stage": Categories(("I", "II", "III"), ordered=True, missing=MissingBin()),
        "grade": Categories((1, 2, 3), ordered=True),
        "site": Categories(("north", "south"), other="rest"),
        "code": Categories(("01", "02")),
        "admitted": Times(datetime.date(2015, 1, 1), datetime.date(2024, 12, 31)),
        "smoker": Categories((False, True)),
        "bmi": Number(0, 1),  # filled in
        "remarks": Number(0, 1),
    }
    assert schema.ignored == ("patient",)
    assert "# Age in years\n" in text
    assert "# low, high; Body mass, kg per square metre\n" in text


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_codebook_may_have_other_delimiters_and_few_headings(mark, book, tmp_path):
    text = f"variable{mark}high{mark}LOW{mark}notes\na*{mark}1{mark}-1{mark}x\n\n"
    schema = schema_in(from_codebook(book(text, "book.txt")), tmp_path)
    assert schema.columns == (("a*", Number(-1, 1)),)


def test_all_problems_of_a_codebook_are_in_one_error(book):
    text = "name,kind,low,high,ordered\na,number,2,1,\nb,nummber,0,1,\nc,,0,,\nd,,0,1,\nd,,0,1,\n"
    with pytest.raises(ValueError, match=r"book\.csv has 4 problems") as caught:
        from_codebook(book(text))
    lines = str(caught.value).splitlines()[1:]
    said = ("'a': expected low < high", "'b': kind", "'c': no high", "'d': described twice")
    assert all(word in line for word, line in zip(said, lines, strict=True))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "heading name"),
        ("age,low\n1,2\n", "heading name"),
        ("name,min,low\na,0,1\n", "two headings for low"),
        ("name\n", "a line for each column"),
        ("name,ordered,categories\na,perhaps,x\n", "'a': expected yes or no"),
        ("name,categories\na,x,y\n", "'a': more cells than headings"),
    ],
)
def test_what_is_no_codebook_is_refused(book, text, match):
    with pytest.raises(ValueError, match=match):
        from_codebook(book(text))


def test_a_codebook_has_to_be_there_and_of_a_known_type(tmp_path, book):
    with pytest.raises(FileNotFoundError, match="no codebook"):
        from_codebook(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"ending in \.csv, \.sav"):
        from_codebook(book("x", "book.doc"))
    with pytest.raises(ValueError, match=r"damaged, or not a \.sav file"):
        from_codebook(book("x", "book.sav"))


LABELS = {
    "sex": {1: "male", 2: "female", 9: "refused"},
    "age": {99: "unknown"},
    "stage": {1: "I", 2: "II", 3: "III"},
}
WRITERS = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}


def survey(folder, kind, marker=98765):
    """A file with labels where its kind has them, and with values that no codebook may show."""
    frame = pd.DataFrame(
        {
            "sex": np.array([1, 2, 9, 1], float),
            "age": np.array([marker, 20, 99, 30], float),
            "stage": np.array([1, 2, 3, 1], float),
            "name": [f"SECRET{marker}", "b", "c", "d"],
            "day": [datetime.date(1970 + marker % 97, 1, 1)] * 4,
            "time": [datetime.datetime(1970 + marker % 97, 1, 1)] * 4,
        }
    )
    more = {"sav": {"variable_value_labels": LABELS}, "dta": {"variable_value_labels": LABELS}}
    more["sav"] |= {
        "missing_ranges": {"sex": [9], "age": [{"lo": 97, "hi": 99}]},
        "variable_measure": {"stage": "ordinal", "age": "scale"},
    }
    path = folder / f"survey{marker}.{kind}"
    WRITERS[kind](frame, path, column_labels={"age": "Age in years"}, **more.get(kind, {}))
    return path


def test_labels_of_spss_become_categories_without_those_that_mean_missing(tmp_path):
    text = from_codebook(survey(tmp_path, "sav"))
    found = schema_in(text, tmp_path)
    assert found["sex"] == Categories((1, 2))
    assert found["stage"] == Categories((1, 2, 3), ordered=True)
    assert "# 1 male, 2 female\n" in text
    said = "# low, high; Age in years; where it is 97 to 99, leave the cell of the table empty\n"
    assert said in text
    labelled = schema_in(from_codebook(survey(tmp_path, "sav"), labels=True), tmp_path)
    assert labelled["sex"] == Categories(("male", "female"))
    assert labelled["stage"] == Categories(("I", "II", "III"), ordered=True)


def test_labels_of_stata_become_categories(tmp_path):
    text = from_codebook(survey(tmp_path, "dta"))
    found = schema_in(text, tmp_path)
    assert found["sex"] == Categories((1, 2, 9))
    assert found["stage"] == Categories((1, 2, 3))
    assert "low, high; Age in years; 99 unknown\n" in text  # one label does not make categories


@pytest.mark.parametrize("kind", WRITERS)
def test_kinds_are_those_of_types_and_formats(kind, tmp_path):
    lines = {}
    for line in from_codebook(survey(tmp_path, kind)).split("[columns]\n")[1].splitlines():
        lines[line.split(" = ")[0]] = line
    assert "first and last day" in lines["day"]
    assert "first and last time" in lines["time"]
    assert "categories; or ignore it" in lines["name"]
    assert "low, high" in lines["age"]


@pytest.mark.parametrize("kind", WRITERS)
def test_values_are_not_read(kind, tmp_path):
    one, other = (from_codebook(survey(tmp_path, kind, marker)) for marker in (98765, 12345))
    assert one == other
    values = pyreadstat.__dict__[{"sav": "read_sav", "dta": "read_dta", "xpt": "read_xport"}[kind]]
    assert "SECRET98765" in str(values(tmp_path / f"survey98765.{kind}")[0])  # they differ


def test_what_to_install_is_said(tmp_path, book, monkeypatch):
    path, real = book("x", "book.dta"), builtins.__import__

    def none(name, *rest):
        if name == "pyreadstat":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r"dpmic_jax\[codebooks\]"):
        from_codebook(path)
