"""How many lie before each category, and behind it."""

import numpy as np
from jaxtyping import Int64


def below(counts: Int64[np.ndarray, "*shape"], *, axis: int) -> Int64[np.ndarray, "*shape"]:
    """Sums over the categories before each."""
    return np.cumsum(counts, axis=axis) - counts


def above(counts: Int64[np.ndarray, "*shape"], *, axis: int) -> Int64[np.ndarray, "*shape"]:
    """Sums over the categories behind each."""
    return counts.sum(axis=axis, keepdims=True) - np.cumsum(counts, axis=axis)
