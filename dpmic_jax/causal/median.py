"""Noisy median of integers, by smooth sensitivity and in integer arithmetic.

Nissim, Raskhodnikova and Smith (2007): x has m numbers in 0 .. top, and neighbours differ in one
of them. Let M = ceil(m / 2), x_1 <= ... <= x_m, x_i = 0 for i < 1 and x_i = top for i > m. Then

    A_k(x) = max over t = 0 .. k + 1 of x_(M + t) - x_(M + t - k - 1)

is the most that one more change can move x_M after k changes, and A_k(x') <= A_(k+1)(x).

**Levels in place of exponentials.** Let s_0 < s_1 < ... be fixed integers, and index(a) the first j
with s_j >= a. The level

    j(x) = max over k of index(A_k(x)) - k

has s_j(x) >= A_0(x), and |j(x) - j(x')| <= 1 for neighbours: index(A_k(x')) - k is at most
index(A_(k+1)(x)) - (k + 1) + 1. So if s_(j+1) / s_j <= 1 + beta, s_j(x) is a beta-smooth bound on
the local sensitivity. It is an integer, so no rounding has to be accounted for.

**Release.** clip(x_M + X, 0, top), where X is discrete Laplace noise of rate alpha / s_j(x),
alpha = epsilon / 2, beta = epsilon / (2 ln(2 / delta)). Let neighbours be on levels i and j; their
medians differ by at most min(s_i, s_j). With i = j the loss is at most alpha. With j = i + 1 the
loss of i against j is at most ln(s_j / s_i) + alpha s_i / s_j <= beta + alpha. The loss of j
against i is alpha + (rate_i - rate_j) |X|. It exceeds epsilon only if
|X| > (epsilon / 2) / (rate_i - rate_j) >= ln(2 / delta) / rate_j, which has a probability of about
delta / 2. `certificate` computes all of this for every two neighbouring levels, from the tables
that the noise is drawn with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from dpmic_jax.dp.accounting.events import ApproximateDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.noise.bounded import clipped_pmf
from dpmic_jax.dp.noise.distributions import DiscreteLaplace
from dpmic_jax.dp.rng.keys import AnyKey

# Ideal distributions are truncated at 60 nats, which raises their probabilities by less than this
# factor less 1.
_TRUNCATION = Fraction(1, 2**80)


class MedianCertificate(NamedTuple):
    """Bounds on a release, computed in exact arithmetic.

    Attributes:
      epsilon_realised: bound on the loss where it is bounded: of two data sets on one level, and
        of a level against the next larger one.
      delta_realised: bound on the probability that the loss exceeds epsilon.
      levels: number of noise scales.
    """

    epsilon_realised: Fraction
    delta_realised: Fraction
    levels: int


class Scale(NamedTuple):
    """alpha and beta: the noise has scale s / alpha, where s is a beta-smooth bound."""

    alpha: Fraction
    beta: Fraction


@dataclass(frozen=True, kw_only=True)
class SmoothMedian:
    """Release the median of integers in 0 .. top: (epsilon, delta)-DP in each of them.

    The level of the noise depends on the data, and its tables take some milliseconds to make when a
    level is first used. An observer who can time a release learns about the level.

    Attributes:
      epsilon: at most 32.
      delta: at least 10^-12.
      top: end of the range. The least noise has a scale of 1 / (alpha beta) steps, so the range
        should be many times that. There are about ln(top beta) / beta levels, and checking them
        takes some milliseconds each: half a second at epsilon = 1, ten times that at 0.1.
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
        # The largest level is about `top`, and its noise has to fit the integer sampler.
        if self.top / self.scale.alpha > 2**25:
            raise ValueError(
                f"epsilon={self.epsilon} on a range of {self.top} steps needs noise of a scale "
                "above 2^25: use a coarser range or a larger epsilon"
            )
        self.certificate()

    @property
    def guarantee(self) -> ApproximateDP:
        """The guarantee of one release."""
        return ApproximateDP(float(self.epsilon), float(self.delta))

    @property
    def scale(self) -> Scale:
        """alpha and beta for Laplace noise (`laplace_scale`); beta is rounded down."""
        return laplace_scale(self.epsilon, self.delta)

    @property
    def levels(self) -> tuple[int, ...]:
        """The noise scales s_0, s_1, ...: the first is ceil(1 / beta), the last at least top."""
        return _levels(self.scale.beta, self.top)

    def level(self, values: Sequence[int] | Int64[np.ndarray, " m"]) -> int:
        """The level j(x) of the noise; one changed value moves it by at most one."""
        numbers = self._sorted(values)
        m, middle, levels = len(numbers), _middle(len(numbers)), self.levels
        padded = np.concatenate([np.zeros(m + 1), numbers, np.full(m + 1, self.top)]).astype(int)
        found = []
        # A_m = top, the largest possible value, so no k > m gives a higher level.
        for k in range(m + 1):
            t = m + middle + np.arange(k + 2)  # position of x_(M + t) in the padded list
            reach = (padded[t] - padded[t - k - 1]).max()
            found.append(int(np.searchsorted(levels, reach)) - k)
        return max(found)

    def noise(self, level: int) -> DiscreteLaplace:
        """The noise at a level."""
        return DiscreteLaplace(epsilon=self.scale.alpha, sensitivity=self.levels[level])

    def release(self, values: Sequence[int] | Int64[np.ndarray, " m"], *, key: AnyKey) -> int:
        """Release a noisy median in 0 .. top; values outside are clipped first."""
        middle = median(self._sorted(values))
        drawn = int(self.noise(self.level(values)).sample(key))
        return min(max(middle + drawn, 0), self.top)

    def pmf(self, values: Sequence[int], out: int) -> Fraction:
        """The probability that `values` are released as `out`."""
        noise = self.noise(self.level(values))
        return clipped_pmf(noise, median(self._sorted(values)), out, self.top)

    def certificate(self) -> MedianCertificate:
        """Bounds on the loss, computed when the settings are made.

        Raises ArithmeticError if they exceed epsilon or delta.
        """
        return _certificate(
            self.scale, self.levels, as_fraction(self.epsilon), as_fraction(self.delta)
        )

    def _sorted(self, values: Sequence[int] | Int64[np.ndarray, " m"]) -> Int64[np.ndarray, " m"]:
        if len(values) < 1:
            raise ValueError("expected at least one value, got none")
        return np.sort(np.clip(np.asarray(values, np.int64), 0, self.top))


