"""Conversions between mutual information, in nats, and max-information, and their corrections.

If I(X; A) <= m, then kl(P[(X, A) in O] || P[X (x) A in O]) <= m for every event O by data
processing, with kl the divergence of two Bernoulli distributions. The best level that follows is
the gamma with kl(alpha || gamma) = m (Theorem D of docs/max_information.md). Lemma 1.5, Corollary
C.2 and the bound of Russo and Zou follow from it and are weaker.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpmic_jax.dp.arithmetic.bisection import bisect
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive, check_positive_int
from dpmic_jax.dp.max_information.bounds import (
    LOG2_E,
    MARGIN,
    Correction,
    Laws,
    MaxInformation,
    check_alpha,
    check_beta,
    correction,
    from_nats,
)
from dpmic_jax.dp.max_information.search import least


@dataclass(frozen=True, kw_only=True)
class InformationTheorem:
    """Max-information from I(X; A) <= `nats` (Theorem D).

    Attributes:
      nats: the bound on the mutual information.
      laws: the data distributions for which it holds.
      theorem: its name.
    """

    nats: float
    laws: Laws
    theorem: str = "Theorem D (mutual information)"

    def __post_init__(self):
        object.__setattr__(self, "nats", check_positive("nats", self.nats))

    def at(self, beta: float) -> MaxInformation:
        """Max-information at `beta`: the slope of a line p = 2^bits q + beta.

        It is the line with that intercept above all points (q, p) with kl(p || q) <= nats.
        """
        check_beta(self.theorem, beta)
        # The intercept of the tangent at height p grows with p.
        low = beta / 2
        while self._line(low)[1] > beta:
            low /= 2
        found = bisect(lambda p: self._line(p)[1] <= beta, low, 1.0, steps=60)
        return from_nats(self._line(found.holds)[0], beta, self.laws)

    def corrected(self, alpha: float) -> Correction:
        """The level gamma with kl(alpha || gamma) = nats."""
        nats, beta = self._line(check_alpha(alpha))
        return correction(alpha, from_nats(nats, beta, self.laws), self.theorem)

    def _line(self, p: float) -> tuple[float, float]:
        """Log-slope and intercept of the tangent to the set kl(p || q) <= nats at height p."""
        log_q = _log_level(p, self.nats)
        q = math.exp(log_q)
        log_odds = math.log(p) - math.log1p(-p) - log_q + math.log1p(-q)
        rise = (p - q) / ((1 - q) * log_odds)
        return math.log(rise) - log_q, max(p - rise * (1 - MARGIN), 0.0)


def _log_level(p: float, nats: float) -> float:
    """ln q, for the largest q <= p with kl(p || q) >= nats, rounded down."""
    # More nats, and a lower q, are on the safe side of the rounding errors.
    nats *= 1 + MARGIN
    rest = -(1 - p) * math.log1p(-p)

    def divergence(log_q: float) -> float:
        return p * (math.log(p) - log_q) - rest - (1 - p) * math.log1p(-math.exp(log_q))

    low, high = math.log(p) - (nats + rest) / p, math.log(p)
    found = bisect(lambda log_q: divergence(log_q) >= nats, low, high, steps=100)
    return found.holds - MARGIN


def lemma_1_5(nats: float, beta: float, laws: Laws) -> MaxInformation:
    """Lemma 1.5 as printed: (m + 0.54)/beta bits for m bits of mutual information.

    0.54 is above the largest (1-b) log2(1/(1-b)) over all b; at b = beta that is below
    1.45 beta. The bound of `InformationTheorem` is smaller.
    """
    check_beta("Lemma 1.5", beta)
    bits = (check_positive("nats", nats) * LOG2_E + 0.54) / beta
    return MaxInformation(bits * (1 + MARGIN), beta, laws)


def corollary_c_2(alpha: float, nats: float) -> float:
    """Corollary C.2 as printed: the level (alpha/2) 2^(-(2/alpha)(m + 0.54)) for m bits."""
    bits = check_positive("nats", nats) * LOG2_E
    return check_alpha(alpha) / 2 * 2.0 ** (-2 / alpha * (bits + 0.54)) * (1 - MARGIN)


def russo_zou(alpha: float, nats: float) -> float:
    """The level of Russo and Zou for m nats of mutual information.

    The largest gamma < 1/2 with gamma + sqrt(m / ln(1/(2 gamma))) <= alpha.
    """
    check_alpha(alpha)
    check_positive("nats", nats)

    def error(log_gamma: float) -> float:
        return math.exp(log_gamma) + math.sqrt(nats / -(log_gamma + math.log(2)))

    high = min(math.log(alpha), -math.log(2) - 1e-12)
    low = -math.log(2) - 4 * nats / alpha**2 + 2 * math.log(alpha)
    found = bisect(lambda log_gamma: error(log_gamma) <= alpha, low, high, steps=100)
    return math.exp(found.holds) * (1 - MARGIN)


def mutual_information_printed(bound: MaxInformation, values: int) -> float:
    """Lemma 1.5, second part, in nats: 2 k ln 2 + 2 beta log2(values/(2 beta)) / (1 - 2^-k).

    `values` is the number of values that the data can take. This is the statement of the full
    paper; that of the conference version is smaller and has no known proof.
    """
    values, kept = check_positive_int("values", values), -math.expm1(-bound.bits / LOG2_E)
    if not (bound.bits > 0 and bound.beta <= 3 * kept / 20):
        raise ValueError(
            f"Lemma 1.5 needs k > 0 and 0 <= beta <= 3 (1 - 2^-k)/20 = {3 * kept / 20:g}; "
            f"got k = {bound.bits:g}, beta = {bound.beta:g}"
        )
    rest = 2 * bound.beta * math.log2(values / (2 * bound.beta)) / kept if bound.beta else 0.0
    return (2 * bound.bits / LOG2_E + rest) * (1 + MARGIN)


def mutual_information(bound: MaxInformation, values: int) -> float:
    """Mutual information from max-information, in nats (Theorem E of docs/max_information.md).

    Unlike `mutual_information_printed` it holds for every k and beta, and it is sharper.

    The least of ln(values) and, over t > 0 with w = beta/(1 - e^-t),
    k ln 2 + t + w ln(values) + max over v <= w of v ln(1/v).
    """
    most, nats = math.log(check_positive_int("values", values)), bound.bits / LOG2_E

    def total(t: np.ndarray) -> np.ndarray:
        w = -bound.beta / np.expm1(-t)
        v = np.minimum(w, math.exp(-1))
        return nats + t + w * most - v * np.log(np.maximum(v, 1e-300))

    if not bound.beta:
        return min(nats, most) * (1 + MARGIN)
    (t,) = least(total, [(1e-12, 1e6)])
    return min(float(total(np.asarray(t))), most) * (1 + MARGIN)
