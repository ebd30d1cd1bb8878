"""Mean power of the screen and of its peers over functions, and over shapes that are none."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from benchmarks.peers import APPROXIMATE, MONOTONE, PURE, Peer, Setting
from benchmarks.peers.setting import Statistic
from benchmarks.power import data
from benchmarks.power.mechanism import LAPLACE, SCREEN, SIMULATED, plan_of

# What must hold, and the mean power of version 0.1.0.
BARS = {
    Setting(10_000, 66, 1.0): (0.97, 0.29),
    Setting(10_000, 435, 1.0): (0.88, 0.00),
    Setting(10_000, 435, 1.0, 1e-6): (0.97, 0.44),
    Setting(1000, 11, 1.0): (0.95, 0.26),
    Setting(10_000, 66, 0.1): (0.70, 0.00),
    Setting(100_000, 435, 0.1): (0.92, 0.00),
}
SETTINGS = (
    *BARS,
    Setting(1000, 66, 1.0),
    Setting(10_000, 11, 0.1),
    Setting(10_000, 4950, 1.0),
    Setting(10_000, 4950, 1.0, 1e-6),
)
RECORDS = (300, 1000, 3000, 10_000, 30_000, 100_000)  # of the curve
HARD = Setting(10_000, 435, 1.0)  # for which each function and shape is shown
MAIN = (
    "MICr, Laplace, as in version 0.1.0",
    "published MICr-Lap",
    "MICr, cube",
    "tau, cube",
    "HSIC, cube",
    "dpHSIC",
)
OURS = (SCREEN, SIMULATED)
_FEW_RECORDS = 20_000  # up to which every distribution has several data sets


class Values:
    """Statistics of data sets, each computed once."""

    def __init__(self, repeats: int):
        self._repeats = repeats
        self._known: dict[tuple[Statistic, str, int], np.ndarray] = {}

    @lru_cache(maxsize=2)  # noqa: B019  one object lives as long as the command
    def sets(self, group: str, n: int) -> data.Sets:
        """The data sets of a group."""
        repeats = self._repeats if n <= _FEW_RECORDS else 1
        return getattr(data, group)(n, repeats)

    def of(self, peer: Peer, setting: Setting, group: str) -> np.ndarray:
        """The statistic that a peer has at a setting, of every data set of a group."""
        statistic = peer.statistic(setting)
        asked = statistic, group, setting.n
        if asked not in self._known:
            sets = self.sets(group, setting.n)
            self._known[asked] = statistic.values(sets.x, sets.y)
        return self._known[asked]

    def power(self, peer: Peer, setting: Setting, group: str) -> Float[np.ndarray, " sets"]:
        """The probability that each data set is called dependent."""
        return peer.power(self.of(peer, setting, group), setting)

    def names(self, group: str, n: int) -> tuple[str, ...]:
        """The function or shape of every data set."""
        return self.sets(group, n).names


def peers_at(setting: Setting) -> list[Peer]:
    """Those that spend no more than a setting allows."""
    return [*OURS, LAPLACE, *PURE, *(APPROXIMATE if setting.delta else ())]


def compared(values: Values, settings: Sequence[Setting] = SETTINGS) -> list[dict[str, Any]]:
    """Mean power over functions, monotone functions and shapes, for every setting and peer."""
    rows = []
    for setting in tqdm(sorted(settings), desc="peers"):
        bar, before = BARS.get(setting, (None, None))
        plan = plan_of(setting)
        monotone = np.isin(values.names("functions", setting.n), MONOTONE)
        found = []
        for peer in peers_at(setting):
            every = values.power(peer, setting, "functions")
            found.append(
                {
                    "name": peer.name,
                    "functions": _rounded(every.mean()),
                    "monotone": _rounded(every[monotone].mean()),
                }
            )
        for row, peer in zip(found, peers_at(setting), strict=True):
            row["shapes"] = _rounded(values.power(peer, setting, "shapes").mean())
        rows.append(
            {
                **setting._asdict(),
                "bar": bar,
                "0.1.0": before,
                "noise": plan.mechanism.partition(": ")[2],
                "noise_sd": _rounded(plan.distances.sd, 5),
                "level": _rounded(SCREEN.level(setting), 4),
                "simulated level": _rounded(SIMULATED.level(setting), 4),
                "peers": found,
            }
        )
    return rows


def curve(values: Values, records: Sequence[int] = RECORDS) -> list[dict[str, Any]]:
    """Mean power over the functions against n, at epsilon 1 and 66 pairs."""
    shown = [SCREEN, *(peer for peer in PURE if peer.name in MAIN)]
    rows = []
    for n in tqdm(records, desc="curve"):
        setting = Setting(n, 66, 1.0)
        power = {p.name: _rounded(values.power(p, setting, "functions").mean()) for p in shown}
        rows.append({"n": n, "power": power})
    return rows


def found(values: Values, setting: Setting = HARD) -> dict[str, Any]:
    """Power of the screen for every function at each R^2, and for every shape at each width."""
    table: dict[str, Any] = {"setting": setting._asdict()}
    for group, strengths in (("functions", 9), ("shapes", len(data.DEVIATIONS))):
        names = list(dict.fromkeys(values.names(group, setting.n)))
        every = values.power(SCREEN, setting, group).reshape(len(names), strengths, -1)
        exact = values.of(SCREEN, setting, group).reshape(every.shape)
        table[group] = {
            name: {"power": _list(some.mean(axis=1)), "distance": _list(one.mean(axis=1))}
            for name, some, one in zip(names, every, exact, strict=True)
        }
    return table


def _list(values: np.ndarray) -> list[float]:
    return [_rounded(each) for each in values]


def _rounded(value: float, digits: int = 3) -> float:
    return round(float(value), digits)
