"""`pairwise` on data frames: every kind of column against an oracle of its own."""

import math

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest

from dpmic_jax import MICe, MICr, TableTest, mice, pairwise
from dpmic_jax.frames import refuse_missing
from dpmic_jax.mic.characteristic import mcn, mev, tic
from dpmic_jax.mic.ties import RandomTies

B, C = 16, 3
STATISTIC = MICe(B=B, c=C)


def number_and_nominal(x, codes, code):
    """Every merge of the master partition of the number, from the definition."""
    count = max(codes) + 1
    sqrt = math.isqrt(B)
    master = max(2, C * sqrt)
    best = 0.0
    for k in range(2, max(2, min(sqrt, B // count)) + 1):
        bits = oracles.merge_by_enumeration(code(x, master), codes, master, k)
        best = max(best, bits / math.log2(min(k, count)))
    return best


def two_nominal(a, b):
    bits = oracles.information(oracles.table_of(a, b))
    return bits / math.log2(min(max(a), max(b)) + 1)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    x = rng.random(40)
    return pd.DataFrame(
        {
            "x": x,
            "ward": np.select([x < 0.2, x < 0.6], ["n", "s"], rng.choice(["g", "k"], 40)),
            "blood": rng.choice(["0", "A", "B"], 40),
            "flag": rng.random(40) + x > 1,
            "sex": np.where(rng.random(40) < 0.5, "f", "m"),
            "grade": pd.Categorical(
                np.select([x < 0.3, x < 0.5], ["lo", "mid"], "hi"),
                ["lo", "mid", "hi"],
                ordered=True,
            ),
            "day": pd.Timestamp("2020-02-20") + pd.to_timedelta((20 * x).astype(int), "D"),
            "stay": pd.to_timedelta(rng.exponential(5, 40), "h"),
        }
    )


def in_polars(table):
    """In polars, which takes categories of pandas without their order."""
    return pl.from_pandas(table).with_columns(
        pl.col("grade").cast(pl.String).cast(pl.Enum(["lo", "mid", "hi"]))
    )


def as_numbers(table):
    """Columns whose order counts, by hand."""
    return {
        "x": table["x"].to_numpy(),
        "flag": table["flag"].to_numpy().astype(int),
        "sex": (table["sex"] == "m").to_numpy().astype(int),
        "grade": table["grade"].map({"lo": 0, "mid": 1, "hi": 2}).to_numpy().astype(int),
        "day": np.array([stamp.toordinal() for stamp in table["day"]]),
        "stay": table["stay"].dt.total_seconds().to_numpy(),
    }


def test_kinds_with_an_order_are_the_mice_of_their_ranks(table):
    found = pairwise(table, statistic=STATISTIC).wide()
    numbers = as_numbers(table)
    for x, values in numbers.items():
        for y, others in numbers.items():
            assert found.loc[x, y] == pytest.approx(oracles.mice(values, others, B, C), abs=2e-6)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_nominal_columns_are_the_definition(table, library):
    frame = table if library == "pandas" else in_polars(table)
    found = pairwise(frame, statistic=STATISTIC)
    place = {name: i for i, name in enumerate(found.x_names)}
    codes = {name: np.unique(table[name], return_inverse=True)[1] for name in ("ward", "blood")}
    for y, own in codes.items():
        for x, values in as_numbers(table).items():
            expected = number_and_nominal(values, own, oracles.mass_codes)
            assert found.matrix[place[x], place[y]] == pytest.approx(expected, abs=2e-6)
            assert found.matrix[place[y], place[x]] == found.matrix[place[x], place[y]]
        for x, others in codes.items():
            expected = two_nominal(own, others)
            assert found.matrix[place[x], place[y]] == pytest.approx(expected, abs=1e-9)


def test_nominal_columns_of_micr_are_the_definition(table):
    frame = table[["x", "ward"]]
    statistic = MICr(B=B, c=C)
    found = pairwise(frame, statistic=statistic, bounds={"x": (0, 1)}).matrix[0, 1]
    codes = np.unique(table["ward"], return_inverse=True)[1]
    expected = number_and_nominal(
        table["x"].to_numpy(), codes, lambda v, parts: oracles.width_codes(v, parts, 0, 1)
    )
    assert found == pytest.approx(expected, abs=2e-6)


def test_the_order_of_categories_does_not_matter(table):
    names = {"n": "z", "s": "a", "g": "m", "k": "b"}
    found = pairwise(table, statistic=STATISTIC).matrix
    other = pairwise(table.assign(ward=table["ward"].map(names)), statistic=STATISTIC).matrix
    np.testing.assert_array_equal(found, other)


def test_many_pairs_are_compiled_to_the_same(rng):
    """Above, numpy scores them; here, programs do."""
    codes = rng.integers(0, 5, (300, 3))
    numbers = rng.random((300, 40)) + codes[:, :1] * (np.arange(40) % 4 == 0)
    frame = pd.DataFrame(numbers).assign(**{f"n{i}": codes[:, i].astype(str) for i in range(3)})
    statistic = MICe(B=12, c=2)
    every = pairwise(frame, statistic=statistic).matrix
    for x in (0, 1, 39):
        pair = pairwise(frame[[x, "n0", "n2"]], statistic=statistic).matrix
        np.testing.assert_allclose(every[x, [40, 42]], pair[0, 1:], atol=2e-6)


def test_other_measures_are_read_off_the_row_of_a_nominal_column(table):
    frame, codes = table[["x", "ward"]], np.unique(table["ward"], return_inverse=True)[1]
    master = oracles.mass_codes(table["x"].to_numpy(), C * 4)
    bits = [oracles.merge_by_enumeration(master, codes, C * 4, k) for k in (2, 3, 4)]
    row = np.array(bits) / np.log2([2, 3, 4])
    for measure, expected in ((tic, row.sum()), (mev, row[0])):
        found = pairwise(frame, statistic=STATISTIC, measure=measure).matrix[0, 1]
        assert found == pytest.approx(expected, abs=4e-6)
    assert pairwise(frame, statistic=STATISTIC, measure=mcn).matrix[0, 1] in np.log2([8, 12, 16])


def test_each_pair_has_its_complete_records(table):
    holes = table.copy()
    holes.loc[:4, "x"] = np.nan
    holes.loc[3:9, "ward"] = None
    holes.loc[30:38, "day"] = pd.NaT
    for frame in (holes, in_polars(holes)):
        found = pairwise(frame, statistic=STATISTIC)
        place = {name: i for i, name in enumerate(found.x_names)}
        for x, y in (("x", "ward"), ("x", "day"), ("ward", "ward"), ("blood", "ward")):
            complete = holes[[*dict.fromkeys((x, y))]].dropna()
            alone = pairwise(complete.assign(other=1), statistic=STATISTIC)
            assert found.records[place[x], place[y]] == len(complete)
            last = 0 if x == y else 1
            assert found.matrix[place[x], place[y]] == alone.matrix[0, last]
    with pytest.raises(ValueError, match="columns 'x', 'ward', 'day' of X have missing"):
        pairwise(holes, statistic=STATISTIC, missing=refuse_missing)


def test_too_few_complete_records_have_no_value():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, np.nan, np.nan], "b": [np.nan, 1, 2, 3, 4, 5]})
    found = pairwise(frame.assign(c=range(6)), p_values=TableTest(draws=9))
    assert np.isnan(found.matrix[0, 1])
    assert found.records[0, 1] == 3
    assert np.isnan(found.to_frame()["p_adjusted"].to_numpy()[-1])
    assert "nan" not in repr(found).lower()


