"""Tables in memory: arrays, data frames, dictionaries of columns, lists of records.

What has a type is refused if that does not fit, and else converted by its type. Lists and columns
of Python objects have none, and nor have texts: their cells are taken one by one (`cells`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Categories, Number, Rule, Schema
from dpmic_jax.data.schema.rules import twice
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.cells import as_text, codes_of, numbers_of
from dpmic_jax.data.source.coding import Codes, codes, floats, numbers, whole_codes, wrong_type
from dpmic_jax.data.table import Table, array_of, kind_of

# Records coded at a time, so that what is made on the way stays small.
PIECE = 2**16

Held = np.ndarray | nw.Series

# What narwhals calls columns of Python objects, by what it finds in them, and of nulls only; and
# bytes, which arrow makes of all texts beside one.
_UNTYPED = (nw.Object, nw.String, nw.Unknown, nw.Binary)
_SHORT = {nw.Float16: np.float16, nw.Float32: np.float32}
# Casts round decimals by their scale, which one value may give to all: cells are rounded once.
_WIDE = (nw.Decimal, nw.Int128, nw.UInt128)
# What types are called in error texts: some list the categories that occur.
_KINDS = {nw.Categorical: "categories", nw.Enum: "categories"}
_KINDS |= {nw.Date: "dates", nw.Datetime: "dates", nw.Time: "times", nw.Duration: "durations"}
_KINDS |= {nw.List: "lists", nw.Array: "lists", nw.Struct: "records"}


class MemorySource(Source):
    """Columns that are in memory already."""

    def __init__(self, schema: Schema, columns: Mapping[str, Held], where: str):
        super().__init__(schema, tuple(columns), where)
        self._columns = tuple(columns[name] for name in self.names)
        if len({len(column) for column in columns.values()}) > 1:
            raise ValueError(f"expected all columns of {where} to have the same number of records")
        for column, rule, name in zip(self._columns, self.rules, self.names, strict=True):
            check_type(column, rule, name)

    def _count(self) -> int:
        return len(self._columns[0])

    def _pieces(self) -> Iterator[Batch]:
        for start in range(0, len(self._columns[0]), PIECE):
            yield tuple(
                coded(column[start : start + PIECE], rule, name)
                for column, rule, name in zip(self._columns, self.rules, self.names, strict=True)
            )


def held_columns(data: Any) -> dict[str, Held]:
    """Columns by name, from anything that holds them in memory."""
    if isinstance(data, Table):
        return dict(zip(_checked(data.names), data.columns, strict=True))
    if isinstance(data, Mapping):
        return {name: held_column(data[name]) for name in _checked(data)}
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        names = tuple(frame.columns) if isinstance(frame, nw.DataFrame) else ()
    except ValueError:
        raise ValueError("data has two columns of one name; rename one of them") from None
    if isinstance(frame, nw.DataFrame):
        return {name: frame.get_column(name) for name in _checked(names)}
    columns = records(data)
    if columns is None:
        raise TypeError(
            "expected data as a data frame, a dictionary of columns, an array of records by "
            f"columns, or the path of a .csv or .parquet file, got {type(data).__name__}"
        )
    return dict(zip(_checked(f"x{index}" for index in range(len(columns))), columns, strict=True))


def records(data: Any) -> tuple[np.ndarray, ...] | None:
    """The columns of an array, or of a list of records; none if it is neither.

    Of a list numpy would infer one dtype for all cells.
    """
    if not _is_sequence(data):
        array = _as_array(data)
        return tuple(array.T) if array is not None and array.ndim == 2 else None
    plain = set(map(type, data)) <= {list, tuple}
    rows: Sequence[Any] = data if plain else [_record(row) for row in data]
    if any(row is None for row in rows):
        return None
    if len(set(map(len, rows))) > 1:
        raise ValueError("expected records of one length, got a list of shorter and longer ones")
    return tuple(map(objects, zip(*rows, strict=True)))


def held_column(values: Any) -> Held:
    """One column, from a series, an array or a list."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    if _is_sequence(values):
        return objects(values)
    array = np.asarray(values) if (given := _as_array(values)) is None else given
    if array.ndim != 1:
        raise ValueError(f"expected columns of one dimension, got {array.ndim}")
    return array


def objects(values: Sequence[Any]) -> np.ndarray:
    """Cells of any kind, side by side."""
    return np.fromiter(values, object, len(values))


