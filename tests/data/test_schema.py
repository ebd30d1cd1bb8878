import json
import math
import tomllib
import warnings

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
    NominalOrderWarning,
    Number,
    Schema,
    SparePart,
    read_schema,
    schema_of,
    template,
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


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "bounds.toml"
        path.write_text(text, encoding="utf-8")
        return read_schema(path)

    return read


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
ends = st.tuples(finite, finite).filter(lambda pair: pair[0] < pair[1])
texts = st.text(max_size=8)
distinct = st.one_of(
    st.lists(texts, min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4, unique=True),
    st.just([True, False]),
)


@st.composite
def rules(draw):
    number = draw(st.booleans())
    values = draw(ends if number else distinct)
    missing = draw(st.sampled_from([None, MissingBin(), FixedValue(values[0])]))
    fields = {} if missing is None else {"missing": missing}
    if number:
        return Number(*values, **fields)
    return Categories(tuple(values), ordered=draw(st.booleans()), **fields)


schemas = st.builds(
    lambda columns, ignored: Schema(tuple(columns.items()), tuple(ignored - columns.keys())),
    st.dictionaries(texts, rules(), min_size=1, max_size=4),
    st.sets(texts, max_size=3),
)


@given(schema=schemas)
def test_a_written_schema_is_read_back_equal(schema, tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "bounds.toml"
    path.write_bytes(schema.to_toml().encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NominalOrderWarning)
        again = read_schema(path)
    assert again == schema
    assert again.canonical() == schema.canonical()
    assert [rule.kind for _, rule in again.columns if isinstance(rule, Categories)] == [
        rule.kind for _, rule in schema.columns if isinstance(rule, Categories)
    ]


@given(one=schemas, other=schemas)
def test_canonical_text_differs_iff_what_is_computed_does(one, other):
    def meaning(schema):
        rules = {
            name: (rule.values, rule.kind, rule.missing) if isinstance(rule, Categories) else rule
            for name, rule in schema.columns
        }
        return rules, set(schema.ignored)

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


def test_a_template_has_the_names_and_asks_for_the_rest(read):
    names = ["age", 'q"uo\nte', "a.b", "", "größe"]
    text = template(names)
    assert list(tomllib.loads(text)["columns"]) == names
    assert all(not fields for fields in tomllib.loads(text)["columns"].values())
    with pytest.raises(ValueError, match=r"'age' has no bounds: write low = .* or ignore = true"):
        read(text)
    # Filled in as its comments say, it is a bounds file.
    filled = text.replace("# low =", "low = 0").replace("# high =", "high = 1")
    assert read(filled) == Schema(tuple((name, Number(0, 1)) for name in names))


def test_bounds_by_name_make_the_same_schema(read, tmp_path):
    schema = schema_of({"a": (0, 1), "b": [np.float32(0.5), np.int64(7)], "c": Number(0, 2)})
    assert schema == Schema((("a", Number(0, 1)), ("b", Number(0.5, 7)), ("c", Number(0, 2))))
    assert schema_of(schema) is schema
    read(EXAMPLE)
    path = tmp_path / "bounds.toml"
    assert schema_of(path) == schema_of(str(path)) == read_schema(path)
    assert schema["c"] == Number(0, 2)


def test_nominal_categories_warn_once_and_ordered_ones_do_not(read):
    text = '[columns.{}]\ncategories = ["x", "y", "z"]\n{}'
    with pytest.warns(NominalOrderWarning, match="'a', 'b'") as caught:
        read(text.format("a", "") + text.format("b", "") + text.format("c", "ordered = true"))
    assert len(caught) == 1
    with pytest.warns(NominalOrderWarning) as caught:
        schema_of({"a": Categories((1, 2, 3))})
    assert len(caught) == 1
    read(text.format("a", "ordered = true"))
    read('[columns.a]\ncategories = ["x", "y"]')


REFUSED = {
    "low = 1\nhigh = 1": "low < high",
    "low = 2\nhigh = 1": "low < high",
    "low = nan\nhigh = 1": "finite",
    "low = 0\nhigh = inf": "finite",
    f"low = 0\nhigh = {10**400}": "finite",
    "low = 0\nhigh = true": "number",
    'low = 0\nhigh = "1"': "number",
    "low = 2020-01-01\nhigh = 2021-01-01": "number",
    "low = 0": "no high: write",
    "high = 0": "no low: write",
    'missing = "bin"': "no low and high: write",
    "low = 0\nhigh = 1\nordered = true": "no categories",
    "low = 0\nhigh = 1\ncategories = [1]": "both",
    "low = 0\nhigh = 1\nhihg = 2": "'hihg'",
    "categories = []": "at least one",
    "categories = [1, 1]": "1 twice",
    'categories = ["a", 1]': "all texts",
    "categories = [1, true]": "all texts",
    "categories = [1.5, 2.5]": "all texts",
    'categories = "ab"': "as a list",
    "categories = 3": "as a list",
    f"categories = [0, {2**63}]": "64 bits",
    "categories = [0, 1]\nordered = 1": "ordered",
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
        ("columns.a = 3", "'a' has no bounds"),
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


@pytest.mark.parametrize("bounds", [None, 3, [(0, 1)], {"a": 3}, {"a": (0, 1, 2)}, {"a": "01"}])
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
