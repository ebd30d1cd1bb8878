"""Numbers as a text file writes them: decimal marks, thousands separators, percent signs."""

import re
from collections.abc import Callable
from functools import cache

from dpmic_jax.data.schema import TextFormat
from dpmic_jax.data.source.cells import SPACE


@cache
def plain(text: TextFormat) -> Callable[[str], str]:
    """The function from a cell to the same number in the format of `cells.text_number`.

    A cell that is no number in the format becomes a text that is none: a file with other decimal
    marks than declared has unreadable cells, not numbers a thousand times too large.
    """
    if text.has_plain_numbers:
        return str
    mark = re.escape(text.thousands)
    grouped = re.compile(rf"[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}(?![0-9])")

    def number(cell: str) -> str:
        cell = cell.strip(SPACE)
        if text.percent:
            cell = cell.removesuffix("%").rstrip(SPACE)
        if text.thousands and (whole := grouped.match(cell)):
            cell = whole[0].replace(text.thousands, "") + cell[whole.end() :]
        if text.decimal != ".":
            cell = "" if "." in cell else cell.replace(text.decimal, ".")
        return cell

    return number
