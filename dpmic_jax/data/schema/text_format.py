"""How the cells of a text file are written: the [file] table of a bounds file."""

import codecs
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpmic_jax.data.schema.writing import array, toml

# Texts that mean a missing value, unless others are declared.
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")

_IN_NUMBERS = "0123456789+-eE%"
_DIRECTIVE = re.compile("%.?", re.DOTALL)
# Those that do not depend on a language.
_DIRECTIVES = {"%Y", "%y", "%m", "%d", "%j", "%H", "%M", "%S", "%f", "%z", "%%"}


@dataclass(frozen=True)
class TextFormat:
    """How the cells of a text file are written.

    Attributes:
      delimiter: the character between two cells; empty for a tab in a .tsv file, and a comma in
        others.
      decimal: the decimal mark of numbers.
      thousands: the character that groups digits; empty for none.
      percent: whether numbers may end in a percent sign, which is not a part of them: 12 % is 12.
      encoding: of the file, as Python calls it.
      missing: texts that mean a missing value.
      dates: how dates and timestamps are written, in the directives of Python's `strptime` that are
        numbers, such as %d.%m.%Y; empty for ISO 8601.
    """

    delimiter: str = ""
    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    encoding: str = "utf-8"
    missing: tuple[str, ...] = NULLS
    dates: str = ""

    def __post_init__(self):
        _check_mark("decimal", self.decimal, _IN_NUMBERS)
        if self.delimiter != "":
            _check_mark("delimiter", self.delimiter, '"\r\n')
        if self.thousands != "":
            _check_mark("thousands", self.thousands, _IN_NUMBERS)
        if self.decimal == self.thousands:
            raise ValueError(
                f"expected decimal and thousands to differ, got {self.decimal!r} twice"
            )
        if not isinstance(self.percent, bool):
            raise TypeError(f"expected percent = true or false, got {self.percent!r}")
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if isinstance(self.missing, str) or not all(isinstance(each, str) for each in self.missing):
            raise TypeError(f'expected missing as a list such as ["?", ""], got {self.missing!r}')
        object.__setattr__(self, "missing", tuple(self.missing))
        if not isinstance(self.dates, str) or set(_DIRECTIVE.findall(self.dates)) - _DIRECTIVES:
            raise ValueError(
                f"expected dates in directives such as %d.%m.%Y %H:%M:%S, of "
                f"{' '.join(sorted(_DIRECTIVES))}, got {self.dates!r}"
            )

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as in Python."""
        return self.decimal == "." and not self.thousands and not self.percent

    def to_json(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)

    def to_toml(self) -> str:
        """The [file] table of a bounds file: what differs from the usual, or nothing."""
        lines = [
            f"{field.name} = {array(value) if isinstance(value, tuple) else toml(value)}\n"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return "".join(["[file]\n", *lines, "\n"]) if lines else ""


def _check_mark(name: str, mark: Any, refused: str) -> None:
    one = isinstance(mark, str) and len(mark) == 1 and mark not in refused
    if not one or (name == "delimiter" and not mark.isascii()):
        raise ValueError(f"expected {name} as one character such as ; or , got {mark!r}")


def _encoding(name: Any) -> str:
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # refuses codecs of bytes, such as zip
    except (LookupError, TypeError):
        raise ValueError(
            f"expected encoding as Python calls it, such as utf-8, latin-1 or cp1252, got {name!r}"
        ) from None
    return found.name
