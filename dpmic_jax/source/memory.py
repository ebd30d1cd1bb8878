"""Tables in memory: arrays, data frames, dictionaries of columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from dpmic_jax.mic.binning import Column
from dpmic_jax.schema import Categories, Number, Rule, Schema
from dpmic_jax.schema.rules import twice
from dpmic_jax.source.base import Batch, Source
from dpmic_jax.source.coding import MISSING, UNDECLARED, codes, numbers, whole_codes, wrong_type
from dpmic_jax.table import Table

# Records coded at a time, so that what is made on the way stays small.
PIECE = 2**16

Held = np.ndarray | nw.Series
_OF_KIND = {
    str: (str,),
    bool: (bool, np.bool_),
    int: (int, np.integer, float, np.floating),  # a float where some are missing
}


class MemorySource(Source):
    """Columns that are in memory already."""

    def __init__(self, schema: Schema, columns: Mapping[str, Held], where: str):
        super().__init__(schema, tuple(columns), where)
        self._columns = tuple(columns[name] for name in self.names)
        if len({len(column) for column in columns.values()}) > 1:
            raise ValueError(f"expected all columns of {where} to have the same number of records")
        for column, rule, name in zip(self._columns, self.rules, self.names, strict=True):
            _check_type(column, rule, name)

    def _pieces(self) -> Iterator[Batch]:
        for start in range(0, len(self._columns[0]), PIECE):
            yield tuple(
                _coded(column[start : start + PIECE], rule, name)
                for column, rule, name in zip(self._columns, self.rules, self.names, strict=True)
            )


def held_columns(data: Any) -> dict[str, Held]:
    """Columns by name, from anything that holds them in memory."""
    if isinstance(data, Table):
        return dict(zip(_checked(data.names), data.columns, strict=True))
    if isinstance(data, Mapping):
        return {name: _one_column(data[name]) for name in _checked(data)}
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        names = tuple(frame.columns) if isinstance(frame, nw.DataFrame) else ()
    except ValueError:
        raise ValueError("data has two columns of one name; rename one of them") from None
    if isinstance(frame, nw.DataFrame):
        return {name: frame.get_column(name) for name in _checked(names)}
    array = np.asarray(data)
    if array.ndim != 2:
        raise TypeError(
            "expected data as a data frame, a dictionary of columns, an array of records by "
            f"columns, or the path of a .csv or .parquet file, got {type(data).__name__}"
        )
    names = tuple(f"x{index}" for index in range(array.shape[1]))
    return dict(zip(_checked(names), array.T, strict=True))


def _checked(names: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(names)
    if not names:
        raise ValueError("expected data to have columns, got none")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"expected column names as text, got {type(name)}; rename the columns")
    if again := twice(names):
        raise ValueError(f"data has two columns {again[0]!r}; rename one of them")
    return names


def _one_column(values: Any) -> Held:
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    if isinstance(values, list | tuple):
        array = _objects(values)
        # In a dtype if they are all numbers: of text among them numpy would make text of all.
        if {type(value) for value in values} in ({bool}, {int}, {float}, {int, float}):
            array = np.asarray(values)
    else:
        array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"expected columns of one dimension, got {array.ndim}")
    return array


def _check_type(column: Held, rule: Rule, name: str) -> None:
    """Refuse what can be refused by its type, before a value is looked at."""
    _coded(column[:0], rule, name)


def _coded(values: Held, rule: Rule, name: str) -> Column:
    if isinstance(rule, Number):
        return numbers(_as_numbers(values, rule, name), rule, name)
    return codes(_as_codes(values, rule, name), rule, name)


def _as_numbers(values: Held, rule: Number, name: str) -> np.ndarray:
    """An array of numbers, NaN where a value is missing."""
    if isinstance(values, nw.Series):
        if values.dtype == nw.Boolean:
            values = values.cast(nw.UInt8)
        if values.dtype.is_numeric():
            wide = values.dtype in (nw.Decimal, nw.Int128, nw.UInt128)
            return (values.cast(nw.Float64) if wide else values).to_numpy()
        # What narwhals calls columns of Python objects, by what it finds in them.
        if values.dtype not in (nw.Object, nw.String, nw.Unknown):
            raise wrong_type(name, rule, str(values.dtype))
        values = _objects(_listed(values))
    if values.dtype.kind != "O":
        return values
    if not all(isinstance(value, Real | Decimal | None) for value in values):
        raise wrong_type(name, rule, "text or other values")
    try:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    except (OverflowError, ValueError):
        pass
    raise ValueError(f"column {name!r} has numbers that no float holds; convert or ignore it")


def _as_codes(values: Held, rule: Categories, name: str) -> np.ndarray:
    """Codes of categories, those of values that are missing or not declared among them."""
    if isinstance(values, nw.Series):
        if values.dtype.is_numeric() and not values.null_count():
            values = values.to_numpy()
        else:
            values = _objects(_listed(values))
    kind = values.dtype.kind
    if kind in "iufb":
        if rule.kind is str or (rule.kind is bool) != (kind == "b"):
            raise wrong_type(name, rule, str(values.dtype))
        return whole_codes(values, np.zeros(len(values), bool), rule)
    if kind not in "OUT":
        raise wrong_type(name, rule, str(values.dtype))
    places = {value: place for place, value in enumerate(rule.values)}
    return np.array([_place(value, places, rule, name) for value in values], np.int64)


def _objects(values: Sequence[Any]) -> np.ndarray:
    return np.fromiter(values, object, len(values))


def _listed(values: nw.Series) -> list[Any]:
    """Values of a series, with None for every kind of null."""
    nulls = values.is_null().to_list()
    return [None if null else value for value, null in zip(values.to_list(), nulls, strict=True)]


def _place(value: Any, places: dict[Any, int], rule: Categories, name: str) -> int:
    if value is None or (isinstance(value, float | np.floating) and value != value):
        return MISSING
    if not isinstance(value, _OF_KIND[rule.kind]) or (
        isinstance(value, bool) and rule.kind is not bool
    ):
        raise wrong_type(name, rule, "values of other types")
    return places.get(value, UNDECLARED)
