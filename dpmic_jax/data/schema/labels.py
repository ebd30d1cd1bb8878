"""Labels, types and missing ranges of SAS, Stata and SPSS files. No value is read."""

import re
from pathlib import Path
from typing import Any

from dpmic_jax.data.schema.codebook import Entry

# The reader of each kind of file; SPSS declares ranges of values that mean missing.
_READERS = {
    ".sav": ("read_sav", {"user_missing": True}),
    ".zsav": ("read_sav", {"user_missing": True}),
    ".dta": ("read_dta", {}),
    ".sas7bdat": ("read_sas7bdat", {}),
    ".xpt": ("read_xport", {}),
}
# How these programs call the formats of dates and of times.
_TIME = re.compile(r"DATETIME|YMDHMS|E8601DT|%tc", re.IGNORECASE)
_DAY = re.compile(
    r"[AES]?DATE|JDATE|YYMMDD|MMDDYY|DDMMYY|YYYY-?MM-?DD|DD-MMM|E8601DA|B8601DA|%td", re.IGNORECASE
)
_WHOLE = ("int8", "int16", "int32")


def entries(path: Path, *, labels: bool) -> list[Entry]:
    """What a file says of its variables, besides their values."""
    meta = _metadata(path)
    return [_entry(name, meta, labels=labels) for name in meta.column_names]


def _metadata(path: Path) -> Any:
    if path.suffix.lower() not in _READERS:
        raise ValueError(
            f"expected a codebook in a file ending in .csv, {', '.join(_READERS)}, got {path}"
        )
    try:
        import pyreadstat
    except ImportError:
        raise ImportError(
            f'reading {path} needs pyreadstat: pip install "dpmic_jax[codebooks]"'
        ) from None
    reader, settings = _READERS[path.suffix.lower()]
    try:
        return getattr(pyreadstat, reader)(path, metadataonly=True, **settings)[1]
    except (pyreadstat.ReadstatError, UnicodeError):
        pass
    raise ValueError(f"{path} is damaged, or not a {path.suffix} file; write it again")


def _entry(name: str, meta: Any, *, labels: bool) -> Entry:
    text = meta.readstat_variable_types[name] == "string"
    missing = meta.missing_ranges.get(name, [])
    named = {
        code: label
        for code, label in meta.variable_value_labels.get(name, {}).items()
        if text == isinstance(code, str) and not _within(code, missing)
    }
    label = meta.column_names_to_labels[name] or ""
    legend = ", ".join(f"{_shown(code)} {said}" for code, said in named.items())
    measure = meta.variable_measure.get(name)
    # A number may have a label for one of its values.
    if len(named) < 2 or measure == "scale" or not all(map(_is_category, named)):
        return Entry(name, _kind(name, meta), _joined(label, legend, _what_to_do(missing)))
    codes = [code if text else int(code) for code in named]
    fields: dict[str, Any] = {"categories": list(named.values()) if labels else codes}
    if measure == "ordinal":
        fields["ordered"] = True
    return Entry(name, fields, label if labels else _joined(label, legend))


def _kind(name: str, meta: Any) -> dict[str, Any]:
    """The kind of a variable without labels, by its type and by how it is shown."""
    kind, shown = meta.readstat_variable_types[name], meta.original_variable_types[name] or ""
    if kind == "string":
        return {"kind": "nominal"}
    if _TIME.match(shown):
        return {"kind": "timestamp"}
    if _DAY.match(shown):
        return {"kind": "date"}
    return {"kind": "whole" if kind in _WHOLE else "number"}


def _is_category(code: Any) -> bool:
    return isinstance(code, str) or float(code).is_integer()


def _within(code: Any, ranges: list[dict[str, Any]]) -> bool:
    return any(isinstance(code, type(r["lo"])) and r["lo"] <= code <= r["hi"] for r in ranges)


def _what_to_do(missing: list[dict[str, Any]]) -> str:
    """What to do about numbers that the file declares as missing."""
    ends = ((_shown(each["lo"]), _shown(each["hi"])) for each in missing)
    shown = ", ".join(low if low == high else f"{low} to {high}" for low, high in ends)
    return f"where it is {shown}, leave the cell of the table empty" if shown else ""


def _joined(*remarks: str) -> str:
    return "; ".join(filter(None, remarks))


def _shown(code: Any) -> str:
    return str(int(code)) if not isinstance(code, str) and _is_category(code) else str(code)
