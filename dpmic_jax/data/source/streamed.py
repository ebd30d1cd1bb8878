"""Which tables other libraries read for us: those of `streams`."""

import sys
from typing import Any

import narwhals as nw

from dpmic_jax.data.source.query import Query


def is_streamed(data: Any) -> bool:
    """Whether a table is not in memory, nor in a file that is read here."""
    if isinstance(data, Query | nw.LazyFrame) or nw.dependencies.is_polars_lazyframe(data):
        return True
    return _is_dataset(data) or (hasattr(data, "__arrow_c_stream__") and not _is_held(data))


def _is_held(data: Any) -> bool:
    """Whether an object with a stream is a data frame or a series in memory."""
    try:
        known = nw.from_native(data, eager_only=True, pass_through=True, allow_series=True)
    except ValueError:  # a data frame with two columns of one name, which is refused elsewhere
        return True
    return isinstance(known, nw.DataFrame | nw.Series)


def _is_dataset(data: Any) -> bool:
    loaded = sys.modules.get("pyarrow.dataset")  # not imported: a dataset's module is loaded
    return loaded is not None and isinstance(data, loaded.Dataset)
