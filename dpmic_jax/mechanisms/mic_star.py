"""From a released statistic to MIC*, the coefficient of the distribution behind the records.

MICr of n records is above MIC* where little depends, below it where much does, and noise is added.
Both are undone at once by a table of what MICr was on distributions whose MIC* is known: with
(v_j, t_j) its values of MICr and MIC*, the estimate is the median of t_j weighted by the
likelihood of the release given v_j, the estimate of least absolute error if a distribution like
any of the 189 is equally likely. The same is done for the statistic of `VariationLap`. It is
post-processing and costs no privacy.
"""

import math

import numpy as np
from jaxtyping import Float

from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP
from dpmic_jax.mechanisms import tuned_defaults
from dpmic_jax.mechanisms.additive_noise import MICrCube, MICrGauss, pairs_together
from dpmic_jax.mechanisms.release import Release, event_settings
from dpmic_jax.mechanisms.variation import VariationLap

# Half the width over which values of the table are taken to be like each other.
_WIDTH = 0.01


def mic_star_estimate(release: Release) -> Float[np.ndarray, "*shape"]:
    """The posterior median of MIC* for every released value.

    Args:
      release: of `MICrLap`, `MICrGauss`, `MICrCube` or `VariationLap` at their default statistic,
        which the tables are for.
    """
    return posterior_median(release, _table_of(release.event))


def _table_of(event: Event) -> tuned_defaults.Family:
    if event.mechanism == VariationLap.__name__:
        # Whatever epsilon: the default number of parts goes by n alone.
        if event.settings != VariationLap(epsilon=1.0).settings(event.n):
            raise ValueError(
                "the estimate of MIC* is calibrated for the default number of parts: release "
                "with VariationLap without passing parts"
            )
        return tuned_defaults.variation_family(event.n)
    default = event_settings(tuned_defaults.defaults(event.n, _rule_epsilon(event)), event.n)
    if not set(default) <= set(event.settings):
        raise ValueError(
            "the estimate of MIC* is calibrated for the default statistic: release with "
            "MICrLap, MICrGauss or MICrCube without passing statistic, or use debias"
        )
    return tuned_defaults.family(event.n)


def _rule_epsilon(event: Event) -> float:
    """The epsilon that the default rule was asked with."""
    kind = event.guarantee
    if isinstance(kind, ZCDP):
        return MICrGauss(rho=kind.rho).rule_epsilon(event.count)
    if not isinstance(kind, PureDP):
        return math.nan
    if event.mechanism == MICrCube.__name__:
        return MICrCube(epsilon=kind.epsilon).rule_epsilon(pairs_together(event))
    return kind.epsilon


def posterior_median(
    release: Release, family: tuned_defaults.Family
) -> Float[np.ndarray, "*shape"]:
    """The same under the distributions of a family."""
    order = np.argsort(family.stars, kind="stable")
    values = family.values[order]
    stars = np.repeat(family.stars[order], values.shape[1])
    seen, place = np.unique(np.asarray(release.value), return_inverse=True)
    likelihood = _likelihood(release, seen[:, None], values.ravel())
    below = np.cumsum(likelihood, axis=1)
    middle = (below >= below[:, -1:] / 2).argmax(axis=1)
    return stars[middle][place].reshape(np.shape(release.value))


def _likelihood(
    release: Release,
    out: Float[np.ndarray, "seen 1"],
    values: Float[np.ndarray, " values"],
) -> Float[np.ndarray, "seen values"]:
    """The chance to be released near `out`, and at or beyond an end."""
    below = release.noise.cdf
    gap = out - values
    inside = below(gap + _WIDTH) - below(gap - _WIDTH)
    ends = np.where(out <= 0, below(_WIDTH - values), below(_WIDTH + values - 1))
    # Far out all of them are 0 in floats: the nearest value then decides.
    near = 1e-290 / (1 + np.abs(gap) / _WIDTH) ** 2
    return np.where((out <= 0) | (out >= 1), ends, inside) + near
