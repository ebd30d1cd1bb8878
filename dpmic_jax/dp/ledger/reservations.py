"""Entries of a ledger's file: charges, and reservations of budget for later charges.

A reservation is an entry that holds the cost of a number of charges of one kind. Each later charge
of that kind draws one of them. Entries are never changed in the file: what is left of a
reservation follows from the entries in order, and is stored with the running totals.

Which charges draw. A charge draws from a reservation if it has the same mechanism, guarantee,
relation and count. The number of records, settings and label may differ: the folds of a
cross-validation differ in their number of records, and runs in their labels. The total variation
(delta) of a zCDP or Gaussian guarantee may differ too, since it depends on the number of records. A
reservation has no owner: charges of the same kind by different users draw from it in order.

Why it is safe. Charges and reservations fit the budget together at any time, and a charge is
checked against all of them except the one that it draws. So reservations can only refuse charges
that would be admitted without them. Cancelling what was not drawn is safe too, since nothing was
computed for it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpmic_jax.dp.accounting.composition import Totals, combined, totals
from dpmic_jax.dp.accounting.events import ZCDP, Event, GaussianDP, canonical
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int


@dataclass(frozen=True)
class Reservation:
    """Budget that is reserved for `times` charges like `event`."""

    event: Event
    times: int

    def __post_init__(self):
        if not isinstance(self.event, Event):
            raise TypeError(f"expected an Event, got {self.event!r}")
        object.__setattr__(self, "times", check_positive_int("times", self.times))

    @property
    def whole_event(self) -> Event:
        """One event that costs as much as all reserved charges together."""
        return replace(self.event, count=self.times * self.event.count)

    def to_json(self) -> str:
        """Canonical JSON of the entry."""
        return canonical({"reserve": self.event.to_json(), "times": self.times})


@dataclass(frozen=True)
class GivenBack:
    """The cancellation of a reservation, given by its entry number."""

    serial: int

    def __post_init__(self):
        object.__setattr__(self, "serial", check_positive_int("serial", self.serial))

    def to_json(self) -> str:
        """Canonical JSON of the entry."""
        return canonical({"release": self.serial})


Entry = Event | Reservation | GivenBack


def entry_from_json(text: str) -> Entry:
    """Read an entry from its `to_json`; any other text is refused."""
    content = json.loads(text)
    entry = _reservation_or_cancellation(content)
    if entry is None:
        return Event.from_json(text)
    if entry.to_json() != text:
        raise ValueError("expected the canonical JSON of an entry")
    return entry


def _reservation_or_cancellation(content: dict[str, Any]) -> Reservation | GivenBack | None:
    if "reserve" in content:
        return _reservation(content)
    if "release" in content:
        return GivenBack(content["release"])
    return None


def _reservation(content: dict[str, Any]) -> Reservation:
    return Reservation(Event.from_json(content["reserve"]), content["times"])


class Standing(NamedTuple):
    """The totals of a ledger's entries: all that decides on the next one.

    Reservations are stored beside the sums and not in them, because nothing can be subtracted from
    a sum with an infinite epsilon.

    Attributes:
      charged: sums over the charges.
      reserved: what is left of each reservation, by its entry number, the oldest first.
    """

    charged: Totals
    reserved: dict[int, Reservation]

    @property
    def set_aside(self) -> tuple[Event, ...]:
        """Events that cost what is left of the reservations."""
        return tuple(reservation.whole_event for reservation in self.reserved.values())

    @property
    def taken(self) -> Totals:
        """Sums of all charges and reservations, which count against the budget."""
        return combined(self.charged, totals(self.set_aside))

    def before(self, event: Event) -> Totals:
        """Sums that count against the budget when `event` is charged: all except what it draws."""
        return self._replace(reserved=_drawn(self.reserved, event)).taken

    def after(self, serial: int, entry: Entry) -> "Standing":
        """The totals after one more entry, with number `serial`."""
        reserved = _reserved(self.reserved, serial, entry)
        if not isinstance(entry, Event):
            return self._replace(reserved=reserved)
        return Standing(combined(self.charged, totals([entry])), reserved)

    def to_json(self) -> str:
        """Canonical JSON, with the sums as fractions; `sole_mu` only if there is one."""
        sums = {
            name: None if value is None else str(value)
            for name, value in self.charged._asdict().items()
            if value is not None or name != "sole_mu"
        }
        reserved = [[serial, one.to_json()] for serial, one in self.reserved.items()]
        return canonical({**sums, "reserved": reserved})

    @classmethod
    def from_json(cls, text: str) -> "Standing":
        """Read totals; the caller checks that the text is canonical."""
        content = json.loads(text)
        content.setdefault("sole_mu", None)
        sums = (content[name] for name in Totals._fields)
        reserved = {serial: _reservation(json.loads(one)) for serial, one in content["reserved"]}
        charged = Totals._make(None if value is None else Fraction(value) for value in sums)
        return cls(charged, reserved)


def standing(entries: Iterable[Entry]) -> Standing:
    """The totals of entries in order; KeyError if there is no reservation for a cancellation."""
    # Charges are summed once at the end, which is faster than `Standing.after` for each entry.
    charges, reserved = [], {}
    for serial, entry in enumerate(entries, start=1):
        reserved = _reserved(reserved, serial, entry)
        if isinstance(entry, Event):
            charges.append(entry)
    return Standing(totals(charges), reserved)


def _reserved(
    reserved: dict[int, Reservation], serial: int, entry: Entry
) -> dict[int, Reservation]:
    """Reservations after an entry."""
    if isinstance(entry, Reservation):
        return {**reserved, serial: entry}
    if isinstance(entry, GivenBack):
        kept = dict(reserved)
        del kept[entry.serial]
        return kept
    return _drawn(reserved, entry)


def _drawn(reserved: dict[int, Reservation], event: Event) -> dict[int, Reservation]:
    """Reservations after a charge, which draws one from the oldest reservation of its kind."""
    for serial, one in reserved.items():
        if _kind(one.event) == _kind(event):
            if one.times == 1:
                return {other: kept for other, kept in reserved.items() if other != serial}
            return {**reserved, serial: replace(one, times=one.times - 1)}
    return reserved


def _kind(event: Event) -> tuple[Any, ...]:
    """What has to be equal for a charge to draw from a reservation."""
    guarantee = event.guarantee
    if isinstance(guarantee, ZCDP | GaussianDP):
        guarantee = replace(guarantee, delta=0.0)  # it depends on n
    return (event.mechanism, guarantee, event.relation, event.count)
