"""What theorems have in common, and those that come from others."""

import math
from dataclasses import dataclass
from typing import Protocol

from dpmic_jax.dp.max_information import published
from dpmic_jax.dp.max_information.bounds import Correction, Laws, MaxInformation, correction


class Theorem(Protocol):
    """Something that bounds max-information at every beta."""

    def at(self, beta: float) -> MaxInformation: ...

    def corrected(self, alpha: float) -> Correction: ...


@dataclass(frozen=True)
class Nothing:
    """No promise at any beta: failures are too likely."""

    def at(self, beta: float) -> MaxInformation:
        return MaxInformation(math.inf, beta, Laws.PRODUCT)

    def corrected(self, alpha: float) -> Correction:
        return Correction(0.0, math.inf, 0.0, "none: failures are too likely", Laws.PRODUCT)


@dataclass(frozen=True)
class AnyLaw:
    """Theorem 1.4, first form, at every beta: log2(e) epsilon n bits."""

    epsilon: float
    n: int

    def at(self, beta: float) -> MaxInformation:
        bits = published.pure_any(self.epsilon, self.n).bits
        return MaxInformation(bits, beta, Laws.ANY)

    def corrected(self, alpha: float) -> Correction:
        bound = published.pure_any(self.epsilon, self.n)
        return correction(alpha, bound, "Theorem 1.4 (any distribution)")


@dataclass(frozen=True)
class Inexact:
    """The theorem of an ideal computation, for one within a total variation of it.

    P[(X, R)] <= P[(X, M)] + v <= 2^k P[X (x) M] + beta + v <= 2^k P[X (x) R] + beta + (1 + 2^k) v.
    """

    ideal: Theorem
    variation: float

    def at(self, beta: float) -> MaxInformation:
        # At beta/2 there are more bits than at any larger beta: enough is set aside.
        aside = self._off(self.ideal.at(beta / 2))
        if aside > beta / 2:
            return Nothing().at(beta)
        bound = self.ideal.at(beta - aside)
        return MaxInformation(bound.bits, beta, bound.laws)

    def corrected(self, alpha: float) -> Correction:
        if self.variation >= alpha:
            return Correction(
                0.0, math.inf, 0.0, "none: the noise is too far from its law", Laws.PRODUCT
            )
        found = self.ideal.corrected(alpha - self.variation)
        bound = MaxInformation(found.bits, found.beta, found.laws)
        beta = found.beta + self._off(bound)
        if not beta < alpha:
            return found._replace(level=0.0)
        return correction(alpha, MaxInformation(found.bits, beta, found.laws), found.theorem)

    def _off(self, bound: MaxInformation) -> float:
        return (1 + 2.0 ** min(bound.bits, 1000.0)) * self.variation * (1 + 2.0**-30)
