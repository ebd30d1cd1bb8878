"""Minimisation of a function of one or three positive numbers, on grids that zoom in."""

from collections.abc import Callable, Sequence

import numpy as np

# For one and for three axes. In three the grid shrinks slowly enough to follow a valley that is not
# parallel to an axis.
_POINTS, _ROUNDS, _SHRINK = {1: 65, 3: 13}, {1: 24, 3: 60}, {1: 0.5, 3: 0.7}


def least(
    value: Callable[..., np.ndarray], box: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """The point of a box at which `value` is least, to many digits if it has a single valley.

    Every bound in this folder is valid at every point, so a point that is not quite the best makes
    a bound looser, but not wrong. NaN counts as infinite.

    Args:
      value: a function of one array per axis, all of one shape.
      box: lowest and highest number of each axis, above zero; one axis or three.
    """
    axes = len(box)
    steps = np.linspace(-0.5, 0.5, _POINTS[axes])
    grid = np.stack(np.meshgrid(*[steps] * axes, indexing="ij")).reshape(axes, -1)
    # On a logarithmic scale, since ranges span many orders of magnitude.
    lows, highs = np.log(np.array(box, float)).T[..., None]
    centre, width, best = (lows + highs) / 2, highs - lows, np.inf
    for _ in range(_ROUNDS[axes]):
        points = np.clip(centre + width * grid, lows, highs)
        with np.errstate(all="ignore"):
            found = np.nan_to_num(value(*np.exp(points)), nan=np.inf, posinf=np.inf)
        index = np.argmin(found)
        if found[index] < best:
            best, centre = found[index], points[:, index, None]
        width = width * _SHRINK[axes]
    return tuple(float(each) for each in np.exp(centre[:, 0]))
