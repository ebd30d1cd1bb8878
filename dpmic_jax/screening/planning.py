"""The data-independent plan of a screen: sensitivity, noise and privacy event.

Neighbouring relation: one person's records are replaced by others; n, the names of the columns and
their bounds are public. One person with r records moves the distance from independence of a pair by
at most r / n (`mic.distance`), and its MICr by at most Delta (`mechanisms.sensitivity`).

- Pairs are told apart by their distances, and shown with a MIC. If the budget affords a MICr that
  can be read, MICr gets as much of it as makes what is found larger by at most a quarter; else
  distances get all of it, and MIC is estimated from them (`calibration`).
- Values of d pairs. One person changes all of them at once, so one cube of noise makes the
  distances epsilon-DP together, and another one MICr (`dp.noise.cube`). With a delta, Gaussian
  noise for rho / d each composes to rho.
- Top k, and above a threshold. Pairs are selected by noisy distances, by one-shot noisy top-k, by
  the exponential mechanism for a rho, or by a sparse vector (`dp.selection`), and their values get
  the rest of the budget; or the values of all pairs are released, and sorted.

By basic composition, or the addition of rhos, the parts add up to the whole, even though later ones
are chosen by the output of earlier ones. Of all these ways the plan has the one that finds the
smallest distance, by public numbers only. The whole screen is charged as one event.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from dpmic_jax.dp.accounting.events import ZCDP, Event, GaussianDP, PureDP, ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise.lattice import LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import (
    OneShotTopK,
    SingleThresholdSparseVector,
    SparseVector,
    ZCDPTopK,
)
from dpmic_jax.mechanisms import sensitivity as sensitivities
from dpmic_jax.mechanisms.additive_noise import MICrCube
from dpmic_jax.mechanisms.release import event_settings
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic import distance
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr, MICrAndDistance
from dpmic_jax.screening.calibration import distance_of
from dpmic_jax.screening.independence import chance_level, dependence_level
from dpmic_jax.screening.noises import (
    Choice,
    Noises,
    Share,
    ValueNoise,
    choice_of,
    guarantee_of,
    value_noise,
)
from dpmic_jax.screening.power import LARGEST, SURE, smallest_found
from dpmic_jax.screening.queries import Above, Ask, Names, Positions, TopK, canonical

Rule = Callable[[int, float], MICr]

_NOISE = {LatticeCube: "discrete cube", LatticeGauss: "discrete Gaussian"}
_CHOSEN = {
    OneShotTopK: "pairs chosen by one-shot noisy top-k, ",
    ZCDPTopK: "pairs chosen by the exponential mechanism, ",
    SparseVector: "pairs found by the sparse vector technique, ",
    SingleThresholdSparseVector: "pairs found by the sparse vector technique with one threshold, ",
}

# The numbers of cells that tuning tried, up to 150. Few settings mean few compiled programs.
_CELLS = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)
_FINEST = 5

# Of the budget of values, for distances; the rest is for MICr.
_FOR_DISTANCES = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
# How much larger what is found may get for the sake of MICr.
_AT_MOST_LARGER = 1.25
# MICr is not released if the noise on it exceeds this in 1 of 20 draws: it would tell nothing.
WIDEST = 0.15
# Of the budget, for a selection.
_FOR_SELECTION = (Fraction(1, 2), Fraction(7, 10), Fraction(4, 5))


def default_screen_statistic(n: int, epsilon: float) -> MICr:
    """The cheap tuned default for n records and an epsilon per pair, rounded up to a few settings.

    B is one of 16 numbers of cells up to 150, and c an integer up to 5, so that tables share
    compiled programs. B is rounded up because a coarser statistic would be less accurate. More
    cells and a larger c would detect more only where the noise is small, which it rarely is in a
    screen of many pairs, and would take more time and memory than everything else
    (docs/running.md).
    """
    cheap = cheap_defaults(n, epsilon)
    wanted = min(cells(cheap.B, n), _CELLS[-1])
    B = next(rung for rung in _CELLS if rung >= wanted)
    return replace(cheap, B=B, c=min(math.ceil(cheap.c), _FINEST))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a screen.

    Attributes:
      names: names of the columns of the table.
      n: number of records, which is public.
      ask: the query.
      epsilon, delta: upper bounds of the cost of the whole screen.
      noises: the noise on all that is released.
      others: what other ways would have found, by the name of their mechanism.
      event: the event of the whole screen.
    """

    names: Names
    n: int
    ask: Ask
    epsilon: float
    delta: float
    noises: Noises
    others: tuple[tuple[str, float], ...]
    event: Event

    @property
    def pairs(self) -> Positions:
        """The candidate pairs."""
        return _pairs(self.ask, self.names)

    @property
    def released(self) -> int:
        """Largest number of pairs that are released."""
        return self.ask.most if isinstance(self.ask, TopK | Above) else len(self.pairs)

    @property
    def noised(self) -> int:
        """Number of pairs whose values get noise."""
        return self.released if self.noises.choice else len(self.pairs)

    @property
    def threshold(self) -> float:
        """The distance above which an `Above` asks for pairs; 0 for other queries."""
        return distance_of(self.ask.threshold) if isinstance(self.ask, Above) else 0.0

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
        return MICrAndDistance(micr=self.statistic)

    @cached_property
    def dependence_level(self) -> float:
        """A released distance above this is called dependent."""
        return dependence_level(self.distances, self.n, len(self.pairs), self._records)

    @cached_property
    def smallest(self) -> float:
        """The smallest distance that is found with 95 % probability."""
        return self.smallest_by(self.noises)

    def smallest_by(self, noises: Noises) -> float:
        """The smallest distance that another noise would find."""
        return _smallest(noises, self.ask, self.n, len(self.pairs), self._records)

    @property
    def _records(self) -> int:
        return self.event.relation.records

    @property
    def spent_delta(self) -> float:
        """The delta that is used: 0 for values with cube noise, which needs none."""
        kind = self.event.guarantee
        return self.delta if isinstance(kind, ZCDP | GaussianDP) else self.event.delta

    @property
    def mechanism(self) -> str:
        """The mechanism in words, for a privacy statement."""
        return f"{self.ask}: {_described(self.noises)}"

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


