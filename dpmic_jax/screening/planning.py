"""The data-independent plan of a screen: sensitivity, noise and privacy event.

Neighbouring relation: one person's records are replaced by others; n, the names of the columns and
their bounds are public. One person changes the MICr of a pair by at most Delta (`sensitivity`).

- Values of d pairs. One person changes all of them at once, each by at most Delta, so one cube of
  noise makes them epsilon-DP together (`dp.noise.cube`). With a delta, Gaussian noise for rho / d
  each composes to rho, and is used where it makes smaller values stand out.
- Top k. The k strongest pairs are selected by noisy scores (`dp.selection.OneShotTopK`) with
  `selection_fraction` of epsilon, and their values get one cube of noise for the rest. This is
  basic composition of two mechanisms, the second chosen by the output of the first.
- Above a threshold. The same with the sparse vector technique: with one threshold
  (`dp.selection.SingleThresholdSparseVector`), or Algorithm 5 with a delta where that is better.
  The charge is for `at_most` pairs, whether or not so many are found.

The whole screen is charged as one event.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpmic_jax.dp.accounting.composition import numerical
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    Guarantee,
    PureDP,
    ReplaceOne,
)
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, floor_to_float
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.dp.noise.lattice import Lattice, LatticeCube, LatticeGauss
from dpmic_jax.dp.selection import OneShotTopK, SingleThresholdSparseVector, SparseVector
from dpmic_jax.mechanisms import sensitivity as sensitivities
from dpmic_jax.mechanisms.additive_noise import MICrCube
from dpmic_jax.mechanisms.release import event_settings
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.queries import Above, Ask, Names, Positions, TopK, canonical

Rule = Callable[[int, float], MICr]
ValueNoise = LatticeCube | LatticeGauss
Selector = OneShotTopK | SparseVector | SingleThresholdSparseVector

_NOISE = {LatticeCube: "discrete cube", LatticeGauss: "discrete Gaussian"}

# Resolutions to try for the lattice of a selector's scores, the finest first.
_SCORE_BITS = range(28, 9, -1)
# The numbers of cells that tuning tried, up to 150. Few settings mean few compiled programs.
_CELLS = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)
_FINEST = 5


def default_screen_statistic(n: int, epsilon: float) -> MICr:
    """The cheap tuned default for n records and an epsilon per pair, rounded up to a few settings.

    B is one of 16 numbers of cells up to 150, and c an integer up to 5, so that tables share
    compiled programs, and the dependence threshold is known (`levels`). B is rounded up because a
    coarser statistic would be less accurate. More cells and a larger c would detect more only where
    the noise is small, which it rarely is in a screen of many pairs, and would take more time and
    memory than everything else (docs/running.md).
    """
    cheap = cheap_defaults(n, epsilon)
    wanted = min(cells(cheap.B, n), _CELLS[-1])
    B = next(rung for rung in _CELLS if rung >= wanted)
    return replace(cheap, B=B, c=min(math.ceil(cheap.c), _FINEST))


class Choice(NamedTuple):
    """How pairs are selected.

    Attributes:
      selector: the selection mechanism.
      lattice: the lattice of its scores.
    """

    selector: Selector
    lattice: Lattice

    @property
    def scale(self) -> float:
        """Scale of the noise on scores, in units of MICr."""
        return float(1 / _rates(self.selector)[0]) / self.lattice.top

    @property
    def threshold_scale(self) -> float:
        """Scale of the noise on the threshold (`Above`), in units of MICr; 0 without one."""
        rate = _rates(self.selector)[1]
        return float(1 / rate) / self.lattice.top if rate else 0.0


def _rates(selector: Selector) -> tuple[Fraction, Fraction | None]:
    """The rates of the noise on scores and on the threshold."""
    if isinstance(selector, OneShotTopK):
        return selector.rate, None
    if isinstance(selector, SingleThresholdSparseVector):
        return selector.queries.rate, selector.threshold_noise.rate
    # Algorithm 5 has Laplace noise on scores, of twice the scale of that on the threshold.
    return selector.threshold_noise.rate / 2, selector.threshold_noise.rate


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a screen.

    Attributes:
      names: names of the columns of the table.
      n: number of records, which is public.
      ask: the query.
      epsilon, delta: upper bounds of the cost of the whole screen.
      statistic: the statistic, with B as a number.
      values: the noise on each released value.
      choice: how pairs are selected; None if all are released.
      event: the event of the whole screen.
    """

    names: Names
    n: int
    ask: Ask
    epsilon: float
    delta: float
    statistic: MICr
    values: ValueNoise
    choice: Choice | None
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
    def spent_delta(self) -> float:
        """The delta that is used: 0 for values with cube noise, which needs none."""
        kind = self.event.guarantee
        return self.delta if isinstance(kind, ZCDP) else self.event.delta

    @property
    def mechanism(self) -> str:
        """The mechanism in words, for a privacy statement."""
        noise = _NOISE[type(self.values)]
        chosen = {
            OneShotTopK: "pairs chosen by one-shot noisy top-k, ",
            SparseVector: "pairs found by the sparse vector technique, ",
            SingleThresholdSparseVector: (
                "pairs found by the sparse vector technique with one threshold, "
            ),
        }.get(type(self.choice.selector) if self.choice else None, "")
        return f"{self.ask}: {chosen}{noise} noise on MICr"

    @property
    def guarantee_text(self) -> str:
        """The theorem behind epsilon and delta, in words."""
        kind, count = self.event.guarantee, self.event.count
        if isinstance(kind, ZCDP):
            return (
                f"{kind.rho:.6g}-zCDP for each of {count} pairs, {self.event.rho:.6g}-zCDP "
                f"together, hence ({self.epsilon:g}, {self.delta:g})-DP"
            )
        if self.choice is not None and isinstance(self.values, LatticeCube):
            share = f"{float(self.choice.selector.epsilon):g}-DP to choose pairs and "
            share += f"{float(self.values.epsilon):g}-DP for the values"
            return f"{share} of {self.released} together, by basic composition"
        return (
            f"{kind.epsilon:.6g}-DP for {self.released} pairs together, by the sensitivity of all "
            "of them in the maximum norm"
        )


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
    budget = Budget(epsilon, delta, relation)
    pairs = _pairs(ask, names)
    selecting = isinstance(ask, TopK | Above)
    most = ask.most if selecting else len(pairs)
    share = as_fraction(ask.selection_fraction) if selecting else Fraction(0)
    for_values = as_fraction(epsilon) * (1 - share)
    # A float is enough here: it only chooses the default statistic.
    resolved = _resolved(statistic, n, MICrCube(epsilon=float(for_values)).rule_epsilon(most))
    sensitivity = sensitivities.of_person(resolved, n, relation.records)
    cube = LatticeCube(epsilon=for_values, lattice=Lattice.for_cube(sensitivity), points=most)
    values, choice = _Values(cube, PureDP(epsilon), 1), None
    if isinstance(ask, TopK | Above):
        choice = _choice(ask, as_fraction(epsilon) * share, budget, sensitivity)
        if failing := choice.selector.guarantee.delta:
            values = values._replace(guarantee=ApproximateDP(epsilon, failing))
    elif gauss := _gauss(budget, most, sensitivity):
        values = min(values, gauss, key=lambda each: told_apart(each.noise, most))
    event = Event(
        mechanism=f"screen: {type(ask).__name__}",
        guarantee=values.guarantee,
        relation=relation,
        n=n,
        sensitivity=sensitivity,
        count=values.releases,
        settings=(
            *event_settings(resolved, n),
            ("ask", canonical(ask)),
            ("noise", type(values.noise).__name__),
            # A radius of cube noise must not serve more values than it was drawn for.
            ("values", str(most)),
            ("lattice", str(values.noise.lattice.bits)),
        ),
        label=label,
    )
    return Plan(
        names=names,
        n=n,
        ask=ask,
        epsilon=budget.epsilon,
        delta=budget.delta,
        statistic=resolved,
        values=values.noise,
        choice=choice,
        event=event,
    )


