"""The best bound for a guarantee or for events, and the corrected level of later tests."""

import math
from collections.abc import Callable, Iterable

import numpy as np

from dpmic_jax.dp.accounting import composition
from dpmic_jax.dp.accounting.events import (
    ZCDP,
    ApproximateDP,
    Event,
    GaussianDP,
    Guarantee,
    PureDP,
)
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.exact_decimal import (
    as_fraction,
    ceil_to_float,
    check_positive,
    check_positive_int,
    floor_to_float,
)
from dpmic_jax.dp.max_information.bounds import Correction, Laws, MaxInformation, check_alpha
from dpmic_jax.dp.max_information.description_length import DescriptionLength
from dpmic_jax.dp.max_information.mutual import InformationTheorem
from dpmic_jax.dp.max_information.pure import mean, pure
from dpmic_jax.dp.max_information.theorems import AnyLaw, Inexact, Nothing, Theorem
from dpmic_jax.dp.max_information.truncated import approximate, concentrated, profiled

_CURVE_POINTS = 48  # of the privacy profile; each gives a valid bound, more give a sharper one


def max_information(spent: Guarantee | DescriptionLength, *, n: int, beta: float) -> MaxInformation:
    """The max-information at `beta` over n independent records, by the best theorem.

    Args:
      spent: the guarantee of everything computed from the data, or the number of choices.
      n: number of records.
      beta: above 0 and below 1.
    """
    return _fewest(_theorems(spent, n), beta)


def corrected_level(alpha: float, spent: Guarantee | DescriptionLength, *, n: int) -> Correction:
    """The largest level at which a test chosen by private results has type I error <= alpha.

    Records have to be independent. (If the people who own them are, n is the number of people, or
    any larger number, such as that of records.) The p-value of each fixed test has to be valid:
    P[p <= u] <= u under its null hypothesis. Then P[rejected and null hypothesis true] <= alpha for
    one chosen test. For several, control the family-wise error or the false discovery rate at the
    corrected level.

    Args:
      alpha: above 0 and below 1.
      spent: the guarantee of everything that the choice depends on, or the number of choices.
      n: number of records; a `DescriptionLength` does not use it.
    """
    return _highest(_theorems(spent, n), check_alpha(alpha))


def max_information_after(
    steps: Iterable[Event | DescriptionLength], *, beta: float
) -> MaxInformation:
    """As `max_information`, for events, which are composed as differential privacy."""
    events, choices = _split(steps)
    if choices > 1 or not events:
        raise ValueError(
            "expected events only; for a choice among m values before or after them use "
            "`corrected_level_after` or `compose`"
        )
    return _fewest(_theorems_after(events), beta)


def corrected_level_after(alpha: float, steps: Iterable[Event | DescriptionLength]) -> Correction:
    """As `corrected_level`, for all events so far and choices among few values, in any order.

    Events are composed as differential privacy, by every theorem that applies. A choice among m
    values that depends on the data in any way divides alpha by m: for each of its m outcomes the
    other steps are private, and the error probabilities add up.
    """
    events, choices = _split(steps)
    if not events:
        return DescriptionLength(choices).corrected(alpha)
    share = floor_to_float(as_fraction(check_alpha(alpha)) / choices)
    found = _highest(_theorems_after(events), share)
    if choices == 1:
        return found
    return found._replace(
        bits=found.bits + math.log2(choices),
        beta=ceil_to_float(choices * as_fraction(found.beta)),
        theorem=f"Bonferroni over {choices} and {found.theorem}",
    )


def largest_epsilon(level: float, *, alpha: float, n: int) -> float:
    """The largest epsilon with a corrected level of at least `level`, to 6 digits, rounded down.

    Args:
      level: the corrected level that is needed.
      alpha: the level before the correction, above `level`.
      n: number of records.
    """
    _check_level(level, alpha)
    # The epsilon by Theorem 1.4 for any distribution, e^(epsilon n) = alpha / level, is a start
    # that always suffices.
    start = math.log(alpha / level) / check_positive_int("n", n) * (1 - 1e-9)
    return _largest(lambda epsilon: [pure(epsilon, n), AnyLaw(epsilon, n)], start, level, alpha)


def largest_rho(level: float, *, alpha: float, n: int) -> float:
    """The largest rho with a corrected level of at least `level`, to 6 digits, rounded down.

    Args:
      level: the corrected level that is needed.
      alpha: the level before the correction, above `level`.
      n: number of records.
    """
    _check_level(level, alpha)
    # The rho by Theorem D, kl(alpha || level) = n rho, is a start that always suffices.
    divergence = alpha * math.log(alpha / level)
    divergence += (1 - alpha) * math.log((1 - alpha) / (1 - level))
    start = divergence / check_positive_int("n", n) * (1 - 1e-9)
    return _largest(lambda rho: _theorems(ZCDP(rho), n), start, level, alpha)


