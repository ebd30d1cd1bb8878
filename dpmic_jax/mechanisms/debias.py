"""Post-processing of a released value: the mean of what it may have been. It costs no privacy.

A value v plus Laplace noise of scale b, clipped to [0, 1], is released as r. With a prior p(v) the
posterior mean is E[v | r] = sum_v v p(v) L(r | v) / sum_v p(v) L(r | v), where L is the density of
the noise at r - v inside, and its tail mass at the ends 0 and 1. It is the estimate of least
squared error if the prior is right. Measured in `benchmarks.accuracy`; nothing is promised.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dpmic_jax.dp.events import ZCDP
from dpmic_jax.mechanisms.release import Release

_GRID = 512


@dataclass(frozen=True, kw_only=True)
class BetaPrior:
    """What values are thought to be before a release is seen: Beta(a, b) on [0, 1]."""

    a: float
    b: float

    def __post_init__(self):
        if not (0 < self.a < np.inf and 0 < self.b < np.inf):
            raise ValueError(f"expected a > 0 and b > 0, got {self.a} and {self.b}")


# MIC* of the paper's 21 relationships at R^2 = 0.1, 0.5 and 0.9: maximum likelihood, made by
# `python -m benchmarks.accuracy --prior`.
FAMILY = BetaPrior(a=0.848, b=0.982)


def debias(release: Release, prior: BetaPrior = FAMILY) -> Float[np.ndarray, "*shape"]:
    """Posterior means of the released values.

    Args:
      release: from `MICrLap`, `MICrGauss` or `MICeLap`; it has to be marked with its scale.
      prior: of the values.

    Returns:
      An array of the shape of `release.value`.
    """
    # Imported here: it would add a tenth of a second to every start of the package.
    from scipy.special import betainc, ndtr

    below = ndtr if isinstance(release.event.guarantee, ZCDP) else _laplace

    def chance_below(value: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        return below(value / release.scale)

    edges = np.linspace(0, 1, _GRID + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    prior_chance = np.diff(betainc(prior.a, prior.b, edges))
    # Equal values have equal means, and a lattice has few points where noise is large.
    seen, place = np.unique(np.asarray(release.value), return_inverse=True)
    out = seen[:, None]
    # Cells of the grid, not points: noise may be narrower than a cell.
    inside = (chance_below(out - edges[:-1]) - chance_below(out - edges[1:])) * _GRID
    low, high = chance_below(-middle), chance_below(middle - 1)
    weight = np.where(out <= 0, low, np.where(out >= 1, high, inside)) * prior_chance
    return ((weight @ middle) / weight.sum(axis=1))[place].reshape(np.shape(release.value))


def _laplace(value: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Distribution function of Laplace noise of scale 1."""
    tail = np.exp(-np.abs(value)) / 2
    return np.where(value < 0, tail, 1 - tail)
