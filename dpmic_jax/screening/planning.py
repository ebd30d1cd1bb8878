"""From a question and a budget to noise: everything of a screen that is settled without data.

Relation: one person's records are replaced by others; n, the names of the columns and their
bounds are public. One person moves every pair's MICr by at most Delta (`sensitivity`).

- Values of P pairs. Each gets noise for epsilon / P (Laplace) or rho / P (Gaussian), and they
  compose: epsilon, or rho, in all. With delta = 0 it is Laplace; else what has less variance.
- Top k. The k strongest pairs are chosen by noisy scores (`dp.selection.OneShotTopK`) with
  `selection_fraction` of epsilon, and their values get Laplace noise for 1/k of the rest each.
  Basic composition of k + 1 mechanisms, the last k chosen by the output of the first.
- Above a threshold. The same with the sparse vector technique (`dp.selection.SparseVector`);
  fewer pairs found than allowed cost less than is charged.

All of a screen is charged as one event.
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
from dpmic_jax.mechanisms import sensitivity
from dpmic_jax.mechanisms.release import event_settings
from dpmic_jax.mechanisms.tuned_defaults import cheap_defaults
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening.queries import Above, Ask, Names, Positions, TopK, canonical

Rule = Callable[[int, float], MICr]
ValueLaw = LatticeLaplace | LatticeGauss

# Candidates for the lattice of a selector's scores, the finest first.
_SCORE_BITS = range(28, 9, -1)
# The numbers of cells that tuning tried, up to 150: few settings, which serve many tables.
_CELLS = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)
_FINEST = 5


def default_screen_statistic(n: int, epsilon: float) -> MICr:
    """The cheap default for n records and an epsilon for each pair, on the next rung up.

    B is one of 16 numbers of cells up to 150, and c a whole number up to 5, so that what is
    compiled for one table serves others, and the level of independence is known (`levels`). Up,
    since a coarser statistic would be less accurate. More cells and finer masters would show more
    only where noise is small, and a screen's noise is that of many pairs; they would cost more
    time and memory than all else (docs/running.md is for these).
    """
    cheap = cheap_defaults(n, epsilon)
    wanted = min(cells(cheap.B, n), _CELLS[-1])
    B = next(rung for rung in _CELLS if rung >= wanted)
    return replace(cheap, B=B, c=min(math.ceil(cheap.c), _FINEST))


class Choice(NamedTuple):
    """How a few pairs are chosen.

    Attributes:
      selector: the mechanism.
      lattice: what its scores are points of.
    """

    selector: OneShotTopK | SparseVector
    lattice: Lattice

    @property
    def scale(self) -> float:
        """Of the noise on scores (`TopK`) or on the threshold (`Above`), in units of MICr."""
        one = self.selector
        rate = one.rate if isinstance(one, OneShotTopK) else one.threshold_noise.rate
        return float(1 / rate) / self.lattice.top


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a screen will do.

    Attributes:
      names: of the columns of the table.
      n: number of records; public.
      ask: the question.
      epsilon, delta: what the whole screen costs at most.
      statistic: with B as a number.
      values: the noise on each released value.
      choice: how pairs are chosen, where not all are released.
      event: the one charge.
    """

    names: Names
    n: int
    ask: Ask
    epsilon: float
    delta: float
    statistic: MICr
    values: ValueLaw
    choice: Choice | None
    event: Event

    @property
    def pairs(self) -> Positions:
        """Every pair that is looked at."""
        return _pairs(self.ask, self.names)

    @property
    def released(self) -> int:
        """How many pairs are released at most."""
        return self.ask.most if isinstance(self.ask, TopK | Above) else len(self.pairs)

    @property
    def spent_delta(self) -> float:
        """The delta that is used: 0 where noise is Laplace, which needs none."""
        kind = self.event.guarantee
        return self.delta if isinstance(kind, ZCDP) else self.event.delta

    @property
    def mechanism(self) -> str:
        """In words, for a statement."""
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
        """What noise exceeds with probability `above`, at most 1/2."""
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
    """Settle everything that needs no data, or say why it cannot be done."""
    if not isinstance(ask, Ask):
        raise TypeError(
            "expected ask to be AllPairs(), Against(column), Between(columns_a, columns_b), "
            f"TopK(k) or Above(threshold, at_most), got {ask!r}"
        )
    budget = Budget(epsilon, delta, relation)
    pairs = _pairs(ask, names)
    selecting = isinstance(ask, TopK | Above)
    each = epsilon * (1 - ask.selection_fraction) / ask.most if selecting else epsilon / len(pairs)
    chosen = _settled(statistic, n, each)
    moved = min(Fraction(1), sensitivity.group(_one(chosen, n), relation.records))
    choice, count = None, 1
    if isinstance(ask, TopK | Above):
        share = as_fraction(ask.selection_fraction)
        law = _value_laplace(as_fraction(epsilon) * (1 - share) / ask.most, moved)
        choice = _choice(ask, as_fraction(epsilon) * share, budget, moved)
        failing = choice.selector.guarantee.delta
        guarantee: Guarantee = ApproximateDP(epsilon, failing) if failing else PureDP(epsilon)
    else:
        count = len(pairs)
        law, guarantee = _values(budget, count, moved)
    event = Event(
        mechanism=f"screen: {type(ask).__name__}",
        guarantee=guarantee,
        relation=relation,
        n=n,
        sensitivity=moved,
        count=count,
        settings=(
            *event_settings(chosen, n),
            ("ask", canonical(ask)),
            ("noise", type(law).__name__),
        ),
        label=label,
    )
    return Plan(
        names=names,
        n=n,
        ask=ask,
        epsilon=budget.epsilon,
        delta=budget.delta,
        statistic=chosen,
        values=law,
        choice=choice,
        event=event,
    )


