"""The schema of a table: rules by column name, written as TOML, JSON or a fingerprint."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from dpmic_jax.data.schema.rules import FixedValue, MissingBin, Number, Rule, Value, twice


@dataclass(frozen=True)
class Schema:
    """The public description of a table.

    Attributes:
      columns: (name, rule) of the columns to screen.
      ignored: names of other columns of the table, which are not screened.
    """

    columns: tuple[tuple[str, Rule], ...]
    ignored: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "ignored", tuple(self.ignored))
        names = [name for name, _ in self.columns] + list(self.ignored)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"expected column names as text, got {name!r}; rename the column")
        if again := twice(names):
            raise ValueError(f"expected one description of column {again[0]!r}, got two")
        if not self.columns:
            raise ValueError("expected at least one column that is not ignored, got none")

    def __getitem__(self, name: str) -> Rule:
        """The rule of a screened column."""
        return dict(self.columns)[name]

    def to_toml(self) -> str:
        """The schema as a bounds file, from which `read_schema` reads an equal schema."""
        tables = [f"{heading(name)}\n{_fields(rule)}" for name, rule in self.columns]
        tables += [f"{heading(name)}\nignore = true\n" for name in self.ignored]
        return "\n".join(tables)

    def canonical(self) -> str:
        """One line of JSON that is equal for equivalent schemas, for digests.

        It omits the order of the columns and whether categories are ordered, which change no
        result.
        """
        columns = {name: _as_json(rule) for name, rule in self.columns}
        return json.dumps(
            {"columns": columns, "ignored": sorted(self.ignored)},
            sort_keys=True,
            separators=(",", ":"),
        )

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


def _text(value: Value) -> str:
    """A value in TOML, which has the escapes of JSON and forbids one more character."""
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() and abs(value) < 2**53 else value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _fields(rule: Rule) -> str:
    if isinstance(rule, Number):
        lines = [f"low = {_text(rule.low)}", f"high = {_text(rule.high)}"]
    else:
        lines = [f"categories = [{', '.join(map(_text, rule.values))}]"]
        lines += ["ordered = true"] * rule.ordered
    if isinstance(rule.missing, MissingBin):
        lines.append('missing = "bin"')
    elif isinstance(rule.missing, FixedValue):
        lines.append(f"missing = {{ value = {_text(rule.missing.value)} }}")
    return "\n".join(lines) + "\n"


def _as_json(rule: Rule) -> dict[str, Any]:
    # An earlier default was "refused". It stays in the JSON because the noise of seeded runs
    # depends on the digest.
    missing: Any = "bin" if isinstance(rule.missing, MissingBin) else "refused"
    if isinstance(rule.missing, FixedValue):
        missing = {"value": rule.missing.value}
    if isinstance(rule, Number):
        return {"low": rule.low, "high": rule.high, "missing": missing}
    return {"categories": rule.values, "missing": missing}
