"""A MIC statistic plus noise of its own sensitivity: MICr-Lap, MICr-Gauss, MICe-Lap.

Relation: one person's records are replaced by others; n is public, and so are the bounds of the
columns. Let Delta be the most that this moves the statistic on the integer path (`sensitivity`;
proofs in docs/sensitivity.md). On a lattice the statistic moves by at most S = ceil(Delta / step)
points, and the law on it (`dp.noise.lattice`) is epsilon-DP, or rho-zCDP, for integers that move
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
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from dpmic_jax.data.limits import Bounds
from dpmic_jax.data.table import Pairs, Table, positions
from dpmic_jax.dp.accounting.events import ZCDP, Event, Guarantee, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.mechanisms import sensitivity, tuned_defaults
from dpmic_jax.mechanisms.base import ONE_PAIR, OnBounds, PairMechanism, Positions
from dpmic_jax.mechanisms.inputs import Held, held_pair, held_table
from dpmic_jax.mechanisms.release import (
    Key,
    Release,
    add_noise,
    event_settings,
    on_lattice,
    release_of,
)
from dpmic_jax.mic import batch
from dpmic_jax.mic.batch import Device
from dpmic_jax.mic.characteristic import integer_mic
from dpmic_jax.mic.statistics import BinnedTable, MICe, MICr, Statistic
from dpmic_jax.mic.ties import RandomTies
from dpmic_jax.mic.xlogx import exact_gains
from dpmic_jax.runs.charged import AnyLedger, ChargedRun, Payment, charged_release

# Folded into the event's key where a pair has its first column: ties are no pair's noise.
_TIES = 2**32 - 1


class Additive(PairMechanism[Release]):
    """What the mechanisms below share: a statistic, its sensitivity, and noise on a lattice."""

    relation: ReplaceOne

    @abstractmethod
    def resolve(self, n: int) -> Statistic:
        """The statistic for n records."""

    @abstractmethod
    def noise(self, n: int) -> LatticeLaplace | LatticeGauss:
        """The noise, on a lattice of [0, 1]."""

    @abstractmethod
    def guarantee(self, n: int) -> Guarantee:
        """What the release of one pair keeps."""

    def sensitivity(self, n: int) -> Fraction:
        """The most that one person's records move the statistic, rounding included."""
        one = sensitivity.integer_path(self.resolve(n), n)
        return min(Fraction(1), sensitivity.group(one, self.relation.records))

    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """What the release of `count` pairs costs, before any data is seen."""
        return Event(
            mechanism=type(self).__name__,
            guarantee=self.guarantee(n),
            relation=self.relation,
            n=n,
            sensitivity=self.sensitivity(n),
            count=count,
            settings=event_settings(self.resolve(n), n),
            label=label,
        )

    def _noised(
        self, cut: BinnedTable, pairs: Positions, run: ChargedRun, devices: Sequence[Device]
    ) -> Release:
        """Score the pairs on the integer path, and add the noise of each."""
        law = self.noise(cut.n)
        points = lattice_points(law.lattice, cut, pairs, devices)
        noisy = add_noise(law, points, pairs, self._noise_key(cut.n, run))
        return release_of(noisy, law, run)


class _RangeMechanism(Additive, OnBounds[Release]):
    """Releases of MICr, which take bounds."""

    @abstractmethod
    def resolve(self, n: int) -> MICr:
        """The statistic for n records."""

    def release_paid(
        self,
        data: Table,
        limits: Sequence[Bounds],
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> Release:
        cut = self.resolve(len(data.columns[0])).cut(data.columns, limits)
        return self._noised(cut, pairs, run, devices)


@dataclass(frozen=True, kw_only=True)
class MICrLap(_RangeMechanism):
    """MICr plus discrete Laplace noise: epsilon-DP for each pair.

    Sensitivity delta(n)/n, delta(n) = n log2 n - (n-1) log2(n-1), and 9e-8 for rounding.

    Attributes:
      epsilon: of the release of one pair.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
      relation: how many records one person may own.
    """

    epsilon: float
    statistic: MICr | Callable[[int, float], MICr] = tuned_defaults.defaults
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def resolve(self, n: int) -> MICr:
        rule = self.statistic
        return rule if isinstance(rule, MICr) else rule(n, self.epsilon)

    def noise(self, n: int) -> LatticeLaplace:
        return _laplace(as_fraction(self.epsilon), self.sensitivity(n))

    def guarantee(self, n: int) -> PureDP:
        return PureDP(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class MICrGauss(_RangeMechanism):
    """MICr plus discrete Gaussian noise: rho-zCDP for each pair, and a numerical delta.

    Many pairs compose by adding up rho: where epsilon and delta are given for a whole table
    this is less noisy than `MICrLap` from a few pairs on.

    Attributes:
      rho: of the release of one pair.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr, which is asked with the epsilon at
        which Laplace noise is as large, 2 sqrt(rho).
      relation: how many records one person may own.
    """

    rho: float
    statistic: MICr | Callable[[int, float], MICr] = tuned_defaults.defaults
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        check_positive("rho", self.rho)

    def resolve(self, n: int) -> MICr:
        rule = self.statistic
        return rule if isinstance(rule, MICr) else rule(n, 2 * math.sqrt(self.rho))

    def noise(self, n: int) -> LatticeGauss:
        lattice = Lattice.for_gauss(self.sensitivity(n), 1 / math.sqrt(2 * self.rho))
        return LatticeGauss.for_rho(as_fraction(self.rho), lattice)

    def guarantee(self, n: int) -> ZCDP:
        return ZCDP(self.rho, ceil_to_float(self.noise(n).certificate().total_variation))


@dataclass(frozen=True, kw_only=True)
class MICeLap(Additive):
    """MICe plus discrete Laplace noise: epsilon-DP for each pair.

    Ranks are made unique by draws from the release's key, whatever tie policy the statistic
    names: the proof needs unique ranks. The sensitivity of MICe is large, and grows with B.

    Attributes:
      epsilon: of the release of one pair.
      statistic: which grids to score.
      relation: how many records one person may own.
    """

    epsilon: float
    statistic: MICe = MICe()
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def resolve(self, n: int) -> MICe:
        # The bound is the same for every key.
        return replace(self.statistic, ties=RandomTies(jax.random.key(0)))

    def noise(self, n: int) -> LatticeLaplace:
        return _laplace(as_fraction(self.epsilon), self.sensitivity(n))

    def guarantee(self, n: int) -> PureDP:
        return PureDP(self.epsilon)

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
        payment = Payment(key, label, event, ledger)
        return self._alone(self._paid(held_pair(x, y), ONE_PAIR, payment, ()))

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
        held = held_table(X)
        payment = Payment(key, label, event, ledger)
        return self._paid(held, positions(held.names, pairs), payment, devices)

    def _paid(
        self, held: Held, pairs: Positions, payment: Payment, devices: Sequence[Device]
    ) -> Release:
        with charged_release(self.event, held.n, len(pairs), payment) as run:
            ties = RandomTies(jax.random.fold_in(self._noise_key(held.n, run), np.uint32(_TIES)))
            cut = replace(self.statistic, ties=ties).cut(held.coded(None).columns)
            return self._noised(cut, pairs, run, devices)


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


def _laplace(epsilon: Fraction, delta_up: Fraction) -> LatticeLaplace:
    return LatticeLaplace(epsilon=epsilon, lattice=Lattice.for_sensitivity(delta_up, epsilon))
