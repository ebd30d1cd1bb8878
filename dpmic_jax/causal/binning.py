"""Bin columns on public bounds, into codes of categories."""

from collections.abc import Sequence

import numpy as np

from dpmic_jax.causal.queries import Coded
from dpmic_jax.causal.tables import LARGEST_TABLE
from dpmic_jax.data.limits import Column, Limits, NominalLimits, WithMissing
from dpmic_jax.mic.binning import by_range, codes


def binned(columns: Sequence[Column], bounds: Sequence[Limits], bins: Sequence[int]) -> Coded:
    """Bin each column into bins of equal width on its public bounds.

    A record's code depends on the bounds and on its own value only. Codes 0 .. k - 1 of k
    categories stay as they are with k bins and the bounds (-1/2, k - 1/2) or `CategoryLimits(k)`,
    as in `Source.bounds`; the code -1, for none of the categories, joins the first. Bounds
    `WithMissing` add one category for missing values, before all others: rank tests take it for
    the lowest. Nominal columns have their own bins, however many are asked for.

    Args:
      columns: columns of n records each.
      bounds: low and high of each column; values outside go to the outer bins.
      bins: number of bins of each column, without the one for missing values.
    """
    if not len(columns) == len(bounds) == len(bins):
        raise ValueError(
            f"expected bounds and bins for each of {len(columns)} columns, "
            f"got {len(bounds)} and {len(bins)}"
        )
    for column, count in enumerate(bins):
        if not 1 <= count <= LARGEST_TABLE:
            raise ValueError(
                f"expected 1 <= bins <= {LARGEST_TABLE}, got {count} (column {column})"
            )
    categories = tuple(map(_categories, bins, bounds))
    coded = [
        codes(by_range([values], [limits], [count]))[0, 0]
        for values, limits, count in zip(columns, bounds, categories, strict=True)
    ]
    # The codes of a column have the smallest dtype that holds them, so dtypes may differ.
    return Coded(np.stack([column.astype(np.int32) for column in coded]), categories)


def _categories(bins: int, limits: Limits) -> int:
    """The number of categories of a column."""
    if isinstance(limits, NominalLimits):
        return limits.bins
    return bins + isinstance(limits, WithMissing)
