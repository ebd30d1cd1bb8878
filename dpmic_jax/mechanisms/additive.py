"""A MIC statistic plus noise of its own sensitivity: MICr-Lap, MICr-Gauss, MICe-Lap.

Relation: one person's records are replaced by others; n is public, and so are the bounds of the
columns. Let Delta be the most that this moves the statistic on the integer path (`sensitivity`;
proofs in docs/sensitivity.md). On a lattice the statistic moves by at most S = ceil(Delta / step)
points, and the law on it (`dp.lattice`) is epsilon-DP, or rho-zCDP, for integers that move by at
most S. All is integer arithmetic from the counts to the released point, so what is released is
what the proof speaks of, to the last bit.

A mechanism draws noise and keeps no books: charge `mechanism.event(n)` to a ledger first.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from dpmic_jax import sensitivity, tuned
from dpmic_jax.dp.events import ZCDP, Event, Guarantee, PureDP, ReplaceOne
from dpmic_jax.dp.keys import event_key, is_secret
from dpmic_jax.dp.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.dp.written import at_least, positive, written
from dpmic_jax.mechanisms.release import Key, Release, add_noise, described, on_lattice
from dpmic_jax.mic import sweep
from dpmic_jax.mic.binning import Bounds, random
from dpmic_jax.mic.characteristic import integer_mic
from dpmic_jax.mic.gains import exact_gains
from dpmic_jax.mic.settings import Cut, MICe, MICr, Statistic
from dpmic_jax.mic.sweep import Device
from dpmic_jax.table import BoundsOf, Pairs, Table, bounds_of, one_pair, positions, table

# Folded into the event's key where a pair has its first column: ties are no pair's noise.
_TIES = 2**32 - 1


class Additive(ABC):
    """What the mechanisms below share: a statistic, its sensitivity, and noise on a lattice."""

    relation: ReplaceOne

    @abstractmethod
    def settings(self, n: int) -> Statistic:
        """The statistic for n records."""

    @abstractmethod
    def law(self, n: int) -> LatticeLaplace | LatticeGauss:
        """The noise, on a lattice of [0, 1]."""

    @abstractmethod
    def guarantee(self, n: int) -> Guarantee:
        """What the release of one pair keeps."""

    def sensitivity(self, n: int) -> Fraction:
        """The most that one person's records move the statistic, rounding included."""
        one = sensitivity.integer_path(self.settings(n), n)
        return min(Fraction(1), sensitivity.group(one, self.relation.records))

    def event(self, n: int, *, count: int = 1, label: str = "") -> Event:
        """What the release of `count` pairs costs, before any data is seen.

        Args:
          n: number of records; public.
          count: how many pairs are released; each of them costs the guarantee.
          label: what tells this release from others that share its key and settings. Noise
            depends on the key, the event of one pair, and the pair: with the same three it is
            the same, and two releases of different data would give their difference away.
        """
        return Event(
            mechanism=type(self).__name__,
            guarantee=self.guarantee(n),
            relation=self.relation,
            n=n,
            sensitivity=self.sensitivity(n),
            count=count,
            settings=described(self.settings(n), n),
            label=label,
        )

    def _key(self, n: int, key: Key, label: str) -> PRNGKeyArray:
        """By the event of one pair: its noise is the same in a batch of any size."""
        return event_key(key, self.event(n, label=label))

    def _release(
        self,
        cut: Cut,
        pairs: Int[np.ndarray, "pairs 2"],
        key: Key,
        label: str,
        devices: Sequence[Device],
    ) -> Release:
        """Score the pairs on the integer path, and add the noise of each."""
        law, event = self.law(cut.n), self.event(cut.n, count=len(pairs), label=label)
        points = lattice_points(law.lattice, cut, pairs, devices)
        noisy = add_noise(law, points, pairs, self._key(cut.n, key, label))
        value = noisy / law.lattice.top
        return Release(value, event, is_secret(key), law.scale, law.lattice)