@lru_cache(maxsize=8)
def _pairs(ask: Ask, names: Names) -> Positions:
    """The pairs of a query, cached: there may be half a million, and every tile reads them."""
    found = ask.pairs(names)
    found.flags.writeable = False
    return found


def _resolved(statistic: MICr | Rule, n: int, epsilon: float) -> MICr:
    found = statistic if isinstance(statistic, MICr) else statistic(n, epsilon)
    if not isinstance(found, MICr):
        raise TypeError(f"expected statistic to be a MICr or a rule that gives one, got {found!r}")
    # 5 and 5.0 are written alike, because the noise depends on the text of the event.
    c = int(found.c) if float(found.c).is_integer() else found.c
    return replace(found, B=cells(found.B, n), c=c)


class _Values(NamedTuple):
    """The noise on values, and what it costs: `releases` times `guarantee`."""

    noise: ValueNoise
    guarantee: Guarantee
    releases: int


def _gauss(budget: Budget, values: int, sensitivity: Fraction) -> _Values | None:
    """Gaussian noise, if there is a delta that it fits."""
    if not budget.rho:
        return None
    rho = floor_to_float(as_fraction(budget.rho) / values)
    lattice = Lattice.for_gauss(sensitivity, 1 / math.sqrt(2 * rho))
    noise = LatticeGauss.for_rho(as_fraction(rho), lattice)
    off = ceil_to_float(noise.certificate().total_variation)
    # The errors of many inexact draws may exceed the part of delta that is reserved for them.
    if numerical(values * as_fraction(off), budget.epsilon) > budget.inexact:
        return None
    return _Values(noise, ZCDP(rho, off), values)


