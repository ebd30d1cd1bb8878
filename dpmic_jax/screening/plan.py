"""The plan of a screen: what is measured, the noise on it, and its privacy event.

All of it is public: it depends on n, the names of the columns, the query and the budget, never on
values.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dpmic_jax.data.limits import Limits
from dpmic_jax.dp.accounting.events import ZCDP, Event, GaussianDP
from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import (
    OneShotTopK,
    SingleThresholdSparseVector,
    SparseVector,
    ZCDPTopK,
)
from dpmic_jax.mic.statistics import MICr, MICrAndDistance
from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.independence import chance_level, dependence_level
from dpmic_jax.screening.kinds import Kinds, kinds_of
from dpmic_jax.screening.noises import Choice, Noises, ValueNoise
from dpmic_jax.screening.power import smallest_found
from dpmic_jax.screening.queries import Above, Ask, Names, Positions, TopK

_NOISE = {LatticeCube: "discrete cube", LatticeGauss: "discrete Gaussian"}
_CHOSEN = {
    OneShotTopK: "pairs chosen by one-shot noisy top-k, ",
    ZCDPTopK: "pairs chosen by the exponential mechanism, ",
    SparseVector: "pairs found by the sparse vector technique, ",
    SingleThresholdSparseVector: "pairs found by the sparse vector technique with one threshold, ",
}


class Workload(NamedTuple):
    """What a screen is asked, in numbers.

    Attributes:
      ask: the query.
      n: number of records.
      candidates: number of candidate pairs.
      own: number of columns whose distance from themselves is released too.
      records: largest number of records of one person.
      kinds: the nominal columns of the candidate pairs.
    """

    ask: Ask
    n: int
    candidates: int
    own: int
    records: int
    kinds: Kinds = Kinds()

    def noised(self, choice: Choice | None) -> int:
        """Number of values, of each kind, that get noise together."""
        if choice is not None and isinstance(self.ask, TopK | Above):
            return self.ask.most + self.own
        return self.candidates + self.own

    @property
    def threshold(self) -> float:
        """The distance above which an `Above` asks for pairs; 0 for other queries."""
        return distance_of(self.ask.threshold) if isinstance(self.ask, Above) else 0.0

    @property
    def chance_level(self) -> float:
        """A distance that some candidate exceeds in 5 % of tables if all are independent."""
        return chance_level(self.n, self.candidates, self.records, self.kinds.bins)

    def dependence_level(self, noise: ValueNoise) -> float:
        """A distance with this noise is called dependent above this."""
        return dependence_level(noise, self.n, self.candidates, self.records, self.kinds.bins)

    def smallest(self, noises: Noises) -> float:
        """The smallest distance that is selected, and called dependent, with 95 % probability."""
        level = self.dependence_level(noises.distances)
        found = smallest_found(noises, level, self.candidates, self.chance_level, self.threshold)
        if noises.choice:
            return found
        # Sorting is by released distances: what is above a threshold has to be so with noise.
        return max(found, self.threshold + noises.distances.quantile(0.05))

    def half_width(self, noise: ValueNoise, choice: Choice | None, *, together: int = 1) -> float:
        """The noise on so many released values is within this, with 95 % probability.

        If pairs are sorted by the released values, this has to hold for all of them at once.
        """
        if isinstance(self.ask, TopK | Above) and choice is None:
            return noise.largest_quantile(0.025, self.noised(None))
        return noise.quantile(0.025 / together)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a screen.

    Attributes:
      names: names of the columns of the table.
      n: number of records, which is public.
      ask: the query.
      epsilon, delta: upper bounds of the cost of the whole screen.
      relative: names of the columns whose distance from themselves is released too.
      noises: the noise on all that is released.
      others: what other ways would have found, by the name of their mechanism.
      event: the event of the whole screen.
      bounds: the limits of the columns.
    """

    names: Names
    n: int
    ask: Ask
    epsilon: float
    delta: float
    relative: Names
    noises: Noises
    others: tuple[tuple[str, float], ...]
    event: Event
    bounds: tuple[Limits, ...]

    @property
    def pairs(self) -> Positions:
        """The candidate pairs."""
        return pairs_of(self.ask, self.names)

    @property
    def own(self) -> Positions:
        """Each of the columns in `relative`, with itself."""
        columns = [self.names.index(name) for name in self.relative]
        return np.array([columns, columns], np.int64).T

    @cached_property
    def scored(self) -> Positions:
        """The pairs that are scored in tiles: those of `own` too, unless pairs are selected."""
        return self.pairs if self.choice or not self.relative else np.vstack([self.pairs, self.own])

    @cached_property
    def workload(self) -> Workload:
        """What is asked, in numbers."""
        records = self.event.relation.records
        kinds = kinds_of(self.names, self.bounds, self.pairs)
        return Workload(self.ask, self.n, len(self.pairs), len(self.relative), records, kinds)

    @cached_property
    def kinds(self) -> Kinds:
        """The nominal columns of all pairs that are scored."""
        return kinds_of(self.names, self.bounds, np.vstack([self.pairs, self.own]))

    @property
    def released(self) -> int:
        """Largest number of pairs that are released."""
        return self.ask.most if isinstance(self.ask, TopK | Above) else len(self.pairs)

    @property
    def noised(self) -> int:
        """Number of distances that get noise."""
        return self.workload.noised(self.choice)

    @property
    def distances(self) -> ValueNoise:
        """The noise on each released distance."""
        return self.noises.distances

    @property
    def values(self) -> ValueNoise | None:
        """The noise on each released MICr; None if MIC is estimated from the distance."""
        return self.noises.values

    @property
    def statistic(self) -> MICr | None:
        """The settings of MICr, with B as a number; None if none is released."""
        return self.noises.statistic

    @property
    def choice(self) -> Choice | None:
        """How pairs are selected; None if the values of all of them are noised."""
        return self.noises.choice

    @property
    def measured(self) -> MICrAndDistance:
        """What is measured of every pair."""
        tables = self.kinds.categories > 0 and self.statistic is not None
        return MICrAndDistance(micr=self.statistic, bins=self.kinds.most, tables=tables)

    @cached_property
    def dependence_level(self) -> float:
        """A released distance above this is called dependent."""
        return self.workload.dependence_level(self.distances)

    @cached_property
    def smallest(self) -> float:
        """The smallest distance that is found with 95 % probability."""
        return self.workload.smallest(self.noises)

    @property
    def spent_delta(self) -> float:
        """The delta that is used: 0 for values with cube noise, which needs none."""
        kind = self.event.guarantee
        return self.delta if isinstance(kind, ZCDP | GaussianDP) else self.event.delta

    @property
    def mechanism(self) -> str:
        """The mechanism in words, for a privacy statement."""
        own = f", and of {len(self.relative)} columns with themselves" if self.relative else ""
        sorts = isinstance(self.ask, TopK | Above) and self.choice is None
        of = " of all candidates, which are then sorted" if sorts else ""
        return f"{self.ask}{own}: {described(self.noises)}{of}"

    @property
    def guarantee_text(self) -> str:
        """The theorem behind epsilon and delta, in words."""
        kind = self.event.guarantee
        parts = [("the distances", self.distances), ("their MICr", self.values)]
        if isinstance(kind, ZCDP | GaussianDP):
            gaussian = isinstance(kind, GaussianDP)
            cost = f"{kind.mu:.6g}-Gaussian DP" if gaussian else f"{kind.rho:.6g}-zCDP"
            return (
                f"{cost} for all that is released together, hence ({self.epsilon:g}, "
                f"{self.delta:g})-DP"
            )
        costs = [f"{float(noise.epsilon):g}-DP for {what}" for what, noise in parts if noise]  # pyright: ignore[reportAttributeAccessIssue]
        if self.choice is not None:
            costs.insert(0, f"{float(self.choice.selector.epsilon):g}-DP to choose pairs")  # pyright: ignore[reportAttributeAccessIssue]
        together = f" of {self.noised} pairs together, by their sensitivity in the maximum norm"
        composed = ", and basic composition" if len(costs) > 1 else ""
        return " and ".join(costs) + together + composed


def described(noises: Noises) -> str:
    """A noise in words."""
    chosen = _CHOSEN[type(noises.choice.selector)] if noises.choice else ""
    on = "distances and on MICr" if noises.values else "distances"
    return f"{chosen}{_NOISE[type(noises.distances)]} noise on {on}"


@lru_cache(maxsize=8)
def pairs_of(ask: Ask, names: Names) -> Positions:
    """The pairs of a query, cached: there may be half a million, and every tile reads them."""
    found = ask.pairs(names)
    found.flags.writeable = False
    return found
