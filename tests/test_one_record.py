"""One record replaced by anything at all: nothing changes for the others, however tables come in.

How a record is coded depends on the schema and on that record alone. So neighbours may differ in
the type and the representation of a cell as well as in its value, and the codes of all other
records stay what they are, exactly. Then MICr moves by its sensitivity at most, on the real path.
"""

import csv
import datetime
import itertools
import os
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from dpmic_jax import Categories, FixedValue, MICr, MissingBin, Number
from dpmic_jax.data.schema import Midpoint, Rule, Schema, Times
from dpmic_jax.data.source import files, memory, open_source
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mechanisms.inputs import held_pair, held_table
from dpmic_jax.mic import batch as sweep
from dpmic_jax.mic.binning import by_range, codes
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.sklearn import PrivateMICSelector
from dpmic_jax.sklearn.inputs import held_inputs

N, PLACE = 40, 3  # records, and the one that is replaced
STATISTIC = MICr(B=9, c=2)
SIZES = [2, 3, 4, 5, 8]
Y = [i % 2 / 2 + i / (4 * N) for i in range(N)]  # tells columns of two values
DAY = datetime.date(2020, 1, 2)
NOON = datetime.datetime(2020, 1, 2, 12, tzinfo=datetime.UTC)
WEEK = datetime.timedelta(7)

CELLS = {
    "0": 0,
    "1": 1,
    "-7": -7,
    "2^53 - 1": 2**53 - 1,
    "2^53": 2**53,
    "2^53 + 1": 2**53 + 1,
    "2^63": 2**63,
    "2^64": 2**64,
    "-2^64": -(2**64),
    "10^400": 10**400,
    "-10^400": -(10**400),
    "0.5": 0.5,
    "-0.0": -0.0,
    "5e-324": 5e-324,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "True": True,
    "False": False,
    "Decimal": Decimal("0.5"),
    "Decimal NaN": Decimal("NaN"),
    "signalling NaN": Decimal("sNaN"),
    "Decimal of scale 5": Decimal("6.00001"),
    "Decimal of scale 31": Decimal("0.1000000000000000000000000000001"),
    "Decimal of scale 60": Decimal(f"0.{10**59}"),
    "large Decimal": Decimal("1e999"),
    "Fraction": Fraction(1, 3),
    "large Fraction": Fraction(10**400, 3),
    "float16": np.float16(0.1),
    "float32": np.float32(0.1),
    "longdouble": np.longdouble("0.1"),
    "int8": np.int8(1),
    "uint64": np.uint64(2**64 - 1),
    "numpy bool": np.True_,
    "numpy text": np.str_("1"),
    "numpy bytes": np.bytes_(b"1"),
    "numpy date": np.datetime64("2020-01-02"),
    "numpy duration": np.timedelta64(1, "D"),
    "numpy nanoseconds": np.datetime64("2020-01-02T03:04:05.000000999"),
    "array of numpy": np.array(0.5),
    "array of JAX": jnp.float32(0.5),
    "text 1": "1",
    "text 1.5": " 1.5 ",
    "text 2^53 + 1": "9007199254740993",
    "text 1e999": "1e999",
    "text nan": "NaN",
    "text -inf": "-inf",
    "text a": "a",
    "text True": "True",
    "no number": "abc",
    "underscore": "1_0",
    "wide digit": "\uff11",
    "empty": "",
    "NA": "NA",
    "None": None,
    "masked": np.ma.masked,
    "NaT": pd.NaT,
    "pandas NA": pd.NA,
    "date": DAY,
    "time": datetime.datetime(2020, 1, 2, 3),
    "Timestamp": pd.Timestamp("2020-01-02"),
    "date before all": datetime.date.min,
    "time with a zone": NOON,
    "time in another zone": NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5))),
    "time before all": datetime.datetime.max.replace(tzinfo=datetime.UTC),
    "duration": datetime.timedelta(1, 2, 3),
    "duration before all": datetime.timedelta(-100_000),
    "text of a date": "2020-01-02",
    "text of a time": "2020-01-02 03:04:05.6+07:00",
    "text of a duration": "-1 days +03:04:05.6",
    "no date": "2020-02-30",
    "bytes": b"1",
    "list": [1],
    "tuple": (1, 2),
    "dict": {"a": 1},
    "complex": 1j,
    "object": object(),
}


class Column(NamedTuple):
    """A column that a record of is replaced, and what is public about it."""

    rule: Rule
    cells: list


def cycle(*values):
    return [values[i % len(values)] for i in range(N)]


