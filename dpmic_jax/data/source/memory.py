"""Tables in memory: arrays, data frames, dictionaries of columns, lists of records.

A column with a type is refused if the type does not fit, and otherwise converted by its type.
Lists, columns of Python objects and texts have no such type: their cells are read one by one
(`cells`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from dpmic_jax.data.limits import Column
from dpmic_jax.data.schema import Categories, Number, Rule, Schema, Times
from dpmic_jax.data.schema.rules import twice
from dpmic_jax.data.source import ids
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.cells import as_text, codes_of, numbers_of
from dpmic_jax.data.source.coding import Codes, codes, floats, numbers, whole_codes, wrong_type
from dpmic_jax.data.source.ids import PersonId
from dpmic_jax.data.source.moments import Moments, array_moments, cell_moments, takes
from dpmic_jax.data.table import Table, array_of, kind_of

# Records that are coded at a time, to keep intermediate arrays small.
PIECE = 2**16

Held = np.ndarray | nw.Series

# The dtypes of narwhals for nulls and for columns of Python objects, which it infers from values;
# and bytes, to which arrow converts a column of texts that has one cell of bytes.
_UNTYPED = (nw.Object, nw.String, nw.Unknown, nw.Binary)
_INSTANTS = nw.Date, nw.Datetime
_SHORT = {nw.Float16: np.float16, nw.Float32: np.float32}
# Read by cells: a cast would round to the scale of the column, which may depend on one value.
_WIDE = (nw.Decimal, nw.Int128, nw.UInt128)
# Names of types in error messages. Some types themselves would list the categories that occur.
_KINDS = {nw.Categorical: "categories", nw.Enum: "categories"}
_KINDS |= {nw.Date: "dates", nw.Datetime: "dates", nw.Time: "times", nw.Duration: "durations"}
_KINDS |= {nw.List: "lists", nw.Array: "lists", nw.Struct: "records"}


class MemorySource(Source):
    """A table whose columns are in memory."""

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
    """The columns of a table in memory, by name."""
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
    """The columns of an array or of a list of records; None if it is neither.

    Columns of a list hold objects, because numpy would infer one dtype for all cells.
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
    """An array of cells of any type."""
    return np.fromiter(values, object, len(values))


def _is_sequence(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str | bytes)


def _record(data: Any) -> Sequence[Any] | np.ndarray | None:
    if _is_sequence(data):
        return data
    array = _as_array(data)
    return array if array is not None and array.ndim == 1 else None


def _as_array(data: Any) -> np.ndarray | None:
    """The array of an object that has a dtype, such as a JAX array; None for others."""
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


def check_type(column: Held, rule: Rule | PersonId, name: str) -> None:
    """Refuse a column whose type does not fit the rule, without reading values."""
    # An empty slice has the type of the column, and takes the same path as its values.
    coded(column[:0], rule, name)


def coded(values: Held, rule: Rule | PersonId, name: str) -> Column:
    """A column as the numbers that are screened; the name is for error messages."""
    if isinstance(rule, PersonId):
        return _ids(values, rule, name)
    if isinstance(rule, Number):
        return numbers(floats_in(values, rule, name), rule)
    if isinstance(rule, Times):
        return numbers(_moments(values, rule, name), rule.number)
    return codes(_codes(values, rule, name), rule)


def _ids(values: Held, rule: PersonId, name: str) -> Column:
    """Ids of persons; the name is for error messages."""
    if isinstance(values, nw.Series):
        if _is_numeric(values.dtype) and values.dtype not in _WIDE:
            missing = values.is_null().to_numpy().astype(bool)
            if values.dtype.is_float():
                return ids.of_floats(_series_floats(values))
            return ids.of_integers(values.fill_null(0).to_numpy(), missing)
        if values.dtype not in (*_UNTYPED, *_WIDE, nw.Categorical, nw.Enum) or _is_complex(values):
            raise wrong_type(name, rule, _kind(values))
        values = _cells(values)
    kind = values.dtype.kind
    if kind in "biu":
        return ids.of_integers(values, np.zeros(len(values), bool))
    if kind == "f":
        return ids.of_floats(values)
    if kind in "OUTS":
        return ids.of_cells(_texts(values))
    raise wrong_type(name, rule, kind_of(values.dtype))


