"""MICrHistogram: one histogram of a pair, noised once; everything else is post-processing.

Relation: one person's records are replaced by others; n and the bounds of the columns are public.
A replaced record leaves one cell of the histogram and enters another, so two counts move by one.
Each count is released by itself with noise that is epsilon/2-DP for a move by one
(`dp.noise.bounded`), with noise of its own. So a record costs epsilon/2 twice, and r records, one
after the other, cost r epsilon: noise for epsilon / r keeps epsilon for a person who owns r.

What follows sees the noisy counts only, so it is free: a picture of the joint distribution, the
characteristic matrix and every statistic that is read off it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.data.table import Table
from dpmic_jax.dp.accounting.events import Event, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, check_positive
from dpmic_jax.dp.ledger.file import Receipt
from dpmic_jax.dp.noise import TruncatedGeometric
from dpmic_jax.dp.rng.keys import is_secret
from dpmic_jax.mechanisms import deconvolution
from dpmic_jax.mechanisms.base import OnBounds, Positions, Settings
from dpmic_jax.mechanisms.deconvolution import Design
from dpmic_jax.mechanisms.release import PrivateValue, add_noise
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.binning import by_range
from dpmic_jax.mic.characteristic import Characteristic
from dpmic_jax.runs.charged import ChargedRun

# Counts are clipped to this many scales of the noise beyond 0 and n: hardly ever.
_ROOM = 30
_TOGETHER = 256  # pairs estimated at a time


@dataclass(frozen=True)
class HistogramRelease(PrivateValue):
    """A private histogram of one pair or many, and what it tells. `value` estimates MIC.

    Attributes:
      counts: noisy records in each cell, x first; some are negative.
      mass: estimated probabilities of the cells, a picture of the joint distribution.
      matrix: the estimated characteristic matrix, off which all other statistics are read.
    """

    counts: Int[np.ndarray, "*pairs side side"]
    mass: Float[np.ndarray, "*pairs side side"]
    matrix: Characteristic


@dataclass(frozen=True, kw_only=True)
class MICrHistogram(OnBounds[HistogramRelease]):
    """Release a noisy histogram of a pair, and MIC and its kin off it: epsilon-DP for each pair.

    Attributes:
      epsilon: of the release of one pair.
      design: the histogram's `Design`, or a rule that gives it for (n=, epsilon=).
      relation: how many records one person may own.
    """

    epsilon: float
    design: Design | Callable[..., Design] = deconvolution.design

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def resolve(self, n: int) -> Design:
        """The histogram for n records."""
        rule = self.design
        return rule if isinstance(rule, Design) else rule(n=n, epsilon=float(self._a_record))

    def settled(self, n: int, count: int = 1) -> Self:
        return replace(self, design=self.resolve(n))

    def settings(self, n: int) -> Settings:
        return (("side", str(self.resolve(n).side)),)

    def guarantee(self, n: int) -> PureDP:
        return PureDP(self.epsilon)

    def sensitivity(self, n: int) -> Fraction:
        """The most that one person's records move the counts, added up: two cells for each."""
        return Fraction(2 * self.relation.records)

    @property
    def _a_record(self) -> Fraction:
        return as_fraction(self.epsilon) / self.relation.records

    def room(self, n: int) -> int:
        """How far beyond 0 and n a noisy count may lie."""
        return min(round(_ROOM * 2 / self._a_record) + 1, 2**28)

    def noise(self, n: int) -> TruncatedGeometric:
        """Of one count, moved up by `room` so that it stays above 0."""
        return TruncatedGeometric(epsilon=self._a_record / 2, n=n + 2 * self.room(n))

    def _alone(self, found: HistogramRelease) -> HistogramRelease:
        matrix = Characteristic(found.matrix.values[0], found.matrix.entries)
        whole = {"counts": found.counts[0], "mass": found.mass[0], "matrix": matrix}
        return replace(super()._alone(found), **whole)

    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> HistogramRelease:
        n = len(data.columns[0])
        exact = cell_counts(data, limits or (), pairs, self.resolve(n).side)
        noise, room = self._noise_key(n, run), self.room(n)
        counts = add_noise(self.noise(n), exact + room, pairs, noise) - room
        return self.estimated(counts, run.event, is_secret(run.key), run.receipt)

    def estimated(
        self,
        counts: Int[np.ndarray, "pairs side side"],
        event: Event,
        secret: bool,
        receipt: Receipt | None = None,
    ) -> HistogramRelease:
        """What noisy counts tell: post-processing, so it is free and gives the same each time.

        Args:
          counts: that were released, with the settings of this mechanism.
          event, secret, receipt: of their release.
        """
        design = self.resolve(event.n)
        variance = deconvolution.laplace_variance(float(self._a_record))
        found = [
            deconvolution.estimate(part, n=event.n, variance=variance, design=design)
            for part in np.split(counts, range(_TOGETHER, len(counts), _TOGETHER))
        ]
        matrix = Characteristic(
            np.concatenate([part.matrix.values for part in found]), found[0].matrix.entries
        )
        return HistogramRelease(
            np.concatenate([part.mic for part in found]),
            event,
            secret,
            counts,
            np.concatenate([part.mass for part in found]),
            matrix,
            receipt=receipt,
        )


def cell_counts(
    data: Table, limits: Sequence[NumberLimits], pairs: Int[np.ndarray, "pairs 2"], side: int
) -> Int[np.ndarray, "pairs side side"]:
    """Records in each cell of a side x side grid on the bounds: exact, so not private."""
    bins = by_range(data.columns, limits, [side]).fine.astype(np.int64)
    found = [np.bincount(bins[i] * side + bins[j], minlength=side**2) for i, j in pairs]
    return np.stack(found).reshape(-1, side, side)
