"""The least value of a function of few positive numbers, on grids that zoom in."""

from collections.abc import Callable, Sequence

import numpy as np

# The zoom is slow enough to walk along a valley that is not parallel to an axis.
_POINTS, _ROUNDS, _SHRINK = {1: 65, 3: 13}, {1: 24, 3: 60}, {1: 0.5, 3: 0.7}


def least(
    value: Callable[..., np.ndarray], box: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """Where `value` is least over a box, to many digits if it has one valley there.

    Every bound in this folder is valid at every point, so a point that is not quite the best
    costs sharpness, never validity. NaN counts as infinite.

    Args:
      value: takes one array an axis, all of one shape.
      box: lowest and highest number of each axis, above zero; one axis or three.
    """
    axes = len(box)
    steps = np.linspace(-0.5, 0.5, _POINTS[axes])
    grid = np.stack(np.meshgrid(*[steps] * axes, indexing="ij")).reshape(axes, -1)
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
