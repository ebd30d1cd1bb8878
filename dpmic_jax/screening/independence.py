"""How large MICr gets by chance on independent columns, and the dependence threshold."""

import math
from functools import lru_cache

from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.levels import MOST_RECORDS, shipped
from dpmic_jax.screening.planning import Plan
from dpmic_jax.screening.simulation import Moments, micr_values, simulated

FALSE_ALARMS = 0.05  # family-wise, over all pairs of a screen

_COLUMNS = 16  # 120 pairs, simulated for settings that are not in the table
# Mean and standard deviation of the standard Gumbel distribution.
_EULER = 0.577215664901533
_GUMBEL_SD = math.pi / math.sqrt(6)


def independence_level(statistic: MICr, n: int, pairs: int, chance: float) -> float:
    """A value that the largest MICr of independent pairs exceeds with probability `chance`.

    A Gumbel distribution, the limit of maxima, is fitted to the mean and variance of MICr of
    independent uniform columns. These are in a table for the settings of the default rule
    (`levels`), and are simulated from a fixed seed for other settings. For n > 20 000 records the
    level is that of 20 000 records times 20 000 / n, since the distribution of 2 n ln 2 times the
    information in a fixed grid has converged. Columns that are not uniform fill fewer cells and
    have lower levels. The level depends on public settings only.
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
    """The threshold above which a released value is called dependent.

    If all pairs are independent, any of them exceeds it with probability at most `FALSE_ALARMS`:
    half of that is for their MICr, and half for the noise.
    """
    by_chance = independence_level(plan.statistic, plan.n, len(plan.pairs), FALSE_ALARMS / 2)
    return by_chance + plan.values.largest_quantile(FALSE_ALARMS / 2, plan.released)