def plan(
    *,
    names: Names,
    n: int,
    ask: Ask,
    epsilon: float,
    delta: float,
    statistic: MICr | Rule,
    relation: ReplaceOne,
    label: str = "",
) -> Plan:
    """Plan a screen without its data, or raise an error if it is impossible."""
    if not isinstance(ask, Ask):
        raise TypeError(
            "expected ask to be AllPairs(), Against(column), Between(columns_a, columns_b), "
            f"TopK(k) or Above(threshold, at_most), got {ask!r}"
        )
    if n > distance.MOST_RECORDS:
        raise ValueError(f"expected at most {distance.MOST_RECORDS} records, got {n}")
    budget = Budget(epsilon, delta, relation)
    pairs, records = len(_pairs(ask, names)), relation.records
    ways = list(_ways(ask, budget, n, pairs))
    found = [_smallest(way, ask, n, pairs, records) for way in ways]
    best = min(range(len(ways)), key=found.__getitem__)
    kept = {_described(way): each for way, each in zip(ways, found, strict=True)}
    kept.pop(_described(ways[best]))
    chosen = _with_micr(ways[best], found[best], ask, budget, n, pairs, statistic)
    event = Event(
        mechanism=f"screen: {type(ask).__name__}",
        guarantee=chosen.guarantee,
        relation=relation,
        n=n,
        sensitivity=_sensitivity(n, budget),
        settings=_settings(chosen, ask, n),
        label=label,
    )
    return Plan(
        names=names,
        n=n,
        ask=ask,
        epsilon=budget.epsilon,
        delta=budget.delta,
        noises=chosen,
        others=tuple(kept.items()),
        event=event,
    )


def check_not_lost(plan: Plan) -> None:
    """Refuse a plan whose noise hides every dependence, by public numbers only.

    The most that could be hoped for: no other pair has a distance above 0 by chance. A selection
    tells something even if the values of what is selected are lost.
    """
    selects = plan.choice is not None
    level = None if selects else plan.distances.largest_quantile(1 - SURE, plan.noised)
    times = smallest_found(plan.noises, level, len(plan.pairs), 0.0, 0.0) / LARGEST
    if times <= 1:
        return
    fewer = "a smaller k" if selects else "fewer pairs, or TopK(k) of them"
    raise ValueError(
        f"noise would hide every dependence: of {plan.ask}, even a pair with MIC = 1 would not be "
        f"found with 95 % probability. Use about {times:.2g} times the epsilon or the records, or "
        f"{fewer}; `dpmic plan` and preview() compare them. Pass force=True (--force) to spend "
        "epsilon all the same"
    )


def _sensitivity(n: int, budget: Budget) -> Fraction:
    """The most that one person moves a distance."""
    return min(Fraction(1), Fraction(budget.relation.records, n))


def _ways(ask: Ask, budget: Budget, n: int, pairs: int) -> Iterator[Noises]:
    """The ways to answer a query that spend all on distances, and on selecting by them."""
    pure, sensitivity = Share(epsilon=as_fraction(budget.epsilon)), _sensitivity(n, budget)
    selects = isinstance(ask, TopK | Above)
    if not selects or ask.selection_fraction is None:
        yield Noises(value_noise(pure, sensitivity, pairs), guarantee=PureDP(budget.epsilon))
        if budget.mu:
            share = Share(mu_squared=as_fraction(budget.mu) ** 2)
            yield from _costed(Noises(value_noise(share, sensitivity, pairs)), budget, pairs)
    if not selects:
        return
    # A sparse vector has no version for a rho.
    rho = Share(rho=as_fraction(budget.rho))
    for share in (pure, rho) if budget.rho and isinstance(ask, TopK) else (pure,):
        for fraction in _fractions(ask):
            choice = choice_of(ask, share.part(fraction), budget, sensitivity)
            values = value_noise(share.part(1 - fraction), sensitivity, ask.most)
            yield from _costed(Noises(values, choice=choice), budget, ask.most)


