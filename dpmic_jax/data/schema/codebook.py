"""Bounds files from codebooks: tables with a line for each variable, or labels of data files.

A codebook is public, and so is everything that is written from it. What it does not say is left to
be filled in, as in a template.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from dpmic_jax.data.schema.fields import KINDS, rule_of
from dpmic_jax.data.schema.patterns import escaped
from dpmic_jax.data.schema.reading import listed
from dpmic_jax.data.schema.rules import twice
from dpmic_jax.data.schema.template import to_fill_in, unfilled
from dpmic_jax.data.schema.writing import line

# Names that other codebooks have for the same things.
_HEADINGS = {"variable": "name", "column": "name", "type": "kind", "min": "low", "max": "high"}
_HEADINGS |= {"values": "categories", "levels": "categories", "description": "label"}
_KINDS = {"integer": "whole", "int": "whole", "float": "number", "numeric": "number"}
_KINDS |= {"bool": "boolean", "logical": "boolean", "datetime": "timestamp"}
_KINDS |= dict.fromkeys(("text", "string", "character", "categorical", "factor"), "nominal")
_YES_OR_NO = {
    **dict.fromkeys(("yes", "true", "1", "x"), True),
    **dict.fromkeys(("no", "false", "0")),
}
_BOUNDS = {"low", "high", "bounds", "categories", "ignore"}


class Entry(NamedTuple):
    """What a codebook says of a variable: fields of a bounds file, and a remark."""

    name: str
    fields: dict[str, Any]
    remark: str = ""


def from_codebook(path: str | os.PathLike[str], *, labels: bool = False) -> str:
    """A bounds file from a codebook.

    Args:
      path: a CSV file with a line for each column and these headings, of which only name is
        needed: name, kind, low, high, categories (separated by | or ;), ordered, other, missing,
        scale, breakpoints, unit, ignore, label. Or a SAS (.sas7bdat, .xpt), Stata (.dta) or SPSS
        (.sav) file, of which only labels, types and missing ranges are read, and no values.
      labels: whether the table has the labels of such a file in place of its codes.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no codebook at {path}")
    if path.suffix.lower() in (".csv", ".tsv", ".txt"):
        return written(_rows(path), str(path))
    from dpmic_jax.data.schema.labels import entries

    return written(entries(path, labels=labels), str(path))


def written(entries: Iterable[Entry], where: str) -> str:
    """A bounds file with these entries; `where` names the codebook in error messages."""
    lines, problems, seen = [], [], set()
    for entry in entries:
        try:
            if entry.name in seen:
                raise ValueError("described twice; remove one of the lines")
            seen.add(entry.name)
            lines.append(_line(entry))
        except (TypeError, ValueError) as error:
            problems.append(f"column {entry.name!r}: {error}")
    if not lines and not problems:
        problems.append("expected a line for each column, got none")
    if problems:
        raise ValueError(listed(problems, where))
    return to_fill_in(lines)


def _line(entry: Entry) -> tuple[str, str]:
    """The line of a bounds file, and the comment on it."""
    remark = " ".join("".join(c if c.isprintable() else " " for c in entry.remark).split())
    kind = entry.fields.get("kind")
    if entry.fields.keys() & _BOUNDS or kind == "boolean" or (kind and kind not in KINDS):
        return line(escaped(entry.name), rule_of(entry.fields)).rstrip("\n"), remark
    return unfilled(escaped(entry.name), kind, remark)


def _rows(path: Path) -> list[Entry]:
    """The entries of a CSV file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    given = [heading.strip().lower() for heading in next(rows, [])]
    headings = [_HEADINGS.get(heading, heading) for heading in given]
    if "name" not in headings:
        raise ValueError(f"expected {path} to have a heading name, above the names of the columns")
    if again := [heading for heading in twice(headings) if heading in (*_READ, "name", "label")]:
        raise ValueError(f"{path} has two headings for {again[0]}; remove one of them")
    found, problems = [], []
    for row in filter(None, rows):
        cells = dict(zip(headings, map(str.strip, row), strict=False))
        name, label = cells.pop("name", ""), cells.pop("label", "")
        try:
            if len(row) > len(headings):
                raise ValueError(f"more cells than headings; quote cells that contain {delimiter}")
            found.append(Entry(name, _fields(cells), label))
        except ValueError as error:
            problems.append(f"column {name!r}: {error}")
    if problems:
        raise ValueError(listed(problems, str(path)))
    return found


def _fields(cells: dict[str, str]) -> dict[str, Any]:
    """The fields in a row of a codebook; empty cells say nothing."""
    given = {field: text for field, text in cells.items() if text and field in _READ}
    found = {field: _READ[field](text) for field, text in given.items()}
    if found.pop("ignore", None):
        return {"ignore": True}
    return {field: value for field, value in found.items() if value is not None}


def _list(text: str) -> list[Any]:
    """Values separated by | or ;. If all have the form 1 = male, the codes are the values."""
    parts = [part.strip() for part in re.split(r"[|;]", text) if part.strip()]
    if all("=" in part for part in parts):
        parts = [part.partition("=")[0].strip() for part in parts]
    if all(re.fullmatch(r"-?(0|[1-9]\d*)", part, re.ASCII) for part in parts):
        return list(map(int, parts))
    return parts


def _value(text: str) -> Any:
    """A number, a date, a timestamp, or a text."""
    readers: tuple[Callable[[str], Any], ...] = (
        int,
        float,
        date.fromisoformat,
        datetime.fromisoformat,
    )
    for read in readers:
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _yes(text: str) -> bool | None:
    if text.lower() not in _YES_OR_NO:
        raise ValueError(f"expected yes or no, got {text!r}")
    return _YES_OR_NO[text.lower()]


def _missing(text: str) -> Any:
    return text if text in ("bin", "default") else {"value": _value(text)}


_READ: dict[str, Callable[[str], Any]] = {
    "kind": lambda text: _KINDS.get(text.lower(), text.lower()),
    "low": _value,
    "high": _value,
    "categories": _list,
    "breakpoints": lambda text: [_value(part.strip()) for part in re.split(r"[|;]", text)],
    "ordered": _yes,
    "ignore": _yes,
    "other": lambda text: _list(text)[0],
    "missing": _missing,
    "scale": str,
    "unit": str,
}
