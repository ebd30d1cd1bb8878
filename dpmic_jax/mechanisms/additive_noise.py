"""A MIC statistic plus noise of its sensitivity: MICr-Lap, MICr-Gauss, MICr-Cube, MICe-Lap.

Relation: one person's records are replaced by others; n is public, and so are the bounds of the
columns. Let Delta be the most that this moves the statistic on the integer path (`sensitivity`;
proofs in docs/sensitivity.md). On a lattice the statistic moves by at most S = ceil(Delta / step)
points, and the noise on it (`dp.noise.lattice`) is epsilon-DP, or rho-zCDP, for integers that move
by at most S. All is integer arithmetic from the counts to the released point, so what is released
is what the proof speaks of, to the last bit.

A release charges `ledger=` before it computes. Without one, charge `mechanism.event(n)` by hand and
pass it as `event=`.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.data.table import Pairs, Table, positions
from dpmic_jax.dp.accounting.events import ZCDP, Event, PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import (
    as_fraction,
    ceil_to_float,
    check_positive,
    check_positive_int,
)
from dpmic_jax.dp.noise.lattice import (
    Lattice,
    LatticeCube,
    LatticeGauss,
    LatticeLaplace,
    LatticeNoise,
)
from dpmic_jax.dp.rng.keys import event_key
from dpmic_jax.mechanisms import sensitivity, tuned_defaults
from dpmic_jax.mechanisms.base import OnBounds, PairMechanism, Positions, Released, Settings
from dpmic_jax.mechanisms.inputs import held_pair, held_table
from dpmic_jax.mechanisms.release import (
    Key,
    Release,
    add_noise,
    event_settings,
    on_lattice,
    release_of,
)
from dpmic_jax.mic import batch
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import integer_mic
from dpmic_jax.mic.statistics import BinnedTable, MICe, MICr
from dpmic_jax.mic.ties import RandomTies
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.runs.charged import AnyLedger, ChargedRun, ReleaseCharge

# The setting of an event of cube noise that says how many pairs share the noise.
_TOGETHER = "pairs together"
# Folded into the event's key where a pair has its first column: ties are no pair's noise.
_TIES = 2**32 - 1


class AdditiveNoise(PairMechanism[Release]):
    """A statistic of a pair, plus noise of its sensitivity on a lattice of [0, 1]."""

    @abstractmethod
    def noise(self, n: int, count: int = 1) -> LatticeNoise:
        """The noise on each of `count` values, on a lattice of [0, 1]."""

    def _noised(
        self, points: Int[np.ndarray, " pairs"], pairs: Positions, n: int, run: ChargedRun
    ) -> Release:
        """Exact points of the lattice, each with the noise of its pair."""
        noise = self.noise(n, len(pairs))
        return release_of(add_noise(noise, points, pairs, self._noise_key(n, run)), noise, run)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(AdditiveNoise):
    """Discrete Laplace noise: epsilon-DP for each pair.

    Attributes:
      epsilon: of the release of one pair.
    """

    epsilon: float

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def noise(self, n: int, count: int = 1) -> LatticeLaplace:
        """Discrete Laplace noise of rate epsilon / sensitivity."""
        epsilon = as_fraction(self.epsilon)
        lattice = Lattice.for_sensitivity(self.sensitivity(n), epsilon)
        return LatticeLaplace(epsilon=epsilon, lattice=lattice)

    def guarantee(self, n: int) -> PureDP:
        """Pure epsilon-DP."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class OnMICr(OnBounds[Released]):
    """A mechanism on MICr, which cuts columns on public bounds.

    Attributes:
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
    """

    statistic: MICr | Callable[[int, float], MICr] = tuned_defaults.defaults

    @abstractmethod
    def rule_epsilon(self, count: int) -> float:
        """The epsilon of Laplace noise that is as large as the noise on each of `count` pairs.

        A rule is asked for the statistic with it.
        """

    def resolve(self, n: int, count: int = 1) -> MICr:
        """The statistic for n records and `count` pairs."""
        rule = self.statistic
        return rule if isinstance(rule, MICr) else rule(n, self.rule_epsilon(count))

    def settled(self, n: int, count: int = 1) -> Self:
        return replace(self, statistic=self.resolve(n, count))

    def settings(self, n: int) -> Settings:
        return event_settings(self.resolve(n), n)


class _MICrPlusNoise(AdditiveNoise, OnMICr[Release]):
    """MICr on the integer path, plus noise."""

    def sensitivity(self, n: int) -> Fraction:
        return sensitivity.of_person(self.resolve(n), n, self.relation.records)

    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Release:
        n = len(data.columns[0])
        cut = self.resolve(n).cut(data.columns, limits or ())
        points = lattice_points(self.noise(n, len(pairs)).lattice, cut, pairs, devices)
        return self._noised(points, pairs, n, run)


@dataclass(frozen=True, kw_only=True)
class MICrLap(LaplaceNoise, _MICrPlusNoise):
    """MICr plus discrete Laplace noise: epsilon-DP for each pair.

    Sensitivity delta(n)/n, delta(n) = n log2 n - (n-1) log2(n-1), and 9e-8 for rounding.

    Attributes:
      epsilon: of the release of one pair.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
      relation: how many records one person may own.
    """

    def rule_epsilon(self, count: int) -> float:
        """The epsilon of the release of one pair."""
        return self.epsilon


