"""Named columns from the X and y of scikit-learn, with errors that show no values.

Private inputs are checked by their structure only (`held_inputs`): lists and arrays of objects keep
their cells, and no cell is refused.

Error messages of scikit-learn quote an array that is complex or has the wrong number of dimensions,
or a text that is not a number. So scikit-learn is used only for the names and the number of
features, and such arrays are refused before it sees them.
"""

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from dpmic_jax.data.source.memory import Held, objects, records
from dpmic_jax.data.table import FEWEST_RECORDS, array_of

_PLAIN = Real | Decimal | str | None | np.generic
_DIMENSIONS = (
    "expected X as records by columns, got {} dimension(s). Reshape your data with "
    "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one record."
)


class Inputs(NamedTuple):
    """The columns of X by name, each in its own dtype, and y."""

    columns: dict[str, Held]
    target: Any


def inputs(estimator: BaseEstimator, X: Any, y: Any) -> Inputs:
    """The columns of X and y for a non-private selector. The estimator is not changed.

    Features have the names of the data frame if these are text, else x0, x1, ...
    """
    table = table_of(X)
    columns = [table[:, index] for index in range(table.shape[1])]
    found = _named(estimator, X, y, columns, _series(y))
    # numpy would convert a list of texts and numbers to texts.
    return found._replace(target=y) if isinstance(y, list | tuple) else found


def held_inputs(estimator: BaseEstimator, X: Any, y: Any) -> Inputs:
    """The columns of X and y for a private selector: cells are left as they are."""
    return _named(estimator, X, y, _held(X), _cells(y) if _is_list(y) else _series(y))


def _named(
    estimator: BaseEstimator, X: Any, y: Any, columns: Sequence[Held], target: Held
) -> Inputs:
    shape = (len(columns[0]) if columns else len(X), len(columns))
    for least, count, what in ((1, shape[1], "feature"), (FEWEST_RECORDS, shape[0], "sample")):
        if count < least:
            raise ValueError(
                f"Found array with {count} {what}(s) (shape={shape}) while a minimum of "
                f"{least} is required."
            )
    named = set_feature_names(clone(estimator), X, y)  # a clone, so the estimator is not changed
    if len(target.shape) != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {target.shape} instead.")
    if len(target) != shape[0]:
        raise ValueError(
            f"expected X and y to have the same number of records, got {shape[0]} and {len(target)}"
        )
    names = getattr(named, "feature_names_in_", None)
    if names is None:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and all(isinstance(name, str) for name in frame.columns):
            raise TypeError(
                f"scikit-learn {sklearn.__version__} does not see the column names of this frame; "
                "use scikit-learn 1.9 or later for polars 2 frames, or pass X.to_pandas()"
            )
        names = [f"x{index}" for index in range(shape[1])]
    return Inputs(dict(zip(map(str, names), columns, strict=True)), target)


def set_feature_names(estimator: Any, X: Any, y: Any) -> Any:
    """Let scikit-learn set the estimator's `n_features_in_` and `feature_names_in_`."""
    validate_data(estimator, X, y, skip_check_array=True)
    return estimator


def table_of(X: Any) -> np.ndarray | nw.DataFrame:
    """X as a data frame or an array of records by columns; errors show no values."""
    frame = _frame(X)
    if frame is not None:
        return frame
    array = _checked(array_of(X))
    if array.dtype.kind == "O" and not all(isinstance(value, _PLAIN) for value in array.flat):
        # `check_estimator` looks for "argument must be a string ... number", the words of float().
        raise TypeError(
            "X holds other objects; each argument must be a string or a number, as for float()"
        )
    return array


def _held(X: Any) -> list[Held]:
    """The columns of X; errors depend on its structure alone."""
    frame = _frame(X)
    if frame is not None:
        return [frame[:, index] for index in range(frame.shape[1])]
    if not _is_list(X):
        return list(_checked(array_of(X)).T)
    columns = records(X)
    if columns is None:
        raise ValueError(_DIMENSIONS.format(1))
    return list(columns)


def _frame(X: Any) -> nw.DataFrame | None:
    if issparse(X):
        raise TypeError("sparse data is not supported for X; pass X.toarray()")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _checked(array: np.ndarray) -> np.ndarray:
    if array.ndim != 2:
        raise ValueError(_DIMENSIONS.format(array.ndim))
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported in X; pass real and imaginary parts apart")
    return array


def _is_list(values: Any) -> bool:
    """Whether numpy would infer a dtype from the values."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _cells(y: Sequence[Any]) -> np.ndarray:
    """The cells of a list. A list of lists only is refused, because it has two dimensions.

    A single cell that is a list is a missing value. One record can decide whether all cells are
    lists only if all others are lists, and then the target has no information in any case.
    """
    if len(y) and all(_is_list(cell) or (isinstance(cell, np.ndarray) and cell.ndim) for cell in y):
        raise ValueError("y should be a 1d array, got a list of lists instead.")
    return objects(y)


def _series(values: Any) -> Held:
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else array_of(values)
