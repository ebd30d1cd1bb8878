"""Corrections for testing pairs on the records that selected them. Each is valid by itself.

Choose one before looking at p-values: taking the better of two afterwards has a larger error than
either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.max_information import corrected_level_after, largest_epsilon


class Correction(NamedTuple):
    """The level and the number of hypotheses of the error control.

    Attributes:
      level: level that adjusted p-values are compared with.
      hypotheses: number of p-values that are adjusted together; those not tested count as 1.
      reason: the theorem behind the correction, in words.
    """

    level: float
    hypotheses: int
    reason: str


class Guard(Protocol):
    """Interface of the corrections for a selection."""

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        """The correction that keeps the error at alpha.

        Args:
          events: the private releases that the analyst has seen.
          alpha: the error that is allowed.
          selected: number of pairs that are tested.
          candidates: number of pairs that they were selected from.
        """
        ...

    def remedy(self, level: float, n: int, alpha: float) -> str:
        """What would leave a level of at least `level`, in words."""
        ...


@dataclass(frozen=True)
class MaxInformationCorrection:
    """Correct the level by max-information; it falls with epsilon and n, not with the candidates.

    It covers any use of the releases: pairs, tests, statistics and settings may depend on them.
    """

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        """The corrected level (alpha - beta) / 2^k for k bits of max-information."""
        found = corrected_level_after(alpha, events)
        reason = (
            f"what was seen has at most {found.bits:.3g} bits of max-information with the records, "
            f"at beta = {found.beta:.3g} ({found.theorem})"
        )
        return Correction(found.level, selected, reason)

    def remedy(self, level: float, n: int, alpha: float) -> str:
        """The largest epsilon that leaves `level`, in words."""
        if level >= alpha:
            return "fewer pairs: no epsilon leaves a level for this many"
        return f"an epsilon of {largest_epsilon(level, n=n, alpha=alpha):.2g} in all, or less"


@dataclass(frozen=True)
class Bonferroni:
    """Count all candidates as tested; those that were not selected have p = 1.

    Raised p-values stay valid, so error control over all candidates holds for any selection. It
    covers the choice of pairs, not the choice of the test or its settings.
    """

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        """Level alpha over all candidates."""
        reason = f"all {candidates} pairs that the screen looked at count as tested"
        return Correction(alpha, candidates, reason)

    def remedy(self, level: float, n: int, alpha: float) -> str:
        """Fewer candidates, in words."""
        return "fewer candidates"
