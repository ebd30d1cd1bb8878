"""What becomes of tied values where parts are cut by rank."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from dpmic_jax.data.limits import Column
from dpmic_jax.mic.binning import Order


def grouped_ties(values: Column, column: int) -> Order:
    """Tied values share a part. The rule of the non-private statistic."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return Order(order, np.append(ends, len(values)))


@dataclass(frozen=True, eq=False)
class RandomTies:
    """Ties broken by an independent draw for each column and record, as privacy needs.

    Ranks become unique without looking at the data: neither the position of a record nor
    how many others share its value says anything about where it goes.
    """

    key: PRNGKeyArray

    def __call__(self, values: Column, column: int) -> Order:
        words = jax.random.bits(jax.random.fold_in(self.key, column), (2, len(values)))
        high, low = np.asarray(words)
        return Order(np.lexsort((low, high, values)), np.arange(1, len(values) + 1))
