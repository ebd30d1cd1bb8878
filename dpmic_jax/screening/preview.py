"""`preview`: what a screen will cost and can show, before any data is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.lattice import LatticeLaplace
from dpmic_jax.mic import batch
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening import planning
from dpmic_jax.screening.independence import dependence_level, independence_level
from dpmic_jax.screening.planning import Plan, Rule, default_screen_statistic
from dpmic_jax.screening.power import chosen_chance, found_chance, ranked_chance
from dpmic_jax.screening.queries import Above, Ask, TopK
from dpmic_jax.screening.tiles import DEFAULT, Resources, Tiling, tiling

_SURE = 0.95
# Measured on one CPU core (`python -m benchmarks.screening`): rough prices, for planning only.
_PER_CODE = 3e-8  # reading and binning a value
_START = 2.0  # importing JAX, and compiling the noise


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What is to be expected of a screen.

    Attributes:
      plan: everything that is settled without data.
      tiling: how the pairs are worked off.
      smallest: the smallest MICr that is found with 95 % probability: that is called dependent
        (values of pairs); that k pairs must have to be the ones chosen, if all others are
        independent (`TopK`); that passes the threshold if it is looked at (`Above`).
      seconds: a rough guess of the time on this machine.
    """

    plan: Plan
    tiling: Tiling
    smallest: float
    seconds: float

    def chance(self, strong: Sequence[float], weak: Sequence[float]) -> float:
        """The chance of a right answer if the pairs had these true values of MICr.

        For the values of pairs: that all of `strong` come out above all of `weak`. For `TopK`:
        that exactly `strong` is chosen.
        """
        right = chosen_chance if isinstance(self.plan.ask, TopK) else ranked_chance
        return right(self.plan, strong, weak)

    def lines(self) -> list[tuple[str, str]]:
        """What to show, as (what, how much)."""
        plan, kind = self.plan, self.plan.event.guarantee
        cost = ("rho for each pair", f"{kind.rho:.4g}")
        if isinstance(plan.values, LatticeLaplace):
            cost = ("epsilon for each value", f"{float(plan.values.epsilon):.4g}")
        choice = []
        if plan.choice is not None:
            choice = [("noise scale of the choice", f"{plan.choice.scale:.4g}")]
        return [
            ("asked", str(plan.ask)),
            ("columns, records", f"{len(plan.names)}, {plan.n}"),
            ("pairs looked at", str(len(plan.pairs))),
            ("pairs released", f"{'at most ' * bool(plan.choice)}{plan.released}"),
            ("epsilon, delta", f"{plan.epsilon:g}, {plan.spent_delta:g}"),
            cost,
            ("mechanism", plan.mechanism),
            ("sensitivity of MICr", f"{float(plan.event.sensitivity):.4g}"),
            ("B, c", f"{plan.statistic.B}, {plan.statistic.c:g}"),
            *choice,
            ("noise on a value, sd", f"{plan.noise_sd:.4g}"),
            ("largest by chance", f"{_by_chance(plan):.4g}"),
            ("called dependent above", f"{dependence_level(plan):.4g}"),
            ("smallest MICr found, 95 %", _limited(self.smallest)),
            ("tiles of pairs", f"{self.tiling.tiles} of {self.tiling.size}"),
            ("passes over the table", f"1 to check, {self.tiling.passes} to count"),
            ("memory for codes or counts", f"{self.tiling.memory / 2**20:.0f} MB"),
            ("time, roughly", f"{self.seconds:.0f} s"),
        ]

    def __str__(self) -> str:
        width = max(len(what) for what, _ in self.lines())
        return "\n".join(f"{what:<{width}}  {text}" for what, text in self.lines())


def preview(
    *,
    columns: int | Sequence[str],
    n: int,
    epsilon: float,
    delta: float = 0.0,
    ask: Ask,
    records_per_person: int = 1,
    statistic: MICr | Rule = default_screen_statistic,
    resources: Resources = DEFAULT,
) -> Preview:
    """Say what `screen` with the same arguments will cost and can show. No data is read.

    Args:
      columns: their names, or how many.
      n: number of records.
      epsilon, delta, ask, records_per_person, statistic, resources: as for `screen`.
    """
    if isinstance(columns, int):
        columns = [f"column {number}" for number in range(columns)]
    plan = planning.plan(
        names=tuple(columns),
        n=n,
        ask=ask,
        epsilon=epsilon,
        delta=delta,
        statistic=statistic,
        relation=ReplaceOne(records_per_person),
        label="preview",
    )
    work = tiling(plan, [(0.0, 1.0)] * len(plan.names), resources)
    return Preview(plan=plan, tiling=work, smallest=_smallest(plan), seconds=_seconds(plan, work))


def _by_chance(plan: Plan) -> float:
    return independence_level(plan.statistic, plan.n, len(plan.pairs), 1 - _SURE)


def _smallest(plan: Plan) -> float:
    if isinstance(plan.ask, Above):
        return _least(lambda value: found_chance(plan, value))
    if isinstance(plan.ask, TopK):
        k, others = plan.ask.k, len(plan.pairs) - plan.ask.k
        level = _by_chance(plan)
        return _least(lambda value: chosen_chance(plan, [value] * k, [level] * others))
    return dependence_level(plan) + plan.noise_quantile(1 - _SURE)


def _least(chance: Callable[[float], float]) -> float:
    """The least value whose chance is `_SURE`; infinite if there is none up to 1000."""

    def lost(value: float) -> bool:
        return chance(value) < _SURE

    found = doubled(lost, 1.0, most=1000)
    return float("inf") if found is None else bisect(lost, *found, steps=40).fails


def _limited(value: float) -> str:
    return f"{value:.3g}" if value <= 1 else f"none: even MICr = 1 is lost in noise ({value:.3g})"


def _seconds(plan: Plan, work: Tiling) -> float:
    codes = (1 + work.passes) * plan.n * len(plan.names)
    scoring = batch.seconds(plan.statistic.grids(plan.n), plan.n, len(plan.pairs))
    return _START + codes * _PER_CODE + scoring
