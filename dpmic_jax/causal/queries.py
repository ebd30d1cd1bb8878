"""Queries of a search for a graph, the coded columns, and the interface of tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.dp.noise.lattice import Lattice

# Scores in lattice steps are at most this, so that a score plus noise fits int32.
MOST_STEPS = 2**29


class Query(NamedTuple):
    """Whether column x is independent of column y, given the columns `given`."""

    x: int
    y: int
    given: tuple[int, ...] = ()  # ascending


@dataclass(frozen=True, eq=False)
class Coded:
    """Columns as codes of categories; the number of categories of each column is public.

    Attributes:
      codes: code of every record in every column, 0 .. categories - 1. Codes outside are clipped,
        since an error would reveal that there are some. For rank tests their order is the order
        of the values.
      categories: number of categories of each column, whether they occur or not.
    """

    codes: Integer[np.ndarray, "columns n"]
    categories: tuple[int, ...]

    def __post_init__(self):
        codes = self.codes
        if codes.ndim != 2 or codes.dtype.kind not in "iu" or codes.shape[1] < 1:
            raise ValueError("expected codes to be integers of shape (columns, n) with n >= 1")
        if len(self.categories) != len(codes):
            raise ValueError(
                f"expected categories to have a number for each of {len(codes)} columns, "
                f"got {len(self.categories)}"
            )
        for column, most in enumerate(self.categories):
            if most < 1:
                raise ValueError(f"expected at least one category in column {column}, got {most}")
        # The smallest dtype saves memory traffic: every record is read for many queries.
        small = np.min_scalar_type(max(self.categories, default=1))
        clipped = np.empty(codes.shape, small)
        for out, given, most in zip(clipped, codes, self.categories, strict=True):
            # The upper end itself has to fit the dtype that is clipped.
            out[:] = np.clip(given, 0, min(most - 1, np.iinfo(given.dtype).max))
        object.__setattr__(self, "codes", clipped)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.codes)

    @property
    def n(self) -> int:
        """The number of records."""
        return self.codes.shape[1]

    def take(self, records: Integer[np.ndarray, " m"]) -> "Coded":
        """The subsample with these records, in the same columns."""
        return Coded(self.codes[:, np.asarray(records)], self.categories)

    def in_order(self) -> "Coded":
        """The same records, ordered by their codes: one order for every order of a table.

        A uniform subsample of places is a uniform subsample of records, in whichever order these
        are. So a mechanism that draws places has the same law on ordered records.
        """
        return self.take(np.lexsort(self.codes))


class DependenceTest(Protocol):
    """Interface of tests: dependence scores of many queries at once, and their sensitivity."""

    @property
    def columns(self) -> int:
        """The number of columns."""
        ...

    @property
    def n(self) -> int:
        """The number of records."""
        ...

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """Scores that are large where x and y depend on each other, and never negative."""
        ...

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move any of these scores, whatever the data.

        It depends on public values only: n, the numbers of categories and the queries.
        """
        ...

    @property
    def largest(self) -> float:
        """The largest score of a query without given columns, whatever the data.

        It depends on n and the numbers of categories only.
        """
        ...

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits), exact, for the private path; at most `MOST_STEPS`.

        Scores above 1 are not clipped, unlike values of that lattice. One record moves a point by
        at most ceil(sensitivity 2^bits).
        """
        ...


@dataclass(frozen=True, eq=False)
class CodedTest:
    """Base of the tests of coded columns.

    Attributes:
      data: the columns.
    """

    data: Coded

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.data.columns

    @property
    def n(self) -> int:
        """The number of records."""
        return self.data.n