def told_apart(noise: ValueNoise, values: int) -> float:
    """How far above independent pairs a pair has to be, to stand out with 95 % probability.

    Of the noise alone: what the largest of all noises exceeds in 1 of 40 tables, and what one
    noise takes away in 1 of 20.
    """
    return noise.largest_quantile(0.025, values) + noise.quantile(0.05)


def _choice(ask: TopK | Above, epsilon: Fraction, budget: Budget, sensitivity: Fraction) -> Choice:
    """The selector on the finest lattice whose noisy scores fit into 32 bits."""
    problem = ValueError("no lattice fits")
    for bits in _SCORE_BITS:
        steps = -(-(sensitivity * 2**bits) // 1)  # rounded up to whole points
        # At most 2047 steps, as on the lattice of values; the coarsest is tried in any case.
        if steps >= 2048 and bits > _SCORE_BITS[-1]:
            continue
        lattice = Lattice(bits=bits, sensitivity=steps)
        try:
            return Choice(_selector_on(lattice, ask, epsilon, budget), lattice)
        except ValueError as error:
            problem = error
    raise ValueError(f"no noise for {ask} at epsilon={float(epsilon):.3g}: {problem}")


def _selector_on(
    lattice: Lattice, ask: TopK | Above, epsilon: Fraction, budget: Budget
) -> Selector:
    shared = {"epsilon": epsilon, "sensitivity": lattice.sensitivity, "top": lattice.top}
    if isinstance(ask, TopK):
        return OneShotTopK(k=ask.k, **shared)
    threshold = lattice.floor(as_fraction(ask.threshold))
    shared |= {"threshold": threshold, "at_most": ask.at_most}
    single = SingleThresholdSparseVector(**shared)
    try:
        approximate = SparseVector(delta=floor_to_float(budget.failures), **shared)
    except ValueError:  # delta is 0, or epsilon is beyond the theorem
        return single
    return min((single, approximate), key=_variance)


def _variance(selector: SparseVector | SingleThresholdSparseVector) -> Fraction:
    """Variance of the noise on a score less that on the threshold, in steps."""
    variance = sum((1 / rate**2 for rate in _rates(selector) if rate), Fraction(0))
    # Laplace noise has twice the variance of exponential noise of the same rate.
    return variance if isinstance(selector, SingleThresholdSparseVector) else 2 * variance