COLUMNS = {
    # The middle of the bounds is 1 + 2^-55, which floats call 1 and integers do not.
    "bits": Column(Number(0.2, 1.8), cycle(0, 1)),
    "long": Column(Number(2**53, 2**53 + 4), cycle(*range(2**53, 2**53 + 5))),
    "floats": Column(Number(0, 1), [i / N for i in range(N)]),
    "gaps": Column(Number(0, 1, missing=MissingBin()), cycle(0.5, None, 0.1, -1e300)),
    "filled": Column(Number(0, 4, missing=FixedValue(3)), cycle(1, 2, 4)),
    "booleans": Column(Number(0, 1), cycle(True, False, False)),
    "texts": Column(Number(0, 1), cycle("0.25", "1e-3", "", "0.75")),
    # The middle of the bounds is 3 / 10 as a product of floats has it, one bit above 0.3.
    "decimals": Column(Number(0, 2 * (3 * 0.1)), cycle(Decimal("0.3"), Decimal("0.1"))),
    "whole decimals": Column(Categories((3, 6), ordered=True), cycle(Decimal(3), Decimal(6))),
    "grades": Column(Categories((0, 1, 7), ordered=True), cycle(1, 0, 7)),
    "many": Column(Categories(tuple(range(30)), ordered=True), cycle(*range(30))),
    "flags": Column(Categories((True, False)), cycle(True, False, False)),
    "letters": Column(Categories(("a", "b", "NA"), ordered=True), cycle("a", "b", "NA", "b")),
    "own": Column(Categories(("a", "b"), missing=MissingBin()), cycle("a", "b", "a")),
    "rest": Column(Categories(("a", "b"), other="b", missing=MissingBin()), cycle("a", "c", None)),
    "days": Column(Times(DAY - WEEK, DAY + WEEK), cycle(DAY, None, DAY + WEEK)),
    "zones": Column(
        Times(NOON - WEEK, NOON + WEEK, missing=MissingBin()), cycle(NOON, NOON - WEEK)
    ),
    "spans": Column(Times(-WEEK, WEEK), cycle(WEEK / 7, WEEK / 7**9, None, -WEEK)),
}


def series(make):
    return lambda cells, _: {"x": make(cells), "y": make(Y)}


def of_dtype(dtype):
    return lambda cells, _: {"x": np.array(cells, dtype), "y": np.array(Y)}


def masked(dtype):
    """An array that hides what is None, whatever is below."""

    def make(cells, _):
        hidden = [cell is None for cell in cells]
        values = np.array([1 if cell is None else cell for cell in cells], dtype)
        return {"x": np.ma.array(values, mask=hidden), "y": np.ma.array(Y)}

    return make


def objects(cells):
    return np.fromiter(cells, object, len(cells))


def table_of_objects(cells, _):
    return np.stack([objects(cells), objects(Y)], axis=1)


def written(cells, folder):
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["x", "y"])
        rows.writerows(zip(cells, Y, strict=True))
    return folder / "table.csv"


def parquet(cells, folder):
    pyarrow.parquet.write_table(pa.table({"x": cells, "y": Y}), folder / "table.parquet")
    return folder / "table.parquet"


def on_arrow(cells, _):
    return pa.table({"x": cells, "y": Y}).to_pandas(types_mapper=pd.ArrowDtype)


def polars(cells, _):
    # Polars itself comes to an end at these.
    if any(isinstance(cell, Decimal) and not -(2**64) < cell.fma(1, 0) < 2**64 for cell in cells):
        raise ValueError
    frame = pl.DataFrame({"x": cells, "y": Y}, strict=False)
    # And at these it drops the whole numbers beside a decimal of too many digits.
    if frame["x"].dtype == pl.Decimal and frame["x"].null_count() > cells.count(None):
        raise ValueError
    # And here it makes numbers, or texts of its own, of all dates or durations.
    for kind, types in ((datetime.timedelta, pl.Duration), (datetime.date, (pl.Date, pl.Datetime))):
        held = sum(isinstance(cell, kind) for cell in cells)
        if held > 1 and not isinstance(frame["x"].dtype, types):
            raise ValueError
    return frame


