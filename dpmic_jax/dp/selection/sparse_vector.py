"""The sparse vector technique: the first `at_most` candidates whose scores pass a threshold.

This is Algorithm 5 of the paper's supplement, for scores of sensitivity S. T + Z, Z ~ Lap(sigma S),
is a noisy threshold. A round finds the first candidate whose noisy score, with noise of
Lap(2 sigma S), is not below it. The next round draws a new threshold and starts at the next
candidate, until `at_most` are found. sigma = 2 at_most / epsilon for delta = 0, and
sqrt(32 at_most ln(1 / delta)) / epsilon otherwise. The candidates found are released, in order, and
no noisy score is.

Proof. A round is e-DP with e = 2 / sigma. Let Z = z and candidate i be the first to pass:

    P(i) = sum over z of P(z) g(z) h(z),  g(z) = prod_{j<i} P(Y_j < T + z),  h(z) = P(Y_i >= T + z).

On the neighbour compare with z + S. g(z) <= g'(z + S), since no score rises by more than S. By the
lemma of `tail_atom` (2 S rate = e/2) h(z) <= e^(e/2) h'(z + S), and P(z) <= e^(e/2) P(z + S) within
reach. What is left are the last S values of z, of probability E, which noise from finitely many
words cannot avoid. But with probability gamma_T = 2^-24 the threshold is closed: it is the
sentinel, which no ordinary noisy score reaches. That adds gamma_T (1 - gamma)^(i-1) gamma to P(i),
the same on all data, and the last values of z add at most E (1 - gamma)^(i-1). So
E <= (e^e - 1) gamma_T gamma suffices. The case that no candidate passes is the same without h.
Rounds compose, as no two rounds use the noise of the same candidate.

For delta > 0 the sum of at_most losses exceeds epsilon / 2 + at_most e tanh(e / 2), with
e = epsilon / sqrt(8 at_most ln(1 / delta)), with probability at most delta (Dwork, Rothblum and
Vadhan 2010; Kairouz, Oh and Viswanath 2015, Theorem 3.4). That is little more than epsilon / 2, so
the printed sigma is larger than necessary. Up to at_most = 8 ln(1 / delta), which is 110 for
delta = 1e-6, it is larger than the sigma of delta = 0.
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
from jaxtyping import Array, Int32, Key, UInt32

from dpmic_jax.dp.accounting.events import ApproximateDP, PureDP, pure_to_zcdp
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_probability
from dpmic_jax.dp.arithmetic.intervals import exact, growth, integer
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.bounded import as_int32
from dpmic_jax.dp.noise.distributions import DiscreteLaplace, laplace_certificate, signed_magnitude
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection import tail_atom
from dpmic_jax.dp.selection.exact_pmf import sparse_vector_pmf
from dpmic_jax.dp.selection.threshold_search import ThresholdSearch
from dpmic_jax.dp.selection.validation import check_scores, pure_guarantee

# The most of epsilon that one round uses, half of it for the threshold and half for a candidate.
# The noise ends after 60 nats, and a shift by more than 40 would leave too little of that reach.
_MOST_NATS = 80
_CLOSED = Fraction(1, 2**24)  # gamma_T, the probability of a closed threshold


class SparseVectorCertificate(NamedTuple):
    """What exact arithmetic on the integer tables proves of a sparse vector.

    Attributes:
      epsilon_realised: bound on the privacy loss of all rounds, up to delta; at most the
        requested epsilon.
      delta_numerical: 0, since the proof leaves nothing out.
      round_epsilon: bound on the privacy loss of one round, with delta = 0.
      query_edge: probability of the last values of a candidate's noise.
      query_allowed: the largest allowed value of `query_edge`.
      threshold_edge: probability of the last values of the threshold's noise, E in the proof.
      threshold_allowed: the largest allowed value of `threshold_edge`.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    round_epsilon: Fraction
    query_edge: Fraction
    query_allowed: Fraction
    threshold_edge: Fraction
    threshold_allowed: Fraction


