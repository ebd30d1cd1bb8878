"""The private permutation test of HSIC: dpHSIC of Kim and Schrab (arXiv 2310.19043).

With T_0 the statistic, T_1 ... T_B those of B random permutations of y, and independent Laplace
noise Z of scale 2 Delta / epsilon on all of them, a pair is called dependent if

    (1 + #{b: T_b + Z_b >= T_0 + Z_0}) / (B + 1) <= alpha.

Delta bounds the move of every copy. If x_i alone is replaced, C of `HSIC` moves by
(phi(x') - phi(x)) (psi(y_k) - mean) / n, with k the partner of i, of norm 2 (n-1)/n^2 at most; if
y_i is, by as much. So Delta = 4 (n-1)/n^2, under every permutation. The decision, not the p-value,
is epsilon-DP, whatever B is. Its level is exact at any n and for any distribution of the columns.

A decision is no additive release, so there is no cube for d of them: each is a test of its own at
level alpha / d, and their epsilons compose.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import betaincinv
from scipy.stats import binom

from benchmarks.peers.noise import Laplace
from benchmarks.peers.setting import FALSE_ALARMS, Data, Probabilities, Setting
from benchmarks.peers.statistics import HSIC, cell_counts, cells
from dpmic_jax.dp.arithmetic.bisection import bisect

PERMUTATIONS = 2000  # as published, for one test
_LEAST_RANK = 20  # more permutations for many tests, so that alpha / d is so many ranks
_COPIES = 100  # permutations that are computed, from which the others' distribution is taken
_NODES = 32  # quantiles of the critical value
_HALVINGS = 50
_SEED = 20_231_030

Copies = Float[np.ndarray, "sets copies"]


@dataclass(frozen=True)
class PermutedHSIC:
    """sqrt(HSIC) of each data set, followed by that of random permutations of its y."""

    hsic: HSIC
    copies: int = _COPIES

    def values(self, x: Data, y: Data) -> Copies:
        """The statistic first, then its permuted copies."""
        rng = np.random.default_rng([_SEED, x.shape[1]])
        return np.stack(
            [self._row(a, b, rng) for a, b in zip(cells(x), cells(y), strict=True)],
        )

    def _row(self, x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        permuted = (rng.permutation(y) for _ in range(self.copies))
        return self.hsic.of_counts(np.stack([cell_counts(x, each) for each in (y, *permuted)]))


@dataclass(frozen=True, kw_only=True)
class PermutationTest:
    """dpHSIC for each pair at level alpha / d.

    Attributes:
      name: in tables.
      permuted: the statistic and its copies.
      composition: the epsilon of one of the d tests.
    """

    name: str
    permuted: PermutedHSIC
    composition: Callable[[Setting], float]

    def statistic(self, setting: Setting) -> PermutedHSIC:
        """The same at every setting."""
        return self.permuted

    def power(self, values: Copies, setting: Setting) -> Probabilities:
        """P(T_0 + Z_0 > V), V the k-th largest of the noisy copies, k = (B + 1) alpha / d."""
        n = setting.n
        noise = Laplace(2 * 4 * (n - 1) / n**2 / self.composition(setting))
        permutations = max(PERMUTATIONS, round(_LEAST_RANK * setting.pairs / FALSE_ALARMS) - 1)
        # A little up, for (B + 1) alpha / d that is an integer but for rounding.
        rank = math.floor((permutations + 1) * FALSE_ALARMS / setting.pairs * (1 + 1e-12))
        critical = critical_values(values[:, 1:], noise, rank, permutations)
        return noise.tail(critical - values[:, :1]).mean(axis=1)

    def false_alarms(self, values: Copies, setting: Setting) -> float:
        """1 - (1 - P(a pair is called dependent))^d."""
        one = float(self.power(values, setting).mean())
        return -math.expm1(setting.pairs * math.log1p(-one))


def critical_values(
    copies: Copies, noise: Laplace, rank: int, permutations: int
) -> Float[np.ndarray, "sets nodes"]:
    """Quantiles of the `rank`-th largest of so many noisy copies, for each data set.

    Noisy copies are independent given the data. With p(v) the probability that one of them
    exceeds v, p of the k-th largest of B is Beta(k, B + 1 - k) distributed. The copies given stand
    for all permutations: without noise m of them raise the level by about 1/(2m), in favour of
    the test, and with noise wider than their own spread by nothing that shows.
    """
    middle = (np.arange(_NODES) + 0.5) / _NODES
    above = betaincinv(rank, permutations + 1 - rank, middle)
    # All copies at the smallest, or all at the largest, would have their critical value here.
    alone = noise.scale * np.where(above < 0.5, -np.log(2 * above), np.log(2 * (1 - above)))
    low, high = (edge[:, None] + alone for edge in (copies.min(axis=1), copies.max(axis=1)))
    for _ in range(_HALVINGS):
        at = (low + high) / 2
        beyond = noise.tail(at[:, :, None] - copies[:, None, :]).mean(axis=2)
        low, high = np.where(beyond > above, at, low), np.where(beyond > above, high, at)
    return (low + high) / 2


def basic(setting: Setting) -> float:
    """Epsilon of each test by basic composition: epsilon / d."""
    return setting.epsilon / setting.pairs


def optimal(setting: Setting) -> float:
    """Epsilon of each test by optimal composition with a delta, found by bisection.

    d decisions that are a-DP each are at worst d randomised responses: with m of them on the likely
    side, the loss is (2m - d) a, and delta = E[(1 - e^(epsilon - loss))+] (Kairouz, Oh and
    Viswanath 2015). No theorem for pure differential privacy allows more.
    """
    return _optimal(setting.pairs, setting.epsilon, setting.delta)


@lru_cache(maxsize=64)
def _optimal(pairs: int, epsilon: float, delta: float) -> float:
    likely = np.arange(pairs + 1)

    def private(each: float) -> bool:
        chance = binom.pmf(likely, pairs, 1 / (1 + math.exp(-each)))
        excess = -np.expm1(np.minimum(epsilon - (2 * likely - pairs) * each, 0))
        return bool(chance @ excess <= delta)

    return bisect(private, epsilon / pairs * (1 - 1e-12), epsilon * (1 + 1e-9)).holds