DTYPES = ["int8", "int64", "uint64", "float16", "float32", "float64", "longdouble", "bool"]
DTYPES += ["U40", "S40", np.dtypes.StringDType()]
JAX_DTYPES = ["int64", "float16", "float32", "bool"]
# Ways in, by what a cell has to do with the type of a column.
UNTYPED = {
    "lists": series(list),
    "tuples": series(tuple),
    "records": lambda cells, _: [list(pair) for pair in zip(cells, Y, strict=True)],
    "tuples of tuples": lambda cells, _: tuple(zip(cells, Y, strict=True)),
    "array of objects": table_of_objects,
    "columns of objects": series(objects),
    "pandas objects": lambda cells, _: pd.DataFrame({"x": objects(cells), "y": objects(Y)}),
    "polars objects": series(lambda cells: pl.Series(cells, dtype=pl.Object)),
    "csv": written,
}
TYPED = {f"array of {dtype}": of_dtype(dtype) for dtype in DTYPES}
TYPED |= {f"masked {dtype}": masked(dtype) for dtype in ("int64", "float32", "bool", "U40", "S40")}
TYPED |= {f"jax of {d}": series(lambda c, d=d: jnp.asarray(np.array(c, d))) for d in JAX_DTYPES}
INFERRED = {
    "pandas": lambda cells, _: pd.DataFrame({"x": cells, "y": Y}),
    "pandas nullable": lambda cells, _: pd.DataFrame({"x": cells, "y": Y}).convert_dtypes(),
    "pandas on arrow": on_arrow,
    "polars": polars,
    "pyarrow": lambda cells, _: pa.table({"x": cells, "y": Y}),
    "stream": lambda cells, _: pyarrow.dataset.dataset(pa.table({"x": cells, "y": Y})),
    "parquet": parquet,
}
WAYS = UNTYPED | TYPED | INFERRED


def source(data, rule):
    """The column as it is screened, with its limits."""
    listed = isinstance(data, np.ndarray | list | tuple)
    named = Schema((("x", rule),), ignored=("y",))
    table = open_source(data, [rule, (0, 1)] if listed else named)
    assert table.validate() == N
    return np.concatenate([batch[0] for batch in table.batches(N)]), table.bounds[0]


def mechanism(data, rule):
    """The column as `MICrLap` and its kin take it."""
    limits = (rule.low, rule.high)
    held = held_pair(data["x"], data["y"]) if isinstance(data, dict) else held_table(data)
    assert held.n == N
    return held.coded([limits, (0, 1)]).columns[0], limits


def selector(data, rule):
    """The column as `PrivateMICSelector` screens it."""
    schema = {"x": rule, "y": (0, 1)}
    given = held_inputs(PrivateMICSelector(epsilon=1, bounds=schema, k_features=1), data, Y)
    return source(dict(zip("xy", given.columns.values(), strict=True)), rule)


def doors(data, rule):
    """What takes such a table in."""
    yield source
    if isinstance(data, os.PathLike):
        return
    if isinstance(data, list | pd.DataFrame | pl.DataFrame):
        yield selector
    if isinstance(rule, Number) and rule.missing == Midpoint():
        yield mechanism


class Found(NamedTuple):
    """What a search found, each as (column, way, door, cell).

    Attributes:
      moved: where the code of another record changed.
      verdicts: where one of two neighbours was refused.
      pairs: the column before and after, with its limits, of all that were taken.
    """

    moved: list
    verdicts: list
    pairs: dict


def search(folder, columns=COLUMNS, ways=WAYS):
    """Replace one record of each column by each cell, in each way that can hold it."""
    found, known = Found([], [], {}), {}
    for (name, (rule, cells)), (way, make) in itertools.product(columns.items(), ways.items()):
        before = made(make, cells, folder)
        if before is None:
            continue
        bases = {door: taken(door, before, rule) for door in doors(before, rule)}
        for label, cell in CELLS.items():
            after = made(make, replaced(cells, cell), folder)
            if after is None:
                continue
            held = cells_of(after)
            for door, base in bases.items():
                key = name, door, held
                other = known[key] if key in known else taken(door, after, rule)
                if held is not None:
                    known[key] = other
                compare(found, (name, way, door.__name__, label), base, other)
    return found


def cells_of(data):
    """Of objects in pandas all that tells two tables apart: several ways make the same tables."""
    if isinstance(data, pd.DataFrame) and data["x"].dtype == object:
        return tuple((type(cell), repr(cell)) for cell in data["x"])
    return None


def compare(found, case, base, other):
    if base is None or other is None:
        if base is not other:
            found.verdicts.append(case)
        return
    (one, limits), (two, again) = base, other
    assert limits == again
    others = np.arange(N) != PLACE
    if (parts(one, limits) != parts(two, limits))[:, others].any():
        found.moved.append(case)
    found.pairs[case] = one, two, limits


def replaced(cells, cell):
    return [*cells[:PLACE], cell, *cells[PLACE + 1 :]]


