"""`VariationLap`'s statistic on the 189 distributions: the table behind its estimate of MIC*."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from dpmic_jax.data.table import Table
from dpmic_jax.mechanisms.histogram import cell_counts
from dpmic_jax.mechanisms.variation import parts_for
from dpmic_jax.mic.variation import variation
from dpmic_jax.paper import family

RECORDS = (25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 100_000)
SETS = (40, 40, 40, 20, 20, 20, 10, 5, 3, 1)  # data sets of each distribution, for each n
_QUANTILES = 3
_SEED = 0  # the same data sets as in the tuning
_TOGETHER = 256  # data sets counted in one call, which bounds the memory


def calibrated(records: Sequence[int], sets: Sequence[int], command: str) -> dict[str, Any]:
    """The contents of the JSON file: quantiles of the statistic, by n and distribution.

    Args:
      records: every n.
      sets: data sets of each distribution, for each n.
      command: the command line that is recorded in the file.
    """
    known = family.family()
    entries = []
    for n, repeats in zip(records, sets, strict=True):
        values = np.concatenate(
            [_values(range(start, start + 9), n, repeats) for start in range(0, len(known), 9)]
        )
        kept = np.round(quantiles(values), 4).tolist()
        entries.append({"n": n, "parts": parts_for(n), "values": kept})
    return {
        "command": command,
        "sets": dict(zip(map(str, records), sets, strict=True)),
        "seed": _SEED,
        "functions": known.names,
        "mic_star": known.stars.tolist(),
        "calibration": entries,
    }


def _values(which: range, n: int, repeats: int) -> Float[np.ndarray, "distributions sets"]:
    x, y = family.data_sets(family.family(), which, n, range(repeats), seed=_SEED)
    return variations(x, y, parts_for(n)).reshape(len(which), repeats)


def quantiles(
    values: Float[np.ndarray, "distributions sets"],
) -> Float[np.ndarray, "distributions quantiles"]:
    """Quantiles of each distribution's values, at 1/6, 3/6 and 5/6."""
    return np.quantile(values, (np.arange(_QUANTILES) + 0.5) / _QUANTILES, axis=1).T


def variations(
    x: Float32[np.ndarray, "sets n"], y: Float32[np.ndarray, "sets n"], parts: int
) -> Float[np.ndarray, " sets"]:
    """The total variation statistic of each data set on the unit square, without noise.

    Args:
      x, y: data sets of n records each.
      parts: number of bins of an axis.
    """
    sets, n = x.shape
    found = []
    for start in range(0, sets, _TOGETHER):
        columns = (*x[start : start + _TOGETHER], *y[start : start + _TOGETHER])
        half = np.arange(len(columns) // 2)
        data = Table(tuple(map(str, range(len(columns)))), columns)
        pairs = np.stack([half, half + len(half)], axis=1)
        limits = ((0.0, 1.0),) * len(columns)
        found.append(variation(cell_counts(data, limits, pairs, parts)))
    return np.concatenate(found) / n**2
