"""The protocol of max-information theorems, and theorems that derive from others."""

import math
from dataclasses import dataclass
from typing import Protocol

from dpmic_jax.dp.max_information import published
from dpmic_jax.dp.max_information.bounds import Correction, Laws, MaxInformation, correction


class Theorem(Protocol):
    """A bound on max-information for every beta."""

    def at(self, beta: float) -> MaxInformation:
        """Max-information at `beta`."""
        ...

    def corrected(self, alpha: float) -> Correction:
        """The largest corrected level at `alpha`."""
        ...


@dataclass(frozen=True)
class Nothing:
    """No bound at any beta, since failures are too likely."""

    def at(self, beta: float) -> MaxInformation:
        """Infinite max-information."""
        return MaxInformation(math.inf, beta, Laws.PRODUCT)

    def corrected(self, alpha: float) -> Correction:
        """A level of 0."""
        return Correction(0.0, math.inf, 0.0, "none: failures are too likely", Laws.PRODUCT)


@dataclass(frozen=True)
class AnyLaw:
    """Theorem 1.4, first form, for any data distribution and every beta: log2(e) epsilon n bits."""

    epsilon: float
    n: int

    def at(self, beta: float) -> MaxInformation:
        """log2(e) epsilon n bits, whatever beta is."""
        bits = published.pure_any(self.epsilon, self.n).bits
        return MaxInformation(bits, beta, Laws.ANY)

    def corrected(self, alpha: float) -> Correction:
        """The level alpha e^(-epsilon n), at beta = 0."""
        bound = published.pure_any(self.epsilon, self.n)
        return correction(alpha, bound, "Theorem 1.4 (any distribution)")


@dataclass(frozen=True)
class Inexact:
    """The theorem of an ideal mechanism M, for a mechanism R within total variation v of it.

    P[(X, R)] <= P[(X, M)] + v <= 2^k P[X (x) M] + beta + v <= 2^k P[X (x) R] + beta + (1 + 2^k) v.
    """

    ideal: Theorem
    variation: float

    def at(self, beta: float) -> MaxInformation:
        """The max-information of the ideal at beta minus (1 + 2^k) v."""
        # The bits k fall with beta, so those at beta/2 are an upper bound on the bits used below.
        reserved = self._reserved(self.ideal.at(beta / 2))
        if reserved > beta / 2:
            return Nothing().at(beta)
        bound = self.ideal.at(beta - reserved)
        return MaxInformation(bound.bits, beta, bound.laws)

    def corrected(self, alpha: float) -> Correction:
        """The level of the ideal's bits, with (1 + 2^k) v more in beta."""
        if self.variation >= alpha:
            reason = "none: the noise is too far from its ideal distribution"
            return Correction(0.0, math.inf, 0.0, reason, Laws.PRODUCT)
        found = self.ideal.corrected(alpha - self.variation)
        bound = MaxInformation(found.bits, found.beta, found.laws)
        beta = found.beta + self._reserved(bound)
        if not beta < alpha:
            return found._replace(level=0.0)
        return correction(alpha, MaxInformation(found.bits, beta, found.laws), found.theorem)

    def _reserved(self, bound: MaxInformation) -> float:
        """(1 + 2^k) v, rounded up; the exponent is capped so that it does not overflow."""
        return (1 + 2.0 ** min(bound.bits, 1000.0)) * self.variation * (1 + 2.0**-30)
