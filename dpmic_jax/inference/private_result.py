"""The result of a private test of independence: decisions or p-values, and what they cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpmic_jax.dp.accounting.events import Event, canonical
from dpmic_jax.results import SEEDED
from dpmic_jax.results.statement import (
    key_sentence,
    ledger_sentence,
    neighbours_sentence,
    protected_records,
)

_SECRET = "secret"


class Found(NamedTuple):
    """What a method releases, pair by pair.

    Attributes:
      dependent: whether each pair is called dependent.
      distances: noisy distances from independence; None if only decisions are released.
      p_values: of each pair by itself; None likewise.
      adjusted: p-values adjusted for the number of pairs; None likewise.
    """

    dependent: tuple[bool, ...]
    distances: tuple[float, ...] | None = None
    p_values: tuple[float, ...] | None = None
    adjusted: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class IndependenceStatement:
    """The privacy statement of a test. All of it is public.

    Attributes:
      event: the event that was charged, before anything was computed from values.
      key_is_secret: whether the noise came from a secret key.
      ledger: "identity#serial" of the charge; None if no ledger was charged.
      version: the version of the library.
      run: the name of the run.
      persons: number of persons, as for a screen (`results.Statement`).
    """

    event: Event
    key_is_secret: bool
    ledger: str | None
    version: str
    run: str
    persons: int | None = None

    @property
    def line(self) -> str:
        """The statement in one line."""
        protected = protected_records(self.event.relation, self.event.n, self.persons)
        line = (
            f"epsilon = {self.event.epsilon:g}, delta = 0 for {protected}: {self.event.mechanism}"
        )
        return line if self.key_is_secret else f"{SEEDED}. {line}"

    def text(self) -> str:
        """The statement as a paragraph, for a publication."""
        moved = float(self.event.sensitivity)
        return " ".join(
            (
                *(() if self.key_is_secret else (f"{SEEDED}.",)),
                f"Differentially private with epsilon = {self.event.epsilon!r}, delta = 0 for "
                "everything released here together.",
                neighbours_sentence(self.event.relation, self.event.n, self.persons),
                "Dependence is decided by the total variation distance of a pair of columns from "
                f"independence; one person changes what is compared by at most {moved:.4g}.",
                f"Mechanism: {self.event.mechanism}.",
                key_sentence(self.key_is_secret),
                ledger_sentence(self.ledger),
                f"Computed by dpmic_jax {self.version}, run {self.run}.",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """The statement as a dictionary of JSON values."""
        return {
            "epsilon": self.event.epsilon,
            "delta": 0.0,
            "records_per_person": self.event.relation.records,
            "key": _SECRET if self.key_is_secret else SEEDED,
            "ledger": self.ledger,
            "version": self.version,
            "run": self.run,
            **({} if self.persons is None else {"persons": self.persons}),
            "event": json.loads(self.event.to_json()),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "IndependenceStatement":
        """The statement that `to_dict` wrote as `content`."""
        return cls(
            event=Event.from_json(canonical(content["event"])),
            key_is_secret={_SECRET: True, SEEDED: False}[content["key"]],
            ledger=content["ledger"],
            version=content["version"],
            run=content["run"],
            persons=content.get("persons"),
        )


@dataclass(frozen=True, kw_only=True)
class IndependenceResult:
    """The result of a private test of independence, which may be published as it is.

    Attributes:
      pairs: names of the two columns of each pair.
      found: what was released of each pair.
      alpha: the level of all pairs together.
      error: the error that is at most alpha, in words.
      statement: the privacy statement.
    """

    pairs: tuple[tuple[str, str], ...]
    found: Found
    alpha: float
    error: str
    statement: IndependenceStatement

    def __post_init__(self):
        if {len(each) for each in self.found if each is not None} != {len(self.pairs)}:
            raise ValueError(f"expected {len(self.pairs)} of everything, one for each pair")

    @property
    def dependent(self) -> tuple[bool, ...]:
        """Whether each pair is called dependent."""
        return self.found.dependent

    def to_dict(self) -> dict[str, Any]:
        """The result as a dictionary of JSON values."""
        kept = {name: each for name, each in self.found._asdict().items() if each is not None}
        rows = [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)]
        return {
            "pairs": [
                {"x": x, "y": y, **row} for (x, y), row in zip(self.pairs, rows, strict=True)
            ],
            "alpha": self.alpha,
            "error": self.error,
            "privacy": self.statement.to_dict(),
        }

    def to_json(self) -> str:
        """The result as JSON, for `from_json`."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "IndependenceResult":
        """The result that `to_json` wrote."""
        try:
            content = json.loads(text)
            rows = content["pairs"]
            kept = {
                name: tuple(row[name] for row in rows) for name in Found._fields if name in rows[0]
            }
            return cls(
                pairs=tuple((row["x"], row["y"]) for row in rows),
                found=Found(**kept),
                alpha=content["alpha"],
                error=content["error"],
                statement=IndependenceStatement.from_dict(content["privacy"]),
            )
        except (IndexError, KeyError, TypeError) as error:
            raise ValueError("expected the JSON of a private test of independence") from error

    def text(self) -> str:
        """The result as lines for a terminal, without the privacy statement."""
        heads = ["x", "y"]
        columns = [[x for x, _ in self.pairs], [y for _, y in self.pairs]]
        for head, numbers in (
            ("distance", self.found.distances),
            ("p", self.found.p_values),
            ("adjusted", self.found.adjusted),
        ):
            if numbers is not None:
                heads.append(head)
                columns.append([f"{each:.3g}" for each in numbers])
        heads.append("dependent")
        columns.append(["yes" if each else "not shown" for each in self.dependent])
        widths = [max(map(len, [head, *cells])) for head, cells in zip(heads, columns, strict=True)]
        rows = [heads, *zip(*columns, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        count = f"{sum(self.dependent)} of {len(self.pairs)} pairs dependent"
        return "\n".join([*lines, f"{count}; {self.error} at most {self.alpha:g}."])

    def __str__(self) -> str:
        return f"{self.text()}\n{self.statement.line}"
