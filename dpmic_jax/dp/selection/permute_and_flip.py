"""The best of many candidates, chosen privately, by integers only.

Permute-and-flip (McKenna and Sheldon 2020): look at the candidates in random order, accept each
with probability e^(-rate d), d how far its score is behind the best one, and stop at the first.
It is never worse than the exponential mechanism. A coin of that bias is {G >= d}, G geometric,
and a random order is a random priority for each candidate; so every candidate draws both, and
the accepted one with the smallest priority is chosen. The steps are the same whatever is drawn.

Proof. Let A(d) = P(G >= min(d, furthest)). A candidate of priority t in [0, 1] loses to another
with probability t A(d_j), hence P(i) = A(d_i) I_i, I_i = int_0^1 prod (1 - t A(d_j)) dt over all
j other than i. Let A(d) <= kappa e^(rate s) A(d + s) for all d, s >= 0. When scores move by S at
most, and the best of them by m, d_i grows by S + m at most: that costs P(i) a factor of
kappa e^(rate (S + m)). The other d_j fall by S - m at most: A(d_j) becomes c A(d_j) at most, with
c = kappa e^(rate (S - m)), and I_i no less than int_0^(1/c) prod (1 - c t A(d_j)) dt = I_i / c.
Together the factor is kappa^2 e^(2 rate S). The errors of the coins do not add up over candidates.

Finite tables. (a) G ends at a largest value R. From p(g) <= k e^(rate s) p(g + s), which is
what `geometric.distortion` bounds, kappa = k (1 + p(R) / ((e^rate - 1) A(furthest))) follows by
adding up. `furthest` lies some 30 nats before R; who is further behind counts as that far behind.
(b) Priorities have 128 bits, and a tie goes to the first candidate. That is a sum of N = 2^128
terms in place of the integral of a falling function from 1, off by 1/N at most; and
I_i >= 1 / candidates, so P(i) is off by a share of candidates / N at most. With both in the
account, epsilon holds exactly: delta = 0, and no floor of blind choices is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, lcm, prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer, rounded_up
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.validation import MOST_CANDIDATES, Mask, one_score_each, pure

# The rate is lower by this, in all, to pay for finite tables.
_SLACK = Fraction(1, 2**39)
_NATS = 30  # between `furthest` and the end of the geometric: e^-30 is below 2^-43
_PRIORITY_WORDS = 4
_LEVELS = 2 ** (32 * _PRIORITY_WORDS)


class SelectionCertificate(NamedTuple):
    """What exact arithmetic on the thresholds says of a selection.

    Attributes:
      epsilon_realised: bound on the loss for any number of candidates; at most the epsilon asked
        for.
      delta_numerical: 0, nothing is left out.
      furthest: a candidate further behind the best counts as this far behind.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    furthest: int


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip:
    """Choose a candidate of nearly the best score: epsilon-DP.

    With k candidates, one that is e or more behind the best is chosen with probability below
    (k / 2) e^(-rate e): it has to come before the best, and be accepted.

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
        """A candidate d behind is accepted with probability e^(-rate d)."""
        budget = exact("epsilon", self.epsilon)
        moves = 2 * integer("sensitivity", self.sensitivity, 1, 2**30)
        rate = min((budget - _SLACK) / moves, geometric.RATES[1])
        if rate < geometric.RATES[0]:
            raise ValueError(
                f"epsilon={float(budget):.3g} with sensitivity {self.sensitivity} has a scale "
                "beyond 2^28; use coarser scores or a larger epsilon"
            )
        return rate

    @property
    def guarantee(self) -> PureDP:
        """Of one selection, for the ledger."""
        return pure(self.epsilon)

    @property
    def rho(self) -> float:
        """One selection is rho-zCDP, as everything epsilon-DP is."""
        return self.guarantee.rho

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """The index of the chosen candidate. Works under jit and vmap."""
        return self.select_among(scores, np.ones(np.shape(scores), bool), key=key)

    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]:
        """The same of those eligible only, at least one; others do not count at all."""
        rate = self.rate
        return _select(
            noise_key(key),
            one_score_each(scores),
            eligible,
            geometric.digits(rate).without_bit(),
            np.uint32(_furthest(rate)),
        )

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The probability of each candidate, exactly; for a few dozen candidates."""
        certificate, best = self.certificate(), max(scores)
        terms = geometric.digits(self.rate).without_bit().terms()
        behind = [min(best - score, certificate.furthest) for score in scores]
        return chosen([tail(terms, d) for d in behind], _LEVELS)

    def certificate(self) -> SelectionCertificate:
        """Computed when the settings are made, and refused unless epsilon_realised <= epsilon."""
        found = _certificate(self.rate, self.sensitivity)
        if found.epsilon_realised > self.epsilon:
            raise ArithmeticError("the tables do not keep epsilon")
        return found


