"""What a screen would find at other epsilons, of a plan or of a finished run."""

import math

from dpmic_jax.mic.statistics import MICr
from dpmic_jax.results import ScreenResult
from dpmic_jax.results.power_curve import CurvePoint, PowerCurve, round_epsilons
from dpmic_jax.screening import planning
from dpmic_jax.screening.calibration import mic_of
from dpmic_jax.screening.outcome import plan_of
from dpmic_jax.screening.plan import Plan
from dpmic_jax.screening.planning import Rule, default_screen_statistic
from dpmic_jax.screening.power import LARGEST


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
    return curve(plan_of(result), default_screen_statistic)
