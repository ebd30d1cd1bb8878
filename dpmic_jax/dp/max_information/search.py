"""The least value of a function of few positive numbers, on grids that zoom in."""

from collections.abc import Callable, Sequence

import numpy as np

_POINTS = {1: 65, 3: 17}
_ROUNDS = 24


def least(
    value: Callable[..., np.ndarray], box: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """Where `value` is least over a box, to many digits if it is unimodal there.

    Every bound in this folder is valid at every point, so a point that is not quite the best
    costs sharpness, never validity. NaN counts as infinite.

    Args:
      value: takes one array an axis, all of one shape.
      box: lowest and highest number of each axis, above zero.
    """
    points = _POINTS[len(box)]
    limits = np.log(np.array(box, float))
    lows, highs = limits[:, 0], limits[:, 1]
    best, place = np.inf, np.exp(lows)
    for _ in range(_ROUNDS):
        axes = [np.linspace(low, high, points) for low, high in zip(lows, highs, strict=True)]
        mesh = np.exp(np.stack(np.meshgrid(*axes, indexing="ij")))
        with np.errstate(all="ignore"):
            found = np.nan_to_num(value(*mesh), nan=np.inf, posinf=np.inf)
        index = np.unravel_index(np.argmin(found), found.shape)
        if found[index] < best:
            best, place = found[index], mesh[(slice(None), *index)]
        centre, reach = np.log(place), (highs - lows) / 4
        lows = np.maximum(limits[:, 0], centre - reach)
        highs = np.minimum(limits[:, 1], centre + reach)
    return tuple(float(each) for each in place)
