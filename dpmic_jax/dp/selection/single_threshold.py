"""The sparse vector technique with one threshold for the whole run, and one-sided noise.

A candidate of score s_i passes if s_i + G_i >= T + Z. Z is drawn once, G_i for each candidate, and
the first `at_most` = c candidates that pass are released, in order. Both are geometric,
P(Z >= z) ~ e^(-z b / S) and P(G >= g) ~ e^(-g a / 2S), for scores of sensitivity S. The loss is
b + c a, and b : c a = 1 : (2c)^(2/3) makes the variance of G - Z least (Lyu, Su and Li 2017).
Exponential noise has half the variance of Laplace noise of the same rate (Liu et al. 2024).

Proof. Let the candidates in H pass (at most c), those in M not, and the run end there. Then

    P(H) = sum over z of P(z) g(z) h(z),
    g(z) = prod_{j in M} P(Y_j < T + z),  h(z) = prod_{i in H} P(Y_i >= T + z).

On the neighbour compare with z + S. P(z) <= e^b P(z + S) for every z >= 0: noise that only raises
the threshold needs no other direction, and `threshold_noise` has no end. g(z) <= g'(z + S), since
no score rises by more than S. h(z) <= e^(c a) h'(z + S) by the lemma of `tail_atom`, which holds
for every integer y if sentinels pass every threshold. So P(H) <= e^(b + c a) P'(H).

The scores are not monotone: replacing a person raises some and lowers others, so the probability to
pass is compared over 2 S. The closed threshold of `SparseVector` would not do here: it makes c
candidates pass with a probability of gamma^c only, far below that of the end of any finite noise.
Thresholds above every ordinary noisy score all act alike. So Z is drawn up to there, and scores are
clipped where Z does not follow, 60 nats above T, which keeps that distance short.

G has a larger mean than Z. T is raised by the difference, a public number: a candidate at the
threshold is compared with noise of mean zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key, UInt32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.intervals import exact, integer
from dpmic_jax.dp.noise import geometric
from dpmic_jax.dp.noise.bounded import as_int32
from dpmic_jax.dp.noise.distributions import SLACK
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection import tail_atom
from dpmic_jax.dp.selection.exact_pmf import single_threshold_pmf
from dpmic_jax.dp.selection.threshold_noise import EndlessGeometric, Tables, draw, tails
from dpmic_jax.dp.selection.threshold_search import ThresholdSearch
from dpmic_jax.dp.selection.top_k import OneShotTopK
from dpmic_jax.dp.selection.validation import check_scores, pure_guarantee

_SPLIT_BITS = 20  # of (2c)^(2/3) after the binary point; any split is private


class SingleThresholdCertificate(NamedTuple):
    """What exact arithmetic on the integer tables proves of a sparse vector with one threshold.

    Attributes:
      epsilon_realised: bound on the privacy loss, at most the requested epsilon.
      delta_numerical: 0, since the proof leaves nothing out.
      threshold_epsilon: the part of the threshold, b in the proof.
      query_epsilon: the part of each candidate that passes, a in the proof.
      query_edge: probability of the last values of a candidate's noise.
      query_allowed: the largest allowed value of `query_edge`.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    threshold_epsilon: Fraction
    query_epsilon: Fraction
    query_edge: Fraction
    query_allowed: Fraction


