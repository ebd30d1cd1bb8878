"""Report noisy max: noise on every score, and the candidate of the largest sum.

`OneShotTopK` for k = 1, named. Its noise is one-sided, geometric, which makes it permute-and-flip
in law (Ding et al. 2021), and that is never worse than the exponential mechanism. The older form
with Laplace noise is not offered: with two candidates d apart, x = rate d, it takes the lesser one
with probability e^-x (2 + x) / 4 where this one has e^-x / 2, at the same epsilon. In place of
`PermuteAndFlip` it is for scores that come in parts: a noisy score needs no other candidate's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from jaxtyping import Array, Int32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.noise.bounded import PureCertificate
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.dp.selection.top_k import OneShotTopK


@dataclass(frozen=True, kw_only=True)
class NoisyMax:
    """Choose a candidate of nearly the best score: epsilon-DP.

    Attributes:
      epsilon: of one selection.
      sensitivity: how far one person's records can move any one score, in either direction.
      top: scores are in 0 .. top; others are brought to the ends.
    """

    epsilon: float | Fraction
    sensitivity: int
    top: int

    def __post_init__(self):
        self.certificate()

    @property
    def _law(self) -> OneShotTopK:
        return OneShotTopK(epsilon=self.epsilon, sensitivity=self.sensitivity, k=1, top=self.top)

    @property
    def guarantee(self) -> PureDP:
        """Of one selection, for the ledger."""
        return self._law.guarantee

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private: only what `choose` makes of all of them is."""
        return self._law.noisy(points, key=key)

    release = noisy

    def choose(self, noisy: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """The index of the largest noisy score; `key` is for equal ones."""
        return self._law.choose(noisy, key=key)[0]

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """Both steps, for who has all scores at hand. Works under jit and vmap."""
        return self._law.select(scores, key=key)[0]

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The probability of each candidate, for a few of them (`OneShotTopK.pmf`)."""
        return list(self._law.pmf(scores).values())

    def certificate(self) -> PureCertificate:
        """Computed when the settings are made."""
        return self._law.certificate()
