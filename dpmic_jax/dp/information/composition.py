"""Composition: the information of several mechanisms together (Corollaries 2, 3 and 4)."""

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.information.cardinality import most_nats, to_mi
from dpmic_jax.dp.information.guarantees import KLDP, MIDP, Count, cardinal, expect

Nats = TypeVar("Nats", KLDP, MIDP)


def composed(guarantees: Iterable[Nats]) -> Nats:
    """Corollaries 2 and 3: the nats of MI-DP, and of KL-DP, add up by the chain rule.

    Each mechanism has to keep its guarantee given all earlier outputs: its noise is independent of
    them (Corollary 2), or it is chosen given them (Corollary 3). If noise is used twice there is no
    bound: Y1 = X + U modulo m and Y2 = U have no information each, and reveal X together
    (Example 4). Guarantees may depend on earlier outputs: if their sum always stays below a budget,
    so does the information, since it is a sum of means.

    The sum is tight: copies of an erasure channel of small probability attain it in the limit. For
    epsilon-DP mechanisms it is below the information that the sum of their epsilons implies.
    """
    kind, nats = _same_kind("Corollaries 2 and 3", guarantees)
    # The sum is exact, of decimals as they are written, and rounded up once.
    return kind(ceil_to_float(sum(map(as_fraction, nats), Fraction())))


def disjoint(guarantees: Iterable[Nats]) -> Nats:
    """Corollary 4, parallel composition: each mechanism sees a subset, and no record is in two.

    The output for another subset, with independent noise, has no information about a record if all
    other records are known. So the largest guarantee holds for all records. `personal.Personal`
    keeps one guarantee for each subset.
    """
    kind, nats = _same_kind("Corollary 4", guarantees)
    return kind(max(nats))


def total_mi(events: Iterable[Event], *, values: Count) -> MIDP:
    """The MI-DP of all releases of `events` together.

    An event's guarantee is for all of one person's records at once, and so is the total.

    Args:
      events: the releases.
      values: the number of values that a record may take, or that all records of one person may
        take together. math.inf is allowed for epsilon-DP, and for zCDP and Gaussian DP
        without a numerical delta.
    """
    each = [
        event.count * as_fraction(to_mi(event.guarantee, values=values, outputs=float("inf")).nats)
        for event in events
    ]
    if not each:
        raise ValueError("expected at least one event, got none")
    return MIDP(min(ceil_to_float(sum(each, Fraction())), most_nats(cardinal("values", values))))


def _same_kind(theorem: str, guarantees: Iterable[Nats]) -> tuple[type[Nats], list[float]]:
    """The type of the guarantees, which has to be the same for all, and their nats."""
    listed = list(guarantees)
    if not listed:
        raise ValueError(f"{theorem} need at least one guarantee, got none")
    kind = type(listed[0])
    expect(theorem, (KLDP, MIDP), listed[0])
    for one in listed:
        expect(theorem, kind, one)
    return kind, [one.nats for one in listed]
