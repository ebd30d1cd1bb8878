"""How the cells of a text file are written: the [file] table of a bounds file."""

from dataclasses import asdict, dataclass
from typing import Any

# Texts that mean a missing value, unless others are declared.
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")


@dataclass(frozen=True)
class TextFormat:
    """How the cells of a text file are written.

    Attributes:
      delimiter: the character between two cells.
      decimal: the decimal mark of numbers.
      thousands: the character that groups digits; empty for none.
      percent: whether numbers may end in a percent sign, which is not a part of them: 12 % is 12.
      encoding: of the file, as Python calls it.
      missing: texts that mean a missing value.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    encoding: str = "utf-8"
    missing: tuple[str, ...] = NULLS

    def to_json(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)