def floats_in(values: Held, rule: Number, name: str) -> Float[np.ndarray, " n"]:
    """A column as floats, NaN where a cell is not a number; the name is for error messages."""
    if isinstance(values, nw.Series):
        dtype = values.dtype  # asked for once: narwhals infers it from the cells of objects
        if _is_numeric(dtype):
            return _series_floats(values)
        if dtype not in _UNTYPED or _is_complex(values):
            raise wrong_type(name, rule, _kind(values))
        values = _cells(values)
    kind = values.dtype.kind
    if kind in "biuf":
        return floats(values)
    if kind in "OUTS":
        return numbers_of(_texts(values))
    raise wrong_type(name, rule, kind_of(values.dtype))


def _moments(values: Held, rule: Times, name: str) -> Moments:
    """A column as days or microseconds, NaN where a cell is no moment of the rule's kind."""
    if isinstance(values, nw.Series):
        dtype = values.dtype
        if isinstance(dtype, nw.Duration if rule.kind == "duration" else _INSTANTS):
            array = values.to_numpy()  # in UTC
            values = array if array.dtype.kind in "Mm" else _cells(values)  # pandas' arrow dates
        elif dtype in _UNTYPED and not _is_complex(values):
            values = _cells(values)
        else:
            raise wrong_type(name, rule, _kind(values))
    if takes(rule, values):
        return array_moments(values, rule)
    if values.dtype.kind in "OUTS":
        return cell_moments(_texts(values), rule)
    raise wrong_type(name, rule, kind_of(values.dtype))


def _codes(values: Held, rule: Categories, name: str) -> Codes:
    """Codes of categories, `MISSING` or `UNDECLARED`."""
    if isinstance(values, nw.Series):
        dtype = values.dtype
        if _is_numeric(dtype) and rule.kind is not str:
            exact = dtype not in _WIDE and not values.null_count()
            values = values.to_numpy() if exact else _cells(values)
        elif dtype in (*_UNTYPED, nw.Categorical, nw.Enum) and not _is_complex(values):
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
    """Whether a series holds bytes. narwhals supports one of the types that arrow has for them."""
    native = values.to_native()
    # `type` is of a chunked array, `pyarrow_dtype` of a pandas series that is stored in arrow.
    kind = getattr(native, "type", getattr(getattr(native, "dtype", None), "pyarrow_dtype", None))
    held = getattr(kind, "value_type", kind)  # `value_type` is of a dictionary
    return "binary" in str(held).split("[")[0] or values.dtype == nw.Binary


def _texts(values: np.ndarray) -> list[Any]:
    """The cells of an array, with bytes decoded to texts."""
    cells = values.tolist()
    return list(map(as_text, cells)) if values.dtype.kind == "S" else cells


def _is_numeric(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_numeric() or dtype == nw.Boolean


def _series_floats(values: nw.Series) -> Float[np.ndarray, " n"]:
    """A numeric series as floats, in a dtype that does not depend on whether it has nulls."""
    held = values.dtype
    short = [dtype for kind, dtype in _SHORT.items() if held == kind]
    if held == nw.Boolean:
        values = values.cast(nw.UInt8)
    elif held in _WIDE:
        return numbers_of(_cells(values))
    with np.errstate(invalid="ignore"):  # numpy would warn of a signalling NaN
        return values.to_numpy().astype(short[0] if short else np.float64)


def _is_complex(values: nw.Series) -> bool:
    """Whether a series is complex, for which narwhals has no dtype; one value makes all complex."""
    return getattr(getattr(values.to_native(), "dtype", None), "kind", "") == "c"


def _kind(values: nw.Series) -> str:
    if _is_numeric(values.dtype):
        return "numbers"
    if _is_complex(values):
        return "complex numbers"
    found = [text for kind, text in _KINDS.items() if values.dtype == kind]
    return found[0] if found else "values of another type"
