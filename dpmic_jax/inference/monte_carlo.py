"""P-values from draws: where the observed value ranks among draws of the null law.

Let T_0 be observed and T_1, ..., T_D drawn, all exchangeable if the hypothesis is true. Then

    p = (1 + #{d : T_d >= T_0}) / (D + 1)

has P(p <= a) <= a for every a. Proof: p <= k / (D + 1) says that at most k of the D + 1 values,
itself among them, are >= T_0. At most k indices can say that of their value, whatever the values
are and however they tie, and by exchangeability each index is as likely to be one of them.
"""

import math
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.inference.shuffling import MOST_DRAWS

Values = Float[np.ndarray, "*shape"]

# Values that differ by this share of themselves are equal but for the rounding of phi. They count
# as tied, which can only raise p.
SLACK = 1e-6


def at_least(drawn: Values, observed: Values) -> Bool[np.ndarray, "*shape"]:
    """Whether T_d >= T_0. What is not a number counts as large if drawn, as small if observed."""
    return ~(drawn < lowered(observed))


def lowered(observed: Values) -> Values:
    """The least value that counts as no smaller than the observed one."""
    return observed - SLACK * np.abs(observed)


def p_values(as_large: Int[np.ndarray, " pairs"], draws: int) -> Float[np.ndarray, " pairs"]:
    """From how many of the draws are at least as large as what was observed."""
    return (1 + as_large) / (draws + 1)


def smallest_p(draws: int) -> float:
    """The least p-value that so many draws can give."""
    return 1 / (draws + 1)


def draws_needed(level: float) -> int:
    """The fewest draws whose least p-value is at most `level`."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"expected 0 < level < 1, got {level!r}")
    draws = max(1, math.floor(1 / Fraction(level)) - 2)
    while smallest_p(draws) > level:  # as a float, as it will be compared
        draws += 1
    return draws


def checked_draws(draws: int) -> int:
    """Refuse a number of draws that is none."""
    if not isinstance(draws, Integral) or isinstance(draws, bool):
        raise TypeError(f"expected draws to be an integer such as 10_000, got {draws!r}")
    if not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"expected 1 <= draws <= {MOST_DRAWS}, got {draws}; 10_000 is usual")
    return int(draws)
