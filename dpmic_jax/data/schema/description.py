"""The schema of a table: rules by column name, written as TOML, JSON or a fingerprint."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dpmic_jax.data.schema.patterns import escaped, is_pattern, matches
from dpmic_jax.data.schema.rules import (
    FixedValue,
    MissingBin,
    Number,
    Rule,
    Times,
    kind_of,
    ticks,
    twice,
)
from dpmic_jax.data.schema.text_format import TextFormat
from dpmic_jax.data.schema.writing import line, toml


@dataclass(frozen=True)
class Schema:
    """The public description of a table.

    Attributes:
      columns: (name, rule) of the columns to screen.
      ignored: names of other columns of the table, which are not screened.
      person: name of the column that says whose record a record is, which is not screened. Then
        every person counts with exactly `records_per_person` records (`data.source.persons`).
        Without it a record is a person's, or a person's number of records is a promise.
      records_per_person: with how many records a person counts; None if `person` is.
      text: how the cells of a text file are written.
      patterns: (pattern, rule) of columns that are not described by name, such as `tax*`; the rule
        is None if they are ignored. A column has the rule of the first pattern that it matches.
    """

    columns: tuple[tuple[str, Rule], ...]
    ignored: tuple[str, ...] = ()
    person: str | None = None
    records_per_person: int | None = None
    text: TextFormat = TextFormat()
    patterns: tuple[tuple[str, Rule | None], ...] = ()

    def __post_init__(self):
        for field in ("columns", "ignored", "patterns"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        names = [*self.described, *(pattern for pattern, _ in self.patterns)]
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"expected column names as text, got {name!r}; rename the column")
        if again := twice(self.described) or twice([pattern for pattern, _ in self.patterns]):
            raise ValueError(f"expected one description of column {again[0]!r}, got two")
        for pattern, _ in self.patterns:
            if not is_pattern(pattern):
                raise ValueError(f"expected a pattern with a star, such as tax*, got {pattern!r}")
        if not self.columns and not any(rule for _, rule in self.patterns):
            raise ValueError("expected at least one column that is not ignored, got none")
        if (self.person is None) != (self.records_per_person is None):
            raise ValueError(
                "expected person, a column, and records_per_person, a number, or neither"
            )
        if self.records_per_person is not None and (
            type(self.records_per_person) is not int or self.records_per_person < 1
        ):
            raise ValueError(
                "expected records_per_person to be a whole number from 1 up, got "
                f"{self.records_per_person!r}"
            )

    def __getitem__(self, name: str) -> Rule:
        """The rule of a screened column."""
        return dict(self.columns)[name]

    @property
    def described(self) -> tuple[str, ...]:
        """The names of all columns that are described by name."""
        person = () if self.person is None else (self.person,)
        return (*(name for name, _ in self.columns), *self.ignored, *person)

    def for_columns(self, names: Iterable[str]) -> "Schema":
        """The schema of a table that has these columns: its patterns are replaced by their names.

        A pattern that is itself the name of a column describes that column alone.
        """
        if not self.patterns:
            return self
        names = tuple(names)
        screened = [pattern for pattern, rule in self.patterns if rule is not None]
        if idle := [pattern for pattern in screened if not _meant(pattern, names)]:
            raise ValueError(
                f"no column of the table matches {', '.join(map(repr, idle))} of the bounds; "
                "correct it, or remove it"
            )
        found: dict[str, Rule | None] = {}
        for pattern, rule in sorted(self.patterns, key=lambda each: each[0] not in names):
            for name in _meant(pattern, names):
                found.setdefault(name, rule)
        new = [(name, found[name]) for name in dict.fromkeys(names) if name in found]
        new = [(name, rule) for name, rule in new if name not in self.described]
        return replace(
            self,
            columns=(*self.columns, *((name, rule) for name, rule in new if rule is not None)),
            ignored=(*self.ignored, *(name for name, rule in new if rule is None)),
            patterns=(),
        )

    def without_persons(self) -> "Schema":
        """The schema of the same table in which records are not drawn by person."""
        if self.person is None:
            return self
        ignored = (*self.ignored, self.person)
        return replace(self, ignored=ignored, person=None, records_per_person=None)

    def to_toml(self) -> str:
        """The schema as a bounds file, from which `read_schema` reads an equal schema."""
        lines = []
        if self.person is not None:
            lines.append(f"person = {toml(self.person)}\n")
            lines.append(f"records_per_person = {self.records_per_person}\n\n")
        lines += [self.text.to_toml(), "[columns]\n"]
        lines += [line(escaped(name), rule) for name, rule in self.columns]
        lines += [line(escaped(name), None) for name in self.ignored]
        lines += [line(pattern, rule) for pattern, rule in self.patterns]
        return "".join(lines)

    def summary(self) -> str:
        """How many columns there are of each kind."""
        kinds = Counter(kind_of(rule) for _, rule in self.columns)
        lines = [f"{count} {kind}" for kind, count in kinds.items()]
        lines += [f"{len(self.ignored)} ignored"] * bool(self.ignored)
        lines += [f"pattern {pattern}" for pattern, _ in self.patterns]
        return "\n".join(lines)

    def canonical(self) -> str:
        """One line of JSON that is equal for equivalent schemas, for digests.

        It omits what changes no result: the order of the columns and of nominal categories, and
        whether two categories are ordered. Settings that are not used do not occur in it.
        """
        self._check_complete()
        columns = {name: _as_json(rule) for name, rule in self.columns}
        found: dict[str, Any] = {"columns": columns, "ignored": sorted(self.ignored)}
        if self.person is not None:
            found["person"] = [self.person, self.records_per_person]
        if self.text != TextFormat():
            found["text"] = self.text.to_json()
        return json.dumps(found, sort_keys=True, separators=(",", ":"))

    def fingerprint(self, salt: str) -> str:
        """A salted digest of the names and kinds of the columns, which identifies a data set.

        It does not contain bounds, so that these may be changed for the same data set. The column
        of ids is in it: a release that protects one record does not protect a person.
        """
        if not isinstance(salt, str):
            raise TypeError("expected salt as text")
        self._check_complete()
        kinds = sorted((name, type(rule).__name__.lower()) for name, rule in self.columns)
        person = [] if self.person is None else [self.person]
        return hashlib.sha256(json.dumps([salt, kinds, *person]).encode()).hexdigest()

    def _check_complete(self) -> None:
        if self.patterns:
            raise ValueError(
                f"the bounds have a pattern, {self.patterns[0][0]!r}, and the names of the columns "
                "are not known: use schema.for_columns(names)"
            )


def _meant(pattern: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that a pattern stands for."""
    return (pattern,) if pattern in names else tuple(n for n in names if matches(pattern, n))


def _as_json(rule: Rule) -> dict[str, Any]:
    # An earlier default was "refused". It stays in the JSON because the noise of seeded runs
    # depends on the digest.
    missing: Any = "bin" if isinstance(rule.missing, MissingBin) else "refused"
    if isinstance(rule.missing, FixedValue):
        value = rule.missing.value
        missing = {"value": ticks(value) if isinstance(rule, Times) else value}
    if isinstance(rule, Number | Times):
        number = rule.number
        found: dict[str, Any] = {"low": number.low, "high": number.high, "missing": missing}
        if number.cut_scale != "linear":
            found["scale"] = number.cut_scale
        if isinstance(rule, Times):
            found["kind"] = rule.kind
        elif rule.whole:
            found["kind"] = "whole"
        return found
    # No order of nominal categories is used, so digests do not depend on it.
    values = tuple(sorted(rule.values)) if rule.nominal else rule.values
    found = {"categories": values, "missing": missing}
    if rule.nominal:
        found["nominal"] = True
    if rule.other is not None:
        found["other"] = rule.other
    return found