def _theorems(spent: Guarantee | DescriptionLength, n: int) -> list[Theorem]:
    """All theorems that apply to one guarantee."""
    if isinstance(spent, DescriptionLength):
        return [spent]
    if isinstance(spent, PureDP):
        return [pure(spent.epsilon, n), AnyLaw(spent.epsilon, check_positive_int("n", n))]
    if isinstance(spent, ApproximateDP):
        return [approximate(spent.epsilon, spent.delta, n)]
    if isinstance(spent, ZCDP | GaussianDP):
        return _zcdp_theorems(spent.rho, spent.rho, spent.delta, n)
    raise TypeError(
        f"expected a PureDP, ApproximateDP, ZCDP, GaussianDP or DescriptionLength, got {spent!r}; "
        "for events use corrected_level_after or max_information_after"
    )


def _zcdp_theorems(rho: float, each: float, variation: float, n: int) -> list[Theorem]:
    """Theorems for rho-zCDP up to `variation`, with a divergence of at most `each` per record."""
    found: list[Theorem] = [
        InformationTheorem(
            nats=ceil_to_float(check_positive_int("n", n) * as_fraction(each)), laws=Laws.PRODUCT
        ),
        concentrated(rho, n),
    ]
    return [Inexact(theorem, variation) for theorem in found] if variation else found


def _theorems_after(events: tuple[Event, ...]) -> list[Theorem]:
    """All theorems that apply to the composition of the events."""
    n, sums = events[0].n, composition.totals(events)
    if any(event.n != n for event in events):
        raise ValueError("expected events on the same records: they have different n")
    kinds = {type(event.guarantee) for event in events}
    rho = ceil_to_float(sums.rho)
    if kinds == {PureDP} and sums.epsilon is not None:
        epsilon = ceil_to_float(sums.epsilon)
        by_sum = _theorems(PureDP(epsilon), n)
        if len(events) == 1 and events[0].count == 1:
            return by_sum
        return [
            *by_sum,
            *_zcdp_theorems(rho, min(rho, mean(epsilon)), 0.0, n),
            _along_profile(events),
        ]
    found: list[Theorem] = [_along_profile(events)]
    # (epsilon, delta)-DP does not imply zCDP.
    if ApproximateDP not in kinds:
        found += _zcdp_theorems(rho, rho, ceil_to_float(sums.variation), n)
    return found


def _along_profile(events: tuple[Event, ...]) -> Theorem:
    """Theorem C at points (epsilon, delta) of the privacy profile of the events together."""
    sums, profile = composition.totals(events), composition.best(events)
    rho = float(sums.rho)
    # Here rho-zCDP has a delta of e^-100.
    high = rho + 2 * math.sqrt(100 * rho)
    if sums.epsilon is not None:
        high = min(high, ceil_to_float(sums.epsilon))
    epsilons = [float(each) for each in np.geomspace(high / 200, high, _CURVE_POINTS)]
    curve = [(epsilon, profile(epsilon)) for epsilon in epsilons]
    if sums.epsilon is not None:
        curve.append((ceil_to_float(sums.epsilon), ceil_to_float(sums.delta)))
    curve = [(epsilon, delta) for epsilon, delta in curve if delta < 1]
    return profiled(curve, events[0].n) if curve else Nothing()


def _split(steps: Iterable[Event | DescriptionLength]) -> tuple[tuple[Event, ...], int]:
    """The events, and the number of outcomes of all choices together."""
    steps = tuple(steps)
    if not steps:
        raise ValueError("expected at least one event or description length")
    for step in steps:
        if not isinstance(step, Event | DescriptionLength):
            raise TypeError(f"expected an Event or a DescriptionLength, got {step!r}")
    choices = math.prod(step.values for step in steps if isinstance(step, DescriptionLength))
    return tuple(step for step in steps if isinstance(step, Event)), choices


def _fewest(theorems: Iterable[Theorem], beta: float) -> MaxInformation:
    return min((theorem.at(beta) for theorem in theorems), key=lambda bound: bound.bits)


def _highest(theorems: Iterable[Theorem], alpha: float) -> Correction:
    # Where all levels underflow to 0.0, the theorem with the fewest bits is reported.
    found = (theorem.corrected(alpha) for theorem in theorems)
    return max(found, key=lambda each: (each.level, -each.bits))


def _check_level(level: float, alpha: float) -> None:
    if not 0 < check_positive("level", level) < check_alpha(alpha):
        raise ValueError(f"expected 0 < level < alpha = {alpha:g}, got {level}")


def _largest(
    theorems: Callable[[float], list[Theorem]], start: float, level: float, alpha: float
) -> float:
    """The largest cost, from `start` on, whose theorems still give `level`."""

    def enough(cost: float) -> bool:
        return _highest(theorems(cost), alpha).level >= level

    found = doubled(enough, start)
    assert found is not None  # `doubled` has no limit here
    return bisect(enough, *found, digits=6).holds
