"""From moments of the loss to max-information and to a corrected level.

The loss is Z = ln P(a, x) / (P(a) P(x)). A theorem gives, for every order s > 0, a set of (a, x)
whose complement has a probability of at most `failure`, and on which E[e^(sZ)] <= e^log_moment.
Both conversions are the best for given moments (docs/max_information.md, Lemma A):

    nats(beta)  = (log_moment - ln(beta - failure) + s ln s - (1 + s) ln(1 + s)) / s
    level(alpha) = (alpha - failure)^((1+s)/s) e^(-log_moment/s)

The level is the best (alpha - beta) e^-nats, at beta = failure + (alpha - failure)/(1+s).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmic_jax.dp.max_information.bounds import (
    Correction,
    Laws,
    MaxInformation,
    check_alpha,
    check_beta,
    correction,
    from_nats,
)
from dpmic_jax.dp.max_information.search import least

_ORDERS = (1e-6, 1e6)  # the range of s that is searched


class Moment(NamedTuple):
    """Upper bounds on ln E[e^(sZ)] on a set, and on the probability of its complement."""

    log_moment: np.ndarray
    failure: np.ndarray


@dataclass(frozen=True, kw_only=True)
class MomentTheorem:
    """Bounds on the moments of Z over product distributions, for every order.

    Attributes:
      theorem: its name.
      moment: from the order s and the free parameters, arrays of one shape, to a `Moment`.
      free: the range in which each free parameter is searched.
    """

    theorem: str
    moment: Callable[..., Moment]
    free: tuple[tuple[float, float], ...] = ()

    def at(self, beta: float) -> MaxInformation:
        """Max-information at `beta`, by the best order."""
        check_beta(self.theorem, beta)

        def nats(s: np.ndarray, *free: np.ndarray) -> np.ndarray:
            return _nats(s, self.moment(s, *free), beta)

        place = least(nats, (_ORDERS, *self.free))
        with np.errstate(all="ignore"):
            found = float(nats(*map(np.asarray, place)))
        return from_nats(np.inf if np.isnan(found) else found, beta, Laws.PRODUCT)

    def corrected(self, alpha: float) -> Correction:
        """The largest level at `alpha`, by the best order and beta."""
        check_alpha(alpha)

        def minus_log_level(s: np.ndarray, *free: np.ndarray) -> np.ndarray:
            log_moment, failure = self.moment(s, *free)
            return log_moment / s - (1 + 1 / s) * np.log(alpha - failure)

        s, *free = map(np.asarray, least(minus_log_level, (_ORDERS, *self.free)))
        with np.errstate(all="ignore"):
            moment = self.moment(s, *free)
            beta = float(moment.failure + (alpha - moment.failure) / (1 + s))
            if not beta < alpha:
                return Correction(0.0, np.inf, 0.0, self.theorem, Laws.PRODUCT)
            nats = float(_nats(s, moment, beta))
        return correction(alpha, from_nats(nats, beta, Laws.PRODUCT), self.theorem)


def _nats(s: np.ndarray, moment: Moment, beta: float) -> np.ndarray:
    """nats(beta) of Lemma A; NaN where the failures exceed beta."""
    left = np.log(beta - moment.failure)
    # s ln s - (1 + s) ln(1 + s), without cancellation for large s.
    return (moment.log_moment - left - s * np.log1p(1 / s) - np.log1p(s)) / s
