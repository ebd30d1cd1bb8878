"""One cell: whatever it holds, it is one number or none, and the same wherever it is read."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpmic_jax.data.schema import Categories, TextFormat
from dpmic_jax.data.schema.text_format import NULLS
from dpmic_jax.data.source import arrow, cells

SAID = {
    "+1": 1.0,
    "1e999": math.inf,
    "-1e999": -math.inf,
    "1e-999": 0.0,
    " 1": 1.0,
    "\t1\n": 1.0,
    "1.": 1.0,
    ".5": 0.5,
    "1E+5": 1e5,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "+INF": math.inf,
    "9007199254740993": 2.0**53,
    "0" * 400 + "1": 1.0,
    "2.2250738585072011e-308": 2.225073858507201e-308,
    "True": 1.0,
    "FALSE": 0.0,
}
NO_NUMBER = [
    "",
    " ",
    "nan",
    "-NaN",
    "nan(1)",
    "1_0",
    "0x10",
    "\uff11",
    "1e",
    "1,5",
    ".",
    "-",
    "tRuE",
]
NO_NUMBER += [
    "1 2",
    "e5",
    "\x00",
    "1\x00",
    "\u00a01",
    "1d5",
    "NA",
    "infinit",
    "i\u0307nf",
    "\u0131nf",
]


@pytest.mark.parametrize("text", SAID)
def test_texts_that_are_numbers(text):
    assert (
        cells.text_number(text) == SAID[text] == cells.number(text) == cells.number(np.str_(text))
    )


@pytest.mark.parametrize("text", NO_NUMBER)
def test_texts_that_are_not_numbers(text):
    assert math.isnan(cells.text_number(text))


likely = st.text(st.sampled_from("0123456789+-.eEinfaytINF_ x"), max_size=12)
odd = st.text(st.characters(codec="utf-8"), max_size=6)


@given(texts=st.lists(likely | odd | st.sampled_from([*SAID, *NO_NUMBER, *NULLS]), max_size=6))
@example(texts=[*SAID])
@example(texts=[*NO_NUMBER])
def test_a_batch_of_texts_is_read_like_each_of_them_alone(texts):
    """Arrow casts a whole batch, or refuses it for one cell: neither changes another's number."""
    expected = np.array([cells.text_number(text) for text in texts], float)
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary()):
        together = arrow.floats_of(pa.array(texts, pa.string()).cast(kind), TextFormat())
        np.testing.assert_array_equal(together, expected)
    for text, one in zip(texts, expected, strict=True):
        np.testing.assert_array_equal(
            arrow.floats_of(pa.array([text, None]), TextFormat()), [one, np.nan]
        )


@given(value=st.integers(-(2**70), 2**70), whole=st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_exact(value, whole):
    place = cells.placed(Categories((whole, 1 if whole != 1 else 2), ordered=True))
    for cell in (whole, str(whole), f" {whole} ", f"{whole}.0", np.int64(whole), pa_decimal(whole)):
        assert place(cell) == 0
    if value not in (whole, 1, 2):
        assert place(value) == place(str(value)) == cells.UNDECLARED


def pa_decimal(whole):
    return pa.scalar(whole).cast(pa.decimal128(38)).as_py()


def test_a_huge_number_is_not_converted_to_an_integer():
    place = cells.placed(Categories((0, 1)))
    for text in ("1e999999999", "1e-999999999", "1e99999999999999999999", "-inf"):
        assert place(text) == cells.UNDECLARED
    assert place("nan") == cells.MISSING


class Hostile:
    shape = ()

    def __array__(self, *_, **__):
        raise RuntimeError


class Unhashable(str):
    __hash__ = None


class HostileText(str):
    def __hash__(self):
        raise RuntimeError

    __eq__ = __str__ = strip = __hash__


@pytest.mark.parametrize("kind", [Unhashable, HostileText, np.str_])
def test_texts_of_another_class_are_texts(kind):
    place = cells.placed(Categories(("a", "b")))
    assert (place(kind("b")), place(kind("c")), place(Hostile())) == (1, -1, -1)


def test_a_masked_cell_holds_nothing():
    whole, text = cells.placed(Categories((0, 1))), cells.placed(Categories(("0.0", "--")))
    for cell in (np.ma.masked, np.ma.array(1, mask=True)):
        assert math.isnan(cells.number(cell))
        assert whole(cell) == text(cell) == cells.MISSING
    assert cells.number(np.ma.array(1)) == 1 == whole(np.ma.array(1))


def test_exceptions_of_a_cell_are_not_shown():
    place = cells.placed(Categories((0, 1)))
    assert math.isnan(cells.number(Hostile()))
    assert place(Hostile()) == cells.UNDECLARED


MILLION = 10**6
LONG = {
    "9" * MILLION + "x": math.nan,
    "9" * MILLION: math.inf,
    "0." + "9" * MILLION: 1.0,
    "1." + "0" * MILLION: 1.0,
    "0" * MILLION + "1": 1.0,
    "1" * MILLION + "." + "1" * MILLION + "x": math.nan,
    "." + "1" * MILLION + "e": math.nan,
    "1e" + "9" * MILLION: math.inf,
    "1e-" + "9" * MILLION + "x": math.nan,
    "0e" + "9" * MILLION: 0.0,
    " " * MILLION + "1" + " " * MILLION + "x": math.nan,
}


@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_a_long_text_takes_no_longer_than_it_is(text):
    """Digits that are tried in every split would take hours, and tell that the text is there."""
    np.testing.assert_equal(cells.text_number(text), LONG[text])
    np.testing.assert_equal(arrow.floats_of(pa.array([text, "2"]), TextFormat()), [LONG[text], 2])
    whole = LONG[text] == 1 and set(text) <= set("01.")
    assert cells.placed(Categories((1, 5)))(text) == (0 if whole else cells.UNDECLARED)
