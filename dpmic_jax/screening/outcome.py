"""The result of a screen and its statement, from its plan and the released values; and back."""

import ast

import numpy as np

from dpmic_jax.dp.accounting.events import ApproximateDP, Event
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.mechanisms.sensitivity import of_person
from dpmic_jax.mic.grids import cells
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import MICrSettings, ScreenResult, Statement
from dpmic_jax.screening import planning
from dpmic_jax.screening.calibration import estimates
from dpmic_jax.screening.execution import Released
from dpmic_jax.screening.kinds import bounds_from
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.planning import Rule, default_screen_statistic
from dpmic_jax.screening.queries import from_canonical
from dpmic_jax.version import __version__


def result_of(
    plan: Plan, found: Released, statement: Statement, backend: str | None = None
) -> ScreenResult:
    """The result with its limits, all of which follow from the plan and the released values."""
    if found.micr is None or plan.values is None:
        mic, lower, upper = estimates(found.distances, plan.distances, plan.n)
        noise_sd = None
    else:
        reach = plan.workload.half_width(plan.values, plan.choice)
        mic, noise_sd = found.micr, plan.values.sd
        lower, upper = np.clip(mic - reach, 0, 1), np.clip(mic + reach, 0, 1)
    return ScreenResult(
        names=plan.names,
        pairs=found.pairs,
        mic=mic,
        lower=lower,
        upper=upper,
        noise_sd=noise_sd,
        distance=found.distances,
        distance_noise_sd=plan.distances.sd,
        own=dict(zip(plan.relative, found.own.tolist(), strict=True)),
        # A ratio has up to three noisy values.
        own_half_width=plan.workload.half_width(plan.distances, plan.choice, together=3),
        dependence_threshold=plan.dependence_level,
        candidates=len(plan.pairs),
        ask=str(plan.ask),
        statement=statement,
        backend=backend,
    )


def statement_of(
    plan: Plan,
    *,
    persons: int | None,
    key_is_secret: bool,
    ledger: str | None,
    run: str,
    version: str = __version__,
) -> Statement:
    """The privacy statement of a plan that was carried out; arguments as in `Statement`."""
    return Statement(
        relation=plan.event.relation,
        epsilon=plan.epsilon,
        delta=plan.spent_delta,
        mechanism=plan.mechanism,
        guarantee=plan.guarantee_text,
        sensitivity=float(plan.event.sensitivity),
        n=plan.n,
        persons=persons,
        micr=_micr(plan),
        key_is_secret=key_is_secret,
        version=version,
        ledger=ledger,
        run=run,
        event=plan.event.to_json(),
    )


def _micr(plan: Plan) -> MICrSettings | None:
    """The settings of the MICr that was released, if it was."""
    if plan.statistic is None:
        return None
    records, categories = plan.event.relation.records, plan.kinds.categories
    moved = of_person(plan.statistic, plan.n, records, categories=categories)
    return MICrSettings(
        B=cells(plan.statistic.B, plan.n),
        c=float(plan.statistic.c),
        sizes=dict(plan.event.settings)["sizes"],
        sensitivity=float(moved),
    )


def plan_of(result: ScreenResult, statistic: MICr | Rule = default_screen_statistic) -> Plan:
    """The plan of a screen, from its event and its statement.

    A delta that the screen did not spend is unknown, and taken to be 0.
    """
    statement = result.statement
    event = Event.from_json(statement.event)
    delta, settings = statement.delta, dict(event.settings)
    if isinstance(event.guarantee, ApproximateDP):  # it spent the part for failures only
        delta = delta / Budget.failure_share
    return planning.plan(
        names=result.names,
        n=statement.n,
        ask=from_canonical(settings["ask"]),
        epsilon=statement.epsilon,
        delta=delta,
        statistic=statistic,
        relation=statement.relation,
        relative=tuple(result.own),
        bounds=bounds_from(result.names, ast.literal_eval(settings.get("nominal", "()"))),
        label=event.label,
    )