def median(numbers: Int64[np.ndarray, " m"]) -> int:
    """x_M of sorted numbers, the lower one of two in the middle."""
    return int(numbers[_middle(len(numbers)) - 1])


def laplace_scale(epsilon: float, delta: float) -> Scale:
    """alpha = epsilon / 2, beta = epsilon / (2 ln(2 / delta)); Nissim et al., Example 3."""
    half = as_fraction(epsilon) / 2
    return Scale(half, half / _logarithm(2 / as_fraction(delta)))


def _middle(m: int) -> int:
    return (m + 1) // 2


def _logarithm(value: Fraction) -> Fraction:
    """ln, rounded up."""
    # 1e-30 is far above the rounding error of 40 digits.
    context = Context(prec=40)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(context.ln(quotient)) + Fraction(1, 10**30)


@lru_cache(maxsize=64)
def _levels(beta: Fraction, top: int) -> tuple[int, ...]:
    # From ceil(1 / beta) on a step of beta is at least 1, so that the next level is larger.
    levels = [-(-1 // beta)]
    while levels[-1] < top:
        levels.append(int(levels[-1] * (1 + beta)))
    return tuple(levels)


@lru_cache(maxsize=64)
def _certificate(
    scale: Scale, levels: tuple[int, ...], epsilon: Fraction, delta: Fraction
) -> MedianCertificate:
    noises = [DiscreteLaplace(epsilon=scale.alpha, sensitivity=s) for s in levels]
    single = [noise.certificate() for noise in noises]
    # Neighbours on one level: a shift by at most s.
    loss = max(one.epsilon_realised for one in single)
    excess = max(one.edge_mass for one in single)
    # Neighbours on two levels: a shift by at most the smaller s, and another scale.
    for i, j in pairwise(range(len(levels))):
        narrow, wide, s = noises[i], noises[j], levels[i]
        # In log probability, up to its reach, each sampler is this close to its ideal distribution.
        error = sum(
            (single[k].epsilon_realised - noises[k].rate * levels[k] for k in (i, j)), _TRUNCATION
        )
        # Narrow against wide: ln(s_j / s_i) <= s_j / s_i - 1.
        loss = max(loss, Fraction(levels[j], s) - 1 + wide.rate * s + error)
        edge = min(single[i].reach, single[j].reach - s)
        excess = max(excess, 2 * narrow.tail(edge + 1))
        # Wide against narrow: the loss grows with |X|, up to epsilon at `furthest`.
        slope = narrow.rate - wide.rate
        furthest = min(int((epsilon - narrow.rate * s - error) / slope), single[i].reach - s)
        excess = max(excess, 2 * wide.tail(furthest + 1))
    if loss > epsilon or excess > delta:
        raise ArithmeticError("the levels do not keep epsilon and delta")
    return MedianCertificate(loss, excess, len(levels))
