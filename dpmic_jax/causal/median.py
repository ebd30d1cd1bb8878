"""The median of a few numbers, with noise of its smooth sensitivity, in integers.

Nissim, Raskhodnikova and Smith (2007): x has m numbers in 0 .. top, and neighbours differ in one
of them. Let M = ceil(m / 2), x_1 <= ... <= x_m, x_i = 0 for i < 1 and top for i > m. Then

    A_k(x) = max over t = 0 .. k + 1 of x_(M + t) - x_(M + t - k - 1)

is the most that one more change moves x_M after k changes, and A_k(x') <= A_(k+1)(x).

**Levels in place of exponentials.** Let s_0 < s_1 < ... be any fixed integers, and index(a) the
first j with s_j >= a. The level

    j(x) = max over k of index(A_k(x)) - k

has s_j(x) >= A_0(x), and |j(x) - j(x')| <= 1 for neighbours: index(A_k(x')) - k is at most
index(A_(k+1)(x)) - (k + 1) + 1. So if s_(j+1) / s_j <= 1 + beta, s_j(x) is a beta-smooth bound on
the local sensitivity, without a rounding to be paid for.

**Release.** clip(x_M + X, 0, top), X discrete Laplace of rate alpha / s_j(x), alpha = epsilon / 2,
beta = epsilon / (2 ln(2 / delta)). For neighbours on levels i and j, whose medians are no further
apart than min(s_i, s_j): with i = j the loss is alpha at most. With j = i + 1, the loss of i
against j is at most ln(s_j / s_i) + alpha s_i / s_j <= beta + alpha; that of j against i is
alpha + (rate_i - rate_j) |X|, above epsilon only if |X| > (epsilon / 2) / (rate_i - rate_j), which
is ln(2 / delta) / rate_j or more, and happens with probability delta / 2 or so. `certificate`
computes all of it from the tables that noise is drawn with, for every two levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from dpmic_jax.dp.accounting.events import ApproximateDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.noise.bounded import clipped_pmf
from dpmic_jax.dp.noise.distributions import DiscreteLaplace
from dpmic_jax.dp.rng.keys import AnyKey

# The ideal laws end after 60 nats; what that adds to their probabilities, as a factor less 1.
_ENDS = Fraction(1, 2**80)


class MedianCertificate(NamedTuple):
    """What exact arithmetic says of a release.

    Attributes:
      epsilon_realised: bound on the loss where it is bounded.
      delta_realised: the largest probability of noise for which it may be above epsilon.
      levels: how many scales there are.
    """

    epsilon_realised: Fraction
    delta_realised: Fraction
    levels: int


class Scale(NamedTuple):
    """alpha and beta: noise of scale s / alpha, for a bound s that is beta-smooth."""

    alpha: Fraction
    beta: Fraction


@dataclass(frozen=True, kw_only=True)
class SmoothMedian:
    """Release the median of integers in 0 .. top: (epsilon, delta)-DP in each of them.

    Noise is drawn at a level that depends on the data, and making its tables takes some
    milliseconds when a level is first met: who can time a release learns about the level.

    Attributes:
      epsilon: at most 32.
      delta: at least 10^-12.
      top: the end of the range. The least noise is of 1 / (alpha beta) steps, so the range
        should be many times that. Settings take some milliseconds a level to check, of which
        there are ln(top beta) / beta: half a second at epsilon = 1, ten times that at 0.1.
    """

    epsilon: float
    delta: float
    top: int = 2**16

    def __post_init__(self):
        if exact("epsilon", self.epsilon) > 32:
            raise ValueError(f"expected epsilon <= 32, got {self.epsilon}")
        if not 1e-12 <= self.delta < 0.5:
            raise ValueError(f"expected 1e-12 <= delta < 0.5, got {self.delta}")
        integer("top", self.top, 1, 2**25)
        if self.top / self.scale.alpha > 2**25:
            raise ValueError(
                f"epsilon={self.epsilon} on a range of {self.top} steps is noise of a scale beyond "
                "2^25: use a coarser range or a larger epsilon"
            )
        self.certificate()

    @property
    def guarantee(self) -> ApproximateDP:
        """Of one release, for the ledger."""
        return ApproximateDP(float(self.epsilon), float(self.delta))

    @property
    def scale(self) -> Scale:
        """As Nissim et al. have them for Laplace noise; beta is rounded down."""
        return laplace_scale(self.epsilon, self.delta)

    @property
    def levels(self) -> tuple[int, ...]:
        """s_0, s_1, ...: the first is the least that can grow, the last one reaches the top."""
        return _levels(self.scale.beta, self.top)

    def level(self, values: Sequence[int] | Int64[np.ndarray, " m"]) -> int:
        """j(x): it moves by one at most if one value changes."""
        numbers = self._sorted(values)
        m, middle, levels = len(numbers), _middle(len(numbers)), self.levels
        padded = np.concatenate([np.zeros(m + 1), numbers, np.full(m + 1, self.top)]).astype(int)
        found = []
        for k in range(m + 1):
            high = padded[m + middle + np.arange(k + 2)]
            low = padded[m + middle + np.arange(k + 2) - k - 1]
            found.append(int(np.searchsorted(levels, (high - low).max())) - k)
        return max(found)

    def noise(self, level: int) -> DiscreteLaplace:
        """The law of the noise at a level."""
        return DiscreteLaplace(epsilon=self.scale.alpha, sensitivity=self.levels[level])

    def release(self, values: Sequence[int] | Int64[np.ndarray, " m"], *, key: AnyKey) -> int:
        """A noisy median in 0 .. top; values outside are brought to the ends first."""
        middle = median(self._sorted(values))
        drawn = int(self.noise(self.level(values)).sample(key))
        return min(max(middle + drawn, 0), self.top)

    def pmf(self, values: Sequence[int], out: int) -> Fraction:
        """The probability that values are released as `out`."""
        noise = self.noise(self.level(values))
        return clipped_pmf(noise, median(self._sorted(values)), out, self.top)

    def certificate(self) -> MedianCertificate:
        """Computed when the settings are made, and refused unless it keeps epsilon and delta."""
        return _certificate(
            self.scale, self.levels, as_fraction(self.epsilon), as_fraction(self.delta)
        )

    def _sorted(self, values: Sequence[int] | Int64[np.ndarray, " m"]) -> Int64[np.ndarray, " m"]:
        if len(values) < 1:
            raise ValueError("expected at least one value, got none")
        return np.sort(np.clip(np.asarray(values, np.int64), 0, self.top))


def median(numbers: Int64[np.ndarray, " m"]) -> int:
    """x_M of sorted numbers: the lower one of two in the middle."""
    return int(numbers[_middle(len(numbers)) - 1])


def laplace_scale(epsilon: float, delta: float) -> Scale:
    """alpha = epsilon / 2, beta = epsilon / (2 ln(2 / delta)); Nissim et al., Example 3."""
    half = as_fraction(epsilon) / 2
    return Scale(half, half / _logarithm(2 / as_fraction(delta)))


def gaussian_scale(epsilon: float, delta: float) -> tuple[float, float]:
    """alpha = epsilon / (5 sqrt(2 ln(2/delta))), beta = epsilon / (4 (1 + ln(2/delta))).

    For comparison: with Laplace noise alpha is 13 to 19 times as large. (Nissim et al.,
    Lemma 2.7 and after it, d = 1.)
    """
    logarithm = float(_logarithm(2 / as_fraction(delta)))
    return epsilon / (5 * (2 * logarithm) ** 0.5), epsilon / (4 * (1 + logarithm))


def published_laplace_scale(epsilon: float, delta: float) -> tuple[float, float]:
    """Definition 10: (epsilon / 2, epsilon ln(1/delta) / 2). The logarithm should divide."""
    return epsilon / 2, epsilon * float(_logarithm(1 / as_fraction(delta))) / 2


def published_gaussian_scale(epsilon: float, delta: float) -> tuple[float, float]:
    """Definition 10: (epsilon / sqrt(ln(1/delta)), epsilon / (2 ln(1/delta))). It does not hold."""
    logarithm = float(_logarithm(1 / as_fraction(delta)))
    return epsilon / logarithm**0.5, epsilon / (2 * logarithm)


def _middle(m: int) -> int:
    return (m + 1) // 2


def _logarithm(value: Fraction) -> Fraction:
    """ln, rounded up."""
    context = Context(prec=40)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(context.ln(quotient)) + Fraction(1, 10**30)


@lru_cache(maxsize=64)
def _levels(beta: Fraction, top: int) -> tuple[int, ...]:
    levels = [-(-1 // beta)]
    while levels[-1] < top:
        levels.append(int(levels[-1] * (1 + beta)))
    return tuple(levels)


@lru_cache(maxsize=64)
def _certificate(
    scale: Scale, levels: tuple[int, ...], epsilon: Fraction, delta: Fraction
) -> MedianCertificate:
    laws = [DiscreteLaplace(epsilon=scale.alpha, sensitivity=s) for s in levels]
    found = [law.certificate() for law in laws]
    loss = max(one.epsilon_realised for one in found)
    missed = max(one.edge_mass for one in found)
    for i, j in zip(range(len(levels)), range(1, len(levels)), strict=False):
        narrow, wide, s = laws[i], laws[j], levels[i]
        # Each sampler is within this factor of its ideal law, up to its reach.
        moved = sum((found[k].epsilon_realised - laws[k].rate * levels[k] for k in (i, j)), _ENDS)
        # ln(1 + z) <= z
        loss = max(loss, Fraction(levels[j], s) - 1 + wide.rate * s + moved)
        edge = min(found[i].reach, found[j].reach - s)
        missed = max(missed, 2 * narrow.tail(edge + 1))
        slope = narrow.rate - wide.rate
        furthest = min(int((epsilon - narrow.rate * s - moved) / slope), found[i].reach - s)
        missed = max(missed, 2 * wide.tail(furthest + 1))
    if loss > epsilon or missed > delta:
        raise ArithmeticError("the levels do not keep epsilon and delta")
    return MedianCertificate(loss, missed, len(levels))
