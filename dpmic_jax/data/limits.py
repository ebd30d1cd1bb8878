"""Columns as arrays, and the public limits between which they are binned."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

Column = Shaped[np.ndarray, " n"]
Bounds = tuple[float, float]


class WithMissing(NamedTuple):
    """Bounds of a column in which -inf stands for a missing value, with a part of its own."""

    low: float
    high: float


class CategoryLimits(NamedTuple):
    """Limits of a column of codes 0 .. k - 1 of k categories, with -1 for what is none of them.

    Of q parts, where q > k, the first is for -1, and each category has one after it. So
    privacy costs no values: that a code is missing never has to be an error, and a table where
    none is missing has the MICr that it has on the bounds (-1/2, k - 1/2). For there, too,
    each category has a part of its own, in the same order; only which parts stay empty differs,
    and an empty part adds phi(0) = 0 to every sum. Where q <= k no part is empty on these
    bounds: they are cut as before, and -1 joins the first part.
    """

    categories: int


Limits = Bounds | WithMissing | CategoryLimits
