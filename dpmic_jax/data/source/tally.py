"""What a column's cells are taken for, counted for the owner of the data: this is not private."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmic_jax.data.schema import Number, Rule
from dpmic_jax.data.source.arrow import by_text, codes_of, decoded, floats_of, is_text
from dpmic_jax.data.source.cells import SPACE, UNDECLARED
from dpmic_jax.data.source.coding import MISSING


@dataclass(frozen=True)
class Tally:
    """Cells of a column that do not count as what they hold.

    Attributes:
      missing: hold nothing: empty, null, NaN.
      unreadable: hold something that is no number, or no declared category.
      below, above: hold a number outside the bounds, and count as at the bounds.
    """

    missing: int
    unreadable: int
    below: int = 0
    above: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Of two batches."""
        return Tally(*(one + more for one, more in zip(self.counts, other.counts, strict=True)))

    @property
    def counts(self) -> tuple[int, ...]:
        """All of them, in order."""
        return self.missing, self.unreadable, self.below, self.above


NOTHING = Tally(0, 0)


def tally(values: Any, rule: Rule, nulls: tuple[str, ...]) -> Tally:
    """Count the cells of an arrow array; the arguments are those of `arrow.coded`."""
    if not isinstance(rule, Number):
        found = codes_of(values, rule, nulls)
        return Tally(_count(found == MISSING), _count(found == UNDECLARED))
    found = floats_of(values, nulls)
    none, blank = np.isnan(found), _blank(values, nulls)
    outside = _count(found < rule.low), _count(found > rule.high)
    return Tally(_count(none & blank), _count(none & ~blank), *outside)


def _blank(values: Any, nulls: tuple[str, ...]) -> np.ndarray:
    """Which cells say that nothing is there, if they are not numbers."""
    values = decoded(values)
    if not is_text(values.type):
        return np.ones(len(values), bool)
    words = {*nulls, "nan", "+nan", "-nan"}

    def says_so(text: str) -> bool:
        said = text.strip(SPACE)
        return said in words or said.lower() in words

    return by_text(values, says_so, True).astype(bool)


def _count(mask: np.ndarray) -> int:
    return int(np.count_nonzero(mask))
