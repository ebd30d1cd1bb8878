"""Error probabilities of sieve-and-examine: bounds, printed bounds, and exact distributions.

Errors are those of the supplement of Wang, Pang and Song (*Towards practical differentially private
causal graph discovery*, 2020), for a query of score f on all records:
Type I: f >= T + alpha, and the query is answered "below", by the sieve or by the examination;
Type II: f <= T - alpha, and the query is answered "above", by both.
Their probabilities are those of the event that the query is asked and answered so. docs/sieve.md
has the proofs.

rho, nu and X are the noise of threshold, query and examination, all integers. G is how far the
score on the subsample lies on the wrong side of f; P(G >= w) <= drift(w).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, expm1, inf, lcm

import numpy as np

from dpmic_jax.dp.arithmetic.intervals import integer
from dpmic_jax.dp.noise.bounded import blind_pmf
from dpmic_jax.dp.noise.distributions import DiscreteLaplace
from dpmic_jax.dp.selection.sieve import FURTHEST, SieveAndExamine

Drift = Callable[[int], float]
_CELLS = 4096  # cells of a distribution; wider ones, rounded up, make a bound looser but not wrong
_NATS = 45  # range of the noise in the cells; what lies beyond is counted as an error


def no_drift(step: int) -> float:
    """The drift of scores that are the same on the subsample, as when it is all of the data."""
    return 0.0


@dataclass(frozen=True, kw_only=True)
class Fluctuation:
    """Drift of a score that each of its m records changes by at most `sensitivity`.

    P(f(S) - E f(S) >= w) <= exp(-2 w^2 / V) for a uniform subset S of m of n records, with
    V = sensitivity^2 min(u^2 m / (u - 1/2), m^2 u / (m - 1/2)) / (n - 1/2), u = n - m. Proof: given
    the first k of m draws, an exchange of the k-th one changes the expectation by at most
    sensitivity (n-m)/(n-k), since with probability (m-k)/(n-k) the other record is drawn later.
    The Hoeffding-Azuma inequality and sum_(j=u)^(n-1) j^-2 <= 1/(u - 1/2) - 1/(n - 1/2) give the
    first term, and the same for the records that are left out gives the second (Cortes, Mohri,
    Pechyony, Rastogi 2008).

    Attributes:
      n: number of records.
      subsample: m, the number of records in the subsample.
      sensitivity: the sensitivity of a score on m records.
      bias: bound on |E f(S) - f(D)|; 0 for means and U-statistics.
    """

    n: int
    subsample: int
    sensitivity: float
    bias: float

    def __post_init__(self):
        integer("subsample", self.subsample, 1, integer("n", self.n, 1, 2**31 - 1))
        if not (0 < self.sensitivity < inf and 0 <= self.bias < inf):
            raise ValueError("expected a finite sensitivity > 0 and a finite bias >= 0")

    def __call__(self, step: int) -> float:
        """A bound on P(f(S) - f(D) >= step), and on P(f(D) - f(S) >= step)."""
        inside, outside = self.subsample, self.n - self.subsample
        beyond = step - self.bias
        if beyond <= 0:
            return 1.0
        if outside == 0:
            return 0.0
        spread = inside * outside * min(outside / (outside - 0.5), inside / (inside - 0.5))
        return exp(-2 * (beyond / self.sensitivity) ** 2 * (self.n - 0.5) / spread)


def type_one(settings: SieveAndExamine, alpha: int, *, drift: Drift, rounds: int) -> float:
    """A bound on P(asked, answered "below") for a query with f >= T + alpha.

    1 - (1 - s) (1 - P(X > alpha)), s = sum_w min(1, rounds P(rho + G >= w)) P(nu = alpha+t+1 - w).
    For one round s = P(rho + nu + G > alpha + t). With more rounds, earlier queries can stop all
    of them except one with a high threshold and a bad subsample.

    Args:
      settings: the settings of the sieve.
      alpha: the distance to the threshold in the units of the scores, at least 0.
      drift: step -> a bound on P(f(S) <= f - step), non-increasing; a `Fluctuation`, for example.
      rounds: the most rounds that may have begun when the query is asked: at most settings.rounds,
        and at most the query's position in the list, counted from 1.
    """
    _check(settings, alpha, rounds)
    least, level = alpha + settings.tweak + 1, settings.threshold_noise
    far = max(_NATS / float(level.rate), least + _NATS / float(settings.query_noise.rate))
    lost, beyond = _cells(drift, far)
    width, middle = _width(far), int(far // _width(far)) + 1
    above = _laplace_tails(level, width * np.arange(-middle, middle + 1) + 1)
    raised = -np.diff(above, prepend=1.0)
    worst, sure = _tilted(np.convolve(raised, lost), beyond + float(above[-1]), rounds)
    values = width * (np.arange(len(worst)) - middle)
    sieved = float(worst @ _laplace_tails(settings.query_noise, least - values)) + sure
    sieved = min(1.0, sieved + rounds * _blind(settings))
    failed = laplace_tail(settings.examine_noise, alpha + 1)
    failed += float(settings.certificate().examine_floor)
    return 1 - (1 - sieved) * (1 - failed)


def type_two(settings: SieveAndExamine, alpha: int, *, drift: Drift, rounds: int) -> float:
    """A bound on P(asked, answered "above") for a query with f <= T - alpha.

    P(X >= alpha) sum_w min(1, rounds P(G >= w)) P(nu - rho = alpha - t - w), with P(G >= w) = 1 for
    w <= 0. Earlier queries that did not pass make a high threshold more likely, which does no harm,
    but they may also make a subsample more likely that favours this query.

    Args:
      settings: the settings of the sieve.
      alpha: the distance to the threshold in the units of the scores, at least 0; it may be
        smaller than the tweak.
      drift: step -> a bound on P(f(S) >= f + step), non-increasing.
      rounds: as for `type_one`.
    """
    _check(settings, alpha, rounds)
    least = alpha - settings.tweak
    far = max(1.0, least + _NATS / float(settings.query_noise.rate))
    worst, sure = _tilted(*_cells(drift, far), rounds)
    values = _width(far) * np.arange(len(worst))
    passed = float(worst @ difference_tail(settings, least - values)) + sure
    passed = min(1.0, passed + rounds * _blind(settings))
    floor = float(settings.certificate().examine_floor)
    return passed * (laplace_tail(settings.examine_noise, alpha) + floor)


def published_type_one(
    *, alpha: float, tweak: float, inner_epsilon: float, sensitivity: float
) -> float:
    """Theorem 4 as printed; it ignores the examination, the subsample and earlier queries."""
    half = exp(-inner_epsilon * (alpha + tweak) / (6 * sensitivity))
    return half - half**2 / 4


def published_type_two(
    *, alpha: float, tweak: float, inner_epsilon: float, epsilon: float, sensitivity: float
) -> float:
    """Theorem 5 as printed, for alpha >= tweak.

    It has exp(-2 epsilon alpha / Delta) for the examination, where noise of scale Delta / epsilon
    gives exp(-epsilon alpha / Delta) / 2.
    """
    half = exp(-inner_epsilon * (alpha - tweak) / (6 * sensitivity))
    return (half - half**2 / 4) * exp(-2 * epsilon * alpha / sensitivity)


# --- distributions of the noise ------------------------------------------------------------


def laplace_tail(noise: DiscreteLaplace, least: int) -> float:
    """P(X >= least): r^least / (1 + r) for least >= 1, r = e^-rate."""
    return float(_laplace_tails(noise, np.asarray(least)))


def _laplace_tails(noise: DiscreteLaplace, least: np.ndarray) -> np.ndarray:
    """P(X >= least), elementwise; by symmetry 1 - P(X >= 1 - least) for least <= 0."""
    rate = float(noise.rate)
    tail = np.exp(-rate * np.where(least >= 1, least, 1 - least)) / (1 + exp(-rate))
    return np.where(least >= 1, tail, 1 - tail)


def difference_tail(settings: SieveAndExamine, least: np.ndarray) -> np.ndarray:
    """P(D >= least), elementwise, for D = nu - rho of rates b and a = 2 b.

    With r = e^-b and s = e^-a, P(D = d) ~ A r^|d| - C s^|d| for A = r s / (1 - r s) + r / (r - s)
    and C = s / (r - s) - r s / (1 - r s), by summing s^|k| r^|d-k|. For fine scores its tail is
    (2/3) e^(-b z) - (1/6) e^(-a z).
    """
    slow, fast = float(settings.query_noise.rate), float(settings.threshold_noise.rate)
    both = exp(-slow - fast) / -expm1(-slow - fast)
    apart = -expm1(slow - fast)  # (r - s) / r
    scale = np.tanh(slow / 2) * np.tanh(fast / 2)
    far = np.where(least >= 1, least, 1 - least).astype(float)
    tail = (both + 1 / apart) * np.exp(-slow * far) / -expm1(-slow)
    tail -= (exp(slow - fast) / apart - both) * np.exp(-fast * far) / -expm1(-fast)
    return np.where(least >= 1, scale * tail, 1 - scale * tail)


def _width(far: float) -> int:
    """The width of cells, at most _CELLS or so, that cover 0 .. far."""
    return int(far // _CELLS) + 1


def _cells(chance: Drift, far: float) -> tuple[np.ndarray, float]:
    """The distribution of max(G, 0), rounded up to cells, and the probability beyond them.

    P(G >= w) = chance(w).
    """
    width = _width(far)
    tails = [1.0]
    while tails[-1] > 0 and (len(tails) - 1) * width < far:
        tails.append(min(tails[-1], float(chance((len(tails) - 1) * width + 1))))
    return -np.diff(tails), tails[-1]


def _tilted(cells: np.ndarray, beyond: float, rounds: int) -> tuple[np.ndarray, float]:
    """The largest distribution on the same cells whose tails are at most `rounds` times these.

    The second value is its probability beyond the cells.
    """
    tails = np.append(np.cumsum(cells[::-1])[::-1], 0.0) + beyond
    tails = np.minimum(1.0, rounds * tails)
    tails[0] = 1.0
    return -np.diff(tails), float(tails[-1])


def _blind(settings: SieveAndExamine) -> float:
    """Bound on the probability of a blind round: the floor, and n 2^-64 for ties."""
    return float(settings.certificate().floor) + settings.n * 2.0**-64


def _check(settings: SieveAndExamine, alpha: int, rounds: int) -> None:
    integer("alpha", alpha, 0, 2**28)
    integer("rounds", rounds, 1, settings.rounds)


# --- exact distributions -------------------------------------------------------------------


def sieve_pmf(settings: SieveAndExamine, scores: Sequence[int], start: int = 0) -> list[Fraction]:
    """The exact probability that a round from query `start` on stops at each query.

    The last entry is the probability that it stops at none. For scores on a given subsample whose
    priorities did not tie; feasible for noise of a few thousand steps.
    """
    floor, count = settings.certificate().floor, len(scores)
    levels, queries = _tails(settings.threshold_noise), _tails(settings.query_noise)
    whole, far, found = queries[0], len(queries) // 2, [0] * (count + 1)
    points = [min(max(score, -FURTHEST), FURTHEST) for score in scores]
    for index, (above, below) in enumerate(pairwise(levels)):
        # In integers, over levels[0] whole^(queries gone through): fractions would be reduced.
        here = above - below
        level = settings.threshold - settings.tweak + index - len(levels) // 2
        for query in range(start, count):
            passes = queries[min(max(level - points[query] + far, 0), 2 * far)]
            found[query] += here * passes
            here *= whole - passes
        found[count] += here
    pmf = [
        (1 - floor) * Fraction(ways, levels[0] * whole ** max(min(i + 1, count) - start, 0))
        for i, ways in enumerate(found)
    ]
    for stop in range(count + 1):
        pmf[max(stop, start)] += floor * blind_pmf(stop, count)
    return pmf


def examine_pmf(settings: SieveAndExamine, score: int) -> Fraction:
    """The exact probability that an examination says "above", for this score on all records."""
    floor, score = settings.certificate().examine_floor, min(max(score, -FURTHEST), FURTHEST)
    return floor / 2 + (1 - floor) * settings.examine_noise.tail(settings.threshold - score)


@lru_cache(maxsize=64)
def _tails(noise: DiscreteLaplace) -> list[int]:
    """P(X >= x) for x = -far, where it is 1, to far, where it is 0, with a common denominator.

    The first entry is the denominator, the others are numerators.
    """
    far = noise.certificate().reach + 2
    tails = [noise.tail(x) for x in range(-far, far + 1)]
    whole = lcm(*(tail.denominator for tail in tails))
    return [int(tail * whole) for tail in tails]
