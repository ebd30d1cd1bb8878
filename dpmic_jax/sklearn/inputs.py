"""What scikit-learn passes as X and y -> named columns, with errors that show no values.

What is taken privately is looked at by its structure only (`held_inputs`): lists and arrays of
objects keep their cells, none of which is refused.

scikit-learn quotes an array that is complex or has the wrong number of dimensions, or a text that
is no number. So it is asked for names and numbers of features only, and what it would quote is
refused before it looks.
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
    """Take columns out of X and y, for what is not private. The estimator is left as it is.

    Features have the names of the data frame if these are text, else x0, x1, ...
    """
    table = table_of(X)
    columns = [table[:, index] for index in range(table.shape[1])]
    found = _named(estimator, X, y, columns, _series(y))
    # Of texts and numbers in a list numpy would make texts.
    return found._replace(target=y) if isinstance(y, list | tuple) else found


def held_inputs(estimator: BaseEstimator, X: Any, y: Any) -> Inputs:
    """The same for what is private: cells are left as they are."""
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
    seen = set_feature_names(clone(estimator), X, y)
    if len(target.shape) != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {target.shape} instead.")
    if len(target) != shape[0]:
        raise ValueError(
            f"expected X and y to have the same number of records, got {shape[0]} and {len(target)}"
        )
    names = getattr(seen, "feature_names_in_", None)
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
    """Records by columns, or an error that shows none of them."""
    frame = _frame(X)
    if frame is not None:
        return frame
    array = _checked(array_of(X))
    if array.dtype.kind == "O" and not all(isinstance(value, _PLAIN) for value in array.flat):
        raise TypeError(
            "X holds other objects: as of float(), an argument must be a string or number"
        )
    return array


def _held(X: Any) -> list[Held]:
    """The columns of X, or an error that its structure alone decides."""
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
    """What numpy would infer a dtype of."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _cells(y: Sequence[Any]) -> np.ndarray:
    """The cells of a list, unless all of them are lists: then it has two dimensions.

    One cell that is a list is a value, and missing. A record can decide whether all are only if
    those of all others are lists; a target like that has nothing in it, whatever the record.
    """
    if len(y) and all(_is_list(cell) or (isinstance(cell, np.ndarray) and cell.ndim) for cell in y):
        raise ValueError("y should be a 1d array, got a list of lists instead.")
    return objects(y)


def _series(values: Any) -> Held:
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else array_of(values)
