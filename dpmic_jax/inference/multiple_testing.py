"""What may be rejected when several hypotheses are tested at once.

Each kind of control turns p-values into adjusted ones: rejecting what is at most a level keeps the
error at that level, however the tests depend on each other (pairs that share a column do).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

PValues = Float[np.ndarray, " tests"]


class Control(Protocol):
    """A way to count errors over several tests."""

    @property
    def error(self) -> str:
        """What is kept at the level, in words."""
        ...

    def adjusted(self, p_values: PValues) -> PValues:
        """The least level at which each hypothesis is rejected."""
        ...


@dataclass(frozen=True)
class FamilyWise:
    """The chance that any true hypothesis is rejected at all (Holm 1979)."""

    @property
    def error(self) -> str:
        return "chance of any false discovery"

    def adjusted(self, p_values: PValues) -> PValues:
        # The smallest is tested at level/m, the next at level/(m - 1), until one is not rejected.
        order = np.argsort(p_values, kind="stable")
        times = np.arange(len(p_values), 0, -1)
        out = np.empty_like(p_values)
        out[order] = np.minimum(np.maximum.accumulate(times * p_values[order]), 1.0)
        return out


@dataclass(frozen=True)
class FalseDiscovery:
    """The expected share of true hypotheses among the rejected (Benjamini and Yekutieli 2001).

    Their form for tests that depend in any way, not the one of Benjamini and Hochberg, which is
    for tests that depend in certain ways.
    """

    @property
    def error(self) -> str:
        return "expected share of false discoveries"

    def adjusted(self, p_values: PValues) -> PValues:
        from scipy.stats import false_discovery_control

        return false_discovery_control(p_values, method="by") if len(p_values) else p_values
