"""Named columns of numbers from arrays and data frames, checked before any computation."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Int, Shaped

from dpmic_jax.data.limits import Column, NumberLimits, ScaledBounds
from dpmic_jax.data.schema.rules import Number

FEWEST_RECORDS = 4

BoundsOf = Sequence[NumberLimits] | Mapping[str, NumberLimits]
Pairs = Sequence[tuple[str | int, str | int]] | Int[np.ndarray, "pairs 2"]


class Table(NamedTuple):
    """Columns of one length, each in its own dtype.

    Attributes:
      names: names of the columns.
      columns: their values.
      source: the data frame that they came from, if any, so that results can be returned as a
        frame of the same library.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    source: Any = None


def table(data: Any, argument: str) -> Table:
    """The columns of an (n, m) array or of any data frame that narwhals supports.

    Args:
      data: the array or data frame.
      argument: the caller's name of the argument, for error messages.
    """
    if isinstance(data, Table):
        return _checked(data, argument)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        _unique(frame.columns, argument)
        return _checked(
            Table(
                tuple(frame.columns),
                tuple(frame[name].to_numpy() for name in frame.columns),
                source=data,
            ),
            argument,
        )
    array = array_of(data)
    if array.ndim != 2:
        raise ValueError(
            f"expected {argument} to be a data frame or an array of records by columns, "
            f"got {array.ndim} dimension(s)"
        )
    names = tuple(f"{argument.lower()}{index}" for index in range(array.shape[1]))
    return _checked(Table(names, tuple(array.T)), argument)


def array_of(data: Any) -> np.ndarray:
    """An array in which masked cells are missing; the values under a mask are not read.

    Masked floats become NaN. Arrays of other numbers or texts become objects, None where masked.
    """
    if not isinstance(data, np.ma.MaskedArray) or data.dtype.kind not in "biufOUTS":
        return np.asarray(data)
    if data.dtype.kind == "f":
        return data.filled(np.nan)
    # An array of bytes cannot hold None, so bytes are decoded here as elsewhere.
    kept = np.char.decode(data.data, "utf-8", "surrogateescape") if data.dtype.kind == "S" else data
    cells = np.asarray(kept).astype(object)
    cells[np.ma.getmaskarray(data)] = None
    return cells


