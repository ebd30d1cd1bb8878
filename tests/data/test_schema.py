import json
import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.schema import (
    Categories,
    FixedValue,
    Midpoint,
    MissingBin,
    MissingRefusedWarning,
    Number,
    Schema,
    SparePart,
    TextFormat,
    Times,
    read_schema,
    schema_of,
)

EXAMPLE = """
[columns.age]
low = 18
high = 90

[columns.sex]
categories = ["f", "m"]

[columns.income]
low = 0
high = 1e6
missing = "bin"

[columns.visits]
low = 0
high = 50
missing = { value = 0 }

[columns.patient_id]
ignore = true
"""


def test_a_bounds_file_says_what_it_looks_like(read):
    assert read(EXAMPLE) == Schema(
        (
            ("age", Number(18, 90)),
            ("sex", Categories(("f", "m"))),
            ("income", Number(0, 1e6, missing=MissingBin())),
            ("visits", Number(0, 50, missing=FixedValue(0))),
        ),
        ignored=("patient_id",),
    )


finite = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70))
zones = st.sampled_from([UTC, timezone(timedelta(hours=-3)), timezone(timedelta(seconds=3661))])
inner = {"min_value": datetime(2, 1, 1), "max_value": datetime(9998, 1, 1)}
texts = st.text(max_size=8)
names = st.one_of(texts, st.sampled_from(["a*", "[*]", "x[*", "*]"]))
distinct = st.one_of(
    st.lists(texts, min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4, unique=True),
    st.just([True, False]),
)


def in_order(values):
    """Two different values, the smaller one first."""
    return st.lists(values, min_size=2, max_size=2, unique=True).map(sorted)


def missing_for(draw, values):
    missing = draw(st.sampled_from([None, MissingBin(), FixedValue(values[0])]))
    return {} if missing is None else {"missing": missing}


@st.composite
def numbers(draw):
    low, high = draw(in_order(finite))
    fields = missing_for(draw, [low])
    if float(low).is_integer() and float(high).is_integer():
        fields["whole"] = draw(st.booleans())
    if not fields.get("whole") and low > 0:
        fields["scale"] = draw(st.sampled_from(["linear", "log", "sqrt"]))
    middle = float(low) / 2 + float(high) / 2
    if fields.get("scale", "linear") == "linear" and low < middle < high:
        fields["breakpoints"] = draw(st.sampled_from([(), (middle,)]))
    return Number(low, high, **fields)


@st.composite
def times(draw):
    moments = st.sampled_from(
        [
            st.dates(),
            st.datetimes(),
            st.datetimes(**inner, timezones=zones),
            st.timedeltas(),
        ]
    )
    low, high = draw(in_order(draw(moments)))
    return Times(low, high, **missing_for(draw, [low]))


@st.composite
def categories(draw):
    values = draw(distinct)
    other = draw(st.sampled_from([None, values[-1]]))
    fields = missing_for(draw, values)
    return Categories(tuple(values), ordered=draw(st.booleans()), other=other, **fields)


