"""The rule of one column, from what a bounds file says of it."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import partial
from numbers import Real
from typing import Any

from dpmic_jax.data.schema.durations import UNITS, length
from dpmic_jax.data.schema.rules import (
    Categories,
    FixedValue,
    MissingBin,
    Moment,
    Number,
    Rule,
    Times,
)

Fields = Mapping[str, Any]

_BOUNDS = ("bounds", "low", "high")
_SCALED = (*_BOUNDS, "scale", "breakpoints")
_LISTED = ("categories", "ordered", "other")
# The fields of each kind of column, besides `kind` and `missing`.
KINDS = {
    "number": (*_SCALED, "whole"),
    "whole": (*_BOUNDS, "breakpoints"),
    "boolean": (),
    "nominal": _LISTED,
    "ordered": _LISTED,
    "date": (*_BOUNDS, "breakpoints"),
    "timestamp": (*_BOUNDS, "breakpoints"),
    "duration": (*_SCALED, "unit"),
}
KNOWN = ("ignore", "kind", "missing", "unit", "whole", *_SCALED, *_LISTED)
# Fields that a [defaults] table may have.
DEFAULTS = ("missing", "ordered", "other")

# Of earlier versions. A refusal would reveal that there are missing values.
REFUSED = ("refused", "refuse")

WHAT_TO_WRITE = 'write [low, high], or categories such as ["a", "b"], or { ignore = true }'


def rule_of(given: Any, defaults: Fields | None = None) -> Rule | None:
    """The rule that a value of a bounds file describes; None for an ignored column.

    Args:
      given: a list or a table of fields.
      defaults: fields of every column that has such a field and does not set it.
    """
    fields = _as_table(given)
    if unknown := [field for field in fields if field not in KNOWN]:
        raise ValueError(f"unknown {_listed(unknown)}; expected {', '.join(sorted(KNOWN))}")
    if "ignore" in fields:
        if fields != {"ignore": True}:
            raise ValueError(
                "ignore and other fields; write ignore = true and nothing else, or remove it"
            )
        return None
    kind = _kind(fields)
    allowed = ("kind", "missing", *KINDS[kind])
    if wrong := [field for field in fields if field not in allowed]:
        raise ValueError(
            f"{_listed(wrong)} does not fit kind = {kind!r}, which has {', '.join(allowed)}"
        )
    usual = {field: value for field, value in (defaults or {}).items() if field in allowed}
    return _MAKE[kind]({**usual, **fields})


def _as_table(given: Any) -> dict[str, Any]:
    """The fields that are meant, also in the short forms."""
    if given in ([], {}) or not isinstance(given, dict | list):
        raise ValueError(f"no bounds: {WHAT_TO_WRITE}")
    if isinstance(given, dict):
        return given
    if any(all(isinstance(value, kind) for value in given) for kind in (str, bool)):
        return {"categories": given}
    if len(given) == 2 and any(all(isinstance(v, kind) for v in given) for kind in (Real, Moment)):
        return {"bounds": given}
    raise ValueError(
        "expected two numbers or two dates as bounds, or texts as categories, got "
        f"{_shown(given)}; write {{ categories = [1, 2, 3] }} for whole numbers that are categories"
    )


def _kind(fields: Fields) -> str:
    """The kind that is declared, or else the one of what the bounds are."""
    kind = fields.get("kind")
    if kind is None:
        return _inferred(fields)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind = {kind!r}; expected one of {', '.join(KINDS)}")
    return kind


def _inferred(fields: Fields) -> str:
    ends = [field for field in _BOUNDS if field in fields]
    if ends and "categories" in fields:
        raise ValueError("both bounds and categories: keep one of them")
    if "categories" in fields:
        return "nominal"
    if not ends and {"ordered", "other"} & fields.keys():
        raise ValueError(f"no categories: {WHAT_TO_WRITE}")
    if "unit" in fields:
        return "duration"
    low, _ = _ends(fields)
    kinds = {str: "duration", timedelta: "duration", datetime: "timestamp", date: "date"}
    return kinds.get(type(low), "number")


def _ends(fields: Fields) -> tuple[Any, Any]:
    """Low and high, which a table has as such or as `bounds`."""
    pair = fields.get("bounds")
    if pair is None:
        if lacking := [end for end in ("low", "high") if end not in fields]:
            raise ValueError(f"no {' and '.join(lacking)}: {WHAT_TO_WRITE}")
        return fields["low"], fields["high"]
    if {"low", "high"} & fields.keys():
        raise ValueError("both bounds and low or high: keep one of them")
    if pair == []:
        raise ValueError("no bounds: write bounds = [low, high], or { ignore = true }")
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError(f"expected bounds = [low, high], got {_shown(pair)}")
    return pair[0], pair[1]


def _number(fields: Fields, *, whole: bool = False) -> Number:
    whole = whole or fields.get("whole", False)
    return Number(*_ends(fields), whole=whole, **_scaled(fields), **_missing(fields))


def _boolean(fields: Fields) -> Categories:
    return Categories((False, True), **_missing(fields))


def _categories(fields: Fields, *, ordered: bool = False) -> Categories:
    if "categories" not in fields:
        raise ValueError(f"no categories: {WHAT_TO_WRITE}")
    if fields["categories"] == []:
        raise ValueError("no categories: write all that may occur, at least one")
    if fields.get("kind") == "nominal" and fields.get("ordered"):
        raise ValueError('both kind = "nominal" and ordered = true: keep one of them')
    if ordered and not fields.get("ordered", True):
        raise ValueError('both kind = "ordered" and ordered = false: keep one of them')
    return Categories(
        fields["categories"],
        ordered=ordered or fields.get("ordered", False),
        other=fields.get("other"),
        **_missing(fields),
    )


def _times(fields: Fields, *, kind: str) -> Times:
    found = Times(*_ends(fields), **_scaled(fields), **_missing(fields))
    if found.kind.split()[0] != kind:
        example = {"date": "2024-12-31", "timestamp": "2024-12-31T00:00:00"}[kind]
        raise ValueError(
            f"expected {kind}s such as {example} for kind = {kind!r}, got {found.kind}s"
        )
    return found


def _duration(fields: Fields) -> Times:
    unit = fields.get("unit")
    if unit is not None and unit not in UNITS:
        raise ValueError(f"unit = {unit!r}; expected one of {', '.join(UNITS)}")
    read = partial(length, unit=unit)
    low, high = map(read, _ends(fields))
    scaled = _scaled(fields)
    if "breakpoints" in scaled:
        scaled["breakpoints"] = list(map(read, scaled["breakpoints"]))
    more = {**scaled, **_missing(fields)}
    if isinstance(fixed := more.get("missing"), FixedValue):
        more["missing"] = FixedValue(read(fixed.value))
    return Times(low, high, **more)


_MAKE = {
    "number": _number,
    "whole": partial(_number, whole=True),
    "boolean": _boolean,
    "nominal": _categories,
    "ordered": partial(_categories, ordered=True),
    "date": partial(_times, kind="date"),
    "timestamp": partial(_times, kind="timestamp"),
    "duration": _duration,
}


def _scaled(fields: Fields) -> dict[str, Any]:
    if not isinstance(points := fields.get("breakpoints", []), list):
        raise ValueError(f"expected breakpoints as a list, got {_shown(points)}")
    return {field: fields[field] for field in ("scale", "breakpoints") if field in fields}


def _missing(fields: Fields) -> dict[str, Any]:
    """How missing values are treated; nothing for the default of the kind."""
    given = fields.get("missing", "default")
    if given in ("default", *REFUSED):
        return {}
    if given == "bin":
        return {"missing": MissingBin()}
    if isinstance(given, dict) and given.keys() == {"value"}:
        return {"missing": FixedValue(given["value"])}
    raise ValueError(
        f'missing = {_shown(given)}; write missing = "bin" for their own bin, '
        "missing = { value = ... } for a public value, or leave it out for the midpoint of low and "
        "high, or a bin that no category uses"
    )


def _listed(fields: list[str]) -> str:
    return ("field " if len(fields) == 1 else "fields ") + ", ".join(map(repr, fields))


def _shown(value: Any) -> str:
    """A value of a bounds file, which is public, in an error message."""
    return str(value) if isinstance(value, date) else repr(value)
