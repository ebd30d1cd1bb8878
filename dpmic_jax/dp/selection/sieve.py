"""Sieve and examine: a sparse vector on subsamples, then a noisy test on all the data.

A round draws a subsample of the n records and a noisy threshold, and goes through the queries until
one passes on the subsample. That query is examined: its score on all records, with noise of its
own, is compared with the threshold. The next round starts at the query after it. docs/sieve.md has
the algorithm, the proofs and the bounds on its errors (`sieve_bounds`).

Privacy of a round. With the subsample fixed, let scores change by at most Delta. The sieve stops at
query k with probability P(k) <= e^e P'(k) + E. Here e is the loss of the threshold's noise under a
shift by Delta plus that of one query's noise under a shift by 2 Delta (Dwork and Roth 2014, section
3.6), and E is the probability of noise at the edges of its tables. With probability f a round is
blind: it stops at a query drawn independently of the data, each with probability u or more. Then
E <= (e^e - 1) f u makes the round e-DP exactly. A uniform subsample of m of n records, with one
record replaced, amplifies this to ln(1 + (m/n)(e^e - 1)). All subsamples are exactly equally likely
unless a tie decides on a record (`subsampling`), and in that case the round is blind too. The
examination is differentially private by itself, and the losses of rounds add up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, UInt32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.arithmetic.intervals import SCALE, exact, exponential, growth, integer
from dpmic_jax.dp.noise.distributions import DiscreteLaplace
from dpmic_jax.dp.rng.keys import AnyKey, noise_key, pair_key
from dpmic_jax.dp.selection.subsampling import before_subsampling, subsample, subsample_on_host

FURTHEST = 2**29  # scores are clipped to +-2^29, and noise is smaller: sums fit int32
_ENDS = np.int32(-FURTHEST), np.int32(FURTHEST)
_FLOOR_BITS = range(40, 32, -1)  # f is 2^-40, or the next power of 2 that is large enough
# The purpose of a key, folded into it. The numbers are part of every seeded run.
_SUBSAMPLE, _BLIND, _THRESHOLD, _QUERIES, _EXAMINE, _COIN = range(6)


class Subsamples(NamedTuple):
    """The records of every round, to compute scores on; secret, like the key."""

    indices: Int32[Array, "rounds subsample"]  # record numbers, in increasing order
    blind: Bool[Array, " rounds"]  # whether the round ignores its scores


class Answers(NamedTuple):
    """What may be released; queries from `asked` on have no answer, since the rounds ran out."""

    above: Bool[Array, " queries"]  # passed the sieve and the examination
    examined: Bool[Array, " queries"]  # passed the sieve
    asked: Int32[Array, ""]  # how many queries were answered


class SieveCertificate(NamedTuple):
    """What exact arithmetic on the integer tables proves of a round; delta_numerical is 0."""

    inner_realised: Fraction  # bound on the sieve's loss on its subsample, <= inner_epsilon
    examine_realised: Fraction  # bound on the loss of an examination, <= examine_epsilon
    floor: Fraction  # probability that a round is blind
    examine_floor: Fraction  # probability that an examination is a fair coin


@dataclass(frozen=True, kw_only=True)
class SieveAndExamine:
    """Find the scores above a threshold: rounds * (sieve_epsilon + examine_epsilon)-DP.

    Scores are int32 and must not depend on the order of records.

    Attributes:
      sieve_epsilon: privacy loss of one round's sieve, after amplification by subsampling.
      examine_epsilon: privacy loss of one examination.
      sieve_sensitivity: the most that one record changes a score on `subsample` records.
      examine_sensitivity: the most that one record changes a score on all n records. For a mean
        it is subsample / n times the other one.
      threshold: T, in the units of the scores.
      tweak: t; a query passes the sieve if its noisy score is at least the noisy T - t.
      n: number of records, public.
      subsample: m, the number of records in a round's subsample.
      queries: number of scores.
      rounds: the most queries that can be examined. The last round is charged even if it does not
        come to an examination.
    """

    sieve_epsilon: float | Fraction
    examine_epsilon: float | Fraction
    sieve_sensitivity: int
    examine_sensitivity: int
    threshold: int
    tweak: int
    n: int
    subsample: int
    queries: int
    rounds: int

    def __post_init__(self):
        integer("sieve_sensitivity", self.sieve_sensitivity, 1, 2**28)
        integer("examine_sensitivity", self.examine_sensitivity, 1, 2**28)
        integer("threshold", self.threshold, -(2**28), 2**28)
        integer("tweak", self.tweak, 0, 2**28)
        integer("n", self.n, 1, 2**31 - 1)
        integer("subsample", self.subsample, 1, self.n)
        integer("queries", self.queries, 1, 2**30)
        integer("rounds", self.rounds, 1, 2**30)
        self.certificate()

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of all rounds, for neighbours that differ in one record."""
        each = _as_written("sieve_epsilon", self.sieve_epsilon)
        each += _as_written("examine_epsilon", self.examine_epsilon)
        return PureDP(ceil_to_float(self.rounds * each))

    @property
    def inner_epsilon(self) -> Fraction:
        """epsilon' of the sieve on its subsample, rounded down: ln(1 + (n/m)(e^epsilon - 1))."""
        share = Fraction(self.subsample, self.n)
        return before_subsampling(_as_written("sieve_epsilon", self.sieve_epsilon), share)

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """Noise of scale 2 Delta / epsilon', with Delta the sieve's sensitivity."""
        return DiscreteLaplace(epsilon=self.inner_epsilon / 2, sensitivity=self.sieve_sensitivity)

    @property
    def query_noise(self) -> DiscreteLaplace:
        """Noise of scale 4 Delta / epsilon', with Delta the sieve's sensitivity."""
        return DiscreteLaplace(
            epsilon=self.inner_epsilon / 2, sensitivity=2 * self.sieve_sensitivity
        )

    @property
    def examine_noise(self) -> DiscreteLaplace:
        """Noise of scale Delta / examine_epsilon, with Delta the sensitivity on all records."""
        budget = _as_written("examine_epsilon", self.examine_epsilon)
        return DiscreteLaplace(epsilon=budget, sensitivity=self.examine_sensitivity)

    def certificate(self) -> SieveCertificate:
        """The exact privacy loss, checked when the settings are made: it is within the budget."""
        return _certificate(self)

    def subsamples(self, *, key: AnyKey) -> Subsamples:
        """Draw the records of every round. Works under jit and vmap."""
        return _subsamples(self, noise_key(key))

    def answer(
        self,
        drawn: Subsamples,
        sieve_scores: Int32[Array, "rounds queries"],
        full_scores: Int32[Array, " queries"],
        *,
        key: AnyKey,
    ) -> Answers:
        """Answers from the scores on every subsample, and on all records.

        Works under jit and vmap.

        Args:
          drawn: the result of `subsamples`.
          sieve_scores: the scores of all queries on each subsample.
          full_scores: the scores of all queries on all records.
          key: the key that the subsamples were drawn with; it must have no other use.
        """
        return _answer(
            self,
            noise_key(key),
            drawn.blind,
            _checked("sieve_scores", sieve_scores, (self.rounds, self.queries)),
            _checked("full_scores", full_scores, (self.queries,)),
        )

    def run(
        self,
        on_subsample: Callable[[Int32[Array, " subsample"]], Int32[Array, " queries"]],
        on_all: Callable[[int], int],
        *,
        key: AnyKey,
    ) -> Answers:
        """The same answers, from functions that compute scores when they are needed.

        Args:
          on_subsample: record numbers -> the scores of all queries on those records.
          on_all: a query's number -> its score on all records.
          key: a key that has no other use.
        """
        key, start = noise_key(key), 0
        above, examined = np.zeros((2, self.queries), bool)
        for number in range(self.rounds):
            if start == self.queries:
                break
            this_round = jnp.int32(number)
            indices, blind = _round(self, key, this_round, subsample_on_host)
            scores = _checked("the scores on a subsample", on_subsample(indices), (self.queries,))
            stop = int(_sieve(self, key, this_round, blind, scores, jnp.int32(start)))
            if stop < self.queries:
                score = min(max(int(on_all(stop)), -FURTHEST), FURTHEST)
                examined[stop] = True
                above[stop] = bool(_examine(self, key, this_round, jnp.int32(score)))
            start = min(stop + 1, self.queries)
        return Answers(jnp.asarray(above), jnp.asarray(examined), jnp.int32(start))


