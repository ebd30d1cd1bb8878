"""`preview`: the cost and the power of a screen, before any data is read."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.mic import batch
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.screening import planning
from dpmic_jax.screening.independence import dependence_level, independence_level
from dpmic_jax.screening.planning import Plan, Rule, default_screen_statistic
from dpmic_jax.screening.power import SURE, chosen_chance, ranked_chance, smallest_found
from dpmic_jax.screening.queries import Above, Ask, TopK
from dpmic_jax.screening.tiles import DEFAULT, Resources, Tiling, tiling

# Seconds measured on one CPU core (`python -m benchmarks.screening`), for a rough estimate.
_PER_CODE = 3e-8  # to read and bin a value
_START = 2.0  # to import JAX and compile the noise


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The expected cost and power of a screen.

    Attributes:
      plan: the data-independent plan.
      tiling: how pairs are grouped for scoring.
      smallest: the smallest MICr that is found with 95 % probability: the pair is called dependent,
        and before that it is selected among pairs that are independent (`TopK`), or passes the
        threshold when it is visited (`Above`).
      seconds: a rough estimate of the run time.
    """

    plan: Plan
    tiling: Tiling
    smallest: float
    seconds: float

    def chance(self, strong: Sequence[float], weak: Sequence[float]) -> float:
        """The probability of a right answer if the pairs had these true values of MICr.

        An answer is right if all released values of `strong` are above all of `weak`, or for
        `TopK` if exactly `strong` is selected.
        """
        right = chosen_chance if isinstance(self.plan.ask, TopK) else ranked_chance
        return right(self.plan, strong, weak)

    def lines(self) -> list[tuple[str, str]]:
        """The preview as (quantity, value) texts."""
        plan, kind = self.plan, self.plan.event.guarantee
        cost = ("rho for each pair", f"{kind.rho:.4g}")
        if isinstance(plan.values, LatticeCube):
            cost = ("epsilon for all values", f"{float(plan.values.epsilon):.4g}")
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
            ("noise on a value, sd", f"{plan.values.sd:.4g}"),
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
    """Preview the cost and the power of `screen` with the same arguments. No data is read.

    Args:
      columns: names of the columns, or their number.
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
        label="preview",  # this event is never charged
    )
    work = tiling(plan, [(0.0, 1.0)] * len(plan.names), resources)
    return Preview(plan=plan, tiling=work, smallest=_smallest(plan), seconds=_seconds(plan, work))


def _smallest(plan: Plan) -> float:
    threshold = plan.ask.threshold if isinstance(plan.ask, Above) else 0.0
    return smallest_found(plan, dependence_level(plan), _by_chance(plan), threshold)


def _by_chance(plan: Plan) -> float:
    return independence_level(plan.statistic, plan.n, len(plan.pairs), 1 - SURE)


def _limited(value: float) -> str:
    return f"{value:.3g}" if value <= 1 else f"none: even MICr = 1 is lost in noise ({value:.3g})"


def _seconds(plan: Plan, work: Tiling) -> float:
    codes = (1 + work.passes) * plan.n * len(plan.names)
    scoring = batch.seconds(plan.statistic.grids(plan.n), plan.n, len(plan.pairs))
    return _START + codes * _PER_CODE + scoring
