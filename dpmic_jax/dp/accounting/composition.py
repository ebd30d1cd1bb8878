"""Composition of events: one function for each theorem, and the best of them.

A theorem turns events into a privacy profile: a function from epsilon to an upper bound on the
delta at which all events together are (epsilon, delta)-DP; 1.0 where the theorem says nothing.
The mechanisms may be chosen adaptively, but their guarantees have to be fixed beforehand. In
particular `optimal` is not a sound stopping rule (privacy filter): an adversary that picks the
next guarantee by the last output can exceed it. What holds then is in `dp.ledger.budget.Budget`.

The total protects a person with as many records as the smallest `relation` of the events allows.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpmic_jax.dp.accounting import gaussian_dp
from dpmic_jax.dp.accounting import zcdp as conversion
from dpmic_jax.dp.accounting.events import Event, GaussianDP
from dpmic_jax.dp.accounting.zcdp import UP
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_probability

Profile = Callable[[float], float]

# Losses less likely than this are left out of the sums and count as failures, and so does what is
# lost to underflow.
_NEGLIGIBLE = 2.0**-200
# Most points on the lattice of losses of different epsilons; more are avoided by a coarser step.
_POINTS = 2**14


class Totals(NamedTuple):
    """Exact sums over events.

    Attributes:
      epsilon: sum of all epsilons; None if an event has no finite epsilon.
      delta: sum of the deltas of (epsilon, delta) guarantees.
      rho: sum of all rhos.
      variation: sum of the total variations between the noise of zCDP and Gaussian events and
        its ideal distribution.
      sole_mu: mu of the only release, if there is only one and it is Gaussian; otherwise None.
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction
    variation: Fraction
    sole_mu: Fraction | None


def totals(events: Iterable[Event]) -> Totals:
    """Sum the epsilons (basic composition), deltas, rhos (zCDP) and total variations of events."""
    # Equal guarantees are counted first: multiplying is faster than adding many fractions.
    guarantees: Counter = Counter()
    for event in events:
        guarantees[event.guarantee] += event.count
    finite = all(math.isfinite(each.epsilon) for each in guarantees)
    sole = next(iter(guarantees)) if guarantees.total() == 1 else None
    return Totals(
        epsilon=sum((k * as_fraction(each.epsilon) for each, k in guarantees.items()), Fraction())
        if finite
        else None,
        delta=sum(
            (k * as_fraction(g.delta) for g, k in guarantees.items() if math.isfinite(g.epsilon)),
            Fraction(),
        ),
        rho=sum((k * as_fraction(each.rho) for each, k in guarantees.items()), Fraction()),
        variation=sum(
            (k * as_fraction(g.delta) for g, k in guarantees.items() if math.isinf(g.epsilon)),
            Fraction(),
        ),
        sole_mu=as_fraction(sole.mu) if isinstance(sole, GaussianDP) else None,
    )


def combined(*parts: Totals) -> Totals:
    """The totals of several groups of events together: exact sums, the same in any order."""
    epsilons = [part.epsilon for part in parts if part.epsilon is not None]
    spent = [part for part in parts if part.rho]  # every event has a rho above 0
    return Totals(
        epsilon=sum(epsilons, Fraction()) if len(epsilons) == len(parts) else None,
        delta=sum((part.delta for part in parts), Fraction()),
        rho=sum((part.rho for part in parts), Fraction()),
        variation=sum((part.variation for part in parts), Fraction()),
        sole_mu=spent[0].sole_mu if len(spent) == 1 else None,
    )


def numerical(variation: Fraction, epsilon: float) -> Fraction:
    """The delta of inexact noise at `epsilon`: (1 + e^epsilon) times its total `variation`.

    Total variations add up, also for adaptively chosen releases. If the ideal mechanism M is
    (epsilon, delta)-DP and the real R is within total variation v of it, then for any outputs
    P[R(D)] <= P[M(D)] + v <= e^epsilon P[M(D')] + delta + v
    <= e^epsilon (P[R(D')] + v) + delta + v.
    """
    if not variation:
        return Fraction()
    if epsilon > 500:
        return Fraction(1)
    # Decimal.exp is correctly rounded, so a ledger admits the same events on every machine.
    factor = Fraction(Decimal(repr(float(epsilon))).exp(Context(prec=40)))
    return min(variation * (1 + factor * (1 + Fraction(1, 10**30))), Fraction(1))


