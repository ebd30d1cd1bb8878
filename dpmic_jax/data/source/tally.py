"""Counts of missing, unreadable and clipped cells, for the owner of the data. Not private."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmic_jax.data.schema import Categories, Rule, TextFormat
from dpmic_jax.data.source.arrow import by_text, codes_of, decoded, is_text, numbers_of
from dpmic_jax.data.source.cells import SPACE, UNDECLARED
from dpmic_jax.data.source.coding import MISSING


@dataclass(frozen=True)
class Tally:
    """Numbers of cells of a column that are not used as they are.

    Attributes:
      missing: cells that are empty, null or NaN.
      unreadable: other cells that are not a number, a date of the declared kind, or a declared
        category; with a category for all others (`other`), they count as it.
      below, above: cells with a number outside the bounds, to which it is clipped.
    """

    missing: int
    unreadable: int
    below: int = 0
    above: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """The tally of two batches together."""
        return Tally(*(one + more for one, more in zip(self.counts, other.counts, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        """All four numbers, in the order of the attributes."""
        return self.missing, self.unreadable, self.below, self.above


NOTHING = Tally(0, 0)


def tally(values: Any, rule: Rule, text: TextFormat) -> Tally:
    """Count the cells of an arrow array; the arguments are those of `arrow.coded`."""
    if isinstance(rule, Categories):
        found = codes_of(values, rule, text)
        return Tally(_count(found == MISSING), _count(found == UNDECLARED))
    found, number = numbers_of(values, rule, text), rule.number
    none, blank = np.isnan(found), _blank(values, text)
    outside = _count(found < number.low), _count(found > number.high)
    return Tally(_count(none & blank), _count(none & ~blank), *outside)


def _blank(values: Any, text: TextFormat) -> np.ndarray:
    """Which cells are missing rather than unreadable, if they are not numbers."""
    values = decoded(values)
    if not is_text(values.type):  # a numeric cell that is NaN is null or NaN, never unreadable
        return np.ones(len(values), bool)
    words = {*text.missing, "nan", "+nan", "-nan"}

    def is_blank(cell: str) -> bool:
        trimmed = cell.strip(SPACE)
        return trimmed in words or trimmed.lower() in words

    return by_text(values, is_blank, True).astype(bool)


def _count(mask: np.ndarray) -> int:
    return int(np.count_nonzero(mask))
