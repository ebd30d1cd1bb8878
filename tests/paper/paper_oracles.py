"""Simple, slow implementations of the paper's distributions and MIC* in numpy and scipy."""

import itertools

import numpy as np
import oracles
from scipy import stats
from scipy.optimize import brentq


def rejected(centres, deviation, n, rng):
    """n records of the mixture by rejection: a centre and a Gaussian step, if in the square."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        start = centres[rng.integers(len(centres), size=n)]
        records = start + deviation * rng.standard_normal(start.shape)
        kept = np.concatenate([kept, records[((records >= 0) & (records <= 1)).all(axis=1)]])
    return kept[:n]


def distribution_function(centres, deviation, axis):
    """P(coordinate <= value) of the conditioned mixture."""
    here, there = centres[:, axis], centres[:, 1 - axis]
    other = stats.norm.cdf(1, there, deviation) - stats.norm.cdf(0, there, deviation)
    below_zero = stats.norm.cdf(0, here, deviation)
    total = other @ (stats.norm.cdf(1, here, deviation) - below_zero)
    return lambda value: other @ (stats.norm.cdf(value, here, deviation) - below_zero) / total


def joint_masses(centres, deviation, axis, master, fixed):
    """Probabilities of the cells: `master` columns of one axis, `fixed` rows of the other."""

    def between(axis, parts):
        below = distribution_function(centres, deviation, axis)
        inner = [brentq(lambda v, p=p: below(v) - p / parts, 0, 1) for p in range(1, parts)]
        edges = np.array([0, *inner, 1])[:, None]
        return np.diff(stats.norm.cdf(edges, centres[:, axis], deviation), axis=0)

    masses = between(axis, master) @ between(1 - axis, fixed).T
    return masses / masses.sum()


def by_enumeration(masses, most):
    """Most information of 2, 3, ..., `most` merged columns over log2 k: every partition tried."""
    return [
        max(
            oracles.information(np.add.reduceat(masses, [0, *cuts], axis=0))
            for cuts in itertools.combinations(range(1, len(masses)), parts - 1)
        )
        / np.log2(parts)
        for parts in range(2, most + 1)
    ]


def by_recursion(masses, most):
    """The same by dynamic programming over the last part: sum_p sum_r m log2(m / (m_p m_r))."""
    rows = masses.sum(axis=0)
    before = np.vstack([np.zeros_like(rows), masses.cumsum(axis=0)])
    size = len(before)
    tells = np.full((size, size), -np.inf)
    for start in range(size - 1):
        part = np.maximum(before[start + 1 :] - before[start], 0)
        ratio = part / (part.sum(axis=1, keepdims=True) * rows)
        tells[start, start + 1 :] = (part * np.log2(np.where(ratio > 0, ratio, 1))).sum(axis=1)
    best, found = tells[0], []
    for parts in range(2, most + 1):
        best = (best[:, None] + tells).max(axis=0)
        found.append(best[-1] / np.log2(parts))
    return found


def mic_star(centres, deviation, master, fixed, most):
    """Largest normalised information of a partition of one axis about the other."""
    return max(
        max(by_recursion(joint_masses(centres, deviation, axis, master, fixed), most))
        for axis in (0, 1)
    )