@dataclass(frozen=True, kw_only=True)
class MICrGauss(_MICrPlusNoise):
    """MICr plus discrete Gaussian noise: rho-zCDP for each pair, and a numerical delta.

    Many pairs compose by adding up rho: where epsilon and delta are given for a whole table
    this is less noisy than `MICrLap` from a few pairs on.

    Attributes:
      rho: of the release of one pair.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
      relation: how many records one person may own.
    """

    rho: float

    def __post_init__(self):
        check_positive("rho", self.rho)

    def rule_epsilon(self, count: int) -> float:
        """2 sqrt(rho): Laplace noise of this epsilon has the same standard deviation."""
        return 2 * math.sqrt(self.rho)

    def noise(self, n: int, count: int = 1) -> LatticeGauss:
        """Discrete Gaussian noise, sigma^2 = sensitivity^2 / (2 rho)."""
        lattice = Lattice.for_gauss(self.sensitivity(n), 1 / math.sqrt(2 * self.rho))
        return LatticeGauss.for_rho(as_fraction(self.rho), lattice)

    def guarantee(self, n: int) -> ZCDP:
        """rho-zCDP, and what inexact draws add to delta."""
        return ZCDP(self.rho, ceil_to_float(self.noise(n).certificate().total_variation))


@dataclass(frozen=True, kw_only=True)
class MICrCube(_MICrPlusNoise):
    """MICr of many pairs plus cube noise: epsilon-DP for all pairs together.

    One person moves all values at once, each by at most the sensitivity of `MICrLap`, so noise
    that depends on the largest coordinate only (`dp.noise.cube`) is smaller than `MICrLap`'s at
    epsilon / pairs: by 2.4 for 66 pairs. One pair gets Laplace noise.

    Attributes:
      epsilon: of the release of all pairs together.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
      relation: how many records one person may own.
    """

    epsilon: float

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def rule_epsilon(self, count: int) -> float:
        """sqrt(6 / (d+1)(d+2)) epsilon for d pairs: Laplace noise of it has the same deviation."""
        return math.sqrt(6 / ((count + 1) * (count + 2))) * self.epsilon

    def noise(self, n: int, count: int = 1) -> LatticeCube:
        """Cube noise on `count` values."""
        lattice = Lattice.for_cube(self.settled(n, count).sensitivity(n))
        return LatticeCube(epsilon=as_fraction(self.epsilon), lattice=lattice, points=count)

    def guarantee(self, n: int) -> PureDP:
        """Pure epsilon-DP, of all pairs together."""
        return PureDP(self.epsilon)

    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """One charge, whatever `count` is. The number of pairs is a setting: noise depends on it.

        A radius that was drawn for some pairs must not serve one more.
        """
        check_positive_int("count", count)
        one = super().event(n, count=count, label=label)
        bits = self.noise(n, count).lattice.bits
        shared = (_TOGETHER, str(count)), ("lattice", str(bits))
        return replace(one, count=1, settings=(*one.settings, *shared))

    def _noise_key(self, n: int, run: ChargedRun) -> PRNGKeyArray:
        """By the event of all pairs: their noise belongs together."""
        return event_key(run.key, run.event)


@dataclass(frozen=True, kw_only=True)
class MICeLap(LaplaceNoise):
    """MICe plus discrete Laplace noise: epsilon-DP for each pair.

    Ranks are made unique by draws from the release's key, whatever tie policy the statistic
    names: the proof needs unique ranks. The sensitivity of MICe is large, and grows with B.

    Attributes:
      epsilon: of the release of one pair.
      statistic: which grids to score.
      relation: how many records one person may own.
    """

    statistic: MICe = MICe()

    def resolve(self, n: int) -> MICe:
        """The statistic for n records, with unique ranks; its sensitivity is that of any key."""
        return replace(self.statistic, ties=RandomTies(jax.random.key(0)))

    def settings(self, n: int) -> Settings:
        return event_settings(self.resolve(n), n)

    def sensitivity(self, n: int) -> Fraction:
        """Theorem 4 of docs/sensitivity.md, rounding included; at most 1."""
        return sensitivity.of_person(self.resolve(n), n, self.relation.records)

    def release(
        self,
        x: Any,
        y: Any,
        *,
        key: Key,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
    ) -> Release:
        """Release one pair. No bounds: MICe sees ranks only, and what is missing ranks lowest.

        The arguments are those of `MICrLap.release`.
        """
        return self._release_pair(held_pair(x, y), None, ReleaseCharge(key, label, event, ledger))

    def release_batch(
        self,
        X: Any,
        *,
        pairs: Pairs,
        key: Key,
        label: str = "",
        event: Event | None = None,
        ledger: AnyLedger = None,
        devices: Sequence[Device] = (),
    ) -> Release:
        """Release many pairs of columns of a table, each at the full cost of one."""
        held, charge = held_table(X), ReleaseCharge(key, label, event, ledger)
        return self._release_pairs(held, positions(held.names, pairs), None, charge, devices)

    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Release:
        n = len(data.columns[0])
        ties = RandomTies(jax.random.fold_in(self._noise_key(n, run), np.uint32(_TIES)))
        cut = replace(self.statistic, ties=ties).cut(data.columns)
        points = lattice_points(self.noise(n, len(pairs)).lattice, cut, pairs, devices)
        return self._noised(points, pairs, n, run)


def pairs_together(event: Event) -> int:
    """How many pairs share the cube noise of an event."""
    return int(dict(event.settings)[_TOGETHER])


def lattice_points(
    lattice: Lattice,
    cut: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    devices: Sequence[Device] = (),
) -> Int[np.ndarray, " pairs"]:
    """MIC rounded down to the lattice: exact, so not private, and the same bits anywhere."""
    tiles = batch.score_pairs(cut, pairs, exact_gains(cut.n), devices=devices)
    values = np.concatenate([integer_mic(cut.grids, found) for found in tiles])
    return on_lattice(lattice, values)