def basic(events: Iterable[Event]) -> Profile:
    """Basic composition: epsilons and deltas add up. It says nothing about other events."""
    epsilon, delta, *_ = totals(events)

    def profile(at: float) -> float:
        if epsilon is None or as_fraction(at) < epsilon:
            return 1.0
        return min(ceil_to_float(delta), 1.0)

    return profile


def zcdp(events: Iterable[Event]) -> Profile:
    """zCDP composition: rhos add up. epsilon-DP has epsilon tanh(epsilon/2), mu-GDP mu^2/2."""
    events = tuple(events)
    sums = totals(events)
    rho, failure = ceil_to_float(sums.rho), _failure(events)

    def profile(at: float) -> float:
        delta = conversion.deltas(rho, np.array([at])).item() if rho else 0.0
        return _total_delta(failure, delta, numerical(sums.variation, at))

    return profile


def optimal(events: Iterable[Event]) -> Profile:
    """Optimal composition of (epsilon, delta) and Gaussian events; zCDP by a tight conversion.

    An (epsilon, delta)-DP mechanism is a post-processing of one that fails with probability
    delta and otherwise is randomised response with odds e^epsilon (Kairouz, Oh and Viswanath
    2015), so all of these may be drawn first. Their privacy loss A is a sum of terms +-epsilon_j,
    positive with probability e^epsilon_j / (1 + e^epsilon_j). The Gaussian events that follow are
    mu-GDP whatever was drawn, where mu^2 is the sum of theirs (Dong, Roth and Su 2022). If
    there are zCDP events, both kinds together are zCDP with the sum of their rhos. With delta_0
    the exact curve of mu (`gaussian_dp`), or the tight conversion of rho, or (1 - e^x)+ if there
    are no such events,

        delta(epsilon) = 1 - prod_j (1 - delta_j) (1 - E[delta_0(epsilon - A)]).

    For equal epsilons this is Theorem 3.3 of Kairouz, Oh and Viswanath; for different ones it is
    the optimum of Murtagh and Vadhan (2016), computed on a lattice of losses. The lattice is exact
    if 2^14 points are enough; otherwise a loss between two points is split over both.
    """
    events = tuple(events)
    variation = totals(events).variation
    signs: Counter[float] = Counter()
    other = []
    for event in events:
        if math.isfinite(event.guarantee.epsilon):
            signs[event.guarantee.epsilon] += event.count
        else:
            other.append(event)
    deltas, failure = _tail(other), _failure(events)
    losses, probabilities = _loss_distribution(signs)

    def profile(at: float) -> float:
        # The margin covers the rounding of both terms: delta decreases in its argument.
        left = at - losses - 2.0**-50 * (abs(at) + np.abs(losses))
        neglected = 2 * (len(signs) + 1) * _NEGLIGIBLE
        delta = math.fsum(probabilities * deltas(left)) + neglected
        return _total_delta(failure, delta, numerical(variation, at))

    return profile


