"""What a statistic is on independent columns: the table behind the level of independence.

It has MICr under every setting that the default rule of a screen gives. Any other statistic is
tabulated in the same way: from its values on pairs of columns, and the n that it is needed for.
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

COLUMNS = 128  # 8128 pairs: the deviation is known within 1 %
# Closer where n is small: there n times the mean bends, and shows that n is a whole number.
RECORDS = (4, 5, 6, 7, 8, 11, 16, 23, 32, 45, *(2**k for k in range(6, 14)), MOST_RECORDS)
_RATIO = 1.02  # between n that are tried, beyond the first hundred
_APART, _BESIDE = 1 + 1e-4, 1 + 1e-9  # ratios of epsilons: no longer told apart, next to each other


def levels(statistics: dict[MICr, int], columns: int, store: Store, command: str) -> dict[str, Any]:
    """The table, as JSON keeps it; what the store does not have yet is simulated.

    Args:
      statistics: each with the least n that it is needed for.
      columns: how many; all pairs of them are simulated.
      store: of settings that are done.
      command: that was given.
    """
    rows = []
    for statistic, least in tqdm(statistics.items(), unit="setting", disable=None):
        written = _written(statistic)
        done = store.part(
            "-".join(map(str, written.values())),
            lambda one=statistic, least=least: tabulated(micr_values(one), needed(least), columns),
        )
        rows.append(written | {name: values.tolist() for name, values in done.items()})
    return {"command": command, "seed": SEED, "columns": columns, "MICr": rows}


def tabulated(values: Values, records: Sequence[int], columns: int) -> Part:
    """n times the mean and n times the deviation of a statistic on independent columns."""
    found = np.array([simulated(values, n, columns=columns) for n in records])
    mean, deviation = (np.array(records)[:, None] * found).round(4).T
    return {"n": np.array(records), "mean": mean, "deviation": deviation}


def needed(least: int) -> tuple[int, ...]:
    """The n between which all from `least` on are interpolated; the next n tried was lower."""
    first = max(n for n in RECORDS if n <= max(least / _RATIO, RECORDS[0]))
    return tuple(n for n in RECORDS if n >= first)


def described(statistics: dict[MICr, int], columns: int) -> dict[str, Any]:
    """What the parts of a run depend on."""
    settings = [[*_written(one).values(), needed(least)] for one, least in statistics.items()]
    return {"settings": settings, "columns": columns, "seed": SEED}


def default_settings() -> dict[MICr, int]:
    """Every setting that `default_screen_statistic` gives for some n and epsilon, and the least n.

    Of settings that score the same grids the first is kept.
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
    """Every n to 100, those of the table of defaults and right after them, many between them."""
    known = {row["n"] for row in tuned_defaults.settings()}
    steps = math.ceil(math.log(max(known) / 100) / math.log(_RATIO))
    between = {round(100 * _RATIO**step) for step in range(steps)}
    return sorted({*range(4, 100), *known, *(n + 1 for n in known), *between})


def _settings_at(n: int) -> Iterator[MICr]:
    epsilons = sorted({row["epsilon"] for row in tuned_defaults.settings()})
    yield from (default_screen_statistic(n, epsilon) for epsilon in epsilons)
    for low, high in pairwise(epsilons):
        # An entry of the table of defaults may have other sizes than all around it.
        yield from _between(n, low * _BESIDE, high / _BESIDE)


def _between(n: int, low: float, high: float) -> Iterator[MICr]:
    """B and c rise or fall steadily here: between two that are the same there is no other."""
    ends = default_screen_statistic(n, low), default_screen_statistic(n, high)
    yield from ends
    if ends[0] != ends[1] and high > _APART * low:
        middle = math.sqrt(low * high)
        yield from _between(n, low, middle)
        yield from _between(n, middle, high)


def _written(statistic: MICr) -> dict[str, Any]:
    """As the table of defaults has it: a ratio of 1 stands for all sizes."""
    sizes = statistic.sizes
    ratio = sizes.ratio if isinstance(sizes, ladder) else 1.0
    return {"B": statistic.B, "c": statistic.c, "ratio": ratio}
