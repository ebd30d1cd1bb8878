"""One-shot top-k: add noise to every score, and choose the k candidates with the largest sums.

Y_i = s_i + G_i with G geometric, P(G = g) ~ e^(-rate g), rate = epsilon / (2 k S), or Y_i is the
sentinel (`tail_atom`). The k largest Y are chosen, with ties broken by random priorities, and only
their set is released. G is the integer part of an exponential variable whose fractional part is
independent of it. So with random priorities the choice has exactly the distribution of top-k with
exponential noise. For k = 1 that is permute-and-flip (Ding et al. 2021).

Proof of epsilon-DP. Let o be a set of k, and (M, u) the largest (Y_j, priority) of all others.
Given (M, u), o is chosen with probability prod of H_i(M, u) over i in o: candidate i has to be
above M, or at M with the better priority. So H_i(M, u) is a mixture of F_{s_i}(M + 1) and
F_{s_i}(M) whose weights depend on u only. On the neighbour give all others the same noise: none
rises by more than S, and sentinels stay, so (M', u') is at most (min(M + S, SENTINEL), u), and the
same if M is the sentinel. By the lemma of `tail_atom` with a = epsilon / k, each of the k factors
falls by at most e^(epsilon / k). This holds for any distribution of the priorities: that they have
finitely many bits costs no privacy.
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
from dpmic_jax.dp.selection.exact_pmf import top_k_pmf
from dpmic_jax.dp.selection.validation import check_scores, pure_guarantee

# The most of epsilon that one winner uses. The noise ends after 60 nats, and a larger shift would
# leave too little of that reach.
_MOST_NATS = 40
_PRIORITY_WORDS = 2


@dataclass(frozen=True, kw_only=True)
class OneShotTopK:
    """Choose a set of k candidates whose scores are close to the best: epsilon-DP.

    With n candidates and probability at least 1 - beta, no chosen candidate is more than
    ln(n / beta) / rate below one that is not chosen.

    Attributes:
      epsilon: privacy loss of the whole set.
      sensitivity: the most that one person's records change any score, up or down.
      k: the number of candidates to choose.
      top: scores are clipped to 0 .. top.
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
        # Differences of two scores change by twice the sensitivity.
        change = 2 * integer("sensitivity", self.sensitivity, 1, LARGEST)
        budget = exact("epsilon", self.epsilon) / integer("k", self.k, 1, 2**20)
        rate = (min(budget, Fraction(_MOST_NATS)) - SLACK) / change
        if budget < 2**10 * SLACK or rate < geometric.RATES[0]:
            raise ValueError(
                f"epsilon / k = {float(budget):.3g} with sensitivity {self.sensitivity} needs "
                "noise of a scale beyond 2^28: use coarser scores, a larger epsilon or a smaller k"
            )
        return rate

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of the whole set, as the ledger records it."""
        return pure_guarantee(self.epsilon)

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private by themselves: release only the result of `choose`."""
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
          noisy: the results of `noisy` for all candidates, each with a key of its own.
          key: for the priorities that break ties; different from the keys of the noise.
        """
        return _largest(noise_key(key), check_scores(noisy, self.k), self.k)

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, " k"]:
        """Both steps at once, for scores that are all at hand. Works under jit and vmap."""
        for_noise, for_ties = jax.random.split(noise_key(key))
        noisy = self.noisy(check_scores(scores, self.k), key=for_noise)
        return self.choose(noisy, key=for_ties)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of each set; feasible for a few candidates and a small noise scale.

        Exact for priorities that are all different. With n candidates and 64 bits, some are equal
        with probability at most n^2 / 2^65.
        """
        points = [min(max(score, 0), self.top) for score in scores]
        return top_k_pmf(_levels(self.rate, points), self.k)

    def certificate(self) -> PureCertificate:
        """The exact privacy loss, checked when the settings are made: it is at most epsilon.

        `floor` is the probability of the sentinel, `edge_mass` and `edge_allowed` are the E of
        the lemma in `tail_atom` and its largest allowed value.
        """
        tail_atom.check_below(self.top + geometric.ideal(self.rate).reach)
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
    return noisy_scores(words, points, tables, top)


