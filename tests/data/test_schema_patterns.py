"""Patterns of column names: which columns they mean, and where they are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.data.schema import Categories, Number, Schema
from dpmic_jax.data.schema.patterns import escaped, is_pattern, matches, unescaped
from dpmic_jax.data.source import open_source
from dpmic_jax.sklearn.schema import public_schema

letters = st.text("ab*[]\n", max_size=6)


def meant(pattern, name):
    """By trying all texts that the first star may stand for."""
    if pattern == "" or name == "":
        return pattern.strip("*") == name == ""
    if pattern.startswith("[*]"):
        return name[0] == "*" and meant(pattern[3:], name[1:])
    if pattern[0] == "*":
        return any(meant(pattern[1:], name[start:]) for start in range(len(name) + 1))
    return pattern[0] == name[0] and meant(pattern[1:], name[1:])


@given(pattern=letters, name=letters)
def test_a_star_stands_for_any_text_and_nothing_else_is_special(pattern, name):
    assert matches(pattern, name) == meant(pattern, name)


@given(name=letters)
def test_an_escaped_name_is_no_pattern_and_means_itself_alone(name):
    assert not is_pattern(escaped(name))
    assert unescaped(escaped(name)) == name
    assert matches(escaped(name), name)


WIDE, UNIT = Number(0, 100), Number(0, 1)


def test_a_name_wins_over_patterns_and_the_first_pattern_over_the_next():
    schema = Schema(
        (("tax3", UNIT),),
        ("note",),
        person="id",
        records_per_person=1,
        patterns=(("tax*", WIDE), ("t*", Categories(("a", "b"))), ("*", None)),
    )
    names = ["x", "tax10", "id", "tax3", "town", "note", "tax9"]
    found = schema.for_columns(names)
    assert dict(found.columns) == {
        "tax3": UNIT,
        "tax10": WIDE,
        "town": Categories(("a", "b")),
        "tax9": WIDE,
    }
    assert set(found.ignored) == {"note", "x"}
    assert (found.person, found.patterns) == ("id", ())
    assert found.for_columns(names) == found


def test_a_pattern_that_is_the_name_of_a_column_means_that_column_alone():
    schema = Schema((), patterns=(("a*", UNIT), ("*", WIDE)))
    found = schema.for_columns(["a*", "ab", "c"])
    assert dict(found.columns) == {"a*": UNIT, "ab": WIDE, "c": WIDE}


def test_a_pattern_that_means_no_column_is_refused():
    schema = Schema((("a", UNIT),), patterns=(("tax*", WIDE), ("*", None)))
    with pytest.raises(ValueError, match=r"no column of the table matches 'tax\*'"):
        schema.for_columns(["a", "b"])
    # One that ignores nothing hides nothing.
    schema = Schema((("a", UNIT),), patterns=(("note*", None),))
    assert schema.for_columns(["a"]) == Schema((("a", UNIT),))


def test_a_schema_with_patterns_has_no_digest_until_it_knows_the_columns():
    schema = Schema((), patterns=(("x*", UNIT),))
    for digest in (schema.canonical, lambda: schema.fingerprint("salt")):
        with pytest.raises(ValueError, match=r"for_columns\(names\)"):
            digest()
    exact = Schema((("x1", UNIT), ("x2", UNIT)))
    assert schema.for_columns(["x1", "x2"]).canonical() == exact.canonical()


def test_patterns_without_a_star_or_twice_are_refused():
    with pytest.raises(ValueError, match="a pattern with a star"):
        Schema((), patterns=(("x", UNIT),))
    with pytest.raises(ValueError, match="got two"):
        Schema((), patterns=(("x*", UNIT), ("x*", WIDE)))
    with pytest.raises(ValueError, match="at least one column"):
        Schema((), patterns=(("x*", None),))


def test_a_source_has_the_columns_that_patterns_mean_in_the_order_of_the_table():
    frame = pd.DataFrame(np.eye(4), columns=["x2", "other", "x1", "y"])
    source = open_source(frame, {"x*": (0, 1), "y": (0, 2), "o*": (0, 3)})
    assert source.names == ("x2", "other", "x1", "y")
    assert source.bounds == ((0, 1), (0, 3), (0, 1), (0, 2))
    assert source.schema.patterns == ()
    with pytest.raises(ValueError, match="'other' without bounds"):
        open_source(frame, {"x*": (0, 1), "y": (0, 2)})


def test_the_index_of_a_pandas_frame_is_a_column_only_if_it_is_named():
    frame = pd.DataFrame({"a": np.arange(4.0), "__index_level_0__": np.arange(4)})
    assert open_source(frame, {"*": (0, 9)}).names == ("a",)
    assert open_source(frame, {"a": (0, 9)}).schema.ignored == ()
    assert len(open_source(frame, {"a": (0, 9), "__index_level_0__": (0, 9)}).names) == 2


def test_a_record_in_place_of_a_header_does_not_pass_for_names(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("bob,0.5\nann,0.1\nsue,0.2\njoe,0.4\nkim,0.9\n")
    with pytest.raises(ValueError, match="does not begin with a header: column 2"):
        open_source(path, {"*": (0, 1)})


def test_a_selector_takes_patterns(tmp_path):
    names = ["x1", "x2"]
    expected = Schema((("x1", UNIT), ("x2", UNIT), ("target", WIDE)))
    assert public_schema(names, {"x*": UNIT, "t*": WIDE}, "target", None) == expected
    assert public_schema(names, {"*": UNIT}, "target", WIDE) == expected
