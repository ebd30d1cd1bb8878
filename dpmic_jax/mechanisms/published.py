"""The mechanisms of the MIC paper as published, for reproduction.

Lazarsfeld, Johnson and Adeniran (2022). The two Laplace mechanisms are private, with 3 to 4 times
the noise that is needed. MICr-Geom is not private at the epsilon it states (docs/published.md),
and its event charges what it really costs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from dpmic_jax.data.limits import NumberLimits
from dpmic_jax.data.table import Table
from dpmic_jax.dp.accounting.events import PureDP
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_positive
from dpmic_jax.dp.noise import TruncatedGeometric
from dpmic_jax.dp.rng.keys import is_secret
from dpmic_jax.mechanisms import published_defaults, sensitivity
from dpmic_jax.mechanisms.additive_noise import MICeLap, MICrLap, OnMICr
from dpmic_jax.mechanisms.base import Positions, Settings
from dpmic_jax.mechanisms.release import PrivateValue, add_noise
from dpmic_jax.mic import batch
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.binning import codes
from dpmic_jax.mic.characteristic import Values, characteristic, mic
from dpmic_jax.mic.grids import Bucket
from dpmic_jax.mic.kernel import Layout
from dpmic_jax.mic.statistics import BinnedTable, MICr, Statistic
from dpmic_jax.mic.xlogx import FastGains
from dpmic_jax.runs.charged import ChargedRun


@dataclass(frozen=True, kw_only=True)
class PublishedMICrLap(MICrLap):
    """MICr-Lap with the sensitivity (4 log2 n + 6) / n of Theorem 4.3: valid, not needed."""

    statistic: MICr | Callable[[int, float], MICr] = published_defaults.micr_lap

    def sensitivity(self, n: int) -> Fraction:
        """(4 log2 n + 6) / n of Theorem 4.3, rounding included."""
        return _published(self.resolve(n), n, self.relation.records)


class PublishedMICeLap(MICeLap):
    """MICe-Lap with the sensitivity B (2 log2 n + 4.8) / n of Theorem 3.1: valid, not needed."""

    def sensitivity(self, n: int) -> Fraction:
        """B (2 log2 n + 4.8) / n of Theorem 3.1, rounding included."""
        return _published(self.resolve(n), n, self.relation.records)


def _published(statistic: Statistic, n: int, records: int) -> Fraction:
    """The paper's sensitivity, even where it exceeds the range of values, rounding included."""
    one = sensitivity.published(statistic, n) + sensitivity.allowance(statistic, n)
    return sensitivity.group(one, records)


@dataclass(frozen=True, kw_only=True)
class PublishedMICrGeom(OnMICr[PrivateValue]):
    """MICr-Geom: truncated geometric noise on the counts of every master grid. Not epsilon-DP.

    Theorem 4.6 argues that each noisy grid is epsilon-DP and that only one entry comes out. But
    that entry is the largest over G grids with noise of their own, so all of them shape it, and
    what holds is composition: G epsilon. That is no artefact of the proof. On 6 records with
    epsilon = 1, B = 6 and c = 1 the exact loss is 1.67 (`python -m benchmarks.published_geom`).

    Attributes:
      epsilon: of each noisy grid, as the paper states it for the whole.
      statistic: a `MICr`, or a rule (n, epsilon) -> MICr.
      relation: how many records one person may own.
    """

    epsilon: float
    statistic: MICr | Callable[[int, float], MICr] = published_defaults.micr_geom

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)

    def rule_epsilon(self, count: int) -> float:
        """The epsilon of each noisy grid."""
        return self.epsilon

    def master_grids(self, n: int) -> int:
        """How many grids have noise of their own: one for each size and orientation."""
        return 2 * len(self.resolve(n).grids(n))

    def guarantee(self, n: int) -> PureDP:
        """Basic composition over the master grids, for each record of a person."""
        grids = self.master_grids(n) * self.relation.records
        return PureDP(ceil_to_float(grids * as_fraction(self.epsilon)))

    def sensitivity(self, n: int) -> Fraction:
        """The most that one person's records move all counts, added up: two cells of each grid."""
        return Fraction(2 * self.master_grids(n) * self.relation.records)

    def settings(self, n: int) -> Settings:
        return (("epsilon a grid", str(self.epsilon)), *super().settings(n))

    def release_charged(
        self,
        data: Table,
        limits: Sequence[NumberLimits] | None,
        pairs: Positions,
        run: ChargedRun,
        devices: Sequence[Device],
    ) -> PrivateValue:
        n = len(data.columns[0])
        key = self._noise_key(n, run)
        noise = TruncatedGeometric(epsilon=as_fraction(self.epsilon) / 2, n=n)
        cut = self.resolve(n).cut(data.columns, limits or ())
        device = (devices or jax.devices())[0]
        layout = batch.layout_for(cut.grids, len(pairs), device.platform)
        values = []
        for start in range(0, len(pairs), layout.pairs):
            some = pairs[start : start + layout.pairs]
            noisy = add_noise(noise, master_counts(cut, some), some, key)
            values.append(_mic(layout, noisy, device))
        found = np.concatenate(values)
        return PrivateValue(found, run.event, is_secret(run.key), receipt=run.receipt)


