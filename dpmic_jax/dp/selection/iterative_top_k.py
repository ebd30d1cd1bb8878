"""Top-k by repeated selection: choose one candidate, remove it, and choose again.

Each selection depends on those before it, so guarantees compose adaptively: k epsilon, and k rho.
The order of the chosen candidates may be released. With the exponential mechanism each selection
has rho = epsilon^2 / 8 (bounded range: Durfee and Rogers 2019; Cesar and Rogers 2021). So under
(epsilon, delta)-DP many candidates can be chosen for the cost of a few with `OneShotTopK`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import jax
import numpy as np
from jaxtyping import Array, Int, Int32

from dpmic_jax.dp.accounting.events import ZCDP, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.selector import SelectionCertificate, Selector
from dpmic_jax.dp.selection.validation import check_scores, pure_guarantee


@dataclass(frozen=True, kw_only=True)
class PeeledTopK:
    """Choose k candidates by k selections without replacement, in order.

    Attributes:
      one: makes each selection, `PermuteAndFlip` or `ExponentialMechanism`; its epsilon is that
        of one selection.
      k: the number of candidates to choose.
    """

    one: Selector
    k: int

    def __post_init__(self):
        integer("k", self.k, 1, 2**20)

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of all k selections together: k epsilon."""
        return pure_guarantee(self.k * as_fraction(self.one.guarantee.epsilon))

    @property
    def rho(self) -> float:
        """All k selections together are rho-zCDP: k times the rho of one."""
        return ceil_to_float(self.k * as_fraction(self.one.rho))

    @property
    def concentrated(self) -> ZCDP:
        """The zCDP guarantee of all k selections, as the ledger records it."""
        return ZCDP(self.rho)

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int[np.ndarray, " k"]:
        """The indices of the chosen candidates, in the order of selection. Not under jit."""
        scores = check_scores(scores, self.k)
        eligible, found = np.ones(len(scores), bool), []
        for each in jax.random.split(noise_key(key), self.k):
            found.append(int(self.one.select_among(scores, eligible, key=each)))
            eligible[found[-1]] = False
        return np.asarray(found, np.int32)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The exact probability of each sequence; feasible for a few candidates."""
        return self._after(scores, tuple(range(len(scores))), self.k)

    def _after(
        self, scores: Sequence[int], left: tuple[int, ...], rounds: int
    ) -> dict[tuple[int, ...], Fraction]:
        """The distribution of the next `rounds` selections among the candidates in `left`."""
        if not rounds:
            return {(): Fraction(1)}
        found: dict[tuple[int, ...], Fraction] = {}
        for i, p in zip(left, self.one.pmf([scores[j] for j in left]), strict=True):
            others = tuple(j for j in left if j != i)
            for rest, q in self._after(scores, others, rounds - 1).items():
                found[i, *rest] = p * q
        return found

    def certificate(self) -> SelectionCertificate:
        """The certificate of one selection, with k times its privacy loss."""
        each = self.one.certificate()
        return each._replace(epsilon_realised=self.k * each.epsilon_realised)