@lru_cache(maxsize=8)
def _pairs(ask: Ask, names: Names) -> Positions:
    """Made once: half a million pairs take a while, and every tile asks for its own."""
    found = ask.pairs(names)
    found.flags.writeable = False
    return found


def _one(statistic: MICr, n: int) -> Fraction:
    return sensitivity.integer_path(statistic, n)


def _settled(statistic: MICr | Rule, n: int, epsilon: float) -> MICr:
    found = statistic if isinstance(statistic, MICr) else statistic(n, epsilon)
    if not isinstance(found, MICr):
        raise TypeError(f"expected statistic to be a MICr or a rule that gives one, got {found!r}")
    # Written the same for 5 and 5.0, since the event, and with it the noise, goes by that.
    c = int(found.c) if float(found.c).is_integer() else found.c
    return replace(found, B=cells(found.B, n), c=c)


def _values(budget: Budget, pairs: int, moved: Fraction) -> tuple[ValueLaw, Guarantee]:
    """The less noisy of Laplace and Gaussian noise for so many pairs."""
    epsilon = floor_to_float(as_fraction(budget.epsilon) / pairs)
    laplace = _value_laplace(as_fraction(epsilon), moved)
    if budget.rho:
        rho = floor_to_float(as_fraction(budget.rho) / pairs)
        lattice = Lattice.for_gauss(moved, 1 / math.sqrt(2 * rho))
        gauss = LatticeGauss.for_rho(as_fraction(rho), lattice)
        off = ceil_to_float(gauss.certificate().total_variation)
        # Many inexact draws may cost more than the part of delta that is kept for them.
        paid = numerical(pairs * as_fraction(off), budget.epsilon) <= budget.inexact
        if paid and gauss.scale < math.sqrt(2) * laplace.scale:
            return gauss, ZCDP(rho, off)
    return laplace, PureDP(epsilon)


def _value_laplace(epsilon: Fraction, moved: Fraction) -> LatticeLaplace:
    return LatticeLaplace(epsilon=epsilon, lattice=Lattice.for_sensitivity(moved, epsilon))


def _choice(ask: TopK | Above, epsilon: Fraction, budget: Budget, moved: Fraction) -> Choice:
    """On the finest lattice whose noisy scores fit 32 bits."""
    problem = ValueError("no lattice fits")
    for bits in _SCORE_BITS:
        steps = -(-(moved * 2**bits) // 1)
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
    except ValueError:  # no delta, or an epsilon beyond its theorem
        return pure
    return max((pure, approximate), key=lambda each: each.round_epsilon)


def _laplace(law: ValueLaw) -> bool:
    return isinstance(law, LatticeLaplace)


def _quantile(law: ValueLaw, above: float) -> float:
    if _laplace(law):
        return -law.scale * math.log(2 * above)
    return -law.scale * float(ndtri(above))
