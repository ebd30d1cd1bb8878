"""Post-processing of a released value: the mean of what it may have been. It costs no privacy.

A value v plus Laplace noise of scale b, clipped to [0, 1], is released as r. With a prior p(v) the
posterior mean is E[v | r] = sum_v v p(v) L(r | v) / sum_v p(v) L(r | v), where L is the density of
the noise at r - v inside, and its tail mass at the ends 0 and 1. It is the estimate of least
squared error if the prior is right. Measured in `benchmarks.accuracy`; nothing is promised.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

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
    noise = (stats.norm if isinstance(release.event.guarantee, ZCDP) else stats.laplace)(
        scale=release.scale
    )
    edges = np.linspace(0, 1, _GRID + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    chance = np.diff(stats.beta(prior.a, prior.b).cdf(edges))
    # Equal values have equal means, and a lattice has few points where noise is large.
    seen, place = np.unique(np.asarray(release.value), return_inverse=True)
    # Cells of the grid, not points: noise may be narrower than a cell.
    step = edges[1]
    inside = noise.cdf(seen[:, None] - edges[:-1]) - noise.cdf(seen[:, None] - edges[1:])
    low, high = noise.cdf(-middle), noise.sf(1 - middle)
    likelihood = np.where(
        seen[:, None] <= 0, low, np.where(seen[:, None] >= 1, high, inside / step)
    )
    weight = likelihood * chance
    return ((weight @ middle) / weight.sum(axis=1))[place].reshape(np.shape(release.value))
