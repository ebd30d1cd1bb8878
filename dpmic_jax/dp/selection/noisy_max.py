"""Report noisy max: add noise to every score, and choose the candidate with the largest sum.

This is `OneShotTopK` for k = 1. The noise is one-sided (geometric), so the choice has the
distribution of permute-and-flip (Ding et al. 2021), which is never worse than the exponential
mechanism. The older form with Laplace noise is not offered: for two candidates whose scores are d
apart, x = rate d, it chooses the lower one with probability e^-x (2 + x) / 4, this one with
e^-x / 2, at the same epsilon. Prefer it to `PermuteAndFlip` where scores arrive in batches: the
noise of one candidate depends on no other score.
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
    """Choose a candidate whose score is close to the best: epsilon-DP.

    Attributes:
      epsilon: privacy loss of one selection.
      sensitivity: the most that one person's records change any score, up or down.
      top: scores are clipped to 0 .. top.
    """

    epsilon: float | Fraction
    sensitivity: int
    top: int

    def __post_init__(self):
        self.certificate()

    @property
    def _top_one(self) -> OneShotTopK:
        return OneShotTopK(epsilon=self.epsilon, sensitivity=self.sensitivity, k=1, top=self.top)

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of one selection, as the ledger records it."""
        return self._top_one.guarantee

    def noisy(self, points: Int32[Array, "*shape"], *, key: AnyKey) -> Int32[Array, "*shape"]:
        """Noisy scores. They are not private by themselves: release only the result of `choose`."""
        return self._top_one.noisy(points, key=key)

    release = noisy

    def choose(self, noisy: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """The index of the largest noisy score; `key` breaks ties."""
        return self._top_one.choose(noisy, key=key)[0]

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """Both steps at once, for scores that are all at hand. Works under jit and vmap."""
        return self._top_one.select(scores, key=key)[0]

    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The probability of each candidate; feasible for a few candidates (`OneShotTopK.pmf`)."""
        return list(self._top_one.pmf(scores).values())

    def certificate(self) -> PureCertificate:
        """The exact privacy loss, checked when the settings are made: it is at most epsilon."""
        return self._top_one.certificate()
