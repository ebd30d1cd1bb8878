"""The exponential mechanism: a candidate with probability ~ e^(rate score), by integers only.

A candidate that is d behind the best gets the integer weight w(d) ~ e^(-rate d), a product over the
digits of d of rounded powers. One uniform number of 256 bits falls on the line of all weights.

Proof. Let w(d) <= kappa e^(rate |d' - d|) w(d') for d, d' in 0 .. furthest, which exact arithmetic
says of the tables; who is further behind counts as that far behind. When scores move by S at most
and the best of them by m, d_i grows by S + m at most and falls by S - m at most. So w_i / w'_i is
in [e^(-rate (S - m)) / kappa, kappa e^(rate (S + m))], and the range of all log ratios of
probabilities is 2 rate S + 2 ln kappa long, wherever it lies: bounded range (Durfee and Rogers
2019). Since probabilities sum to 1 the range contains 0, so that length bounds epsilon. A range of
length epsilon is epsilon^2 / 8-zCDP (Cesar and Rogers 2021). The uniform number meets a weight w of
the sum W with probability w / W to within 2^-256; as w / W is at least e^-nats / candidates this is
a share of 2^-167 at most.

All of it is on the host, in whole numbers of Python's: it does not run under jit.
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

from dpmic_jax.dp.accounting.events import ZCDP, PureDP
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
from dpmic_jax.dp.selection.permute_and_flip import SelectionCertificate
from dpmic_jax.dp.selection.validation import MOST_CANDIDATES, Mask, one_score_each, pure

_NATS = 40  # between the best weight and the least: e^-40 is above 2^-58
_TABLE_BITS = 128  # the least weight then keeps 70 of them
_DIGIT_BITS = 11
_DRAW_WORDS = 8
_DRAWS = 2 ** (32 * _DRAW_WORDS)
_FURTHEST = 2**32 - 1  # that int32 scores can be apart


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism:
    """Choose a candidate of nearly the best score: epsilon-DP, and epsilon^2 / 8-zCDP.

    With k candidates one that is e or more behind the best is chosen with probability below
    k e^(-rate e).

    Attributes:
      epsilon: of one selection.
      sensitivity: how far one person's records can move any one score, in either direction.
    """

    epsilon: float | Fraction
    sensitivity: int = 1

    def __post_init__(self):
        self.certificate()

    @property
    def rate(self) -> Fraction:
        """A candidate d behind the best is e^(-rate d) times as likely."""
        moves = 2 * integer("sensitivity", self.sensitivity, 1, 2**30)
        budget = exact("epsilon", self.epsilon)
        if budget < 2**10 * SLACK:
            raise ValueError(f"expected epsilon >= 2^-30, got {float(budget):.3g}")
        return min((budget - SLACK) / moves, Fraction(_NATS))

    @property
    def guarantee(self) -> PureDP:
        """Of one selection, for the ledger."""
        return pure(self.epsilon)

    @property
    def rho(self) -> float:
        """One selection is rho-zCDP; half of what epsilon alone would say, or less."""
        return ceil_to_float(self.certificate().epsilon_realised ** 2 / 8)

    @property
    def concentrated(self) -> ZCDP:
        """The same for the ledger."""
        return ZCDP(self.rho)

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """The index of the chosen candidate."""
        return self.select_among(scores, np.ones(np.shape(scores), bool), key=key)

    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]:
        """The same of those eligible only, at least one; others do not count at all."""
        places = np.flatnonzero(np.asarray(eligible))
        behind = np.asarray(one_score_each(scores))[places].astype(np.int64)
        ends = np.add.accumulate(_weights(self.rate, behind.max() - behind))
        words = np.asarray(jax.random.bits(noise_key(key), (_DRAW_WORDS,), jnp.uint32))
        target = int.from_bytes(words.astype("<u4").tobytes(), "little") * ends[-1] // _DRAWS
        return jnp.asarray(places[np.searchsorted(ends, target, side="right")], jnp.int32)

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The probability of each candidate, exactly."""
        behind = max(scores) - np.asarray(scores, np.int64)
        ends = [0, *accumulate(_weights(self.rate, behind).tolist())]
        # The least draw that is beyond each end.
        draws = [-(-end * _DRAWS // ends[-1]) for end in ends]
        return [Fraction(b - a, _DRAWS) for a, b in pairwise(draws)]

    def certificate(self) -> SelectionCertificate:
        """Computed when the settings are made, and refused unless epsilon_realised <= epsilon."""
        found = _certificate(self.rate, self.sensitivity)
        if found.epsilon_realised > self.epsilon:
            raise ArithmeticError("the tables do not keep epsilon")
        return found


def _furthest(rate: Fraction) -> int:
    return min(int(_NATS / rate), _FURTHEST)


@lru_cache(maxsize=64)
def _ideal(rate: Fraction) -> list[list[Enclosure]]:
    """e^(-rate 2^shift x), x = 0, 1, ..., for each digit that `furthest` has."""
    furthest, found = _furthest(rate), []
    for shift in range(0, furthest.bit_length(), _DIGIT_BITS):
        size = min(1 << _DIGIT_BITS, (furthest >> shift) + 1)
        found.append(powers(exponential(rate * 2**shift), size))
    return found


@lru_cache(maxsize=64)
def _tables(rate: Fraction) -> list[np.ndarray]:
    """The same as whole numbers of 128 bits."""
    return [
        np.array([power.low >> (SCALE - _TABLE_BITS) for power in digit], object)
        for digit in _ideal(rate)
    ]


def _weights(rate: Fraction, behind: Int[np.ndarray, " candidates"]) -> np.ndarray:
    """w(d): products of table entries, not rounded again."""
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
    # ln kappa <= kappa - 1, and ln((1 + x) / (1 - x)) <= 3 x for the draw.
    least = Fraction(exponential(Fraction(_NATS)).low, 2**SCALE) / kappa
    off = Fraction(3 * MOST_CANDIDATES, _DRAWS) / least
    loss = 2 * sensitivity * rate + rounded_up(2 * (kappa - 1) + off)
    return SelectionCertificate(loss, Fraction(0), _furthest(rate))
