"""The distance from independence of two flags, relative to the largest that their shares allow.

The distance of two flags (columns of two values) is at most the smaller of their prevalences, the
shares of their rarer values. Let these be p <= q <= 1/2. Of all 2 x 2 tables with these marginals,
the one in which the rarer value occurs with the other flag's only is furthest from independence,

    L(p, q) = p - u^2             if u = 1 - sqrt(1 - q) <= p,
              p (1 - q) / (1 - p) else,

which is 2 s (1 - s), s = sqrt(1 - p), for p = q: p - p^2/4 - ... for a rare flag. This is also the
most that a flag of prevalence p can be from independence of a column of any kind.

In that table the near side of `mic.distance`, the rarer value of the flag of prevalence p, has the
shares a_1 = p of c_1 = q and a_0 = 0 of c_0 = 1 - q. For t <= p the distance is

    (1 - q) / (1 - t) + (1 - t) - (2 - p - q),

which is smallest at t = u, or at t = p if u > p; larger t give no less.

L grows with p and falls with q, so that over intervals of both it is extreme where they are as
near to each other as possible, or as far. It is post-processing of released values: no privacy is
spent. A flag that may be constant, as far as its limits tell, has an upper limit of 1.
"""

import math
from typing import NamedTuple

Limits = tuple[float, float]


class RelativeDistance(NamedTuple):
    """A relative distance, from 0 to 1, and its limits.

    Attributes:
      value: released distance over the largest for the released shares; `lower` if that is 0.
      lower, upper: hold if distance and shares are within their half widths.
    """

    value: float
    lower: float
    upper: float


def largest_distance(share_x: float, share_y: float) -> float:
    """The largest distance from independence of two flags.

    Args:
      share_x, share_y: shares of the records that have one of the two values. If only one column
        is a flag, pass its share for both.
    """
    _check_share("share_x", share_x)
    _check_share("share_y", share_y)
    return _largest(*sorted((min(share_x, 1 - share_x), min(share_y, 1 - share_y))))


def relative_distance(
    distance: float,
    distance_half_width: float,
    share_x: float,
    share_y: float,
    share_half_width: float,
) -> RelativeDistance:
    """The distance of two flags over the largest that their shares allow, with limits.

    The limits fail with a probability of at most a + 2b, if that of the distance to be off by more
    than its half width is a, and that of a share b.

    Args:
      distance: released distance from independence.
      distance_half_width: limit of its noise, and of what its values of t add, which is
        1 / (steps_of(n) + 1) at most.
      share_x, share_y: released shares of one of the values.
      share_half_width: limit of their noise.
    """
    for name, width in (
        ("distance_half_width", distance_half_width),
        ("share_half_width", share_half_width),
    ):
        if not width >= 0:
            raise ValueError(f"expected {name} >= 0, got {width}")
    _check_share("distance", distance)
    largest = largest_distance(share_x, share_y)
    least, most = _largest_between(
        _prevalences(share_x, share_half_width), _prevalences(share_y, share_half_width)
    )
    lower = _ratio(max(distance - distance_half_width, 0.0), most)
    upper = _ratio(distance + distance_half_width, least)
    return RelativeDistance(_ratio(distance, largest) if largest else lower, lower, upper)


def _largest(p: float, q: float) -> float:
    """L(p, q) for p <= q <= 1/2."""
    u = 1 - math.sqrt(1 - q)
    return p - u**2 if u <= p else p * (1 - q) / (1 - p)


def _largest_between(x: Limits, y: Limits) -> Limits:
    """The smallest and the largest L of a prevalence of x and one of y."""
    apart = [sorted((x[0], y[1])), sorted((x[1], y[0]))]
    smaller = min(x[1], y[1])
    return min(_largest(*each) for each in apart), _largest(smaller, max(smaller, x[0], y[0]))


def _prevalences(share: float, half_width: float) -> Limits:
    """The shares of the rarer value for all shares within half a width."""
    low, high = max(share - half_width, 0.0), min(share + half_width, 1.0)
    ends = min(low, 1 - low), min(high, 1 - high)
    return min(ends), 0.5 if low <= 0.5 <= high else max(ends)


def _ratio(distance: float, largest: float) -> float:
    return min(1.0, distance / largest) if largest > 0 else float(distance > 0)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"expected 0 <= {name} <= 1, got {value}")
