"""Templates of bounds files, with one line a column to fill in."""

import re
from collections.abc import Iterable, Mapping

from dpmic_jax.data.schema.patterns import escaped, matches
from dpmic_jax.data.schema.text_format import TextFormat
from dpmic_jax.data.schema.writing import key

_USUAL = TextFormat()

# So many columns of one kind whose names differ in a number alone share a line.
MANY = 4

_HEADING = """\
# The public description of each column. Take nothing from the data: what is written here is not
# protected. Fill in the brackets:
#   numbers     [0, 100]                    low and high; what is outside counts as them
#   categories  ["a", "b", "c"]             all that may occur
#   dates       [2015-01-01, 2024-12-31]
#   ignored     { ignore = true }           not screened
# `dpmic bounds check` says what is left to do.

# person = "..."              # the column that says whose record it is, if somebody has several
# records_per_person = 1      # with how many records each person counts

"""

_BOUNDS = "low, high"
# What stands to the right of a name, by kind, and what it asks for.
_LINES = {
    None: ("[]", f"{_BOUNDS}; or categories; or ignore it"),
    "number": ("[]", _BOUNDS),
    "whole": (
        '{ kind = "whole", bounds = [] }',
        f"{_BOUNDS}; or {{ categories = [1, 2, 3] }} if codes",
    ),
    "boolean": ('{ kind = "boolean" }', ""),
    "nominal": ("[]", "categories; or ignore it"),
    "ordered": ('{ kind = "ordered", categories = [] }', "categories in order"),
    "date": ("[]", "first and last day"),
    "timestamp": ("[]", "first and last time, such as 2024-12-31T23:59:59"),
    "timestamp with time zone": ("[]", "first and last time, such as 2024-12-31T23:59:59Z"),
    "duration": ('{ kind = "duration", bounds = [] }', 'shortest and longest, such as "P3D"'),
    "ignored": ("{ ignore = true }", "of a type that cannot be screened"),
}


def template(columns: Mapping[str, str | None] | Iterable[str], text: TextFormat = _USUAL) -> str:
    """A bounds file to fill in.

    Args:
      columns: the names of the columns; or their kinds by name, as `column_kinds` finds them.
      text: how the table is written, for the [file] table, if it is a text file.
    """
    kinds = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
    return to_fill_in((_line(*group) for group in _groups(kinds)), text)


def unfilled(heading: str, kind: str | None, comment: str = "") -> tuple[str, str]:
    """What is written for a column to be filled in, and the comment on it."""
    value, asked = _LINES[kind]
    return f"{key(heading)} = {value}", "; ".join(filter(None, (asked, comment)))


def to_fill_in(lines: Iterable[tuple[str, str]], text: TextFormat = _USUAL) -> str:
    """A bounds file of these lines, with their comments, under a heading that explains them."""
    return f"{_HEADING}{text.to_toml()}[columns]\n{_aligned(lines)}"


def _aligned(lines: Iterable[tuple[str, str]]) -> str:
    # Lines with their comments below each other.
    lines = list(lines)
    width = max((len(text) for text, comment in lines if comment and len(text) < 60), default=0)
    return "".join(
        f"{text.ljust(width)}  # {comment}\n" if comment else f"{text}\n" for text, comment in lines
    )


def _line(heading: str, kind: str | None, names: list[str]) -> tuple[str, str]:
    many = f"{len(names)} columns, {names[0]} to {names[-1]}" if len(names) > 1 else ""
    return unfilled(heading, kind, many if many.isprintable() else f"{len(names)} columns")


def _groups(kinds: Mapping[str, str | None]) -> list[tuple[str, str | None, list[str]]]:
    """Headings in the order of the table, each with its kind and the columns it stands for."""
    alike: dict[tuple[str, str | None], list[str]] = {}
    for name, kind in kinds.items():
        alike.setdefault((_pattern(name), kind), []).append(name)
    groups: list[tuple[str, str | None, list[str]]] = []
    for name, kind in kinds.items():
        pattern, names = _pattern(name), alike[_pattern(name), kind]
        if len(names) < MANY or names != [other for other in kinds if matches(pattern, other)]:
            groups.append((escaped(name), kind, [name]))
        elif name == names[0]:
            groups.append((pattern, kind, names))
    return groups


def _pattern(name: str) -> str:
    return re.sub(r"\d+", "*", escaped(name))
