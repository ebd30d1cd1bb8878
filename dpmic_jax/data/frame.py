"""The columns of a table, each taken by its type. Not private: values and categories are looked at.

| type | taken as |
|---|---|
| numbers, booleans | numbers |
| dates, timestamps, durations | numbers, in time |
| pandas' ordered `category`, an ordered dictionary of arrow, polars' `Enum` | ranks of categories |
| text, other categories, bytes | nominal: no order is used, unless there are only two categories |
| Python objects | what all of them are |
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Shaped

from dpmic_jax.data.limits import Column
from dpmic_jax.data.table import Table, array_of, kind_of

MOST_CATEGORIES = 64

Mask = Bool[np.ndarray, " n"]


class TakenColumn(NamedTuple):
    """A column as it is scored.

    Attributes:
      name: its name, as text.
      values: numbers in their own dtype, or codes 0, 1, ... of categories; any value where one is
        missing.
      missing: where.
      kind: what it was taken as: number, boolean, date, timestamp, duration, ordered or nominal.
      categories: those that occur, in the order of their codes, if it has any.
      unit: numpy's type of moments and durations, of which `values` are the integers.
    """

    name: str
    values: Column
    missing: Mask
    kind: str
    categories: tuple[str, ...] = ()
    unit: str = ""

    @property
    def nominal(self) -> bool:
        """Whether no order is used. With two categories, either order gives the same."""
        return self.kind == "nominal" and len(self.categories) > 2

    def note(self) -> str:
        """How the column was taken, in words."""
        known = self.values[~self.missing]
        if not len(known):
            return "no value: all are missing"
        if (known == known[0]).all():
            return f"{self.kind}: constant, so 0 with every column"
        if self.kind == "nominal":
            order = "no order is used" if self.nominal else "a flag"
            return f"nominal: {len(self.categories)} categories, {order}"
        if self.kind == "ordered":
            return f"ordered: {len(self.categories)} categories, by rank"
        distinct = len(np.unique(known))
        return f"{self.kind}: by rank, {'no' if distinct == len(known) else 'some'} ties"


class Frame(NamedTuple):
    """The columns of one table.

    Attributes:
      columns: as they are scored.
      backend: the library of the data frame that they came from, None if it was none.
    """

    columns: tuple[TakenColumn, ...]
    backend: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.columns[0].values)


Missing = Callable[[Frame, str], None]


def pair_by_pair(frame: Frame, argument: str) -> None:
    """Of each pair of columns the complete records are used: those in which neither is missing."""


def refuse_missing(frame: Frame, argument: str) -> None:
    """Missing values are an error, which names all columns that have some."""
    having = [column.name for column in frame.columns if column.missing.any()]
    if having:
        raise ValueError(
            f"{_columns(having)} of {argument} {_has(having)} missing values; fill them in, leave "
            f"the columns out, or pass missing=pair_by_pair"
        )


def frame_of(data: Any, argument: str) -> Frame:
    """The columns of an array of records by columns, a data frame or a dictionary of columns.

    Everything that keeps a column from being taken is in one error.

    Args:
      data: the table.
      argument: the caller's name of the argument, for error messages.
    """
    names, held, backend = _held(data, argument)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"expected {argument} to have distinct column names, got two {_quoted(twice)}"
        )
    if not held:
        raise ValueError(f"expected {argument} to have columns, got none")
    if len(lengths := set(map(len, held))) > 1:
        raise ValueError(f"expected columns of {argument} of one length, got {sorted(lengths)}")
    taken, problems = [], []
    for name, values in zip(names, held, strict=True):
        try:
            taken.append(_taken(name, values))
        except (TypeError, ValueError) as error:
            problems.append(error)
    if problems:
        wrong = any(isinstance(error, TypeError) for error in problems)
        text = "; ".join(map(str, problems))
        raise (TypeError if wrong else ValueError)(f"in {argument}: {text}")
    return Frame(tuple(taken), backend)


def _held(data: Any, argument: str) -> tuple[list[str], list[Any], str | None]:
    if isinstance(data, Table):
        return list(data.names), list(data.columns), None
    if isinstance(data, Mapping):
        given = data.values()
        series = [nw.from_native(each, series_only=True, pass_through=True) for each in given]
        held = [each if isinstance(each, nw.Series) else array_of(each) for each in series]
        return list(map(str, data)), held, None
    if isinstance(data, str | os.PathLike):
        raise TypeError(
            f"expected {argument} to be a table, got the path {os.fspath(data)!r}; read it first, "
            "as by pandas.read_csv, or run dpmic pairwise on the file"
        )
    if type(data).__name__ in ("LazyFrame", "DuckDBPyRelation"):
        raise TypeError(
            f"expected {argument} to be a table in memory, got a {type(data).__name__}; "
            "collect it first"
        )
    one = nw.from_native(data, series_only=True, pass_through=True)
    if isinstance(one, nw.Series):
        return [argument.lower() if one.name in (None, "") else str(one.name)], [one], _backend(one)
    if hasattr(data, "iloc"):  # pandas, as narwhals refuses names used twice
        names = list(map(str, data.columns))
        held = [nw.from_native(data.iloc[:, i], series_only=True) for i in range(len(names))]
        return names, held, "pandas"
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        held = [frame.get_column(name) for name in frame.columns]
        return list(frame.columns), held, _backend(frame)
    array = array_of(data)
    if array.ndim != 2:
        raise ValueError(
            f"expected {argument} to be a data frame or an array of records by columns, "
            f"got {array.ndim} dimension(s)"
        )
    return [f"{argument.lower()}{i}" for i in range(array.shape[1])], list(array.T), None


def _backend(held: nw.DataFrame[Any] | nw.Series[Any]) -> str:
    return str(held.implementation.value)


def _taken(name: str, values: Any) -> TakenColumn:
    if isinstance(values, nw.Series):
        return _of_series(name, values)
    kind = values.dtype.kind
    if kind in "biuf" and values.dtype.itemsize <= 8:
        return _numbers(name, values, np.isnan(values) if kind == "f" else _none(values))
    if kind in "Mm":
        missing = np.isnat(values)
        held = np.where(missing, 0, values.astype(np.int64))
        what = "timestamp" if kind == "M" else "duration"
        return TakenColumn(name, held, missing, what, unit=values.dtype.str)
    if kind in "OUTS":
        return _cells(name, values.tolist())
    raise _unfit(name, kind_of(values.dtype))


def _of_series(name: str, values: nw.Series) -> TakenColumn:
    kind: Any = values.dtype
    native = values.to_native()
    if getattr(getattr(native, "dtype", None), "kind", "") == "c":
        raise _unfit(name, "complex numbers")
    if kind in (nw.Categorical, nw.Enum):
        return _categories(name, values, native)
    if kind == nw.Boolean or kind.is_integer():
        missing = values.is_null().to_numpy().astype(bool)
        if kind in (nw.Int128, nw.UInt128):
            return _cells(name, values.to_list())
        full = values.fill_null(kind != nw.Boolean and 0) if missing.any() else values
        dtype = bool if kind == nw.Boolean else None
        return _numbers(name, np.asarray(full.to_numpy(), dtype), missing)
    if kind.is_float():
        held = values.to_numpy()
        held = held.astype(np.float64) if held.dtype.kind != "f" else held
        return _numbers(name, held, np.isnan(held))
    if kind in (nw.Date, nw.Datetime, nw.Duration):
        held = values.to_numpy()
        if held.dtype.kind not in "Mm":  # dates of pandas that are stored in arrow
            return _cells(name, values.to_list())
        found = _taken(name, held)
        return found._replace(kind="date") if kind == nw.Date else found
    if kind in (nw.String, nw.Object, nw.Unknown, nw.Binary, nw.Decimal):
        return _cells(name, values.to_list())
    raise _unfit(name, str(kind))


def _categories(name: str, values: nw.Series, native: Any) -> TakenColumn:
    """A column of categories: ordered if its type says so."""
    if values.implementation.is_pandas_like():
        codes, ordered = native.cat.codes.to_numpy(), bool(native.cat.ordered)
        texts = list(map(str, native.cat.categories))
        return _coded(name, codes, texts, ordered)
    cells = values.to_list()
    known = [cell for cell in cells if cell is not None]
    if values.implementation.is_pyarrow():
        ordered = bool(native.type.ordered)
        listed = (chunk.dictionary.to_pylist() for chunk in native.chunks)
        texts = list(dict.fromkeys(text for some in listed for text in some))
    else:
        ordered = values.dtype == nw.Enum
        kind: Any = values.dtype
        texts = list(kind.categories) if ordered else sorted(set(known))
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([-1 if cell is None else place[cell] for cell in cells])
    return _coded(name, codes, list(map(str, texts)), ordered)


def _cells(name: str, cells: Sequence[Any]) -> TakenColumn:
    """A column of Python objects: numbers, texts, moments or booleans, if all of them are."""
    missing = np.array([_is_missing(cell) for cell in cells], bool)
    known = [cell for cell, absent in zip(cells, missing, strict=True) if not absent]
    if all(isinstance(cell, bool | np.bool_) for cell in known):
        return _numbers(name, _filled(known, missing, bool), missing)
    if all(isinstance(cell, Real | Decimal) for cell in known):
        whole = all(isinstance(cell, Integral) and abs(int(cell)) < 2**63 for cell in known)
        return _numbers(name, _filled(known, missing, np.int64 if whole else np.float64), missing)
    if all(isinstance(cell, str | bytes) for cell in known):
        texts = sorted(set(map(_text, known)))
        place = {text: code for code, text in enumerate(texts)}
        codes = np.full(len(cells), -1)
        codes[~missing] = [place[_text(cell)] for cell in known]
        return _coded(name, codes, texts, ordered=False)
    if all(isinstance(cell, timedelta) for cell in known):
        held = _filled(known, missing, "m8[us]").astype(np.int64)
        return TakenColumn(name, held, missing, "duration", unit="<m8[us]")
    if all(isinstance(cell, date) for cell in known):
        moments = [_in_utc(cell) for cell in known]
        held = _filled(moments, missing, "M8[us]").astype(np.int64)
        timed = any(isinstance(cell, datetime) for cell in known)
        what = "timestamp" if timed else "date"
        return TakenColumn(name, held, missing, what, unit="<M8[us]")
    kinds = sorted({type(cell).__name__ for cell in known})
    raise _unfit(name, f"a mixture of {', '.join(kinds)}" if len(kinds) > 1 else kinds[0])


def _coded(
    name: str, codes: Shaped[np.ndarray, " n"], texts: Sequence[Any], ordered: bool
) -> TakenColumn:
    """Categories that occur, numbered from 0 in their order."""
    missing = codes < 0
    occur, place = np.unique(codes[~missing], return_inverse=True)
    if len(occur) > MOST_CATEGORIES and not ordered:
        raise ValueError(
            f"column {name!r} has {len(occur)} categories, and at most {MOST_CATEGORIES} can be "
            "scored without an order: leave it out if it identifies records, group its rare "
            "categories, or convert it to numbers or dates"
        )
    found = np.zeros(len(codes), np.int64)
    found[~missing] = place
    kept = tuple(str(texts[code]) for code in occur)
    return TakenColumn(name, found, missing, "ordered" if ordered else "nominal", kept)


def _numbers(name: str, values: Shaped[np.ndarray, " n"], missing: Mask) -> TakenColumn:
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"column {name!r} has infinite values; replace them, or leave it out")
    if values.dtype.kind == "b":
        return TakenColumn(name, values.astype(np.uint8), missing, "boolean")
    held = np.where(missing, values.dtype.type(0), values) if missing.any() else values
    return TakenColumn(name, held, missing, "number")


def _filled(known: Sequence[Any], missing: Mask, dtype: Any) -> Shaped[np.ndarray, " n"]:
    held = np.zeros(len(missing), dtype)
    held[~missing] = np.array(known, dtype)
    return held


def _is_missing(cell: Any) -> bool:
    # pandas' NA does not say whether it differs from itself; NaN, NaT and their kin do.
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def _text(cell: str | bytes) -> str:
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else str(cell)


def _in_utc(cell: date) -> date:
    """A moment without its zone, in UTC."""
    if not isinstance(cell, datetime) or cell.tzinfo is None:
        return cell
    return cell.astimezone(UTC).replace(tzinfo=None)


def _none(values: Shaped[np.ndarray, " n"]) -> Mask:
    return np.zeros(len(values), bool)


def _unfit(name: str, given: str) -> TypeError:
    return TypeError(
        f"expected numbers, booleans, texts, categories, dates or durations in column {name!r}, "
        f"got {given}; convert it, or leave it out"
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {_quoted(names)}"


def _has(names: Sequence[str]) -> str:
    return "have" if len(names) > 1 else "has"
