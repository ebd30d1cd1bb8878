"""Checks of the fields of a result."""

from typing import Any

import numpy as np
from jaxtyping import Int


def check_not_earlier(header: dict[str, Any]) -> None:
    """Refuse the header of a result in which MIC decided what is dependent."""
    if "independence" in header:
        raise ValueError(
            'this result was written by an earlier version of dpmic_jax, in which "mic" above '
            '"independence" decided; now "distance" above "dependence_threshold" decides: read it '
            "with that version, or screen again"
        )


def checked_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns."""
    names = tuple(names)
    if not all(isinstance(name, str) for name in names):
        raise TypeError("expected names to be strings")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError("expected names of at least 2 columns, each once")
    return names


def checked_rows(
    pairs: Int[np.ndarray, "rows 2"], values: dict[str, np.ndarray], columns: int
) -> Int[np.ndarray, "rows 2"]:
    """Pairs of positions.

    Args:
      pairs: the two columns of each row.
      values: the values of each row, by name.
      columns: number of columns of the table.
    """
    pairs = np.asarray(pairs)
    for name, column in values.items():
        if not np.issubdtype(pairs.dtype, np.integer) or pairs.shape != (*column.shape, 2):
            raise ValueError(
                f"expected pairs as whole numbers (x, y), one for each value of {name}"
            )
        if not np.all((column >= 0) & (column <= 1)):
            raise ValueError(f"expected every value of {name} in [0, 1]")
    if not np.all((values["lower"] <= values["mic"]) & (values["mic"] <= values["upper"])):
        raise ValueError("expected lower <= mic <= upper in every row")
    if np.any(pairs < 0) or np.any(pairs >= columns) or np.any(pairs[:, 0] == pairs[:, 1]):
        raise ValueError("expected each of pairs to be two different positions in names")
    low, high = np.sort(pairs.astype(np.int64), axis=1).T
    # One integer for each unordered pair.
    if len(np.unique(low * columns + high)) < len(pairs):
        raise ValueError("expected distinct pairs; one occurs twice")
    return pairs.astype(np.int64)
