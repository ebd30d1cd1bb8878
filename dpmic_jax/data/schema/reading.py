"""Schemas from bounds by name, and from bounds files."""

import os
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields as fields_of
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dpmic_jax.data.schema.description import Schema
from dpmic_jax.data.schema.fields import DEFAULTS, REFUSED, rule_of
from dpmic_jax.data.schema.patterns import is_pattern, unescaped
from dpmic_jax.data.schema.rules import Categories, Moment, Number, Rule, Times
from dpmic_jax.data.schema.text_format import TextFormat

_TABLES = ("columns", "defaults", "file", "person", "records_per_person")

Described = Schema | Mapping[str, Any] | str | os.PathLike[str]
T = TypeVar("T")


class MissingRefusedWarning(UserWarning):
    """A bounds file asks to refuse missing values, which would reveal that there are some."""


def schema_of(bounds: Any) -> Schema:
    """The schema that an argument `bounds` describes.

    Args:
      bounds: a schema, the path of a bounds file, or a mapping from names, or patterns such as
        `tax*`, to (low, high), a list of categories, `Number`, `Times` or `Categories`.
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
    rules = {name: _rule(name, given) for name, given in bounds.items()}
    patterns = [name for name in rules if isinstance(name, str) and is_pattern(name)]
    return Schema(
        tuple((name, rule) for name, rule in rules.items() if name not in patterns),
        patterns=tuple((name, rules[name]) for name in patterns),
    )


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a bounds file. One error names everything that is wrong with it."""
    schema, problems = examine(path)
    if problems or schema is None:
        raise ValueError(listed(problems, str(path)))
    return schema


def examine(path: str | os.PathLike[str]) -> tuple[Schema | None, list[str]]:
    """What a bounds file says, and everything that is wrong with it.

    In the schema, columns with a problem are ignored. It is None if nothing else is left.
    """
    parsed, problems = _parsed(Path(path)), []
    if unknown := [key for key in parsed if key not in _TABLES]:
        problems.append(
            f"unknown {', '.join(map(repr, unknown))}; expected tables [columns], [defaults] and "
            "[file], and person with records_per_person, before the tables"
        )
    defaults = _try(_defaults, parsed.get("defaults", {}), "[defaults]: ", problems) or {}
    text = _try(_text_format, parsed.get("file", {}), "[file]: ", problems) or TextFormat()
    columns = parsed.get("columns", {})
    if not isinstance(columns, dict):
        columns = {}
        problems.append("expected columns as a table, such as [columns]")
    rules: dict[str, Rule | None] = {}
    for name, given in columns.items():
        _warn_if_refused(name, given)
        if name == parsed.get("person") and given == []:  # as in a template
            given = {"ignore": True}
        # In TOML, what follows a table's heading belongs to the table.
        late = " (write it above the first table)" * (
            name in _TABLES and not isinstance(given, list)
        )
        where = f"column {name!r}{late}: "
        rules[name] = _try(partial(rule_of, defaults=defaults), given, where, problems)
    found = _try(partial(_schema, rules, text), parsed, "", unusable := [])
    # That no column is left says nothing new if it is because of their problems.
    return found, problems + unusable * (not problems or any(rules.values()))


def listed(problems: list[str], where: str) -> str:
    """The text of an error with all problems, one a line."""
    if len(problems) == 1:
        return f"{where}: {problems[0]}"
    return "\n  ".join([f"{where} has {len(problems)} problems:", *problems])


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"no bounds file at {path}; `dpmic bounds template` writes a template"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:  # bounds are public, so the message may quote them
        raise ValueError(f"{path} is not a TOML file: {error}") from None


def _try(read: Callable[[Any], T], given: Any, where: str, problems: list[str]) -> T | None:
    """What is read; or None, with what is wrong with it added to the problems."""
    try:
        return read(given)
    except (TypeError, ValueError) as error:
        problems.append(f"{where}{error}")
        return None


def _schema(rules: dict[str, Rule | None], text: TextFormat, top: dict[str, Any]) -> Schema:
    """The schema of a file, from the rules of its columns and the values at its top."""
    person = top.get("person")
    if person is not None and not isinstance(person, str):
        raise ValueError(f"expected person as the name of a column, got {person!r}")
    names = {name: unescaped(name) for name in rules if not is_pattern(name)}
    return Schema(
        tuple((names[name], rule) for name, rule in rules.items() if name in names and rule),
        # The column of persons is not screened, whether or not the file says so.
        tuple(n for name, n in names.items() if rules[name] is None and n != person),
        person,
        top.get("records_per_person"),
        text,
        tuple((name, rule) for name, rule in rules.items() if name not in names),
    )


def _defaults(given: Any) -> dict[str, Any]:
    return _checked(given, DEFAULTS)


def _text_format(given: Any) -> TextFormat:
    return TextFormat(**_checked(given, [field.name for field in fields_of(TextFormat)]))


def _checked(given: Any, known: Sequence[str]) -> dict[str, Any]:
    """A table of a bounds file, if it has known fields only."""
    if not isinstance(given, dict):
        raise ValueError(f"expected a table of {', '.join(known)}, got {given!r}")
    if unknown := [field for field in given if field not in known]:
        raise ValueError(
            f"unknown {', '.join(map(repr, unknown))}; expected {', '.join(sorted(known))}"
        )
    return given


def _rule(name: str, given: Any) -> Rule:
    """The rule of one column of a mapping."""
    if isinstance(given, Rule):
        return given
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)
    values: list[Any] = list(given) if several else []
    try:
        if values and all(isinstance(value, str) for value in values):
            return Categories(tuple(values))
        if len(values) == 2:
            low, high = values
            return Times(low, high) if isinstance(low, Moment) else Number(low, high)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r}: {error}") from None
    raise ValueError(
        f"expected bounds of {name!r} as (low, high), a list of texts, Number, Times or "
        f"Categories, got {given!r}"
    )


def _warn_if_refused(name: str, given: Any) -> None:
    if isinstance(given, dict) and (missing := given.get("missing")) in REFUSED:
        warnings.warn(
            f"column {name!r} has missing = {missing!r}, but a refusal would reveal that there are "
            "missing values: they count as the midpoint of low and high, or have a bin that no "
            "category uses; remove the field",
            MissingRefusedWarning,
            stacklevel=4,
        )
