"""Which scores pass a threshold, one after the other, at most so many: the sparse vector technique.

Algorithm 5 of the supplement, for scores that one person moves by S. T + Z, Z ~ Lap(sigma S), is a
noisy threshold; the first candidate whose noisy score, noise ~ Lap(2 sigma S), is not below it is
found, then a new threshold is drawn for those that come after, until `at_most` are found.
sigma = 2 at_most / epsilon for delta = 0, and sqrt(32 at_most ln(1 / delta)) / epsilon otherwise.
Whoever is found is told, in order; no noisy score is.

Proof. A round is e-DP with e = 2 / sigma. Let Z = z and candidate i be the first to pass:

    P(i) = sum over z of P(z) g(z) h(z),  g(z) = prod_{j<i} P(Y_j < T + z),  h(z) = P(Y_i >= T + z).

On the neighbour look at z + S. g(z) <= g'(z + S), since no score rises by more than S. By the lemma
of `jackpots` (2 S rate = e/2) h(z) <= e^(e/2) h'(z + S), and P(z) <= e^(e/2) P(z + S) within reach.
What is left are the last S values of z, of probability E. Finite words cannot do without them; but
with probability gamma_T = 2^-24 the threshold is the jackpots' place itself, which they alone
reach. That adds gamma_T (1 - gamma)^(i-1) gamma to P(i), on all data the same, and the last values
of z add E (1 - gamma)^(i-1) at most. So E <= (e^e - 1) gamma_T gamma is all that is needed. That
nobody passes is the same without h. Rounds compose: the noise of the candidates of one round is
not seen in another.

For delta > 0 the sum of at_most losses is above epsilon / 2 + at_most e tanh(e / 2), e =
epsilon / sqrt(8 at_most ln(1 / delta)), with probability delta at most (Dwork, Rothblum and Vadhan
2010; Kairouz, Oh and Viswanath 2015, Theorem 3.4), which is little more than epsilon / 2: the
printed sigma is larger than need be, and up to at_most = 8 ln(1 / delta), 110 for delta = 1e-6, it
is larger than that of delta = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, Key, UInt32

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP, pure_to_zcdp
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_probability
from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.bounded import LARGEST, as_int32
from dpmic_jax.dp.noise.distributions import DiscreteLaplace, laplace_certificate, signed_magnitude
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection import tail_atom
from dpmic_jax.dp.selection.exact_pmf import passing
from dpmic_jax.dp.selection.validation import one_score_each, pure

_MOST_NATS = 80  # a round is worth: more would leave too little of the reach
_CLOSED = Fraction(1, 2**24)  # the probability of a threshold that only jackpots reach


class SparseVectorCertificate(NamedTuple):
    """What exact arithmetic says of a sparse vector.

    Attributes:
      epsilon_realised: bound on the loss of all rounds, up to delta; at most the epsilon asked for.
      delta_numerical: 0, nothing is left out.
      round_epsilon: bound on the loss of one round, without any delta.
      query_edge: probability of the last values of a candidate's noise, and
      query_allowed: the most that it could be.
      threshold_edge: E above, and
      threshold_allowed: the most that it could be.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    round_epsilon: Fraction
    query_edge: Fraction
    query_allowed: Fraction
    threshold_edge: Fraction
    threshold_allowed: Fraction


