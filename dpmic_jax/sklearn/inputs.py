"""What scikit-learn passes as X and y -> named columns, with errors that show no values.

scikit-learn quotes an array that is complex or has the wrong number of dimensions, or a text that
is no number. So it is asked for names and numbers of features only, and what it would quote is
refused before it looks.
"""

from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from dpmic_jax.table import FEWEST_RECORDS

Held = np.ndarray | nw.Series
_PLAIN = Real | Decimal | str | None | np.generic


class Inputs(NamedTuple):
    """The columns of X by name, each in its own dtype, and y."""

    columns: dict[str, Held]
    target: Any


def inputs(estimator: BaseEstimator, X: Any, y: Any) -> Inputs:
    """Take columns out of X and y. The estimator is left as it is.

    Features have the names of the data frame if these are text, else x0, x1, ...
    """
    table = table_of(X)
    records, features = table.shape
    for least, count, what in ((1, features, "feature"), (FEWEST_RECORDS, records, "sample")):
        if count < least:
            raise ValueError(
                f"Found array with {count} {what}(s) (shape={table.shape}) while a minimum of "
                f"{least} is required."
            )
    seen = noted(clone(estimator), X, y)
    target = _series(y)
    if len(target.shape) != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {target.shape} instead.")
    if len(target) != records:
        raise ValueError(
            f"expected X and y to have the same number of records, got {records} and {len(target)}"
        )
    names = getattr(seen, "feature_names_in_", None)
    if names is None:
        if isinstance(table, nw.DataFrame) and all(isinstance(name, str) for name in table.columns):
            raise TypeError(
                f"scikit-learn {sklearn.__version__} does not see the column names of this frame; "
                "use scikit-learn 1.9 or later for polars 2 frames, or pass X.to_pandas()"
            )
        names = [f"x{index}" for index in range(features)]
    columns = {str(name): table[:, index] for index, name in enumerate(names)}
    # Of texts and numbers in a list numpy would make texts.
    return Inputs(columns, y if isinstance(y, list | tuple) else target)


def noted(estimator: Any, X: Any, y: Any) -> Any:
    """Let scikit-learn set the estimator's `n_features_in_` and `feature_names_in_`."""
    validate_data(estimator, X, y, skip_check_array=True)
    return estimator


def table_of(X: Any) -> np.ndarray | nw.DataFrame:
    """Records by columns, or an error that shows none of them."""
    if issparse(X):
        raise TypeError("sparse data is not supported for X; pass X.toarray()")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"expected X as records by columns, got {array.ndim} dimension(s). Reshape your data "
            "with X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one record."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported in X; pass real and imaginary parts apart")
    if array.dtype.kind == "O" and not all(isinstance(value, _PLAIN) for value in array.flat):
        raise TypeError(
            "X holds other objects: as of float(), an argument must be a string or number"
        )
    return array


def _series(values: Any) -> Held:
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else np.asarray(values)
