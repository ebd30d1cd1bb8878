"""What a mechanism keeps, in the units of Cuff and Yu (2016): nats about one record, and variation.

epsilon-DP and (epsilon, delta)-DP are `PureDP` and `ApproximateDP` of `dp.accounting.events`. All
of them are about neighbours that differ in one record, and hold against whoever knows all the other
records. They say nothing about what records tell of each other: if all n records are equal, a
mechanism that keeps next to nothing of each (`MIDP`) may give all of them away (Example 3).
"""

import math
from dataclasses import dataclass
from typing import TypeVar

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive

Kind = TypeVar("Kind")
Count = int | float


@dataclass(frozen=True)
class KLDP:
    """KL-DP: the output laws of neighbours diverge by at most `nats`, either way (Definition 7)."""

    nats: float

    def __post_init__(self):
        object.__setattr__(self, "nats", check_positive("nats", self.nats))


@dataclass(frozen=True)
class MIDP:
    """MI-DP: sup over i and laws of the data of I(X_i; Y | all other records), in nats.

    Given the others, a record's values are the inputs of a channel with output Y: the supremum
    is the largest capacity of these channels (Definition 2, `channels.worst_capacity`).
    """

    nats: float

    def __post_init__(self):
        object.__setattr__(self, "nats", check_positive("nats", self.nats))

    @property
    def bits(self) -> float:
        return self.nats / math.log(2)


@dataclass(frozen=True)
class VariationDP:
    """(0, delta)-DP: neighbours' output laws are within a total variation of delta (Definition 6).

    No test tells neighbours apart with error probabilities that sum to less than 1 - delta.
    delta = 1 promises nothing.
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
    """Refuse a premise that the theorem is not about."""
    if not isinstance(given, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(one.__name__ for one in kinds)
        raise TypeError(f"{theorem} starts from {names}, got {given!r}")


def cardinal(name: str, count: Count) -> Count:
    """`count` if it is a whole number from 2, or math.inf."""
    if count == math.inf:
        return math.inf
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"expected {name} as a whole number or math.inf, got {count!r}")
    if count < 2:
        raise ValueError(f"expected {name} >= 2, got {count}")
    return count
