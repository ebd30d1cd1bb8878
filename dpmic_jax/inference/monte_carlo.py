"""Monte Carlo p-values: the rank of the observed value among draws of the null distribution.

Let T_0 be observed and T_1, ..., T_D drawn, all exchangeable under the null hypothesis. Then

    p = (1 + #{d : T_d >= T_0}) / (D + 1)

has P(p <= a) <= a for every a. Proof: p <= k / (D + 1) says that at most k of the D + 1 values, T_0
among them, are >= T_0. For any values, tied or not, at most k indices have this property, and by
exchangeability each index is equally likely to be the observed one.
"""

import math
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from jaxtyping import Bool, Float, Int

from dpmic_jax.inference.shuffling import MOST_DRAWS

Values = Float[np.ndarray, "*shape"]

# Values that differ by this relative amount may be equal, up to the rounding of phi(x) = x log x.
# They count as tied, which can only raise p.
SLACK = 1e-6


def at_least(drawn: Values, observed: Values) -> Bool[np.ndarray, "*shape"]:
    """Whether T_d >= T_0, also if one of them is NaN: that can only raise p."""
    return ~(drawn < lowered(observed))


def lowered(observed: Values) -> Values:
    """The smallest value that counts as at least as large as the observed one."""
    return observed - SLACK * np.abs(observed)


def p_values(as_large: Int[np.ndarray, " pairs"], draws: int) -> Float[np.ndarray, " pairs"]:
    """(1 + as_large) / (draws + 1), where `as_large` draws are at least as large as observed."""
    return (1 + as_large) / (draws + 1)


def smallest_p(draws: int) -> float:
    """The smallest p-value that `draws` draws can give, 1 / (draws + 1)."""
    return 1 / (draws + 1)


def draws_needed(level: float) -> int:
    """The fewest draws whose smallest p-value is at most `level`."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"expected 0 < level < 1, got {level!r}")
    draws = max(1, math.floor(1 / Fraction(level)) - 2)
    while smallest_p(draws) > level:  # in floats, as p-values are compared
        draws += 1
    return draws


def checked_draws(draws: int) -> int:
    """The number of draws as an int, or an error if it is none."""
    if not isinstance(draws, Integral) or isinstance(draws, bool):
        raise TypeError(f"expected draws to be an integer such as 10_000, got {draws!r}")
    if not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"expected 1 <= draws <= {MOST_DRAWS}, got {draws}; 10_000 is usual")
    return int(draws)
