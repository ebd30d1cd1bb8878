"""The base class of selectors that choose one candidate, and the certificate of a selection."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Int32

from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.dp.selection.validation import Mask, pure_guarantee


class SelectionCertificate(NamedTuple):
    """What exact arithmetic on the integer tables proves of a selection.

    Attributes:
      epsilon_realised: bound on the privacy loss for any number of candidates; at most the
        requested epsilon.
      delta_numerical: 0, since the proof leaves nothing out.
      furthest: a candidate further behind the best is treated as this far behind.
    """

    epsilon_realised: Fraction
    delta_numerical: Fraction
    furthest: int


@dataclass(frozen=True, kw_only=True)
class Selector(ABC):
    """Choose one candidate whose score is close to the best: epsilon-DP.

    Attributes:
      epsilon: privacy loss of one selection.
      sensitivity: the most that one person's records change any score, up or down.
    """

    epsilon: float | Fraction
    sensitivity: int = 1

    def __post_init__(self):
        self.certificate()

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The decay of a candidate's chance with its distance d to the best: e^(-rate d)."""

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of one selection, as the ledger records it."""
        return pure_guarantee(self.epsilon)

    @property
    def rho(self) -> float:
        """One selection is rho-zCDP; here the rho of any epsilon-DP mechanism."""
        return self.guarantee.rho

    def select(self, scores: Int32[Array, " candidates"], *, key: AnyKey) -> Int32[Array, ""]:
        """The index of the chosen candidate."""
        return self.select_among(scores, np.ones(np.shape(scores), bool), key=key)

    @abstractmethod
    def select_among(
        self,
        scores: Int32[Array, " candidates"],
        eligible: Mask,
        *,
        key: AnyKey,
    ) -> Int32[Array, ""]:
        """The index of the candidate chosen among the eligible ones, as if there were no others.

        At least one candidate has to be eligible.
        """

    @abstractmethod
    def pmf(self, scores: Sequence[int]) -> list[Fraction]:
        """The exact probability of each candidate."""

    def certificate(self) -> SelectionCertificate:
        """The exact privacy loss, checked when the selector is made: it is at most epsilon."""
        found = self._certificate()
        if found.epsilon_realised > self.epsilon:
            raise ArithmeticError("the tables do not keep epsilon")
        return found

    @abstractmethod
    def _certificate(self) -> SelectionCertificate:
        """The certificate of the tables for `rate` and `sensitivity`."""
