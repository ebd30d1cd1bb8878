"""The privacy statement of a screen, in words and as data."""

import dataclasses
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

from dpmic_jax.dp.accounting.events import ApproximateDP, Event, PureDP, ReplaceOne

SEEDED = "seeded: not for release"
VERSION = 1  # of the JSON, whose schema is statement.schema.json
_SECRET = "secret"
_TEXTS = ("mechanism", "guarantee", "version", "run")


@dataclass(frozen=True, kw_only=True)
class MICrSettings:
    """The settings of the MICr that was released.

    Attributes:
      B, c: of the grids.
      sizes: the name of the rule for the sizes of the fixed axis.
      sensitivity: the most that one person's records change the MICr of one pair.
    """

    B: int
    c: float
    sizes: str
    sensitivity: float

    def __post_init__(self):
        if not isinstance(self.sizes, str) or not self.sizes.isprintable():
            raise ValueError("expected sizes to be of printable characters, on one line")
        numbers = {
            "B": _whole("B", self.B),
            "c": _positive("c", self.c),
            "sensitivity": _positive("sensitivity", self.sensitivity),
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The guarantee of a whole screen, and how it was computed. All of it is public.

    Attributes:
      relation: the neighbouring relation.
      epsilon, delta: the privacy cost of the whole screen.
      mechanism: the mechanism and the pairs, such as "MICr-Lap, all pairs".
      guarantee: the theorem behind epsilon and delta, in words.
      sensitivity: the most that one person's records change the distance from independence of
        one pair.
      n: number of records.
      persons: number of persons, if each counts with exactly `relation.records` records, drawn or
        repeated (`data.source.persons`); None if the number of their records is a promise.
      micr: the settings of MICr; None if MIC was estimated from the distance.
      key_is_secret: whether the noise came from a secret key. If not, everything that shows the
        statement shows `SEEDED`.
      version: the version of the library.
      ledger: "identity#serial" of the charge; None if no ledger was charged.
      run: the name of the run.
      event: canonical JSON of the event that was charged.
    """

    relation: ReplaceOne
    epsilon: float
    delta: float
    mechanism: str
    guarantee: str
    sensitivity: float
    n: int
    persons: int | None = None
    micr: MICrSettings | None
    key_is_secret: bool
    version: str
    ledger: str | None
    run: str
    event: str

    def __post_init__(self):
        guarantee = ApproximateDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)
        event = Event.from_json(self.event)
        if event.relation != self.relation:
            raise ValueError("expected the event to have the statement's relation")
        if event.n != self.n:
            raise ValueError("expected the event to have the statement's n")
        if self.persons is not None and self.persons * self.relation.records != self.n:
            raise ValueError("expected n to be the persons times the records of each")
        if not isinstance(self.micr, MICrSettings | None):
            raise TypeError("expected micr=MICrSettings(...), or None if MIC was estimated")
        if not isinstance(self.key_is_secret, bool):
            raise TypeError(
                "expected key_is_secret to be True (a secret key) or False (a seeded one)"
            )
        for name in _TEXTS if self.ledger is None else (*_TEXTS, "ledger"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"expected {name} to be a string")
            # One line each: they become comment lines of a CSV file and lines on a terminal.
            if not getattr(self, name).isprintable():
                raise ValueError(f"expected {name} to be of printable characters, on one line")
        # As plain int and float, so that `from_dict` of the JSON makes an equal statement.
        if self.persons is not None:
            object.__setattr__(self, "persons", _whole("persons", self.persons))
        numbers = {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "sensitivity": _positive("sensitivity", self.sensitivity),
            "n": event.n,
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    @property
    def key(self) -> str:
        """The kind of key from which the noise was drawn: "secret", or `SEEDED`."""
        return _SECRET if self.key_is_secret else SEEDED

    @property
    def cost(self) -> str:
        """Epsilon and delta, with all their digits."""
        return f"epsilon = {_short(self.epsilon)}, delta = {_short(self.delta)}"

    @property
    def short(self) -> str:
        """Epsilon and delta, and whether the key was seeded."""
        return self.cost if self.key_is_secret else f"{SEEDED}. {self.cost}"

    @property
    def line(self) -> str:
        """The statement in one line, for a terminal."""
        protected = protected_records(self.relation, self.n, self.persons)
        return f"{self.short} for {protected}: {self.mechanism}"

    def text(self) -> str:
        """The statement as a paragraph, for a publication."""
        mic = "MIC is estimated from the distance, at no further cost."
        if self.micr is not None:
            mic = (
                f"MIC: MICr with B = {self.micr.B}, c = {_short(self.micr.c)}, sizes = "
                f"{self.micr.sizes}; one person changes it by at most "
                f"{_rounded_up(self.micr.sensitivity)}."
            )
        return " ".join(
            (
                *(() if self.key_is_secret else (f"{SEEDED}.",)),
                f"Differentially private with {self.cost} for everything released here together: "
                f"{self.guarantee}.",
                neighbours_sentence(self.relation, self.n, self.persons),
                "Dependence is decided by the total variation distance of a pair of columns from "
                f"independence; one person changes it by at most {_rounded_up(self.sensitivity)}.",
                mic,
                f"Mechanism: {self.mechanism}.",
                "Limits of MICr account for the noise only, not for the sampling of the records "
                "from a population."
                if self.micr
                else "Limits of MIC account for noise, sampling and the error of the estimate.",
                key_sentence(self.key_is_secret),
                ledger_sentence(self.ledger),
                f"Computed by dpmic_jax {self.version}, run {self.run}.",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """The statement as a JSON object, of the schema in `results/statement.schema.json`."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del content["key_is_secret"]
        content["relation"] = {"kind": "ReplaceOne", "records": self.relation.records}
        content["micr"] = dataclasses.asdict(self.micr) if self.micr else None
        if self.persons is None:
            del content["persons"]
        return {"statement_version": VERSION, **content, "key": self.key}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Statement":
        """The statement whose `to_dict` is `content`."""
        try:
            fields = dict(content)
            if fields.pop("statement_version") != VERSION:
                raise ValueError(f"expected a privacy statement of version {VERSION}")
            secret = {_SECRET: True, SEEDED: False}[fields.pop("key")]
            relation = ReplaceOne(fields.pop("relation")["records"])
            micr = fields.pop("micr")
            micr = None if micr is None else MICrSettings(**micr)
            statement = cls(**fields, relation=relation, micr=micr, key_is_secret=secret)
        except (KeyError, TypeError) as error:
            raise ValueError(
                "expected all the fields of a privacy statement, and no more"
            ) from error
        # Such as 1.0 for n, or a relation of another kind.
        if statement.to_dict() != content:
            raise ValueError("expected a privacy statement as to_dict writes it")
        return statement


def protected_records(relation: ReplaceOne, n: int, persons: int | None) -> str:
    """Whose records a guarantee is about, in a few words; arguments as in `Statement`."""
    if persons is None:
        return f"one person's {_records(relation)}, n = {n}"
    return f"one person's records, n = {n}, {persons} persons"


def neighbours_sentence(relation: ReplaceOne, n: int, persons: int | None) -> str:
    """A sentence on the neighbouring relation; arguments as in `Statement`."""
    each = relation.records
    if persons is None:
        records = "the record" if each == 1 else _records(relation)
        return (
            f"Neighbouring tables have the same number of records, n = {n}, which is public, and "
            f"differ in {records} of one person."
        )
    counted = "one record" if each == 1 else f"{each} records, n = {n} in all"
    return (
        f"Neighbouring tables have the same number of persons, {persons}, which is public, and "
        "differ in all records of one person, however many these are. Each person counts with "
        f"{counted}: of persons with more, records are drawn at random; those of persons with "
        "fewer are repeated. A record without an id counts as a person."
    )


def key_sentence(key_is_secret: bool) -> str:
    """A sentence on the key of a release."""
    if key_is_secret:
        return "The noise was drawn from a secret key."
    return "The noise was drawn from a seeded key: whoever guesses the seed can remove it."


def ledger_sentence(ledger: str | None) -> str:
    """A sentence on the charge of a release."""
    if ledger is None:
        return "It was not charged to a ledger: account for it with other releases of these data."
    return f"It was charged to ledger {ledger}."


def _rounded_up(value: float) -> str:
    """Four digits, rounded up, so that the statement holds."""
    return str(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(value)))


def _records(relation: ReplaceOne) -> str:
    return "record" if relation.records == 1 else f"at most {relation.records} records"


def _short(value: float) -> str:
    """All digits, without a final ".0". Rounding would state another guarantee."""
    return repr(value).removesuffix(".0")


def _whole(name: str, value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"expected {name} to be a whole number, got {value!r}") from None


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"expected 0 < {name} < inf, got {value}")
    return float(value)
