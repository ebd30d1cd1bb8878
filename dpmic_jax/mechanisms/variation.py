"""VariationLap: dependence across the best cut, in total variation, plus noise of its sensitivity.

Relation: one person's records are replaced by others; n is public, and so are the bounds of the
columns. A record moves the statistic (`mic.variation`) by at most 4 (n-1) / n^2 (Theorem 6 of
docs/sensitivity.md), where it moves MICr by (log2 n + 1.44) / n. So noise is (log2 n + 1.44) / 4
times smaller, and the statistic grows like the square root of MIC where that is small.

What it is for: few records and a small epsilon. On noisy functions its `mic_star_estimate` is
nearer to MIC* than that of `MICrLap` up to n epsilon of some hundreds. The price: its value is not
a MIC, and does not come nearer to one as n grows. On circles and crosses, where both sides of every
cut look much alike, the estimate is off by 0.2 with any number of records (docs/paper.md).

The statistic times n^2 is an integer, so nothing is rounded before the lattice.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from jaxtyping import Int

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.data.table import Table
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int
from dpmic_jax.dp.noise.lattice import Lattice
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mechanisms.additive_noise import LaplaceNoise
from dpmic_jax.mechanisms.base import OnBounds, Positions, Settings
from dpmic_jax.mechanisms.histogram import cell_counts
from dpmic_jax.mechanisms.release import Release
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.variation import variation
from dpmic_jax.runs.charged import ChargedRun

_FEWEST, _MOST = 2, 256  # parts of an axis
_TOGETHER = 256  # pairs counted at a time


def parts_for(n: int) -> int:
    """Parts of each axis for n records, about 2 sqrt(n): the flat best over the 189 distributions.

    `dpmic paper page` says what was tried.
    """
    return min(max(_FEWEST, round(2 * math.sqrt(n))), _MOST)


@dataclass(frozen=True, kw_only=True)
class VariationLap(LaplaceNoise, OnBounds[Release]):
    """Dependence in total variation plus discrete Laplace noise: epsilon-DP for each pair.

    Attributes:
      epsilon: of the release of one pair.
      parts: of each axis, equal in width; or a rule n -> parts.
      relation: how many records one person may own.
    """

    parts: int | Callable[[int], int] = parts_for

    def __post_init__(self):
        super().__post_init__()
        if not callable(self.parts):
            _check(self.parts)

    def resolve(self, n: int) -> int:
        """The parts of each axis for n records."""
        return _check(self.parts(n)) if callable(self.parts) else self.parts

    def settled(self, n: int, count: int = 1) -> Self:
        return replace(self, parts=self.resolve(n))

    def settings(self, n: int) -> Settings:
        return (("parts", str(self.resolve(n))),)

    def sensitivity(self, n: int) -> Fraction:
        """4 (n-1) / n^2 for each record of a person (Theorem 6), at most 1."""
        return min(Fraction(1), sensitivity.group(sensitivity.variation(n), self.relation.records))

    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Release:
        n = len(data.columns[0])
        lattice, parts = self.noise(n).lattice, self.resolve(n)
        return self._noised(
            lattice_points(lattice, data, limits or (), pairs, parts), pairs, n, run
        )


def lattice_points(
    lattice: Lattice,
    data: Table,
    limits: Sequence[NumberLimits],
    pairs: Int[np.ndarray, "pairs 2"],
    parts: int,
) -> Int[np.ndarray, " pairs"]:
    """The statistic rounded down to the lattice: exact, so not private."""
    square = len(data.columns[0]) ** 2
    found = np.concatenate(
        [
            variation(cell_counts(data, limits, some, parts))
            for some in np.split(pairs, range(_TOGETHER, len(pairs), _TOGETHER))
        ]
    )
    # In Python's integers: n^2 points of 2^-30 outgrow 64 bits at n = 10^5.
    return np.array([int(value) * lattice.top // square for value in found])


def _check(parts: int) -> int:
    if not _FEWEST <= check_positive_int("parts", parts) <= _MOST:
        raise ValueError(f"expected {_FEWEST} <= parts <= {_MOST}, got {parts}")
    return parts
