"""What the entries of a ledger's file say: charges, and budget that is set aside for some.

A reservation is an entry of its own, of the price of so many charges of one kind. A charge of that
kind that comes later draws one of them. No entry is ever changed in the file: what is left of a
reservation is found by going through the entries in order, and kept with the running totals.

Who draws. Charges are alike if they have the mechanism, the guarantee, the relation and the count
of the reserved one: what it is and what it costs. Records, settings and label may differ, for the
folds of a cross-validation differ in their number of records, and runs in their labels. So does
what the noise of a zCDP guarantee is off its law, which goes by the number of records. Nobody
owns a reservation: alike charges of two users draw from it as they come.

Why it is safe. What is charged and what is set aside fit the budget together at any time, and a
charge is checked against all of it but the one that it draws. So a reservation only ever refuses
what would be admitted without it. Giving back what nobody drew is safe too, since nothing
was computed for it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpmic_jax.dp.accounting.composition import Totals, combined, totals
from dpmic_jax.dp.accounting.events import ZCDP, Event, canonical
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int


@dataclass(frozen=True)
class Reservation:
    """Budget set aside for `times` charges like `event`."""

    event: Event
    times: int

    def __post_init__(self):
        if not isinstance(self.event, Event):
            raise TypeError(f"expected an Event, got {self.event!r}")
        object.__setattr__(self, "times", check_positive_int("times", self.times))

    @property
    def whole_event(self) -> Event:
        """One event that costs as much as all of them."""
        return replace(self.event, count=self.times * self.event.count)

    def to_json(self) -> str:
        return canonical({"reserve": self.event.to_json(), "times": self.times})


@dataclass(frozen=True)
class GivenBack:
    """The end of a reservation, told by the number of its entry."""

    serial: int

    def __post_init__(self):
        object.__setattr__(self, "serial", check_positive_int("serial", self.serial))

    def to_json(self) -> str:
        return canonical({"release": self.serial})


Entry = Event | Reservation | GivenBack


def entry_from_json(text: str) -> Entry:
    """The entry whose `to_json` is exactly `text`."""
    content = json.loads(text)
    entry = _special(content)
    if entry is None:
        return Event.from_json(text)
    if entry.to_json() != text:
        raise ValueError("expected the canonical JSON of an entry")
    return entry


def _special(content: dict[str, Any]) -> Reservation | GivenBack | None:
    if "reserve" in content:
        return _reservation(content)
    if "release" in content:
        return GivenBack(content["release"])
    return None


def _reservation(content: dict[str, Any]) -> Reservation:
    return Reservation(Event.from_json(content["reserve"]), content["times"])


class Standing(NamedTuple):
    """What a ledger's entries come to: all that the next one is judged by.

    Reservations are kept beside the sums, not in them: nothing is ever taken off a sum, which an
    infinite epsilon would not allow.

    Attributes:
      charged: sums over the charges.
      reserved: what is left of reservations, by the numbers of their entries, the oldest first.
    """

    charged: Totals
    reserved: dict[int, Reservation]

    @property
    def set_aside(self) -> tuple[Event, ...]:
        """Events that cost what is reserved."""
        return tuple(reservation.whole_event for reservation in self.reserved.values())

    @property
    def taken(self) -> Totals:
        """All that counts against the budget."""
        return combined(self.charged, totals(self.set_aside))

    def before(self, event: Event) -> Totals:
        """What counts against the budget when `event` is charged: all but what it draws."""
        return self._replace(reserved=_drawn(self.reserved, event)).taken

    def after(self, serial: int, entry: Entry) -> "Standing":
        """What the entries come to with one more, of this number."""
        reserved = _reserved(self.reserved, serial, entry)
        if not isinstance(entry, Event):
            return self._replace(reserved=reserved)
        return Standing(combined(self.charged, totals([entry])), reserved)

    def to_json(self) -> str:
        sums = {
            name: None if value is None else str(value)
            for name, value in self.charged._asdict().items()
        }
        reserved = [[serial, one.to_json()] for serial, one in self.reserved.items()]
        return canonical({**sums, "reserved": reserved})

    @classmethod
    def from_json(cls, text: str) -> "Standing":
        content = json.loads(text)
        sums = (content[name] for name in Totals._fields)
        reserved = {serial: _reservation(json.loads(one)) for serial, one in content["reserved"]}
        charged = Totals._make(None if value is None else Fraction(value) for value in sums)
        return cls(charged, reserved)


def standing(entries: Iterable[Entry]) -> Standing:
    """Go through entries in order. A release of what is not reserved is a KeyError."""
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
    """Reservations after a charge: one less of the oldest that is for its kind."""
    for serial, one in reserved.items():
        if _kind(one.event) == _kind(event):
            if one.times == 1:
                return {other: kept for other, kept in reserved.items() if other != serial}
            return {**reserved, serial: replace(one, times=one.times - 1)}
    return reserved


def _kind(event: Event) -> tuple[Any, ...]:
    price = event.guarantee
    if isinstance(price, ZCDP):
        price = ZCDP(price.rho)
    return (event.mechanism, price, event.relation, event.count)
