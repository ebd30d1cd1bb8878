"""Moments of a statistic on independent columns: the table behind the dependence threshold.

The table covers MICr under every setting that a screen chooses by default. Any other statistic can
be tabulated in the same way, from its values on pairs of columns and the n it is needed for.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from tqdm import tqdm

from dpmic_jax.mechanisms import tuned_defaults
from dpmic_jax.mic.grids import Grid, ladder
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.paper.store import Part, Store
from dpmic_jax.screening.levels import MOST_RECORDS
from dpmic_jax.screening.planning import default_screen_statistic
from dpmic_jax.screening.simulation import SEED, Values, micr_values, simulated

COLUMNS = 128  # 8128 pairs determine the standard deviation within 1 %
# Denser where n is small: n times the mean is not smooth there, as n is an integer.
RECORDS = (4, 5, 6, 7, 8, 11, 16, 23, 32, 45, *(2**k for k in range(6, 14)), MOST_RECORDS)
_RATIO = 1.02  # between successive n that are tried, above 100
# Ratios of epsilons: below the first the bisection stops, the second steps next to an epsilon.
_APART, _BESIDE = 1 + 1e-4, 1 + 1e-9


def levels(statistics: dict[MICr, int], columns: int, store: Store, command: str) -> dict[str, Any]:
    """The contents of the JSON table; settings that the store does not hold yet are simulated.

    Args:
      statistics: each with the smallest n that it is needed for.
      columns: number of independent columns; all pairs of them are scored.
      store: keeps finished settings.
      command: the command line that is recorded in the file.
    """
    rows = []
    for statistic, least in tqdm(statistics.items(), unit="setting", disable=None):
        setting = _as_json(statistic)
        done = store.part(
            "-".join(map(str, setting.values())),
            lambda one=statistic, least=least: tabulated(micr_values(one), needed(least), columns),
        )
        rows.append(setting | {name: values.tolist() for name, values in done.items()})
    return {"command": command, "seed": SEED, "columns": columns, "MICr": rows}


def tabulated(values: Values, records: Sequence[int], columns: int) -> Part:
    """n times the mean and n times the standard deviation on independent columns, for each n.

    Both vary slowly with n, so that they can be interpolated.
    """
    found = np.array([simulated(values, n, columns=columns) for n in records])
    mean, deviation = (np.array(records)[:, None] * found).round(4).T
    return {"n": np.array(records), "mean": mean, "deviation": deviation}


def needed(least: int) -> tuple[int, ...]:
    """The n of the table that are needed to interpolate every n from `least` on.

    They begin below least / 1.02, as n between two that `default_settings` tries are not looked at.
    """
    first = max(n for n in RECORDS if n <= max(least / _RATIO, RECORDS[0]))
    return tuple(n for n in RECORDS if n >= first)


def description(statistics: dict[MICr, int], columns: int) -> dict[str, Any]:
    """Everything that the parts of a run depend on, for its `Store`."""
    settings = [[*_as_json(one).values(), needed(least)] for one, least in statistics.items()]
    return {"settings": settings, "columns": columns, "seed": SEED}


def default_settings() -> dict[MICr, int]:
    """Every setting that `default_screen_statistic` returns, with the smallest n it is used for.

    Of settings that score the same grids, only the first is kept.
    """
    found: dict[MICr, int] = {}
    for n in _records():
        for statistic in _settings_at(n):
            found.setdefault(statistic, n)
    kept: dict[tuple[Grid, ...], MICr] = {}
    for statistic in found:
        kept.setdefault(statistic.grids(0), statistic)
    return {statistic: found[statistic] for statistic in kept.values()}


def _records() -> list[int]:
    """The n to try: all below 100, those of the table of defaults and the next, and a fine grid."""
    known = {row["n"] for row in tuned_defaults.settings()}
    steps = math.ceil(math.log(max(known) / 100) / math.log(_RATIO))
    between = {round(100 * _RATIO**step) for step in range(steps)}
    return sorted({*range(4, 100), *known, *(n + 1 for n in known), *between})


def _settings_at(n: int) -> Iterator[MICr]:
    epsilons = sorted({row["epsilon"] for row in tuned_defaults.settings()})
    yield from (default_screen_statistic(n, epsilon) for epsilon in epsilons)
    for low, high in pairwise(epsilons):
        # At an epsilon of the table the sizes may differ from those right beside it.
        yield from _between(n, low * _BESIDE, high / _BESIDE)


def _between(n: int, low: float, high: float) -> Iterator[MICr]:
    """All settings between two epsilons, by bisection.

    B and c are monotone between neighbouring epsilons of the table, so two equal ends have no other
    setting between them.
    """
    ends = default_screen_statistic(n, low), default_screen_statistic(n, high)
    yield from ends
    if ends[0] != ends[1] and high > _APART * low:
        middle = math.sqrt(low * high)
        yield from _between(n, low, middle)
        yield from _between(n, middle, high)


def _as_json(statistic: MICr) -> dict[str, Any]:
    """The setting as in the table of defaults, where a ratio of 1 stands for all sizes."""
    sizes = statistic.sizes
    ratio = sizes.ratio if isinstance(sizes, ladder) else 1.0
    return {"B": statistic.B, "c": statistic.c, "ratio": ratio}