def column(values: Any, argument: str) -> Column:
    """One checked column from a one-dimensional array or series."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    array = series.to_numpy() if isinstance(series, nw.Series) else array_of(values)
    if array.ndim != 1:
        raise ValueError(
            f"expected {argument} to have one dimension, got {array.ndim}; "
            "for many pairs use pairwise"
        )
    return _checked(Table((argument,), (array,)), argument).columns[0]


def one_pair(x: Any, y: Any) -> Table:
    """A table of two checked columns, x and y, of the same records."""
    pair = Table(("x", "y"), (column(x, "x"), column(y, "y")))
    same_length(pair.columns[0], pair.columns[1], "x and y")
    return pair


def same_length(one: Column, other: Column, names: str) -> None:
    """Refuse columns of different lengths."""
    if len(one) != len(other):
        raise ValueError(
            f"expected {names} to have the same number of records, got {len(one)} and {len(other)}"
        )


def positions(names: Sequence[str], pairs: Pairs) -> Int[np.ndarray, "pairs 2"]:
    """The positions of the two columns of every pair, checked."""
    if isinstance(pairs, str) or not isinstance(pairs, Sequence | np.ndarray):
        raise TypeError(f"expected pairs to be a list of pairs of columns (x, y), got {pairs!r}")
    if not len(pairs):
        raise ValueError("expected pairs to name at least one (x, y), got none")
    return np.array([[_position(names, name) for name in _two(pair)] for pair in pairs])


def _two(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ValueError(f"expected each of pairs to be two columns (x, y), got {pair!r}")
    x, y = pair
    return x, y


def _position(names: Sequence[str], name: Any) -> int:
    if isinstance(name, str) and name in names:
        return names.index(name)
    if isinstance(name, int | np.integer) and 0 <= name < len(names):
        return int(name)
    raise ValueError(
        f"pairs has an unknown column {name!r}; use the name of a column, or a position from 0 "
        f"to {len(names) - 1}"
    )


def bounds_of(
    names: Sequence[str], bounds: BoundsOf | None, argument: str
) -> tuple[NumberLimits, ...]:
    """The checked public bounds of every column: (low, high), or `ScaledBounds`."""
    if bounds is None:
        raise ValueError(
            f"MICr needs public bounds: pass {argument} as a (low, high) for each column, in "
            "order or by name; bounds taken from the data would not be public"
        )
    if isinstance(bounds, Mapping):
        missing = [name for name in names if name not in bounds]
        if missing:
            raise ValueError(f"{argument} has no (low, high) for column {missing[0]!r}")
        bounds = [bounds[name] for name in names]
    if len(bounds) != len(names):
        raise ValueError(
            f"expected {argument} to have a (low, high) for each of {len(names)} "
            f"columns, got {len(bounds)}"
        )
    return tuple(
        _one_bounds(pair, name, argument) for pair, name in zip(bounds, names, strict=True)
    )


def _one_bounds(pair: Any, name: str, argument: str) -> NumberLimits:
    if isinstance(pair, ScaledBounds):
        return _scaled(pair, name, argument)
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ValueError(
            f"expected {argument} of {name!r} to be (low, high), got {pair!r}"
        ) from None
    # Bounds are public, so their values may be shown.
    if not all(isinstance(end, Real) and math.isfinite(end) for end in (low, high)):
        raise ValueError(f"expected finite numbers as {argument} of {name!r}, got {pair!r}")
    if low >= high:
        raise ValueError(f"expected low < high as {argument} of {name!r}, got {pair!r}")
    as_python = (end.item() if isinstance(end, np.generic) else end for end in (low, high))
    low, high = as_python
    return low, high


def _scaled(given: ScaledBounds, name: str, argument: str) -> NumberLimits:
    low, high, scale = given
    try:
        if isinstance(scale, str):
            rule = Number(low, high, scale=scale)
        else:
            rule = Number(low, high, breakpoints=scale)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{argument} of {name!r}: {error}") from None
    if rule.cut_scale == "linear":
        return rule.low, rule.high
    return ScaledBounds(rule.low, rule.high, rule.cut_scale)


# Names of dtypes in error messages. The dtype itself would show the length of the longest text.
_KINDS = {"U": "text", "T": "text", "S": "bytes", "V": "bytes", "M": "dates", "m": "durations"}
_KINDS |= {"c": "complex numbers", "b": "booleans", "O": "objects", "f": "long floats"}


def kind_of(dtype: np.dtype) -> str:
    """The kind of values of a dtype, without its other properties."""
    return _KINDS.get(dtype.kind, "integers")


def _unique(names: Sequence[str], argument: str) -> None:
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise ValueError(f"expected {argument} to have distinct column names, got two {twice[0]!r}")


def _checked(table: Table, argument: str) -> Table:
    if not table.columns:
        raise ValueError(f"expected {argument} to have columns, got none")
    if len(table.columns[0]) < FEWEST_RECORDS:
        raise ValueError(
            f"expected {argument} to have at least {FEWEST_RECORDS} records, "
            f"got {len(table.columns[0])}"
        )
    columns = tuple(
        _numbers(values, f"column {name!r} of {argument}" if name != argument else argument)
        for name, values in zip(table.names, table.columns, strict=True)
    )
    return table._replace(columns=columns)


def _numbers(values: Shaped[np.ndarray, " n"], where: str) -> Column:
    """The values, if they are finite numbers. Error messages never show a value."""
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    # Only long floats have more than 8 bytes, and binning does not support them.
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise TypeError(
            f"expected numbers in {where}, got {kind_of(values.dtype)}; "
            "encode categories as integers, and fill in missing values"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{where} has NaN or infinite values; fill them in or leave it out")
    return values
