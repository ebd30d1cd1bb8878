"""What many events cost together: each composition theorem a function, and the best of them.

A theorem turns events into a profile: a function from epsilon to an upper bound of the delta
at which all of them together are (epsilon, delta)-DP, 1.0 where the theorem says nothing. The
mechanisms may be chosen one after the other, each knowing what came before. Their guarantees
have to be fixed before: a rule that goes on while `optimal` still fits a budget can be beaten
by who picks the next guarantee by the last output. What holds then is in `dp.ledger.file`.

The total protects people who own as many records as the least of the events' relations says.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpmic_jax.dp.accounting import zcdp as conversion
from dpmic_jax.dp.accounting.events import Event
from dpmic_jax.dp.accounting.zcdp import UP
from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.arithmetic.exact_decimal import as_fraction, ceil_to_float, check_probability

Profile = Callable[[float], float]

# Losses this unlikely, or lost to underflow, count as failures.
_NEGLIGIBLE = 2.0**-200
_POINTS = 2**14


class Totals(NamedTuple):
    """Plain sums over events, exact: epsilon is None once an event has no finite one.

    `delta` sums the chances that (epsilon, delta) guarantees fail, `variation` how far the noise
    of zCDP events is from its ideal law.
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction
    variation: Fraction


def totals(events: Iterable[Event]) -> Totals:
    """Sum of epsilon (basic composition), of delta, and of rho (composition of zCDP)."""
    guarantees: Counter = Counter()
    for event in events:
        guarantees[event.guarantee] += event.count
    finite = all(math.isfinite(each.epsilon) for each in guarantees)
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
    )


def combined(*parts: Totals) -> Totals:
    """The totals of all events of the parts: sums of fractions, so in any order the same."""
    epsilons = [part.epsilon for part in parts if part.epsilon is not None]
    return Totals(
        epsilon=sum(epsilons, Fraction()) if len(epsilons) == len(parts) else None,
        delta=sum((part.delta for part in parts), Fraction()),
        rho=sum((part.rho for part in parts), Fraction()),
        variation=sum((part.variation for part in parts), Fraction()),
    )


def numerical(variation: Fraction, epsilon: float) -> Fraction:
    """What noise that is off by `variation` adds to delta at `epsilon`: (1 + e^epsilon) times it.

    Total variations add up, also of noise that is drawn for what was chosen before. If the ideal
    M is (epsilon, delta)-DP and the real R is off by v, then for any outputs P[R(D)] <= P[M(D)] + v
    <= e^epsilon P[M(D')] + delta + v <= e^epsilon (P[R(D')] + v) + delta + v.
    """
    if not variation:
        return Fraction()
    if epsilon > 500:
        return Fraction(1)
    # Correctly rounded, so a ledger is judged the same on every machine.
    factor = Fraction(Decimal(repr(float(epsilon))).exp(Context(prec=40)))
    return min(variation * (1 + factor * (1 + Fraction(1, 10**30))), Fraction(1))


def basic(events: Iterable[Event]) -> Profile:
    """Epsilons and deltas add up; nothing is said of zCDP events."""
    epsilon, delta, _, _ = totals(events)

    def profile(at: float) -> float:
        if epsilon is None or as_fraction(at) < epsilon:
            return 1.0
        return min(ceil_to_float(delta), 1.0)

    return profile


def zcdp(events: Iterable[Event]) -> Profile:
    """Rhos add up; epsilon-DP is zCDP with rho = epsilon tanh(epsilon/2)."""
    events = tuple(events)
    sums = totals(events)
    rho, failure = ceil_to_float(sums.rho), _failure(events)

    def profile(at: float) -> float:
        delta = conversion.deltas(rho, np.array([at])).item() if rho else 0.0
        return _with(failure, delta, numerical(sums.variation, at))

    return profile


def optimal(events: Iterable[Event]) -> Profile:
    """Exact for (epsilon, delta) events; zCDP events enter by their tight conversion.

    An (epsilon, delta)-DP mechanism is a post-processing of one that fails with probability
    delta and else is randomised response with odds e^epsilon (Kairouz, Oh and Viswanath 2015),
    so all of these may be drawn first. Their loss A is a sum of signs +-epsilon_j, plus with
    probability e^epsilon_j / (1 + e^epsilon_j). What comes after is, whatever was drawn,
    rho-zCDP. With delta_rho its tight conversion, and (1 - e^x)+ if there is no zCDP event,

        delta(epsilon) = 1 - prod_j (1 - delta_j) (1 - E[delta_rho(epsilon - A)]).

    For equal epsilons that is Theorem 3.3 of Kairouz, Oh and Viswanath; for different ones the
    optimum of Murtagh and Vadhan (2016), computed on a lattice of losses. The lattice is exact
    if it can be had with 2^14 points, otherwise losses between two points are split over both.
    """
    events = tuple(events)
    variation = totals(events).variation
    signs: Counter[float] = Counter()
    rest = Fraction()
    for event in events:
        if math.isfinite(event.guarantee.epsilon):
            signs[event.guarantee.epsilon] += event.count
        else:
            rest += event.count * as_fraction(event.guarantee.rho)
    rho, failure = ceil_to_float(rest), _failure(events)
    losses, chances = _loss(signs)

    def profile(at: float) -> float:
        # The margin covers the rounding of both terms: the bound falls in its argument.
        left = at - losses - 2.0**-50 * (abs(at) + np.abs(losses))
        tail = conversion.deltas(rho, left) if rho else -np.expm1(np.minimum(left, 0)) * UP
        lost = 2 * (len(signs) + 1) * _NEGLIGIBLE
        return _with(failure, math.fsum(chances * tail) + lost, numerical(variation, at))

    return profile


