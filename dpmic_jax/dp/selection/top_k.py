"""The best k of many candidates in one go: noise on every score, and the k largest.

Y_i = s_i + G_i with G geometric, P(G = g) ~ e^(-rate g), rate = epsilon / (2 k S), or the jackpot
(`tail_atom`). The k largest Y are chosen, equal ones by random priorities, and only their set is
told. G is the whole part of an exponential number whose fraction does not depend on it; so random
priorities make this, candidate for candidate, the selection with exponential noise. For k = 1 that
is permute-and-flip (Ding et al. 2021).

Proof of epsilon-DP. Let o be a set of k, and (M, u) the largest (Y_j, priority) of all others.
Given that, o is chosen with probability prod of H_i(M, u), i in o: candidate i has to be above M,
or at M with the better priority, so H_i(M, u) is a mixture of F_{s_i}(M + 1) and F_{s_i}(M) whose
weights depend on u only. On the neighbour give all others the same noise: none rises by more than
S, and jackpots stay, so (M', u') is at most (min(M + S, the place), u), the same if M is the place.
By the lemma of `jackpots` with a = epsilon / k each of the k factors falls by e^(epsilon / k) at
most. This holds whatever law the priorities have: their finitely many bits cost nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key, Shaped, UInt32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer, rounded_up
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.bounded import LARGEST, PureCertificate, as_int32
from dpmic_jax.dp.noise.digit_sampler import tail
from dpmic_jax.dp.noise.distributions import SLACK
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection import tail_atom
from dpmic_jax.dp.selection.exact_pmf import largest
from dpmic_jax.dp.selection.validation import one_score_each, pure

_MOST_NATS = 40  # a winner is worth: more would leave too little of the reach
_PRIORITY_WORDS = 2


@dataclass(frozen=True, kw_only=True)
class OneShotTopK:
    """Choose the set of k candidates of nearly the best scores: epsilon-DP.

    With n candidates no chosen one is more than (ln(n / beta) / rate) behind one that is not,
    but for a chance of beta.

    Attributes:
      epsilon: of the whole set.
      sensitivity: how far one person's records can move any one score, in either direction.
      k: how many to choose.
      top: scores are in 0 .. top; others are brought to the ends.
    """

    epsilon: float | Fraction
    sensitivity: int
    k: int
    top: int

    def __post_init__(self):
        integer("top", self.top, 1, LARGEST)
        self.certificate()

    @property
    def rate(self) -> Fraction:
        """The noise is d or more with probability e^(-rate d)."""
        moves = 2 * integer("sensitivity", self.sensitivity, 1, LARGEST)
        budget = exact("epsilon", self.epsilon) / integer("k", self.k, 1, 2**20)
        rate = (min(budget, Fraction(_MOST_NATS)) - SLACK) / moves
        if budget < 2**10 * SLACK or rate < geometric.RATES[0]:
            raise ValueError(
                f"epsilon / k = {float(budget):.3g} with sensitivity {self.sensitivity} is noise "
                "of a scale beyond 2^28: use coarser scores, a larger epsilon or a smaller k"
            )
        return rate

    @property
    def guarantee(self) -> PureDP:
        """Of the set, for the ledger."""
        return pure(self.epsilon)

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private: only what `choose` makes of all of them is."""
        return _noisy(
            noise_key(key),
            as_int32(points),
            geometric.digits(self.rate).without_bit(),
            np.int32(self.top),
        )

    release = noisy

    def choose(self, noisy: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, " k"]:
        """The indices of the k largest noisy scores, in ascending order, so that no rank leaks.

        Args:
          noisy: from `noisy`, of all candidates, each with a key of its own.
          key: for the priorities among equal ones; another one than those of the noise.
        """
        return _largest(noise_key(key), one_score_each(noisy, self.k), self.k)

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, " k"]:
        """Both steps, for who has all scores at hand. Works under jit and vmap."""
        for_noise, for_ties = jax.random.split(noise_key(key))
        noisy = self.noisy(one_score_each(scores, self.k), key=for_noise)
        return self.choose(noisy, key=for_ties)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of each set, for a few candidates, and noise of a short reach.

        Exactly so for priorities that are never equal; with n candidates some of ours are with
        probability n^2 / 2^65.
        """
        points = [min(max(score, 0), self.top) for score in scores]
        return largest(_levels(self.rate, points), self.k)

    def certificate(self) -> PureCertificate:
        """Computed when the settings are made, and refused unless epsilon_realised <= epsilon.

        `floor` is the probability of the jackpot, `edge_mass` and `edge_allowed` are E of the
        lemma and what it may be.
        """
        tail_atom.below(self.top + geometric.ideal(self.rate).reach)
        each = _certificate(self.rate, self.sensitivity)
        found = each._replace(epsilon_realised=self.k * each.epsilon_realised)
        if found.epsilon_realised > self.epsilon or found.edge_mass > found.edge_allowed:
            raise ArithmeticError("the tables do not keep epsilon")
        return found


# --- on the device -------------------------------------------------------------------------


@jax.jit
def _noisy(
    key: Key[Array, ""],
    points: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: Int32[Array, ""],
) -> Int32[Array, "*shape"]:
    words = jax.random.bits(key, (tables.words + tail_atom.WORDS, *points.shape), jnp.uint32)
    return raised(words, points, tables, top)


def raised(
    words: UInt32[Array, "words *shape"],
    points: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: Int32[Array, ""],
) -> Int32[Array, "*shape"]:
    """The noisy scores that the words stand for: digits first, then the jackpot."""
    noise = geometric.magnitude(words, tables).astype(jnp.int32)
    noisy = jnp.clip(points, np.int32(0), top) + noise
    return jnp.where(tail_atom.drawn(words[tables.words :]), np.int32(tail_atom.PLACE), noisy)


@partial(jax.jit, static_argnames="k")
def _largest(key: Key[Array, ""], noisy: Int32[Array, " candidates"], k: int) -> Int32[Array, " k"]:
    # ~y = -y - 1 turns the order round and cannot overflow.
    words = jax.random.bits(key, (_PRIORITY_WORDS, *noisy.shape), jnp.uint32)
    return smallest([~noisy, *words], k)


def smallest(digits: Sequence[Shaped[Array, " candidates"]], k: int) -> Int32[Array, " k"]:
    """The indices of the k least numbers, digit after digit; of equal ones the first.

    Sorting one digit at a time, and its values only, takes a fourth of the time of sorting
    candidates by all digits.
    """
    left, tied = jnp.asarray(k, jnp.int32), jnp.ones(digits[0].shape, bool)
    taken = ~tied
    for digit in digits:
        largest = jnp.asarray(jnp.iinfo(digit.dtype).max, digit.dtype)
        limit = jnp.sort(jnp.where(tied, digit, largest))[left - 1]
        now = tied & (digit < limit)
        taken, tied = taken | now, tied & (digit == limit)
        left = left - now.sum(dtype=jnp.int32)
    taken = taken | (tied & (jnp.cumsum(tied, dtype=jnp.int32) <= left))
    return jnp.nonzero(taken, size=k)[0].astype(jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


@lru_cache(maxsize=256)
def _certificate(rate: Fraction, sensitivity: int) -> PureCertificate:
    """Of one winner. ln(kappa e^x) <= x + (kappa - 1)."""
    tables, reach = geometric.digits(rate).without_bit(), geometric.ideal(rate).reach
    moved = rounded_up(Fraction(geometric.distortion(tables, rate)) - 1)
    loss = 2 * sensitivity * rate + moved
    edge = tail(tables.terms(), reach - 2 * sensitivity + 1)
    return PureCertificate(
        loss, Fraction(0), tail_atom.CHANCE, edge, growth(loss) * tail_atom.CHANCE
    )


@lru_cache(maxsize=64)
def _tails(rate: Fraction) -> list[Fraction]:
    """P(G >= d) for d = 0, 1, ..., the last of them 0."""
    terms = geometric.digits(rate).without_bit().terms()
    return [tail(terms, d) for d in range(geometric.ideal(rate).reach + 2)]


def _levels(rate: Fraction, points: Sequence[int]) -> list[list[tuple[Fraction, Fraction]]]:
    """For each level y, from the lowest to the place: F(y) and F(y + 1) of each candidate."""
    reached = [tail_atom.share(a) for a in _tails(rate)]
    last = len(reached) - 1

    def at(point: int, y: int) -> Fraction:
        return reached[min(max(y - point, 0), last)]

    levels = range(min(points), max(points) + last)
    ordinary = [[(at(s, y), at(s, y + 1)) for s in points] for y in levels]
    return [*ordinary, [(tail_atom.CHANCE, Fraction(0)) for _ in points]]
