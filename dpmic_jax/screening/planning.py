"""The data-independent plan of a screen: sensitivity, noise and privacy event.

Neighbouring relation: one person's records are replaced by others; n, the names of the columns and
their bounds are public. One person changes the MICr of a pair by at most Delta (`sensitivity`).

- Values of P pairs. Each gets noise for epsilon / P (Laplace) or rho / P (Gaussian), and they
  compose to epsilon or rho. With delta = 0 the noise is Laplace, else that with less variance.
- Top k. The k strongest pairs are selected by noisy scores (`dp.selection.OneShotTopK`) with
  `selection_fraction` of epsilon, and each of their values gets Laplace noise for 1/k of the rest.
  This is basic composition of k + 1 mechanisms, the last k chosen by the output of the first.
- Above a threshold. The same with the sparse vector technique (`dp.selection.SparseVector`). The
  charge is for `at_most` pairs, whether or not so many are found.

The whole screen is charged as one event.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from scipy.special import ndtri

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
from dpmic_jax.dp.noise.lattice import Lattice, LatticeGauss, LatticeLaplace
from dpmic_jax.dp.selection import OneShotTopK, SparseVector
from dpmic_jax.mechanisms import sensitivity as sensitivities
from dpmic_jax.mechanisms.release import event_settings
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.queries import Above, Ask, Names, Positions, TopK, canonical

Rule = Callable[[int, float], MICr]
ValueNoise = LatticeLaplace | LatticeGauss

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

    selector: OneShotTopK | SparseVector
    lattice: Lattice

    @property
    def scale(self) -> float:
        """Scale of the noise on scores (`TopK`) or on the threshold (`Above`), in units of MICr."""
        chosen = self.selector
        rate = chosen.rate if isinstance(chosen, OneShotTopK) else chosen.threshold_noise.rate
        return float(1 / rate) / self.lattice.top


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
        """The delta that is used: 0 for values with Laplace noise, which needs none."""
        kind = self.event.guarantee
        return self.delta if isinstance(kind, ZCDP) else self.event.delta

    @property
    def mechanism(self) -> str:
        """The mechanism in words, for a privacy statement."""
        noise = "discrete Laplace" if _laplace(self.values) else "discrete Gaussian"
        chosen = {
            OneShotTopK: "pairs chosen by one-shot noisy top-k, ",
            SparseVector: "pairs found by the sparse vector technique, ",
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
        if self.choice is not None and isinstance(self.values, LatticeLaplace):
            share = f"{float(self.choice.selector.epsilon):g}-DP to choose pairs and "
            share += f"{float(self.values.epsilon):g}-DP for each value"
            return f"{share} of {self.released}, by basic composition"
        return f"{kind.epsilon:.6g}-DP for each of {count} pairs, by basic composition"

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a value, before it is clipped to [0, 1]."""
        return self.values.scale * (math.sqrt(2) if _laplace(self.values) else 1)

    def noise_quantile(self, above: float) -> float:
        """The number that noise exceeds with probability `above`, which is at most 1/2."""
        return _quantile(self.values, above)


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
    # A float is enough here: it only chooses the default statistic.
    each = epsilon * (1 - ask.selection_fraction) / ask.most if selecting else epsilon / len(pairs)
    resolved = _resolved(statistic, n, each)
    # MICr lies in [0, 1], so nobody changes it by more than 1.
    sensitivity = min(Fraction(1), sensitivities.group(_one(resolved, n), relation.records))
    choice, count = None, 1
    if isinstance(ask, TopK | Above):
        share = as_fraction(ask.selection_fraction)
        noise = _value_laplace(as_fraction(epsilon) * (1 - share) / ask.most, sensitivity)
        choice = _choice(ask, as_fraction(epsilon) * share, budget, sensitivity)
        failing = choice.selector.guarantee.delta
        guarantee: Guarantee = ApproximateDP(epsilon, failing) if failing else PureDP(epsilon)
    else:
        count = len(pairs)
        noise, guarantee = _values(budget, count, sensitivity)
    event = Event(
        mechanism=f"screen: {type(ask).__name__}",
        guarantee=guarantee,
        relation=relation,
        n=n,
        sensitivity=sensitivity,
        count=count,
        settings=(
            *event_settings(resolved, n),
            ("ask", canonical(ask)),
            ("noise", type(noise).__name__),
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
        values=noise,
        choice=choice,
        event=event,
    )


@lru_cache(maxsize=8)
def _pairs(ask: Ask, names: Names) -> Positions:
    """The pairs of a query, cached: there may be half a million, and every tile reads them."""
    found = ask.pairs(names)
    found.flags.writeable = False
    return found


def _one(statistic: MICr, n: int) -> Fraction:
    """The sensitivity of MICr to one record."""
    return sensitivities.integer_path(statistic, n)


def _resolved(statistic: MICr | Rule, n: int, epsilon: float) -> MICr:
    found = statistic if isinstance(statistic, MICr) else statistic(n, epsilon)
    if not isinstance(found, MICr):
        raise TypeError(f"expected statistic to be a MICr or a rule that gives one, got {found!r}")
    # 5 and 5.0 are written alike, because the noise depends on the text of the event.
    c = int(found.c) if float(found.c).is_integer() else found.c
    return replace(found, B=cells(found.B, n), c=c)


def _values(budget: Budget, pairs: int, sensitivity: Fraction) -> tuple[ValueNoise, Guarantee]:
    """Laplace or Gaussian noise for the values of `pairs`, whichever has less variance."""
    epsilon = floor_to_float(as_fraction(budget.epsilon) / pairs)
    laplace = _value_laplace(as_fraction(epsilon), sensitivity)
    if budget.rho:
        rho = floor_to_float(as_fraction(budget.rho) / pairs)
        lattice = Lattice.for_gauss(sensitivity, 1 / math.sqrt(2 * rho))
        gauss = LatticeGauss.for_rho(as_fraction(rho), lattice)
        off = ceil_to_float(gauss.certificate().total_variation)
        # The errors of many inexact draws may exceed the part of delta that is reserved for them.
        fits = numerical(pairs * as_fraction(off), budget.epsilon) <= budget.inexact
        if fits and gauss.scale < math.sqrt(2) * laplace.scale:
            return gauss, ZCDP(rho, off)
    return laplace, PureDP(epsilon)


def _value_laplace(epsilon: Fraction, sensitivity: Fraction) -> LatticeLaplace:
    return LatticeLaplace(epsilon=epsilon, lattice=Lattice.for_sensitivity(sensitivity, epsilon))


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
) -> OneShotTopK | SparseVector:
    shared = {"epsilon": epsilon, "sensitivity": lattice.sensitivity, "top": lattice.top}
    if isinstance(ask, TopK):
        return OneShotTopK(k=ask.k, **shared)
    threshold = lattice.floor(as_fraction(ask.threshold))
    shared |= {"threshold": threshold, "at_most": ask.at_most}
    pure = SparseVector(delta=0.0, **shared)
    try:
        approximate = SparseVector(delta=floor_to_float(budget.failures), **shared)
    except ValueError:  # delta is 0, or epsilon is beyond the theorem
        return pure
    return max((pure, approximate), key=lambda each: each.round_epsilon)


def _laplace(noise: ValueNoise) -> bool:
    return isinstance(noise, LatticeLaplace)


def _quantile(noise: ValueNoise, above: float) -> float:
    if _laplace(noise):
        return -noise.scale * math.log(2 * above)
    return -noise.scale * float(ndtri(above))
