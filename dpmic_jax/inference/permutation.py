"""Permutation tests of independence: one column of a pair is shuffled against the other.

If y is independent of x and its records are exchangeable, then given x and the multiset of values
of y, y is that multiset in a uniform order s. Shuffling it by permutations p_1, ..., p_D, uniform
and independent of the data, gives the orders s, s p_1, ..., s p_D, which are independent and
uniform. So the observed value and the D others are exchangeable, and the p-value of `monte_carlo`
is valid for any statistic.

Codes are shuffled instead of records, since a code is a function of its record and of the multiset
of all records:

- MICr: of the value only.
- MICe with tied values in one bin (`grouped_ties`): of the value and the multiset of values.
- MICe with ties broken at random (`RandomTies(key)`): of the value and a word that is drawn for
  each record and column, and the multiset of both. Words are independent of the data and of each
  other, so records with their words are as exchangeable as records. Words stay with their records
  when these are shuffled: breaking ties anew in each draw but the first would be another test.

The shuffles are the same for all pairs. Each p-value is valid, and p-values of different pairs
depend on each other.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dpmic_jax.data.limits import Column, Limits, NominalLimits
from dpmic_jax.data.table import BoundsOf, Pairs, bounds_of, positions, table
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.inference import monte_carlo, shuffling
from dpmic_jax.inference.independence import (
    MonteCarloTest,
    PairPositions,
    PValues,
    bin_used,
    check_columns,
    renumbered,
)
from dpmic_jax.mic.backends import Device
from dpmic_jax.mic.characteristic import Measure, mic
from dpmic_jax.mic.distance import MOST_RECORDS
from dpmic_jax.mic.statistics import (
    BinnedTable,
    MICe,
    MICr,
    MICrAndDistance,
    Statistic,
    bins_of,
)


@dataclass(frozen=True, kw_only=True)
class Permutation(MonteCarloTest):
    """Permutation test by MICe or MICr, for any columns. Its p-values are not private.

    On bounds, pairs with a nominal column are tested by their distance from independence instead:
    MICr merges neighbouring parts, and categories without an order have no neighbours.

    Attributes:
      statistic: `MICe(...)` or `MICr(B=...)`.
      measure: what to read off each characteristic matrix; large if dependent.
      draws: number of permutations; p-values are multiples of 1 / (draws + 1).
      devices: devices to run on; by default the first device of JAX's default backend.
    """

    def __post_init__(self):
        if not isinstance(self.statistic, MICe | MICr):
            raise TypeError(
                "expected statistic to be MICe(...) or MICr(B=...), got "
                f"{type(self.statistic).__name__}"
            )
        super().__post_init__()

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits],
        *,
        key: AnyKey,
    ) -> PValues:
        """P-values (1 + #{permutations at least as large}) / (draws + 1) of pairs."""
        check_columns(columns, pairs)
        if isinstance(self.statistic, MICr) and len(bounds) != len(columns):
            raise ValueError(
                f"MICr needs public bounds: expected a (low, high) for each of {len(columns)} "
                f"columns, got {len(bounds)}"
            )
        nominal = np.array([isinstance(each, NominalLimits) for each in bounds], bool)
        by_distance = nominal[pairs].any(axis=1) if nominal.any() else np.zeros(len(pairs), bool)
        as_large = np.zeros(len(pairs), np.int64)
        if not by_distance.all():
            used, places = renumbered(pairs[~by_distance])
            binned = bin_used(columns, self.statistic, bounds, used)
            as_large[~by_distance] = count_as_large(
                binned, places, self.measure, self.draws, key=key, devices=self.devices
            )
        if by_distance.any():
            as_large[by_distance] = self._distances_as_large(
                columns, pairs[by_distance], bounds, key=key
            )
        return monte_carlo.p_values(as_large, self.draws)

    def _distances_as_large(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits],
        *,
        key: AnyKey,
    ) -> Int[np.ndarray, " pairs"]:
        """The number of draws in which the distance from independence is as large as observed."""
        if len(columns[0]) > MOST_RECORDS:
            raise ValueError(
                f"expected at most {MOST_RECORDS} records in tests of nominal columns, got "
                f"{len(columns[0])}"
            )
        used, places = renumbered(pairs)
        limits = [bounds[column] for column in used]
        statistic = MICrAndDistance(micr=None, bins=max(map(bins_of, limits)))
        binned = statistic.cut([columns[column] for column in used], limits)
        draws = range(shuffling.OBSERVED, self.draws + 1)
        tiles = shuffling.distances(binned, places, draws, key=key, devices=self.devices)
        return _as_large((found.astype(np.float64) for found in tiles), len(pairs))


def permutation_p_values(
    X: Any,
    *,
    pairs: Pairs,
    statistic: Statistic,
    bounds: BoundsOf | None = None,
    measure: Measure = mic,
    draws: int = 10_000,
    key: AnyKey,
    devices: Sequence[Device] = (),
) -> PValues:
    """P-values of the independence of pairs of columns, by permutation. Not private.

    Args:
      X: records by columns: an array, or a pandas, polars or pyarrow data frame.
      pairs: the columns of each pair (x, y), by name or by position.
      statistic: `MICe(...)`, with ties or without, or `MICr(B=...)`.
      bounds: for MICr, public (low, high) of every column of X, in order or by name.
      measure: what to read off each characteristic matrix; large if dependent.
      draws: number of permutations; p-values are multiples of 1 / (draws + 1).
      key: key of the permutations.
      devices: devices to run on; by default the first device of JAX's default backend.
    """
    test = Permutation(statistic=statistic, measure=measure, draws=draws, devices=tuple(devices))
    data = table(X, "X")
    limits = bounds_of(data.names, bounds, "bounds") if isinstance(statistic, MICr) else ()
    return test.p_values(data.columns, positions(data.names, pairs), limits, key=key)


def count_as_large(
    binned: BinnedTable,
    pairs: Int[np.ndarray, "pairs 2"],
    measure: Measure,
    draws: int,
    *,
    key: AnyKey,
    devices: Sequence[Device] = (),
    tile: int = 2**31,
) -> Int[np.ndarray, " pairs"]:
    """The number of draws in which the measure of each pair is at least as large as observed."""
    all_draws = range(shuffling.OBSERVED, draws + 1)
    tiles = shuffling.measured(
        binned, pairs, measure, all_draws, key=key, devices=devices, tile=tile
    )
    return _as_large(tiles, len(pairs))


def _as_large(
    tiles: Iterator[Float[np.ndarray, " lanes"]], pairs: int
) -> Int[np.ndarray, " pairs"]:
    """How many of the values of each pair after its first are at least as large as that one."""
    # Draw 0 of all pairs comes first; tiles need not end where it does.
    observed = np.zeros(0)
    while len(observed) < pairs:
        observed = np.concatenate([observed, next(tiles)])
    observed, rest = observed[:pairs], observed[pairs:]
    counts, lane = np.zeros(pairs, np.int64), 0
    for values in itertools.chain([rest], tiles):
        # A tile may hold a pair several times, so `np.add.at`: counts[pair] += would add once.
        pair = np.arange(lane, lane + len(values)) % pairs
        np.add.at(counts, pair, monte_carlo.at_least(values, observed[pair]))
        lane += len(values)
    return counts
