"""Permute-and-flip: choose a candidate whose score is close to the best, in integers.

Permute-and-flip (McKenna and Sheldon 2020) goes through the candidates in random order, accepts
each with probability e^(-rate d), where d is the distance of its score to the best, and stops at
the first accepted one. It is never worse than the exponential mechanism. The event {G >= d}, with G
geometric, is a coin of that bias, and random priorities give a random order. So every candidate
draws both, and the accepted one with the smallest priority is chosen. The steps are the same
whatever is drawn.

Proof. Let A(d) = P(G >= min(d, furthest)). A candidate of priority t in [0, 1] loses to another
with probability t A(d_j), hence P(i) = A(d_i) I_i, I_i = int_0^1 prod (1 - t A(d_j)) dt over all
j other than i. Let A(d) <= kappa e^(rate s) A(d + s) for all d, s >= 0. If scores change by at
most S, and the best score by m, then d_i grows by at most S + m, which lowers P(i) by at most a
factor kappa e^(rate (S + m)). The other d_j fall by at most S - m: A(d_j) becomes at most c A(d_j),
with c = kappa e^(rate (S - m)), and I_i at least int_0^(1/c) prod (1 - c t A(d_j)) dt = I_i / c.
Together the factor is kappa^2 e^(2 rate S). The errors of the coins do not add up over candidates.

Finite tables. (a) G has a largest value R. `geometric.distortion` bounds k in
p(g) <= k e^(rate s) p(g + s), and summing gives kappa = k (1 + p(R) / ((e^rate - 1) A(furthest))).
`furthest` is about 30 nats before R; a candidate further behind is treated as that far behind.
(b) Priorities have 128 bits, and a tie goes to the first candidate. A sum of N = 2^128 terms
replaces the integral of a function that falls from 1, with an error of at most 1/N. Since
I_i >= 1 / candidates, the relative error of P(i) is at most candidates / N. The certificate counts
both (a) and (b), so epsilon holds exactly: delta = 0, and no data-independent choices are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, lcm, prod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer, rounded_up
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.selector import SelectionCertificate, Selector
from dpmic_jax.dp.selection.validation import MOST_CANDIDATES, Mask, check_scores

# Part of epsilon that is reserved for the rounding of the tables; the rate is lower accordingly.
_SLACK = Fraction(1, 2**39)
_NATS = 30  # between `furthest` and the largest geometric value: e^-30 is below 2^-43
_PRIORITY_WORDS = 4
_LEVELS = 2 ** (32 * _PRIORITY_WORDS)


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Selector):
    """Choose a candidate whose score is close to the best: epsilon-DP.

    With k candidates, the probability that the chosen one is e or more below the best is less
    than (k / 2) e^(-rate e): it has to come before the best, and be accepted. `select` and
    `select_among` work under jit and vmap.

    Attributes:
      epsilon: privacy loss of one selection.
      sensitivity: the most that one person's records change any score, up or down.
    """

    @property
    def rate(self) -> Fraction:
        """A candidate d below the best is accepted with probability e^(-rate d)."""
        budget = exact("epsilon", self.epsilon)
        # Distances to the best score change by twice the sensitivity.
        change = 2 * integer("sensitivity", self.sensitivity, 1, 2**30)
        rate = min((budget - _SLACK) / change, geometric.RATES[1])
        if rate < geometric.RATES[0]:
            raise ValueError(
                f"epsilon={float(budget):.3g} with sensitivity {self.sensitivity} needs noise of "
                "a scale beyond 2^28; use coarser scores or a larger epsilon"
            )
        return rate

    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]:
        """The index of the candidate chosen among the eligible ones, as if there were no others."""
        rate = self.rate
        return _select(
            noise_key(key),
            check_scores(scores),
            eligible,
            geometric.digits(rate).without_bit(),
            np.uint32(_furthest(rate)),
        )

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The exact probability of each candidate; feasible for a few dozen candidates."""
        certificate, best = self.certificate(), max(scores)
        terms = geometric.digits(self.rate).without_bit().terms()
        behind = [min(best - score, certificate.furthest) for score in scores]
        return chosen([tail(terms, d) for d in behind], _LEVELS)

    def _certificate(self) -> SelectionCertificate:
        return _certificate(self.rate, self.sensitivity)


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
    """The index that the random words select: the first words are coins, the rest priorities."""
    # Unsigned differences wrap around, so they are exact where int32 would overflow.
    best = jnp.where(eligible, scores, np.int32(-(2**31))).max()
    best, each = (jax.lax.bitcast_convert_type(s, jnp.uint32) for s in (best, scores))
    accepted = geometric.magnitude(words, tables) >= jnp.minimum(best - each, furthest)
    return first(words[tables.words :], accepted & eligible)


def first(
    priorities: UInt32[Array, "words candidates"], accepted: Bool[Array, " candidates"]
) -> Int32[Array, ""]:
    """The accepted candidate of least priority, and the first of several with that priority."""
    # Word by word, the most significant first: candidates that are not least drop out.
    for word in priorities:
        least = jnp.where(accepted, word, np.uint32(2**32 - 1)).min()
        accepted = accepted & (word == least)
    return jnp.argmax(accepted).astype(jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


def chosen(accepted: Sequence[Fraction], levels: int) -> list[Fraction]:
    """The distribution of `first`, if candidates are accepted independently of each other.

    Priorities are uniform on 0 .. levels - 1. A candidate of priority t loses to an earlier one
    that is accepted with priority at most t, and to a later one with priority below t. The
    probability of losing to none is a polynomial f in t of degree `others`, so its sum over t
    follows from its finite differences: sum_t f(t) = sum_m (Delta^m f)(0) C(levels, m+1).

    Args:
      accepted: the probability that each candidate is accepted.
      levels: the number of different priorities.
    """
    # Integers over one common denominator: fractions would be reduced at every step.
    whole = lcm(*(a.denominator for a in accepted))
    ways = [int(a * whole) for a in accepted]
    others = len(ways) - 1
    pmf = []
    for i, mine in enumerate(ways):
        row = [
            prod(whole * levels - (t + (j < i)) * way for j, way in enumerate(ways) if j != i)
            for t in range(others + 1)
        ]
        total = 0
        for m in range(others + 1):
            total += row[0] * comb(levels, m + 1)
            row = [after - before for before, after in pairwise(row)]
        pmf.append(Fraction(mine * total, (whole * levels) ** len(ways)))
    return pmf


def _furthest(rate: Fraction) -> int:
    """_NATS before the largest geometric value, to within one step; at least 1 for every rate."""
    return min(geometric.ideal(rate).reach + 1 - -(-_NATS // rate), geometric.LARGEST)


@lru_cache(maxsize=256)
def _certificate(rate: Fraction, sensitivity: int) -> SelectionCertificate:
    tables, furthest = geometric.digits(rate).without_bit(), _furthest(rate)
    terms, reach = tables.terms(), geometric.ideal(rate).reach
    beyond = tail(terms, reach) / (growth(rate) * tail(terms, furthest))
    kappa = Fraction(geometric.distortion(tables, rate)) * (1 + beyond)
    # ln kappa <= kappa - 1. Priorities have a relative error of at most x = candidates / levels
    # in each of two probabilities, and ln((1 + x) / (1 - x)) <= 3 x.
    rounding = 2 * (kappa - 1) + Fraction(3 * MOST_CANDIDATES, _LEVELS)
    loss = 2 * sensitivity * rate + rounded_up(rounding)
    return SelectionCertificate(loss, Fraction(0), furthest)
