"""The privacy statement: what a release keeps for each person, in words and as data."""

import dataclasses
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

from dpmic_jax.dp.accounting.events import ApproximateDP, Event, PureDP, ReplaceOne

SEEDED = "seeded: not for release"
_SECRET = "secret"
_TEXTS = ("mechanism", "guarantee", "sizes", "version", "run")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a whole screen keeps, for whom, and how it was made. All of it is public.

    Attributes:
      relation: the neighbours it holds for.
      epsilon, delta: of the whole screen.
      mechanism: what drew the noise and for which pairs, such as "MICr-Lap, all pairs".
      guarantee: the theorem behind epsilon and delta, in words.
      sensitivity: the most that one person's records move the MICr of one pair.
      n: number of records.
      B, c, sizes: settings of MICr; `sizes` is the name of the rule.
      key_is_secret: whether the noise came from a secret key. If not, everything that shows the
        statement shows `SEEDED`.
      version: of the library.
      ledger: "identity#serial" of the charge's receipt; None if no ledger was charged.
      run: identifies the run.
      event: canonical JSON of the event that was charged.
    """

    relation: ReplaceOne
    epsilon: float
    delta: float
    mechanism: str
    guarantee: str
    sensitivity: float
    n: int
    B: int
    c: float
    sizes: str
    key_is_secret: bool
    version: str
    ledger: str | None
    run: str
    event: str

    def __post_init__(self):
        kept = ApproximateDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)
        event = Event.from_json(self.event)
        if event.relation != self.relation:
            raise ValueError("expected the event to have the statement's relation")
        if event.n != self.n:
            raise ValueError("expected the event to have the statement's n")
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
        numbers = {
            "epsilon": kept.epsilon,
            "delta": kept.delta,
            "sensitivity": _positive("sensitivity", self.sensitivity),
            "n": event.n,
            "B": _whole("B", self.B),
            "c": _positive("c", self.c),
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    @property
    def key(self) -> str:
        """What the noise was drawn from: "secret", or `SEEDED`."""
        return _SECRET if self.key_is_secret else SEEDED

    @property
    def cost(self) -> str:
        """Epsilon and delta, with all their digits."""
        return f"epsilon = {_short(self.epsilon)}, delta = {_short(self.delta)}"

    @property
    def line(self) -> str:
        """The statement in one line, for a terminal."""
        records = _records(self.relation)
        line = f"{self.cost} for one person's {records}, n = {self.n}: {self.mechanism}"
        return line if self.key_is_secret else f"{SEEDED}. {line}"

    def text(self) -> str:
        """The statement as a paragraph, for a publication."""
        records = _records(self.relation)
        # Rounded upwards: what is said has to hold.
        moves = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(self.sensitivity))
        drawn = (
            "The noise was drawn from a secret key."
            if self.key_is_secret
            else "The noise was drawn from a seeded key: whoever guesses the seed can take it off."
        )
        charged = (
            "It was not charged to a ledger: count it together with other releases of these data."
            if self.ledger is None
            else f"It was charged to ledger {self.ledger}."
        )
        return " ".join(
            (
                *(() if self.key_is_secret else (f"{SEEDED}.",)),
                f"Differentially private with {self.cost} for everything released here together: "
                f"{self.guarantee}.",
                f"Neighbouring tables have the same number of records, n = {self.n}, which is "
                f"public, and differ in one person's {records}, replaced by any others.",
                f"Noised: MICr of pairs of columns, with B = {self.B}, c = {_short(self.c)}, "
                f"sizes = {self.sizes}; one person moves that of a pair by at most {moves}.",
                f"Mechanism: {self.mechanism}.",
                "Limits are noise only: they cover the value of MICr on these records, not "
                "the sampling of the records from a population.",
                drawn,
                charged,
                f"Made by dpmic_jax {self.version}, run {self.run}.",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """All of the statement, as JSON can hold it."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del content["key_is_secret"]
        relation = {"kind": "ReplaceOne", "records": self.relation.records}
        return {**content, "relation": relation, "key": self.key}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Statement":
        """The statement whose `to_dict` is `content`."""
        try:
            fields = dict(content)
            secret = {_SECRET: True, SEEDED: False}[fields.pop("key")]
            relation = ReplaceOne(fields.pop("relation")["records"])
            statement = cls(**fields, relation=relation, key_is_secret=secret)
        except (KeyError, TypeError) as error:
            raise ValueError(
                "expected all the fields of a privacy statement, and no more"
            ) from error
        if statement.to_dict() != content:
            raise ValueError("expected a privacy statement as to_dict writes it")
        return statement


def _records(relation: ReplaceOne) -> str:
    return "record" if relation.records == 1 else f"at most {relation.records} records"


def _short(value: float) -> str:
    """All digits, but 1 for 1.0: rounding would promise something else."""
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
