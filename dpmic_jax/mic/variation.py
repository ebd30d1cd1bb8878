"""Dependence across one cut: how far a joint distribution is from independence, in total variation.

Cut one axis in two and the other into parts j. With p_j the share of records in part j on the near
side of the cut, p their sum and q_j the share in part j, the dependence is 2 sum_j |p_j - p q_j| =
4 p (1-p) TV(near, far), where TV is the distance of the two conditional distributions. It is 0 if
both are the same, and 1 if they do not overlap and have half of the records each.
"""

import numpy as np
from jaxtyping import Int


def variation(counts: Int[np.ndarray, "pairs rows columns"]) -> Int[np.ndarray, " pairs"]:
    """n^2 times the largest dependence over all cuts of either axis, an integer up to n^2.

    With a_j records of part j on the near side, a their sum and c_j all records of part j,
    it is the largest 2 sum_j |n a_j - a c_j|. Cuts are between any two rows, with the columns for
    parts, and the other way round.

    Args:
      counts: records in each cell of a grid, the same number n in every pair.
    """
    counts = counts.astype(np.int64)
    return np.maximum(_best_cut(counts), _best_cut(counts.swapaxes(1, 2)))


def _best_cut(counts: Int[np.ndarray, "pairs rows columns"]) -> Int[np.ndarray, " pairs"]:
    near = counts.cumsum(axis=1)
    parts = near[:, -1:]
    n = parts.sum(axis=2, keepdims=True)
    apart = np.abs(n * near - near.sum(axis=2, keepdims=True) * parts)
    return 2 * apart.sum(axis=2).max(axis=1)
