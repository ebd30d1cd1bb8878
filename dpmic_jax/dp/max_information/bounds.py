"""What a max-information bound says, for which data, and the level it leaves a test."""

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

from dpmic_jax.dp.arithmetic.exact_decimal import check_probability

LOG2_E = math.log2(math.e)

# More than all rounding errors of the formulas of this folder together, relative to a result.
MARGIN = 2.0**-36


class Laws(enum.Enum):
    """The laws of the data that a bound holds for."""

    ANY = "any distribution of the data"
    PRODUCT = "independent records"


@dataclass(frozen=True)
class MaxInformation:
    """P[(X, A) in O] <= 2^bits P[X (x) A in O] + beta for every event O (Dwork et al. 2015).

    X are the data, A what was computed from them, X (x) A independent copies of both.

    Attributes:
      bits: at least 0; infinite if nothing is promised at this beta.
      beta: at least 0 and below 1.
      laws: the laws of X for which it holds.
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
        """Theorem 1.3: who rejects at p <= (alpha - beta) / 2^bits errs with chance <= alpha.

        The test may have been chosen by A; its p-value has to be valid for every fixed test.
        Rounded down; 0.0 if it is below the smallest float.
        """
        significance(alpha)
        if not self.beta < alpha:
            raise ValueError(
                f"Theorem 1.3 needs beta < alpha: got beta = {self.beta:g}, alpha = {alpha:g}"
            )
        return (alpha - self.beta) * 2.0**-self.bits * (1 - 2.0**-50)


class Correction(NamedTuple):
    """The level at which a test chosen by private results errs with chance at most alpha.

    Attributes:
      level: reject if p <= level. 0.0 if there is none, or it is below the smallest float.
      bits: max-information by which it was found; the level is (alpha - beta) / 2^bits.
      beta: the chance set aside for what max-information does not cover.
      theorem: where the bound is proven; theorems with a letter in docs/max_information.md.
      laws: the laws of the data for which it holds.
    """

    level: float
    bits: float
    beta: float
    theorem: str
    laws: Laws


def correction(alpha: float, bound: MaxInformation, theorem: str) -> Correction:
    """Theorem 1.3 with a bound; level 0.0 where nothing is left."""
    level = bound.level(alpha) if bound.beta < alpha else 0.0
    return Correction(level, bound.bits, bound.beta, theorem, bound.laws)


def from_nats(nats: float, beta: float, laws: Laws) -> MaxInformation:
    """A bound in bits, rounded up."""
    return MaxInformation(max(nats, 0.0) * LOG2_E * (1 + MARGIN), beta, laws)


def significance(alpha: float) -> float:
    """`alpha` as a float, if it is above 0 and below 1."""
    if not check_probability("alpha", alpha):
        raise ValueError(f"Theorem 1.3 needs 0 < alpha < 1, got {alpha}")
    return float(alpha)


def spare(theorem: str, beta: float) -> float:
    """`beta` as a float, if it is above 0 and below 1."""
    if not isinstance(beta, int | float) or not 0 < beta < 1:
        raise ValueError(f"{theorem} needs 0 < beta < 1, got {beta!r}")
    return float(beta)