@dataclass(frozen=True, kw_only=True)
class SparseVector(ThresholdSearch):
    """Find the first candidates whose noisy scores pass a noisy threshold, in order.

    The quota `at_most` is c in Algorithm 5.

    Attributes:
      delta: 0 for pure differential privacy.
    """

    delta: float = 0.0

    @property
    def round_epsilon(self) -> Fraction:
        """2 / sigma, the epsilon of one round; rounded down where it is irrational."""
        epsilon = exact("epsilon", self.epsilon)
        rounds = integer("at_most", self.at_most, 1, 2**20)
        if not check_probability("delta", self.delta):
            return epsilon / rounds
        return _advanced(epsilon, self.delta, rounds)

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The distribution of Z, the noise of a threshold."""
        half = min(self.round_epsilon, Fraction(_MOST_NATS)) / 2
        return DiscreteLaplace(epsilon=half, sensitivity=self.sensitivity)

    @property
    def query_noise(self) -> DiscreteLaplace:
        """The distribution of a candidate's noise, with twice the scale of the threshold's."""
        half = min(self.round_epsilon, Fraction(_MOST_NATS)) / 2
        return DiscreteLaplace(epsilon=half, sensitivity=2 * self.sensitivity)

    @property
    def guarantee(self) -> PureDP | ApproximateDP:
        """The guarantee of everything that is released, as the ledger records it."""
        stated = pure_guarantee(self.epsilon)
        return ApproximateDP(stated.epsilon, self.delta) if self.delta else stated

    @property
    def round_guarantee(self) -> PureDP:
        """The guarantee of one round.

        An event that counts `at_most` rounds is composed more tightly than `guarantee` states.
        """
        return PureDP(ceil_to_float(self.certificate().round_epsilon))

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private by themselves: release only the result of `choose`."""
        return _noisy(
            noise_key(key),
            as_int32(points),
            geometric.digits(self.query_noise.rate),
            np.int32(self.top),
        )

    def choose_padded(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int32[Array, " at_most"]:
        """As `choose`, padded with -1 to length `at_most`. Works under jit and vmap."""
        return _found(
            noise_key(key),
            check_scores(noisy),
            geometric.digits(self.threshold_noise.rate),
            np.int32(self.threshold),
            self.at_most,
        )

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The exact probability of each outcome; feasible for few candidates and small noise."""
        points = [min(max(score, 0), self.top) for score in scores]
        return sparse_vector_pmf(_limits(self, points), self.at_most)

    def certificate(self) -> SparseVectorCertificate:
        """The exact privacy loss, checked when the settings are made: it is at most epsilon."""
        for end, noise in ((self.top, self.query_noise), (self.threshold, self.threshold_noise)):
            # Laplace noise has one more value on each side than the geometric digits: reach + 1.
            tail_atom.check_below(end + geometric.ideal(noise.rate).reach + 1)
        each = _certificate(self.query_noise, self.threshold_noise)
        return each._replace(epsilon_realised=self._composed(each.round_epsilon))

    def _composed(self, each: Fraction) -> Fraction:
        """The privacy loss of all rounds, if one has at most `each`."""
        epsilon, realised = exact("epsilon", self.epsilon), self.at_most * each
        if self.delta:
            # Advanced composition. By the choice of sigma its deviation term is epsilon / 2, and
            # the mean loss of a round is e tanh(e / 2), which is also its rho.
            mean = self.at_most * as_fraction(pure_to_zcdp(ceil_to_float(each)))
            realised = min(realised, epsilon / 2 + mean)
        if realised > epsilon:
            raise ValueError(
                f"epsilon={float(epsilon):.3g} with delta={self.delta:.3g} is beyond the range "
                "of the formula for delta > 0, epsilon <= 8 ln(1 / delta): use delta=0"
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
    """Noisy scores from random words: those of the digits, the sign, and the sentinel."""
    noisy = jnp.clip(points, np.int32(0), top) + _signed(words, tables)
    is_sentinel = tail_atom.drawn(words[tables.words + 1 :])
    return jnp.where(is_sentinel, np.int32(tail_atom.SENTINEL), noisy)


def thresholds(
    words: UInt32[Array, "words rounds"], tables: geometric.Digits, threshold: Int32[Array, ""]
) -> Int32[Array, " rounds"]:
    """Noisy thresholds from random words: those of the digits, the sign, and whether it closes."""
    closed = words[tables.words + 1] < np.uint32(_CLOSED * 2**32)
    noisy = threshold + _signed(words, tables)
    return jnp.where(closed, np.int32(tail_atom.SENTINEL), noisy)


def first_passes(
    noisy: Int32[Array, " candidates"], limits: Int32[Array, " rounds"]
) -> Int32[Array, " rounds"]:
    """The first candidate to pass the first limit, the first after it to pass the second, ...

    -1 for each round in which no candidate passes.
    """
    index = jax.lax.iota(jnp.int32, len(noisy))

    def one_round(last: Int32[Array, ""], limit: Int32[Array, ""]):
        passes = (noisy >= limit) & (index > last)
        # If none passes, the next round starts behind the last candidate and finds none either.
        here = jnp.where(passes.any(), jnp.argmax(passes).astype(jnp.int32), np.int32(len(noisy)))
        return here, jnp.where(passes.any(), here, np.int32(-1))

    return jax.lax.scan(one_round, jnp.asarray(-1, jnp.int32), limits)[1]


def _signed(
    words: UInt32[Array, "words *shape"], tables: geometric.Digits
) -> Int32[Array, "*shape"]:
    """Discrete Laplace noise from random words."""
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
    # 40 digits are fewer than the 50 of the context: the margin covers its rounding.
    return epsilon / root * (1 - Fraction(1, 10**40))


@lru_cache(maxsize=256)
def _certificate(query: DiscreteLaplace, threshold: DiscreteLaplace) -> SparseVectorCertificate:
    """The certificate of one round."""
    loss, _, edges = laplace_certificate(query.rate, query.sensitivity)
    loss_z, _, edges_z = laplace_certificate(threshold.rate, threshold.sensitivity)
    found = SparseVectorCertificate(
        epsilon_realised=loss + loss_z,
        delta_numerical=Fraction(0),
        round_epsilon=loss + loss_z,
        # Of the two symmetric ends of the noise only the upper one matters in the proof.
        query_edge=edges / 2,
        query_allowed=growth(loss) * tail_atom.PROBABILITY,
        threshold_edge=edges_z / 2,
        threshold_allowed=growth(loss + loss_z) * _CLOSED * tail_atom.PROBABILITY,
    )
    if found.query_edge > found.query_allowed or found.threshold_edge > found.threshold_allowed:
        raise ArithmeticError("the tables do not keep epsilon")
    return found


def _limits(settings: SparseVector, points: Sequence[int]) -> list[tuple[Fraction, list[Fraction]]]:
    """The probability of each noisy threshold, and that of each candidate to reach it."""
    query, noise = _tails(settings.query_noise), _tails(settings.threshold_noise)
    reach, far = len(noise) // 2, len(query) // 2

    def passes(point: int, limit: int) -> Fraction:
        return tail_atom.with_atom(query[min(max(limit - point + far, 0), 2 * far)])

    ordinary = [
        (
            (1 - _CLOSED) * (noise[z + reach] - noise[z + reach + 1]),
            [passes(point, settings.threshold + z) for point in points],
        )
        for z in range(-reach, reach)
    ]
    return [*ordinary, (_CLOSED, [tail_atom.PROBABILITY for _ in points])]


@lru_cache(maxsize=64)
def _tails(noise: DiscreteLaplace) -> list[Fraction]:
    """P(X >= x) from x = -reach - 2, where it is 1, to reach + 2, where it is 0."""
    far = geometric.ideal(noise.rate).reach + 2
    return [noise.tail(x) for x in range(-far, far + 1)]
