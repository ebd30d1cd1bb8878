"""What several mechanisms tell together, in nats about one record (Corollaries 2, 3 and 4)."""

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float
from dpmic_jax.dp.information.cardinality import most_nats, to_mi
from dpmic_jax.dp.information.guarantees import KLDP, MIDP, Count, cardinal, expect

Nats = TypeVar("Nats", KLDP, MIDP)


def composed(guarantees: Iterable[Nats]) -> Nats:
    """Corollaries 2 and 3: nats add up, of MI-DP and of KL-DP, by the chain rule.

    Each mechanism has to keep its guarantee whatever came out before: its noise is new
    (Corollary 2), or made for what came before (Corollary 3). Noise used twice adds up to
    anything: Y1 = X + U modulo m and Y2 = U tell nothing each, and everything together
    (Example 4). Guarantees may even be chosen by what came out before: if their sum stays below
    a budget whatever happens, so does the information, since it is a sum of means.

    Nothing more can be said: copies of an erasure channel that hardly tells anything attain the
    sum in the limit. For epsilon-DP mechanisms it is below what the sum of their epsilons gives.
    """
    kind, nats = _same_kind("Corollaries 2 and 3", guarantees)
    return kind(ceil_to_float(sum(map(as_fraction, nats), Fraction())))


def disjoint(guarantees: Iterable[Nats]) -> Nats:
    """Corollary 4: mechanisms that each see a part of the records, no record in two parts.

    Another part's output, with noise of its own, tells nothing about a record whose neighbours
    are known: the worst part's nats are the worst of all. Record by record it is a
    `personal.Personal` budget.
    """
    kind, nats = _same_kind("Corollary 4", guarantees)
    return kind(max(nats))


def total_mi(events: Iterable[Event], *, values: Count) -> MIDP:
    """Nats about one record that all releases of `events` tell together.

    `values` counts the values that a record may take, math.inf if there is no bound; then there
    is an answer for epsilon-DP, and for zCDP without a numerical delta. An event's guarantee is
    for all of one person's records at once, and so is the total: if a person owns several,
    `values` counts what all of them together may be.
    """
    each = [
        event.count * as_fraction(to_mi(event.guarantee, values=values, outputs=float("inf")).nats)
        for event in events
    ]
    if not each:
        raise ValueError("expected at least one event, got none")
    return MIDP(min(ceil_to_float(sum(each, Fraction())), most_nats(cardinal("values", values))))


def _same_kind(theorem: str, guarantees: Iterable[Nats]) -> tuple[type[Nats], list[float]]:
    listed = list(guarantees)
    if not listed:
        raise ValueError(f"{theorem} need at least one guarantee, got none")
    kind = type(listed[0])
    expect(theorem, (KLDP, MIDP), listed[0])
    for one in listed:
        expect(theorem, kind, one)
    return kind, [one.nats for one in listed]
