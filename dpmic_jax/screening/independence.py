"""How large MICr gets by chance: its level for independent columns, before any noise."""

import math
from functools import lru_cache

from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.levels import MOST_RECORDS, shipped
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.simulation import Moments, micr_values, simulated

FALSE_ALARMS = 0.05  # over all pairs

_COLUMNS = 16  # 120 pairs are simulated where the table has nothing
_GUMBEL_SD = math.pi / math.sqrt(6)
_EULER = 0.577215664901533


def independence_level(statistic: MICr, n: int, pairs: int, chance: float) -> float:
    """A value that the largest MICr of independent pairs exceeds with probability `chance`.

    A Gumbel law, that of a maximum, is fitted to MICr of independent uniform columns by its mean
    and variance. These are in a table for the settings of the default rule (`levels`), and are
    simulated from a fixed seed for others. For more than 20 000 records the level is that of
    20 000 times 20 000 / n: 2 n ln 2 times the information in a fixed grid has a law that does
    not depend on n any more. Columns that are not uniform fill fewer cells and have lower levels.
    It depends on public settings only.
    """
    known = min(n, MOST_RECORDS)
    mean, deviation = shipped(statistic, known) or _simulated(statistic, known)
    scale = deviation / _GUMBEL_SD
    # P(all `pairs` below t) = exp(-pairs exp(-(t - mode) / scale)) = 1 - chance
    level = mean - _EULER * scale + scale * (math.log(pairs) - math.log(-math.log1p(-chance)))
    return min(1.0, level * known / n)


@lru_cache(maxsize=64)
def _simulated(statistic: MICr, n: int) -> Moments:
    return simulated(micr_values(statistic), n, columns=_COLUMNS)


def dependence_level(plan: Plan) -> float:
    """A released value above this is called dependent.

    If all pairs are independent, one of them is with a chance of `FALSE_ALARMS` at most: half
    of it for their MICr, half for the noise.
    """
    by_chance = independence_level(plan.statistic, plan.n, len(plan.pairs), FALSE_ALARMS / 2)
    return by_chance + plan.noise_quantile(FALSE_ALARMS / 2 / plan.released)
