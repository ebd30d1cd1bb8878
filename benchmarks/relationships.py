"""The MIC paper's synthetic distributions: their making, data sets from them, and their MIC*.

The paper is "Differentially Private Maximal Information Coefficients" (Lazarsfeld, Johnson
and Adeniran 2022). Its appendix E.2 puts equal isotropic Gaussians on the graph of a
function, and restricts their mixture to the unit square.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import ndtr, xlogy

Values = Float[np.ndarray, "*shape"]
Function = Callable[[Values], Values]

POINTS = 100
# Appendix E.2.2 found MIC* insensitive to partitions larger than these.
MASTER, FIXED = 260, 360
# F14 at R^2 = 0.9 is best at 35 parts, all others at fewer; `mic_star` checks that.
MOST_PARTS = 60


def _cubic(x: Values) -> Values:
    return 10 * (x - 0.6) ** 3 + 2 * x**2 + 1.5 - 3 * x


def _spike(x: Values) -> Values:
    return np.select([x <= 0.0528, x < 0.1], [18 * x, 1.9 - 18 * x], (1 - x) / 9)


def _lopsided_l(x: Values) -> Values:
    return np.select([x <= 0.0051, x < 0.01], [190 * x, 1.99 - 198 * x], (1 - x) / 99)


# Appendix E.2.1 prints the line in F3 and F4 as 2(x - 0.05). Half of that graph is in the unit
# square, and half of the graph of 2x - 0.5, which is what the authors' code has. The latter
# crosses the square from side to side about its centre, as F1 and F2 do, so the zero is taken
# for a misprint.
FUNCTIONS: dict[str, Function] = {
    "F1": lambda x: 0.2 * np.sin(12 * x - 6) + 1.1 * (x - 1) + 1,
    "F2": lambda x: 0.15 * np.sin(11 * np.pi * x) + x + 0.05,
    "F3": lambda x: 0.1 * np.sin(48 * x) + 2 * x - 0.5,
    "F4": lambda x: 0.2 * np.sin(48 * x) + 2 * x - 0.5,
    "F5": lambda x: 0.4 * np.cos(7 * np.pi * x) + 0.5,
    "F6": lambda x: 0.4 * np.cos(14 * np.pi * x) + 0.5,
    "F7": _cubic,
    "F8": lambda x: 4 * _cubic(x) - 1.4,
    "F9": lambda x: np.where(x <= 0.99, x / 99, 99 * x - 98),
    "F10": lambda x: 2**x - 1,
    "F11": lambda x: 8 ** (x - 0.3) - 1,
    "F12": lambda x: x,
    "F13": lambda x: 4 * (x - 0.5) ** 2 + 0.1,
    "F14": lambda x: 0.4 * np.sin(9 * np.pi * x) + 0.5,
    "F15": lambda x: 0.4 * np.sin(8 * np.pi * x) + 0.5,
    "F16": lambda x: 0.4 * np.sin(16 * np.pi * x) + 0.5,
    "F17": lambda x: np.select([x < 0.491, x <= 0.509], [0.05, 50 * (x - 0.5) + 0.5], 0.95),
    "F18": lambda x: 0.4 * np.cos(5 * np.pi * x * (1 + x)) + 0.5,
    "F19": lambda x: 0.4 * np.sin(6 * np.pi * x * (1 + x)) + 0.5,
    "F20": _spike,
    "F21": _lopsided_l,
}


class Mixture(NamedTuple):
    """Equal Gaussians N(centre, deviation^2 I), conditioned on the unit square."""

    centres: Float[np.ndarray, "points 2"]
    deviation: float


def noisy(function: Function, r_squared: float) -> Mixture:
    """The mixture about a graph over [0, 1] whose R^2 is the one wanted.

    The centres are evenly spaced by arc length: evenly spaced x would step over the spike of
    F21 and see F9 rise only once. Parts of the graph outside the unit square stay where they
    are; conditioning alone decides what is left of them.
    """
    x = np.linspace(0, 1, 100_001)
    y = function(x)
    length = np.append(0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    spaced = np.interp(np.linspace(0, length[-1], POINTS), length, x)
    centres = np.stack([spaced, function(spaced)], axis=1)

    def excess(deviation: float) -> float:
        return correlation_squared(function, Mixture(centres, deviation)) - r_squared

    return Mixture(centres, brentq(excess, 1e-4, 1, xtol=1e-6))


def correlation_squared(function: Function, mixture: Mixture) -> float:
    """R^2 of a noisy functional relationship: corr(f(X), Y)^2, with (X, Y) from the mixture.

    This is the R^2 of Reshef et al. (2018), and X is noisy in it. The shorter
    Var f / (Var f + s^2) leaves that out and allows for so much noise that hardly anything
    stays dependent: the faster a function turns, the sooner noise along x undoes it.

    Given its centre X and Y are independent, so moments are sums over centres of products,
    E[f(X)^a Y^b] = sum_i E_i[f(X)^a] E_i[Y^b], each taken over narrow cells.
    """
    edges = np.linspace(0, 1, 4001)
    middle = (edges[1:] + edges[:-1]) / 2
    x, y = (_cell_masses(mixture, axis, edges) for axis in (0, 1))

    def moment(a: int, b: int) -> float:
        return (function(middle) ** a @ x) @ (middle**b @ y)

    total = moment(0, 0)
    mean_f, mean_y = moment(1, 0) / total, moment(0, 1) / total
    covariance = moment(1, 1) / total - mean_f * mean_y
    variances = (moment(2, 0) / total - mean_f**2) * (moment(0, 2) / total - mean_y**2)
    return covariance**2 / variances


def _cell_masses(
    mixture: Mixture, axis: int, edges: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, "cells points"]:
    """What each Gaussian has between neighbouring edges on one axis, not conditioned."""
    return np.diff(ndtr((edges[:, None] - mixture.centres[:, axis]) / mixture.deviation), axis=0)


def draw(mixture: Mixture, n: int, generator: np.random.Generator) -> Float[np.ndarray, "n 2"]:
    """n records, by rejecting what falls outside the unit square."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        centres = mixture.centres[generator.integers(len(mixture.centres), size=2 * n)]
        records = centres + mixture.deviation * generator.standard_normal(centres.shape)
        inside = ((records >= 0) & (records <= 1)).all(axis=1)
        kept = np.concatenate([kept, records[inside]])
    return kept[:n]