# --- on the device -------------------------------------------------------------------------


@jax.jit
def _select(
    key: Array,
    scores: Int32[Array, " candidates"],
    eligible: Bool[Array, " candidates"],
    tables: geometric.Digits,
    furthest: UInt32[Array, ""],
) -> Int32[Array, ""]:
    words = jax.random.bits(key, (tables.words + _PRIORITY_WORDS, *scores.shape), jnp.uint32)
    return selected(words, scores, eligible, tables, furthest)


def selected(
    words: UInt32[Array, "words candidates"],
    scores: Int32[Array, " candidates"],
    eligible: Bool[Array, " candidates"],
    tables: geometric.Digits,
    furthest: UInt32[Array, ""],
) -> Int32[Array, ""]:
    """The choice that the words stand for: coins first, then priorities."""
    # Unsigned differences wrap, and are exact where int32 would not hold them.
    best = jnp.where(eligible, scores, np.int32(-(2**31))).max()
    best, each = (jax.lax.bitcast_convert_type(s, jnp.uint32) for s in (best, scores))
    accepted = geometric.magnitude(words, tables) >= jnp.minimum(best - each, furthest)
    return first(words[tables.words :], accepted & eligible)


def first(
    priorities: UInt32[Array, "words candidates"], accepted: Bool[Array, " candidates"]
) -> Int32[Array, ""]:
    """The accepted candidate of least priority, the first of those if several have it."""
    for word in priorities:
        least = jnp.where(accepted, word, np.uint32(2**32 - 1)).min()
        accepted = accepted & (word == least)
    return jnp.argmax(accepted).astype(jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


def chosen(accepted: Sequence[Fraction], levels: int) -> list[Fraction]:
    """The law of `first` when candidates are accepted independently with these probabilities.

    Priorities are uniform on 0 .. levels - 1. A candidate of priority t loses to an earlier one
    that is accepted with priority t or less, and to a later one with less than t. The product
    of not losing is a polynomial f in t, and sum_t f(t) = sum_m (Delta^m f)(0) C(levels, m+1).
    """
    whole = lcm(*(a.denominator for a in accepted))
    ways = [int(a * whole) for a in accepted]
    others = len(ways) - 1
    law = []
    for i, mine in enumerate(ways):
        row = [
            prod(whole * levels - (t + (j < i)) * way for j, way in enumerate(ways) if j != i)
            for t in range(others + 1)
        ]
        total = 0
        for m in range(others + 1):
            total += row[0] * comb(levels, m + 1)
            row = [after - before for before, after in pairwise(row)]
        law.append(Fraction(mine * total, (whole * levels) ** len(ways)))
    return law


def _furthest(rate: Fraction) -> int:
    """_NATS before the end, but for one step; at least 1 for every rate."""
    return min(geometric.ideal(rate).reach + 1 - -(-_NATS // rate), geometric.LARGEST)


@lru_cache(maxsize=256)
def _certificate(rate: Fraction, sensitivity: int) -> SelectionCertificate:
    tables, furthest = geometric.digits(rate).without_bit(), _furthest(rate)
    terms, reach = tables.terms(), geometric.ideal(rate).reach
    beyond = tail(terms, reach) / (growth(rate) * tail(terms, furthest))
    kappa = Fraction(geometric.distortion(tables, rate)) * (1 + beyond)
    # ln kappa <= kappa - 1, and ln((1 + x) / (1 - x)) <= 3 x for the priorities.
    moved = 2 * (kappa - 1) + Fraction(3 * MOST_CANDIDATES, _LEVELS)
    return SelectionCertificate(2 * sensitivity * rate + rounded_up(moved), Fraction(0), furthest)
