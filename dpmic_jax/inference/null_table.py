"""Test pairs of columns without ties by MICe, against its null law."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmic_jax.data.limits import Column, Limits
from dpmic_jax.dp.rng.keys import AnyKey
from dpmic_jax.inference import monte_carlo, shuffling
from dpmic_jax.inference.independence import (
    PairPositions,
    PValues,
    check_columns,
    check_measure,
    cut_used,
    renumbered,
)
from dpmic_jax.inference.nulls import null_law
from dpmic_jax.mic.batch import Device
from dpmic_jax.mic.characteristic import Measure, mic
from dpmic_jax.mic.statistics import MICe
from dpmic_jax.mic.ties import RandomTies, grouped_ties


@dataclass(frozen=True, kw_only=True)
class NullTable:
    """MICe of columns without ties, against its null law, which is drawn once for all pairs.

    Its p-values are not private.

    Tied values are refused, but with `MICe(ties=RandomTies(key))`, which breaks them.

    Attributes:
      statistic: `MICe(...)`.
      measure: what to read off each characteristic matrix; large if dependent.
      draws: how many draws make the table; p-values are multiples of 1 / (draws + 1).
      devices: where to run; the first device of JAX's default backend if none are given.
    """

    statistic: MICe = MICe()
    measure: Measure = mic
    draws: int = 10_000
    devices: tuple[Device, ...] = ()

    def __post_init__(self):
        if not isinstance(self.statistic, MICe):
            raise TypeError(
                f"expected statistic to be MICe(...), got {type(self.statistic).__name__}: the "
                "null law of others depends on the data, use Permutation"
            )
        if self.statistic.ties is not grouped_ties and not isinstance(
            self.statistic.ties, RandomTies
        ):
            raise ValueError(
                "the null law is known for ties=grouped_ties and ties=RandomTies(key); "
                "use Permutation"
            )
        check_measure(self.measure)
        monte_carlo.checked_draws(self.draws)

    @property
    def smallest_p(self) -> float:
        return monte_carlo.smallest_p(self.draws)

    def p_values(
        self,
        columns: Sequence[Column],
        pairs: PairPositions,
        bounds: Sequence[Limits] = (),
        *,
        key: AnyKey,
    ) -> PValues:
        """(1 + #{draws at least as large}) / (draws + 1) of each pair. The key is the table's."""
        check_columns(columns, pairs)
        used, places = renumbered(pairs)
        if self.statistic.ties is grouped_ties:
            for column in used:
                _check_untied(columns[column], column)
        cut = cut_used(columns, self.statistic, (), used)
        law = null_law(
            self.statistic,
            cut.n,
            measure=self.measure,
            draws=self.draws,
            key=key,
            devices=self.devices,
        )
        as_is = range(shuffling.OBSERVED, shuffling.OBSERVED + 1)
        observed = shuffling.measured(
            cut, places, self.measure, as_is, key=key, devices=self.devices
        )
        return law.p_values(np.concatenate(list(observed)))


def _check_untied(column: Column, index: int) -> None:
    if len(np.unique(column)) < len(column):
        raise ValueError(
            f"column {index} has tied values, and the null law of MICe is known without ties only: "
            "use Permutation(statistic=MICe(...)), or break ties by MICe(ties=RandomTies(key))"
        )
