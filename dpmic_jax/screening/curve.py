"""What a screen would find at other epsilons, of a plan or of a finished run."""

import ast
import math

from dpmic_jax.dp.accounting.events import ApproximateDP, Event
from dpmic_jax.dp.ledger.budget import Budget
from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult
from dpmic_jax.results.power_curve import CurvePoint, PowerCurve, round_epsilons
from dpmic_jax.screening import planning
from dpmic_jax.screening.calibration import mic_of
from dpmic_jax.screening.kinds import bounds_from
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.planning import Rule, default_screen_statistic
from dpmic_jax.screening.power import LARGEST
from dpmic_jax.screening.queries import from_canonical


def typical_mic(distance: float) -> float:
    """The MIC that is typical at a distance; infinity if no relationship is so far."""
    return mic_of(distance) if distance <= LARGEST else math.inf


def curve(plan: Plan, statistic: MICr | Rule) -> PowerCurve:
    """The smallest dependence that is found by plans that differ in epsilon only."""

    def point(epsilon: float) -> CurvePoint:
        try:
            found = plan.smallest if epsilon == plan.epsilon else at(epsilon).smallest
        except ValueError:  # more noise than can be drawn
            found = math.inf
        return CurvePoint(epsilon, found, typical_mic(found))

    def at(epsilon: float) -> Plan:
        return planning.plan(
            names=plan.names,
            n=plan.n,
            ask=plan.ask,
            epsilon=epsilon,
            delta=plan.delta,
            statistic=statistic,
            relation=plan.event.relation,
            relative=plan.relative,
            bounds=plan.bounds,
        )

    points = tuple(map(point, round_epsilons(plan.epsilon)))
    return PowerCurve(str(plan.ask), plan.n, plan.delta, plan.epsilon, points)


def curve_of(result: ScreenResult) -> PowerCurve:
    """The curve of the screen that gave a result, from its event and its statement.

    MICr has its default settings there, whatever they were in the screen: what is found does not
    depend on them. A delta that the screen did not spend is unknown, and taken to be 0.
    """
    statement = result.statement
    event = Event.from_json(statement.event)
    delta, settings = statement.delta, dict(event.settings)
    if isinstance(event.guarantee, ApproximateDP):  # it spent the part for failures only
        delta = delta / Budget.failure_share
    plan = planning.plan(
        names=result.names,
        n=statement.n,
        ask=from_canonical(settings["ask"]),
        epsilon=statement.epsilon,
        delta=delta,
        statistic=default_screen_statistic,
        relation=statement.relation,
        relative=tuple(result.own),
        bounds=bounds_from(result.names, ast.literal_eval(settings.get("nominal", "()"))),
    )
    return curve(plan, default_screen_statistic)
