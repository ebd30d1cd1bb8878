"""The schema of a table: rules by column name, written as TOML, JSON or a fingerprint."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dpmic_jax.data.schema.rules import (
    FixedValue,
    MissingBin,
    Moment,
    Number,
    Rule,
    Times,
    Value,
    ticks,
    twice,
)
from dpmic_jax.data.schema.text_format import TextFormat


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
    """

    columns: tuple[tuple[str, Rule], ...]
    ignored: tuple[str, ...] = ()
    person: str | None = None
    records_per_person: int | None = None
    text: TextFormat = TextFormat()

    def __post_init__(self):
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "ignored", tuple(self.ignored))
        person = () if self.person is None else (self.person,)
        names = [*(name for name, _ in self.columns), *self.ignored, *person]
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"expected column names as text, got {name!r}; rename the column")
        if again := twice(names):
            raise ValueError(f"expected one description of column {again[0]!r}, got two")
        if not self.columns:
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

    def to_toml(self) -> str:
        """The schema as a bounds file, from which `read_schema` reads an equal schema."""
        tables = []
        if self.person is not None:
            tables.append(
                f"person = {_text(self.person)}\nrecords_per_person = {self.records_per_person}\n"
            )
        tables += [f"{heading(name)}\n{_fields(rule)}" for name, rule in self.columns]
        tables += [f"{heading(name)}\nignore = true\n" for name in self.ignored]
        return "\n".join(tables)

    def canonical(self) -> str:
        """One line of JSON that is equal for equivalent schemas, for digests.

        It omits what changes no result: the order of the columns and of nominal categories, and
        whether two categories are ordered. Settings that are not used do not occur in it.
        """
        columns = {name: _as_json(rule) for name, rule in self.columns}
        found: dict[str, Any] = {"columns": columns, "ignored": sorted(self.ignored)}
        if self.person is not None:
            found["person"] = [self.person, self.records_per_person]
        if self.text != TextFormat():
            found["text"] = self.text.to_json()
        return json.dumps(found, sort_keys=True, separators=(",", ":"))

    def fingerprint(self, salt: str) -> str:
        """A salted digest of the names and kinds of the columns, which identifies a data set.

        It does not contain bounds, so that these may be changed for the same data set.
        """
        if not isinstance(salt, str):
            raise TypeError("expected salt as text")
        kinds = sorted((name, type(rule).__name__.lower()) for name, rule in self.columns)
        return hashlib.sha256(json.dumps([salt, kinds]).encode()).hexdigest()


def heading(name: str) -> str:
    """The heading of a column's table in a bounds file."""
    return f"[columns.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else _text(name)}]"


def _text(value: Value | Moment) -> str:
    """A value in TOML, which has the escapes of JSON and forbids one more character."""
    if isinstance(value, timedelta):
        return f'"{iso_duration(value)}"'
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() and abs(value) < 2**53 else value)
    if isinstance(value, str | int):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return value.isoformat()  # dates and timestamps are values of TOML


def iso_duration(value: timedelta) -> str:
    """A duration as ISO 8601 writes it, such as P3DT0.5S."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = f"{value.seconds}.{value.microseconds:06}".rstrip("0").rstrip(".")
    return f"{sign}P{value.days}DT{seconds}S"


def _fields(rule: Rule) -> str:
    if isinstance(rule, Number | Times):
        lines = [f"low = {_text(rule.low)}", f"high = {_text(rule.high)}"]
        lines += [f"scale = {_text(rule.scale)}"] * (rule.scale != "linear")
        lines += [f"breakpoints = {_list(rule.breakpoints)}"] * bool(rule.breakpoints)
        lines += ["whole = true"] * (isinstance(rule, Number) and rule.whole)
    else:
        lines = [f"categories = {_list(rule.values)}"]
        lines += ["ordered = true"] * rule.ordered
        lines += [f"other = {_text(rule.other)}"] if rule.other is not None else []
    if isinstance(rule.missing, MissingBin):
        lines.append('missing = "bin"')
    elif isinstance(rule.missing, FixedValue):
        lines.append(f"missing = {{ value = {_text(rule.missing.value)} }}")
    return "\n".join(lines) + "\n"


def _list(values: Any) -> str:
    return f"[{', '.join(map(_text, values))}]"


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
