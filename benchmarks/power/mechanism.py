"""The screen of this package as one of the peers: its plan, its noise and its proven level."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from benchmarks.peers import Setting, noise
from benchmarks.peers.additive import NoisyStatistic
from benchmarks.peers.noise import Noise
from benchmarks.peers.setting import Data
from benchmarks.peers.statistics import independent_pairs
from dpmic_jax.data.limits import Limits
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.mic import batch
from dpmic_jax.mic.distance import steps_of
from dpmic_jax.mic.statistics import MICrAndDistance
from dpmic_jax.screening import Against, AllPairs, Ask, preview
from dpmic_jax.screening.planning import Plan

_NULL_SEED = 20_261_119
_NULL_SETS, _TOGETHER = 4000, 250
_MOST_RECORDS = 20_000  # for more, the distribution of independent pairs is scaled

Values = Float[np.ndarray, " sets"]


def query(pairs: int) -> tuple[int, Ask]:
    """Columns and question of a screen of so many pairs: all, or 11 of one with the others."""
    columns = math.isqrt(2 * pairs) + 1
    if columns * (columns - 1) == 2 * pairs:
        return columns, AllPairs()
    return pairs + 1, Against("x0")


@lru_cache(maxsize=64)
def plan_of(setting: Setting) -> Plan:
    """The plan of the real screen, with the default statistic."""
    columns, ask = query(setting.pairs)
    names = [f"x{number}" for number in range(columns)]
    return preview(
        columns=names, n=setting.n, epsilon=setting.epsilon, delta=setting.delta, ask=ask
    ).plan


def distances(columns: list[np.ndarray], limits: list[Limits], pairs: np.ndarray) -> Values:
    """Distances from independence, by the engine."""
    n = len(columns[0])
    cut = MICrAndDistance(micr=None).cut(columns, limits)
    found = np.concatenate([each[-1].max(axis=0) for each in batch.score_pairs(cut, pairs, None)])
    return found / (2 * steps_of(n) * n)


@dataclass(frozen=True)
class Distance:
    """The distance from independence (`mic.distance`)."""

    def values(self, x: Data, y: Data) -> Values:
        """Of each data set on the unit square."""
        sets = len(x)
        pairs = np.stack([np.arange(sets), sets + np.arange(sets)], axis=1)
        return distances([*x, *y], [(0.0, 1.0)] * (2 * sets), pairs)

    def null(self, n: int) -> Values:
        """Simulated; proportional to 1 / sqrt(n) for n > 20 000."""
        known = min(n, _MOST_RECORDS)
        return _null(known) * math.sqrt(known / n)

    def sensitivity(self, n: int) -> float:
        """1 / n."""
        return 1 / n


@lru_cache(maxsize=16)
def _null(n: int) -> Values:
    seeds = range(_NULL_SEED, _NULL_SEED + _NULL_SETS // _TOGETHER)
    drawn = (independent_pairs(_TOGETHER, n, seed=seed) for seed in seeds)
    return np.concatenate([Distance().values(x, y) for x, y in drawn])


def planned_noise(setting: Setting, sensitivity: float) -> Noise:
    """The noise on distances that the plan chose; its sensitivity is its own."""
    found = plan_of(setting).distances
    if isinstance(found, LatticeCube):
        return noise.Cube(1 / found.lattice.top, found.noise)
    return noise.Gaussian(found.scale)


class ProvenLevel(NoisyStatistic):
    """The screen as it is: values above the plan's level are called dependent."""

    def level(self, setting: Setting) -> float:
        """The level of the plan; values are clipped to [0, 1], so none exceeds a level of 1."""
        level = plan_of(setting).dependence_level
        return level if level < 1 else math.inf


SCREEN = ProvenLevel(name="this package", statistic=lambda _: Distance(), noise=planned_noise)
# What the same screen would find if all columns were known to be uniform.
SIMULATED = NoisyStatistic(
    name="this package, simulated level", statistic=lambda _: Distance(), noise=planned_noise
)
# The noise of version 0.1.0 on the new statistic tells the gain of both apart.
LAPLACE = NoisyStatistic(
    name="distance, Laplace", statistic=lambda _: Distance(), noise=noise.laplace
)
