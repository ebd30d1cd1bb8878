"""Rules as a bounds file has them, one line a column."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from dpmic_jax.data.schema.durations import iso_duration
from dpmic_jax.data.schema.rules import (
    Categories,
    FixedValue,
    MissingBin,
    Moment,
    Number,
    Rule,
    Times,
    Value,
    kind_of,
)


def line(heading: str, rule: Rule | None) -> str:
    """The line of a column; the rule of one that is ignored is None."""
    return f"{key(heading)} = {'{ ignore = true }' if rule is None else _rule(rule)}\n"


def key(heading: str) -> str:
    """A key of TOML."""
    return heading if re.fullmatch("[A-Za-z0-9_-]+", heading) else toml(heading)


def toml(value: Value | Moment) -> str:
    """A value in TOML, which has the escapes of JSON and forbids one more character."""
    if isinstance(value, timedelta):
        return f'"{iso_duration(value)}"'
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() and abs(value) < 2**53 else value)
    if isinstance(value, str | int):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, datetime) and (shift := value.utcoffset()) is not None:
        # TOML has whole minutes; the instant is the same in every zone.
        value = value if shift % timedelta(minutes=1) == timedelta(0) else value.astimezone(UTC)
    return value.isoformat()


def array(values: Iterable[Value | Moment]) -> str:
    """A list in TOML."""
    return f"[{', '.join(map(toml, values))}]"


def table(fields: dict[str, str]) -> str:
    """A table of values that are in TOML already, in one line."""
    return f"{{ {', '.join(f'{name} = {value}' for name, value in fields.items())} }}"


def _rule(rule: Rule) -> str:
    fields = _categories(rule) if isinstance(rule, Categories) else _bounds(rule)
    if isinstance(rule.missing, MissingBin):
        fields["missing"] = '"bin"'
    elif isinstance(rule.missing, FixedValue):
        fields["missing"] = table({"value": toml(rule.missing.value)})
    short = fields.keys() == {"bounds"} or (
        fields.keys() == {"categories"} and isinstance(rule, Categories) and rule.kind is str
    )
    return next(iter(fields.values())) if short else table(fields)


def _bounds(rule: Number | Times) -> dict[str, str]:
    kind = kind_of(rule)
    fields = {"kind": toml(kind)} if kind in ("whole", "duration") else {}
    fields["bounds"] = array((rule.low, rule.high))
    if rule.scale != "linear":
        fields["scale"] = toml(rule.scale)
    if rule.breakpoints:
        fields["breakpoints"] = array(rule.breakpoints)
    return fields


def _categories(rule: Categories) -> dict[str, str]:
    fields = {"categories": array(rule.values)}
    if rule.ordered:
        fields["ordered"] = "true"
    if rule.other is not None:
        fields["other"] = toml(rule.other)
    return fields