class _RangeMechanism(Additive):
    """Releases of MICr, which take bounds."""

    @abstractmethod
    def settings(self, n: int) -> MICr:
        """The statistic for n records."""

    def release(
        self, x: Any, y: Any, *, bounds: Sequence[Bounds], key: Key, label: str = ""
    ) -> Release:
        """Release one pair.

        Args:
          x, y: two columns of numbers, record by record.
          bounds: public ((x_low, x_high), (y_low, y_high)); values outside are clipped.
          key: `secret_key()`, or a seeded JAX key for research.
          label: as for `event`.
        """
        pair = one_pair(x, y)
        found = self._release_table(pair, np.array([[0, 1]]), bounds, key, label, ())
        return replace(found, value=np.asarray(found.value).item())

    def release_batch(
        self,
        X: Any,
        *,
        pairs: Pairs,
        bounds: BoundsOf,
        key: Key,
        label: str = "",
        devices: Sequence[Device] = (),
    ) -> Release:
        """Release many pairs of columns of a table, each at the full cost of one.

        The noise of a pair depends on the key, the event and the places of its two columns.
        """
        data = table(X, "X")
        return self._release_table(data, positions(data, pairs), bounds, key, label, devices)

    def _release_table(
        self,
        data: Table,
        pairs: Int[np.ndarray, "pairs 2"],
        bounds: BoundsOf,
        key: Key,
        label: str,
        devices: Sequence[Device],
    ) -> Release:
        is_secret(key)  # refuses what is no key, before any work
        limits = bounds_of(data, bounds, "bounds")
        cut = self.settings(len(data.columns[0])).cut(data.columns, limits)
        return self._release(cut, pairs, key, label, devices)


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
    statistic: MICr | Callable[[int, float], MICr] = tuned.defaults
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        positive("epsilon", self.epsilon)

    def settings(self, n: int) -> MICr:
        rule = self.statistic
        return rule if isinstance(rule, MICr) else rule(n, self.epsilon)

    def law(self, n: int) -> LatticeLaplace:
        return _laplace(written(self.epsilon), self.sensitivity(n))

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
    statistic: MICr | Callable[[int, float], MICr] = tuned.defaults
    relation: ReplaceOne = ReplaceOne()

    def __post_init__(self):
        positive("rho", self.rho)

    def settings(self, n: int) -> MICr:
        rule = self.statistic
        return rule if isinstance(rule, MICr) else rule(n, 2 * math.sqrt(self.rho))

    def law(self, n: int) -> LatticeGauss:
        lattice = Lattice.for_gauss(self.sensitivity(n), 1 / math.sqrt(2 * self.rho))
        return LatticeGauss.for_rho(written(self.rho), lattice)

    def guarantee(self, n: int) -> ZCDP:
        return ZCDP(self.rho, at_least(self.law(n).certificate().total_variation))


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
        positive("epsilon", self.epsilon)

    def settings(self, n: int) -> MICe:
        # The bound is the same for every key.
        return replace(self.statistic, ties=random(jax.random.key(0)))

    def law(self, n: int) -> LatticeLaplace:
        return _laplace(written(self.epsilon), self.sensitivity(n))

    def guarantee(self, n: int) -> PureDP:
        return PureDP(self.epsilon)

    def release(self, x: Any, y: Any, *, key: Key, label: str = "") -> Release:
        """Release one pair. No bounds: MICe sees ranks only."""
        found = self._release_table(one_pair(x, y), np.array([[0, 1]]), key, label, ())
        return replace(found, value=np.asarray(found.value).item())

    def release_batch(
        self, X: Any, *, pairs: Pairs, key: Key, label: str = "", devices: Sequence[Device] = ()
    ) -> Release:
        """Release many pairs of columns of a table, each at the full cost of one."""
        data = table(X, "X")
        return self._release_table(data, positions(data, pairs), key, label, devices)

    def _release_table(
        self,
        data: Table,
        pairs: Int[np.ndarray, "pairs 2"],
        key: Key,
        label: str,
        devices: Sequence[Device],
    ) -> Release:
        noise = self._key(len(data.columns[0]), key, label)
        ties = random(jax.random.fold_in(noise, np.uint32(_TIES)))
        cut = replace(self.statistic, ties=ties).cut(data.columns)
        return self._release(cut, pairs, key, label, devices)


def lattice_points(
    lattice: Lattice, cut: Cut, pairs: Int[np.ndarray, "pairs 2"], devices: Sequence[Device] = ()
) -> Int[np.ndarray, " pairs"]:
    """MIC rounded down to the lattice: exact, so not private, and the same bits anywhere."""
    tiles = sweep.score_pairs(cut, pairs, exact_gains(cut.n), devices=devices)
    values = np.concatenate([integer_mic(cut.grids, found) for found in tiles])
    return on_lattice(lattice, values)


def _laplace(epsilon: Fraction, delta_up: Fraction) -> LatticeLaplace:
    return LatticeLaplace(epsilon=epsilon, lattice=Lattice.for_sensitivity(delta_up, epsilon))
