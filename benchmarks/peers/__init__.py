"""Other private tests of all pairs of a table, at the same budget for the whole table.

All are told n records, d pairs and an (epsilon, delta) for all pairs together (`Setting`), and all
call any of d independent pairs dependent in 5 % of tables. The statistic of a data set is computed
once; how often it is called dependent is then an integral over the noise, computed and not
simulated. Levels of noisy values are for uniform columns, those of permutation tests for any.

Peers with cube noise have what this package adds for many values at once, so that the gain of the
noise and that of the statistic can be told apart. Peers with Gaussian noise or `optimal`
composition need a delta.
"""

from benchmarks.peers import additive, kernel_test, noise
from benchmarks.peers.additive import FirstScreen, NoisyStatistic
from benchmarks.peers.kernel_test import PermutationTest, PermutedHSIC
from benchmarks.peers.setting import FALSE_ALARMS, Peer, Setting
from benchmarks.peers.statistics import HSIC, MONOTONE, AbsoluteTau, independent_pairs

# The published experiments scale [0, 1] by 4 and have a bandwidth of 1.
PUBLISHED_HSIC = HSIC(1 / 4)

# Pure differential privacy: delta = 0.
PURE: tuple[Peer, ...] = (
    FirstScreen(
        name="MICr, Laplace, as in version 0.1.0",
        statistic=additive.first_screen_statistic,
        noise=noise.laplace,
    ),
    NoisyStatistic(
        name="MICr, Laplace", statistic=additive.first_screen_statistic, noise=noise.laplace
    ),
    NoisyStatistic(name="MICr, cube", statistic=additive.first_screen_statistic, noise=noise.cube),
    NoisyStatistic(
        name="published MICr-Lap", statistic=additive.published_statistic, noise=noise.laplace
    ),
    NoisyStatistic(
        name="published MICr, cube", statistic=additive.published_statistic, noise=noise.cube
    ),
    NoisyStatistic(name="tau, Laplace", statistic=lambda _: AbsoluteTau(), noise=noise.laplace),
    NoisyStatistic(name="tau, cube", statistic=lambda _: AbsoluteTau(), noise=noise.cube),
    NoisyStatistic(name="HSIC, Laplace", statistic=lambda _: PUBLISHED_HSIC, noise=noise.laplace),
    NoisyStatistic(name="HSIC, cube", statistic=lambda _: PUBLISHED_HSIC, noise=noise.cube),
    PermutationTest(
        name="dpHSIC", permuted=PermutedHSIC(PUBLISHED_HSIC), composition=kernel_test.basic
    ),
)

# With a delta above 0.
APPROXIMATE: tuple[Peer, ...] = (
    NoisyStatistic(
        name="MICr, Gaussian", statistic=additive.first_screen_statistic, noise=noise.gaussian
    ),
    NoisyStatistic(name="tau, Gaussian", statistic=lambda _: AbsoluteTau(), noise=noise.gaussian),
    NoisyStatistic(name="HSIC, Gaussian", statistic=lambda _: PUBLISHED_HSIC, noise=noise.gaussian),
    PermutationTest(
        name="dpHSIC, optimal composition",
        permuted=PermutedHSIC(PUBLISHED_HSIC),
        composition=kernel_test.optimal,
    ),
)

__all__ = [
    "APPROXIMATE",
    "FALSE_ALARMS",
    "MONOTONE",
    "PURE",
    "Peer",
    "Setting",
    "independent_pairs",
]
