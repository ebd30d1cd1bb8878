"""Error control over several tests: adjusted p-values.

Rejecting the hypotheses whose adjusted p-value is at most a level keeps the error at that level.
For all but `BenjaminiHochberg` this holds for tests that depend on each other in any way, as those
of pairs that share a column do.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

PValues = Float[np.ndarray, " tests"]


class Control(Protocol):
    """Interface of the kinds of error control."""

    @property
    def error(self) -> str:
        """The error that is controlled, in words."""
        ...

    def adjusted(self, p_values: PValues) -> PValues:
        """The smallest level at which each hypothesis is rejected."""
        ...


@dataclass(frozen=True)
class FamilyWise:
    """Control of the probability that any true hypothesis is rejected, by Holm (1979)."""

    @property
    def error(self) -> str:
        """The error that is controlled, in words."""
        return "chance of any false discovery"

    def adjusted(self, p_values: PValues) -> PValues:
        """Holm's adjusted p-values: max over j <= i of (m - j + 1) p_(j), at most 1."""
        # The smallest is tested at level/m, the next at level/(m - 1), until one is not rejected.
        order = np.argsort(p_values, kind="stable")
        factors = np.arange(len(p_values), 0, -1)
        out = np.empty_like(p_values)
        out[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
        return out


@dataclass(frozen=True)
class BenjaminiHochberg:
    """Control of the false discovery rate, by Benjamini and Hochberg (1995).

    It holds for independent tests and for some that depend positively; tests of pairs that share
    columns are neither for certain, though simulations show no excess (docs/pairwise.md).
    """

    @property
    def error(self) -> str:
        """The error that is controlled, in words."""
        return "expected share of false discoveries, if tests are independent or nearly so"

    def adjusted(self, p_values: PValues) -> PValues:
        """Adjusted p-values: min over j >= i of m p_(j) / j, at most 1."""
        from scipy.stats import false_discovery_control

        return false_discovery_control(p_values, method="bh")


@dataclass(frozen=True)
class FalseDiscovery:
    """Control of the false discovery rate, by Benjamini and Yekutieli (2001).

    It holds for tests that depend in any way; the procedure of Benjamini and Hochberg needs
    independence or positive dependence.
    """

    @property
    def error(self) -> str:
        """The error that is controlled, in words."""
        return "expected share of false discoveries"

    def adjusted(self, p_values: PValues) -> PValues:
        """Adjusted p-values: min over j >= i of m (1 + 1/2 + ... + 1/m) p_(j) / j, at most 1."""
        from scipy.stats import false_discovery_control

        return false_discovery_control(p_values, method="by")
