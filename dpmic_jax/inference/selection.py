"""What a selection on the same records costs a test: two ways to pay, each valid by itself.

Choose one before looking at p-values: whoever takes the better of two afterwards errs more often
than either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.max_information import corrected_level_after, largest_epsilon


class Correction(NamedTuple):
    """At which level, and over how many hypotheses, errors are controlled.

    Attributes:
      level: what adjusted p-values are compared with.
      hypotheses: how many p-values are adjusted together; those that were not tested count as 1.
      reason: the theorem behind it, in words.
    """

    level: float
    hypotheses: int
    reason: str


class Guard(Protocol):
    """A way to make up for the selection."""

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        """What is left of alpha.

        Args:
          events: the private releases that the analyst has seen.
          alpha: the error that is allowed.
          selected: how many pairs are tested.
          candidates: among how many they were selected.
        """
        ...

    def remedy(self, level: float, n: int, alpha: float) -> str:
        """What would leave at least `level`, in words."""
        ...


@dataclass(frozen=True)
class MaxInformationCorrection:
    """By max-information: the level falls with epsilon and n, not with the number of candidates.

    It covers any use of the releases: pairs, tests, statistics and settings may be chosen by them.
    """

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        found = corrected_level_after(alpha, events)
        reason = (
            f"what was seen has at most {found.bits:.3g} bits of max-information with the records, "
            f"at beta = {found.beta:.3g} ({found.theorem})"
        )
        return Correction(found.level, selected, reason)

    def remedy(self, level: float, n: int, alpha: float) -> str:
        if level >= alpha:
            return "fewer pairs: no epsilon leaves a level for so many"
        return f"an epsilon of {largest_epsilon(level, n=n, alpha=alpha):.2g} in all, or less"


@dataclass(frozen=True)
class Bonferroni:
    """As if all candidates had been tested: those that were not selected count as p = 1.

    P-values that are only raised stay valid, so any control of all candidates holds, by whatever
    the selection was made. It covers the choice of pairs, not of test or settings.
    """

    def correction(
        self, events: Sequence[Event], alpha: float, *, selected: int, candidates: int
    ) -> Correction:
        reason = f"all {candidates} pairs that the screen looked at count as tested"
        return Correction(alpha, candidates, reason)

    def remedy(self, level: float, n: int, alpha: float) -> str:
        return "fewer candidates"
