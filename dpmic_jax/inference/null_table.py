"""Tests of pairs of columns without ties: MICe against its null distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmic_jax.data.limits import Column, Limits
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.inference import shuffling
from dpmic_jax.inference.independence import (
    MonteCarloTest,
    PairPositions,
    PValues,
    bin_used,
    check_columns,
    renumbered,
)
from dpmic_jax.inference.nulls import null_law
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.mic.ties import RandomTies, grouped_ties


@dataclass(frozen=True, kw_only=True)
class NullTable(MonteCarloTest):
    """MICe of columns without ties, against a null distribution that is drawn once for all pairs.

    Its p-values are not private.

    Tied values are refused, unless `MICe(ties=RandomTies(key))` breaks them.

    Attributes:
      statistic: `MICe(...)`.
      measure: what to read off each characteristic matrix; large if dependent.
      draws: number of draws of the null distribution; p-values are multiples of 1 / (draws + 1).
      devices: devices to run on; by default the first device of JAX's default backend.
    """

    statistic: MICe = MICe()

    def __post_init__(self):
        if not isinstance(self.statistic, MICe):
            raise TypeError(
                f"expected statistic to be MICe(...), got {type(self.statistic).__name__}: the "
                "null distribution of others depends on the data, use Permutation"
            )
        if self.statistic.ties is not grouped_ties and not isinstance(
            self.statistic.ties, RandomTies
        ):
            raise ValueError(
                "the null distribution is known for ties=grouped_ties and ties=RandomTies(key); "
                "use Permutation"
            )
        super().__post_init__()

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits] = (),
        *,
        key: AnyKey,
    ) -> PValues:
        """P-values (1 + #{draws at least as large}) / (draws + 1) of pairs.

        `key` is the key of the null distribution; tests with the same key and n share it.
        """
        check_columns(columns, pairs)
        used, places = renumbered(pairs)
        if self.statistic.ties is grouped_ties:
            for column in used:
                _check_untied(columns[column], column)
        table = bin_used(columns, self.statistic, (), used)
        null = null_law(
            self.statistic,
            table.n,
            measure=self.measure,
            draws=self.draws,
            key=key,
            devices=self.devices,
        )
        unshuffled = range(shuffling.OBSERVED, shuffling.OBSERVED + 1)
        observed = shuffling.measured(
            table, places, self.measure, unshuffled, key=key, devices=self.devices
        )
        return null.p_values(np.concatenate(list(observed)))


def _check_untied(column: Column, index: int) -> None:
    if len(np.unique(column)) < len(column):
        raise ValueError(
            f"column {index} has tied values, and the null distribution of MICe is only known "
            "without ties: use Permutation(statistic=MICe(...)), or break ties by "
            "MICe(ties=RandomTies(key))"
        )
