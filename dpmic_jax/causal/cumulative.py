"""Counts below and above each category, along an axis of a table of counts."""

import numpy as np
from jaxtyping import Int64


def below(counts: Int64[np.ndarray, "*shape"], *, axis: int) -> Int64[np.ndarray, "*shape"]:
    """Sum of the counts of all lower categories."""
    return np.cumsum(counts, axis=axis) - counts


def above(counts: Int64[np.ndarray, "*shape"], *, axis: int) -> Int64[np.ndarray, "*shape"]:
    """Sum of the counts of all higher categories."""
    return counts.sum(axis=axis, keepdims=True) - np.cumsum(counts, axis=axis)