# --- on the device -------------------------------------------------------------------------


def _round(
    settings: SieveAndExamine, key: Key[Array, ""], number: Int32[Array, ""], draw: Callable
) -> Subsamples:
    """The records of a round; it is blind with probability f, or after a tie that matters."""
    indices, tied = draw(pair_key(key, number, _SUBSAMPLE), settings.n, settings.subsample)
    return Subsamples(indices, tied | _blind(settings, key, number))


@partial(jax.jit, static_argnames="settings")
def _blind(
    settings: SieveAndExamine, key: Key[Array, ""], number: Int32[Array, ""]
) -> Bool[Array, ""]:
    """Whether round `number` is blind by the floor."""
    return _rare(pair_key(key, number, _BLIND), settings.certificate().floor)


@partial(jax.jit, static_argnames="settings")
def _subsamples(settings: SieveAndExamine, key: Key[Array, ""]) -> Subsamples:
    rounds = jnp.arange(settings.rounds, dtype=jnp.int32)
    return jax.lax.map(partial(_round, settings, key, draw=subsample), rounds)


@partial(jax.jit, static_argnames="settings")
def _sieve(
    settings: SieveAndExamine,
    key: Key[Array, ""],
    number: Int32[Array, ""],
    blind: Bool[Array, ""],
    scores: Int32[Array, " queries"],
    start: Int32[Array, ""],
) -> Int32[Array, ""]:
    """The first query from `start` on that passes the sieve; `queries` if none does."""
    level = np.int32(settings.threshold - settings.tweak)
    level = level + settings.threshold_noise.sample(pair_key(key, number, _THRESHOLD))
    noise = settings.query_noise.sample(pair_key(key, number, _QUERIES), scores.shape)
    passes = jnp.clip(scores, *_ENDS) + noise >= level
    passes = passes & (jnp.arange(settings.queries, dtype=jnp.int32) >= start)
    end = np.int32(settings.queries)
    first = jnp.where(passes.any(), jnp.argmax(passes).astype(jnp.int32), end)
    word = jax.random.bits(pair_key(key, number, _COIN), (), jnp.uint32)
    return jnp.where(blind, jnp.maximum(_blind_stop(word, settings.queries), start), first)


