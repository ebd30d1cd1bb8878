"""Columns with public bounds -> codes of categories."""

from collections.abc import Sequence

import numpy as np

from dpmic_jax.causal.queries import Coded
from dpmic_jax.causal.tables import LARGEST_TABLE
from dpmic_jax.data.limits import Column, Limits, WithMissing
from dpmic_jax.mic.binning import by_range, codes


def binned(columns: Sequence[Column], bounds: Sequence[Limits], bins: Sequence[int]) -> Coded:
    """Parts of equal width on public bounds; nothing depends on the values but the codes.

    Codes 0 .. k - 1 of k categories keep their codes with bounds (-1/2, k - 1/2) or
    `CategoryLimits(k)` and k bins, as `Source.bounds` has them; what is none of them (-1) joins the
    first. Bounds `WithMissing` have one category more, before all others, for
    the missing values: a test of order takes them for the lowest.

    Args:
      columns: of n records each.
      bounds: low and high of each column; what lies outside goes to the outer parts.
      bins: how many parts each column is cut into.
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
    categories = tuple(
        count + isinstance(limits, WithMissing) for count, limits in zip(bins, bounds, strict=True)
    )
    parts = [
        codes(by_range([values], [limits], [count]))[0, 0]
        for values, limits, count in zip(columns, bounds, categories, strict=True)
    ]
    return Coded(np.stack([part.astype(np.int32) for part in parts]), categories)
