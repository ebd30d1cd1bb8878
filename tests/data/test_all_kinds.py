"""Columns of every kind: the same bits however a table comes in, record by record."""

import csv
import gzip
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.limits import NominalLimits
from dpmic_jax.data.schema import (
    Categories,
    FixedValue,
    MissingBin,
    Number,
    Schema,
    TextFormat,
    Times,
)
from dpmic_jax.data.source import arrow as arrow_columns
from dpmic_jax.data.source import moments, open_source

EAST = timezone(timedelta(hours=5, minutes=30))
YEARS = date(1960, 1, 1), date(2030, 1, 1)
HOURS = datetime(1960, 1, 1), datetime(2030, 1, 1)
SCHEMA = Schema(
    (
        ("real", Number(0, 10, missing=MissingBin())),
        ("whole", Number(0, 9, whole=True)),
        ("flag", Categories((True, False))),
        ("blood", Categories(("A", "B", "AB"), other="rest")),
        ("stage", Categories(("I", "II", "III"), ordered=True)),
        ("ward", Categories((1, 2, 7), other=0, missing=FixedValue(7))),
        ("born", Times(*YEARS, missing=MissingBin())),
        ("admitted", Times(*HOURS)),
        ("seen", Times(*(end.replace(tzinfo=UTC) for end in HOURS), missing=MissingBin())),
        ("stay", Times(timedelta(0), timedelta(9), missing=FixedValue(timedelta(1)))),
    ),
    ignored=("notes",),
)
RAW = {
    "real": [0.1, None, 1e-300, 7.0, 11.0, 2.5],
    "notes": ["x"] * 6,
    "whole": [1, 9, None, 3, 12, 0],
    "flag": [True, None, False, True, False, True],
    "blood": ["AB", "A", "0", None, "B", "A"],
    "stage": ["II", "I", None, "III", "x", "I"],
    "ward": [7, None, 5, 1, 2, 1],
    "born": [
        date(1970, 1, 2),
        None,
        date(1959, 12, 31),
        date(2000, 3, 1),
        date(2031, 1, 1),
        date(1970, 1, 1),
    ],
    "admitted": [
        datetime(1970, 1, 1, 0, 0, 0, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        None,
        datetime(2000, 3, 1, 12),
        datetime(2020, 2, 29, 1, 2, 3, 456_789),
        datetime(1970, 1, 1),
    ],
    "seen": [
        datetime(1970, 1, 1, 5, 30, 1, tzinfo=EAST),
        None,
        datetime(2000, 3, 1, 12, tzinfo=EAST),
        datetime(1970, 1, 1, 0, 0, 0, 7, tzinfo=EAST),
        datetime(1970, 1, 1, 5, 30, tzinfo=EAST),
        datetime(2020, 2, 29, 1, 2, 3, 456_789, tzinfo=EAST),
    ],
    "stay": [
        timedelta(microseconds=1),
        timedelta(2, 3, 4),
        None,
        timedelta(days=-1, microseconds=5),
        timedelta(hours=36),
        timedelta(0),
    ],
}
DAY = 86_400 * 10**6
MARCH = 11_017  # days from 1970 to 1 March 2000: 30 years with 7 leap days, 31 + 29 days
EAST_OF = DAY // 48 * 11  # five and a half hours
NOON = MARCH * DAY + DAY // 2 - EAST_OF
LEAP = 18_321 * DAY + 3_723_456_789  # 50 years with 12 leap days, 31 + 28 days
EXPECTED = {
    "real": [0.1, -np.inf, 1e-300, 7.0, 11.0, 2.5],
    "whole": [1, 9, 4.5, 3, 12, 0],
    "flag": [0, -1, 1, 0, 1, 0],
    "blood": [2, 0, 3, -1, 1, 0],
    "stage": [1, 0, -1, 2, -1, 0],
    "ward": [2, 2, 3, 0, 1, 0],
    "born": [1, -np.inf, -3654, MARCH, 22_280, 0],
    "admitted": [1, -1, 9131 * DAY, MARCH * DAY + DAY // 2, LEAP, 0],
    "seen": [10**6, -np.inf, NOON, 7 - EAST_OF, 0, LEAP - EAST_OF],
    "stay": [1, 2 * DAY + 3_000_004, DAY, 5 - DAY, DAY * 3 // 2, 0],
}


def arrow(raw=RAW, unit="us", zone="Asia/Kolkata"):
    types = {"born": pa.date32(), "admitted": pa.timestamp(unit), "stay": pa.duration(unit)}
    types["seen"] = pa.timestamp(unit, zone)
    return pa.table({name: pa.array(cells, types.get(name)) for name, cells in raw.items()})


def with_dictionaries(table):
    encoded = {name: table[name].dictionary_encode() for name in ("blood", "stage", "ward")}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **encoded})


def polars(raw=RAW):
    enums = {"blood": pl.Enum(["0", "A", "B", "AB"]), "stage": pl.Categorical()}
    return pl.DataFrame(raw, strict=False).with_columns(
        pl.col(name).cast(kind) for name, kind in enums.items()
    )


def pandas(raw=RAW, kind="us"):
    """As pandas has it: dates are timestamps, and whole numbers with a hole are floats."""
    table = pd.DataFrame(raw).astype({"blood": "category", "ward": "category"})
    moments = {"born": "datetime64", "admitted": "datetime64", "stay": "timedelta64"}
    return table.astype({name: f"{moment}[{kind}]" for name, moment in moments.items()})


def text(folder, raw=RAW, name="table.csv", delimiter=",", opened=open):
    with opened(folder / name, "wt", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=delimiter)
        rows.writerow(raw)
        rows.writerows(zip(*raw.values(), strict=True))
    return folder / name


def saved(folder, write, name):
    write(folder / name)
    return folder / name


def parquet(folder, table=None, **settings):
    path = folder / "table.parquet"
    pyarrow.parquet.write_table(arrow() if table is None else table, path, **settings)
    return path


FLAVOURS = {
    "lists": lambda _: RAW,
    "records": lambda _: pd.DataFrame(RAW, dtype=object),
    "pandas": lambda _: pandas(),
    "pandas nanoseconds": lambda _: pandas(kind="ns"),
    "pandas nullable": lambda _: pd.DataFrame(RAW).convert_dtypes(),
    "pandas on arrow": lambda _: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda _: polars(),
    "polars of arrow": lambda _: pl.from_arrow(arrow(unit="ns")),
    "pyarrow": lambda _: arrow(),
    "pyarrow nanoseconds": lambda _: with_dictionaries(arrow(unit="ns", zone="UTC")),
    "csv": text,
    "csv of pandas": lambda folder: saved(
        folder, lambda path: pandas().to_csv(path, index=False), "table.csv"
    ),
    "csv of polars": lambda folder: saved(
        folder, polars({**RAW, "stay": list(map(str, RAW["stay"]))}).write_csv, "table.csv"
    ),
    "csv.gz": lambda folder: text(folder, name="table.csv.gz", opened=gzip.open),
    "tsv": lambda folder: text(folder, name="table.tsv", delimiter="\t"),
    "parquet": parquet,
    "parquet of pandas": lambda folder: saved(
        folder, pandas().set_index("notes", drop=False).to_parquet, "table.parquet"
    ),
    "parquet nanoseconds": lambda folder: parquet(folder, with_dictionaries(arrow(unit="ns"))),
}


def columns(data, rows=10**9):
    source = open_source(data, SCHEMA)
    assert source.validate() == 6
    batches = list(source.batches(rows))
    return {name: [batch[place] for batch in batches] for place, name in enumerate(source.names)}


@pytest.fixture(scope="module")
def bits():
    """Dtype and bytes of each column of the lists, after its values were compared by hand."""
    found = {name: np.concatenate(parts) for name, parts in columns(RAW).items()}
    assert found.keys() == EXPECTED.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, EXPECTED[name], err_msg=name)
    return {name: (values.dtype, values.tobytes()) for name, values in found.items()}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_kind_has_the_same_bits_in_every_table_and_batch(flavour, bits, tmp_path):
    data = FLAVOURS[flavour](tmp_path)
    for rows in (1, 4, 10):
        for name, parts in columns(data, rows).items():
            assert {part.dtype for part in parts} == {bits[name][0]}, name
            assert b"".join(part.tobytes() for part in parts) == bits[name][1], name


