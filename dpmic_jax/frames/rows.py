"""Some records of a table, in the library that it came in."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Int

from dpmic_jax.data.frame import Frame


def rows(data: Any, places: Int[np.ndarray, " some"]) -> Any:
    """The records at these places, of a table or of a column."""
    if isinstance(data, Mapping):
        return {name: rows(values, places) for name, values in data.items()}
    if hasattr(data, "iloc"):  # narwhals refuses names used twice
        return data.iloc[places]
    native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return native[places].to_native()
    return np.asarray(data)[places]


def column_at(frame: Frame, name: str, argument: str) -> int:
    """The position of a column, or an error that lists the names."""
    if name not in frame.names:
        known = ", ".join(map(repr, frame.names))
        raise ValueError(f"expected {argument} to be one of the columns {known}, got {name!r}")
    return frame.names.index(name)
