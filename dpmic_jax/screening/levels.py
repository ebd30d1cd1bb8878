"""A table of the moments of MICr on independent columns, for every setting of the default rule.

`levels.json` has n times the mean and n times the standard deviation on a ladder of n, from the
smallest n for which `default_screen_statistic` chooses the setting to `MOST_RECORDS`. Both hardly
depend on n, so they are interpolated in log n. The command `dpmic paper levels` computes them.
"""

import json
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dpmic_jax.mic.grids import Grid, all_sizes, ladder
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.simulation import Moments

# For larger n, MICr of independent columns is proportional to 1 / n.
MOST_RECORDS = 20_000


class _Row(NamedTuple):
    records: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    deviation: Float[np.ndarray, " n"]


def shipped(statistic: MICr, n: int) -> Moments | None:
    """The moments at n records; None if they are not in the table.

    Settings with the same grids are the same statistic, so the table is looked up by grids.
    """
    row = _rows().get(statistic.grids(n))
    if row is None or not row.records[0] <= n <= row.records[-1]:
        return None
    at, points = np.log(n), np.log(row.records)
    return Moments(*(float(np.interp(at, points, each)) / n for each in (row.mean, row.deviation)))


@lru_cache(maxsize=1)
def _rows() -> dict[tuple[Grid, ...], _Row]:
    return {
        _statistic(row).grids(0): _Row(*(np.array(row[key]) for key in ("n", "mean", "deviation")))
        for row in _table()["MICr"]
    }


def _statistic(row: dict[str, Any]) -> MICr:
    sizes = all_sizes if row["ratio"] == 1 else ladder(row["ratio"])
    return MICr(B=row["B"], c=row["c"], sizes=sizes)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return json.loads(resources.files("dpmic_jax.screening").joinpath("levels.json").read_text())