def _is_sequence(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str | bytes)


def _record(data: Any) -> Sequence[Any] | np.ndarray | None:
    if _is_sequence(data):
        return data
    array = _as_array(data)
    return array if array is not None and array.ndim == 1 else None


def _as_array(data: Any) -> np.ndarray | None:
    """What has a dtype of its own, such as an array of JAX."""
    if isinstance(data, np.ndarray) or hasattr(data, "__array__"):
        return array_of(data)
    return None


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


def check_type(column: Held, rule: Rule, name: str) -> None:
    """Refuse what can be refused by its type; no value is looked at."""
    coded(column[:0], rule, name)


def coded(values: Held, rule: Rule, name: str) -> Column:
    """A column as numbers; the name is for error texts."""
    if isinstance(rule, Number):
        return numbers(floats_in(values, rule, name), rule)
    return codes(_codes(values, rule, name), rule)


def floats_in(values: Held, rule: Number, name: str) -> Float[np.ndarray, " n"]:
    """A column as floats, NaN where a cell holds no number; rule and name are for error texts."""
    if isinstance(values, nw.Series):
        if _is_numeric(values):
            return _series_floats(values)
        if values.dtype not in _UNTYPED or _is_complex(values):
            raise wrong_type(name, rule, _kind(values))
        values = _cells(values)
    kind = values.dtype.kind
    if kind in "biuf":
        return floats(values)
    if kind in "OUTS":
        return numbers_of(_texts(values))
    raise wrong_type(name, rule, kind_of(values.dtype))


def _codes(values: Held, rule: Categories, name: str) -> Codes:
    """Codes of categories, those of values that are missing or not declared among them."""
    if isinstance(values, nw.Series):
        if _is_numeric(values) and rule.kind is not str:
            exact = values.dtype not in _WIDE and not values.null_count()
            values = values.to_numpy() if exact else _cells(values)
        elif values.dtype in (*_UNTYPED, nw.Categorical, nw.Enum) and not _is_complex(values):
            values = _cells(values)
        else:
            raise wrong_type(name, rule, _kind(values))
    kind = values.dtype.kind
    if kind in "biuf" and rule.kind is not str:
        return whole_codes(values, np.zeros(len(values), bool), rule)
    if kind in "OUTS":
        return codes_of(_texts(values), rule)
    raise wrong_type(name, rule, kind_of(values.dtype))


def _cells(values: nw.Series) -> np.ndarray:
    cells = values.to_list()
    if _is_binary(values):
        cells = [as_text(cell) if isinstance(cell, bytes) else None for cell in cells]
    return objects(cells)


def _is_binary(values: nw.Series) -> bool:
    """Whether a series is of bytes. narwhals knows one of the types that arrow has for them."""
    native = values.to_native()
    # Of a chunked array, and of a series that pandas keeps in arrow.
    kind = getattr(native, "type", getattr(getattr(native, "dtype", None), "pyarrow_dtype", None))
    held = getattr(kind, "value_type", kind)  # of a dictionary
    return values.dtype == nw.Binary or "binary" in str(held).split("[")[0]


def _texts(values: np.ndarray) -> list[Any]:
    """Cells, as texts where the dtype is of bytes."""
    cells = values.tolist()
    return list(map(as_text, cells)) if values.dtype.kind == "S" else cells


def _is_numeric(values: nw.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype == nw.Boolean


def _series_floats(values: nw.Series) -> Float[np.ndarray, " n"]:
    """By the type of the series alone, whether or not it has nulls."""
    short = [dtype for kind, dtype in _SHORT.items() if values.dtype == kind]
    if values.dtype == nw.Boolean:
        values = values.cast(nw.UInt8)
    elif values.dtype in _WIDE:
        return numbers_of(_cells(values))
    with np.errstate(invalid="ignore"):  # as numpy calls a NaN that is said to signal
        return values.to_numpy().astype(short[0] if short else np.float64)


def _is_complex(values: nw.Series) -> bool:
    """narwhals knows no complex numbers, and numpy makes them of all numbers beside one."""
    return getattr(getattr(values.to_native(), "dtype", None), "kind", "") == "c"


def _kind(values: nw.Series) -> str:
    if _is_numeric(values):
        return "numbers"
    if _is_complex(values):
        return "complex numbers"
    found = [text for kind, text in _KINDS.items() if values.dtype == kind]
    return found[0] if found else "values of another type"