@dataclass(frozen=True, kw_only=True)
class SingleThresholdSparseVector(ThresholdSearch):
    """Find the first candidates whose noisy scores pass one noisy threshold, in order: epsilon-DP.

    The quota `at_most` is c in the proof.
    """

    @property
    def threshold_share(self) -> Fraction:
        """The part of epsilon that the threshold's noise has: 1 / (1 + (2 at_most)^(2/3))."""
        quota = integer("at_most", self.at_most, 1, 2**20)
        weight = Fraction(_cube_root(4 * quota**2 << 3 * _SPLIT_BITS), 2**_SPLIT_BITS)
        return 1 / (1 + weight)

    @property
    def queries(self) -> OneShotTopK:
        """Noise and sentinels of candidates are those of a one-shot top-k of `at_most` winners."""
        return OneShotTopK(
            epsilon=exact("epsilon", self.epsilon) * (1 - self.threshold_share),
            sensitivity=self.sensitivity,
            k=self.at_most,
            top=self.top,
        )

    @property
    def threshold_noise(self) -> EndlessGeometric:
        """The distribution of Z, as far as it matters."""
        rate = self._threshold_rate
        return EndlessGeometric(rate=rate, most=self._highest + self._reach - self._raised)

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of everything that is released, as the ledger records it."""
        return pure_guarantee(self.epsilon)

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private by themselves: release only the result of `choose`."""
        return self.queries.noisy(jnp.minimum(as_int32(points), np.int32(self._highest)), key=key)

    def choose_padded(
        self, noisy: Int32[Array, " candidates"], *, key: AnyKey
    ) -> Int32[Array, " at_most"]:
        """As `choose`, padded with -1 to length `at_most`. Works under jit and vmap."""
        noise = self.threshold_noise
        return _found(
            noise_key(key),
            check_scores(noisy),
            noise.tables,
            np.uint32(noise.most),
            np.int32(self._raised),
            self.at_most,
        )

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The exact probability of each outcome; feasible for few candidates and small noise."""
        points = [min(max(score, 0), self._highest) for score in scores]
        reached = [tail_atom.with_atom(a) for a in tails(self.queries.rate)]
        last, raised = len(reached) - 1, self._raised
        limits = [
            (p, [reached[min(max(raised + z - s, 0), last)] for s in points])
            for z, p in enumerate(self.threshold_noise.pmf())
        ]
        return single_threshold_pmf(limits, self.at_most)

    def certificate(self) -> SingleThresholdCertificate:
        """The exact privacy loss, checked when the settings are made: it is at most epsilon."""
        # That of the queries checks that all ordinary noisy scores are below the sentinel, and with
        # them all thresholds that they can pass.
        queries, noise = self.queries.certificate(), self.threshold_noise
        threshold = self.sensitivity * noise.rate + noise.rounding
        found = SingleThresholdCertificate(
            epsilon_realised=threshold + queries.epsilon_realised,
            delta_numerical=Fraction(0),
            threshold_epsilon=threshold,
            query_epsilon=queries.epsilon_realised / self.at_most,
            query_edge=queries.edge_mass,
            query_allowed=queries.edge_allowed,
        )
        if found.epsilon_realised > self.epsilon:
            raise ArithmeticError("the tables do not keep epsilon")
        return found

    @property
    def _threshold_rate(self) -> Fraction:
        budget = exact("epsilon", self.epsilon) * self.threshold_share
        rate = min((budget - SLACK) / self.sensitivity, geometric.RATES[1])
        if budget < 2**10 * SLACK or rate < geometric.RATES[0]:
            raise ValueError(
                f"epsilon = {float(self.epsilon):.3g} for {self.at_most} candidates of sensitivity "
                f"{self.sensitivity} needs noise of a scale beyond 2^28: use coarser scores, "
                "a larger epsilon or a smaller at_most"
            )
        return rate

    @property
    def _raised(self) -> int:
        """T plus the difference of the means of G and Z, which are 1 / rate - 1/2, nearly."""
        return self.threshold + int(1 / self.queries.rate - 1 / self._threshold_rate)

    @property
    def _highest(self) -> int:
        """The score from which on candidates are treated alike: Z is larger once in e^60 runs."""
        return min(self.top, self._raised + geometric.ideal(self._threshold_rate).reach)

    @property
    def _reach(self) -> int:
        """The largest noise of a candidate that is no sentinel."""
        return geometric.ideal(self.queries.rate).reach


# --- on the device -------------------------------------------------------------------------


def limit(
    words: UInt32[Array, " words"],
    tables: Tables,
    most: UInt32[Array, ""],
    threshold: Int32[Array, ""],
) -> Int32[Array, ""]:
    """The noisy threshold from random words; above `most` it is the sentinel."""
    noise = draw(words, tables, most)
    ordinary = threshold + jnp.minimum(noise, most).astype(jnp.int32)
    return jnp.where(noise > most, np.int32(tail_atom.SENTINEL), ordinary)


def first_passing(
    noisy: Int32[Array, " candidates"], limit: Int32[Array, ""], at_most: int
) -> Int32[Array, " at_most"]:
    """The first `at_most` candidates that pass the limit, in order, padded with -1."""
    return jnp.nonzero(noisy >= limit, size=at_most, fill_value=-1)[0].astype(jnp.int32)


@partial(jax.jit, static_argnames="at_most")
def _found(
    key: Key[Array, ""],
    noisy: Int32[Array, " candidates"],
    tables: Tables,
    most: UInt32[Array, ""],
    threshold: Int32[Array, ""],
    at_most: int,
) -> Int32[Array, " at_most"]:
    words = jax.random.bits(key, (tables.words,), jnp.uint32)
    return first_passing(noisy, limit(words, tables, most, threshold), at_most)


# --- exact arithmetic ----------------------------------------------------------------------


def _cube_root(value: int) -> int:
    """The cube root, rounded down, by Newton's method from above."""
    root = 1 << -(-value.bit_length() // 3)
    while (lower := (2 * root + value // root**2) // 3) < root:
        root = lower
    return root
