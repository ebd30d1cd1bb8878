"""The best k, one after the other: choose one, take it away, choose again.

Each choice is made knowing those before, so guarantees add up (composition): k epsilon, and k rho.
Who was chosen first, second, ... may be told. With the exponential mechanism rho is
epsilon^2 / 8 each (bounded range: Durfee and Rogers 2019; Cesar and Rogers 2021), so that under
(epsilon, delta) many can be chosen for what `OneShotTopK` takes for a few.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import jax
import numpy as np
from jaxtyping import Array, Int, Int32

from dpmic_jax.dp.accounting.events import ZCDP, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.rng.keys import AnyKey, noise_key
from dpmic_jax.dp.selection.permute_and_flip import SelectionCertificate
from dpmic_jax.dp.selection.validation import Mask, one_score_each, pure


class Selector(Protocol):
    """What chooses one: `PermuteAndFlip` or `ExponentialMechanism`."""

    @property
    def guarantee(self) -> PureDP: ...

    @property
    def rho(self) -> float: ...

    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]: ...

    def pmf(self, scores: Sequence[int]) -> list[Fraction]: ...

    def certificate(self) -> SelectionCertificate: ...


@dataclass(frozen=True, kw_only=True)
class PeeledTopK:
    """Choose k candidates by k selections without replacement, in order.

    Attributes:
      one: makes each selection; its epsilon is that of one of them.
      k: how many to choose.
    """

    one: Selector
    k: int

    def __post_init__(self):
        integer("k", self.k, 1, 2**20)

    @property
    def guarantee(self) -> PureDP:
        """Of all k together: k epsilon."""
        return pure(self.k * as_fraction(self.one.guarantee.epsilon))

    @property
    def rho(self) -> float:
        """All k together are rho-zCDP."""
        return ceil_to_float(self.k * as_fraction(self.one.rho))

    @property
    def concentrated(self) -> ZCDP:
        """The same for the ledger."""
        return ZCDP(self.rho)

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int[np.ndarray, " k"]:
        """The indices of those chosen, the first one first. Not under jit."""
        scores = one_score_each(scores, self.k)
        eligible, found = np.ones(len(scores), bool), []
        for each in jax.random.split(noise_key(key), self.k):
            found.append(int(self.one.select_among(scores, eligible, key=each)))
            eligible[found[-1]] = False
        return np.asarray(found, np.int32)

    def pmf(self, scores: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of each sequence, exactly; for a few candidates."""
        return self._after(scores, tuple(range(len(scores))), self.k)

    def _after(
        self, scores: Sequence[int], left: tuple[int, ...], rounds: int
    ) -> dict[tuple[int, ...], Fraction]:
        if not rounds:
            return {(): Fraction(1)}
        found: dict[tuple[int, ...], Fraction] = {}
        for i, p in zip(left, self.one.pmf([scores[j] for j in left]), strict=True):
            others = tuple(j for j in left if j != i)
            for rest, q in self._after(scores, others, rounds - 1).items():
                found[i, *rest] = p * q
        return found

    def certificate(self) -> SelectionCertificate:
        """k times that of one selection."""
        each = self.one.certificate()
        return each._replace(epsilon_realised=self.k * each.epsilon_realised)
