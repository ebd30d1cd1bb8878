"""Schemas from bounds by name, and from bounds files."""

import os
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dpmic_jax.data.schema.description import Schema, heading
from dpmic_jax.data.schema.rules import (
    Categories,
    FixedValue,
    MissingBin,
    Moment,
    Number,
    Rule,
    Times,
)

_WHAT_TO_WRITE = "write low = ... and high = ..., or categories = [...], or ignore = true"


class MissingRefusedWarning(UserWarning):
    """A bounds file asks to refuse missing values, which would reveal that there are some."""


Described = Schema | Mapping[str, Any] | str | os.PathLike[str]


def schema_of(bounds: Any) -> Schema:
    """The schema that an argument `bounds` describes.

    Args:
      bounds: a schema, the path of a bounds file, or a mapping from names to (low, high),
        `Number` or `Categories`.
    """
    if isinstance(bounds, Schema):
        return bounds
    if isinstance(bounds, str | os.PathLike):
        return read_schema(bounds)
    if not isinstance(bounds, Mapping):
        raise TypeError(
            "expected bounds by name, such as {'age': (18, 90)}, a Schema, or the path of a "
            f"bounds file, got {type(bounds).__name__}"
        )
    return Schema(tuple((name, _rule(name, given)) for name, given in bounds.items()))


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a bounds file."""
    path = Path(path)
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"no bounds file at {path}; `dpmic bounds template` writes a template"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:  # bounds are public, so the message may quote them
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    unknown = [key for key in parsed if key != "columns"]
    columns = parsed.get("columns", {})
    if unknown or not isinstance(columns, dict):
        raise ValueError(
            f"expected {path} to have tables like [columns.age] and nothing else, "
            f"got {unknown[0] if unknown else 'columns'!r}"
        )
    read = [(name, _from_toml(name, fields)) for name, fields in columns.items()]
    return Schema(
        tuple((name, rule) for name, rule in read if rule is not None),
        tuple(name for name, rule in read if rule is None),
    )


def template(names: Iterable[str]) -> str:
    """A bounds file to fill in, with the names of the columns and nothing else of the data."""
    return (
        "# The public description of each column: low and high, or categories, or ignore.\n"
        "# Do not take anything from the data: what is written here is not protected.\n"
    ) + "".join(
        f"\n{heading(name)}\n"
        "# low =\n"
        "# high =\n"
        "# categories = []      # all possible values\n"
        "# ordered = true       # the order of the categories is meaningful\n"
        '# missing = "bin"      # or { value = ... }; default: the midpoint of low and high,\n'
        "#                      # or a bin that no category uses\n"
        "# ignore = true        # do not screen this column\n"
        for name in names
    )


def _rule(name: str, given: Any) -> Rule:
    """The rule of one column of a mapping."""
    if isinstance(given, Rule):
        return given
    if isinstance(given, str) or not isinstance(given, Iterable) or len(ends := list(given)) != 2:
        raise ValueError(
            f"expected bounds of {name!r} as (low, high), Number, Times or Categories, got "
            f"{given!r}"
        )
    return _named(name, Times if isinstance(ends[0], Moment) else Number, *ends)


def _from_toml(name: str, fields: Any) -> Rule | None:
    """The rule of one column of a bounds file; None for an ignored column."""
    if not isinstance(fields, dict) or not fields:
        raise ValueError(f"column {name!r} has no bounds: {_WHAT_TO_WRITE}")
    scaled = {"scale", "breakpoints"}
    known = {"low", "high", "whole", *scaled, "categories", "ordered", "other", "missing", "ignore"}
    unknown = [key for key in fields if key not in known]
    if unknown:
        raise ValueError(
            f"column {name!r} has a field {unknown[0]!r}, which is unknown; "
            f"expected {', '.join(sorted(known))}"
        )
    if "ignore" in fields:
        if fields != {"ignore": True}:
            raise ValueError(
                f"column {name!r} has ignore and other fields; write ignore = true alone, or "
                "remove it"
            )
        return None
    missing = {"missing": given} if (given := _missing(name, fields)) is not None else {}
    number, nominal = {"low", "high"} & fields.keys(), "categories" in fields
    if number and nominal:
        raise ValueError(f"column {name!r} has both bounds and categories: keep one of them")
    if nominal:
        more = {key: fields[key] for key in ("ordered", "other") if key in fields}
        return _named(name, Categories, fields["categories"], **more, **missing)
    if len(number) < 2 or "ordered" in fields:
        lacking = " and ".join(end for end in ("low", "high") if end not in number) or "categories"
        raise ValueError(f"column {name!r} has no {lacking}: {_WHAT_TO_WRITE}")
    times = isinstance(fields["low"], Moment)
    more = {key: fields[key] for key in (*scaled, "whole") if key in fields}
    return _named(
        name, Times if times else Number, fields["low"], fields["high"], **more, **missing
    )


def _missing(name: str, fields: dict[str, Any]) -> MissingBin | FixedValue | None:
    """The rule for missing values in a bounds file; None for the default."""
    given = fields.get("missing")
    if given is None:
        return None
    if given in ("refused", "refuse"):
        warnings.warn(
            f"column {name!r} has missing = {given!r}, but a refusal would reveal that there are "
            "missing values: they count as the midpoint of low and high, or have a bin that no "
            "category uses; remove the field",
            MissingRefusedWarning,
            stacklevel=4,
        )
        return None
    if given == "bin":
        return MissingBin()
    if isinstance(given, dict) and given.keys() == {"value"}:
        return FixedValue(given["value"])
    raise ValueError(
        f'column {name!r} has missing = {given!r}; write missing = "bin" for their own bin, '
        "missing = { value = ... } for a public value, or leave it out for the midpoint of low and "
        "high, or a bin that no category uses"
    )


def _named(name: str, rule: type[Rule], *arguments: Any, **fields: Any) -> Rule:
    """Create a rule, with the name of its column in error messages."""
    try:
        return rule(*arguments, **fields)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r}: {error}") from None
