"""Guarantees of Cuff and Yu (2016): divergence, mutual information and total variation.

epsilon-DP and (epsilon, delta)-DP are `PureDP` and `ApproximateDP` of `dp.accounting.events`. All
guarantees are about neighbours that differ in one record, and hold against an adversary who knows
all other records. They do not cover what records reveal about each other: if all n records are
equal, a mechanism with little information about each given the others (`MIDP`) may reveal all of
them (Example 3).
"""

import math
from dataclasses import dataclass
from typing import TypeVar

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive

Kind = TypeVar("Kind")
Count = int | float


@dataclass(frozen=True)
class KLDP:
    """KL-DP: D(P || Q) <= nats for the output distributions P, Q of neighbours (Definition 7)."""

    nats: float

    def __post_init__(self):
        object.__setattr__(self, "nats", check_positive("nats", self.nats))


@dataclass(frozen=True)
class MIDP:
    """MI-DP: I(X_i; Y | all other records) <= nats for every record i and data distribution.

    Given the others, a record's values are the inputs of a channel with output Y, and the supremum
    is the largest capacity of these channels (Definition 2, `channels.worst_capacity`).
    """

    nats: float

    def __post_init__(self):
        object.__setattr__(self, "nats", check_positive("nats", self.nats))

    @property
    def bits(self) -> float:
        """The same information in bits: nats / ln 2."""
        return self.nats / math.log(2)


@dataclass(frozen=True)
class VariationDP:
    """(0, delta)-DP: output distributions of neighbours are within total variation delta.

    No test distinguishes neighbours with error probabilities that sum to less than 1 - delta
    (Definition 6). delta = 1 guarantees nothing.
    """

    delta: float

    def __post_init__(self):
        object.__setattr__(self, "delta", check_positive("delta", self.delta))
        if self.delta > 1:
            raise ValueError(f"expected 0 < delta <= 1, got {self.delta}")


@dataclass(frozen=True)
class RenyiMIDP:
    """Sibson's mutual information of order alpha about one record is at most `nats` (section 7)."""

    order: float
    nats: float


def expect(theorem: str, kind: type[Kind] | tuple[type[Kind], ...], given: object) -> None:
    """Raise a TypeError unless the theorem applies to guarantees of the given type."""
    if not isinstance(given, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(one.__name__ for one in kinds)
        raise TypeError(f"{theorem} starts from {names}, got {given!r}")


def cardinal(name: str, count: Count) -> Count:
    """Return `count` if it is an integer of at least 2, or math.inf."""
    if count == math.inf:
        return math.inf
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"expected {name} as a whole number or math.inf, got {count!r}")
    if count < 2:
        raise ValueError(f"expected {name} >= 2, got {count}")
    return count
