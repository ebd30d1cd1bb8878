"""What a statistic is on pairs of independent columns: its mean and deviation, simulated."""

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

SEED = 20_221_117

# From columns on [0, 1] and pairs of their positions to the statistic of each pair.
Values = Callable[[Sequence[np.ndarray], Positions], Float[np.ndarray, " pairs"]]


class Moments(NamedTuple):
    """Mean and standard deviation of a statistic over pairs of independent columns."""

    mean: float
    deviation: float


def simulated(values: Values, n: int, *, columns: int) -> Moments:
    """Of any statistic, over all pairs of so many independent uniform columns of n records.

    The same numbers on any machine, if `values` gives the same: the draw depends on n and `SEED`
    only, and sums are rounded once.
    """
    drawn = np.random.default_rng([SEED, n]).random((columns, n))
    pairs = np.array(list(itertools.combinations(range(columns), 2)))
    found = values(list(drawn), pairs)
    mean = math.fsum(found) / len(found)
    variance = math.fsum((found - mean) ** 2) / (len(found) - 1)
    return Moments(mean, math.sqrt(variance))


def micr_values(statistic: MICr) -> Values:
    """MICr as releases have it: by integers, which are the same on any machine."""

    def values(columns: Sequence[np.ndarray], pairs: Positions) -> Float[np.ndarray, " pairs"]:
        cut = statistic.cut(columns, [(0.0, 1.0)] * len(columns))
        tiles = batch.score_pairs(cut, pairs, exact_gains(cut.n))
        return np.concatenate([integer_mic(cut.grids, tile) for tile in tiles]) * 2.0**-VALUE_BITS

    return values
