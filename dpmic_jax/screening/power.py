"""The power of a screen: the probability of a right answer for given true distances."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import bdtr, ndtr

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.dp.selection import (
    OneShotTopK,
    SingleThresholdSparseVector,
    SparseVector,
    ZCDPTopK,
)
from dpmic_jax.screening.noises import Choice, Noises, ValueNoise

SURE = 0.95  # probability of what is said to be found
# Of the distance from independence: that of a pair of which one side decides the other.
LARGEST = 2**0.5 - 1
_QUANTILES = 1000  # of a pair's own noise
_RADII = 64  # quantiles of the radius of cube noise
_POINTS = 20_001  # of the numerical integration
_REACH = 40  # its range in scales of the noise, which exceeds it with probability below e^-40

Line = Float[np.ndarray, " points"]


def ranked_chance(noise: ValueNoise, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that all released values of `strong` are above all of `weak`.

    Args:
      noise: the noise on each released value.
      strong, weak: true values.
    """
    # Released values are clipped to [0, 1], so the maximum of the weak ones is integrated there.
    ends = 0.0, 1.0
    if not isinstance(noise, LatticeCube):
        return _separated(_normal_above, noise.scale, strong, weak, ends)
    # Given the radius, noises are independent and uniform.
    radii = noise.noise.radii(_RADII) / noise.lattice.top
    found = [_separated(_uniform_above, radius, strong, weak, ends) for radius in radii.tolist()]
    return float(np.mean(found))


def chosen_chance(choice: Choice, strong: Sequence[float], weak: Sequence[float]) -> float:
    """The probability that a top-k selects exactly the k values of `strong`, and none of `weak`."""
    ends = -np.inf, np.inf
    return _separated(_score_above(choice), choice.scale, strong, weak, ends)


def selected_chance(choice: Choice, gap: float, candidates: int, k: int) -> float:
    """The probability that a top-k selects a pair that is above all others by `gap`.

    Given the noise of the pair, the number of other pairs above it is binomial.
    """
    above = _score_above(choice)
    below = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    gumbel = isinstance(choice.selector, ZCDPTopK)
    noise = -np.log(-np.log(below)) if gumbel else -np.log1p(-below)
    return float(bdtr(k - 1, candidates - 1, above(gap / choice.scale + noise)).mean())


def _score_above(choice: Choice) -> Callable[[Line], Line]:
    if isinstance(choice.selector, ZCDPTopK):
        return _gumbel_above
    if isinstance(choice.selector, OneShotTopK):
        return _exponential_above
    raise TypeError("expected the choice of a TopK")


def smallest_found(
    noises: Noises, level: float | None, candidates: int, others: float, threshold: float
) -> float:
    """The smallest distance that is selected and called dependent with 95 % probability.

    Args:
      noises: the noise of a screen.
      level: a released distance above this is called dependent; None to ask for the selection only.
      candidates: number of pairs.
      others: distance of the other candidates of a top-k.
      threshold: distance at which a sparse vector finds pairs.

    Returns:
      The value, which may exceed `LARGEST`; infinity if it exceeds 1000.
    """
    choice = noises.choice

    def missed(value: float) -> bool:
        # The noise of a selection and that of the values are independent.
        found = 1.0 if level is None else float(noises.distances.cdf(np.asarray(value - level)))
        if choice is not None:
            selector = choice.selector
            if isinstance(selector, OneShotTopK | ZCDPTopK):
                found *= selected_chance(choice, value - others, candidates, selector.k)
            else:
                found *= passed_chance(choice, value - threshold)
        return found < SURE

    found = doubled(missed, 1.0, most=1000)
    return float("inf") if found is None else bisect(missed, *found, digits=7).fails


def passed_chance(choice: Choice, gap: float) -> float:
    """The probability that a pair passes the threshold of `Above`, which is lower by `gap`.

    With one threshold: P(G - Z >= g - z - gap) for exponential noise of means g and z, as the
    threshold is raised by the difference of the means. Algorithm 5: Laplace noise on the pair of
    twice the scale b of that on the threshold; their difference exceeds x > 0 with probability
    2/3 e^(-x/2b) - 1/6 e^(-x/b).
    """
    if not isinstance(choice.selector, SparseVector | SingleThresholdSparseVector):
        raise TypeError("expected the choice of an Above")
    g, z = choice.scale, choice.threshold_scale
    if isinstance(choice.selector, SingleThresholdSparseVector):
        x = g - z - gap
        return float(g * np.exp(-x / g) if x > 0 else g + z - z * np.exp(x / z)) / (g + z)
    beyond = 2 / 3 * np.exp(-abs(gap) / (2 * z)) - 1 / 6 * np.exp(-abs(gap) / z)
    return float(1 - beyond if gap > 0 else beyond)


def _separated(
    above: Callable[[Line], Line],
    scale: float,
    strong: Sequence[float],
    weak: Sequence[float],
    ends: tuple[float, float],
) -> float:
    """P(min(strong + noise) > max(weak + noise)), integrated over the maximum."""
    low, high = ends
    first = max(low, min(weak) - _REACH * scale)
    last = min(high, max(weak) + _REACH * scale)
    line = np.linspace(first, last, _POINTS)
    below = _product(lambda value: 1 - above((line - value) / scale), weak)
    # The first step has all of the probability below the first point.
    steps = np.diff(below, prepend=0.0)
    middle = np.concatenate([line[:1], (line[1:] + line[:-1]) / 2])
    passed = _product(lambda value: above((middle - value) / scale), strong)
    return float((steps * passed).sum())


def _product(factor: Callable[[float], Line], values: Sequence[float]) -> Line:
    """The product of `factor(value)` over values; it is computed once for equal values."""
    distinct, counts = np.unique(np.asarray(values, float), return_counts=True)
    found = np.ones(_POINTS)
    for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        found *= factor(value) ** count
    return found


def _uniform_above(x: Line) -> Line:
    return np.clip((1 - x) / 2, 0, 1)


def _normal_above(x: Line) -> Line:
    return ndtr(-x)


def _exponential_above(x: Line) -> Line:
    return np.exp(-np.maximum(x, 0))


def _gumbel_above(x: Line) -> Line:
    return -np.expm1(-np.exp(np.minimum(-x, 700)))  # beyond which it overflows, and 1 is left


def expected_count(chance: float, runs: int, *, share: float = 0.99) -> tuple[int, int]:
    """An interval that contains the number of right answers in `runs` with probability `share`."""
    from scipy.stats import binom  # imported here: it takes a second, and `screen` does not need it

    low, high = binom.interval(share, runs, min(max(chance, 0.0), 1.0))
    return int(low), int(high)
