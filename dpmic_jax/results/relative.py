"""Distances from independence relative to the largest that the columns allow.

A flag (a column of two values) whose rarer value has a share of p is never far from independence
of any column, and its MIC is small too, even with itself: 0.47, 0.19, 0.08 for p = 0.1, 0.03, 0.01.
**Its distance from itself is the largest that it has from any column**: a column y that depends on
x is made of x by a random map, which takes tables in which x is independent of its copy to tables
in which it is independent of y, and brings no two tables further apart. For a flag it is
2 s (1 - s) with s = sqrt(1 - p), about p. So of a pair

    relative = distance(x, y) / min(distance(x, x), distance(y, y))

is 1 if the rarer of two flags is decided by the other, however rare it is. One person moves
distance(x, x) by as much as any other distance, so it is released with the same noise, and the
ratio is post-processing. It is not smaller than what chance and the values of t in `mic.distance`
leave of independent columns: whether a pair is dependent is decided by its distance alone.

For columns of more values the same holds for splits of x, but a split of y may be further: there
the ratio is cut at 1.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Rows = Float[np.ndarray, " rows"]


class RelativeDistances(NamedTuple):
    """Relative distances, from 0 to 1, and their limits; NaN if both own distances are unknown.

    Attributes:
      value: distance over the smaller known own distance; `lower` where that is 0.
      lower, upper: hold if all distances are within half a width of the released ones.
    """

    value: Rows
    lower: Rows
    upper: Rows


def relative_distances(
    distance: Rows, own_x: Rows, own_y: Rows, half_width: float
) -> RelativeDistances:
    """Distances over the largest that their columns allow, with limits.

    Args:
      distance: released distances of pairs.
      own_x, own_y: released distances of their columns from themselves; NaN if not released.
      half_width: limit of the noise on each of them.
    """
    if not half_width >= 0:
        raise ValueError(f"expected half_width >= 0, got {half_width}")
    largest = np.fmin(own_x, own_y)  # ignores NaN if it can
    lower = _ratio(distance - half_width, largest + half_width)
    upper = _ratio(distance + half_width, largest - half_width)
    value = np.where(largest > 0, _ratio(distance, largest), lower)
    unknown = np.isnan(largest)
    return RelativeDistances(*(np.where(unknown, np.nan, v) for v in (value, lower, upper)))


def _ratio(distance: Rows, largest: Rows) -> Rows:
    """Within 0 and 1; 1 if `largest` is no larger."""
    inside = (distance > 0) & (distance < largest)
    return np.divide(distance, largest, out=np.sign(np.maximum(distance, 0)), where=inside)
