"""Top-k for a rho of zCDP: k rounds of the exponential mechanism, without replacement.

Each round is `ExponentialMechanism(epsilon=e)`, and rho = k e^2 / 8.

Proof. All log ratios L = ln(p_i / p'_i) of one round lie in an interval of length e, wherever it
lies: bounded range (Durfee and Rogers 2019; `exponential` has the proof for integer weights). Let
K(t) = ln E'[e^(t L)], the expectation over the neighbour's choice. Then K(0) = K(1) = 0, and K''(t)
is the variance of L under probabilities ~ p' e^(t L), which is at most e^2 / 4 in an interval of
length e. By the error formula of interpolation at 0 and 1, K(alpha) = K''(x) alpha (alpha - 1) / 2
for some x. So the Rényi divergence of order alpha, K(alpha) / (alpha - 1), is at most alpha e^2 / 8
(Cesar and Rogers 2021). The winners before a round decide only which candidates are left, and its
bound holds for any of them, so the rhos of k rounds add up. []

The 1/8 comes from the length of the interval. e-DP alone leaves -e .. e, of length 2 e, and
e^2 / 2. Permute-and-flip and one-shot noise do come close to both ends at once: from scores 2 S
apart to two equal ones their log ratios are -ln(2 - e^-e), nearly -e for small e, and e. So for
small e their rho is nearly e^2 / 2. The exponential mechanism divides by the sum of all weights,
which moves both ends together.

Weights are rounded and a draw has 256 bits: both change every probability by a factor, never by an
addend, so they lengthen the range, are part of `certificate().range_each`, and add no delta.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Int, Int32

from dpmic_jax.dp.accounting.events import ZCDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.dp.selection.exponential import ExponentialMechanism
from dpmic_jax.dp.selection.iterative_top_k import PeeledTopK

_BITS = 64  # of epsilon after the binary point, rounded down
# A range compares two log ratios, each of which has the error of a draw, below 2^-165; the
# certificate of one selection counts one of them.
_SECOND_DRAW = Fraction(1, 2**128)


class ZCDPCertificate(NamedTuple):
    """What exact arithmetic on the integer tables proves of a top-k under zCDP.

    Attributes:
      rho_realised: k range_each^2 / 8, at most the requested rho.
      delta_numerical: 0, since rounding is part of the range.
      range_each: bound on the length of the interval of all log ratios of one round.
      furthest: a candidate further behind the best is treated as this far behind.
    """

    rho_realised: Fraction
    delta_numerical: Fraction
    range_each: Fraction
    furthest: int


@dataclass(frozen=True, kw_only=True)
class ZCDPTopK:
    """Choose k candidates, in order, by the exponential mechanism without replacement: rho-zCDP.

    Attributes:
      rho: of all k candidates together.
      sensitivity: the most that one person's records change any score, up or down.
      k: the number of candidates to choose.
    """

    rho: float | Fraction
    sensitivity: int
    k: int

    def __post_init__(self):
        self.certificate()

    @property
    def epsilon_each(self) -> Fraction:
        """sqrt(8 rho / k), rounded down: the range, and the epsilon, of one round."""
        each = self._rho / integer("k", self.k, 1, 2**20)
        return Fraction(math.isqrt(int(8 * each * 4**_BITS)), 2**_BITS) - _SECOND_DRAW

    @property
    def rounds(self) -> PeeledTopK:
        """The k selections; its `guarantee` is their pure differential privacy."""
        one = ExponentialMechanism(epsilon=self.epsilon_each, sensitivity=self.sensitivity)
        return PeeledTopK(one=one, k=self.k)

    @property
    def guarantee(self) -> ZCDP:
        """The guarantee of the whole sequence, as the ledger records it."""
        return ZCDP(ceil_to_float(self._rho), float(self.certificate().delta_numerical))

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int[np.ndarray, " k"]:
        """The indices of the chosen candidates, in the order of selection. Not under jit."""
        return self.rounds.select(scores, key=key)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The exact probability of each sequence; feasible for a few candidates."""
        return self.rounds.pmf(scores)

    def certificate(self) -> ZCDPCertificate:
        """The exact rho, checked when the settings are made: it is at most the requested one."""
        one = self.rounds.one.certificate()
        length = one.epsilon_realised + _SECOND_DRAW
        realised = self.k * length**2 / 8
        if realised > self._rho:
            raise ArithmeticError("the tables do not keep rho")
        return ZCDPCertificate(realised, one.delta_numerical, length, one.furthest)

    @property
    def _rho(self) -> Fraction:
        """A float is the decimal that was written, as in the ledger."""
        exact("rho", self.rho)
        return self.rho if isinstance(self.rho, Fraction) else as_fraction(self.rho)
