"""`preview`: the cost and the power of a screen, before any data is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmic_jax.data.limits import Limits
from dpmic_jax.data.schema import Schema
from dpmic_jax.data.source.coding import limits
from dpmic_jax.data.table import FEWEST_RECORDS
from dpmic_jax.dp.accounting.events import ReplaceOne
from dpmic_jax.dp.arithmetic.exact_decimal import check_positive_int
from dpmic_jax.mic import batch
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results.power_curve import PowerCurve
from dpmic_jax.runs.relation import relation_of
from dpmic_jax.screening import planning
from dpmic_jax.screening.curve import curve, typical_mic
from dpmic_jax.screening.planning import Plan, Rule, default_screen_statistic
from dpmic_jax.screening.power import LARGEST, chosen_chance, ranked_chance
from dpmic_jax.screening.queries import Above, Ask, TopK
from dpmic_jax.screening.tiles import DEFAULT, Resources, Tiling, tiling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Seconds measured on one CPU core (`python -m benchmarks.screening`), for a rough estimate.
_PER_CODE = 3e-8  # to read and bin a value
_START = 2.0  # to import JAX and compile the noise


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The expected cost and power of a screen.

    Attributes:
      plan: the data-independent plan.
      tiling: how pairs are grouped for scoring.
      seconds: a rough estimate of the run time.
      statistic: MICr, or the rule that chooses it.
    """

    plan: Plan
    tiling: Tiling
    seconds: float
    statistic: MICr | Rule

    @property
    def smallest_distance(self) -> float:
        """The smallest distance from independence that is found with 95 % probability.

        The pair is called dependent, and before that it is selected among pairs that are
        independent (`TopK`), or passes the threshold when it is visited (`Above`).
        """
        return self.plan.smallest

    @property
    def smallest(self) -> float:
        """The MIC that relationships at that distance typically have; infinity if there are none.

        Relationships of one MIC differ in their distance: those of few wiggles are found earlier.
        """
        return typical_mic(self.smallest_distance)

    @property
    def found(self) -> bool:
        """Whether any dependence is found; if not, noise hides even a MIC of 1."""
        return math.isfinite(self.smallest)

    def curve(self) -> PowerCurve:
        """The smallest dependence that is found, at other epsilons around this one."""
        return curve(self.plan, self.statistic)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw `curve` with matplotlib, on `ax` or in a new figure; the dot is this screen."""
        return self.curve().plot(ax)

    def chance(self, strong: Sequence[float], weak: Sequence[float]) -> float:
        """The probability of a right answer if the pairs had these distances from independence.

        An answer is right if all released distances of `strong` are above all of `weak`, or if
        exactly `strong` is selected.
        """
        if isinstance(self.plan.ask, TopK) and self.plan.choice is not None:
            return chosen_chance(self.plan.choice, strong, weak)
        return ranked_chance(self.plan.distances, strong, weak)

    def lines(self) -> list[tuple[str, str]]:
        """The preview as (quantity, value) texts."""
        plan = self.plan
        choice = []
        if plan.choice is not None:
            choice = [("noise scale of the choice", f"{plan.choice.scale:.4g}")]
        micr = [("MIC", "estimated from the distance")]
        if plan.values is not None and plan.statistic is not None:
            micr = [
                ("B, c of MICr", f"{plan.statistic.B}, {plan.statistic.c:g}"),
                ("noise on a MICr, sd", f"{plan.values.sd:.4g}"),
            ]
        others = [f"{_mic(found)} by {what}" for what, found in plan.others]
        others = [("other ways would find", "; ".join(others))] if others else []
        return [
            ("asked", str(plan.ask)),
            ("columns, records", f"{len(plan.names)}, {plan.n}"),
            ("pairs looked at", str(len(plan.pairs))),
            ("pairs released", f"{'at most ' * isinstance(plan.ask, Above)}{plan.released}"),
            ("epsilon, delta", f"{plan.epsilon:g}, {plan.spent_delta:g}"),
            ("mechanism", plan.mechanism),
            ("cost", plan.guarantee_text),
            ("sensitivity of a distance", f"{float(plan.event.sensitivity):.4g}"),
            *choice,
            ("noise on a distance, sd", f"{plan.distances.sd:.4g}"),
            *micr,
            ("called dependent above", f"a distance of {plan.dependence_level:.4g}"),
            ("smallest MIC found, 95 %", _found(self.smallest_distance)),
            *others,
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
    columns: int | Sequence[str] | Schema,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    ask: Ask,
    records_per_person: int = 1,
    relative: Sequence[str] = (),
    statistic: MICr | Rule = default_screen_statistic,
    resources: Resources = DEFAULT,
) -> Preview:
    """Preview the cost and the power of `screen` with the same arguments. No data is read.

    Args:
      columns: names of the columns, or their number, or a `Schema`, which also says which are
        nominal, and whether records are of persons.
      n: number of records; of persons of an id column, `records_per_person` times their number.
      epsilon, delta, ask, records_per_person, relative, statistic, resources: as for `screen`.
    """
    bounds: tuple[Limits, ...] = ()
    relation = ReplaceOne(records_per_person)
    if isinstance(columns, Schema):
        relation = relation_of(columns, records_per_person)
        bounds = tuple(limits(rule) for _, rule in columns.columns)
        columns = [name for name, _ in columns.columns]
    elif isinstance(columns, int):
        columns = [f"column {number}" for number in range(columns)]
    if check_positive_int("n", n) < FEWEST_RECORDS:
        raise ValueError(f"expected n >= {FEWEST_RECORDS}, got {n}")
    plan = planning.plan(
        names=tuple(columns),
        n=n,
        ask=ask,
        epsilon=epsilon,
        delta=delta,
        statistic=statistic,
        relation=relation,
        relative=relative,
        bounds=bounds,
        label="preview",  # this event is never charged
    )
    work = tiling(plan, plan.bounds, resources)
    return Preview(plan=plan, tiling=work, seconds=_seconds(plan, work), statistic=statistic)


def _found(distance: float) -> str:
    if distance <= LARGEST:
        return f"{_mic(distance)}, typically (a distance of {distance:.3g})"
    return (
        f"none: even MIC = 1 is lost in noise (its distance is {LARGEST:.3g}; found from "
        f"{distance:.3g} on)"
    )


def _mic(distance: float) -> str:
    return f"{typical_mic(distance):.3g}" if distance <= LARGEST else "none"


def _seconds(plan: Plan, work: Tiling) -> float:
    codes = (1 + work.passes) * plan.n * len(plan.names)
    scoring = batch.seconds(plan.measured.grids(plan.n), plan.n, len(plan.scored))
    return _START + codes * _PER_CODE + scoring
