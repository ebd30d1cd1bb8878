"""The exponential mechanism: choose a candidate with probability ~ e^(rate score), in integers.

A candidate whose score is d below the best has the integer weight w(d) ~ e^(-rate d), a product of
rounded powers over the digits of d. One uniform number of 256 bits selects a point on the line of
all weights, and the candidate whose interval contains the point is chosen.

Proof. Exact arithmetic on the tables shows w(d) <= kappa e^(rate |d' - d|) w(d') for d, d' in
0 .. furthest; a candidate further behind is treated as that far behind. If scores change by at
most S, and the best score by m, then d_i grows by at most S + m and falls by at most S - m. So
w_i / w'_i is in [e^(-rate (S - m)) / kappa, kappa e^(rate (S + m))], and all log ratios of
probabilities are in an interval of length 2 rate S + 2 ln kappa, wherever it lies: bounded range
(Durfee and Rogers 2019). Since probabilities sum to 1, the interval contains 0, and its length
bounds epsilon. A range of length epsilon implies epsilon^2 / 8-zCDP (Cesar and Rogers 2021). The
uniform number selects a weight w of the sum W with probability w / W to within 2^-256. As w / W is
at least e^-nats / candidates, the relative error is at most 2^-167.

All of this runs on the host, in Python integers, and not under jit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32

from dpmic_jax.dp.accounting.events import ZCDP
from dpmic_jax.dp.arithmetic.exact_decimal import ceil_to_float
from dpmic_jax.dp.arithmetic.intervals import (
    SCALE,
    Enclosure,
    exact,
    exponential,
    integer,
    powers,
    rounded_up,
)
from dpmic_jax.dp.noise import digit_sampler
from dpmic_jax.dp.noise.distributions import SLACK
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.selector import SelectionCertificate, Selector
from dpmic_jax.dp.selection.validation import MOST_CANDIDATES, Mask, check_scores

_NATS = 40  # ln of the largest weight over the least: e^-40 is above 2^-58
_TABLE_BITS = 128  # of which the least weight then keeps 70
_DIGIT_BITS = 11  # three tables of at most 2048 entries cover distances of 32 bits
_DRAW_WORDS = 8
_DRAWS = 2 ** (32 * _DRAW_WORDS)
_FURTHEST = 2**32 - 1  # the largest distance between two int32 scores


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism(Selector):
    """Choose a candidate whose score is close to the best: epsilon-DP, and epsilon^2 / 8-zCDP.

    With k candidates, the probability that the chosen one is e or more below the best is less
    than k e^(-rate e).

    Attributes:
      epsilon: privacy loss of one selection.
      sensitivity: the most that one person's records change any score, up or down.
    """

    @property
    def rate(self) -> Fraction:
        """A candidate d below the best is e^(-rate d) times as likely as the best."""
        # Distances to the best score change by twice the sensitivity.
        change = 2 * integer("sensitivity", self.sensitivity, 1, 2**30)
        budget = exact("epsilon", self.epsilon)
        if budget < 2**10 * SLACK:
            raise ValueError(f"expected epsilon >= 2^-30, got {float(budget):.3g}")
        return min((budget - SLACK) / change, Fraction(_NATS))

    @property
    def rho(self) -> float:
        """One selection is rho-zCDP, with at most half the rho that epsilon-DP alone implies."""
        return ceil_to_float(self.certificate().epsilon_realised ** 2 / 8)

    @property
    def concentrated(self) -> ZCDP:
        """The zCDP guarantee of one selection, as the ledger records it."""
        return ZCDP(self.rho)

    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]:
        """The index of the candidate chosen among the eligible ones, as if there were no others."""
        indices = np.flatnonzero(np.asarray(eligible))
        # In 64 bits: int32 does not hold the difference of two int32 scores.
        kept = np.asarray(check_scores(scores))[indices].astype(np.int64)
        ends = np.add.accumulate(_weights(self.rate, kept.max() - kept))
        words = np.asarray(jax.random.bits(noise_key(key), (_DRAW_WORDS,), jnp.uint32))
        target = int.from_bytes(words.astype("<u4").tobytes(), "little") * ends[-1] // _DRAWS
        return jnp.asarray(indices[np.searchsorted(ends, target, side="right")], jnp.int32)

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The exact probability of each candidate."""
        behind = max(scores) - np.asarray(scores, np.int64)
        ends = [0, *accumulate(_weights(self.rate, behind).tolist())]
        # The number of draws whose target lies before each end: end * _DRAWS / total, rounded up.
        draws = [-(-end * _DRAWS // ends[-1]) for end in ends]
        return [Fraction(b - a, _DRAWS) for a, b in pairwise(draws)]

    def _certificate(self) -> SelectionCertificate:
        return _certificate(self.rate, self.sensitivity)


def _furthest(rate: Fraction) -> int:
    """The distance beyond which weights no longer fall."""
    return min(int(_NATS / rate), _FURTHEST)


@lru_cache(maxsize=64)
def _ideal(rate: Fraction) -> list[list[Enclosure]]:
    """e^(-rate 2^shift x) for x = 0, 1, ..., for each digit of `furthest`."""
    furthest, found = _furthest(rate), []
    for shift in range(0, furthest.bit_length(), _DIGIT_BITS):
        size = min(1 << _DIGIT_BITS, (furthest >> shift) + 1)
        found.append(powers(exponential(rate * 2**shift), size))
    return found


@lru_cache(maxsize=64)
def _tables(rate: Fraction) -> list[np.ndarray]:
    """The same as integers of 128 bits, rounded down."""
    return [
        np.array([power.low >> (SCALE - _TABLE_BITS) for power in digit], object)
        for digit in _ideal(rate)
    ]


def _weights(rate: Fraction, behind: Int[np.ndarray, " candidates"]) -> np.ndarray:
    """w(d): products of table entries, as Python integers and without further rounding."""
    behind = np.minimum(behind, _furthest(rate))
    found, mask = 1, (1 << _DIGIT_BITS) - 1
    for digit, table in enumerate(_tables(rate)):
        found = found * table[(behind >> (digit * _DIGIT_BITS)) & mask]
    return np.asarray(found, object)


@lru_cache(maxsize=256)
def _certificate(rate: Fraction, sensitivity: int) -> SelectionCertificate:
    kappa = Fraction(1)
    for table, ideal in zip(_tables(rate), _ideal(rate), strict=True):
        kappa *= Fraction(digit_sampler.distortion(table.tolist(), ideal))
    # ln kappa <= kappa - 1. A draw has a relative error of at most x = candidates / (draws least)
    # in each of two probabilities, and ln((1 + x) / (1 - x)) <= 3 x.
    least = Fraction(exponential(Fraction(_NATS)).low, 2**SCALE) / kappa
    draw_error = Fraction(3 * MOST_CANDIDATES, _DRAWS) / least
    loss = 2 * sensitivity * rate + rounded_up(2 * (kappa - 1) + draw_error)
    return SelectionCertificate(loss, Fraction(0), _furthest(rate))
