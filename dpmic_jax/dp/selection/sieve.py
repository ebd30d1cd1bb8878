"""Sieve and examine: sparse vector on a subsample, then a noisy look at all the data.

A round draws `subsample` of the n records and a noisy threshold, and goes through the queries
until one passes on the subsample; that one is examined: its score on all records, with noise of
its own, against the threshold. The next round goes on behind it. docs/sieve.md has the algorithm,
the proofs and the bounds on its errors (`sieve_bounds`).

Privacy of a round. With the subsample fixed, let scores move by Delta at most. The place k where
the sieve stops is unlikelier for a neighbour by e^e at most, e the loss of the threshold's noise
under a shift by Delta and of one query's noise under a shift by 2 Delta (Dwork and Roth 2014,
section 3.6), but for noise at the edges of its tables: P(k) <= e^e P'(k) + E. With probability f
a round stops at a place drawn blindly, any of them with probability u or more; E <= (e^e - 1) f u
then makes it e-DP exactly. A uniform subsample of m of n records, one replaced, brings that down
to ln(1 + (m/n)(e^e - 1)). All subsamples are exactly equally likely unless a tie decides on a
record (`subsampling`), and then the round is blind too. The examination is DP by itself, and rounds
add up.
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

FURTHEST = 2**29  # scores beyond count as this, and noise ends before: sums fit int32
_ENDS = np.int32(-FURTHEST), np.int32(FURTHEST)
_FLOOR_BITS = range(40, 32, -1)  # a floor of 2^-40, higher where that is too low
_SUBSAMPLE, _BLIND, _THRESHOLD, _QUERIES, _EXAMINE, _COIN = range(6)  # what a key is for


class Subsamples(NamedTuple):
    """The records of every round, to compute scores on; secret, like the key."""

    indices: Int32[Array, "rounds subsample"]  # record numbers, in increasing order
    blind: Bool[Array, " rounds"]  # whether the round's scores will not be looked at


class Answers(NamedTuple):
    """What may be released; queries from `asked` on were not, since the rounds ran out."""

    above: Bool[Array, " queries"]  # passed the sieve and the examination
    examined: Bool[Array, " queries"]  # passed the sieve
    asked: Int32[Array, ""]  # how many queries were answered


class SieveCertificate(NamedTuple):
    """What exact arithmetic on the thresholds says of a round; there is no delta_numerical."""

    inner_realised: Fraction  # bound on the sieve's loss on its subsample, <= inner_epsilon
    examine_realised: Fraction  # the same for an examination, <= examine_epsilon
    floor: Fraction  # probability that a round stops blindly
    examine_floor: Fraction  # probability that an examination is a fair coin


@dataclass(frozen=True, kw_only=True)
class SieveAndExamine:
    """Which of many scores are above a threshold: rounds (sieve_epsilon + examine_epsilon)-DP.

    Scores are int32 and must not depend on the order of records.

    Attributes:
      sieve_epsilon: of one round's sieve, for the whole data: after subsampling.
      examine_epsilon: of one examination.
      sieve_sensitivity: how far one record moves a score on `subsample` records.
      examine_sensitivity: how far one record moves a score on all n records. For a mean it is
        smaller than the other one, by subsample / n.
      threshold: T, in the units of the scores.
      tweak: t; the sieve lets pass what seems to be above T - t.
      n: number of records, public.
      subsample: m, how many of them a round looks at.
      queries: how many scores there are.
      rounds: how many queries can be examined. The last round is paid for even if it does not
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
        """Of all rounds together, for neighbours that differ in one record (`ReplaceOne(1)`)."""
        each = _asked("sieve_epsilon", self.sieve_epsilon)
        each += _asked("examine_epsilon", self.examine_epsilon)
        return PureDP(ceil_to_float(self.rounds * each))

    @property
    def inner_epsilon(self) -> Fraction:
        """epsilon' of the sieve on its subsample: ln(1 + (n/m)(e^sieve_epsilon - 1)), or below."""
        share = Fraction(self.subsample, self.n)
        return before_subsampling(_asked("sieve_epsilon", self.sieve_epsilon), share)

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """Of scale 2 Delta / epsilon', Delta the sieve's sensitivity."""
        return DiscreteLaplace(epsilon=self.inner_epsilon / 2, sensitivity=self.sieve_sensitivity)

    @property
    def query_noise(self) -> DiscreteLaplace:
        """Of scale 4 Delta / epsilon'."""
        return DiscreteLaplace(
            epsilon=self.inner_epsilon / 2, sensitivity=2 * self.sieve_sensitivity
        )

    @property
    def examine_noise(self) -> DiscreteLaplace:
        """Of scale Delta / examine_epsilon, Delta the sensitivity on all records."""
        budget = _asked("examine_epsilon", self.examine_epsilon)
        return DiscreteLaplace(epsilon=budget, sensitivity=self.examine_sensitivity)

    def certificate(self) -> SieveCertificate:
        """Computed when the settings are made; what does not keep the budget is refused."""
        return _certificate(self)

    def subsamples(self, *, key: AnyKey) -> Subsamples:
        """The records of every round. Works under jit and vmap."""
        return _subsamples(self, noise_key(key))

    def answer(
        self,
        drawn: Subsamples,
        sieve_scores: Int32[Array, "rounds queries"],
        full_scores: Int32[Array, " queries"],
        *,
        key: AnyKey,
    ) -> Answers:
        """Answers from the scores on all `subsamples(key)`, and on all records.

        `key` is the one that they were drawn with, and nothing else. Works under jit and vmap.
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
        """The same answers from functions, which are asked for what is needed only.

        Args:
          on_subsample: record numbers -> the scores of all queries on those records.
          on_all: a query's number -> its score on all records.
          key: for this and nothing else.
        """
        key, start = noise_key(key), 0
        above, examined = np.zeros((2, self.queries), bool)
        for number in range(self.rounds):
            if start == self.queries:
                break
            which = jnp.int32(number)
            indices, blind = _round(self, key, which, subsample_on_host)
            scores = _checked("the scores on a subsample", on_subsample(indices), (self.queries,))
            place = int(_sieve(self, key, which, blind, scores, jnp.int32(start)))
            if place < self.queries:
                score = min(max(int(on_all(place)), -FURTHEST), FURTHEST)
                examined[place] = True
                above[place] = bool(_examine(self, key, which, jnp.int32(score)))
            start = min(place + 1, self.queries)
        return Answers(jnp.asarray(above), jnp.asarray(examined), jnp.int32(start))


# --- on the device -------------------------------------------------------------------------


def _round(
    law: SieveAndExamine, key: Key[Array, ""], number: Int32[Array, ""], draw: Callable
) -> Subsamples:
    """The records of a round; blind by the floor, or by a tie that matters."""
    indices, tied = draw(pair_key(key, number, _SUBSAMPLE), law.n, law.subsample)
    return Subsamples(indices, tied | _blind(law, key, number))


@partial(jax.jit, static_argnames="law")
def _blind(law: SieveAndExamine, key: Key[Array, ""], number: Int32[Array, ""]) -> Bool[Array, ""]:
    return _rare(pair_key(key, number, _BLIND), law.certificate().floor)


@partial(jax.jit, static_argnames="law")
def _subsamples(law: SieveAndExamine, key: Key[Array, ""]) -> Subsamples:
    rounds = jnp.arange(law.rounds, dtype=jnp.int32)
    return jax.lax.map(partial(_round, law, key, draw=subsample), rounds)


@partial(jax.jit, static_argnames="law")
def _sieve(
    law: SieveAndExamine,
    key: Key[Array, ""],
    number: Int32[Array, ""],
    blind: Bool[Array, ""],
    scores: Int32[Array, " queries"],
    start: Int32[Array, ""],
) -> Int32[Array, ""]:
    """The first query from `start` on that passes; `queries` if none does."""
    level = np.int32(law.threshold - law.tweak)
    level = level + law.threshold_noise.sample(pair_key(key, number, _THRESHOLD))
    noise = law.query_noise.sample(pair_key(key, number, _QUERIES), scores.shape)
    passes = jnp.clip(scores, *_ENDS) + noise >= level
    passes = passes & (jnp.arange(law.queries, dtype=jnp.int32) >= start)
    end = np.int32(law.queries)
    seen = jnp.where(passes.any(), jnp.argmax(passes).astype(jnp.int32), end)
    word = jax.random.bits(pair_key(key, number, _COIN), (), jnp.uint32)
    return jnp.where(blind, jnp.maximum(_blind_place(word, law.queries), start), seen)


@partial(jax.jit, static_argnames="law")
def _examine(
    law: SieveAndExamine, key: Key[Array, ""], number: Int32[Array, ""], score: Int32[Array, ""]
) -> Bool[Array, ""]:
    key = pair_key(key, number, _EXAMINE)
    noisy = jnp.clip(score, *_ENDS) + law.examine_noise.sample(pair_key(key, 0, 0))
    coin = jax.random.bits(pair_key(key, 0, 1), (), jnp.uint32) < np.uint32(2**31)
    blind = _rare(pair_key(key, 0, 2), law.certificate().examine_floor)
    return jnp.where(blind, coin, noisy >= np.int32(law.threshold))


@partial(jax.jit, static_argnames="law")
def _answer(
    law: SieveAndExamine,
    key: Key[Array, ""],
    blind: Bool[Array, " rounds"],
    sieve_scores: Int32[Array, "rounds queries"],
    full_scores: Int32[Array, " queries"],
) -> Answers:
    places = jnp.arange(law.queries, dtype=jnp.int32)

    def one_round(so_far: Answers, given):
        number, blind, scores = given
        place = _sieve(law, key, number, blind, scores, so_far.asked)
        here = places == place
        score = jnp.where(here, full_scores, np.int32(0)).sum(dtype=jnp.int32)
        above = so_far.above | (here & _examine(law, key, number, score))
        after = jnp.minimum(place + np.int32(1), np.int32(law.queries))
        return Answers(above, so_far.examined | here, after), None

    none = jnp.zeros(law.queries, bool)
    numbers = jnp.arange(law.rounds, dtype=jnp.int32)
    begin = Answers(none, none, jnp.int32(0))
    return jax.lax.scan(one_round, begin, (numbers, blind, sieve_scores))[0]


def _rare(key: Key[Array, ""], chance: Fraction) -> Bool[Array, ""]:
    """True with a probability that is a multiple of 2^-64 below 2^-32."""
    words = jax.random.bits(key, (2,), jnp.uint32)
    return (words[1] == 0) & (words[0] < np.uint32(int(chance * 2**64)))


def _blind_place(word: UInt32[Array, ""], most: int) -> Int32[Array, ""]:
    """A place in 0 .. most, by the law of `clipped.blind_pmf`."""
    place = word >> np.uint32(32 - most.bit_length())
    return jnp.where(place > most, place - np.uint32(most + 1), place).astype(jnp.int32)


def _checked(name: str, scores: Int32[Array, "..."], shape: tuple[int, ...]) -> Int32[Array, "..."]:
    if getattr(scores, "dtype", None) != np.int32 or scores.shape != shape:
        raise TypeError(
            f"expected {name} as an int32 array of shape {shape}, got "
            f"{getattr(scores, 'dtype', type(scores).__name__)} of shape {np.shape(scores)}"
        )
    return jnp.asarray(scores)


# --- exact arithmetic ----------------------------------------------------------------------


def _asked(name: str, epsilon: float | Fraction) -> Fraction:
    """An epsilon as it was written, so that what is kept is what is charged."""
    exact(name, epsilon)
    return epsilon if isinstance(epsilon, Fraction) else as_fraction(epsilon)


@lru_cache(maxsize=256)
def _certificate(law: SieveAndExamine) -> SieveCertificate:
    noises = law.threshold_noise, law.query_noise, law.examine_noise
    level, query, examine = (noise.certificate() for noise in noises)
    if max(level.reach, query.reach, examine.reach) >= FURTHEST:
        raise ValueError(
            "the noise reaches beyond 2^29 steps; use coarser scores or a larger epsilon"
        )
    if noises[1].rate >= noises[0].rate:
        raise ValueError("sieve_epsilon buys no less noise than a scale of 1/32; use a smaller one")
    loss = level.epsilon_realised + query.epsilon_realised
    grown = Fraction(2**SCALE, exponential(level.epsilon_realised).low)
    edge = level.edge_mass + grown * query.edge_mass
    found = SieveCertificate(
        loss,
        examine.epsilon_realised,
        _floor(loss, edge, Fraction(1, 2 ** law.queries.bit_length())),
        _floor(examine.epsilon_realised, examine.edge_mass, Fraction(1, 2)),
    )
    budget = _asked("examine_epsilon", law.examine_epsilon)
    if loss > law.inner_epsilon or found.examine_realised > budget:
        raise ArithmeticError("the tables do not keep epsilon")
    return found


def _floor(loss: Fraction, edge: Fraction, least: Fraction) -> Fraction:
    """How often to answer blindly, any answer with probability `least`, to cover the edges."""
    for bits in _FLOOR_BITS:
        if edge <= growth(loss) * Fraction(1, 2**bits) * least:
            return Fraction(1, 2**bits)
    raise ValueError(
        "epsilon is too small to keep delta = 0; use a larger epsilon, or fewer queries"
    )