formats = st.builds(
    TextFormat,
    delimiter=st.sampled_from([";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    thousands=st.sampled_from(["", " ", "'"]),
    percent=st.booleans(),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    missing=st.lists(texts).map(tuple),
    dates=st.sampled_from(["", "%d.%m.%Y", "%Y/%m/%d %H:%M"]),
)


@st.composite
def schemas(draw, patterns=True):
    rules = st.one_of(numbers(), times(), categories())
    columns = draw(st.dictionaries(names, rules, min_size=1, max_size=4))
    ignored = draw(st.sets(names, max_size=3)) - columns.keys()
    person = draw(st.none() | texts.filter(lambda name: name not in {*columns, *ignored}))
    stars = st.dictionaries(st.sampled_from(["*", "a*", "*[*]"]), st.none() | rules, max_size=2)
    return Schema(
        tuple(columns.items()),
        tuple(ignored),
        person=person,
        records_per_person=None if person is None else draw(st.integers(1, 9)),
        text=draw(st.one_of(st.just(TextFormat()), formats)),
        patterns=tuple(draw(stars).items()) if patterns else (),
    )


@given(schema=schemas())
def test_a_written_schema_is_read_back_equal(schema, tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "bounds.toml"
    path.write_bytes(schema.to_toml().encode())
    again = read_schema(path)
    assert again == schema
    # Equal categories may differ in their type: (0, 1) == (False, True).
    assert again.to_toml() == schema.to_toml()
    assert [rule.kind for _, rule in again.columns if isinstance(rule, Categories)] == [
        rule.kind for _, rule in schema.columns if isinstance(rule, Categories)
    ]


@given(one=schemas(patterns=False), other=schemas(patterns=False))
def test_canonical_text_differs_iff_what_is_computed_does(one, other):
    def meaning(schema):
        rules = {
            name: (
                set(rule.values) if rule.nominal else rule.values,
                *(rule.kind, rule.missing, rule.nominal, rule.other),
            )
            if isinstance(rule, Categories)
            else (rule.number, rule.kind if isinstance(rule, Times) else rule.whole)
            for name, rule in schema.columns
        }
        return rules, set(schema.ignored), schema.person, schema.records_per_person, schema.text

    assert (one.canonical() == other.canonical()) == (meaning(one) == meaning(other))


def test_equivalent_schemas_have_the_same_canonical_text():
    one = Schema((("a", Number(0, 1)), ("b", Categories((1, 2)))), ("c", "d"))
    other = Schema((("b", Categories((1, 2), ordered=True)), ("a", Number(-0.0, 1.0))), ("d", "c"))
    assert one.canonical() == other.canonical()
    assert json.loads(one.canonical())["columns"]["a"]["low"] == 0
    assert Categories((0, 1)) != Categories((False, True))


def test_digests_are_what_they_were_when_missing_values_were_refused():
    """Noise of seeded runs depends on them."""
    schema = Schema((("b", Categories(("x", "y"))), ("a", Number(0, 1))), ("c",))
    assert schema.canonical() == (
        '{"columns":{"a":{"high":1.0,"low":0.0,"missing":"refused"},'
        '"b":{"categories":["x","y"],"missing":"refused"}},"ignored":["c"]}'
    )


@pytest.mark.parametrize("word", ["refused", "refuse"])
def test_old_files_that_refuse_missing_values_open_with_a_warning(read, word):
    text = "[columns.{}]\nlow = 0\nhigh = 1\n{}"
    with pytest.warns(MissingRefusedWarning, match="'a' .* midpoint") as caught:
        found = read(text.format("a", f'missing = "{word}"\n') + text.format("b", ""))
    assert len(caught) == 1
    assert found == Schema((("a", Number(0, 1)), ("b", Number(0, 1))))
    with pytest.warns(MissingRefusedWarning):
        found = read(f'[columns.a]\ncategories = ["x"]\nmissing = "{word}"')
    assert found == Schema((("a", Categories(("x",))),))


def test_the_midpoint_is_exact_and_finite():
    assert Number(0, 1).midpoint == 0.5
    assert Number(0.2, 1.8).midpoint == 1.0
    assert Number(1e308, 1.5e308).midpoint == 1.25e308
    assert Number(2**53, 2**53 + 2).midpoint == 2**53


def test_each_kind_of_column_has_its_own_default_for_missing_values():
    assert Number(0, 1).missing == Midpoint()
    assert Categories((1, 2)).missing == SparePart()
    with pytest.raises(TypeError, match="expected missing as Midpoint, MissingBin or FixedValue"):
        Number(0, 1, missing=SparePart())
    with pytest.raises(TypeError, match="expected missing as SparePart, MissingBin or FixedValue"):
        Categories((1, 2), missing=Midpoint())


def test_a_fingerprint_sees_names_and_kinds_only():
    schema = Schema((("a", Number(0, 1)), ("b", Categories(("x", "y")))), ("c",))
    same = Schema((("b", Categories((1, 2, 3), missing=MissingBin())), ("a", Number(-5, 9))))
    assert schema.fingerprint("salt") == same.fingerprint("salt")
    assert len(bytes.fromhex(schema.fingerprint("salt"))) == 32
    others = [
        schema.fingerprint("other"),
        Schema((("a", Number(0, 1)),)).fingerprint("salt"),
        Schema((("a", Number(0, 1)), ("b", Number(0, 1)))).fingerprint("salt"),
        Schema((("a", Number(0, 1)), ("B", Categories(("x", "y"))))).fingerprint("salt"),
    ]
    assert len({schema.fingerprint("salt"), *others}) == 5
    with pytest.raises(TypeError, match="salt"):
        schema.fingerprint(b"salt")


def test_bounds_by_name_make_the_same_schema(read, tmp_path):
    schema = schema_of({"a": (0, 1), "b": [np.float32(0.5), np.int64(7)], "c": Number(0, 2)})
    assert schema == Schema((("a", Number(0, 1)), ("b", Number(0.5, 7)), ("c", Number(0, 2))))
    days = datetime(2020, 1, 1), datetime(2021, 1, 1)
    others = schema_of({"a": ["x", "y"], "b": days, "c*": (0, 1)})
    assert others.columns == (("a", Categories(("x", "y"))), ("b", Times(*days)))
    assert others.patterns == (("c*", Number(0, 1)),)
    assert schema_of(schema) is schema
    read(EXAMPLE)
    path = tmp_path / "bounds.toml"
    assert schema_of(path) == schema_of(str(path)) == read_schema(path)
    assert schema["c"] == Number(0, 2)


REFUSED = {
    "low = 1\nhigh = 1": "low < high",
    "low = 2\nhigh = 1": "low < high",
    "low = nan\nhigh = 1": "finite",
    "low = 0\nhigh = inf": "finite",
    f"low = 0\nhigh = {10**400}": "finite",
    "low = 0\nhigh = true": "number",
    'low = 0\nhigh = "1"': "number",
    'low = "0"\nhigh = "1"': "without quotes",
    "low = 2021-01-01\nhigh = 2020-01-01": "low < high, got 2021-01-01",
    "low = 2020-01-01\nhigh = 2021-01-01T00:00:00": "two dates",
    "low = 0": "no high: write",
    "high = 0": "no low: write",
    'missing = "bin"': "no low and high: write",
    "bounds = []": "no bounds: write",
    "bounds = [0, 1, 2]": "expected bounds = [low, high]",
    "bounds = [0, 1]\nlow = 0": "both bounds and low or high",
    "ordered = true": "no categories",
    "low = 0\nhigh = 1\nordered = true": "'ordered' does not fit",
    "low = 0\nhigh = 1\ncategories = [1]": "both",
    "low = 0\nhigh = 1\nhihg = 2\nhgih = 3": "unknown fields 'hihg', 'hgih'",
    "low = 0\nhigh = 1\nscale = 'cubic'": "linear, log, sqrt",
    "low = 0\nhigh = 1\nscale = 'log'": "low > 0",
    "low = 0\nhigh = 9\nbreakpoints = 3": "as a list",
    "low = 0\nhigh = 9\nbreakpoints = [9]": "between",
    "low = 0\nhigh = 9\nbreakpoints = [3]\nscale = 'sqrt'": "got both",
    "low = 2020-01-01\nhigh = 2021-01-01\nscale = 'sqrt'": "'scale' does not fit",
    'kind = "integer"\nlow = 0\nhigh = 1': "one of number, whole",
    'kind = "whole"\nlow = 0\nhigh = 1.5': "whole numbers",
    'kind = "whole"\ncategories = [1]': "'categories' does not fit",
    "whole = 1\nlow = 0\nhigh = 1": "whole = true or false",
    "whole = true\nlow = 2020-01-01\nhigh = 2021-01-01": "'whole' does not fit",
    'kind = "nominal"': "no categories",
    'kind = "nominal"\ncategories = []': "no categories",
    'kind = "nominal"\ncategories = ["a"]\nordered = true': "keep one",
    'kind = "ordered"\ncategories = ["a"]\nordered = false': "keep one",
    'kind = "date"\nlow = 0\nhigh = 1': "two dates",
    'kind = "date"\nbounds = [2020-01-01T00:00:00, 2021-01-01T00:00:00]': "such as 2024-12-31",
    'kind = "number"\nbounds = [2020-01-01, 2021-01-01]': "to be a number",
    'kind = "duration"\nbounds = [0, 1]': 'unit = "days"',
    'kind = "duration"\nbounds = ["P0D", "P1Y"]': "such as",
    'unit = "months"\nlow = 0\nhigh = 1': "weeks, days, hours",
    'unit = "days"\nlow = 0\nhigh = inf': "a duration",
    "unit = 'days'\nlow = 0\nhigh = 1e12": "billion days",
    "categories = []": "at least one",
    "categories = [1, 1]": "1 twice",
    'categories = ["a", 1]': "all texts",
    "categories = [1, true]": "all texts",
    "categories = [1.5, 2.5]": "all texts",
    'categories = "ab"': "as a list",
    "categories = 3": "as a list",
    f"categories = [0, {2**63}]": "64 bits",
    "categories = [0, 1]\nordered = 1": "ordered",
    "categories = [0, 1]\nother = 'rest'": "all texts",
    "categories = [0, 1]\nmissing = { value = 2 }": "one of the categories",
    "categories = [0, 1]\nmissing = { value = true }": "one of the categories",
    'low = 0\nhigh = 1\nmissing = "drop"': "missing = { value",
    "low = 0\nhigh = 1\nmissing = { valeu = 0 }": "missing = { value",
    "low = 0\nhigh = 1\nmissing = { value = 2 }": "from low to high",
    "low = 0\nhigh = 1\nmissing = { value = nan }": "finite",
    "ignore = false": "ignore = true",
    "ignore = true\nlow = 1": "ignore = true",
}


@pytest.mark.parametrize("fields", REFUSED)
def test_an_invalid_column_is_refused_by_name(read, fields):
    with pytest.raises((TypeError, ValueError), match="column 'the one'") as caught:
        read(f'[columns.good]\nlow = 0\nhigh = 1\n[columns."the one"]\n{fields}\n')
    assert REFUSED[fields] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "at least one column"),
        ("[columns.a]\nignore = true", "at least one column"),
        ("[column.a]\nlow = 0", "'column'"),
        ("columns = 3", "columns"),
        ("columns.a = 3", "'a': no bounds"),
        ("columns.a = []", "'a': no bounds"),
        ("columns.a = {}", "'a': no bounds"),
        ("columns.a = [1, 2, 3]", r"categories = \[1, 2, 3\]"),
        ("columns.a = ['x', 1]", "two numbers or two dates"),
        ("[columns]\na = [0, 1]\nperson = 'id'", "'person' .write it above the first table"),
        ("person = 3\nrecords_per_person = 1\ncolumns.a = [0, 1]", "person as the name"),
        ("person = 'id'\ncolumns.a = [0, 1]", "person, a column, and records_per_person"),
        (
            "person = 'a'\nrecords_per_person = 1\ncolumns.a = [0, 1]",
            "one description of column 'a'",
        ),
        ("[file]\ndelimeter = ';'\n[columns]\na = [0, 1]", "unknown 'delimeter'; expected dates"),
        ("[file]\ndelimiter = ';;'\n[columns]\na = [0, 1]", "file.*delimiter as one character"),
        ("[defaults]\nlow = 0\n[columns]\na = [0, 1]", "defaults.*unknown 'low'"),
        ("defaults = 3\n[columns]\na = [0, 1]", "expected a table of missing"),
        ("[columns.a]\nlow = ", "not a TOML file"),
        ("[columns.a]\nlow = 0\n[columns.a]\n", "not a TOML file"),
    ],
)
def test_a_file_that_is_no_bounds_file_is_refused(read, text, match):
    with pytest.raises(ValueError, match=match):
        read(text)


def test_a_bounds_file_has_to_be_there_and_utf8(tmp_path):
    with pytest.raises(FileNotFoundError, match="dpmic bounds template"):
        read_schema(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("[columns.é]".encode("latin-1"))
    with pytest.raises(ValueError, match="UTF-8"):
        read_schema(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    "bounds", [None, 3, [(0, 1)], {"a": 3}, {"a": (0, 1, 2)}, {"a": "01"}, {"a": {"x", "y"}}]
)
def test_invalid_bounds_are_refused(bounds):
    with pytest.raises((TypeError, ValueError), match="expected bounds"):
        schema_of(bounds)


def test_names_are_texts_and_there_once():
    with pytest.raises(TypeError, match="rename"):
        Schema(((3, Number(0, 1)),))
    with pytest.raises(ValueError, match="'a'"):
        Schema((("a", Number(0, 1)),), ("a",))
    with pytest.raises(TypeError, match="missing"):
        Number(0, 1, missing=None)
    with pytest.raises(ValueError, match="finite"):
        Number(0, math.nan)
