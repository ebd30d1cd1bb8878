"""Texts of dates, timestamps and durations, against pandas, polars and hand-made values."""

from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.iso_8601 import duration, instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR = 3600 * 10**6
zones = st.none() | st.integers(-1439, 1439).map(lambda east: timezone(timedelta(minutes=east)))


@given(moment=st.datetimes(timezones=zones), mark=st.sampled_from("T "))
def test_an_instant_is_what_python_writes(moment, mark):
    expected = (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // MICROSECOND
    assert instant(moment.isoformat(mark)) == expected


@given(span=st.timedeltas(timedelta(-(10**5)), timedelta(10**5)))
def test_a_duration_is_what_python_pandas_and_polars_write(span):
    forms = [str(span), str(pd.Timedelta(span)), pd.Timedelta(span).isoformat()]
    forms += pl.Series([span]).dt.to_string().to_list()
    assert {form: duration(form) for form in forms} == dict.fromkeys(forms, span // MICROSECOND)


FORMS = {
    "1970-01-02": 24 * HOUR,
    "1970-01-01 01:00": HOUR,
    "1970-01-01T01:00Z": HOUR,
    "1970-01-01 01:00:00 UTC": HOUR,
    "1970-01-01 01:00:00+01": 0,
    "1970-01-01T01:00:00+0030": HOUR // 2,
    "1970-01-01 00:00:00.0000019": 1,
    "1969-12-31 23:59:59.9999999": -1,
}
SPANS = {
    "P2W": 14 * 24 * HOUR,
    "PT36H": 36 * HOUR,
    "-P1DT1M": -24 * HOUR - 60 * 10**6,
    "PT0.0000019S": 1,
    "-PT0.0000001S": -1,
    "100:30": 100 * HOUR + HOUR // 2,
    "2 days": 48 * HOUR,
    "1 day, 1:00:00": 25 * HOUR,
    "-01:00:00.5": -HOUR - 500_000,
}
NEITHER = ["", "1970-02-30", "70-01-01", "1970-1-1", "19700101", "1970-01-01T", "0000-01-01"]
NEITHER += ["1970-01-01 24:00", "1970-01-01 00:00:60", "1970-01-01+01:00", "1970-01-01 1:00"]
NEITHER += ["1970-01-01T00:00:00+24:00", "\u0661970-01-01", "now", "P", "PT", "P1M", "P1Y", "1 d"]
NEITHER += ["1:2:3", "P1DT", "--P1D", "12", "1.5", f"P{'9' * 5000}D"]


@pytest.mark.parametrize("text", FORMS)
def test_other_forms_of_instants(text):
    assert instant(text) == FORMS[text]
    assert duration(text) is None


@pytest.mark.parametrize("text", SPANS)
def test_other_forms_of_durations(text):
    assert duration(text) == SPANS[text]
    assert instant(text) is None


@pytest.mark.parametrize("text", NEITHER)
def test_what_is_neither(text):
    assert instant(text) is None
    assert duration(text) is None
