"""Distributions with known MIC*, far more varied than the 189: what distances are calibrated on.

Functions, shapes that are no functions, copulas, and columns of few values, on columns that fill
their bounds evenly or not. MIC* does not change if a column is stretched, but the distance from
independence does, as its parts are of equal width.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri, stdtr, stdtrit, xlogy

from dpmic_jax.mic.distance import PARTS
from dpmic_jax.paper import family
from dpmic_jax.paper.functions import FUNCTIONS
from dpmic_jax.paper.mic_star import mic_star
from dpmic_jax.paper.mixtures import POINTS, Mixture, cell_masses, mixture_with_r_squared
from dpmic_jax.paper.shapes import shapes

Edges = Float[np.ndarray, " edges"]
Masses = Float[np.ndarray, "columns rows"]
# P(V <= v | U = u) of a copula, whose columns U and V are uniform.
Conditional = Callable[[Float[np.ndarray, "u 1"], Float[np.ndarray, "1 v"]], Masses]

R_SQUARED = 0.97  # of the strongest function of a kind, beside those of the family
DEVIATIONS = (0.18, 0.12, 0.08, 0.05, 0.03, 0.02)  # of the Gaussians of a shape
CORRELATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
FREEDOM = (1, 3)  # degrees of freedom of t copulas, which are dependent without correlation
PREVALENCES = (0.05, 0.2, 0.5)  # of a flag
_EVEN = np.arange(PARTS + 1) / PARTS
_SKEWED = _EVEN ** (1 / 3)  # two fifths of the records are in the first part
_BELL = np.concatenate([[0], ndtr(np.linspace(-3, 3, PARTS + 1)[1:-1]), [1]])  # normal columns
# How columns fill their bounds, with the share of pairs that are taken to do so.
_FILLED = (
    (_EVEN, _EVEN, 0.7),
    (_SKEWED, _EVEN, 0.1),
    (_EVEN, _SKEWED, 0.1),
    (_SKEWED, _SKEWED, 0.1),
)
_FINE = 128  # parts of equal mass of a column, to compute MIC* of a copula
_POINTS = 8  # points at which a part of a copula is integrated
_MOST = 24  # parts that are tried, for MIC* of a copula


class Curve(NamedTuple):
    """Distributions of one sort, the weakest first.

    Attributes:
      kind: an estimate is tested on kinds that it was not calibrated on.
      share: of its kind; the shares of all curves of a kind add up to 1.
      stars: MIC* of each.
      masses: of the cells of the distance from independence.
    """

    kind: str
    share: float
    stars: Float[np.ndarray, " distributions"]
    masses: Float[np.ndarray, "distributions columns rows"]


def curves() -> list[Curve]:
    """All of them; takes a few seconds."""
    return [*_functions(), *_shapes(), *_copulas(), *_few_values()]


def _functions() -> Iterator[Curve]:
    """The 189 distributions, and the same functions with hardly any noise."""
    known = family.family()
    strong = [mixture_with_r_squared(function, R_SQUARED) for function in FUNCTIONS.values()]
    for name, last, star in zip(FUNCTIONS, strong, mic_star(strong), strict=True):
        of = [index for index, each in enumerate(known.names) if each == name]
        mixtures = [*(known.mixtures[index] for index in of), last]
        yield from _of_mixtures(name, mixtures, np.append(known.stars[of], star))


def _shapes() -> Iterator[Curve]:
    every = {name: [Mixture(c, s) for s in DEVIATIONS] for name, c in other_shapes().items()}
    stars = mic_star([mixture for of in every.values() for mixture in of])
    for (name, of), star in zip(every.items(), stars.reshape(len(every), -1), strict=True):
        yield from _of_mixtures(name, of, star)


def _of_mixtures(
    kind: str, mixtures: Sequence[Mixture], stars: Float[np.ndarray, " mixtures"]
) -> Iterator[Curve]:
    for x, y, share in _FILLED:
        masses = np.stack([cell_masses(m, 0, x) @ cell_masses(m, 1, y).T for m in mixtures])
        yield Curve(kind, share, stars, masses / masses.sum(axis=(1, 2), keepdims=True))


def other_shapes() -> dict[str, Float[np.ndarray, "points 2"]]:
    """The centres of shapes that are no functions, 100 points in the unit square."""
    middle = (np.arange(4) + 0.5) / 4
    squares = np.array([p for p in product(middle, middle) if round(4 * sum(p)) % 2])
    x, side = np.linspace(0.02, 0.98, POINTS // 2), np.array([-1, 1])[:, None]
    wedge = np.stack([np.tile(x, 2), (0.5 + 0.48 * side * x).ravel()], axis=1)
    quarters = np.array([[0.2, 0.2], [0.2, 0.8], [0.8, 0.2]])
    return shapes() | {
        "checkerboard": np.resize(squares, (POINTS, 2)),
        "growing spread": wedge,
        "three of four blobs": np.resize(quarters, (POINTS, 2)),
    }


def _copulas() -> Iterator[Curve]:
    """Normal and t copulas, with uniform, normal and skewed columns."""
    t = {
        f"t of {freedom}": [t_copula(freedom, rho) for rho in (0.0, *CORRELATIONS)]
        for freedom in FREEDOM
    }
    fine = np.arange(_FINE + 1) / _FINE
    for kind, of in ({"normal": [normal_copula(rho) for rho in CORRELATIONS]} | t).items():
        stars = np.array([mic_star_of(copula_masses(each, fine, fine)) for each in of])
        every = list(product((_EVEN, _BELL, _SKEWED), repeat=2))
        for x, y in every:
            masses = np.stack([copula_masses(each, x, y) for each in of])
            yield Curve(kind, 1 / len(every), stars, masses)


def normal_copula(rho: float) -> Conditional:
    """The copula of two normal variables of correlation rho."""
    return lambda u, v: ndtr((ndtri(v) - rho * ndtri(u)) / np.sqrt(1 - rho**2))


def t_copula(freedom: int, rho: float) -> Conditional:
    """The copula of two t variables of correlation rho that share their scale."""

    def below(u, v):
        x, y = stdtrit(freedom, u), stdtrit(freedom, v)
        scale = np.sqrt((freedom + x**2) * (1 - rho**2) / (freedom + 1))
        return stdtr(freedom + 1, (y - rho * x) / scale)

    return below


def _few_values() -> Iterator[Curve]:
    """Flags and counts, made of columns of a normal copula, beside each other and numbers."""
    flags = [np.array([0, 1 - prevalence, 1]) for prevalence in PREVALENCES]
    count = np.array([0, 0.4, 0.7, 0.9, 0.97, 1])
    number = np.arange(_FINE + 1) / _FINE
    columns = {
        "flag and flag": list(product(flags, flags)),
        "flag and count": [(flag, count) for flag in flags],
        "flag and number": [(flag, number) for flag in flags],
        "count and count": [(count, count)],
        "count and number": [(count, number)],
    }
    for kind, pairs in columns.items():
        signed = [(x, y, sign) for x, y in pairs for sign in (1, -1)]
        for x, y, sign in signed:
            of = [normal_copula(sign * rho) for rho in CORRELATIONS]
            stars = np.array([mic_star_of(copula_masses(each, x, y)) for each in of])
            masses = np.stack([copula_masses(each, _in_parts(x), _in_parts(y)) for each in of])
            yield Curve(kind, 1 / len(signed), stars, masses)


def _in_parts(edges: Edges) -> Edges:
    """Edges of all parts, for values that are evenly spread over the bounds of their column."""
    values = len(edges) - 1
    if values > PARTS:
        return _EVEN
    part = np.minimum(np.arange(values) * PARTS // (values - 1), PARTS - 1)
    return edges[np.searchsorted(part, np.arange(PARTS + 1), side="left")]


def copula_masses(copula: Conditional, u: Edges, v: Edges) -> Masses:
    """The masses of a copula between edges, integrated over u at the middles of equal steps."""
    step = (np.arange(_POINTS) + 0.5) / _POINTS
    at = (u[:-1, None] + np.diff(u)[:, None] * step).ravel()
    # No mass is above the last edge or below the first, where quantiles are infinite.
    inner = copula(at[:, None], v[None, 1:-1])
    below = np.concatenate([np.zeros((len(at), 1)), inner, np.ones((len(at), 1))], axis=1)
    means = below.reshape(len(u) - 1, _POINTS, len(v)).mean(axis=1)
    return np.diff(means, axis=1) * np.diff(u)[:, None]


def mic_star_of(masses: Masses) -> float:
    """MIC* of a table: the largest max I / log2 k over partitions of either axis into k parts."""
    return max(float(boundary(table).max()) for table in (masses, masses.T))


def boundary(masses: Masses) -> Float[np.ndarray, " sizes"]:
    """max I / log2 k over merged columns, for k = 2, 3, ..., by the recursion over edges."""
    edges = np.pad(np.cumsum(masses, axis=0), ((1, 0), (0, 0)))
    inside = np.maximum(edges[None] - edges[:, None], 0)
    gain = _xlog2x(inside).sum(axis=2) - _xlog2x(inside.sum(axis=2))
    gain[np.tril_indices(len(gain), -1)] = -np.inf
    best, found = gain[0], []
    for _ in range(min(_MOST, len(masses)) - 1):
        best = (best[:, None] + gain).max(axis=0)
        found.append(best[-1])
    information = np.array(found) - _xlog2x(masses.sum(axis=0)).sum()
    return information / np.log2(np.arange(2, len(found) + 2))


def _xlog2x(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return xlogy(x, x) / np.log(2)