def test_constant_columns_are_0_with_every_column(table):
    found = pairwise(table.assign(one=1, same="s"), statistic=STATISTIC)
    assert not found.matrix[-2:].any()
    assert found.describe()["taken"].tolist()[-1] == "nominal: constant, so 0 with every column"


def test_the_statistic_has_a_default_and_numbers_without_ties_their_old_values(rng):
    X = rng.random((50, 3))
    found = pairwise(pd.DataFrame(X))
    assert found.x_names == ("0", "1", "2")
    assert found.matrix[0, 2] == pytest.approx(mice(X[:, 0], X[:, 2]), abs=2e-6)


def test_random_ties_are_drawn_by_the_place_of_a_column(key):
    """So a column has the same ties wherever a nominal one stands beside it."""
    X = np.repeat(np.arange(5.0), 8)
    statistic = MICe(B=B, c=C, ties=RandomTies(key))
    frame = {"a": X, "b": X, "n": np.array(list("xyzw") * 10)}
    found = pairwise(frame, statistic=statistic)
    alone = pairwise({"a": X, "b": X}, statistic=statistic)
    np.testing.assert_array_equal(found.matrix[:2, :2], alone.matrix)


def test_dates_have_bounds_of_dates(table):
    days = table[["day", "x"]]
    ends = ("2020-02-20", pd.Timestamp("2020-03-11"))
    for frame in (days, pl.from_pandas(days)):
        statistic = MICr(B=B, c=C)
        found = pairwise(frame, statistic=statistic, bounds={"day": ends, "x": (0, 1)}).matrix
        numbers = np.array([stamp.toordinal() for stamp in days["day"]]) - 737475.0
        bounds = [(0, 20), (0, 1)]
        expected = oracles.micr(numbers, days["x"].to_numpy(), bounds, B, C)
        assert found[0, 1] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"statistic": "mice"}, TypeError, r"expected statistic=MICe\(\) or .*, got 'mice'"),
        ({"statistic": MICe}, TypeError, r"write MICe\(\.\.\.\)"),
        ({"measure": "tic"}, TypeError, "expected measure to be a function such as mic"),
        ({"p_values": 0.05}, TypeError, "expected p_values=True or TableTest"),
        ({"missing": "drop"}, TypeError, "expected missing=pair_by_pair or"),
        ({"control": "bh"}, TypeError, r"expected control=FalseDiscovery\(\)"),
        ({"rng": "seed"}, TypeError, "expected rng to be an int"),
        ({"weights": [1] * 40}, ValueError, "weights are not taken"),
        ({"statistic": MICr(B=9)}, ValueError, "needs public bounds"),
        (
            {"statistic": MICr(B=9), "bounds": {"stay": (0, 9)}},
            ValueError,
            "columns 'x', 'flag', 'day'",
        ),
    ],
)
def test_wrong_settings_say_what_to_write(table, settings, error, text):
    with pytest.raises(error, match=text):
        pairwise(table, **settings)