def mic_star(mixture: Mixture) -> float:
    """MIC*, the MIC of a distribution: the largest entry on the characteristic matrix's boundary.

    Section 3.5 of Reshef et al. (2016): max over k, and over which axis is cut, of
    max I(X|_P, Y) / log k for partitions P of k parts.
    """
    boundary = np.stack([_boundary(mixture, axis) for axis in (0, 1)])
    if (boundary.argmax(axis=1) == boundary.shape[1] - 1).any():
        raise RuntimeError(f"MIC* still grows at {MOST_PARTS} parts; raise MOST_PARTS")
    return float(boundary.max())


def _boundary(mixture: Mixture, axis: int) -> Float[np.ndarray, " parts"]:
    """max I / log k for k = 2, 3, ... parts of `axis`, against a dense partition of the other.

    With g(s, t) = sum_r phi(p_r) - phi(p), phi(p) = p log p and p_r the mass in row r between
    edges s and t, the best k parts are k - 1 max-plus products with g.
    """
    merged = _cell_masses(mixture, axis, _equal_masses(mixture, axis, MASTER))
    fixed = _cell_masses(mixture, 1 - axis, _equal_masses(mixture, 1 - axis, FIXED))
    masses = merged @ fixed.T
    masses /= masses.sum()
    before = np.pad(np.cumsum(masses, axis=0), ((1, 0), (0, 0)))
    gain = np.full((MASTER + 1, MASTER + 1), -np.inf)
    for start, edge in enumerate(before):
        inside = np.maximum(before[start:] - edge, 0)
        gain[start, start:] = _phi(inside).sum(axis=1) - _phi(inside.sum(axis=1))
    row_entropy = -_phi(masses.sum(axis=0)).sum()
    best, found = gain[0], []
    for parts in range(2, MOST_PARTS + 1):
        best = (best[:, None] + gain).max(axis=0)
        found.append((row_entropy + best[-1]) / np.log(parts))
    return np.array(found)


def _equal_masses(mixture: Mixture, axis: int, parts: int) -> Float[np.ndarray, " edges"]:
    """Edges on one axis between which the conditioned mixture has equal masses, by bisection."""
    (other,) = _cell_masses(mixture, 1 - axis, np.array([0.0, 1.0]))

    def mass_below(value: Values) -> Values:
        return ndtr((value[:, None] - mixture.centres[:, axis]) / mixture.deviation) @ other

    least, most = mass_below(np.array([0.0, 1.0]))
    wanted = least + (most - least) * np.arange(1, parts) / parts
    low, high = np.zeros(parts - 1), np.ones(parts - 1)
    for _ in range(50):
        middle = (low + high) / 2
        above = mass_below(middle) < wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.concatenate([[0.0], low, [1.0]])


def _phi(mass: Values) -> Values:
    return xlogy(mass, mass)