def made(make, cells, folder):
    """The table, or nothing where a container cannot hold these cells."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return make(cells, folder)
    except (TypeError, ValueError, ArithmeticError, np.ma.MaskError):
        return None
    except (pa.ArrowException, pl.exceptions.PolarsError):
        return None


def taken(door, data, rule):
    """What a door makes of a table, or nothing if it refuses it."""
    try:
        return door(data, rule)
    except (TypeError, ValueError):
        return None


def parts(column, limits):
    column = np.asarray(column)
    return _parts(column.dtype, column.tobytes(), limits)


@cache
def _parts(dtype, content, limits):
    """Once for each column there is: most cells become the same few."""
    return codes(by_range([np.frombuffer(content, dtype)], [limits], SIZES))[:, 0]


def integers(pairs, statistic=STATISTIC):
    """MICr of each of two columns with y on the integer path, before noise."""
    columns = [column for one, two, _ in pairs for column in (one, two)]
    limits = [limits for *_, limits in pairs for _ in range(2)]
    cut = statistic.cut([*columns, np.array(Y)], [*limits, (0.0, 1.0)])
    with_y = np.stack([np.arange(len(columns)), np.full(len(columns), len(columns))], axis=1)
    tiles = sweep.score_pairs(cut, with_y, exact_gains(N), devices=jax.devices()[:1])
    values = np.concatenate([integer_mic(cut.grids, tile) for tile in tiles])
    return values.reshape(-1, 2).astype(object)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return search(tmp_path_factory.mktemp("neighbours"))


def test_no_code_of_another_record_changes(found):
    assert found.moved == []


def test_every_way_in_was_tried(found):
    tried = {(way, door) for _, way, door, _ in found.pairs}
    assert {way for way, _ in tried} == set(WAYS)
    assert {door for _, door in tried} == {"source", "mechanism", "selector"}
    assert len(found.pairs) > 20_000
    for way in UNTYPED:  # these hold everything
        columns = dict.fromkeys(COLUMNS, 0)
        for name, its, door, _ in found.pairs:
            columns[name] += its == way and door == "source"
        assert set(columns.values()) == {len(CELLS)}, way


def test_no_verdict_depends_on_a_value(found):
    """But where pandas or polars gave all records another type, before anything came in here."""
    made_complex = {("pandas", "complex"), ("pandas nullable", "complex")}
    assert {(way, cell) for _, way, _, cell in found.verdicts} == made_complex | {
        ("polars", "dict")
    }


def test_micr_moves_by_its_sensitivity_at_most(found):
    distinct = {}
    for one, two, limits in found.pairs.values():
        key = parts(one, limits).tobytes(), parts(two, limits).tobytes()
        distinct.setdefault(key, (one, two, limits))
    assert len(distinct) > 50
    moves = np.abs(np.diff(integers(list(distinct.values())), axis=1))
    bound = sensitivity.integer_path(STATISTIC, N)
    assert 0 < Fraction(int(moves.max()), 2**VALUE_BITS) <= bound


def inferred(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of what is masked
        return np.asarray(list(values))


def own_dtype(values):
    return values.dtype if values.dtype.itemsize <= 8 else np.float64


def test_a_dtype_that_numpy_infers_is_found_out(tmp_path, monkeypatch):
    """The negative control: one record decides whether the others are integers."""
    monkeypatch.setattr(memory, "objects", inferred)
    monkeypatch.setattr(memory, "floats", lambda values: values.astype(own_dtype(values)))
    columns = {name: COLUMNS[name] for name in ("bits", "long")}
    ways = {name: WAYS[name] for name in ("lists", "records")}
    found = search(tmp_path, columns, ways)
    hit = {(name, way, door) for name, way, door, _ in found.moved}
    assert hit >= set(itertools.product(columns, ways, ["source", "mechanism"]))
    halves = MICr(B=4, c=1)
    worst = [found.pairs[case] for case in found.moved]
    moves = np.abs(np.diff(integers(worst, halves), axis=1))
    assert Fraction(int(moves.max()), 2**VALUE_BITS) > 5 * sensitivity.integer_path(halves, N)


def cast_to_float64(values):
    return values.cast(memory.nw.Float64).to_numpy()


def test_decimals_that_are_rounded_by_their_scale_are_found_out(tmp_path, monkeypatch):
    """The negative control: one record decides the scale, and a cast rounds by it."""
    monkeypatch.setattr(memory, "_series_floats", cast_to_float64)
    columns = {"decimals": COLUMNS["decimals"]}
    found = search(tmp_path, columns, {"pyarrow": WAYS["pyarrow"]})
    assert ("decimals", "pyarrow", "source", "Decimal of scale 31") in found.moved


def test_a_type_that_is_forced_upon_a_file_is_found_out(tmp_path, monkeypatch):
    """The negative control: a text that is no number ends the reading of a CSV file."""
    options = files.arrow_csv.ConvertOptions

    def forced(include_columns, **_):
        types = dict.fromkeys(include_columns, pa.float64())
        return options(include_columns=include_columns, column_types=types)

    monkeypatch.setattr(files.arrow_csv, "ConvertOptions", forced)
    found = search(tmp_path, {"floats": COLUMNS["floats"]}, {"csv": written})
    assert {cell for *_, cell in found.verdicts} >= {"no number", "date", "bytes", "wide digit"}
