"""The schema of a table: rules by name, as a bounds file, as JSON and as a fingerprint."""

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
      ignored: names of columns that are there and not screened.
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
        return dict(self.columns)[name]

    def to_toml(self) -> str:
        """A bounds file; `read_schema` gives an equal schema back."""
        tables = [f"{heading(name)}\n{_fields(rule)}" for name, rule in self.columns]
        tables += [f"{heading(name)}\nignore = true\n" for name in self.ignored]
        return "\n".join(tables)

    def canonical(self) -> str:
        """One line of JSON, the same for all ways to write this schema; for digests.

        The order of columns and whether a category's order is meant are left out: neither
        changes a result.
        """
        columns = {name: _as_json(rule) for name, rule in self.columns}
        return json.dumps(
            {"columns": columns, "ignored": sorted(self.ignored)},
            sort_keys=True,
            separators=(",", ":"),
        )

    def fingerprint(self, salt: str) -> str:
        """A digest of the names and kinds of columns, to tell data sets apart.

        Bounds are not in it, so they may be changed and the data set stays the same one.
        """
        if not isinstance(salt, str):
            raise TypeError("expected salt as text")
        kinds = sorted((name, type(rule).__name__.lower()) for name, rule in self.columns)
        return hashlib.sha256(json.dumps([salt, kinds]).encode()).hexdigest()


def heading(name: str) -> str:
    """What a column's table in a bounds file begins with."""
    return f"[columns.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else _text(name)}]"


def _text(value: Value) -> str:
    """A value in TOML, which shares JSON's escapes and forbids one character more."""
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
    # "refused" is what the default was once: digests of bounds go on being what they were, and
    # with them the noise of seeded runs.
    missing: Any = "bin" if isinstance(rule.missing, MissingBin) else "refused"
    if isinstance(rule.missing, FixedValue):
        missing = {"value": rule.missing.value}
    if isinstance(rule, Number):
        return {"low": rule.low, "high": rule.high, "missing": missing}
    return {"categories": rule.values, "missing": missing}
