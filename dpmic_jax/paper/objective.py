"""The objective of tuning: WSUM of appendix E.2.3, with the noise integrated out.

The expected error of v + Laplace noise of scale b, clipped to [0, 1], has a closed form. So only
data sets are sampled and no noise, and every epsilon is evaluated on the same values.
"""

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, "*shape"]


def weights(stars: Float[np.ndarray, " distributions"]) -> Float[np.ndarray, " distributions"]:
    """The weight of each distribution: the length of the part of [0, 1] nearest to its MIC*.

    Weights add up to 1, and ranges of MIC* with many distributions do not dominate.
    """
    order = np.argsort(stars, kind="stable")
    middle = (stars[order][1:] + stars[order][:-1]) / 2
    out = np.empty_like(stars)
    out[order] = np.diff(np.concatenate([[0.0], middle, [1.0]]))
    return out


def wsum(
    errors: Float[np.ndarray, "distributions repeats"], stars: Float[np.ndarray, " distributions"]
) -> float:
    """The weighted sum over distributions of a mechanism's mean absolute error."""
    return float(weights(stars) @ errors.mean(axis=1))


def expected_error(values: Values, targets: Values, scale: float) -> Values:
    """E |clip(v + L, 0, 1) - t| for Laplace noise L of scale b and v, t in [0, 1].

    With H the integral of the distribution function of L / b, the error is the area under
    P(release <= z) for z in [0, t] and under P(release > z) for z in [t, 1]:
    b (H((t-v)/b) - H(-v/b) + H((v-t)/b) - H((v-1)/b)).
    """
    if scale == 0:
        return np.abs(values - targets)
    v, t = values / scale, targets / scale
    area = _integral(t - v) - _integral(-v) + _integral(v - t) - _integral(v - 1 / scale)
    return scale * area


def _integral(u: Values) -> Values:
    """H(u), the integral up to u of the distribution function of Laplace noise of scale 1."""
    return np.maximum(u, 0) + np.exp(-np.abs(u)) / 2
