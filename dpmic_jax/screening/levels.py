"""What MICr is on independent columns, for every setting of the default rule: a table.

`levels.json` has n times the mean and n times the standard deviation at a ladder of n, from the
least n that `default_screen_statistic` gives a setting for up to `MOST_RECORDS`; `dpmic paper
levels` makes it. Both hardly depend on n, so that they are interpolated in log n.
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

# Beyond, MICr of independent columns falls as 1 / n.
MOST_RECORDS = 20_000


class _Row(NamedTuple):
    records: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    deviation: Float[np.ndarray, " n"]


def shipped(statistic: MICr, n: int) -> Moments | None:
    """Mean and deviation at n records, or None where the table has neither.

    Settings that score the same grids are the same statistic, however they are written.
    """
    row = _rows().get(statistic.grids(n))
    if row is None or not row.records[0] <= n <= row.records[-1]:
        return None
    at, points = np.log(n), np.log(row.records)
    return Moments(*(float(np.interp(at, points, each)) / n for each in (row.mean, row.deviation)))


def made_by() -> str:
    """The command that made the table."""
    return _table()["command"]


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
