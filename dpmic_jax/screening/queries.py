"""The queries of a screen: values of many pairs, or the selection of a few pairs."""

import ast
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import get_args

import numpy as np
from jaxtyping import Int

from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int

Names = tuple[str, ...]
Positions = Int[np.ndarray, "pairs 2"]


@dataclass(frozen=True)
class AllPairs:
    """The value of every pair of columns."""

    def pairs(self, names: Names) -> Positions:
        """The positions of all pairs of columns."""
        if len(names) < 2:
            raise ValueError(f"expected a table of at least 2 columns, got {len(names)}")
        return np.stack(np.triu_indices(len(names), 1), axis=1)

    def __str__(self) -> str:
        return "all pairs"


@dataclass(frozen=True)
class Against:
    """The value of one column with each of the others."""

    column: str

    def __post_init__(self):
        if not isinstance(self.column, str):
            raise TypeError(f"expected column of Against to be a name, got {self.column!r}")
        object.__setattr__(self, "column", _plain(self.column))

    def pairs(self, names: Names) -> Positions:
        """The positions of the column with each of the others."""
        one = _position(names, self.column, "Against")
        others = [other for other in range(len(names)) if other != one]
        if not others:
            raise ValueError("expected a table of at least 2 columns, got 1")
        # The noise of a pair depends on its positions, so they are always in the same order.
        return np.sort([(one, other) for other in others], axis=1)

    def __str__(self) -> str:
        return f"{self.column!r} against the rest"


@dataclass(frozen=True)
class Between:
    """The value of every column of one group with every column of another."""

    columns_a: tuple[str, ...]
    columns_b: tuple[str, ...]

    def __post_init__(self):
        for name in ("columns_a", "columns_b"):
            columns = getattr(self, name)
            if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
                raise TypeError(f"expected {name} of Between to be a list of column names")
            if not all(isinstance(column, str) for column in columns):
                raise TypeError(f"expected {name} of Between to be column names, as text")
            object.__setattr__(self, name, tuple(map(_plain, columns)))
        both = set(self.columns_a) & set(self.columns_b)
        if both:
            raise ValueError(f"column {min(both)!r} is in both groups of Between; leave one out")

    def pairs(self, names: Names) -> Positions:
        """The positions of all pairs between the two groups."""
        a, b = (
            [_position(names, column, "Between") for column in _once(columns)]
            for columns in (self.columns_a, self.columns_b)
        )
        return np.sort(list(itertools.product(a, b)), axis=1)

    def __str__(self) -> str:
        return f"{len(self.columns_a)} columns with {len(self.columns_b)} others"


Group = AllPairs | Against | Between


@dataclass(frozen=True)
class TopK:
    """The k strongest pairs, and their values.

    Attributes:
      k: number of pairs.
      selection_fraction: fraction of epsilon for selecting pairs; the rest is for their values.
        None to let the plan choose what finds most, which may be to release all values and sort.
      candidates: the pairs to select from.
    """

    k: int
    selection_fraction: float | None = None
    candidates: Group = AllPairs()

    def __post_init__(self):
        object.__setattr__(self, "k", check_positive_int("k", self.k))
        if self.selection_fraction is not None:
            fraction = _check_fraction("selection_fraction", self.selection_fraction)
            object.__setattr__(self, "selection_fraction", fraction)
        _check_group(self.candidates)

    @property
    def most(self) -> int:
        """Number of pairs that are released."""
        return self.k

    def pairs(self, names: Names) -> Positions:
        """The positions of the candidates."""
        found = self.candidates.pairs(names)
        if self.k >= len(found):
            raise ValueError(
                f"expected k below {len(found)}, the number of candidate pairs, got {self.k}; to "
                "release all of them use AllPairs, Against or Between"
            )
        return found

    def __str__(self) -> str:
        return f"top {self.k} of {self.candidates}"


@dataclass(frozen=True)
class Above:
    """The first `at_most` pairs above a threshold, and their values.

    Pairs are visited in an order drawn from the key, and the search ends once `at_most` are found.
    So if that many are found, a pair that is not among them may have been left out unvisited.

    Attributes:
      threshold: threshold of MIC. Pairs are found by their distance from independence, at the
        distance that relationships of this MIC typically have (`screening.calibration`).
      at_most: largest number of pairs to find; noise grows with it.
      selection_fraction: fraction of epsilon for finding pairs; the rest is for their values.
        None to let the plan choose what finds most, which may be to release all values and sort.
      candidates: the pairs to search.
    """

    threshold: float
    at_most: int
    selection_fraction: float | None = None
    candidates: Group = AllPairs()

    def __post_init__(self):
        object.__setattr__(self, "threshold", _check_fraction("threshold", self.threshold))
        object.__setattr__(self, "at_most", check_positive_int("at_most", self.at_most))
        if self.selection_fraction is not None:
            fraction = _check_fraction("selection_fraction", self.selection_fraction)
            object.__setattr__(self, "selection_fraction", fraction)
        _check_group(self.candidates)

    @property
    def most(self) -> int:
        """Largest number of pairs that are released."""
        return self.at_most

    def pairs(self, names: Names) -> Positions:
        """The positions of the candidates."""
        return self.candidates.pairs(names)

    def __str__(self) -> str:
        return f"at most {self.at_most} above {self.threshold:g} of {self.candidates}"


Ask = Group | TopK | Above

# The names of fields in events since version 0.1.0. Noise depends on the digest of the event.
_IN_EVENTS = {"selection_fraction": "share", "candidates": "among"}


def canonical(ask: Ask) -> str:
    """A query as it is stored in events."""
    shown = []
    for name in (each.name for each in fields(ask)):
        value = getattr(ask, name)
        text = canonical(value) if isinstance(value, Ask) else repr(value)
        shown.append(f"{_IN_EVENTS.get(name, name)}={text}")
    return f"{type(ask).__name__}({', '.join(shown)})"


def from_canonical(text: str) -> Ask:
    """The query whose `canonical` text this is."""
    try:
        return _query(ast.parse(text, mode="eval").body)
    except (SyntaxError, LookupError, TypeError, ValueError) as error:
        raise ValueError("expected a query as it is stored in events") from error


def _query(call: ast.expr) -> Ask:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise TypeError("expected a query by its name, with arguments by theirs")
    kind = {each.__name__: each for each in get_args(Ask)}[call.func.id]
    stored = {_IN_EVENTS.get(each.name, each.name): each.name for each in fields(kind)}
    given = {}
    for each in call.keywords:
        inner = isinstance(each.value, ast.Call)
        value = _query(each.value) if inner else ast.literal_eval(each.value)
        given[stored[str(each.arg)]] = value
    return kind(**given)


def _position(names: Names, column: str, where: str) -> int:
    if column not in names:
        raise ValueError(f"{where} names an unknown column {column!r}; use a column of the table")
    return names.index(column)


def _once(columns: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(columns))


def _plain(name: str) -> str:
    """A name without a subclass of str, such as NumPy's: events store how names are written."""
    return str.__str__(name)


def _check_fraction(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected {name} to be a Python float, got {value!r}")
    if not 0 < value < 1:
        raise ValueError(f"expected 0 < {name} < 1, got {value}")
    return float(value)  # without a subclass, as of names


def _check_group(candidates: Group) -> None:
    if not isinstance(candidates, Group):
        raise TypeError(
            "expected candidates to be AllPairs(), Against(column) or Between(columns_a, "
            f"columns_b), got {candidates!r}"
        )