def master_counts(
    cut: BinnedTable, pairs: Int[np.ndarray, "pairs 2"]
) -> Int[np.ndarray, "pairs cells"]:
    """Counts of all master grids of a pair in one row: grid by grid, both orientations."""
    masters = dict(
        zip(sorted({grid.master for grid in cut.grids}), codes(cut.masters), strict=True)
    )
    found = []
    for grid, rows in zip(cut.grids, codes(cut.rows), strict=True):
        for merged, fixed in (pairs.T, pairs.T[::-1]):
            cells = masters[grid.master][merged].astype(np.int64) * grid.rows + rows[fixed]
            size = grid.master * grid.rows
            found.append(np.stack([np.bincount(pair, minlength=size) for pair in cells]))
    return np.concatenate(found, axis=1)


def _mic(layout: Layout, noisy: Int[np.ndarray, "pairs cells"], device: Device) -> Values:
    """MIC of noisy counts, each grid divided by its own noisy number of records."""
    grids = layout.grids
    sizes = np.repeat([grid.master * grid.rows for grid in grids], 2)
    tables = np.split(noisy, np.cumsum(sizes)[:-1], axis=1)
    records = np.stack([t.sum(axis=1) for t in tables]).reshape(len(grids), 2, len(noisy))
    left = iter(tables)
    counts = [_padded(layout, bucket, left) for bucket in layout.buckets]
    most = 2 ** int(records.max()).bit_length()
    mesh = Mesh(np.array([device]), ("pairs",))
    optimise = batch.Optimiser(layout, mesh, FastGains.of(most))
    found = optimise(jax.device_put(counts, device), np.array([len(noisy)], np.int32))
    entries = np.concatenate([[g] * (grid.parts - 1) for g, grid in enumerate(grids)])
    information = np.rint(found * (most / np.maximum(records, 1))[entries]).astype(np.int64)
    return mic(characteristic(grids, information))


def _padded(
    layout: Layout, bucket: Bucket, tables: Iterator[Int[np.ndarray, "pairs _"]]
) -> Int[np.ndarray, "lanes master rows"]:
    """The counts of a bucket's lanes, off the next tables."""
    lanes = np.zeros((layout.room(bucket), bucket.master, bucket.rows), np.int32)
    step = 2 * len(bucket.grids)  # from one pair to the next
    for lane in range(step):
        grid, table = bucket.grids[lane // 2], next(tables)
        some = lanes[lane : step * len(table) : step]
        some[:, : grid.master, : grid.rows] = table.reshape(-1, grid.master, grid.rows)
    return lanes