def pld(events: Iterable[Event]) -> Profile:
    """Privacy loss distributions of `dp_accounting`: an independent check on `optimal`.

    Each (epsilon, delta) or Gaussian event enters by its dominating pair. zCDP has none (a
    Gaussian of the same rho does not dominate it), so the profile is 1.0 if there is a zCDP event.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise ImportError('pld needs dp-accounting: pip install "dpmic_jax[accounting]"') from error
    events = tuple(events)
    total, releases = privacy_loss_distribution.identity(), 0
    for event in events:
        kind = event.guarantee
        if isinstance(kind, GaussianDP):
            each = privacy_loss_distribution.from_gaussian_mechanism(1 / kind.mu)
        elif math.isinf(kind.epsilon):
            return lambda _: 1.0
        else:
            parameters = common.DifferentialPrivacyParameters(kind.epsilon, kind.delta)
            each = privacy_loss_distribution.from_privacy_parameters(parameters)
        total = total.compose(each.self_compose(event.count))
        releases += event.count
    variation = totals(events).variation
    # The library's Fourier transforms err on either side, and more so with more releases: by
    # 8e-12 too low at a million releases of epsilon = 0.01 and delta = 1e-6.
    allowance = (1000 + releases) * 2.0**-50

    def profile(at: float) -> float:
        inexact = ceil_to_float(numerical(variation, at))
        return min(float(total.get_delta_for_epsilon(at)) + inexact + allowance, 1.0)

    return profile


def best(events: Iterable[Event]) -> Profile:
    """The minimum of `basic`, `zcdp` and `optimal`.

    `pld` is left out: it approximates what `optimal` computes, and results should not depend on
    which extras are installed.
    """
    events = tuple(events)
    profiles = [theorem(events) for theorem in (basic, zcdp, optimal)]
    return lambda at: min(profile(at) for profile in profiles)


def delta_at(events: Iterable[Event], epsilon: float) -> float:
    """A delta at which the events together are (epsilon, delta)-DP, by the best theorem."""
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"expected 0 <= epsilon < inf, got {epsilon}")
    return best(events)(float(epsilon))


def epsilon_at(events: Iterable[Event], delta: float) -> float:
    """An epsilon at which the events together are (epsilon, delta)-DP, by the best theorem.

    Infinite if there is none, as for a zCDP or Gaussian event at delta = 0.
    """
    events = tuple(events)
    sums = totals(events)
    least = smallest_epsilon(best(events), delta)
    # The search rounds up in the 12th digit; the sum of epsilons is exact, so it may be smaller.
    if sums.epsilon is not None and sums.delta <= as_fraction(delta):
        return min(least, ceil_to_float(sums.epsilon))
    return least


def smallest_epsilon(profile: Profile, delta: float) -> float:
    """The smallest epsilon at which a profile is at most `delta`, to 12 digits, rounded up."""
    delta = check_probability("delta", delta)
    if profile(0.0) <= delta:
        return 0.0

    def too_small(epsilon: float) -> bool:
        return profile(epsilon) > delta

    found = doubled(too_small, 2.0**-30, most=2**30)
    return math.inf if found is None else bisect(too_small, *found).fails


def _tail(events: list[Event]) -> Callable[[np.ndarray], np.ndarray]:
    """The delta of zCDP and Gaussian events at each of many epsilons, of either sign."""
    mus = [
        (each.guarantee.mu, each.count) for each in events if isinstance(each.guarantee, GaussianDP)
    ]
    if len(mus) < len(events):
        rho = ceil_to_float(totals(events).rho)
        return lambda at: conversion.deltas(rho, at)
    if mus:
        square = ceil_to_float(sum((k * as_fraction(mu) ** 2 for mu, k in mus), Fraction()))
        mu = math.nextafter(math.sqrt(square), math.inf)
        return lambda at: gaussian_dp.deltas(mu, at)
    return lambda at: -np.expm1(np.minimum(at, 0)) * UP


def _total_delta(failure: float, delta: float, variation: Fraction) -> float:
    """Combine the probability of a failure, the delta without one, and that of inexact noise."""
    return min((failure + (1 - failure) * delta + ceil_to_float(variation)) * UP, 1.0)


def _failure(events: Iterable[Event]) -> float:
    """1 - prod (1 - delta_j) over the (epsilon, delta) events, rounded up."""
    logs = [
        event.count * math.log1p(-event.guarantee.delta)
        for event in events
        if math.isfinite(event.guarantee.epsilon)
    ]
    return min(-math.expm1(math.fsum(logs)) * UP, 1.0)


def _loss_distribution(signs: Counter[float]) -> tuple[np.ndarray, np.ndarray]:
    """Values of the privacy loss and upper bounds on their probabilities; `signs` counts epsilons.

    The sum of k signs +-epsilon is binomial on a lattice of step 2 epsilon. Where the common step
    of all groups is too fine, a coarser one is used, and losses between two points are split.
    """
    groups = [(as_fraction(epsilon), *_binomial(epsilon, k)) for epsilon, k in signs.items()]
    step = _common_step([2 * epsilon for epsilon, _, _ in groups])
    width = sum((2 * epsilon * len(pmf) for epsilon, _, pmf in groups), Fraction())
    if len(groups) > 1 and width > _POINTS * step:
        step = width / _POINTS
    start, total = Fraction(), np.ones(1)
    for epsilon, first, pmf in groups:
        start += first * epsilon
        total = _convolve(total, _on_lattice(pmf, 2 * epsilon / step, float(step)))
    return float(start) + np.arange(len(total)) * float(step), total


def _on_lattice(pmf: np.ndarray, ratio: Fraction, step: float) -> np.ndarray:
    """Probabilities of losses 0, 1, 2, ... times ratio * step, on multiples of `step`.

    A loss a between the points l and u = l + step is split over l and u so that its probability
    is kept under both neighbours: w_l + w_u = 1 and w_l e^-l + w_u e^-u = e^-a. The old mechanism
    is a post-processing of the new one, which forgets whether the loss was l or u. So the new
    one is less private, and a bound for it holds for the old one.
    """
    scaled = [i * ratio.numerator for i in range(len(pmf))]
    below = np.array([at // ratio.denominator for at in scaled])
    over = np.array([at % ratio.denominator / ratio.denominator for at in scaled])
    under = np.array([-at % ratio.denominator / ratio.denominator for at in scaled])
    to_upper = np.expm1(-over * step) / math.expm1(-step)
    to_lower = np.exp(-over * step) * np.expm1(-under * step) / math.expm1(-step)
    to_lower[over == 0] = 1.0  # a loss on a lattice point is kept there
    places = np.concatenate([below, below + 1])
    return np.bincount(places, weights=np.concatenate([pmf * to_lower, pmf * to_upper]))


def _convolve(dense: np.ndarray, sparse: np.ndarray) -> np.ndarray:
    """The distribution of a sum, rounded up.

    Directly, not by a Fourier transform, so that errors are relative to each probability.
    """
    total = np.zeros(len(dense) + len(sparse) - 1)
    for place in np.flatnonzero(sparse):
        total[place : place + len(dense)] += sparse[place] * dense
    return total * UP


def _common_step(steps: list[Fraction]) -> Fraction:
    """The greatest common divisor of fractions."""
    denominator = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * denominator) for step in steps)), denominator)


def _binomial(epsilon: float, count: int) -> tuple[int, np.ndarray]:
    """The smallest value kept of a sum of `count` signs, and the probabilities in steps of 2.

    Probabilities are rounded up. Values further than `reach` from the mean are left out; their
    probability is below 2^-199 by Hoeffding's inequality.
    """
    plus = 1 / (1 + math.exp(-epsilon))
    reach = math.sqrt(100 * math.log(2) * count) + 1
    ups = range(
        max(0, math.floor(count * plus - reach)), min(count, math.ceil(count * plus + reach)) + 1
    )
    log_plus = -math.log1p(math.exp(-epsilon))
    ways = math.lgamma(count + 1)
    logs = [
        ways - math.lgamma(up + 1) - math.lgamma(count - up + 1) + count * log_plus
        - (count - up) * epsilon
        for up in ups
    ]  # fmt: skip
    # Bounds the rounding errors of lgamma and of the sum, which are relative to their terms.
    rounding = 2.0**-48 * (1 + count * (math.log1p(count) + epsilon))
    return 2 * ups.start - count, np.exp(logs) * (1 + rounding)