@partial(jax.jit, static_argnames="settings")
def _examine(
    settings: SieveAndExamine,
    key: Key[Array, ""],
    number: Int32[Array, ""],
    score: Int32[Array, ""],
) -> Bool[Array, ""]:
    """Whether the noisy score on all records reaches the threshold, or a rare fair coin."""
    key = pair_key(key, number, _EXAMINE)
    noisy = jnp.clip(score, *_ENDS) + settings.examine_noise.sample(pair_key(key, 0, 0))
    coin = jax.random.bits(pair_key(key, 0, 1), (), jnp.uint32) < np.uint32(2**31)
    blind = _rare(pair_key(key, 0, 2), settings.certificate().examine_floor)
    return jnp.where(blind, coin, noisy >= np.int32(settings.threshold))


@partial(jax.jit, static_argnames="settings")
def _answer(
    settings: SieveAndExamine,
    key: Key[Array, ""],
    blind: Bool[Array, " rounds"],
    sieve_scores: Int32[Array, "rounds queries"],
    full_scores: Int32[Array, " queries"],
) -> Answers:
    index = jnp.arange(settings.queries, dtype=jnp.int32)

    def one_round(so_far: Answers, given):
        number, blind, scores = given
        stop = _sieve(settings, key, number, blind, scores, so_far.asked)
        here = index == stop
        # A masked sum in place of full_scores[stop], since `stop` is `queries` if none passes.
        score = jnp.where(here, full_scores, np.int32(0)).sum(dtype=jnp.int32)
        above = so_far.above | (here & _examine(settings, key, number, score))
        after = jnp.minimum(stop + np.int32(1), np.int32(settings.queries))
        return Answers(above, so_far.examined | here, after), None

    none = jnp.zeros(settings.queries, bool)
    numbers = jnp.arange(settings.rounds, dtype=jnp.int32)
    begin = Answers(none, none, jnp.int32(0))
    return jax.lax.scan(one_round, begin, (numbers, blind, sieve_scores))[0]


