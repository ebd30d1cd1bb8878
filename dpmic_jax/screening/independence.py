"""How large MICr gets by chance: its level for independent columns, before any noise."""

import math
from functools import lru_cache

import numpy as np

from dpmic_jax.mic import sweep
from dpmic_jax.mic.characteristic import characteristic
from dpmic_jax.mic.gains import gains_for
from dpmic_jax.mic.settings import MICr
from dpmic_jax.screening.planning import Plan

FALSE_ALARMS = 0.05  # over all pairs

_COLUMNS = 16  # 120 pairs are simulated
_RECORDS = 20_000
_SEED = 20_221_117
_GUMBEL_SD = math.pi / math.sqrt(6)
_EULER = 0.577215664901533


def independence_level(statistic: MICr, n: int, pairs: int, chance: float) -> float:
    """A value that the largest MICr of independent pairs exceeds with probability `chance`.

    MICr of independent uniform columns is simulated, from a fixed seed, and a Gumbel law, that of
    a maximum, is fitted to it by its mean and variance. For more than 20 000 records the level is
    that of 20 000 times 20 000 / n: 2 n ln 2 times the information in a fixed grid has a law that
    does not depend on n any more. Columns that are not uniform fill fewer cells and have lower
    levels. It depends on public settings only.
    """
    mean, deviation = _simulated(statistic, min(n, _RECORDS))
    scale = deviation / _GUMBEL_SD
    # P(all `pairs` below t) = exp(-pairs exp(-(t - mode) / scale)) = 1 - chance
    level = mean - _EULER * scale + scale * (math.log(pairs) - math.log(-math.log1p(-chance)))
    return min(1.0, level * min(1.0, _RECORDS / n))


@lru_cache(maxsize=64)
def _simulated(statistic: MICr, n: int) -> tuple[float, float]:
    """Mean and standard deviation of MICr over pairs of independent columns."""
    columns = np.random.default_rng(_SEED).random((_COLUMNS, n))
    cut = statistic.cut(list(columns), [(0.0, 1.0)] * _COLUMNS)
    pairs = np.array([(i, j) for i in range(_COLUMNS) for j in range(i)])
    tiles = sweep.score_pairs(cut, pairs, gains_for(n))
    values = np.concatenate([characteristic(cut.grids, tile).mic for tile in tiles])
    return float(values.mean()), float(values.std(ddof=1))


def dependence_level(plan: Plan) -> float:
    """A released value above this is called dependent.

    If all pairs are independent, one of them is with a chance of `FALSE_ALARMS` at most: half
    of it for their MICr, half for the noise.
    """
    by_chance = independence_level(plan.statistic, plan.n, len(plan.pairs), FALSE_ALARMS / 2)
    return by_chance + plan.noise_quantile(FALSE_ALARMS / 2 / plan.released)
