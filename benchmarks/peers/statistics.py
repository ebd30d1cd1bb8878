"""The statistics that peers add noise to: MICr, Kendall's tau and HSIC.

Each has its sensitivity, the most that one replaced record moves it, and its values for independent
uniform columns, from which levels are computed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri
from scipy.stats import kendalltau

from benchmarks.peers.setting import Data
from dpmic_jax.causal.sensitivity import tau
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.paper import scoring

# The functions that never fall, or never rise, on the unit square.
MONOTONE = ("F9", "F10", "F11", "F12", "F17")

_SEED = 20_231_029
# Independent pairs that are simulated. The noise on MICr is wider than its own distribution, so
# that fewer will do, and they take longer.
_MICR_SETS, _HSIC_SETS, _TOGETHER = 500, 2000, 250
_MOST_RECORDS = 20_000  # for more, the distribution is scaled
_QUANTILES = 4000
_CELLS = 64  # cells of an axis of HSIC

Sets = Float[np.ndarray, " sets"]


class Additive(Protocol):
    """A statistic to which noise may be added."""

    def values(self, x: Data, y: Data) -> Sets:
        """The statistic of each data set."""
        ...

    def null(self, n: int) -> Sets:
        """The statistic of independent pairs of n records."""
        ...

    def sensitivity(self, n: int) -> float:
        """The most that one replaced record moves the statistic."""
        ...


@dataclass(frozen=True)
class MICrValue:
    """MICr, with one of its proven sensitivities.

    Attributes:
      micr: the settings.
      bound: (micr, n) -> sensitivity.
    """

    micr: MICr
    bound: Callable[[MICr, int], Fraction]

    def values(self, x: Data, y: Data) -> Sets:
        """MICr on the unit square."""
        grids = self.micr.grids(x.shape[1])
        return scoring.micr(scoring.best_entries(x, y, grids), grids).astype(float)

    def null(self, n: int) -> Sets:
        """Simulated; proportional to 1 / n for n > 20 000."""
        known = min(n, _MOST_RECORDS)
        return _simulated(self, known, _MICR_SETS) * (known / n)

    def sensitivity(self, n: int) -> float:
        """As given by `bound`."""
        return float(self.bound(self.micr, n))


@dataclass(frozen=True)
class AbsoluteTau:
    """|tau|, with Kendall's tau-a = K / (n (n-1) / 2): ties count 0 (`causal.kendall`).

    It shows monotone relationships only.
    """

    def values(self, x: Data, y: Data) -> Sets:
        """tau-a from scipy's tau-b, which is divided by the pairs that are not tied."""
        found = [
            np.asarray(kendalltau(a, b))[0] * math.sqrt(_untied(a) * _untied(b))
            for a, b in zip(x, y, strict=True)
        ]
        return np.abs(np.nan_to_num(found))  # scipy has no tau-b of a constant column

    def null(self, n: int) -> Sets:
        """Quantiles of a Gaussian of tau's mean 0 and variance 2 (2n + 5) / (9 n (n-1)).

        These hold for independent columns without ties, and tau is Gaussian in the limit.
        """
        above = (np.arange(_QUANTILES) + 0.5) / _QUANTILES / 2
        return -ndtri(above) * math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))

    def sensitivity(self, n: int) -> float:
        """4 / n."""
        return float(tau(n))


@dataclass(frozen=True)
class HSIC:
    """sqrt(HSIC) with Gaussian kernels, of records that are moved to the centres of public cells.

    HSIC is the squared norm of the covariance operator
    C = (1/n) sum_i (phi(x_i) - mean) (psi(y_i) - mean). With centres in place of records it is a
    statistic in its own right, with kernels of the same bounds and so the same sensitivity, and
    it takes a table of counts instead of n^2 kernel values: with p_ij the share of records in
    cell (i, j), D = p_ij - p_i p_j and K the kernel between centres, HSIC = sum (K D K) * D.

    **Sensitivity.** Let one record be replaced, and m be the mean of the n - 1 others. Then
    C' - C = (n-1)/n^2 [u' v' - u v], u = phi(x) - m and so on. Both products are averages over
    the others of the same products with one of phi(x_k), psi(y_l) for the means, so the norm of
    the difference is largest for means that are single points. There its square is
    |u'|^2 |v'|^2 + |u|^2 |v|^2 - 2 <u', u> <v', v>. For kernels within [0, 1] that are 1 on the
    diagonal it is linear in each of the six kernel values, so it is largest where all are 0 or
    1, at 4 + 4 - 2 with all 0. So sqrt(HSIC) moves by sqrt(6) (n-1)/n^2 at most. The published
    4 (n-1)/n^2 is for permuted copies too.

    Attributes:
      bandwidth: h of the kernel e^(-(a - b)^2 / h^2). Public: the median distance of the data,
        which is often used, is not private.
    """

    bandwidth: float

    def values(self, x: Data, y: Data) -> Sets:
        """sqrt(HSIC) of each data set on the unit square."""
        pairs = zip(cells(x), cells(y), strict=True)
        return np.concatenate([self.of_counts(cell_counts(a, b)[None]) for a, b in pairs])

    def of_counts(self, counts: Int[np.ndarray, "sets cells cells"]) -> Sets:
        """sqrt(HSIC) of tables of records in cells."""
        share = counts / counts.sum(axis=(1, 2), keepdims=True)
        apart = share - share.sum(axis=2, keepdims=True) * share.sum(axis=1, keepdims=True)
        kernel = self._kernel()
        return np.sqrt(np.maximum((kernel @ apart @ kernel * apart).sum(axis=(1, 2)), 0))

    def null(self, n: int) -> Sets:
        """Simulated; proportional to 1 / sqrt(n) for n > 20 000."""
        known = min(n, _MOST_RECORDS)
        return _simulated(self, known, _HSIC_SETS) * math.sqrt(known / n)

    def sensitivity(self, n: int) -> float:
        """sqrt(6) (n-1) / n^2, approached."""
        return math.sqrt(6) * (n - 1) / n**2

    def _kernel(self) -> Float[np.ndarray, "cells cells"]:
        centres = (np.arange(_CELLS) + 0.5) / _CELLS
        return np.exp(-(((centres[:, None] - centres) / self.bandwidth) ** 2))


def cells(column: Data) -> Int[np.ndarray, "sets n"]:
    """The cell of HSIC's grid that each record is in."""
    return np.clip((column * _CELLS).astype(np.intp), 0, _CELLS - 1)


def cell_counts(
    x: Int[np.ndarray, " n"], y: Int[np.ndarray, " n"]
) -> Int[np.ndarray, "cells cells"]:
    """Records in each cell of HSIC's grid."""
    return np.bincount(x * _CELLS + y, minlength=_CELLS**2).reshape(_CELLS, _CELLS)


def independent_pairs(sets: int, n: int, *, seed: int) -> tuple[Data, Data]:
    """Independent uniform columns, as x and y."""
    x, y = np.random.default_rng([seed, n]).random((2, sets, n), np.float32)
    return x, y


@lru_cache(maxsize=64)
def _simulated(statistic: Additive, n: int, sets: int) -> Sets:
    seeds = range(_SEED, _SEED + sets // _TOGETHER)
    found = [statistic.values(*independent_pairs(_TOGETHER, n, seed=seed)) for seed in seeds]
    return np.concatenate(found)


def _untied(column: Float[np.ndarray, " n"]) -> float:
    """The share of pairs of records that differ."""
    n, same = len(column), np.unique(column, return_counts=True)[1].astype(float)
    return 1 - (same * (same - 1)).sum() / (n * (n - 1))
