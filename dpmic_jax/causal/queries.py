"""What a search for a graph asks, and what it may expect of a test that answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float64, Int64, Integer

from dpmic_jax.dp.noise.lattice import Lattice

# Scores in lattice steps are at most this, so that noise can be added within int32.
MOST_STEPS = 2**29


class Query(NamedTuple):
    """Is column x independent of column y, given these columns?"""

    x: int
    y: int
    given: tuple[int, ...] = ()  # ascending


@dataclass(frozen=True, eq=False)
class Coded:
    """Columns as codes of categories; how many categories each has is public.

    Attributes:
      codes: of every record in every column, 0 .. categories - 1; those outside count as the
        nearest of these, since an error would tell that there are some. Their order is that of
        the values, where a test looks at order.
      categories: how many each column may have, whether they occur or not.
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
        # Small codes: records are gone through many times.
        small = np.min_scalar_type(max(self.categories, default=1))
        inside = np.empty(codes.shape, small)
        for kept, held, most in zip(inside, codes, self.categories, strict=True):
            kept[:] = np.clip(held, 0, min(most - 1, np.iinfo(held.dtype).max))
        object.__setattr__(self, "codes", inside)

    @property
    def columns(self) -> int:
        return len(self.codes)

    @property
    def n(self) -> int:
        return self.codes.shape[1]

    def take(self, records: Integer[np.ndarray, " m"]) -> "Coded":
        """The same columns, with these records only: a subsample."""
        return Coded(self.codes[:, np.asarray(records)], self.categories)


class DependenceTest(Protocol):
    """Scores of dependence of many queries at once, and what one record can do to them."""

    @property
    def columns(self) -> int: ...

    @property
    def n(self) -> int: ...

    def scores(self, queries: Sequence[Query]) -> Float64[np.ndarray, " queries"]:
        """Large where x and y depend on each other; never negative."""
        ...

    def sensitivity(self, queries: Sequence[Query]) -> Fraction:
        """The most that one replaced record can move any of these scores, whatever the data.

        It depends on what is public only: n, the numbers of categories, the queries.
        """
        ...

    def points(self, queries: Sequence[Query], lattice: Lattice) -> Int64[np.ndarray, " queries"]:
        """floor(score 2^bits), exactly, for the private path; at most `MOST_STEPS`.

        Not cut off at 1, unlike values of that lattice. One record moves a point by
        ceil(sensitivity 2^bits) at most.
        """
        ...
