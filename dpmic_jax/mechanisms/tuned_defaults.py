"""(n, epsilon) -> B, c and sizes: what to use when the caller does not say.

`tuned.json` has, for n = 25 ... 10^6 and epsilon = 0.1 ... 10, the setting of MICr that is most
accurate after Laplace noise of the exact sensitivity, over the MIC paper's 189 distributions, and
the cheapest one within 5 % of it. `dpmic paper tune` makes it. Between its entries log B and c are
interpolated in log n and log epsilon; outside of them the nearest is used. Nothing looks at data.
`tuned_variation.json` has what `VariationLap`'s statistic is on the same distributions;
`dpmic paper calibrate` makes it.
"""

import hashlib
import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dpmic_jax.mic.grids import all_sizes, ladder
from dpmic_jax.mic.statistics import MICr


def defaults(n: int, epsilon: float) -> MICr:
    """The most accurate setting for n records, and noise for epsilon on one pair's value."""
    return _interpolated("accurate", n, epsilon)


def cheap_defaults(n: int, epsilon: float) -> MICr:
    """The cheapest setting that is within 5 % of the most accurate one."""
    return _interpolated("cheap", n, epsilon)


class Family(NamedTuple):
    """What a statistic is at n records where MIC* is known: the 189 distributions.

    Attributes:
      functions: which of the 21 functions each distribution is of.
      stars: MIC* of each distribution.
      values: quantiles, at the middles of equal parts, of the statistic.
    """

    functions: tuple[str, ...]
    stars: Float[np.ndarray, " distributions"]
    values: Float[np.ndarray, "distributions quantiles"]


def family(n: int) -> Family:
    """MICr under `defaults` at n records, interpolated in log n."""
    return _family(_table(), n)


def variation_family(n: int) -> Family:
    """`VariationLap`'s statistic with its default parts at n records, interpolated in log n."""
    return _family(_variation(), n)


def _family(kept: dict[str, Any], n: int) -> Family:
    records = [entry["n"] for entry in kept["calibration"]]
    low, high, share = _between(n, records)
    below, above = (np.array(kept["calibration"][i]["values"]) for i in (low, high))
    stars = np.array(kept["mic_star"])
    return Family(tuple(kept["functions"]), stars, (1 - share) * below + share * above)


def _table() -> dict[str, Any]:
    return _read("tuned.json")


def _variation() -> dict[str, Any]:
    return _read("tuned_variation.json")


@lru_cache(maxsize=2)
def _read(name: str) -> dict[str, Any]:
    return json.loads(resources.files("dpmic_jax.mechanisms").joinpath(name).read_text())


def _interpolated(kind: str, n: int, epsilon: float) -> MICr:
    kept = _table()
    rows = {(row["n"], row["epsilon"]): row[kind] for row in kept["settings"]}
    records, epsilons = kept["records"], kept["epsilons"]
    *at_n, n_share = _between(n, records)
    *at_epsilon, epsilon_share = _between(epsilon, epsilons)
    corners = [
        (a * b, rows[records[i], epsilons[j]])
        for i, a in zip(at_n, (1 - n_share, n_share), strict=True)
        for j, b in zip(at_epsilon, (1 - epsilon_share, epsilon_share), strict=True)
        if a * b > 0
    ]
    B = math.exp(sum(weight * math.log(row["B"]) for weight, row in corners))
    c = sum(weight * row["c"] for weight, row in corners)
    # The finest sizes of all corners; a ratio of 1 stands for all sizes.
    ratio = min(row["ratio"] for _, row in corners)
    sizes = all_sizes if ratio == 1 else ladder(ratio)
    return MICr(B=max(4, round(B)), c=round(c, 3), sizes=sizes)


def _between(value: float, points: list[float]) -> tuple[int, int, float]:
    """The two entries around a value, and how far it is from the first, by logarithms."""
    at = float(np.interp(math.log(value), np.log(points), np.arange(len(points))))
    low = min(int(at), len(points) - 2)
    return low, low + 1, at - low


def fingerprint() -> str:
    """Tells tables apart: results that depend on one say which."""
    content = json.dumps([_table(), _variation()], sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def made_by() -> str:
    """The command that made the table."""
    return _table()["command"]


def settings() -> list[dict[str, Any]]:
    """Its rows: n, epsilon, and for "accurate" and "cheap" the setting, WSUM and work."""
    return _table()["settings"]


def published() -> list[dict[str, Any]]:
    """What the same search finds for the published mechanisms: [c, B, WSUM], the best first."""
    return _table()["published"]