def pld(events: Iterable[Event]) -> Profile:
    """Privacy loss distributions of `dp-accounting`: an independent check on `optimal`.

    Each (epsilon, delta) event enters by the pair that dominates it. zCDP has no such pair (a
    Gaussian of the same rho does not dominate it), so nothing is said if there is one.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise ImportError('pld needs dp-accounting: pip install "dpmic_jax[accounting]"') from error
    total, releases = privacy_loss_distribution.identity(), 0
    for event in events:
        if math.isinf(event.guarantee.epsilon):
            return lambda _: 1.0
        parameters = common.DifferentialPrivacyParameters(
            event.guarantee.epsilon, event.guarantee.delta
        )
        each = privacy_loss_distribution.from_privacy_parameters(parameters)
        total = total.compose(each.self_compose(event.count))
        releases += event.count
    # Its Fourier transforms err on either side, the more the more releases: 8e-12 too low
    # at a million releases of epsilon = 0.01 and delta = 1e-6.
    allowance = (1000 + releases) * 2.0**-50
    return lambda at: min(float(total.get_delta_for_epsilon(at)) + allowance, 1.0)


def best(events: Iterable[Event]) -> Profile:
    """The least of `basic`, `zcdp` and `optimal`.

    `pld` is not asked: it rounds what `optimal` computes, and numbers should not depend on
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

    Infinite if there is none, as with a zCDP event and delta = 0.
    """
    events = tuple(events)
    plain = totals(events)
    least = smallest_epsilon(best(events), delta)
    if plain.epsilon is not None and plain.delta <= as_fraction(delta):
        return min(least, ceil_to_float(plain.epsilon))
    return least


def smallest_epsilon(profile: Profile, delta: float) -> float:
    """The least epsilon, to 12 digits and rounded up, where a profile is at most `delta`."""
    delta = check_probability("delta", delta)
    if profile(0.0) <= delta:
        return 0.0

    def too_small(epsilon: float) -> bool:
        return profile(epsilon) > delta

    found = doubled(too_small, 2.0**-30, most=2**30)
    return math.inf if found is None else bisect(too_small, *found).fails


def _with(failure: float, delta: float, variation: Fraction) -> float:
    return min((failure + (1 - failure) * delta + ceil_to_float(variation)) * UP, 1.0)


def _failure(events: Iterable[Event]) -> float:
    """1 - prod (1 - delta_j) over the (epsilon, delta) events, rounded up."""
    logs = [
        event.count * math.log1p(-event.guarantee.delta)
        for event in events
        if math.isfinite(event.guarantee.epsilon)
    ]
    return min(-math.expm1(math.fsum(logs)) * UP, 1.0)


def _loss(signs: Counter[float]) -> tuple[np.ndarray, np.ndarray]:
    """Values of the privacy loss and upper bounds of their chances, `signs` counting epsilons.

    A group of k signs is a binomial on a lattice of step 2 epsilon. Where the groups' common
    step is too fine, a coarser one is used, and losses between two points are split.
    """
    groups = [(as_fraction(epsilon), *_binomial(epsilon, k)) for epsilon, k in signs.items()]
    step = _common_step([2 * epsilon for epsilon, _, _ in groups])
    width = sum((2 * epsilon * len(chances) for epsilon, _, chances in groups), Fraction())
    if len(groups) > 1 and width > _POINTS * step:
        step = width / _POINTS
    start, total = Fraction(), np.ones(1)
    for epsilon, first, chances in groups:
        start += first * epsilon
        total = _sum_law(total, _on_lattice(chances, 2 * epsilon / step, float(step)))
    return float(start) + np.arange(len(total)) * float(step), total


def _on_lattice(chances: np.ndarray, ratio: Fraction, step: float) -> np.ndarray:
    """Chances of losses 0, 1, 2, ... times ratio * step, moved to multiples of `step`.

    A loss a between the points l and u = l + step becomes l or u so that the chance is kept
    under both neighbours: the factors w_l + w_u = 1 and w_l e^-l + w_u e^-u = e^-a. Whoever is
    told the loss l or u can forget which, and has the old mechanism: the new one costs more.
    """
    scaled = [i * ratio.numerator for i in range(len(chances))]
    below = np.array([at // ratio.denominator for at in scaled])
    over = np.array([at % ratio.denominator / ratio.denominator for at in scaled])
    under = np.array([-at % ratio.denominator / ratio.denominator for at in scaled])
    to_upper = np.expm1(-over * step) / math.expm1(-step)
    to_lower = np.exp(-over * step) * np.expm1(-under * step) / math.expm1(-step)
    to_lower[over == 0] = 1.0
    places = np.concatenate([below, below + 1])
    return np.bincount(places, weights=np.concatenate([chances * to_lower, chances * to_upper]))


def _sum_law(dense: np.ndarray, sparse: np.ndarray) -> np.ndarray:
    """The law of a sum, by direct convolution: no Fourier transform, so errors stay relative."""
    total = np.zeros(len(dense) + len(sparse) - 1)
    for place in np.flatnonzero(sparse):
        total[place : place + len(dense)] += sparse[place] * dense
    return total * UP


def _common_step(steps: list[Fraction]) -> Fraction:
    """The largest number that all of `steps` are whole multiples of."""
    below = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * below) for step in steps)), below)


def _binomial(epsilon: float, count: int) -> tuple[int, np.ndarray]:
    """Chances of a sum of `count` signs, rounded up: the first value that counts, step 2.

    What is left out has a chance below 2^-199 by Hoeffding's inequality.
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
    rounding = 2.0**-48 * (1 + count * (math.log1p(count) + epsilon))
    return 2 * ups.start - count, np.exp(logs) * (1 + rounding)