def noisy_scores(
    words: UInt32[Array, "words *shape"],
    points: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: Int32[Array, ""],
) -> Int32[Array, "*shape"]:
    """Noisy scores from random words: those of the digits first, then those of the sentinel."""
    noise = geometric.magnitude(words, tables).astype(jnp.int32)
    noisy = jnp.clip(points, np.int32(0), top) + noise
    return jnp.where(tail_atom.drawn(words[tables.words :]), np.int32(tail_atom.SENTINEL), noisy)


@partial(jax.jit, static_argnames="k")
def _largest(key: Key[Array, ""], noisy: Int32[Array, " candidates"], k: int) -> Int32[Array, " k"]:
    # ~y = -y - 1 reverses the order and cannot overflow.
    words = jax.random.bits(key, (_PRIORITY_WORDS, *noisy.shape), jnp.uint32)
    return smallest([~noisy, *words], k)


def smallest(digits: Sequence[Shaped[Array, " candidates"]], k: int) -> Int32[Array, " k"]:
    """The indices of the k smallest numbers, in ascending order; of equal ones the first.

    One sort per digit, of its values only, takes a quarter of the time of a sort of the
    candidates by all digits.

    Args:
      digits: the digits of the numbers, the most significant first.
      k: how many numbers to find.
    """
    # Of the numbers whose digits so far are those of the k-th smallest (`tied`), `left` are taken.
    left, tied = jnp.asarray(k, jnp.int32), jnp.ones(digits[0].shape, bool)
    taken = ~tied
    for digit in digits:
        largest = jnp.asarray(jnp.iinfo(digit.dtype).max, digit.dtype)
        limit = jnp.sort(jnp.where(tied, digit, largest))[left - 1]
        smaller = tied & (digit < limit)
        taken, tied = taken | smaller, tied & (digit == limit)
        left = left - smaller.sum(dtype=jnp.int32)
    taken = taken | (tied & (jnp.cumsum(tied, dtype=jnp.int32) <= left))
    return jnp.nonzero(taken, size=k)[0].astype(jnp.int32)


# --- exact arithmetic ----------------------------------------------------------------------


@lru_cache(maxsize=256)
def _certificate(rate: Fraction, sensitivity: int) -> PureCertificate:
    """The certificate of one winner."""
    tables, reach = geometric.digits(rate).without_bit(), geometric.ideal(rate).reach
    # The loss is ln(kappa e^x) <= x + (kappa - 1), with kappa the distortion by rounded tables.
    rounding = rounded_up(Fraction(geometric.distortion(tables, rate)) - 1)
    loss = 2 * sensitivity * rate + rounding
    edge = tail(tables.terms(), reach - 2 * sensitivity + 1)
    return PureCertificate(
        loss, Fraction(0), tail_atom.PROBABILITY, edge, growth(loss) * tail_atom.PROBABILITY
    )


@lru_cache(maxsize=64)
def _tails(rate: Fraction) -> list[Fraction]:
    """P(G >= d) for d = 0, 1, ..., the last of them 0."""
    terms = geometric.digits(rate).without_bit().terms()
    return [tail(terms, d) for d in range(geometric.ideal(rate).reach + 2)]


def _levels(rate: Fraction, points: Sequence[int]) -> list[list[tuple[Fraction, Fraction]]]:
    """For each level y, from the lowest to the sentinel: F(y) and F(y + 1) of each candidate."""
    reached = [tail_atom.with_atom(a) for a in _tails(rate)]
    last = len(reached) - 1

    def at(point: int, y: int) -> Fraction:
        return reached[min(max(y - point, 0), last)]

    levels = range(min(points), max(points) + last)
    ordinary = [[(at(s, y), at(s, y + 1)) for s in points] for y in levels]
    return [*ordinary, [(tail_atom.PROBABILITY, Fraction(0)) for _ in points]]