def test_declared_and_other_categories_have_bins_and_missing_ones_their_own():
    limits = dict(zip(EXPECTED, open_source(RAW, SCHEMA).bounds, strict=True))
    assert limits["blood"] == NominalLimits(4, missing=True)
    assert limits["ward"] == NominalLimits(4, missing=False)


ANYTHING = [0, 2.5, True, None, "", "x", "1.0", "NaN", 10**400, date.min, datetime.max]
ANYTHING += [timedelta.max, np.datetime64("NaT"), pd.NaT, pd.NA, object(), [1], b"A"]


@pytest.mark.parametrize("cell", ANYTHING, ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize(
    "make", [lambda raw, _: raw, lambda raw, folder: text(folder, raw)], ids=["lists", "CSV"]
)
def test_a_record_of_anything_leaves_the_codes_of_all_others(make, cell, bits, tmp_path):
    raw = {name: [*cells[:3], cell, *cells[4:]] for name, cells in RAW.items()}
    others = np.arange(6) != 3
    for name, (values,) in columns(make(raw, tmp_path)).items():
        before = np.frombuffer(bits[name][1], bits[name][0])
        assert values.dtype == before.dtype
        assert values[others].tobytes() == before[others].tobytes(), name


def test_whole_categories_are_read_from_numbers_that_pandas_writes_with_a_point(tmp_path):
    raw = {**RAW, "ward": [f"{ward}.0" if ward else None for ward in RAW["ward"]]}
    (ward,) = columns(text(tmp_path, raw))["ward"]
    np.testing.assert_array_equal(ward, EXPECTED["ward"])


def test_numbers_are_no_dates_and_dates_no_durations(tmp_path):
    for name, cells in (("born", RAW["whole"]), ("seen", RAW["stay"]), ("stay", RAW["born"])):
        place = list(RAW).index(name)
        table = arrow().set_column(place, name, pa.array(cells))
        for data in (table, pl.from_arrow(table), parquet(tmp_path, table)):
            with pytest.raises(TypeError, match=f"in column '{name}', got .*; declare low"):
                open_source(data, SCHEMA)
    for kind in ("M8[D]", "m8[M]"):
        with pytest.raises(TypeError, match="expected durations in column 'stay', got d"):
            open_source({**RAW, "stay": np.arange(6).astype(kind)}, SCHEMA)


def test_the_owner_sees_what_is_missing_unreadable_and_clipped(tmp_path):
    raw = {**RAW, "born": ["1970-02-30", *RAW["born"][1:]]}
    source = open_source(text(tmp_path, raw), SCHEMA)
    found = {name: tally.counts for name, tally in source.tally().items()}
    assert found["born"] == (1, 1, 1, 1)
    assert found["admitted"] == (1, 0, 0, 0)
    assert found["stay"] == (1, 0, 1, 0)
    assert found["blood"] == (1, 1, 0, 0)  # 0 counts as the rest
    assert found["whole"] == (1, 0, 0, 1)


digits = st.integers(0, 99).map("{:02}".format)
near_times = st.builds(
    "{}-{}-{}{}".format,
    st.sampled_from(["2019", "2020", "1900", "9999", "0999", "0000", "2020 "]),
    digits,
    digits,
    st.just("")
    | st.builds("{}{}:{}:{}{}".format, st.sampled_from("T t_"), digits, digits, digits, st.just(""))
    | st.builds(" 12:30:{}.{}{}".format, digits, st.integers(0, 10**7), st.sampled_from(["", "Z"])),
)


@pytest.mark.parametrize("kind", ["born", "admitted"])
@given(
    texts=st.lists(near_times | st.sampled_from(["", "NA", " 2020-02-29 ", "24:00"]), max_size=3)
)
def test_texts_of_times_are_read_alike_alone_and_together(kind, texts):
    rule, text = SCHEMA[kind], TextFormat()
    expected = [moments.text_moment(each, rule) for each in texts]
    together = arrow_columns.moments_of(pa.array(texts, pa.string()), rule, text)
    np.testing.assert_array_equal(together, expected)
    for each, one in zip(texts, expected, strict=True):
        alone = arrow_columns.moments_of(pa.array([each, None]), rule, text)
        np.testing.assert_array_equal(alone, [one, np.nan])