@dataclass(frozen=True, kw_only=True)
class SparseVector:
    """Find candidates whose scores are about a threshold or above, in their order.

    Attributes:
      epsilon: of all that is told.
      delta: 0 for pure differential privacy.
      sensitivity: how far one person's records can move any one score, in either direction.
      threshold: T, in 0 .. top.
      at_most: how many to find before it ends, c in Algorithm 5.
      top: scores are in 0 .. top; others are brought to the ends.
    """

    epsilon: float | Fraction
    delta: float = 0.0
    sensitivity: int
    threshold: int
    at_most: int
    top: int

    def __post_init__(self):
        integer("top", self.top, 1, LARGEST)
        integer("threshold", self.threshold, 0, self.top)
        integer("sensitivity", self.sensitivity, 1, LARGEST // 2)
        self.certificate()

    @property
    def round_epsilon(self) -> Fraction:
        """2 / sigma, what one round may cost; rounded down where it is irrational."""
        epsilon = exact("epsilon", self.epsilon)
        rounds = integer("at_most", self.at_most, 1, 2**20)
        if not check_probability("delta", self.delta):
            return epsilon / rounds
        return _advanced(epsilon, self.delta, rounds)

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The law of Z."""
        half = min(self.round_epsilon, Fraction(_MOST_NATS)) / 2
        return DiscreteLaplace(epsilon=half, sensitivity=self.sensitivity)

    @property
    def query_noise(self) -> DiscreteLaplace:
        """The law of a candidate's noise, of twice the scale."""
        half = min(self.round_epsilon, Fraction(_MOST_NATS)) / 2
        return DiscreteLaplace(epsilon=half, sensitivity=2 * self.sensitivity)

    @property
    def guarantee(self) -> PureDP | ApproximateDP:
        """Of all that is told, for the ledger."""
        stated = pure(self.epsilon)
        return ApproximateDP(stated.epsilon, self.delta) if self.delta else stated

    @property
    def round_guarantee(self) -> PureDP:
        """Of one round: an event of `at_most` of them composes better than any formula."""
        return PureDP(ceil_to_float(self.certificate().round_epsilon))

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private: only what `choose` makes of all of them is."""
        return _noisy(
            noise_key(key),
            as_int32(points),
            geometric.digits(self.query_noise.rate),
            np.int32(self.top),
        )

    release = noisy

    def choose(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int[np.ndarray, " found"]:
        """The indices of those found, in order; as many as there are, so not under jit.

        Args:
          noisy: from `noisy`, of all candidates, each with a key of its own.
          key: for the thresholds; another one than those of the noise.
        """
        found = np.asarray(self.choose_padded(noisy, key=key))
        return found[found >= 0]

    def choose_padded(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int32[Array, " at_most"]:
        """The same with -1 for those not found, at the end. Works under jit and vmap."""
        return _found(
            noise_key(key),
            one_score_each(noisy),
            geometric.digits(self.threshold_noise.rate),
            np.int32(self.threshold),
            self.at_most,
        )

    def select(
        self, scores: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int[np.ndarray, " found"]:
        """Both steps, for who has all scores at hand."""
        for_noise, for_thresholds = jax.random.split(noise_key(key))
        noisy = self.noisy(one_score_each(scores), key=for_noise)
        return self.choose(noisy, key=for_thresholds)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of each outcome, exactly; for a few candidates and a short reach."""
        points = [min(max(score, 0), self.top) for score in scores]
        return passing(_limits(self, points), self.at_most)

    def certificate(self) -> SparseVectorCertificate:
        """Computed when the settings are made, and refused unless epsilon_realised <= epsilon."""
        for end, noise in ((self.top, self.query_noise), (self.threshold, self.threshold_noise)):
            tail_atom.below(end + geometric.ideal(noise.rate).reach + 1)
        each = _certificate(self.query_noise, self.threshold_noise)
        return each._replace(epsilon_realised=self._composed(each.round_epsilon))

    def _composed(self, each: Fraction) -> Fraction:
        epsilon, realised = exact("epsilon", self.epsilon), self.at_most * each
        if self.delta:
            # By the choice of sigma the second term of the theorem is half of epsilon.
            mean = self.at_most * as_fraction(pure_to_zcdp(ceil_to_float(each)))
            realised = min(realised, epsilon / 2 + mean)
        if realised > epsilon:
            raise ValueError(
                f"epsilon={float(epsilon):.3g} with delta={self.delta:.3g} is beyond what the "
                "formula for delta > 0 covers, epsilon <= 8 ln(1 / delta): use delta=0"
            )
        return realised


# --- on the device -------------------------------------------------------------------------


@jax.jit
def _noisy(
    key: Key[Array, ""],
    points: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: Int32[Array, ""],
) -> Int32[Array, "*shape"]:
    words = jax.random.bits(key, (tables.words + 1 + tail_atom.WORDS, *points.shape), jnp.uint32)
    return noisy_scores(words, points, tables, top)


def noisy_scores(
    words: UInt32[Array, "words *shape"],
    points: Int32[Array, "*shape"],
    tables: geometric.Digits,
    top: Int32[Array, ""],
) -> Int32[Array, "*shape"]:
    """The noisy scores that the words stand for: digits, sign, jackpot."""
    noisy = jnp.clip(points, np.int32(0), top) + _signed(words, tables)
    return jnp.where(tail_atom.drawn(words[tables.words + 1 :]), np.int32(tail_atom.PLACE), noisy)


def thresholds(
    words: UInt32[Array, "words rounds"], tables: geometric.Digits, threshold: Int32[Array, ""]
) -> Int32[Array, " rounds"]:
    """The noisy thresholds that the words stand for: digits, sign, whether it is closed."""
    closed = words[tables.words + 1] < np.uint32(_CLOSED * 2**32)
    noisy = threshold + _signed(words, tables)
    return jnp.where(closed, np.int32(tail_atom.PLACE), noisy)


def first_passes(
    noisy: Int32[Array, " candidates"], limits: Int32[Array, " rounds"]
) -> Int32[Array, " rounds"]:
    """The first that passes the first limit, the first after it that passes the second, ..."""
    index = jax.lax.iota(jnp.int32, len(noisy))

    def one(last: Int32[Array, ""], limit: Int32[Array, ""]):
        passes = (noisy >= limit) & (index > last)
        here = jnp.where(passes.any(), jnp.argmax(passes).astype(jnp.int32), np.int32(len(noisy)))
        return here, jnp.where(passes.any(), here, np.int32(-1))

    return jax.lax.scan(one, jnp.asarray(-1, jnp.int32), limits)[1]


def _signed(
    words: UInt32[Array, "words *shape"], tables: geometric.Digits
) -> Int32[Array, "*shape"]:
    negative, size = signed_magnitude(words, tables)
    size = size.astype(jnp.int32)
    return jnp.where(negative, -size, size)


@partial(jax.jit, static_argnames="rounds")
def _found(
    key: Key[Array, ""],
    noisy: Int32[Array, " candidates"],
    tables: geometric.Digits,
    threshold: Int32[Array, ""],
    rounds: int,
) -> Int32[Array, " rounds"]:
    words = jax.random.bits(key, (tables.words + 2, rounds), jnp.uint32)
    return first_passes(noisy, thresholds(words, tables, threshold))


# --- exact arithmetic ----------------------------------------------------------------------


@lru_cache(maxsize=256)
def _advanced(epsilon: Fraction, delta: float, rounds: int) -> Fraction:
    """epsilon / sqrt(8 rounds ln(1 / delta)), rounded down."""
    context = Context(prec=50)
    logarithm = -context.ln(Decimal(repr(float(delta))))
    root = Fraction(context.sqrt(context.multiply(8 * rounds, logarithm)))
    return epsilon / root * (1 - Fraction(1, 10**40))


@lru_cache(maxsize=256)
def _certificate(query: DiscreteLaplace, threshold: DiscreteLaplace) -> SparseVectorCertificate:
    loss, _, edges = laplace_certificate(query.rate, query.sensitivity)
    loss_z, _, edges_z = laplace_certificate(threshold.rate, threshold.sensitivity)
    found = SparseVectorCertificate(
        epsilon_realised=loss + loss_z,
        delta_numerical=Fraction(0),
        round_epsilon=loss + loss_z,
        # Of the two ends only the upper one counts.
        query_edge=edges / 2,
        query_allowed=growth(loss) * tail_atom.CHANCE,
        threshold_edge=edges_z / 2,
        threshold_allowed=growth(loss + loss_z) * _CLOSED * tail_atom.CHANCE,
    )
    if found.query_edge > found.query_allowed or found.threshold_edge > found.threshold_allowed:
        raise ArithmeticError("the tables do not keep epsilon")
    return found


def _limits(settings: SparseVector, points: Sequence[int]) -> list[tuple[Fraction, list[Fraction]]]:
    """The probability of each noisy threshold, and that each candidate is there or above."""
    query, noise = _tails(settings.query_noise), _tails(settings.threshold_noise)
    reach, far = len(noise) // 2, len(query) // 2

    def passes(point: int, limit: int) -> Fraction:
        return tail_atom.share(query[min(max(limit - point + far, 0), 2 * far)])

    ordinary = [
        (
            (1 - _CLOSED) * (noise[z + reach] - noise[z + reach + 1]),
            [passes(point, settings.threshold + z) for point in points],
        )
        for z in range(-reach, reach)
    ]
    return [*ordinary, (_CLOSED, [tail_atom.CHANCE for _ in points])]


@lru_cache(maxsize=64)
def _tails(noise: DiscreteLaplace) -> list[Fraction]:
    """P(X >= x) from x = -reach - 2, where it is 1, to reach + 2, where it is 0."""
    far = geometric.ideal(noise.rate).reach + 2
    return [noise.tail(x) for x in range(-far, far + 1)]