def _rare(key: Key[Array, ""], probability: Fraction) -> Bool[Array, ""]:
    """True with the given probability, a multiple of 2^-64 below 2^-32."""
    words = jax.random.bits(key, (2,), jnp.uint32)
    return (words[1] == 0) & (words[0] < np.uint32(int(probability * 2**64)))


def _blind_stop(word: UInt32[Array, ""], most: int) -> Int32[Array, ""]:
    """A number in 0 .. most from a random word, with the distribution `noise.bounded.blind_pmf`."""
    # The highest bits of the word; numbers beyond `most` wrap around to the first ones.
    stop = word >> np.uint32(32 - most.bit_length())
    return jnp.where(stop > most, stop - np.uint32(most + 1), stop).astype(jnp.int32)


def _checked(name: str, scores: Int32[Array, "..."], shape: tuple[int, ...]) -> Int32[Array, "..."]:
    if getattr(scores, "dtype", None) != np.int32 or scores.shape != shape:
        raise TypeError(
            f"expected {name} as an int32 array of shape {shape}, got "
            f"{getattr(scores, 'dtype', type(scores).__name__)} of shape {np.shape(scores)}"
        )
    return jnp.asarray(scores)


# --- exact arithmetic ----------------------------------------------------------------------


def _as_written(name: str, epsilon: float | Fraction) -> Fraction:
    """The decimal that a float is written as, so that the noise is for the epsilon charged."""
    exact(name, epsilon)
    return epsilon if isinstance(epsilon, Fraction) else as_fraction(epsilon)


@lru_cache(maxsize=256)
def _certificate(settings: SieveAndExamine) -> SieveCertificate:
    noises = settings.threshold_noise, settings.query_noise, settings.examine_noise
    level, query, examine = (noise.certificate() for noise in noises)
    if max(level.reach, query.reach, examine.reach) >= FURTHEST:
        raise ValueError(
            "the noise reaches beyond 2^29 steps; use coarser scores or a larger epsilon"
        )
    # Rates are capped at 32, and a larger sieve_epsilon has no effect where both are.
    # `sieve_bounds.difference_tail` divides by the difference of the rates.
    if noises[1].rate >= noises[0].rate:
        raise ValueError(
            "sieve_epsilon is too large: noise of a smaller scale than 1/32 does not exist; "
            "use a smaller sieve_epsilon"
        )
    # Terms within the reach of the threshold's noise grow by e^level, and so does the query's edge.
    loss = level.epsilon_realised + query.epsilon_realised
    grown = Fraction(2**SCALE, exponential(level.epsilon_realised).low)
    edge = level.edge_mass + grown * query.edge_mass
    found = SieveCertificate(
        loss,
        examine.epsilon_realised,
        _floor(loss, edge, Fraction(1, 2 ** settings.queries.bit_length())),
        _floor(examine.epsilon_realised, examine.edge_mass, Fraction(1, 2)),
    )
    budget = _as_written("examine_epsilon", settings.examine_epsilon)
    if loss > settings.inner_epsilon or found.examine_realised > budget:
        raise ArithmeticError("the tables do not keep epsilon")
    return found


def _floor(loss: Fraction, edge: Fraction, least: Fraction) -> Fraction:
    """The probability f of a blind answer that covers the edges: edge <= (e^loss - 1) f least.

    A blind answer takes each value with probability `least` or more.
    """
    for bits in _FLOOR_BITS:
        if edge <= growth(loss) * Fraction(1, 2**bits) * least:
            return Fraction(1, 2**bits)
    raise ValueError(
        "epsilon is too small to keep delta = 0; use a larger epsilon, or fewer queries"
    )
