"""Peers that add noise to the statistic of every pair, and call it dependent above a level."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from benchmarks.peers import noise
from benchmarks.peers.noise import Noise, NoiseRule
from benchmarks.peers.setting import FALSE_ALARMS, Probabilities, Setting
from benchmarks.peers.statistics import Additive, MICrValue
from dpmic_jax.mechanisms import published_defaults, sensitivity
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import cells

# Mean and standard deviation of the standard Gumbel distribution.
_EULER, _GUMBEL_SD = 0.577215664901533, math.pi / math.sqrt(6)
_MOST_CELLS, _FINEST = 150, 5

Values = Float[np.ndarray, " sets"]


@dataclass(frozen=True, kw_only=True)
class NoisyStatistic:
    """Noise on a statistic, and the exact level of the noisy values of independent pairs.

    Attributes:
      name: in tables.
      statistic: the statistic at a setting.
      noise: the noise at a setting, for a sensitivity.
    """

    name: str
    statistic: Callable[[Setting], Additive]
    noise: NoiseRule

    def noise_at(self, setting: Setting) -> Noise:
        """The noise on each pair's value."""
        return self.noise(setting, self.statistic(setting).sensitivity(setting.n))

    def level(self, setting: Setting) -> float:
        """The level that any of the noisy values exceeds in 5 % of tables."""
        null = self.statistic(setting).null(setting.n)
        return noise.level(self.noise_at(setting), null, setting.pairs, FALSE_ALARMS)

    def power(self, values: Values, setting: Setting) -> Probabilities:
        """P(T + Z > level)."""
        return self.noise_at(setting).tail(self.level(setting) - values)

    def false_alarms(self, values: Values, setting: Setting) -> float:
        """P(max T_i + Z_i > level)."""
        return self.noise_at(setting).largest_tail(self.level(setting), values, setting.pairs)


@dataclass(frozen=True, kw_only=True)
class FirstScreen(NoisyStatistic):
    """Screens of version 0.1.0: half of the false alarms are for chance, half for noise.

    A Gumbel distribution is fitted to MICr of independent columns by its mean and variance, and
    noise has Bonferroni's quantile. Values are clipped to [0, 1], so none exceeds a level of 1.
    """

    def level(self, setting: Setting) -> float:
        """The level of MICr by chance, plus what the largest noise exceeds."""
        null, half = self.statistic(setting).null(setting.n), FALSE_ALARMS / 2
        scale = float(null.std(ddof=1)) / _GUMBEL_SD
        by_chance = float(null.mean()) + scale * (
            math.log(setting.pairs) - math.log(-math.log1p(-half)) - _EULER
        )
        found = self.noise_at(setting)
        assert isinstance(found, noise.Laplace), "the level is that of Laplace noise"
        level = min(1.0, by_chance) - found.scale * math.log(2 * half / setting.pairs)
        return level if level < 1 else math.inf


def first_screen_statistic(setting: Setting) -> MICrValue:
    """MICr as version 0.1.0 chose it for n and epsilon / d, with the exact sensitivity."""
    cheap = cheap_defaults(setting.n, setting.epsilon / setting.pairs)
    B = min(cells(cheap.B, setting.n), _MOST_CELLS)
    return MICrValue(replace(cheap, B=B, c=min(cheap.c, _FINEST)), sensitivity.integer_path)


def published_statistic(setting: Setting) -> MICrValue:
    """MICr with B and c of the MIC paper's Table 2, and its sensitivity (4 log2 n + 6) / n."""
    micr = published_defaults.micr_lap(setting.n, setting.epsilon / setting.pairs)
    return MICrValue(micr, sensitivity.published)
