"""Simulated mean and standard deviation of a statistic on independent columns."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dpmic_jax.mic import batch
from dpmic_jax.mic.characteristic import VALUE_BITS, integer_mic
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.screening.queries import Positions

SEED = 20_221_117  # fixed, so that every run has the same dependence threshold

# The statistic of each pair, from columns on [0, 1] and the positions of the pairs.
Values = Callable[[Sequence[np.ndarray], Positions], Float[np.ndarray, " pairs"]]


class Moments(NamedTuple):
    """Mean and standard deviation of a statistic over pairs of independent columns."""

    mean: float
    deviation: float


def simulated(values: Values, n: int, *, columns: int) -> Moments:
    """The moments of a statistic over all pairs of independent uniform columns of n records.

    They are the same on any machine on which `values` is: the columns depend on n and `SEED` only,
    and each sum is rounded once.
    """
    drawn = np.random.default_rng([SEED, n]).random((columns, n))
    pairs = np.array(list(itertools.combinations(range(columns), 2)))
    found = values(list(drawn), pairs)
    mean = math.fsum(found) / len(found)
    variance = math.fsum((found - mean) ** 2) / (len(found) - 1)
    return Moments(mean, math.sqrt(variance))


def micr_values(statistic: MICr) -> Values:
    """MICr in integer arithmetic, as in releases, which is the same on any machine."""

    def values(columns: Sequence[np.ndarray], pairs: Positions) -> Float[np.ndarray, " pairs"]:
        cut = statistic.cut(columns, [(0.0, 1.0)] * len(columns))
        tiles = batch.score_pairs(cut, pairs, exact_gains(cut.n))
        return np.concatenate([integer_mic(cut.grids, tile) for tile in tiles]) * 2.0**-VALUE_BITS

    return values
