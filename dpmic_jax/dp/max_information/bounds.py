"""Bounds on max-information, the data distributions they hold for, and corrected test levels."""

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

from dpmic_jax.dp.arithmetic.exact_decimal import check_probability

LOG2_E = math.log2(math.e)

# A relative margin above the rounding errors of every formula in this folder.
MARGIN = 2.0**-36


class Laws(enum.Enum):
    """The data distributions that a bound holds for."""

    ANY = "any distribution of the data"
    PRODUCT = "independent records"


@dataclass(frozen=True)
class MaxInformation:
    """P[(X, A) in O] <= 2^bits P[X (x) A in O] + beta for every event O (Dwork et al. 2015).

    X are the data, A is the result computed from them, and X (x) A are independent copies of both.

    Attributes:
      bits: at least 0; infinite if there is no bound at this beta.
      beta: at least 0 and below 1.
      laws: the distributions of X for which it holds.
    """

    bits: float
    beta: float
    laws: Laws

    def __post_init__(self):
        if not isinstance(self.bits, int | float) or not self.bits >= 0:
            raise ValueError(f"expected bits >= 0, got {self.bits!r}")
        if not isinstance(self.laws, Laws):
            raise TypeError(f"expected laws=Laws.ANY or Laws.PRODUCT, got {self.laws!r}")
        object.__setattr__(self, "bits", float(self.bits))
        object.__setattr__(self, "beta", check_probability("beta", self.beta))

    def level(self, alpha: float) -> float:
        """Theorem 1.3: a test that rejects at p <= (alpha - beta) / 2^bits has level alpha.

        The test may be chosen by A; the p-value of every fixed test has to be valid. The result
        is rounded down, to 0.0 if it is below the smallest float.
        """
        check_alpha(alpha)
        if not self.beta < alpha:
            raise ValueError(
                f"Theorem 1.3 needs beta < alpha: got beta = {self.beta:g}, alpha = {alpha:g}"
            )
        # The last factor covers the rounding of the three operations before it.
        return (alpha - self.beta) * 2.0**-self.bits * (1 - 2.0**-50)


class Correction(NamedTuple):
    """The corrected level at which a test chosen by private results has type I error <= alpha.

    Attributes:
      level: reject if p <= level. 0.0 if there is none, or it is below the smallest float.
      bits: the max-information that gives the level (alpha - beta) / 2^bits.
      beta: the probability reserved for the events that max-information does not cover.
      theorem: the theorem behind it; those with a letter are in docs/max_information.md.
      laws: the data distributions for which it holds.
    """

    level: float
    bits: float
    beta: float
    theorem: str
    laws: Laws


def correction(alpha: float, bound: MaxInformation, theorem: str) -> Correction:
    """Theorem 1.3 for a bound; the level is 0.0 if beta is not below alpha."""
    level = bound.level(alpha) if bound.beta < alpha else 0.0
    return Correction(level, bound.bits, bound.beta, theorem, bound.laws)


def from_nats(nats: float, beta: float, laws: Laws) -> MaxInformation:
    """Convert a bound in nats to bits, rounded up."""
    return MaxInformation(max(nats, 0.0) * LOG2_E * (1 + MARGIN), beta, laws)


def check_alpha(alpha: float) -> float:
    """Return `alpha` as a float, if it is above 0 and below 1."""
    if not check_probability("alpha", alpha):
        raise ValueError(f"Theorem 1.3 needs 0 < alpha < 1, got {alpha}")
    return float(alpha)


def check_beta(theorem: str, beta: float) -> float:
    """Return `beta` as a float, if it is above 0 and below 1."""
    if not isinstance(beta, int | float) or not 0 < beta < 1:
        raise ValueError(f"{theorem} needs 0 < beta < 1, got {beta!r}")
    return float(beta)
