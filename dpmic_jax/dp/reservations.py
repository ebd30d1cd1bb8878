"""What the entries of a ledger's file say: charges, and budget that is set aside for some.

A reservation is an entry of its own, of the price of so many charges of one kind. A charge of that
kind that comes later draws one of them. Nothing is ever changed in the file: what is left of a
reservation is found by going through the entries in order.

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
from typing import Any, NamedTuple

from dpmic_jax.dp.events import ZCDP, Event, canonical
from dpmic_jax.dp.written import whole


@dataclass(frozen=True)
class Reservation:
    """Budget set aside for `times` charges like `event`."""

    event: Event
    times: int

    def __post_init__(self):
        if not isinstance(self.event, Event):
            raise TypeError(f"expected an Event, got {self.event!r}")
        object.__setattr__(self, "times", whole("times", self.times))

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
        object.__setattr__(self, "serial", whole("serial", self.serial))

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
        return Reservation(Event.from_json(content["reserve"]), content["times"])
    if "release" in content:
        return GivenBack(content["release"])
    return None


class Standing(NamedTuple):
    """What a ledger's entries come to.

    Attributes:
      charges: events by the numbers of their entries.
      reserved: what is left of reservations, by the numbers of their entries.
    """

    charges: dict[int, Event]
    reserved: dict[int, Reservation]

    @property
    def taken(self) -> tuple[Event, ...]:
        """All that counts against the budget."""
        set_aside = (reservation.whole_event for reservation in self.reserved.values())
        return (*self.charges.values(), *set_aside)

    def before(self, event: Event) -> tuple[Event, ...]:
        """What counts against the budget when `event` is charged: all but what it draws."""
        return Standing(self.charges, _drawn(self.reserved, event)).taken


def standing(entries: Iterable[Entry]) -> Standing:
    """Go through entries in order. A release of what is not reserved is a KeyError."""
    charges, reserved = {}, {}
    for serial, entry in enumerate(entries, start=1):
        if isinstance(entry, Reservation):
            reserved[serial] = entry
        elif isinstance(entry, GivenBack):
            del reserved[entry.serial]
        else:
            charges[serial] = entry
            reserved = _drawn(reserved, entry)
    return Standing(charges, reserved)


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
