"""How large distances get by chance on independent columns, and the dependence threshold.

**Theorem.** Let the records of different persons be independent, the x of a person's records
independent of their y, and x of one distribution in all records, and y too. Then the distance from
independence (`mic.distance`) across a split, with m parts on the other axis and values of t within
e(p) of p, exceeds x with a probability of at most

    inf_c exp(m phi(c^2 / m) - c z),   z = min_p (x - e(p)) sqrt(n / s(p)),   1/2 <= p <= 1,

where s(p) = (2p - 1) / 2 ln(p / (1 - p)), at most s(1/2) = 1/4, is the variance proxy of a
Bernoulli variable, and phi(v) = ln(2 e^(v/2) - e^(-sqrt(v))). If a person has up to r > 1 records,
z = min_p (x - e(p)) sqrt(4 n / r) and phi(v) = v / 2 + ln 2. The bounds of all splits add up.

Proof. Let the near side have the probability p >= 1/2 (else exchange the sides), and let t >= 1/2
be the value next to p. With X_j = a_j - p c_j and Y their sum, the distance is at most

    [sum_j |X_j| + (2t - 1) |Y|] / 2 t n + |p - t| <= sum_j |X_j| / n + e(p),

since sum_j c_j = n and |Y| <= sum_j |X_j|. Given the y, the a_j are independent and binomial, as
every record is on the near side with the same probability. By e^(h|X|) = e^(hX) + e^(-hX) -
e^(-h|X|), by E e^(hX_j) <= e^(h^2 s c_j / 2) (Kearns and Saul 1998), and by E e^(-h|X_j|) >=
e^(-h E|X_j|) >= e^(-h sqrt(s c_j)), as p (1 - p) <= s(p): ln E e^(h|X_j|) <= phi(h^2 s c_j). phi is
concave, so that the sum over j is largest for equal c_j, m phi(h^2 s n / m). Chernoff's bound with
c = h sqrt(s n) is the claim. For r > 1, sum_j |X_j| is the largest of 2^m sums with signs; in each
a person's records range over r at most, and the squares of these ranges add up to r n at most
(Hoeffding's lemma). Records of a person may be copies of each other, so it covers persons whose
records are repeated, and draws that do not depend on the values (docs/howto_persons.md). []

phi(v) = v/2 + ln 2 + ln(1 - e^(-w) / 2) with w = v/2 + sqrt(v): a linear function and a concave,
increasing function of a concave one.

The number of splits, and m, are those of the columns: of numbers 135 and 16, of nominal columns by
their bins (docs/nominal.md). The threshold is for the kind of pairs that has the largest bound.

It holds for every marginal distribution, with ties, rare values and missing ones. That it is the
same for all records is needed: if x and y are 0 for some persons and 1 for others, and nothing is
random, they are independent in every record and yet decide each other in the table. Noise is added
to distances independently of the records. So with d candidate pairs, however they depend on each
other, and T a variable with that tail, the probability that any independent pair exceeds a
threshold L is at most E_R[min(1, d P(T + noise > L | R))] for cube noise of radius R, and d P(T +
noise > L) for Gaussian noise. `dependence_level` solves that for 5 %.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv, ndtri

from dpmic_jax.dp.arithmetic.bisection import bisect, doubled
from dpmic_jax.dp.noise.lattice import LatticeCube
from dpmic_jax.mic.distance import PARTS, length_price, number_of_splits, price, steps_of
from dpmic_jax.screening.noises import ValueNoise

FALSE_ALARMS = 0.05  # family-wise, over all pairs of a screen

_CELLS = 256  # of p; bounds hold for all p of a cell
_POINTS = 4096  # of the integral over the noise of a pair
_SLOPES = 256  # of Chernoff's bound
_STRATA = 1024  # of the distribution of the radius, or of Gaussian noise
_EXCEEDED = np.geomspace(1, 1e-6, _STRATA + 1)  # probabilities between which the radius has strata

Line = Float[np.ndarray, "*shape"]
# Of the columns of pairs the numbers of bins, 0 if they are not nominal.
PairBins = tuple[tuple[int, int], ...]
NUMBERS: PairBins = ((0, 0),)


def distance_tail(x: Line, n: int, records: int = 1, bins: PairBins = NUMBERS) -> Line:
    """A bound on the probability that the distance of an independent pair exceeds x.

    Args:
      x: distances.
      n: number of records.
      records: largest number of records of one person.
      bins: what pairs may have; the largest bound is taken.
    """
    return np.minimum(1, np.max([_pair_tail(x, n, records, both) for both in bins], axis=0))


def _pair_tail(x: Line, n: int, records: int, both: tuple[int, int]) -> Line:
    """The bounds of all splits of both columns, added up."""
    union, unit = price(n), 2 * steps_of(n) * n
    terms: Counter[tuple[int, int]] = Counter()  # by the parts of the other column and the price
    for split, other in (both, both[::-1]):
        parts, off = other or PARTS, length_price(other, n)
        free, unions = number_of_splits(split)
        terms.update({(parts, off): free, (parts, off + union): unions})
    found = [
        number * _split_tail(x + off / unit, n, records, parts)
        for (parts, off), number in terms.items()
    ]
    return np.sum(found, axis=0)


def _split_tail(x: Line, n: int, records: int, parts: int) -> Line:
    """The bound for one split, with so many parts on the other axis."""
    error, proxy = _worst(n, records)
    z = ((np.asarray(x)[..., None] - error) * np.sqrt(n / proxy)).min(axis=-1)
    slopes, offsets = _chernoff(records > 1, parts)
    # Every slope gives a bound, and the best one is taken.
    return np.exp((offsets - slopes * z[..., None]).min(axis=-1))


@lru_cache(maxsize=256)
def _chernoff(signs: bool, parts: int) -> tuple[Line, Line]:
    """Values of c, and m phi(c^2 / m) for each of them and m parts."""
    c = np.concatenate([[0.0], np.linspace(0.5, 24, _SLOPES)])
    half = c**2 / (2 * parts)
    more = np.zeros_like(c) if signs else np.log1p(-np.exp(-half - np.sqrt(2 * half)) / 2)
    return c, parts * (half + math.log(2) + more) * (c > 0)


@lru_cache(maxsize=256)
def _worst(n: int, records: int) -> tuple[Line, Line]:
    """Of every cell of p the largest e(p) and the largest s(p)."""
    steps = steps_of(n)
    edges = np.linspace(0.5, 1, _CELLS + 1)
    low, high = edges[:-1], edges[1:]
    # 1/t and 1/p differ by 1 / 2G at most.
    error = high * np.minimum(1, high * (1 + 1 / (2 * steps))) / (2 * steps)
    if records > 1:
        return error, np.full(_CELLS, records / 4)
    proxy = np.full(_CELLS, 0.25)
    proxy[1:] = (2 * low[1:] - 1) / (2 * np.log(low[1:] / (1 - low[1:])))
    return error, proxy


@lru_cache(maxsize=256)
def chance_level(
    n: int,
    pairs: int,
    records: int = 1,
    bins: PairBins = NUMBERS,
    *,
    chance: float = FALSE_ALARMS,
) -> float:
    """A distance that any of `pairs` independent pairs exceeds with probability `chance`."""
    return _smallest(
        lambda x: pairs * float(distance_tail(np.asarray(x), n, records, bins)), chance
    )


@lru_cache(maxsize=256)
def dependence_level(
    noise: ValueNoise, n: int, pairs: int, records: int = 1, bins: PairBins = NUMBERS
) -> float:
    """The threshold above which a released distance is called dependent.

    If all pairs are independent, any of them exceeds it with a probability of at most 5 %.

    Args:
      noise: the noise on each released distance.
      n: number of records.
      pairs: number of candidate pairs, whether or not they are released.
      records: largest number of records of one person.
      bins: as for `distance_tail`.
    """
    x, tail = _tails(n, records, bins)
    if isinstance(noise, LatticeCube):
        return _smallest(_by_cube(noise, x, tail, pairs), FALSE_ALARMS)
    return _smallest(lambda level: _by_gauss(noise, level, x, tail, pairs), FALSE_ALARMS)


@lru_cache(maxsize=64)
def _tails(n: int, records: int, bins: PairBins) -> tuple[Line, Line]:
    """Distances, and `distance_tail` of each."""
    x = np.linspace(0, chance_level(n, 1, records, bins, chance=1e-30), _POINTS)
    return x, distance_tail(x, n, records, bins)


def _smallest(excess: Callable[[float], float], chance: float) -> float:
    """The smallest value at which a falling probability is at most `chance`."""
    found = doubled(lambda x: excess(x) > chance, 1e-3)
    return 0.0 if found is None else bisect(lambda x: excess(x) > chance, *found, digits=7).fails


def _by_cube(noise: LatticeCube, x: Line, tail: Line, pairs: int) -> Callable[[float], float]:
    """E_R[min(1, pairs P(T + R U > level))] of a level, U uniform on [-1, 1]; from above."""
    # The upper ends of strata of the radius, which are narrow in its tail.
    radii = _radii(noise.points + 1) * noise.scale
    # The tail falls, so its left value bounds it over a step: `area` is the integral from x[0] on.
    area = np.concatenate([[0.0], np.cumsum(tail[:-1] * np.diff(x))])

    def integral(to: Line) -> Line:
        inside = np.interp(to, x, area)
        return np.where(to < 0, to, inside)

    def false_alarms(level: float) -> float:
        chance = (integral(level + radii) - integral(level - radii)) / (2 * radii)
        # No radius below the upper end of a stratum has a larger chance than the running maximum.
        chance = np.maximum.accumulate(np.minimum(1, pairs * chance))
        return float(chance @ -np.diff(_EXCEEDED) + _EXCEEDED[-1])

    return false_alarms


@lru_cache(maxsize=64)
def _radii(shape: int) -> Line:
    return gammaincinv(shape, 1 - _EXCEEDED[1:])


def _by_gauss(noise: ValueNoise, level: float, x: Line, tail: Line, pairs: int) -> float:
    """pairs P(T + noise > level), from above."""
    beyond = min(1e-4 / pairs, 1e-8)
    exceeded = np.concatenate(
        [np.linspace(1, 0.01, _STRATA), np.geomspace(0.01, beyond, _STRATA)[1:]]
    )
    # The upper end of every stratum of the noise, and the tail at a point at or below.
    place = np.searchsorted(x, level + noise.scale * ndtri(exceeded[1:]), side="right") - 1
    chance = np.where(place < 0, 1.0, tail[np.maximum(place, 0)])
    return pairs * float(chance @ -np.diff(exceeded) + beyond)