def _fractions(ask: TopK | Above) -> tuple[Fraction, ...]:
    if ask.selection_fraction is None:
        return _FOR_SELECTION
    return (as_fraction(ask.selection_fraction),)


def _costed(noises: Noises, budget: Budget, count: int) -> Iterator[Noises]:
    guarantee = guarantee_of(noises, budget, count)
    if guarantee is not None:
        yield noises._replace(guarantee=guarantee)


def _with_micr(
    noises: Noises,
    found: float,
    ask: Ask,
    budget: Budget,
    n: int,
    pairs: int,
    statistic: MICr | Rule,
) -> Noises:
    """The same with MICr, for a part of the budget of the values, if the budget affords it."""
    count = ask.most if noises.choice and isinstance(ask, TopK | Above) else pairs
    records, share = budget.relation.records, _spent(noises, count)
    for fraction in _FOR_DISTANCES:
        distances = value_noise(share.part(fraction), _sensitivity(n, budget), count)
        way = noises._replace(distances=distances)
        if _smallest(way, ask, n, pairs, records) > _AT_MOST_LARGER * found:
            continue
        rest = share.part(1 - fraction)
        resolved = _resolved(statistic, n, rest, count)
        values = value_noise(rest, sensitivities.of_person(resolved, n, records), count)
        if half_width(values, ask, count, selected=noises.choice is not None) > WIDEST:
            break
        for whole in _costed(way._replace(values=values, statistic=resolved), budget, count):
            return whole
    return noises


def half_width(noise: ValueNoise, ask: Ask, count: int, *, selected: bool) -> float:
    """95 % of the noise on a released value is within this.

    If pairs are sorted by the released values, this has to hold for all of them at once.
    """
    if isinstance(ask, TopK | Above) and not selected:
        return noise.largest_quantile(0.025, count)
    return noise.quantile(0.025)


def _spent(noises: Noises, count: int) -> Share:
    """What the noise on `count` distances costs."""
    noise = noises.distances
    if isinstance(noise, LatticeCube):
        return Share(epsilon=Fraction(noise.epsilon))
    if noises.choice:
        return Share(rho=noise.certificate().rho * count)
    return Share(mu_squared=noise.joint_certificate(count).mu_squared)


def _smallest(noises: Noises, ask: Ask, n: int, pairs: int, records: int) -> float:
    """The smallest distance that is selected, and called dependent, with 95 % probability."""
    level = dependence_level(noises.distances, n, pairs, records)
    threshold = distance_of(ask.threshold) if isinstance(ask, Above) else 0.0
    others = chance_level(n, pairs, records)
    found = smallest_found(noises, level, pairs, others, threshold)
    # Sorting is by released distances, so that what is above a threshold has to be so with noise.
    return found if noises.choice else max(found, threshold + noises.distances.quantile(0.05))


def _described(noises: Noises) -> str:
    chosen = _CHOSEN[type(noises.choice.selector)] if noises.choice else ""
    on = "distances and on MICr" if noises.values else "distances"
    return f"{chosen}{_NOISE[type(noises.distances)]} noise on {on}"


@lru_cache(maxsize=8)
def _pairs(ask: Ask, names: Names) -> Positions:
    """The pairs of a query, cached: there may be half a million, and every tile reads them."""
    found = ask.pairs(names)
    found.flags.writeable = False
    return found


def _resolved(statistic: MICr | Rule, n: int, share: Share, count: int) -> MICr:
    # Floats are enough here: they only choose the default statistic.
    epsilon = MICrCube(epsilon=float(share.epsilon)).rule_epsilon(count) if share.epsilon else 0.0
    epsilon = epsilon or 2 * math.sqrt((share.rho or share.mu_squared / 2) / count)
    found = statistic if isinstance(statistic, MICr) else statistic(n, epsilon)
    if not isinstance(found, MICr):
        raise TypeError(f"expected statistic to be a MICr or a rule that gives one, got {found!r}")
    # 5 and 5.0 are written alike, because the noise depends on the text of the event.
    c = int(found.c) if float(found.c).is_integer() else found.c
    return replace(found, B=cells(found.B, n), c=c)


def _settings(noises: Noises, ask: Ask, n: int) -> tuple[tuple[str, str], ...]:
    """What noise depends on: a radius must not serve more values than it was drawn for."""
    pairs = noises.distances.points if isinstance(noises.distances, LatticeCube) else 0
    lattices = [each.lattice.bits for each in (noises.distances, noises.values) if each]
    return (
        *(event_settings(noises.statistic, n) if noises.statistic else ()),
        ("ask", canonical(ask)),
        ("choice", type(noises.choice.selector).__name__ if noises.choice else "none"),
        ("distance", f"{distance.PARTS} parts, {distance.steps_of(n)} steps"),
        ("noise", _noise_text(noises)),
        ("values", str(pairs)),
        ("lattice", " ".join(map(str, lattices))),
    )


def _noise_text(noises: Noises) -> str:
    """The noise with its parameters, in full: they decide what is drawn."""
    return "; ".join(
        f"{type(each).__name__}({each.epsilon if isinstance(each, LatticeCube) else each.sigma})"
        for each in (noises.distances, noises.values)
        if each
    )
